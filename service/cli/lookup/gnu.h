/* `symloom addr2line`: answers by the rules of GNU's tool. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct gnu_element {
    struct sl_str name, file; /* data NULL: not known */
    uint32_t line;            /* 0: not known */
};

struct gnu_answer {
    struct gnu_element elements[MAX_CHAIN]; /* innermost first; none: nothing is known of the address */
    size_t count;
    uint32_t discriminator; /* 0: none; the tool shows it at every element */
};

struct gnu_tables;

/* The tables of the module, made at their first use; NULL where the module is not one that GNU's rules are known for, or they cannot
 * be made. One piece of memory, which lives as long as the module. */
struct gnu_tables *gnu_tables_of(struct lookup_module *m);

/* What is known of an address of the file. Texts are good as long as the tables. False when memory or the file's budget ran out. */
bool gnu_look_up(struct gnu_tables *t, uint64_t address, bool inlines, struct gnu_answer *answer);
