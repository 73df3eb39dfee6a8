/* Structures for the tables of a profile, shared by read.c, name.c, write.c and columns.c. Private to this folder. */
#pragma once

#include "base/json_fields.h"
#include "base/map.h"
#include "profile/profile.h"

#define PROFILE_NONE UINT32_MAX /* no row, index or line: null in the profile */

/* ---- columns.c ---- */

/* Reads the members of `object`, JSON text of the profile, into `out`; if its data is NULL the object is absent, and `out` stays unchanged.
 * The text has been checked to be JSON, so false means out of memory. */
bool profile_object(struct sl_str object, struct sl_arena *arena, const struct sl_field *fields, void *out);

/* Sets `*value` to the JSON text of the member `name` of `object`, data NULL if it is absent. False when out of memory. */
bool profile_member(struct sl_str object, struct sl_arena *arena, const char *name, struct sl_str *value);

struct profile_column { /* the numbers in one column of a table */
    uint32_t *items;
    size_t count;
};

/* Reads the numbers of a column into the arena. Values outside of 0..2^32-2 become PROFILE_NONE. If the column is
 * absent, the result is empty. False when out of memory. */
bool profile_column_read(struct sl_str text, struct sl_arena *arena, struct profile_column *column);
/* Reads a column of addresses; values that are not addresses become UINT64_MAX. False when out of memory. */
bool profile_addresses_read(struct sl_str text, struct sl_arena *arena, uint64_t **items, size_t *count);
/* Returns the number in this row of the column; PROFILE_NONE if the column is shorter. */
static inline uint32_t profile_cell(const struct profile_column *column, size_t row)
{
    return row < column->count ? column->items[row] : PROFILE_NONE;
}

/* ---- tables ---- */

/* The tables of one thread, or those that threads share. Tables are JSON text; data NULL: absent. */
struct profile_scope {
    struct sl_str strings, stacks, frames, funcs, resources, symbols, sources;
    struct sl_str samples, markers, js_allocations, native_allocations; /* tables whose rows refer to stacks */
    struct profile_set *set;    /* the frames that its stacks refer to, maybe those of the shared tables; NULL: none */
    struct profile_scope *pool; /* the scope whose strings its tables refer to: itself, or the shared tables */
};

/* The frame table of one scope (a thread, or the tables that threads share), with what its frames refer to. */
struct profile_set {
    struct profile_scope *scope;
    size_t frame_count, func_count, symbol_count;
    uint32_t *func, *lib;           /* per frame: row of its function, its library (PROFILE_NONE: it needs no name) */
    uint64_t *address;              /* per frame */
    struct profile_column resource; /* per function: row of its resource, which names the library */
};

/* Returns the index in profile->addresses of an address that is listed there. */
size_t profile_address_index(const struct sl_profile *profile, uint32_t lib, uint64_t address);

/* ---- name.c: applies names to the frames of a frame table ---- */

struct
    profile_pool { /* the strings and source files of a thread, or those that threads share; with those added for names */
    const struct profile_scope *scope;
    struct sl_arena *arena;
    struct sl_map by_text; /* text -> index + 1 */
    uint32_t count, source_count;
    struct sl_buf added;            /* JSON of the added strings, each preceded by a comma */
    struct sl_map source_by_string; /* string index -> source index + 1 */
    uint32_t *sources;              /* added sources: the string index of each */
    size_t added_sources, source_capacity;
};

/* Rows to be appended to the tables of functions, native symbols and frames. */
struct new_func {
    /* `name`: index of a string; `file`: row of the table of sources if the profile has one, else index of a string; `resource`: row */
    uint32_t name, file, resource;
};
struct new_symbol {
    uint32_t lib, name;
    uint64_t address;
};
struct new_frame { /* `depth`: of inlining, from 1 */
    uint32_t func, line, depth;
};

struct profile_naming {
    const struct sl_profile *profile;
    const struct sl_profile_name *names;
    const struct profile_set *set;
    struct profile_pool *pool;
    struct sl_budget *budget; /* limits new frames, which can be by far the most numerous; NULL: no limit */
    bool has_sources;         /* the file of a function is a row of the table of sources, not a string */
    /* per frame of `set`: */
    uint32_t *func, *symbol, *line; /* new values; symbol PROFILE_NONE: the frame is unchanged */
    uint32_t *more; /* index in `frames` of the first frame for a call inlined into it; one more element at the end */
    /* per function of `set`, valid if `reused`: the new name and file; file PROFILE_NONE: unknown */
    uint32_t *name, *file;
    bool *reused; /* the function's row now describes another function */
    struct new_func *funcs;
    size_t func_count, func_capacity;
    struct new_symbol *symbols;
    size_t new_symbol_count, symbol_capacity;
    struct new_frame *frames;
    size_t frame_count, frame_capacity;
    struct sl_map func_by_key, symbol_by_key;
};

/* Reads the strings of the profile's `scope` and counts its source files. The caller frees the pool, also after a failure. */
enum sl_code profile_pool_open(const struct profile_scope *scope, struct sl_arena *arena, struct profile_pool *pool,
                               struct sl_error *error);
void profile_pool_free(struct profile_pool *pool);

/* Applies the names to one frame table: stores in `naming` how rows of frames, functions and symbols change and which ones are added. The
 * caller has set the members up to `has_sources` and zeroed the rest; it calls profile_naming_free() also after a failure. */
enum sl_code profile_name_frames(struct profile_naming *naming, struct sl_arena *arena, struct sl_error *error);
void profile_naming_free(struct profile_naming *naming);

/* Returns the maximum number of rows that a table with `count` rows may get: a small profile whose frames all have many inlined calls must
 * not become a huge one. */
static inline size_t profile_max_rows(size_t count)
{
    return count < UINT32_MAX / 64 ? 65536 + 16 * count : UINT32_MAX / 4;
}
