#include "cache_kinds/objects.h"

enum { LOCATION_PARTS = 8 };

/* Writes the texts of a cache key that identify a file: source, location and, where the location alone does not, its checksum. That is so
 * for servers that require a checksum, and for files of an index (source.index), whose checksum is their version. Returns the number of
 * texts, LOCATION_PARTS; unused ones are empty. */
static size_t add_location(const struct object_request *request, struct sl_str parts[LOCATION_PARTS])
{
    const struct remote_file *file = request->file;
    bool checksum = (file->source->requires_checksum || file->source->index) && file->checksum.size;
    const struct sl_str location[LOCATION_PARTS] = {
        SL_STR("source: "),
        file->source->id,
        SL_STR("\nlocation: "),
        file->uri,
        SL_STR("\n"),
        checksum ? SL_STR("checksum: ") : SL_STR(""),
        checksum ? file->checksum : SL_STR(""),
        checksum ? SL_STR("\n") : SL_STR(""),
    };
    memcpy(parts, location, sizeof location);
    return LOCATION_PARTS;
}

/* Concatenates the parts in the arena. False when out of memory. */
static bool kinds_request_join(struct sl_arena *arena, const struct sl_str *parts, size_t count, struct sl_str *out)
{
    size_t size = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].size;
    char *text = sl_arena_alloc(arena, size, 1);
    if (!text)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size)
            memcpy(text + at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    *out = (struct sl_str){text, size};
    return true;
}

/* Makes the key of an object. It equals the key of a symcache made from the object alone: the cache tells them apart by their kind. */
bool object_request_key(const struct object_request *request, struct sl_arena *arena, struct cache_key *key)
{
    struct symcache_request plain = {.object = *request, .scope = request->scope};
    return symcache_request_key(&plain, arena, key);
}

bool symcache_request_key(const struct symcache_request *request, struct sl_arena *arena, struct cache_key *key)
{
    /* room for: the scope (3 texts), the object, a BCSymbolMap and a line mapping with a title each, and two options */
    struct sl_str parts[3 + LOCATION_PARTS + 2 * (1 + LOCATION_PARTS) + 2], scope = request->scope;
    size_t count = 0;
    parts[count++] = SL_STR("scope: ");
    parts[count++] = scope.size ? scope : SL_STR("global");
    parts[count++] = SL_STR("\n\n");
    count += add_location(&request->object, &parts[count]);
    if (request->map) {
        parts[count++] = SL_STR("\nbcsymbolmap:\n");
        count += add_location(request->map, &parts[count]);
    }
    if (request->lines) {
        parts[count++] = SL_STR("\nil2cpp:\n");
        count += add_location(request->lines, &parts[count]);
    }
    if (request->variables)
        parts[count++] = SL_STR("\nvariables: true\n");
    if (request->columns)
        parts[count++] = SL_STR("\ncolumns: true\n");
    *key = (struct cache_key){.scope = scope};
    return kinds_request_join(arena, parts, count, &key->text);
}

bool object_request_base(const void *context, struct sl_arena *arena, const struct cache_kind **kind,
                         struct cache_key *key, const void **base)
{
    *kind = &kind_objects;
    *base = context;
    return object_request_key(context, arena, key);
}

bool symcache_request_base(const void *context, struct sl_arena *arena, const struct cache_kind **kind,
                           struct cache_key *key, const void **base)
{
    const struct symcache_request *request = context;
    return object_request_base(&request->object, arena, kind, key, base);
}

/* Returns the name of the queue for work that downloads the file: the URL or bucket of its source, so that downloads from one server share
 * a queue. Data NULL for files in a local directory, which need none. */
struct sl_str object_request_queue_name(const void *context)
{
    const struct source *source = ((const struct object_request *)context)->file->source;
    return source->type == SOURCE_FILESYSTEM       ? (struct sl_str){NULL, 0}
           : source->url.size                      ? source->url
           : bucket_is_configured(&source->bucket) ? bucket_name(&source->bucket)
                                                   : source->id;
}

struct sl_str symcache_request_queue_name(const void *context)
{
    return object_request_queue_name(&((const struct symcache_request *)context)->object);
}

/* ---- copies ---- */

struct copier {
    struct sl_arena *arena;
    bool failed;
};

static void copy_str(struct copier *c, struct sl_str *s)
{
    if (!s->data)
        return;
    s->data = sl_arena_strndup(c->arena, s->data, s->size);
    c->failed |= !s->data;
}

static void copy_secret(struct copier *c, struct sl_secret *secret)
{
    copy_str(c, &secret->hidden);
}

