/* Shared by the readers of this folder. Private to it. */
#pragma once

#include "jit/jit.h"

/* Appends a function; ignores one without size or name, with a name of more than SL_MAX_NAME bytes, or past the end of the address space.
 * False when out of memory. */
bool jit_add(struct sl_jit_code *code, uint64_t address, uint64_t size, struct sl_str name);

/* Reads a hexadecimal number of at most 16 digits, with or without `0x`, at the start of the text, and advances the text past it and the
 * blanks that follow. False if there is none, or no blank follows. */
bool jit_read_hex(struct sl_str *text, uint64_t *value);
