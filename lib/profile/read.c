/* Reading profiles: where their tables are, and which addresses want a name. */
#include "profile/impl.h"

#include <stdlib.h>

enum { FIRST_VERSION = 41 }; /* libraries are of the whole profile since then, addresses inside of calls */

static enum sl_code no_memory(struct sl_error *error)
{
    return sl_fail(error, SL_BUSY, "out of memory");
}

static enum sl_code no_profile(struct sl_error *error, const char *problem)
{
    return sl_fail(error, SL_MALFORMED, "no profile of the Firefox Profiler: %s", problem);
}

/* ---- members ---- */

static bool read_libs(struct sl_profile *p, struct sl_str text)
{
    static const struct sl_str names[] = {SL_STR("name"),      SL_STR("path"),       SL_STR("debugName"),
                                          SL_STR("debugPath"), SL_STR("breakpadId"), SL_STR("codeId"),
                                          SL_STR("arch")};
    struct sl_json j = sl_json(text, p->arena, false);
    struct sl_arena_array array = {.arena = p->arena, .item = sizeof *p->libs};
    struct sl_str key;
    if (!text.data || !sl_json_array(&j))
        return true;
    bool good = true;
    while (good && sl_json_next(&j, &key)) {
        struct sl_str texts[7] = {{NULL, 0}};
        struct sl_profile_lib *lib = sl_arena_array_add(&array);
        if (!(good = lib != NULL))
            break;
        sl_json_texts(&j, names, texts, 7);
        *lib = (struct sl_profile_lib){texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], texts[6]};
    }
    p->lib_count = array.count;
    p->libs = sl_arena_array_keep(&array);
    return good && p->libs && !j.failed;
}

static bool read_scope(struct sl_profile *p, struct sl_str text, struct profile_scope *scope)
{
    const struct profile_member members[] = {
        {"stringArray", &scope->strings},
        {"stackTable", &scope->stacks},
        {"frameTable", &scope->frames},
        {"funcTable", &scope->funcs},
        {"resourceTable", &scope->resources},
        {"nativeSymbols", &scope->symbols},
        {"sources", &scope->sources},
        {"samples", &scope->samples},
        {"markers", &scope->markers},
        {"jsAllocations", &scope->js_allocations},
        {"nativeAllocations", &scope->native_allocations},
    };
    return profile_members(text, p->arena, members, sizeof members / sizeof *members);
}

/* What is shared, then the threads. */
static bool read_scopes(struct sl_profile *p, struct sl_str shared, struct sl_str threads)
{
    struct sl_json j = sl_json(threads, p->arena, false);
    struct sl_arena_array array = {.arena = p->arena, .item = sizeof *p->scopes};
    struct profile_scope *scope = sl_arena_array_add(&array);
    struct sl_str key, text;
    bool good = scope && read_scope(p, shared, scope);
    if (good && threads.data && sl_json_array(&j))
        while (good && sl_json_next(&j, &key))
            good = sl_json_value(&j, &text) && (scope = sl_arena_array_add(&array)) && read_scope(p, text, scope);
    p->scope_count = array.count;
    p->scopes = sl_arena_array_keep(&array);
    return good && p->scopes && !j.failed;
}

/* ---- frames ---- */

static bool read_rows(struct sl_profile *p, struct sl_str table, size_t *count)
{
    struct sl_str text = {NULL, 0};
    const struct profile_member members[] = {{"length", &text}};
    bool negative;
    uint64_t value = 0;
    if (!profile_members(table, p->arena, members, 1))
        return false;
    if (!text.data || !sl_json_integer(text, &negative, &value) || negative || value > p->text.size)
        value = 0; /* a row has a cell */
    *count = (size_t)value;
    return true;
}

static bool read_set(struct sl_profile *p, struct profile_set *set)
{
    const struct profile_scope *scope = set->scope;
    struct sl_str func = {NULL, 0}, address = func, symbol = func, resource = func, lib = func;
    const struct profile_member of_frames[] = {{"func", &func}, {"address", &address}, {"nativeSymbol", &symbol}};
    const struct profile_member of_funcs[] = {{"resource", &resource}}, of_resources[] = {{"lib", &lib}};
    struct profile_column funcs, symbols, libs;
    size_t count;
    if (!profile_members(scope->frames, p->arena, of_frames, 3) ||
        !profile_members(scope->funcs, p->arena, of_funcs, 1) ||
        !profile_members(scope->resources, p->arena, of_resources, 1) || !profile_column_read(func, p->arena, &funcs) ||
        !profile_column_read(symbol, p->arena, &symbols) || !profile_column_read(resource, p->arena, &set->resource) ||
        !profile_column_read(lib, p->arena, &libs) ||
        !profile_addresses_read(address, p->arena, &set->address, &count) ||
        !read_rows(p, scope->symbols, &set->symbol_count))
        return false;
    set->func = funcs.items;
    set->func_count = set->resource.count;
    if (funcs.count != count || symbols.count != count) {
        p->uneven = true;
        return true;
    }
    set->frame_count = count;
    set->lib = symbols.items; /* in its place: what has a symbol wants no name */
    for (size_t i = 0; i < set->frame_count; i++) {
        bool wanted = symbols.items[i] == PROFILE_NONE && set->address[i] != UINT64_MAX;
        uint32_t row = wanted ? profile_cell(&set->resource, set->func[i]) : PROFILE_NONE;
        uint32_t known = row == PROFILE_NONE ? PROFILE_NONE : profile_cell(&libs, row);
        set->lib[i] = known < p->lib_count ? known : PROFILE_NONE;
    }
    return true;
}

