/* The kind `auxdifs`: UUID maps and BCSymbolMaps; and the way from a module to its map. */
#include "kinds/auxiliary.h"

#include "core/log.h"
#include "core/pool.h"
#include "object/bcsymbolmap.h"

static enum sl_code check_uuidmap(struct conversion *conversion, struct sl_bytes file, void *arg,
                                  struct sl_error *error)
{
    (void)arg;
    (void)conversion; /* of a megabyte at most */
    struct sl_debug_id id;
    return sl_uuidmap_parse(file, &id, error);
}

static enum sl_code check_bcsymbolmap(struct conversion *conversion, struct sl_bytes file, void *arg,
                                      struct sl_error *error)
{
    (void)arg;
    struct sl_bcsymbolmap *map;
    enum sl_code code = sl_bcsymbolmap_open(file, &conversion->budget, &map, error);
    sl_bcsymbolmap_close(map);
    return code;
}

enum sl_code auxiliary_fetch(const struct object_request *request, conversion_checker *check, int fd,
                             struct sl_error *error)
{
    enum sl_code code = origin_fetch(request->file, fd, error);
    if (code != SL_OK)
        return code;
    code = conversion_check(fd, request->file->location, NULL, check, NULL, error);
    if (code != SL_OK)
        log_debug("kinds", "unusable file", LOG_STR("type", file_type_name(request->file->type)),
                  LOG_SLSTR("location", request->file->location), LOG_ERR(error));
    return code;
}

static enum sl_code bcsymbolmaps_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    bool uuids = request->file->type == FILE_UUIDMAP;
    return auxiliary_fetch(request, uuids ? check_uuidmap : check_bcsymbolmap, tmp->fd, error);
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_auxdifs = {
    .name = "auxdifs",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = bcsymbolmaps_compute,
    .place = object_request_place,
    .retain = object_request_retain,
};

/* ---- finding ---- */

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

static enum sl_code first_of(const struct auxiliary_search *search, const struct object_id *id,
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
        code = first_of(search, id, &listings[s], kind, found, item);
    if (code != SL_OK)
        *found = NULL;
    return code;
}

struct parse {
    struct sl_bytes bytes;
    struct sl_debug_id original;
    enum sl_code code;
};

static void parse_uuidmap(void *arg)
{
    struct parse *parse = arg;
    parse->code = sl_uuidmap_parse(parse->bytes, &parse->original, NULL);
}

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
        code = parse.code == SL_BUSY ? SL_BUSY : SL_NOT_FOUND;
    if (code != SL_OK)
        return code;
    id.debug_id = parse.original;
    code = auxiliary_find(search, &id, FILE_BCSYMBOLMAP, &kind_auxdifs, map, &item);
    if (code == SL_OK)
        cache_release(item);
    else
        *map = NULL;
    return code;
}
