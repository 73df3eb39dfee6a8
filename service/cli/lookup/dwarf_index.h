/* Indexes the compilation units of an ELF file's DWARF by address, with all rows and functions. Commands that emulate GNU addr2line and
 * LLVM's tools need it: these choose among rows and functions by rules of their own, for which a symcache lacks data.
 * Private to this folder.
 *
 *     address ──▶ unit ──▶ row of its line program; of several at one address the last
 *                      └─▶ function or inlined call with the smallest range around it; of equal ones the last; and its callers */
#pragma once

#include "cli/lookup/lookup.h"
#include "cli/split_files.h"
#include "dwarf/listing.h"

struct dwarf_index_symbol { /* a symbol table entry */
    uint64_t address, size;
    struct sl_str name, file; /* data NULL: none */
    uint32_t section;
};
/* Sorts the symbols stably by address, then by section if `by_section`. False when out of memory. */
bool dwarf_index_sort_symbols(struct dwarf_index_symbol *symbols, size_t count, bool by_section);

struct dwarf_index_row {
    uint64_t address;
    uint32_t file, line, column, discriminator;
    uint32_t op_index;
    bool is_end;
};

struct dwarf_index_sequence { /* rows of a line program up to an end row */
    uint64_t low, high;
    uint32_t first, count, number; /* number: counts down: of equal ones the last sorts first */
};

struct dwarf_index_function {
    const struct sl_dwarf_function *entry;
    struct sl_str name;
    bool is_settled;    /* `name` is final: no symbol needs to be searched for it */
    uint64_t low, high; /* bounds of all its ranges */
    uint64_t reach;     /* the highest end of all functions in the unit's `by_low` up to this one */
    struct sl_dwarf_range *ranges;
    uint32_t range_count;
};

struct dwarf_index_unit {
    struct sl_dwarf_unit listing;
    struct dwarf_index_row *rows;
    struct dwarf_index_sequence *sequences; /* sorted by address, disjoint */
    struct dwarf_index_function *functions; /* in the order of the listing */
    uint32_t *by_low;                       /* functions with ranges, sorted by their lowest address */
    size_t row_count, sequence_count, by_low_count;
    struct sl_str *paths; /* of its files, built on demand; data NULL: not yet */
    bool is_bad;          /* it has no lines, or is unreadable: GNU addr2line ignores it */
};

struct dwarf_index_span {       /* an address range of a unit */
    uint64_t begin, end, reach; /* reach: the highest end of all ranges up to this one, by their order in `spans` */
    uint32_t unit;              /* its number */
};

struct dwarf_unit_index {
    struct sl_arena arena;
    struct sl_account account;
    struct sl_object *object;
    struct split_files companions;
    struct sl_dwarf_listing *listing; /* NULL: the file has no DWARF */
    struct dwarf_index_unit **units;  /* entries NULL: not read yet */
    struct dwarf_index_span *spans;   /* sorted by begin */
    uint32_t *rangeless;              /* units without ranges: they may have code at any address */
    uint32_t *read;                   /* numbers of the units that were read, in the order of reading */
    size_t unit_count, span_count, rangeless_count, read_count;
    bool failed; /* memory or the file's budget ran out */
};

struct dwarf_index_location {
    struct dwarf_index_unit *unit;
    const struct dwarf_index_row *row;     /* NULL: none */
    struct dwarf_index_function *function; /* NULL: none */
};

/* Returns the index of the module's units, made at the first call; NULL if the module is not an ELF file, or memory or the file's work
 * budget ran out. It lives as long as the module. */
struct dwarf_unit_index *dwarf_index_get(struct lookup_module *m);
void dwarf_index_free(struct dwarf_unit_index *w);

/* Finds the first unit, in file order, with a row or function at the address, which is one of the file's own (not relative to the load
 * address). False when there is none. */
bool dwarf_index_find(struct dwarf_unit_index *w, uint64_t address, struct dwarf_index_location *location);

/* Returns unit `number` of .debug_info, read at the first call; NULL when memory or the file's work budget ran out. */
struct dwarf_index_unit *dwarf_index_read_unit(struct dwarf_unit_index *w, uint32_t number);
