/* Names of files and types. */
#pragma once

#include "base/buf.h"
#include "jvm/mapper.h"

/* Guesses the file name of a class, in two parts: its outermost class, and the extension of `reference` (file of a related
 * class; data NULL = none). */
void sl_jvm_file_name(struct sl_str class, struct sl_str reference, struct sl_str *stem, struct sl_str *suffix);

/* Returns the name of the outermost class around a class, without its package. */
struct sl_str sl_jvm_outermost(struct sl_str class);

/* Appends a descriptor (The Java Virtual Machine Specification, section 4.3.3) in readable form, "(int, a.B): void" (a return
 * type of void is left out), and to `parameters` (may be NULL) in the form of mappings, "int,a.B". Each class is translated by
 * the first mapper that contains it. False, with nothing appended, for an invalid descriptor. */
bool sl_jvm_signature(struct sl_str descriptor, const struct sl_jvm_mapper *const *mappers, size_t count,
                      struct sl_buf *readable, struct sl_buf *parameters);
