/* Finds files that are not object files by an id: BCSymbolMaps and il2cpp mappings, which are inputs of a module's symcache; ProGuard
 * mappings of JVM programs and bundles of their sources. */
#include "search/impl.h"

#include "core/log.h"
#include "core/pool.h"
#include "object/bcsymbolmap.h"

/* Makes the request for a file in the arena, with a copy of the id: the request is used after the caller's id is gone. Its scope, that of
 * the cache entry, is "global" if the file's source is public, else that of the search. NULL when out of memory. */
static struct object_request *keep_request(const struct auxiliary_search *search, const struct object_id *id,
                                           const struct remote_file *file)
{
    struct object_request *request = SL_ARENA_NEW(search->arena, struct object_request);
    struct object_id *own = SL_ARENA_NEW(search->arena, struct object_id);
    if (!request || !own)
        return NULL;
    *own = *id;
    *request = (struct object_request){file, own, origin_scope(file, search->scope)};
    return request;
}

/* Gets the first usable file that one source lists. SL_OK: `*found` is its request and `*item` its cache entry. SL_NOT_FOUND: none is
 * usable; SL_BUSY; SL_CANCELLED. The first error of a file is kept in search->failure. A cached miss that is old is looked up again in
 * the background (cache_renew). */
static enum sl_code find_first(const struct auxiliary_search *search, const struct object_id *id,
                               const struct listing *listing, const struct cache_kind *kind,
                               struct object_request **found, struct cache_item **item)
{
    for (size_t i = 0; i < listing->count; i++) {
        struct cache_key key;
        struct sl_error error = {0};
        *found = keep_request(search, id, &listing->files[i]);
        if (!*found || !object_request_key(*found, search->arena, &key))
            return SL_BUSY;
        enum sl_code code = cache_get(kind, &key, *found, item, &error);
        if (code == SL_OK || code == SL_CANCELLED || code == SL_BUSY)
            return code;
        if (search->failure && search->failure->code == SL_OK) {
            *search->failure = error;
            search->failure->code = code;
        }
        cache_renew(kind, &key, *found);
    }
    return SL_NOT_FOUND;
}

enum sl_code auxiliary_find(const struct auxiliary_search *search, const struct object_id *id, enum file_type type,
                            const struct cache_kind *kind, struct object_request **found, struct cache_item **item)
{
    struct listing *listings = SL_ARENA_ARRAY(search->arena, struct listing, search->source_count + 1);
    if (!listings)
        return SL_BUSY;
    enum sl_code code =
        list_sources(search->sources, search->source_count, search->scope, id, &type, 1, search->arena, listings);
    if (code != SL_OK)
        return code;
    code = SL_NOT_FOUND;
    for (size_t s = 0; s < search->source_count && code == SL_NOT_FOUND; s++)
        code = find_first(search, id, &listings[s], kind, found, item);
    if (code != SL_OK)
        *found = NULL;
    return code;
}

struct parse { /* parses a UUID map on the pool */
    struct sl_bytes bytes;
    struct sl_debug_id original;
    enum sl_code code;
};

static void parse_uuidmap(void *arg)
{
    struct parse *parse = arg;
    parse->code = sl_uuidmap_parse(parse->bytes, &parse->original, NULL);
}

/* Finds the BCSymbolMap of a module that was compiled from bitcode, in two steps: the UUID map listed for the module's debug id contains
 * the id of the original module, and the BCSymbolMap is listed for that id. */
enum sl_code bcsymbolmap_find(const struct auxiliary_search *search, struct object_request **map)
{
    struct object_id id = {.debug_id = search->id->debug_id, .has_debug_id = true};
    struct cache_item *item;
    enum sl_code code = auxiliary_find(search, &id, FILE_UUIDMAP, &kind_auxdifs, map, &item);
    *map = NULL;
    if (code != SL_OK)
        return code;
    struct parse parse = {.bytes = item->mapping.bytes};
    code = pool_run(POOL_CONVERT, parse_uuidmap, &parse, NULL);
    cache_release(item);
    if (code == SL_OK && parse.code != SL_OK)
        code = parse.code == SL_BUSY ? SL_BUSY : SL_NOT_FOUND; /* a damaged map counts as none */
    if (code != SL_OK)
        return code;
    id.debug_id = parse.original;
    code = auxiliary_find(search, &id, FILE_BCSYMBOLMAP, &kind_auxdifs, map, &item);
    if (code == SL_OK)
        cache_release(item); /* the conversion gets the entry again by `*map` */
    else
        *map = NULL;
    return code;
}

