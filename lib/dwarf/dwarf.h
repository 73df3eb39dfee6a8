/* DWARF 2 to 5, read into the stream of functions (DWARF Debugging Information Format, version 5, and its GNU
 * extensions).
 *
 *     .debug_info ──▶ units ┬─ entries: subprograms, inlined calls, their names and ranges ─┐
 *     package, .dwo ────────┘  (.debug_abbrev says what each entry has)                      ├──▶ batch of functions, one
 *     supplementary file ─────▶ names that several files share                               │    a unit, in file order
 *     .debug_line ────────────▶ a line program a unit: addresses to lines ──────────────────┘
 *
 * A skeleton unit stands for the one in a package or .dwo file. What an entry refers to may be in another unit, and is read
 * there without the rest of that unit. Units do not depend on each other otherwise: they are read in parallel, and what is
 * bad in one is lost with it alone. */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Streams the functions of every unit with code to `sink`, in the order of .debug_info. Units are read in parallel when
 * `parallel` has workers; what the sink gets does not depend on their number. A unit that cannot be read costs its
 * remaining entries and counts in sink->skipped_units. SL_NOT_FOUND without .debug_info, SL_MALFORMED when no unit could
 * be read. `companions` may be NULL. */
enum sl_code sl_dwarf_read(struct sl_object *object, const struct sl_companions *companions,
                           const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error);

/* Which files beside the object hold more of its debug information: a package of split units (DWARF 5, 7.3.5), and the
 * supplementary file (sl_object_supplementary). */
struct sl_dwarf_wants {
    bool dwp;
    struct sl_str dwz_name;       /* a path, relative to the object's directory; empty = none */
    struct sl_bytes dwz_build_id; /* may be empty */
};
void sl_dwarf_wants(struct sl_object *object, struct sl_dwarf_wants *wants);

/* Calls `found` for the split units that skeletons among the first `most` units of the object stand for, until it returns false:
 * the directory of compilation and the name of the .dwo file, which are views of the object, and the unit's id. */
void sl_dwarf_split_units(struct sl_object *object, size_t most,
                          bool (*found)(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id),
                          void *arg);

/* Whether a .dwo file has the unit that skeletons know by the id (0: they tell of none): else it is that of another build. */
bool sl_dwarf_has_split_unit(struct sl_object *dwo, uint64_t dwo_id);

/* The texts of source files that line tables of version 5 hold (content type 0x2001 of LLVM, as `clang -gembed-source`
 * writes it): calls `found` for each, in the order of .debug_line, until it returns false. A header comes again with every
 * unit that includes it. Texts are views of the object; empty ones are left out. */
void sl_dwarf_sources(struct sl_object *object,
                      bool (*found)(void *arg, const struct sl_file *file, struct sl_bytes text), void *arg);
