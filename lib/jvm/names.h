/* Names of files and of types. */
#pragma once

#include "base/buf.h"
#include "jvm/mapper.h"

/* The name of the file that a class is likely to be of, in two parts: its outermost class, and the extension of `reference` (the
 * file of a class near it; data NULL = none). */
void sl_jvm_file_name(struct sl_str class, struct sl_str reference, struct sl_str *stem, struct sl_str *suffix);

/* The name of the outermost class of a class, without its package. */
struct sl_str sl_jvm_outermost(struct sl_str class);

/* A descriptor (The Java Virtual Machine Specification, section 4.3.3) as people read it, "(int, a.B): void", without a return
 * type of void; and in `parameters` (may be NULL) as mappings have them, "int,a.B". Each class is named by the first mapper that
 * knows it. False when it is no descriptor: nothing is appended then. */
bool sl_jvm_signature(struct sl_str descriptor, const struct sl_jvm_mapper *const *mappers, size_t count,
                      struct sl_buf *readable, struct sl_buf *parameters);
