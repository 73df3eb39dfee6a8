/* Invalidates cache entries when files at their sources have changed: finds the files that the request means. */
#include "cache_kinds/invalidate.h"

#include <stdlib.h>

#include "conversion/conversion.h"
#include "origin/origin.h"

/* Returns the configured source with this id; NULL if there is none. */
static const struct source *find_source(struct sl_str id)
{
    const struct config *config = current_config();
    for (size_t i = 0; i < config->source_count; i++)
        if (sl_str_equal(config->sources[i].id, id))
            return &config->sources[i];
    return NULL;
}

struct invalidation_found {
    struct cache_file *files; /* allocated by malloc */
    size_t count, capacity;
    bool failed;
};

/* Adds a file; sets `failed` when out of memory. */
static void invalidate_add(struct invalidation_found *found, const struct remote_file *file)
{
    if (found->count == found->capacity) {
        size_t capacity = found->capacity ? found->capacity * 2 : 64;
        struct cache_file *files = realloc(found->files, capacity * sizeof *files);
        if (!files) {
            found->failed = true;
            return;
        }
        found->files = files;
        found->capacity = capacity;
    }
    found->files[found->count++] = (struct cache_file){file->source->id, file->uri};
}

/* Lists the files that the source may have for the module: for every type of object, as the caller does not say whether the module is an
 * ELF, PE or other file. */
static enum sl_code list_module(const struct source *source, struct object_id *id, struct sl_arena *arena,
                                struct invalidation_found *found, struct sl_error *error)
{
    enum file_type types[FILE_TYPES];
    for (int i = 0; i < FILE_TYPES; i++)
        types[i] = (enum file_type)i;
    for (int type = OBJECT_UNKNOWN; type < OBJECT_TYPES; type++) {
        struct remote_file *files;
        size_t count;
        id->type = (enum object_type)type;
        enum sl_code code = origin_list(source, id, types, FILE_TYPES, arena, &files, &count, error);
        if (code != SL_OK)
            return code;
        for (size_t i = 0; i < count; i++)
            invalidate_add(found, &files[i]);
    }
    return found->failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Invalidates the files that the source may have for a module. `debug_file` serves as name of the debug file and of the code file, as the
 * caller may have named either. */
static enum sl_code invalidate_module(const struct invalidation *what, struct sl_arena *arena, struct sl_error *error)
{
    struct object_id id = {.debug_file = what->debug_file, .code_file = what->debug_file, .has_debug_id = true};
    struct invalidation_found found = {0};
    const struct source *source = find_source(what->source);
    if (!source)
        return sl_fail(error, SL_NOT_FOUND, "no source with the id '" SL_STR_FMT "' is configured",
                       SL_STR_ARG(what->source));
    if (!sl_debug_id_parse(what->debug_id, &id.debug_id))
        return sl_fail(error, SL_MALFORMED, "'" SL_STR_FMT "' is not a debug id", SL_STR_ARG(what->debug_id));
    const struct config *config = config_retain(current_config()); /* `source` is part of it; a reload could free it */
    enum sl_code code = list_module(source, &id, arena, &found, error);
    if (code == SL_OK)
        code = cache_invalidate(found.files, found.count, error);
    config_release(config);
    free(found.files);
    return code;
}

/* A made-up source: releasing blocked hosts also invalidates this "source", so that the invalidation records of the cache tell other
 * processes when it was last done. No real source can have this id. */
static const struct cache_file blocked_hosts = {{":hosts", 6}, {NULL, 0}};

enum sl_code release_blocked_hosts(struct sl_error *error)
{
    fetch_release_hosts();
    return cache_invalidate(&blocked_hosts, 1, error);
}

bool were_hosts_released_since(int64_t since_s)
{
    /* the made-up source that release_blocked_hosts invalidates, as a line of a cache key */
    return cache_was_invalidated(SL_STR("source_id: :hosts\n"), since_s);
}

/* True if `what` has a source alone, a source and a location, or a source and a module (debug file and debug id). */
bool invalidation_is_valid(const struct invalidation *what)
{
    bool module = what->debug_file.size || what->debug_id.size;
    bool whole_module = what->debug_file.size && what->debug_id.size;
    return what->source.size && module == whole_module && !(module && what->location.size);
}

enum sl_code invalidate_entries(const struct invalidation *what, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct cache_file file = {what->source, what->location}; /* an empty location: all files of the source */
    origin_clear_caches(); /* or list_module would use lists of files from before the change */
    enum sl_code code =
        what->debug_id.size ? invalidate_module(what, &arena, error) : cache_invalidate(&file, 1, error);
    sl_arena_free(&arena);
    return code;
}
