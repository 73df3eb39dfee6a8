/* Reads profiles: locates their tables and lists the addresses that need a name. */
#include "profile/impl.h"

#include "base/order.h"

#include <stdlib.h>

/* The first version that lists libraries once for the whole profile, and whose caller addresses lie inside the call instruction. */
enum { FIRST_VERSION = 41 };

static enum sl_code no_memory(struct sl_error *error)
{
    return sl_fail(error, SL_BUSY, "out of memory");
}

static enum sl_code no_profile(struct sl_error *error, const char *problem)
{
    return sl_fail(error, SL_MALFORMED, "not a Firefox profile: %s", problem);
}

/* ---- members ---- */

static const struct sl_field lib_fields[] = {
    SL_FIELD(TEXT, false, sl_profile_lib, name, "name"),
    SL_FIELD(TEXT, false, sl_profile_lib, path, "path"),
    SL_FIELD(TEXT, false, sl_profile_lib, debug_name, "debugName"),
    SL_FIELD(TEXT, false, sl_profile_lib, debug_path, "debugPath"),
    SL_FIELD(TEXT, false, sl_profile_lib, debug_id, "breakpadId"),
    SL_FIELD(TEXT, false, sl_profile_lib, code_id, "codeId"),
    SL_FIELD(TEXT, false, sl_profile_lib, arch, "arch"),
    SL_FIELDS_END,
};

struct profile_meta {
    struct sl_str platform, version; /* `version`: JSON text */
};

static const struct sl_field meta_fields[] = {
    SL_FIELD(TEXT, false, profile_meta, platform, "platform"),
    SL_FIELD(RAW, false, profile_meta, version, "preprocessedProfileVersion"),
    SL_FIELDS_END,
};

struct profile_body {
    struct sl_str meta, shared, threads; /* JSON text */
    struct sl_profile_lib *libs;
    size_t lib_count;
};

static const struct sl_field body_fields[] = {
    SL_FIELD(RAW, false, profile_body, meta, "meta"),
    SL_FIELD_ITEMS(profile_body, libs, lib_count, "libs", lib_fields),
    SL_FIELD(RAW, false, profile_body, shared, "shared"),
    SL_FIELD(RAW, false, profile_body, threads, "threads"),
    SL_FIELDS_END,
};

static const struct sl_field scope_fields[] = {
    SL_FIELD(RAW, false, profile_scope, strings, "stringArray"),
    SL_FIELD(RAW, false, profile_scope, stacks, "stackTable"),
    SL_FIELD(RAW, false, profile_scope, frames, "frameTable"),
    SL_FIELD(RAW, false, profile_scope, funcs, "funcTable"),
    SL_FIELD(RAW, false, profile_scope, resources, "resourceTable"),
    SL_FIELD(RAW, false, profile_scope, symbols, "nativeSymbols"),
    SL_FIELD(RAW, false, profile_scope, sources, "sources"),
    SL_FIELD(RAW, false, profile_scope, samples, "samples"),
    SL_FIELD(RAW, false, profile_scope, markers, "markers"),
    SL_FIELD(RAW, false, profile_scope, js_allocations, "jsAllocations"),
    SL_FIELD(RAW, false, profile_scope, native_allocations, "nativeAllocations"),
    SL_FIELDS_END,
};

/* Lists the tables shared by threads, then those of each thread, in p->scopes. False when out of memory. */
static bool read_scopes(struct sl_profile *p, struct sl_str shared, struct sl_str threads)
{
    struct sl_json j = sl_json(threads, p->arena, false);
    struct sl_arena_array array = {.arena = p->arena, .item = sizeof *p->scopes};
    struct profile_scope *scope = sl_arena_array_add(&array);
    struct sl_str key;
    bool good = scope && profile_object(shared, p->arena, scope_fields, scope);
    if (good && threads.data && sl_json_array(&j))
        while (sl_json_next(&j, &key) && (good = (scope = sl_arena_array_add(&array)) != NULL))
            sl_json_read_object(&j, scope_fields, scope);
    p->scope_count = array.count;
    p->scopes = sl_arena_array_finish(&array);
    return good && p->scopes && !j.failed;
}

/* ---- frames ---- */