static bool has_frames(const struct profile_scope *scope)
{
    return scope->frames.data && scope->funcs.data && scope->resources.data && scope->symbols.data &&
           scope->stacks.data;
}

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
    p->sets = sl_arena_array_keep(&array);
    if (!good || !p->sets)
        return false;
    for (size_t i = 0; i < p->set_count; i++)
        p->sets[i].scope->set = &p->sets[i];
    for (size_t i = 1; i < p->scope_count; i++)
        if (!p->scopes[i].stacks.data)
            p->scopes[i].set = shared->set;
    return true;
}

/* ---- addresses ---- */

static int profile_by_address(const void *a, const void *b)
{
    const struct sl_profile_address *x = a, *y = b;
    if (x->lib != y->lib)
        return x->lib < y->lib ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

size_t profile_address_index(const struct sl_profile *p, uint32_t lib, uint64_t address)
{
    const struct sl_profile_address wanted = {address, lib};
    const struct sl_profile_address *found =
        bsearch(&wanted, p->addresses, p->address_count, sizeof wanted, profile_by_address);
    return (size_t)(found - p->addresses);
}

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
    p->addresses = sl_arena_array_keep(&array);
    if (!good || !p->addresses)
        return false;
    if (count)
        qsort(p->addresses, count, sizeof *p->addresses, profile_by_address);
    for (size_t i = 0; i < count; i++)
        if (!i || profile_by_address(&p->addresses[i], &p->addresses[i - 1]) != 0)
            p->addresses[p->address_count++] = p->addresses[i];
    return true;
}

/* ---- the whole ---- */

static void read_platform(struct sl_profile *p)
{
    static const struct sl_str names[] = {SL_STR("platform")};
    struct sl_json j = sl_json(p->meta, p->arena, false);
    sl_json_texts(&j, names, &p->platform, 1);
}

static enum sl_code check_version(struct sl_profile *p, struct sl_error *error)
{
    struct sl_str version = {NULL, 0};
    const struct profile_member members[] = {{"preprocessedProfileVersion", &version}};
    bool negative;
    uint64_t number;
    if (!profile_members(p->meta, p->arena, members, 1))
        return no_memory(error);
    if (!version.data)
        return sl_fail(
            error, SL_UNSUPPORTED,
            "the profile is as the profiler of the browser wrote it: open it at profiler.firefox.com and save it");
    if (!sl_json_integer(version, &negative, &number) || negative)
        return no_profile(error, "its version is no number");
    if (number < FIRST_VERSION)
        return sl_fail(error, SL_UNSUPPORTED,
                       "the profile has version %llu of the format, %d is the first that is known: open it at "
                       "profiler.firefox.com and save it",
                       (unsigned long long)number, FIRST_VERSION);
    return SL_OK;
}

enum sl_code sl_profile_read(struct sl_str text, struct sl_arena *arena, struct sl_profile *p, struct sl_error *error)
{
    struct sl_json j = sl_json(text, arena, false);
    struct sl_str libs = {NULL, 0}, shared = libs, threads = libs;
    const struct profile_member members[] = {
        {"meta", &p->meta}, {"libs", &libs}, {"shared", &shared}, {"threads", &threads}};
    *p = (struct sl_profile){.text = text, .arena = arena};
    if (sl_json_peek(&j) != SL_JSON_OBJECT)
        return no_profile(error, "it is no JSON object");
    sl_json_skip(&j);
    if (!sl_json_end(&j))
        return j.busy ? no_memory(error) : no_profile(error, j.problem);
    if (!profile_members(text, arena, members, 4))
        return no_memory(error);
    if (!p->meta.data)
        return no_profile(error, "it has no `meta`");
    read_platform(p);
    enum sl_code code = check_version(p, error);
    if (code != SL_OK)
        return code;
    bool good = read_libs(p, libs) && read_scopes(p, shared, threads) && read_sets(p) && list_addresses(p);
    if (!good)
        return no_memory(error);
    return p->uneven ? no_profile(error, "columns of its frames differ in length") : SL_OK;
}
