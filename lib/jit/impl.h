/* What the readers of this folder share. */
#pragma once

#include "jit/jit.h"

/* False when out of memory. Code of no size, without a name or past the end of the address space is left out. */
bool jit_add(struct sl_jit_code *code, uint64_t address, uint64_t size, struct sl_str name);

/* A hexadecimal number at the beginning of the text, which goes behind it and the blanks after it. False when there is none. */
bool jit_read_hex(struct sl_str *text, uint64_t *value);
