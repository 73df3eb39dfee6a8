/* The tables of a profile: what reading (read.c), naming (name.c) and writing (write.c) share; columns.c. Private to this folder. */
#pragma once

#include "base/json_fields.h"
#include "base/map.h"
#include "profile/profile.h"

#define PROFILE_NONE UINT32_MAX

/* ---- columns.c ---- */

/* Reads an object that is a part of the profile; data NULL: it is absent, and so are its members. False: out of memory. */
bool profile_object(struct sl_str object, struct sl_arena *arena, const struct sl_field *fields, void *out);

/* A member of it as it is written; data NULL: absent. */
bool profile_member(struct sl_str object, struct sl_arena *arena, const char *name, struct sl_str *value);

/* The numbers of a column, in the arena; PROFILE_NONE for what is none of 0 to 2^32-2. No column has none. */
struct profile_column {
    uint32_t *items;
    size_t count;
};
bool profile_column_read(struct sl_str text, struct sl_arena *arena, struct profile_column *column);
bool profile_addresses_read(struct sl_str text, struct sl_arena *arena, uint64_t **items,
                            size_t *count); /* UINT64_MAX: none */
static inline uint32_t profile_cell(const struct profile_column *column, size_t row)
{
    return row < column->count ? column->items[row] : PROFILE_NONE;
}

/* ---- what was read ---- */

/* A thread, or what is shared. Tables as JSON; data NULL: it has none. */
struct profile_scope {
    struct sl_str strings, stacks, frames, funcs, resources, symbols, sources;
    struct sl_str samples, markers, js_allocations, native_allocations; /* whose stacks are meant */
    struct profile_set *set;                                            /* where its stacks are; NULL: nowhere */
    struct profile_scope *pool;                                         /* where its strings are */
};

/* Frames with what they refer to: those of a scope that has such. */
struct profile_set {
    struct profile_scope *scope;
    size_t frame_count, func_count, symbol_count;
    uint32_t *func, *lib; /* of each frame; lib: PROFILE_NONE: it wants no name */
    uint64_t *address;
    struct profile_column resource; /* of each function */
};

/* The index of an address that wants a name. */
size_t profile_address_index(const struct sl_profile *profile, uint32_t lib, uint64_t address);

/* ---- name.c: what names make of a set ---- */

struct pool { /* strings of a scope, and files */
    const struct profile_scope *scope;
    struct sl_arena *arena;
    struct sl_map by_text; /* to the index + 1 */
    uint32_t count, source_count;
    struct sl_buf added;            /* JSON, each with a comma in front */
    struct sl_map source_by_string; /* keys are indexes; to the index + 1 */
    uint32_t *sources;              /* added: the string of each */
    size_t added_sources, source_capacity;
};

struct new_func {
    uint32_t name, file, resource; /* file: a string or, where there are such, a source */
};
struct new_symbol {
    uint32_t lib, name;
    uint64_t address;
};
struct new_frame {
    uint32_t func, line, depth;
};

struct naming {
    const struct sl_profile *profile;
    const struct sl_profile_name *names;
    const struct profile_set *set;
    struct pool *pool;
    struct sl_budget *budget; /* of new frames, by far the most that there may be; NULL: none */
    bool has_sources;         /* functions refer to files by them */
    /* of each frame of the set */
    uint32_t *func, *symbol, *line; /* symbol PROFILE_NONE: it stays as it is */
    uint32_t *more;                 /* the first of its new frames; one more at the end */
    /* of each function that is taken: what it is called now; file PROFILE_NONE: not known */
    uint32_t *name, *file;
    bool *taken; /* the function is another one now */
    struct new_func *funcs;
    size_t func_count, func_capacity;
    struct new_symbol *symbols;
    size_t new_symbol_count, symbol_capacity;
    struct new_frame *frames;
    size_t frame_count, frame_capacity;
    struct sl_map func_by_key, symbol_by_key;
};

enum sl_code profile_pool_open(const struct profile_scope *scope, struct sl_arena *arena, struct pool *pool,
                               struct sl_error *error);
void profile_pool_free(struct pool *pool);

/* Zeros with the first four members are a naming; to be freed in any case. */
enum sl_code profile_name_frames(struct naming *naming, struct sl_arena *arena, struct sl_error *error);
void profile_naming_free(struct naming *naming);

/* How many rows a table may have that had `count`. */
static inline size_t profile_most_rows(size_t count)
{
    return count < UINT32_MAX / 64 ? 65536 + 16 * count : UINT32_MAX / 4;
}