/* Copies an array, without what its items point to. NULL if it is empty, or, with `failed` set, when out of memory. */
static void *copy_array(struct copier *c, const void *items, size_t count, size_t size)
{
    if (!count)
        return NULL;
    void *copy = sl_arena_zalloc(c->arena, count, size);
    if (copy)
        memcpy(copy, items, count * size);
    else
        c->failed = true;
    return copy;
}

/* Copies a source with all its texts; NULL when out of memory. Computations need copies, as they may outlive the request or the
 * configuration that a source belongs to. */
static const struct source *copy_source(struct copier *c, const struct source *from)
{
    struct source *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    struct bucket_config *bucket = &to->bucket;
    struct sl_str *texts[] = {&to->id,          &to->path,         &to->url,
                              &bucket->s3_name, &bucket->gcs_name, &bucket->prefix,
                              &bucket->region,  &bucket->endpoint, &bucket->client_email};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        copy_str(c, texts[i]);
    struct sl_secret *secrets[] = {&to->token,           &to->cookies,           &bucket->access_key,
                                   &bucket->secret_key,  &bucket->session_token, &bucket->private_key,
                                   &bucket->bearer_token};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        copy_secret(c, secrets[i]);
    to->path_patterns = copy_array(c, from->path_patterns, from->path_pattern_count, sizeof *from->path_patterns);
    for (size_t i = 0; to->path_patterns && i < to->path_pattern_count; i++)
        copy_str(c, &to->path_patterns[i]);
    to->headers = copy_array(c, from->headers, from->header_count, sizeof *from->headers);
    for (size_t i = 0; to->headers && i < to->header_count; i++) {
        copy_str(c, &to->headers[i].name);
        copy_secret(c, &to->headers[i].value);
    }
    return to;
}

const struct source *source_copy(const struct source *source, struct sl_arena *arena)
{
    struct copier c = {.arena = arena};
    const struct source *copy = copy_source(&c, source);
    return c.failed ? NULL : copy;
}

/* Copies a file with its source and texts; NULL when out of memory. */
static const struct remote_file *copy_file(struct copier *c, const struct remote_file *from)
{
    struct remote_file *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    to->source = copy_source(c, from->source);
    copy_str(c, &to->path);
    copy_str(c, &to->location);
    copy_str(c, &to->uri);
    copy_str(c, &to->url);
    copy_str(c, &to->checksum);
    copy_str(c, &to->forwarded_for);
    copy_str(c, &to->via);
    return to;
}

/* Copies the object's id with its texts; NULL when out of memory, noted in the copier. */
static const struct object_id *copy_id(struct copier *c, const struct object_id *from)
{
    struct object_id *to = copy_array(c, from, 1, sizeof *from);
    if (!to)
        return NULL;
    copy_str(c, &to->code_id);
    copy_str(c, &to->code_file);
    copy_str(c, &to->debug_file);
    copy_str(c, &to->debug_checksum);
    return to;
}

const struct remote_file *remote_file_copy(const struct remote_file *file, struct sl_arena *arena)
{
    struct copier c = {.arena = arena};
    const struct remote_file *copy = copy_file(&c, file);
    return c.failed ? NULL : copy;
}

/* Copies a request with all that it points to; false when out of memory. */
static bool copy_request(struct copier *c, const struct object_request *from, struct object_request *to)
{
    *to = *from;
    to->file = copy_file(c, from->file);
    to->id = copy_id(c, from->id);
    copy_str(c, &to->scope);
    return !c->failed;
}

void *object_request_retain(const void *context, struct sl_arena *arena)
{
    struct copier c = {.arena = arena};
    struct object_request *to = SL_ARENA_NEW(arena, struct object_request);
    return to && copy_request(&c, context, to) ? to : NULL;
}

/* Copies the request for work that outlives the caller (cache_kind.retain); NULL when out of memory. */
void *symcache_request_retain(const void *context, struct sl_arena *arena)
{
    const struct symcache_request *from = context;
    struct copier c = {.arena = arena};
    struct symcache_request *to = SL_ARENA_NEW(arena, struct symcache_request);
    struct object_request *parts = SL_ARENA_ARRAY(arena, struct object_request, 2);
    if (!to || !parts || !copy_request(&c, &from->object, &to->object) ||
        (from->map && !copy_request(&c, from->map, &parts[0])) ||
        (from->lines && !copy_request(&c, from->lines, &parts[1])))
        return NULL;
    to->variables = from->variables;
    to->columns = from->columns;
    to->scope = from->scope;
    copy_str(&c, &to->scope);
    to->map = from->map ? &parts[0] : NULL;
    to->lines = from->lines ? &parts[1] : NULL;
    return c.failed ? NULL : to;
}
