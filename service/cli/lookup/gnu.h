/* `symloom addr2line`: gives the answers of GNU addr2line. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct gnu_element {
    struct sl_str name, file; /* data NULL: unknown */
    uint32_t line;            /* 0: unknown */
};

struct gnu_answer {
    struct gnu_element elements[MAX_CHAIN]; /* innermost first; empty: nothing known at the address */
    size_t count;
    uint32_t discriminator; /* 0: none; GNU addr2line shows it at every element */
};

struct gnu_tables;

/* Returns the module's tables, built at the first call; NULL if the module is not an ELF file or has no symbol table, or memory or the
 * file's work budget ran out. They are one allocation, which the module frees. */
struct gnu_tables *gnu_get_tables(struct lookup_module *m);

/* Fills `answer` for an address of the file itself (not relative to the load address); `inlines`: with the callers of an inlined call.
 * Texts live as long as the tables. False when memory or the file's work budget ran out. */
bool gnu_look_up(struct gnu_tables *t, uint64_t address, bool inlines, struct gnu_answer *answer);
