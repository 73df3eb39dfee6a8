/* Readable names in the style of profilers: with parameters, without template arguments and clone suffixes. Private
 * to this folder.
 *
 *     _ZNK3FoossIiEEbT_                                      bool Foo::operator<=>(int) const
 *     _ZN2js8HeapSlot4postE..RKN2JS5ValueE.isra.0.cold       js::HeapSlot::post(.., JS::Value const&)
 *     runtime.(*mheap).grow                                  runtime.(*mheap).grow */
#pragma once

#include "base/map.h"
#include "base/buf.h"
#include "base/arena.h"
#include "base/idtable.h"

enum { NAMES_RECENT = 256 };

struct stable_name { /* a name in `stable_bytes`, identified by its address */
    const char *name, *readable;
    uint32_t size, readable_size;
};

struct symbfile_names {           /* cache of readable names; zero-initialised = empty */
    struct sl_bytes stable_bytes; /* names in here do not move and are identified by address; may be empty */
    struct sl_account account;    /* charges `stable_names` */
    struct stable_name *stable_names;
    size_t stable_count, stable_capacity;
    struct sl_id_table stable_table;
    struct sl_map map; /* other names, by text */
    struct {
        struct sl_str name, readable;
    } recent[NAMES_RECENT]; /* the last used names of `map`, by a hash of their address */
    struct sl_arena arena;
    struct sl_buf scratch, full;
    bool failed; /* out of memory or budget: some names were returned unchanged */
};

/* Makes an empty cache. Names in `stable_bytes` must not move as long as it is used. Memory is charged to `budget` (NULL = no
 * limit). */
void names_init(struct symbfile_names *names, struct sl_bytes stable_bytes, struct sl_budget *budget);
void names_free(struct symbfile_names *names);

/* Call it when memory outside of `stable_bytes` may have been reused: then an address in `recent` may be that of another name. */
void names_clear_recent(struct symbfile_names *names);

/* Returns the readable form of a name; it lives as long as `names` and `stable_bytes`. If out of memory, sets `failed`
 * and returns the name itself. It demangles, which needs up to 4 MiB of stack (demangle/demangle.h). */
struct sl_str names_readable(struct symbfile_names *names, struct sl_str name);

/* Appends the readable form of a name to `out`, without a cache; the name itself if it cannot be demangled. `full` is a scratch
 * buffer. */
void name_readable(struct sl_str name, struct sl_buf *full, struct sl_buf *out);
