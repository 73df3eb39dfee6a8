/* Applies names of addresses to the frames of a frame table: adds functions, symbols, and frames of inlined calls. */
#include "profile/impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/json_write.h"

/* ---- strings and files ---- */

/* Adds the next string of the profile to the pool. Each string takes an index, but the pool's map has only the first index (plus 1) of
 * equal strings, and names use that one. False when out of memory. */
static bool add_known(struct profile_pool *pool, struct sl_str text)
{
    void **slot = sl_map_find_or_add(&pool->by_text, text, NULL);
    if (slot && !*slot)
        *slot = (void *)(uintptr_t)(pool->count + 1);
    pool->count++;
    return slot != NULL;
}

/* Reads the strings of a scope (the tables of one thread, or those that threads share), so that names which it has already are not added
 * again, and counts its source files. */
enum sl_code profile_pool_open(const struct profile_scope *scope, struct sl_arena *arena, struct profile_pool *pool,
                               struct sl_error *error)
{
    struct sl_json j = sl_json(scope->strings, arena, false);
    struct sl_str key, text;
    struct profile_column filenames;
    struct sl_str filename;
    bool good = true;
    *pool = (struct profile_pool){.scope = scope, .arena = arena, .added = {.budget = arena->budget}};
    if (!sl_json_array(&j))
        return sl_fail(error, SL_MALFORMED, "the profile is malformed: its `stringArray` is not an array");
    while (good && sl_json_next(&j, &key)) {
        if (!sl_json_text(&j, &text))
            text = SL_STR(""); /* an item that is no string has an index, too */
        good = !j.failed && add_known(pool, text);
    }
    if (!good || j.failed || !profile_member(scope->sources, arena, "filename", &filename) ||
        !profile_column_read(filename, arena, &filenames))
        return sl_budget_fail(arena->budget, error);
    pool->source_count = (uint32_t)filenames.count;
    return SL_OK;
}

void profile_pool_free(struct profile_pool *pool)
{
    sl_map_free(&pool->by_text);
    sl_map_free(&pool->source_by_string);
    sl_buf_free(&pool->added);
    free(pool->sources);
}

/* Returns the index of a string; adds it if it is new. PROFILE_NONE if out of memory. The text must outlive the
 * pool. */
static uint32_t intern_string(struct profile_pool *pool, struct sl_str text)
{
    void **slot = sl_map_find_or_add(&pool->by_text, text, NULL);
    if (!slot)
        return PROFILE_NONE;
    if (!*slot) {
        *slot = (void *)(uintptr_t)(pool->count++ + 1);                 /* index plus 1, as NULL is a new slot */
        struct sl_json_writer w = {.out = &pool->added, .comma = true}; /* writes a comma in front of the string */
        sl_json_put_str(&w, text);
    }
    return (uint32_t)((uintptr_t)*slot - 1);
}

/* Returns the index that `map` has for a pair of numbers; a new pair is stored with the index `next`, by which the caller recognizes that
 * it is new. PROFILE_NONE if out of memory. */
static uint32_t intern_pair(struct sl_map *map, struct sl_arena *arena, uint64_t a, uint64_t b, size_t next)
{
    const uint64_t key[2] = {a, b};
    const void *known = sl_map_get(map, (struct sl_str){(const char *)key, sizeof key});
    if (known)
        return (uint32_t)((uintptr_t)known - 1);
    char *kept = sl_arena_alloc(arena, sizeof key, _Alignof(uint64_t));
    if (!kept || next >= PROFILE_NONE)
        return PROFILE_NONE;
    memcpy(kept, key, sizeof key);
    void **slot = sl_map_find_or_add(map, (struct sl_str){kept, sizeof key}, NULL);
    if (!slot)
        return PROFILE_NONE;
    *slot = (void *)(uintptr_t)(next + 1);
    return (uint32_t)next;
}

