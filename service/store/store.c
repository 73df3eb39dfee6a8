/* Mozilla's symbol store (store/store.h): opens it, makes sources of it for searches, and removes what has expired. */
#include "store/impl.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/duration.h"
#include "core/pool.h"
#include "fetch/fetch.h"

const char *const store_prefixes[STORE_PARTS] = {"v1/", "try/v1/"};

static struct {
    const struct config_store *config;
    struct store_area area; /* not open: no store is configured */
    struct source sources[STORE_PARTS];
    struct sl_arena arena;
} store;

/* ---- start, end, sources ---- */

/* Makes a source for each part of the store (v1/ and try/v1/), with texts in the arena. `scope`: the parts below scopes/<scope>/; empty:
 * those in the store's root. False when out of memory. */
static bool make_sources(struct sl_str scope, struct sl_arena *arena, struct source sources[STORE_PARTS])
{
    for (int part = 0; part < STORE_PARTS; part++) {
        struct source *source = &sources[part];
        struct sl_buf text = {0};
        if (scope.size)
            sl_buf_printf(&text, "scopes/" SL_STR_FMT "/", SL_STR_ARG(scope));
        sl_buf_cstr(&text, store_prefixes[part]);
        struct sl_str prefix = sl_buf_move_to_arena(&text, arena);
        if (!prefix.data)
            return false;
        prefix.size--; /* without the last slash */
        *source =
            (struct source){.id = SL_STR("uploads"), .layout = LAYOUT_MOZILLA, .configured = true, .internal = true};
        if (!store_area_source(&store.area, arena, prefix, source))
            return false;
    }
    return true;
}

enum sl_code store_init(const struct config *config, struct sl_error *error)
{
    store.config = &config->mozilla.store;
    enum sl_code code = SL_OK;
    if (store.config->filesystem_path)
        code = store_area_open_directory(&store.area, store.config->filesystem_path, "mozilla.store.filesystem.path",
                                         error);
    else if (bucket_is_configured(&store.config->bucket))
        code = store_area_open_bucket(&store.area, &store.config->bucket, &store.arena, error);
    else
        code = sl_fail(error, SL_NOT_FOUND, "no upload store is configured (mozilla.store)");
    if (code == SL_OK && !make_sources(SL_STR(""), &store.arena, store.sources))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        store.area.type = NULL; /* means that there is no store */
    return code;
}

void store_close(void)
{
    sl_arena_free(&store.arena);
    store.area = (struct store_area){NULL};
}

/* Pool work: removes the files of the store that have expired. */
static void store_sweep_job(void *unused)
{
    (void)unused;
    store_directory_sweep(&store.area, store.config->try_retention_ns / 1000000000);
}

/* Removes expired files four times per retention period of try builds, but at least once an hour and not more often than every 100 ms.
 * Returns at once if there is no store, or if it is a bucket, which has lifecycle rules of its own. */
void store_sweep_repeatedly(void *unused)
{
    enum { HOUR_MS = 3600 * 1000, MIN_MS = 100 };
    (void)unused;
    if (!store.area.type || !store.area.type->sweep)
        return;
    uint64_t pause = DURATION_MS(store.config->try_retention_ns) / 4;
    pause = pause > HOUR_MS ? HOUR_MS : pause < MIN_MS ? MIN_MS : pause;
    do
        pool_run(POOL_IO | POOL_HEAVY, store_sweep_job, NULL, NULL);
    while (fiber_sleep(pause));
}

bool store_is_open(void)
{
    return store.area.type != NULL;
}

/* Returns the name of the store for responses: that of the bucket, or the last component of the directory. */
const char *store_bucket(void)
{
    const struct config_store *c = store.config;
    if (!c->filesystem_path)
        return bucket_name(&c->bucket).data;
    const char *slash = strrchr(c->filesystem_path, '/');
    return slash && slash[1] ? slash + 1 : c->filesystem_path;
}

const struct source *store_sources(size_t *count)
{
    *count = store.area.type ? STORE_PARTS : 0;
    return store.sources;
}

const struct source *store_native_sources(size_t *count)
{
    *count = store.area.type && store.config->serve_native ? STORE_PARTS : 0;
    return store.sources;
}

const struct source *store_scope_sources(struct sl_str scope, struct sl_arena *arena, size_t *count)
{
    struct source *sources = store.area.type ? SL_ARENA_ARRAY(arena, struct source, STORE_PARTS) : NULL;
    bool good = sources && make_sources(scope, arena, sources);
    *count = good ? STORE_PARTS : 0;
    return good ? sources : NULL;
}

