/* Units of DWARF as they are written: what debuggers' tools print beyond what the stream of functions has, discriminators and
 * declarations, and what they choose by rules of their own. Read unit by unit, for those who ask for few addresses.
 *
 *     root entries ──ranges──▶ which unit ──read──▶ functions and inlined calls, rows of the line program, files
 *
 * Nothing is left out or put right: ranges may be of code that the linker has dropped, rows may go backwards. One thread. */
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
    struct sl_str name; /* the linkage name, else that of the source; its own or that of what it is an instance of */
    struct sl_str short_name; /* that of the source */
    bool has_linkage_name;    /* `name` is one */
    bool is_inlined;
    uint64_t low_pc; /* DW_AT_low_pc; UINT64_MAX: not said */
    uint32_t parent; /* of an inlined call: index of the function or call around it, or SL_DWARF_NONE */
    uint32_t first_range, range_count;                              /* in the unit's ranges, in the order written */
    uint32_t call_file, call_line, call_column, call_discriminator; /* file: SL_DWARF_NONE: not said */
    uint32_t decl_line;                                             /* 0: not said */
    uint32_t decl_file, decl_unit; /* index into the files of that unit; SL_DWARF_NONE: not said */
    bool decl_file_in_abbrev;      /* `decl_file` is said by the abbreviation (DW_FORM_implicit_const) */
};

struct sl_dwarf_unit {
    const struct sl_dwarf_function *functions; /* in file order */
    const struct sl_dwarf_range *ranges;       /* of all of them */
    const struct sl_dwarf_row *rows;           /* in the order of the line program */
    const struct sl_file *files;
    size_t function_count, range_count, row_count, file_count;
    struct sl_str name, comp_dir;
    struct sl_str directory; /* of the line table: its first one */
    uint16_t line_version;   /* of the line table; 0: it has none */
    uint16_t language;       /* DW_AT_language */
};

struct sl_dwarf_listing;

/* NULL when the object has no .debug_info, or memory is out. `companions` (may be NULL) and the object must outlive it. What is read
 * is paid for by the object's budget. */
struct sl_dwarf_listing *sl_dwarf_listing_new(struct sl_object *object, const struct sl_companions *companions);
void sl_dwarf_listing_free(struct sl_dwarf_listing *listing);

size_t sl_dwarf_listing_count(const struct sl_dwarf_listing *listing);

/* The ranges of code that the root entry of the unit has, good until the next call; how many they are: 0 when it has none. */
size_t sl_dwarf_listing_ranges(struct sl_dwarf_listing *listing, size_t unit, const struct sl_dwarf_range **ranges);

/* Reads the unit; what is not text of the object lives in the arena. SL_MALFORMED when it cannot be read to its end. */
enum sl_code sl_dwarf_listing_read(struct sl_dwarf_listing *listing, size_t unit, struct sl_arena *arena,
                                   struct sl_dwarf_unit *out, struct sl_error *error);
