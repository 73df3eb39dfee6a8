/* Reads DWARF 2 to 5 into the stream of functions (DWARF Debugging Information Format, version 5, and its GNU
 * extensions).
 *
 *     .debug_info ──▶ units ┬─ entries: subprograms, inlined calls, their names and ranges ─┐
 *     package, .dwo ────────┘  (.debug_abbrev has the attributes of each entry)              ├──▶ batch of functions, one
 *     supplementary file ─────▶ names that several files share                               │    per unit, in file order
 *     .debug_line ────────────▶ one line program per unit: addresses to lines ──────────────┘
 *
 * A skeleton unit stands for the split unit in a package or .dwo file. An entry may refer to one of another unit, which is read
 * there without the rest of that unit. Otherwise units do not depend on each other: they are read in parallel, and damage in one
 * does not affect the others. An entry is a DIE (debugging information entry). */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Streams the functions of every unit with code to `sink`, in the order of .debug_info. Units are read in parallel when
 * `parallel` has workers; the result does not depend on their number. A damaged unit loses its remaining entries and counts in
 * sink->skipped_units. SL_NOT_FOUND without .debug_info, SL_MALFORMED if no unit could be read. `companions` may be NULL. */
enum sl_code sl_dwarf_read(struct sl_object *object, const struct sl_companions *companions,
                           const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error);

/* Companion files with more of the object's debug information: a package of split units (DWARF 5, 7.3.5), and the supplementary
 * file (sl_object_supplementary). */
struct sl_dwarf_companions {
    bool dwp;                     /* has skeleton units, whose split units may be in a package */
    struct sl_str dwz_name;       /* a path, relative to the object's directory; empty = none */
    struct sl_bytes dwz_build_id; /* may be empty */
};
void sl_dwarf_find_companions(struct sl_object *object, struct sl_dwarf_companions *companions);

/* Calls `found` for each skeleton among the first `most` units of the object, until it returns false: with the compilation directory
 * and name of the .dwo file, which are views of the object, and the id of the split unit. */
void sl_dwarf_split_units(struct sl_object *object, size_t most,
                          bool (*found)(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id),
                          void *arg);

/* True if a .dwo file has the split unit with the id of its skeleton (0: the skeleton has no id). If not, it is from another build. */
bool sl_dwarf_has_split_unit(struct sl_object *dwo, uint64_t dwo_id);

/* Calls `found` for each source text in line tables of version 5 (content type 0x2001 of LLVM, `clang -gembed-source`), in the order
 * of .debug_line, until it returns false. A header file occurs once for every unit that includes it. Texts are views of the object;
 * empty ones are left out. */
void sl_dwarf_sources(struct sl_object *object,
                      bool (*found)(void *arg, const struct sl_file *file, struct sl_bytes text), void *arg);