/* Returns the index of the source file with this name (the index of a string); adds it if it is new. PROFILE_NONE if out of memory. */
static uint32_t intern_source(struct profile_pool *pool, uint32_t string)
{
    size_t next = pool->source_count + pool->added_sources;
    uint32_t index =
        intern_pair(&pool->source_by_string, pool->arena, string, 0, next); /* 0: no second number needed */
    if (index != next)
        return index; /* known, or PROFILE_NONE */
    if (!sl_grow(&pool->sources, &pool->source_capacity, pool->added_sources + 1, sizeof *pool->sources))
        return PROFILE_NONE;
    pool->sources[pool->added_sources++] = string;
    return index;
}

/* ---- functions and symbols ---- */

/* Builds the row of a function from a call: its name, its file (PROFILE_NONE if unknown) and the resource of its library. The file is a row
 * of the table of sources if the profile's version has one (`has_sources`), else the index of a string. False when out of memory. */
static bool make_func(struct profile_naming *n, const struct sl_profile_call *call, uint32_t resource,
                      struct new_func *func)
{
    *func = (struct new_func){intern_string(n->pool, call->function), PROFILE_NONE, resource};
    if (func->name == PROFILE_NONE)
        return false;
    if (!call->file.size || (n->has_sources && !n->pool->scope->sources.data))
        return true; /* no file is known, or there is no table of sources to which it could be added */
    func->file = intern_string(n->pool, call->file);
    if (n->has_sources && func->file != PROFILE_NONE)
        func->file = intern_source(n->pool, func->file);
    return func->file != PROFILE_NONE;
}

/* Returns the row of a function. A new one overwrites row `free_row`, whose function nothing else uses, or is appended if that is
 * PROFILE_NONE. Returns PROFILE_NONE if out of memory. */
static uint32_t intern_func(struct profile_naming *n, struct sl_arena *arena, const struct new_func *func,
                            uint32_t free_row)
{
    size_t appended = n->set->func_count + n->func_count;
    size_t next = free_row != PROFILE_NONE ? free_row : appended;
    /* no other function has the row `next`, so this result means that the function is new */
    uint32_t index = intern_pair(&n->func_by_key, arena, (uint64_t)func->resource << 32 | func->name, func->file, next);
    if (index != next || index == PROFILE_NONE)
        return index;
    if (free_row != PROFILE_NONE) {
        n->name[index] = func->name;
        n->file[index] = func->file;
        n->reused[index] = true;
        return index;
    }
    if (!sl_grow(&n->funcs, &n->func_capacity, n->func_count + 1, sizeof *n->funcs))
        return PROFILE_NONE;
    n->funcs[n->func_count++] = *func;
    return index;
}

/* Returns the row of the native symbol at this address of the library; adds it with `name` if it is new. PROFILE_NONE if out of memory. */
static uint32_t intern_symbol(struct profile_naming *n, struct sl_arena *arena, uint32_t lib, uint64_t address,
                              uint32_t name)
{
    size_t next = n->set->symbol_count + n->new_symbol_count;
    uint32_t index = intern_pair(&n->symbol_by_key, arena, lib, address, next);
    if (index != next)
        return index;
    if (!sl_grow(&n->symbols, &n->symbol_capacity, n->new_symbol_count + 1, sizeof *n->symbols))
        return PROFILE_NONE;
    n->symbols[n->new_symbol_count++] = (struct new_symbol){lib, name, address};
    return index;
}

/* ---- frames ---- */

/* Adds a frame for each inlined call of an address, from the outside in (`calls` has the innermost first). The outermost call, depth 0, is
 * not added: it keeps the frame that is there. False if out of memory or if the budget does not allow more frames. */
static bool name_inlined(struct profile_naming *n, struct sl_arena *arena, const struct sl_profile_name *name,
                         uint32_t resource)
{
    for (size_t depth = 1; depth < name->count; depth++) {
        const struct sl_profile_call *call = &name->calls[name->count - 1 - depth];
        struct new_func func;
        if (!make_func(n, call, resource, &func))
            return false;
        uint32_t index = intern_func(n, arena, &func, PROFILE_NONE);
        if (index == PROFILE_NONE || !sl_grow(&n->frames, &n->frame_capacity, n->frame_count + 1, sizeof *n->frames) ||
            !sl_budget_charge(n->budget, sizeof *n->frames))
            return false;
        n->frames[n->frame_count++] = (struct new_frame){index, call->line, (uint32_t)depth};
    }
    return true;
}