/* Reads the member `length` of a table, its number of rows; 0 if it is missing or impossible. False when out of memory. */
static bool read_rows(struct sl_profile *p, struct sl_str table, size_t *count)
{
    struct sl_str text;
    bool negative;
    uint64_t value = 0;
    if (!profile_member(table, p->arena, "length", &text))
        return false;
    if (!text.data || !sl_json_integer(text, &negative, &value) || negative || value > p->text.size)
        value = 0; /* more rows than bytes: impossible, as each row has a cell in the text */
    *count = (size_t)value;
    return true;
}

struct frame_columns {
    struct sl_str func, address, symbol;
};

static const struct sl_field column_fields[] = {
    SL_FIELD(RAW, false, frame_columns, func, "func"),
    SL_FIELD(RAW, false, frame_columns, address, "address"),
    SL_FIELD(RAW, false, frame_columns, symbol, "nativeSymbol"),
    SL_FIELDS_END,
};

/* Reads the frame table of set->scope, and finds the library of each frame that needs a name: one with an address and without a symbol. A
 * frame refers to a function, a function to a resource, a resource to a library. Columns of different length set p->has_uneven_columns.
 * False when out of memory. */
static bool read_set(struct sl_profile *p, struct profile_set *set)
{
    const struct profile_scope *scope = set->scope;
    struct frame_columns columns = {.func = {NULL, 0}};
    struct sl_str resource, lib;
    struct profile_column funcs, symbols, libs;
    size_t count;
    if (!profile_object(scope->frames, p->arena, column_fields, &columns) ||
        !profile_member(scope->funcs, p->arena, "resource", &resource) ||
        !profile_member(scope->resources, p->arena, "lib", &lib) ||
        !profile_column_read(columns.func, p->arena, &funcs) ||
        !profile_column_read(columns.symbol, p->arena, &symbols) ||
        !profile_column_read(resource, p->arena, &set->resource) || !profile_column_read(lib, p->arena, &libs) ||
        !profile_addresses_read(columns.address, p->arena, &set->address, &count) ||
        !read_rows(p, scope->symbols, &set->symbol_count))
        return false;
    set->func = funcs.items;
    set->func_count = set->resource.count; /* all columns of the function table have a cell per function */
    if (funcs.count != count || symbols.count != count) {
        p->has_uneven_columns = true;
        return true;
    }
    set->frame_count = count;
    set->lib = symbols.items; /* reuses this column's memory: each symbol is read before its cell gets the library */
    for (size_t i = 0; i < set->frame_count; i++) {
        bool wanted = symbols.items[i] == PROFILE_NONE && set->address[i] != UINT64_MAX;
        uint32_t row = wanted ? profile_cell(&set->resource, set->func[i]) : PROFILE_NONE;
        uint32_t known = row == PROFILE_NONE ? PROFILE_NONE : profile_cell(&libs, row);
        set->lib[i] = known < p->lib_count ? known : PROFILE_NONE;
    }
    return true;
}

/* True if the scope has all tables that names change. */
static bool has_frames(const struct profile_scope *scope)
{
    return scope->frames.data && scope->funcs.data && scope->resources.data && scope->symbols.data &&
           scope->stacks.data;
}

/* Reads the frame table of each scope (the tables of one thread; the first scope: those that threads share) that has one. A thread without
 * strings or stacks of its own uses the shared ones. False when out of memory. */
static bool read_sets(struct sl_profile *p)
{
    struct sl_arena_array array = {.arena = p->arena, .item = sizeof *p->sets};
    struct profile_scope *shared = &p->scopes[0];
    bool good = true;
    for (size_t i = 0; good && i < p->scope_count; i++) {
        struct profile_scope *scope = &p->scopes[i];
        scope->pool = scope->strings.data ? scope : shared;
        if (!has_frames(scope) || !scope->pool->strings.data)
            continue;
        struct profile_set *set = sl_arena_array_add(&array);
        if (set)
            set->scope = scope;
        good = set && read_set(p, set);
    }
    p->set_count = array.count;
    p->sets = sl_arena_array_finish(&array);
    if (!good || !p->sets)
        return false;
    /* only now, as sl_arena_array_finish() has moved the items */
    for (size_t i = 0; i < p->set_count; i++)
        p->sets[i].scope->set = &p->sets[i];
    for (size_t i = 1; i < p->scope_count; i++)
        if (!p->scopes[i].stacks.data)
            p->scopes[i].set = shared->set;
    return true;
}