/* Finds the module's il2cpp line mapping. Only makes sure that its cache entry exists: the conversion gets the entry again by `*lines`. */
enum sl_code il2cpp_find(const struct auxiliary_search *search, struct object_request **lines)
{
    struct cache_item *item;
    enum sl_code code = auxiliary_find(search, search->id, FILE_IL2CPP, &kind_il2cpp, lines, &item);
    if (code == SL_OK)
        cache_release(item);
    else
        *lines = NULL;
    return code;
}

/* ---- for JVM programs ---- */

struct jvm_asking {
    struct auxiliary_search search;
    struct jvm_query *question;
};

/* Finds one file. If a source listed a file that could not be used, the answer has that file's error instead of "not found". */
static void answer_question(struct jvm_asking *a)
{
    struct jvm_query *q = a->question;
    const struct object_id id = {.debug_id = q->id, .has_debug_id = true};
    struct object_request *found;
    a->search.id = &id;
    a->search.failure = &q->error;
    q->code = auxiliary_find(&a->search, &id, q->is_bundle ? FILE_SOURCEBUNDLE : FILE_PROGUARD,
                             q->is_bundle ? &kind_objects : &kind_proguard, &found, &q->item);
    if (q->code != SL_OK)
        q->item = NULL;
    else if (!q->is_bundle)
        q->mapper = q->item->loaded;
    if (q->code == SL_NOT_FOUND && q->error.code != SL_OK)
        q->code = q->error.code;
}

/* In a fiber: finds one file and logs why it was not found. */
static void lookup_file(void *arg)
{
    struct jvm_asking *a = arg;
    char id[SL_DEBUG_ID_TEXT];
    answer_question(a);
    sl_debug_id_format(&a->question->id, id);
    if (a->question->code == SL_OK || a->question->code == SL_CANCELLED)
        return;
    if (!a->question->error.message[0])
        sl_fail(&a->question->error, a->question->code, "no symbol source has the file");
    if (a->question->is_bundle)
        log_debug("kinds", "cannot find the source bundle of a JVM module", LOG_STR("id", id),
                  LOG_STR("reason", a->question->error.message));
    else
        log_info("kinds", "cannot use the ProGuard mapping of a JVM module; its names stay obfuscated",
                 LOG_STR("id", id), LOG_STR("reason", a->question->error.message));
}

bool search_find_jvm(const struct source *sources, size_t source_count, struct sl_str scope,
                     struct jvm_query *questions, size_t count, struct sl_arena *arena)
{
    struct jvm_asking *asking = SL_ARENA_ARRAY(arena, struct jvm_asking, count + 1); /* + 1, as the number may be 0 */
    void **items = SL_ARENA_ARRAY(arena, void *, count + 1);
    for (size_t i = 0; i < count; i++) {
        questions[i].code = SL_BUSY;
        if (!asking || !items)
            continue;
        asking[i] = (struct jvm_asking){
            .search = {.sources = sources, .source_count = source_count, .scope = scope, .arena = arena},
            .question = &questions[i]};
        items[i] = &asking[i];
    }
    /* out of memory: all stay SL_BUSY; second `count`: all at once */
    return !asking || !items || fiber_for_each(lookup_file, items, count, count);
}

/* Releases the files of the queries and clears their answers, so that the queries can be made again. */
void search_release_jvm(struct jvm_query *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cache_release(questions[i].item);
        questions[i].item = NULL;
        questions[i].mapper = NULL;
        questions[i].error = (struct sl_error){0};
    }
}

bool search_append_jvm_source(const struct jvm_query *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text)
{
    const struct sl_bundle *sources = bundle->item ? bundle->item->loaded : NULL;
    const struct sl_bundle_file *file = sources ? sl_bundle_by_url(sources, url) : NULL;
    return file && append_bundle_text(sources, file, work, text);
}