/* Names a frame: it becomes the outermost call at its address, and frames for inlined calls are added. Its function is changed in place if
 * no other frame uses it (`uses`: number of frames per function). A frame without a name is left as it is (true). False if out of
 * memory. */
static bool name_frame(struct profile_naming *n, struct sl_arena *arena, size_t frame, const uint32_t *uses)
{
    const struct profile_set *set = n->set;
    /* the frame has a library, which was found by its function's resource: `own` is a row of the function table */
    uint32_t lib = set->lib[frame], own = set->func[frame], resource = set->resource.items[own];
    const struct sl_profile_name *name = &n->names[profile_address_index(n->profile, lib, set->address[frame])];
    struct new_func func;
    if (!name->count)
        return true;
    const struct sl_profile_call *outermost = &name->calls[name->count - 1];
    if (!make_func(n, outermost, resource, &func))
        return false;
    uint32_t index = intern_func(n, arena, &func, uses[own] == 1 ? own : PROFILE_NONE);
    n->symbol[frame] = intern_symbol(n, arena, lib, name->symbol, func.name);
    n->func[frame] = index;
    n->line[frame] = outermost->line;
    return index != PROFILE_NONE && n->symbol[frame] != PROFILE_NONE && name_inlined(n, arena, name, resource);
}

/* Allocates `count` numbers that are all PROFILE_NONE. NULL when out of memory. */
static uint32_t *allocate_none(struct sl_arena *arena, size_t count)
{
    uint32_t *items = SL_ARENA_ARRAY(arena, uint32_t, count + 1);
    if (items)
        memset(items, 0xff, count * sizeof *items);
    return items;
}

enum sl_code profile_name_frames(struct profile_naming *n, struct sl_arena *arena, struct sl_error *error)
{
    const struct profile_set *set = n->set;
    uint32_t *uses = SL_ARENA_ARRAY(arena, uint32_t, set->func_count + 1);
    /* PROFILE_NONE in these arrays: the row of the frame or function is not changed */
    n->func = allocate_none(arena, set->frame_count);
    n->symbol = allocate_none(arena, set->frame_count);
    n->line = allocate_none(arena, set->frame_count);
    n->more = SL_ARENA_ARRAY(arena, uint32_t, set->frame_count + 1);
    n->name = allocate_none(arena, set->func_count);
    n->file = allocate_none(arena, set->func_count);
    n->reused = SL_ARENA_ARRAY(arena, bool, set->func_count + 1);
    if (!uses || !n->func || !n->symbol || !n->line || !n->more || !n->name || !n->file || !n->reused)
        return sl_budget_fail(arena->budget, error);
    for (size_t i = 0; i < set->frame_count; i++)
        if (set->func[i] < set->func_count)
            uses[set->func[i]]++;
    for (size_t i = 0; i < set->frame_count; i++) {
        n->more[i] = (uint32_t)n->frame_count; /* where the frames begin that are added for calls inlined into it */
        if (set->lib[i] != PROFILE_NONE && !name_frame(n, arena, i, uses))
            return sl_budget_fail(arena->budget, error);
        if (n->frame_count > profile_max_rows(set->frame_count))
            return sl_fail(error, SL_UNSUPPORTED, "too many inlined calls for the frames of the profile");
    }
    n->more[set->frame_count] = (uint32_t)n->frame_count;
    return SL_OK;
}

void profile_naming_free(struct profile_naming *n)
{
    free(n->funcs);
    free(n->symbols);
    sl_budget_uncharge(n->budget, n->frame_count * sizeof *n->frames);
    free(n->frames);
    sl_map_free(&n->func_by_key);
    sl_map_free(&n->symbol_by_key);
    /* the other arrays are in an arena */
}