/* ---- addresses ---- */

SL_ORDER_BY(profile_by_address, struct sl_profile_address, lib, address)

size_t profile_address_index(const struct sl_profile *p, uint32_t lib, uint64_t address)
{
    const struct sl_profile_address wanted = {address, lib};
    const struct sl_profile_address *found =
        bsearch(&wanted, p->addresses, p->address_count, sizeof wanted, profile_by_address);
    return (size_t)(found - p->addresses);
}

/* Lists the addresses that need names in p->addresses: sorted by library and address, each once. False when out of memory. */
static bool list_addresses(struct sl_profile *p)
{
    struct sl_arena_array array = {.arena = p->arena, .item = sizeof *p->addresses};
    bool good = true;
    for (size_t s = 0; s < p->set_count; s++)
        for (size_t i = 0; good && i < p->sets[s].frame_count; i++) {
            if (p->sets[s].lib[i] == PROFILE_NONE)
                continue;
            struct sl_profile_address *item = sl_arena_array_add(&array);
            if ((good = item != NULL))
                *item = (struct sl_profile_address){p->sets[s].address[i], p->sets[s].lib[i]};
        }
    size_t count = array.count;
    p->addresses = sl_arena_array_finish(&array);
    if (!good || !p->addresses)
        return false;
    if (count)
        qsort(p->addresses, count, sizeof *p->addresses, profile_by_address);
    for (size_t i = 0; i < count; i++)
        if (!i || profile_by_address(&p->addresses[i], &p->addresses[i - 1]) != 0)
            p->addresses[p->address_count++] = p->addresses[i];
    return true;
}

/* ---- entry point ---- */

/* Reads the version and the platform. SL_UNSUPPORTED for old versions and for raw profiles: the ones that the browser itself writes, which
 * have no version. */
static enum sl_code read_meta(struct sl_profile *p, struct sl_error *error)
{
    struct profile_meta meta = {.platform = {NULL, 0}};
    bool negative;
    uint64_t number;
    if (!profile_object(p->meta, p->arena, meta_fields, &meta))
        return no_memory(error);
    p->platform = meta.platform;
    if (!meta.version.data)
        return sl_fail(error, SL_UNSUPPORTED,
                       "raw profile of the browser: open it at profiler.firefox.com and save it");
    if (!sl_json_integer(meta.version, &negative, &number) || negative)
        return no_profile(error, "its version is not a number");
    if (number < FIRST_VERSION)
        return sl_fail(error, SL_UNSUPPORTED,
                       "profile format version %llu is too old (minimum: %d); open it at profiler.firefox.com and save "
                       "it",
                       (unsigned long long)number, FIRST_VERSION);
    return SL_OK;
}

enum sl_code sl_profile_read(struct sl_str text, struct sl_arena *arena, struct sl_profile *p, struct sl_error *error)
{
    struct sl_json j = sl_json(text, arena, false);
    struct profile_body body = {.meta = {NULL, 0}};
    *p = (struct sl_profile){.text = text, .arena = arena};
    if (sl_json_peek(&j) != SL_JSON_OBJECT)
        return no_profile(error, "not a JSON object");
    sl_json_skip(&j); /* checks the syntax of the whole text, so that what follows fails only when out of memory */
    if (!sl_json_end(&j))
        return j.busy ? no_memory(error) : no_profile(error, j.problem);
    if (!profile_object(text, arena, body_fields, &body))
        return no_memory(error);
    if (!body.meta.data)
        return no_profile(error, "`meta` is missing");
    p->meta = body.meta;
    p->libs = body.libs;
    p->lib_count = body.lib_count;
    enum sl_code code = read_meta(p, error);
    if (code != SL_OK)
        return code;
    bool good = read_scopes(p, body.shared, body.threads) && read_sets(p) && list_addresses(p);
    if (!good)
        return no_memory(error);
    return p->has_uneven_columns ? no_profile(error, "the columns of its frame table differ in length") : SL_OK;
}