/* Sets the location of an object: the URI that the source of its part gives it. False when out of memory. */
bool store_location(struct sl_str scope, enum store_part part, struct sl_str key, struct sl_arena *arena,
                    struct sl_str *location)
{
    size_t count = STORE_PARTS;
    const struct source *sources = scope.size ? store_scope_sources(scope, arena, &count) : store.sources;
    struct remote_file file = {.source = sources ? &sources[part] : NULL};
    bool good = sources && origin_set_path(&file, key, arena);
    *location = file.uri;
    return good;
}

/* ---- the gzip header (RFC 1952) ----
 *     1f 8b 08 04 | 00 00 00 00 | 00 ff       deflate, has extra field | no time | no flags, unknown system
 *     1c 00 | 'S' 'L' 18 00                   28 bytes of extra field | subfield "SL" of 24 bytes:
 *     u64 size, little-endian | 16 bytes MD5  of the uncompressed contents */
static const uint8_t gzip_begin[10] = {0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255};
static const uint8_t gzip_field[6] = {28, 0, 'S', 'L', 24, 0};

/* Writes the 16 fixed bytes of the header, then the size in little-endian (8 bytes) and the MD5 (16 bytes). */
void store_gzip_header_write(uint64_t original_size, const uint8_t md5[16], uint8_t head[STORE_GZIP_HEADER_SIZE])
{
    memcpy(head, gzip_begin, sizeof gzip_begin);
    memcpy(head + sizeof gzip_begin, gzip_field, sizeof gzip_field);
    for (int i = 0; i < 8; i++)
        head[16 + i] = (uint8_t)(original_size >> 8 * i);
    memcpy(head + 24, md5, 16);
}

/* Reads size (at offset 16) and MD5 (at 24) from the header. False if the store has not written the file: it has other first 4 bytes or
 * another extra field. Time, flags and system, which other tools may set, are not compared. */
bool store_gzip_header_read(struct sl_bytes head, struct store_meta *meta)
{
    if (head.size < STORE_GZIP_HEADER_SIZE || memcmp(head.data, gzip_begin, 4) != 0 ||
        memcmp(head.data + sizeof gzip_begin, gzip_field, sizeof gzip_field) != 0)
        return false;
    meta->original_size = 0;
    for (int i = 0; i < 8; i++)
        meta->original_size |= (uint64_t)head.data[16 + i] << 8 * i;
    memcpy(meta->md5, head.data + 24, 16);
    meta->has_original = true;
    return true;
}

/* ---- objects ---- */

enum sl_code store_tmp_file_create(struct store_tmp_file *work, struct sl_error *error)
{
    return store_area_tmp_file(&store.area, work, error);
}

enum sl_code store_fail_write(struct sl_error *error, int number, const char *place)
{
    char what[64];
    if (number == ENOSPC || number == EDQUOT)
        return sl_fail(error, SL_UNSUPPORTED, "%s is full", place);
    snprintf(what, sizeof what, "cannot write to %s", place);
    return sl_fail_errno(error, number, what);
}

enum sl_code store_stat(struct sl_str name, bool with_md5, struct store_meta *meta, struct sl_error *error)
{
    return store_area_stat(&store.area, name, with_md5, meta, error);
}

enum sl_code store_put(struct sl_str name, struct store_tmp_file *work, const struct store_meta *meta,
                       const char *media_type, struct sl_error *error)
{
    return store_area_put(&store.area, name, work, meta, media_type, error);
}

enum sl_code store_put_text(const struct sl_str *names, size_t count, struct sl_str text, struct sl_error *error)
{
    return store_area_put_text(&store.area, names, count, text, error);
}

enum sl_code store_open(struct sl_str name, struct sl_mapping *mapping, struct store_meta *meta, struct sl_error *error)
{
    return store_area_open(&store.area, name, mapping, meta, error);
}

enum sl_code store_read(struct sl_str name, struct sl_buf *text, struct sl_error *error)
{
    return store_area_read(&store.area, name, text, error);
}

/* Returns the URL from which clients download an object: below public_url if that is configured, otherwise a presigned URL of the bucket.
 * NULL: there is none, so the service sends the object itself; or out of memory. */
const char *store_url(struct sl_str name, struct sl_arena *arena)
{
    if (!store.config->public_url)
        return store.area.type->url ? store.area.type->url(&store.area, name, arena) : NULL;
    struct sl_buf url = {0};
    struct sl_str base = sl_str(store.config->public_url);
    while (sl_str_ends(base, SL_STR("/")))
        base.size--;
    sl_buf_str(&url, base);
    sl_buf_u8(&url, '/');
    fetch_encode(&url, name, true); /* percent-encodes the name, but not its slashes */
    return sl_buf_move_to_arena(&url, arena).data;
}
