/* Units of an ELF file's DWARF as they are written, indexed by address: what the tools' own rules choose from that are not those of the
 * look-up that all other answers come from. Private to this folder.
 *
 *     address ──▶ unit ──▶ row of its line program, of several at one address the last
 *                      └─▶ function or inlined call with the smallest range around it, of equals the last; its callers */
#pragma once

#include "cli/lookup/lookup.h"
#include "cli/split_files.h"
#include "dwarf/listing.h"

struct written_symbol { /* of the symbol table, as the tools choose from them */
    uint64_t address, size;
    struct sl_str name, file; /* data NULL: none */
    uint32_t section;
};
/* Sorts by address, and those of one address by section if `by_section`; what is equal stays in its order. False when out of memory. */
bool written_sort_symbols(struct written_symbol *symbols, size_t count, bool by_section);

struct written_row {
    uint64_t address;
    uint32_t file, line, column, discriminator;
    uint32_t op_index;
    bool is_end;
};

struct written_sequence {
    uint64_t low, high;
    uint32_t first, count, number; /* number: the later ones in the program have the smaller ones */
};

struct written_function {
    const struct sl_dwarf_function *entry;
    struct sl_str name;
    bool is_settled;    /* the name is a linkage name, or symbols were asked for it */
    uint64_t low, high; /* of all its ranges */
    uint64_t reach;     /* the highest end of those up to here in `by_low` */
    struct sl_dwarf_range *ranges;
    uint32_t range_count;
};

struct written_unit {
    struct sl_dwarf_unit listing;
    struct written_row *rows;
    struct written_sequence *sequences; /* by address, apart */
    struct written_function *functions; /* as in the listing */
    uint32_t *by_low;                   /* functions with ranges, by their lowest address */
    size_t row_count, sequence_count, by_low_count;
    struct sl_str *paths; /* of its files, once they were asked for; data NULL: not yet */
    bool is_bad;          /* it has no lines, or cannot be read: GNU's tool leaves it out */
};

struct written_span {
    uint64_t begin, end, reach; /* reach: the highest end up to here */
    uint32_t unit;
};

struct written {
    struct sl_arena arena;
    struct sl_account account;
    struct sl_object *object;
    struct split_files companions;
    struct sl_dwarf_listing *listing; /* NULL: the file has no DWARF */
    struct written_unit **units;      /* NULL: not read yet */
    struct written_span *spans;       /* by their begin */
    uint32_t *rangeless;              /* units whose code is where their functions and lines are */
    uint32_t *read;                   /* units that were, in that order */
    size_t unit_count, span_count, rangeless_count, read_count;
    bool failed; /* memory or the file's budget ran out */
};

struct written_place {
    struct written_unit *unit;
    const struct written_row *row;     /* NULL: none */
    struct written_function *function; /* NULL: none */
};

/* The units of the module, indexed at their first use; NULL where the module is no linked ELF file, or that failed. They live as long
 * as the module. */
struct written *written_of(struct lookup_module *m);
void written_free(struct written *w);

/* The first unit, in file order, that knows something of an address of the file. False when none does. */
bool written_find(struct written *w, uint64_t address, struct written_place *place);

/* The number of a unit in .debug_info, read; NULL when memory or the budget ran out. */
struct written_unit *written_unit_read(struct written *w, uint32_t number);
