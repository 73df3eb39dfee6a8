/* Readable names in the style of profilers: parameters shown, template arguments and clone suffixes not. Private to this
 * folder. */
#pragma once

#include "base/map.h"
#include "base/buf.h"
#include "base/arena.h"
#include "base/idtable.h"

enum { NAMES_RECENT = 256 };

struct names_place { /* a name that stays where it is */
    const char *name, *readable;
    uint32_t size, readable_size;
};

struct names {                 /* those met so far; zeros are an empty set */
    struct sl_bytes lasting;   /* names in here stay where they are, and are known by that; may be empty */
    struct sl_account account; /* of the places */
    struct names_place *places;
    size_t place_count, place_capacity;
    struct sl_id_table place_table;
    struct sl_map map; /* other names, by their text */
    struct {
        struct sl_str name, readable;
    } recent[NAMES_RECENT]; /* of those, by where they lie */
    struct sl_arena arena;
    struct sl_buf scratch, full;
    bool failed; /* out of memory, or of the budget's: some names are as they were */
};

/* `lasting` as above. Memory is the budget's (NULL = none). */
void names_init(struct names *names, struct sl_bytes lasting, struct sl_budget *budget);
void names_free(struct names *names);

/* From now on other names may lie where those before did, outside of `lasting`. */
void names_begin(struct names *names);

/* The readable form of a name, which lives as long as `names` and `lasting`; the name itself, and
 * `failed`, when out of memory. Needs the
 * stack of a demangler. */
struct sl_str names_readable(struct names *names, struct sl_str name);

/* One name, appended. `full` is scratch. */
void name_readable(struct sl_str name, struct sl_buf *full, struct sl_buf *out);
