/* BPF objects without DWARF: reads functions and lines from the sections .BTF and .BTF.ext. The kernel needs these sections, so strip tools
 * keep them (Linux, Documentation/bpf/btf.rst, "ELF File Format Interface").
 *
 *     .BTF.ext ─┬─▶ func_info, by section: offset of code ─▶ type ─▶ name
 *               └─▶ line_info, by section: offset of code ─▶ file, line, column
 *     .BTF ─────┬─▶ types: kind FUNC has the names
 *               └─▶ strings: names, paths, names of sections */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Passes all functions with their lines, sorted by address, to the sink in one batch. There are no inlined calls: inlined code has the
 * lines of the inlined function. A function has the name of the symbol at its address, which is the linkage name, else the name of its
 * type. It ends with its symbol or section, or at the next function, whichever comes first. Damaged parts are left out and counted in
 * sink->skipped_units. SL_NOT_FOUND unless the object has both sections and a readable function. The sink is called in the caller's thread
 * only. */
enum sl_code sl_btf_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error);
