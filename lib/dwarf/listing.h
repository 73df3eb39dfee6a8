/* DWARF units as they are written, for tools that look up a few addresses (addr2line, llvm-symbolizer): they also print
 * discriminators and declarations, which the stream of functions does not have, and select functions by their own rules. Units are
 * read one by one.
 *
 *     root entries ──ranges──▶ unit of an address ──read──▶ functions and inlined calls, rows of the line program, files
 *
 * Nothing is left out or corrected: ranges may be of code that the linker dropped, rows may go backwards. One thread. */
#pragma once

#include "function/function.h"
#include "object/object.h"

#define SL_DWARF_NONE UINT32_MAX

struct sl_dwarf_row {
    uint64_t address;
    uint32_t file, line, column, discriminator; /* file: index into the unit's files */
    uint32_t op_index;
    bool is_end; /* of a sequence */
};

struct sl_dwarf_range {
    uint64_t begin, end; /* as in the file */
};

/* A subprogram or an inlined call. */
struct sl_dwarf_function {
    struct sl_str name; /* the linkage name, else short_name; its own or of its abstract origin or specification */
    struct sl_str short_name; /* DW_AT_name */
    bool has_linkage_name;    /* `name` is a linkage name */
    bool is_inlined;
    uint64_t low_pc; /* DW_AT_low_pc; UINT64_MAX = absent */
    uint32_t parent; /* of an inlined call: index of the function or call around it, or SL_DWARF_NONE */
    uint32_t first_range, range_count;                              /* in the unit's ranges, in the order written */
    uint32_t call_file, call_line, call_column, call_discriminator; /* file: SL_DWARF_NONE = absent */
    uint32_t decl_line;                                             /* 0 = absent */
    uint32_t decl_file, decl_unit; /* index into the files of unit decl_unit; SL_DWARF_NONE = absent */
    bool decl_file_in_abbrev;      /* `decl_file` is a constant of the abbreviation (DW_FORM_implicit_const) */
};

struct sl_dwarf_unit {
    const struct sl_dwarf_function *functions; /* in file order */
    const struct sl_dwarf_range *ranges;       /* of all functions */
    const struct sl_dwarf_row *rows;           /* in the order of the line program */
    const struct sl_file *files;
    size_t function_count, range_count, row_count, file_count;
    struct sl_str name, comp_dir;
    struct sl_str directory; /* first directory of the line table */
    uint16_t line_version;   /* version of the line table; 0 = the unit has none */
    uint16_t language;       /* DW_AT_language */
};

struct sl_dwarf_listing;

/* Lists the object's units, whose contents are read later. NULL if the object has no .debug_info, or when out of memory. `companions` (may
 * be NULL) and the object must outlive the listing. Reading is charged to the object's budget. */
struct sl_dwarf_listing *sl_dwarf_listing_new(struct sl_object *object, const struct sl_companions *companions);
void sl_dwarf_listing_free(struct sl_dwarf_listing *listing);

size_t sl_dwarf_listing_count(const struct sl_dwarf_listing *listing);

/* Reads the code ranges of the unit's root entry, which are valid until the next call; returns their number, 0 also if the entry cannot be
 * read. */
size_t sl_dwarf_listing_ranges(struct sl_dwarf_listing *listing, size_t unit, const struct sl_dwarf_range **ranges);

/* Reads the unit of number `unit`, from 0; arrays live in the arena, texts in the object or the arena. SL_MALFORMED if it cannot be read to
 * its end: `out` then has the part before the damage. */
enum sl_code sl_dwarf_listing_read(struct sl_dwarf_listing *listing, size_t unit, struct sl_arena *arena,
                                   struct sl_dwarf_unit *out, struct sl_error *error);
