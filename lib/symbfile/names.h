/* Readable names in the style of profilers: parameters shown, template arguments and clone suffixes not. Private to this
 * folder. */
#pragma once

#include "base/map.h"
#include "base/buf.h"
#include "base/arena.h"

enum { NAMES_RECENT = 8192 };

struct names { /* those met so far; zeros are an empty set */
    struct sl_map map;
    struct sl_arena arena;
    struct sl_buf scratch;
    struct {
        struct sl_str name, readable;
        uint64_t time;      /* 0 = always */
    } recent[NAMES_RECENT]; /* by where the name lies */
    uint64_t now;
    struct sl_bytes lasting; /* names in here stay where they are; may be empty */
};

void names_free(struct names *names);

/* From now on other names may lie where those before did, outside of `lasting`. */
void names_begin(struct names *names);

/* The readable form of a name, which lives as long as `names`; the name itself when out of memory. Needs the stack of a
 * demangler. */
struct sl_str names_readable(struct names *names, struct sl_str name);

/* One name, appended. */
void name_readable(struct sl_str name, struct sl_buf *out);
