/* Choosing the best file for a module among everything the sources list. */
#include "kinds/auxiliary.h"

#include <stdio.h>

#include "core/log.h"

#define TYPES(...)                                                                                                     \
    (const enum file_type[]){__VA_ARGS__}, sizeof((enum file_type[]){__VA_ARGS__}) / sizeof(enum file_type)

/* File types that are asked for, by the module's type and the purpose. The debug rows look odd on purpose: applications
 * ship, for example, ELF debug files for PE programs. */
static const struct wanted {
    enum object_type type;
    const enum file_type *types;
    size_t count;
} debug_types[] = {
    {OBJECT_MACHO, TYPES(FILE_MACH_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    {OBJECT_PE, TYPES(FILE_PE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    {OBJECT_ELF, TYPES(FILE_ELF_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    {OBJECT_WASM, TYPES(FILE_WASM_CODE, FILE_WASM_DEBUG)},
    {OBJECT_PE_DOTNET, TYPES(FILE_PORTABLEPDB, FILE_PDB)},
    {OBJECT_UNKNOWN, TYPES(FILE_PDB, FILE_MACH_DEBUG, FILE_ELF_DEBUG, FILE_PE, FILE_MACH_CODE, FILE_ELF_CODE,
                           FILE_WASM_CODE, FILE_WASM_DEBUG, FILE_BREAKPAD, FILE_SOURCEBUNDLE, FILE_UUIDMAP,
                           FILE_BCSYMBOLMAP, FILE_PORTABLEPDB, FILE_PROGUARD)},
};
static const struct wanted source_types = {OBJECT_UNKNOWN,
                                           TYPES(FILE_SOURCEBUNDLE, FILE_PORTABLEPDB, FILE_ELF_DEBUG, FILE_WASM_DEBUG)};

static const struct wanted pe_types = {OBJECT_PE_DOTNET, TYPES(FILE_PE)};

enum { GRADE_BEST = 0, GRADE_SYMBOLS = 1, GRADE_ERROR = 3, GRADE_NONE = 4 };

struct probe { /* one listed file */
    struct object_request request;
    struct cache_key key;
    enum sl_code code;
    struct sl_error error;
    struct sl_features features;
    bool skipped; /* a pointer that is of no use */
    struct candidate *candidate;
};

struct search {
    const struct object_id *id;
    struct sl_str scope;
    enum purpose purpose;
    const struct wanted *wanted; /* NULL: as the module's type and the purpose say */
    struct sl_arena *arena;
    struct probe *probes;
    size_t count, capacity;
    struct listing *listings; /* of each source */
    size_t source_count;
    struct candidate_list candidates; /* capacity reserved before the probes point into it */
    struct sl_error failure;          /* code SL_OK = none */
};

static const struct wanted *wanted_types(const struct search *search)
{
    size_t rows = sizeof debug_types / sizeof *debug_types;
    if (search->wanted)
        return search->wanted;
    if (search->purpose == PURPOSE_SOURCE)
        return &source_types;
    for (size_t i = 0; i < rows; i++)
        if (debug_types[i].type == search->id->type)
            return &debug_types[i];
    return &debug_types[rows - 1];
}

/* ---- listing ---- */

static bool fail(struct search *search, enum sl_code code)
{
    sl_fail(&search->failure, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    return false;
}

static bool grow(struct search *search, size_t more)
{
    if (search->capacity - search->count >= more)
        return true;
    size_t capacity = search->capacity * 2 + more;
    struct probe *probes = SL_ARENA_ARRAY(search->arena, struct probe, capacity);
    if (!probes)
        return fail(search, SL_INTERNAL);
    if (search->count)
        memcpy(probes, search->probes, search->count * sizeof *probes);
    search->probes = probes;
    search->capacity = capacity;
    return true;
}

static bool add_files(struct search *search, const struct remote_file *files, size_t count)
{
    if (!grow(search, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct probe *probe = &search->probes[search->count++];
        probe->request = (struct object_request){&files[i], search->id, origin_scope(&files[i], search->scope)};
        if (!object_request_key(&probe->request, search->arena, &probe->key))
            return fail(search, SL_INTERNAL);
    }
    return true;
}

static bool list(struct search *search, const struct source *sources, size_t source_count)
{
    const struct wanted *wanted = wanted_types(search);
    search->listings = SL_ARENA_ARRAY(search->arena, struct listing, source_count ? source_count : 1);
    if (!search->listings)
        return fail(search, SL_INTERNAL);
    search->source_count = source_count;
    enum sl_code code = list_sources(sources, source_count, search->scope, search->id, wanted->types, wanted->count,
                                     search->arena, search->listings);
    if (code != SL_OK)
        return fail(search, code);
    for (size_t i = 0; i < source_count; i++)
        if (!add_files(search, search->listings[i].files, search->listings[i].count))
            return false;
    return true;
}

/* ---- fetching what is known about each ---- */

static void take(struct probe *probe, enum sl_code code, struct cache_item *item)
{
    probe->code = probe->error.code = code;
    if (code != SL_OK)
        return;
    const struct object_meta *meta = item->loaded;
    probe->features = meta->features;
    if (probe->request.id->type == OBJECT_PE_DOTNET) {
        probe->features.has_debug_info |= meta->embedded.has_debug_info;
        probe->features.has_sources |= meta->embedded.has_sources;
    }
    cache_release(item);
}

static void ask(void *arg)
{
    struct probe *probe = arg;
    struct cache_item *item;
    enum sl_code code = cache_get(&kind_object_meta, &probe->key, &probe->request, &item, &probe->error);
    take(probe, code, item);
}

static bool same_directory(struct sl_str a, struct sl_str b)
{
    const char *end = memrchr(a.data, '/', a.size);
    size_t size = end ? (size_t)(end - a.data) + 1 : 0;
    return b.size > size && memcmp(a.data, b.data, size) == 0 && !memchr(b.data + size, '/', b.size - size);
}

/* A pointer is followed when the files it stands beside are not there. */
static bool of_use(const struct search *search, const struct probe *pointer)
{
    const struct remote_file *file = pointer->request.file;
    for (size_t i = 0; i < search->count; i++) {
        const struct remote_file *other = search->probes[i].request.file;
        if (!other->pointer && other->source == file->source && same_directory(file->path, other->path) &&
            search->probes[i].code != SL_NOT_FOUND)
            return false;
    }
    return true;
}

static bool fetch_some(struct search *search, bool pointers)
{
    void **pending = SL_ARENA_ARRAY(search->arena, void *, search->count ? search->count : 1);
    size_t count = 0;
    if (!pending)
        return fail(search, SL_INTERNAL);
    for (size_t i = 0; i < search->count; i++) {
        struct probe *probe = &search->probes[i];
        struct cache_item *item = NULL;
        enum sl_code code;
        if (probe->request.file->pointer != pointers || (probe->skipped = pointers && !of_use(search, probe)))
            continue;
        if (cache_peek(&kind_object_meta, &probe->key, &code, &item, &probe->error))
            take(probe, code, item);
        else
            pending[count++] = probe;
    }
    return kinds_for_each(ask, pending, count) || fail(search, SL_CANCELLED);
}

static bool has_pointers(const struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->probes[i].request.file->pointer)
            return true;
    return false;
}

static bool fetch_features(struct search *search)
{
    return fetch_some(search, false) && (!has_pointers(search) || fetch_some(search, true));
}

/* ---- choosing ---- */

static unsigned grade(const struct probe *probe, enum purpose purpose)
{
    const struct sl_features *f = &probe->features;
    if (probe->skipped)
        return GRADE_NONE;
    if (probe->code != SL_OK)
        return GRADE_ERROR;
    switch (purpose) {
    case PURPOSE_UNWIND: return f->has_unwind_info ? GRADE_BEST : GRADE_NONE;
    case PURPOSE_SOURCE: return f->has_sources ? GRADE_BEST : GRADE_NONE;
    case PURPOSE_FILE: return GRADE_BEST;
    case PURPOSE_DEBUG: break;
    }
    return f->has_debug_info ? GRADE_BEST : f->has_symbols ? GRADE_SYMBOLS : GRADE_NONE;
}

static struct probe *choose(const struct search *search)
{
    struct probe *best = NULL;
    unsigned best_grade = GRADE_NONE;
    for (size_t i = 0; i < search->count; i++) {
        unsigned g = grade(&search->probes[i], search->purpose);
        if (g < best_grade) {
            best = &search->probes[i];
            best_grade = g;
        }
    }
    return best;
}

static struct sl_str in_arena(struct sl_arena *arena, struct sl_buf *text)
{
    struct sl_str kept = sl_buf_keep(text, arena);
    return kept.data ? kept : SL_STR("");
}

static struct sl_str error_text(struct sl_arena *arena, const struct sl_error *error)
{
    struct sl_buf text = {0};
    cache_error_text(error, &text);
    return in_arena(arena, &text);
}

static void report_download(struct sl_arena *arena, const struct probe *probe, struct candidate *candidate)
{
    *candidate = (struct candidate){.source = probe->request.file->source->id,
                                    .location = probe->request.file->uri,
                                    .download = probe->code,
                                    .features = probe->features};
    if (probe->code == SL_PERMISSION_DENIED) {
        char *reason = sl_arena_strndup(arena, probe->error.message, strlen(probe->error.message));
        candidate->download_details = sl_str(reason ? reason : "");
    } else if (probe->code != SL_OK && probe->code != SL_NOT_FOUND && probe->code != SL_MALFORMED) {
        candidate->download_details = error_text(arena, &probe->error);
    }
}

/* The candidates: first the rows of the sources that have nothing. */
static bool report_downloads(struct search *search)
{
    size_t most = search->source_count + search->count, count = 0;
    struct candidate *items = SL_ARENA_ARRAY(search->arena, struct candidate, most ? most : 1);
    if (!items)
        return fail(search, SL_INTERNAL);
    for (size_t i = 0; i < search->source_count; i++)
        if (search->listings[i].count == 0)
            items[count++] = (struct candidate){.source = search->listings[i].source->id,
                                                .location = SL_STR("No object files listed on this source"),
                                                .download = SL_NOT_FOUND};
    for (size_t i = 0; i < search->count; i++) {
        struct probe *probe = &search->probes[i];
        if (probe->skipped)
            continue;
        probe->candidate = &items[count++];
        report_download(search->arena, probe, probe->candidate);
    }
    search->candidates = (struct candidate_list){.items = items, .count = count, .capacity = most};
    return true;
}

/* The answer keeps to the first error in order; an operator is better served by the one that says most. */
static void log_errors(const struct search *search)
{
    static const enum sl_code telling[] = {SL_MALFORMED, SL_PERMISSION_DENIED, SL_TIMEOUT, SL_DOWNLOAD_ERROR};
    if (!log_enabled(LOG_DEBUG, "find"))
        return;
    for (size_t t = 0; t < sizeof telling / sizeof *telling; t++)
        for (size_t i = 0; i < search->count; i++)
            if (search->probes[i].code == telling[t]) {
                log_debug("find", "no usable object", LOG_SLSTR("location", search->probes[i].request.file->location),
                          LOG_STR("status", sl_code_name(telling[t])), LOG_ERR(&search->probes[i].error));
                return;
            }
}

/* A file that was missing and would have been chosen may have turned up since. */
static void renew_better(const struct search *search, const struct probe *chosen)
{
    bool best = grade(chosen, search->purpose) == GRADE_BEST;
    for (struct probe *probe = search->probes; probe < search->probes + search->count; probe++)
        if (probe->code == SL_NOT_FOUND && (!best || probe < chosen))
            cache_renew(&kind_object_meta, &probe->key, &probe->request);
}

/* Lists, fetches and chooses. NULL with `failure` set, or without when there is nothing at all. */
static struct probe *find(struct search *search, const struct source *sources, size_t source_count)
{
    if (!list(search, sources, source_count) || !fetch_features(search) || !report_downloads(search))
        return NULL;
    struct probe *chosen = choose(search);
    if (!chosen || chosen->code != SL_OK)
        log_errors(search);
    else
        renew_better(search, chosen);
    return chosen;
}

/* What the chosen candidate says of its use: a file that could not even be fetched says nothing. */
static void report_chosen_error(struct candidate *candidate, enum sl_code code)
{
    if (code == SL_NOT_FOUND || code == SL_PERMISSION_DENIED || code == SL_TIMEOUT || code == SL_DOWNLOAD_ERROR)
        return;
    candidate->debug.set = true;
    candidate->debug.code = SL_MALFORMED;
}

static void report_conversion(struct search *search, struct candidate *candidate, const struct symbol_lookup *result)
{
    const struct sl_error *error = &result->error;
    candidate->debug.set = true;
    candidate->debug.code = error->code;
    if (result->symcache && sl_symcache_is_partial(result->symcache))
        candidate->debug.details = SL_STR("Some of the debug information could not be read");
    else if (error->code == SL_NOT_FOUND)
        candidate->debug.details = SL_STR("Object file no longer available");
    else if (error->code != SL_OK && error->code != SL_MALFORMED)
        candidate->debug.details = error_text(search->arena, error);
}

/* What changes names and lines is a part of the symcache, so it is looked for first. */
static enum sl_code get_symcache(struct search *search, const struct source *sources, size_t source_count,
                                 const struct probe *chosen, struct cache_item **item, struct sl_error *error)
{
    struct auxiliary_search auxiliary = {sources, source_count, search->scope, search->id, search->arena};
    struct symcache_request request = {.object = chosen->request, .scope = chosen->request.scope};
    struct object_request *map = NULL, *lines = NULL;
    struct cache_key key;
    if (search->id->has_debug_id &&
        (bcsymbolmap_find(&auxiliary, &map) == SL_CANCELLED || il2cpp_find(&auxiliary, &lines) == SL_CANCELLED))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    request.map = map;
    request.lines = lines;
    if ((map && !sl_str_equal(map->scope, request.scope)) || (lines && !sl_str_equal(lines->scope, request.scope)))
        request.scope = search->scope;
    if (!symcache_request_key(&request, search->arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(&kind_symcaches, &key, &request, item, error);
}

static void use(struct search *search, const struct source *sources, size_t source_count, struct probe *chosen,
                struct symbol_lookup *result)
{
    if (chosen->code != SL_OK) {
        result->code = chosen->code;
        result->error = chosen->error;
        report_chosen_error(chosen->candidate, chosen->code);
        return;
    }
    result->features = chosen->features;
    bool dotnet = search->id->type == OBJECT_PE_DOTNET;
    result->code = dotnet ? cache_get(&kind_ppdb_caches, &chosen->key, &chosen->request, &result->item, &result->error)
                          : get_symcache(search, sources, source_count, chosen, &result->item, &result->error);
    result->error.code = result->code;
    if (result->code == SL_OK && dotnet) {
        result->ppdb = result->item->loaded;
    } else if (result->code == SL_OK) {
        result->symcache = result->item->loaded;
        result->arch = result->symcache->arch;
    }
    if (result->code != SL_CANCELLED)
        report_conversion(search, chosen->candidate, result);
}

/* A .NET module without a Portable PDB of its own may have one inside of its PE file: a search of its own, since it adds
 * requests and candidates. NULL when it is not made or finds none. */
static struct probe *find_in_pe(const struct search *first, const struct source *sources, size_t source_count,
                                struct search *search)
{
    *search = (struct search){
        .id = first->id, .scope = first->scope, .purpose = first->purpose, .wanted = &pe_types, .arena = first->arena};
    if (!kinds_config()->dotnet_ask_pe || first->id->type != OBJECT_PE_DOTNET || first->failure.code != SL_OK)
        return NULL;
    struct probe *found = find(search, sources, source_count);
    return found && grade(found, search->purpose) == GRADE_BEST ? found : NULL;
}

void kinds_find_symcache(const struct source *sources, size_t source_count, struct sl_str scope,
                         const struct object_id *id, struct sl_arena *arena, struct symbol_lookup *result)
{
    struct search search = {.id = id, .scope = scope, .purpose = PURPOSE_DEBUG, .arena = arena};
    *result = (struct symbol_lookup){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
    struct probe *chosen = find(&search, sources, source_count);
    if (search.failure.code != SL_OK) {
        result->code = search.failure.code;
        result->error = search.failure;
        return;
    }
    struct search inside;
    bool usable = chosen && chosen->code == SL_OK;
    struct probe *embedded = usable ? NULL : find_in_pe(&search, sources, source_count, &inside);
    if (chosen && !embedded)
        use(&search, sources, source_count, chosen, result);
    else if (chosen)
        report_chosen_error(chosen->candidate, chosen->code);
    candidates_merge(arena, &result->candidates, &search.candidates);
    if (usable)
        return;
    if (inside.failure.code != SL_OK) {
        result->code = inside.failure.code;
        result->error = inside.failure;
        return;
    }
    if (embedded)
        use(&inside, sources, source_count, embedded, result);
    candidates_merge(arena, &result->candidates, &inside.candidates);
}

/* ---- sources ---- */

static bool is_bundle(const struct probe *probe)
{
    return probe->request.file->type == FILE_SOURCEBUNDLE;
}

/* Opens all objects of one sort that have sources. */
static void open_sources(struct search *search, bool bundles, struct source_lookup *result)
{
    for (size_t i = 0; i < search->count && result->code != SL_CANCELLED; i++) {
        struct probe *probe = &search->probes[i];
        if (is_bundle(probe) != bundles || grade(probe, PURPOSE_SOURCE) != GRADE_BEST)
            continue;
        enum sl_code code = source_open(&probe->key, &probe->request, &result->objects[result->count]);
        result->count += code == SL_OK;
        if (code == SL_OK || code == SL_CANCELLED || !result->count)
            result->code = code;
    }
}

void kinds_find_source(const struct source *sources, size_t source_count, struct sl_str scope,
                       const struct object_id *id, struct sl_arena *arena, struct source_lookup *result)
{
    struct search search = {.id = id, .scope = scope, .purpose = PURPOSE_SOURCE, .arena = arena};
    *result = (struct source_lookup){.code = SL_NOT_FOUND};
    struct probe *chosen = find(&search, sources, source_count);
    if (search.failure.code != SL_OK) {
        result->code = search.failure.code;
        return;
    }
    result->code = chosen && chosen->code != SL_OK ? chosen->code : SL_NOT_FOUND;
    result->objects = SL_ARENA_ARRAY(arena, struct source_object, search.count + 1);
    if (result->objects) {
        open_sources(&search, true, result);
        open_sources(&search, false, result);
    }
    candidates_merge(arena, &result->candidates, &search.candidates);
    if (result->count || result->code == SL_CANCELLED)
        return;
    struct search inside;
    find_in_pe(&search, sources, source_count, &inside);
    if (inside.failure.code != SL_OK) {
        result->code = inside.failure.code;
        return;
    }
    result->objects = SL_ARENA_ARRAY(arena, struct source_object, inside.count + 1);
    if (result->objects)
        open_sources(&inside, false, result);
    candidates_merge(arena, &result->candidates, &inside.candidates);
}

static void make_etag(const struct cache_key *key, const struct cache_item *item, char out[64])
{
    char path[128];
    size_t size = 0;
    cache_relative_path(key->text, kind_objects.version, false, path);
    out[size++] = '"';
    for (const char *at = strchr(path, '/'); at && *at && size <= 16; at++)
        if (*at != '/')
            out[size++] = *at;
    snprintf(out + size, 64 - size, "-%zx-%llx\"", item->mapping.bytes.size, (unsigned long long)item->time_created);
}

static void get_chosen(struct search *search, const struct source *sources, size_t source_count,
                       struct file_lookup *result)
{
    *result = (struct file_lookup){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
    struct probe *chosen = find(search, sources, source_count);
    if (search->failure.code != SL_OK) {
        result->error = search->failure;
        result->code = search->failure.code;
        return;
    }
    if (!chosen)
        return;
    result->is_public = chosen->request.file->source->is_public;
    result->error = chosen->error;
    result->code = chosen->code;
    if (result->code == SL_OK)
        result->code = cache_get(&kind_objects, &chosen->key, &chosen->request, &result->item, &result->error);
    if (result->code == SL_OK)
        make_etag(&chosen->key, result->item, result->etag);
}

void kinds_find_file(const struct source *sources, size_t source_count, struct sl_str scope, const struct object_id *id,
                     const enum file_type *types, size_t type_count, struct sl_arena *arena, struct file_lookup *result)
{
    const struct wanted wanted = {id->type, types, type_count};
    struct search search = {.id = id, .scope = scope, .purpose = PURPOSE_FILE, .wanted = &wanted, .arena = arena};
    get_chosen(&search, sources, source_count, result);
}

void kinds_find_object(const struct source *sources, size_t source_count, struct sl_str scope,
                       const struct object_id *id, enum purpose purpose, struct sl_arena *arena,
                       struct file_lookup *result)
{
    struct search search = {.id = id, .scope = scope, .purpose = purpose, .arena = arena};
    get_chosen(&search, sources, source_count, result);
}
