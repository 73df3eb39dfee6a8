/* `symloom addr2line`: answers by the rules of GNU addr2line. Private to this folder. */
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

/* Returns the module's tables, built at the first call; NULL where GNU's rules do not apply to the module, or the build fails. One
 * allocation, which lives as long as the module. */
struct gnu_tables *gnu_get_tables(struct lookup_module *m);

/* Fills `answer` for an address of the file. Texts live as long as the tables. False when memory or the file's budget ran out. */
bool gnu_look_up(struct gnu_tables *t, uint64_t address, bool inlines, struct gnu_answer *answer);
