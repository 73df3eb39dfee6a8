/* BPF objects without DWARF: the functions and lines of their sections .BTF and .BTF.ext, which the kernel needs and strip tools
 * leave, read into the stream of functions (Linux, Documentation/bpf/btf.rst, "ELF File Format Interface").
 *
 *     .BTF.ext ─┬─▶ func_info, by section: offset of code ─▶ type ─▶ name
 *               └─▶ line_info, by section: offset of code ─▶ file, line, column
 *     .BTF ─────┬─▶ types: those of kind FUNC have the names
 *               └─▶ strings: names, paths, names of sections */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Streams every function with its lines, by address, in one batch. Inlined calls are not told apart: lines are those of the
 * innermost. A function is called as the symbol at its address, which has the linkage name, or else as its type; it ends where
 * the symbol, the section or the next function does. What cannot be read is dropped and counts in sink->skipped_units.
 * SL_NOT_FOUND when the object has not both sections, or no function can be read. The sink is called from the caller's thread
 * alone. */
enum sl_code sl_btf_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error);
