/* The shared cache in a Redis server: the functions of its back end (struct shared_backend).
 *
 *     key     <namespace>:<kind>/<relative path>
 *     value   u8: 0 contents, 1 an error   u64 little-endian, seconds since the epoch   zstd frame
 *
 *     00  00 F1 53 65 00 00 00 00  28 B5 2F FD ...    contents made at 1700000000 (0x6553F100)
 *
 * The frame of an error holds its marker. Contents have no time to live: the server's maxmemory-policy evicts. */
#include "cache/redis.h"
#include "cache/shared.h"

#include <stdio.h>
#include <zstd.h>

#include "core/loop.h"
#include "core/pool.h"

/* HEADER: bytes before the frame, type and time; MARKER_MAX: bytes of the marker of an error (errors.c) */
enum { HEADER = 9, MARKER_MAX = 4096 };
enum { IS_CONTENTS, IS_ERROR };
#define SMALL (64ull << 20) /* bytes that a frame may decompress to, however small it is */

static char key_namespace[128]; /* the namespace: first part of every key */
static uint64_t max_inflate_ratio;
static struct shared_backend backend;
static struct redis *connection;

enum shared_result shared_command(const struct sl_str *words, size_t count, struct redis_answer *answer)
{
    /* by enum redis_result */
    static const enum shared_result results[] = {SHARED_HIT, SHARED_TIMEOUT, SHARED_UNREACHABLE, SHARED_CANCELLED,
                                                 SHARED_BUSY};
    return results[redis_command(connection, words, count, answer)];
}

/* shared_backend.close. */
static void redis_end(void)
{
    redis_close(connection);
    connection = NULL;
}

/* Returns the Redis key of an entry, "<namespace>:<name>", written to `out`. */
static struct sl_str redis_make_key(const char *name, char out[320])
{
    int size = snprintf(out, 320, "%s:%s", key_namespace, name);
    return (struct sl_str){out, (size_t)size};
}

/* Decompresses the marker of an error and decodes it into `value`. SHARED_ERROR if that fails, or if it is SL_OK or SL_INTERNAL: these are
 * never stored as errors, so the value is damaged. */
static enum shared_result unpack_error(struct sl_bytes frame, struct shared_value *value)
{
    char marker[MARKER_MAX];
    size_t size = ZSTD_decompress(marker, sizeof marker, frame.data, frame.size);
    if (ZSTD_isError(size))
        return SHARED_ERROR;
    value->code = cache_error_decode((struct sl_bytes){(const uint8_t *)marker, size}, &value->error);
    return value->code == SL_OK || value->code == SL_INTERNAL ? SHARED_ERROR : SHARED_HIT;
}

/* Decompresses contents into the file. They may have SMALL bytes plus max_inflate_ratio times the size of the frame, as a malicious small
 * frame could decompress to any size. */
static enum shared_result unpack_contents(struct sl_bytes frame, int fd)
{
    struct unpack_job u = {.packed = frame, .fd = fd, .max_size = SMALL + frame.size * max_inflate_ratio};
    return pool_run(POOL_COMPRESS, unpack_run, &u, NULL) == SL_OK && u.code == SL_OK ? SHARED_HIT : SHARED_ERROR;
}

/* Reads the value of an entry: an error into `value`, contents into the file. If the configuration does not share errors
 * (backend.negative), an error is SHARED_MISS. A value that is damaged or of another type is SHARED_ERROR. A time of creation that does not
 * fit nanoseconds in 64 bits counts as 0, unknown. */
static enum shared_result redis_take(const struct redis_answer *answer, int fd, struct shared_value *value)
{
    if (answer->type == REDIS_NIL)
        return SHARED_MISS;
    if (answer->type != REDIS_TEXT || answer->text.size < HEADER)
        return SHARED_ERROR;
    const uint8_t *data = answer->text.data;
    struct sl_bytes frame = {data + HEADER, answer->text.size - HEADER};
    uint64_t created = 0;
    for (int i = 0; i < 8; i++) /* behind the type, byte 0: bytes 1 to 8, little-endian */
        created |= (uint64_t)data[1 + i] << (8 * i);
    value->created_s = created > INT64_MAX / CACHE_SECOND_NS ? 0 : (int64_t)created;
    value->code = SL_OK;
    if (data[0] == IS_ERROR)
        return backend.negative ? unpack_error(frame, value) : SHARED_MISS;
    return data[0] == IS_CONTENTS ? unpack_contents(frame, fd) : SHARED_ERROR;
}

/* shared_backend.get: fetches the value of an entry and decompresses it. */
static enum shared_result redis_get(const char *name, int fd, struct shared_value *value)
{
    char key[320];
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("GET"), redis_make_key(name, key)};
    enum shared_result result = shared_command(words, 2, &answer);
    if (result == SHARED_HIT)
        result = redis_take(&answer, fd, value);
    sl_buf_free(&answer.text);
    return result;
}

/* Appends the marker of an error, compressed as a zstd frame of level 3. Sets out->failed if that fails. */
static void pack_error(struct sl_buf *out, struct sl_bytes marker)
{
    size_t bound = ZSTD_compressBound(marker.size);
    if (!sl_buf_reserve(out, bound))
        return;
    size_t size =
        ZSTD_compress(out->data + out->size, bound, marker.data ? marker.data : (const uint8_t *)"", marker.size, 3);
    if (ZSTD_isError(size))
        out->failed = true;
    else
        out->size += size;
}

/* Stores the value of an entry. Errors expire (EX). Contents do not replace a value that another machine has stored (NX): SHARED_SKIPPED,
 * unless entry->replace is set. */
static enum shared_result redis_set(const struct shared_entry *entry, struct sl_str value)
{
    char key[320], ttl[24];
    struct redis_answer answer;
    struct sl_str words[5] = {SL_STR("SET"), redis_make_key(entry->name, key), value};
    size_t count = 3;
    if (entry->code != SL_OK) {
        int size = snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)entry->ttl_s);
        words[count++] = SL_STR("EX");
        words[count++] = (struct sl_str){ttl, (size_t)size};
    } else if (!entry->replace) {
        words[count++] = SL_STR("NX");
    }
    enum shared_result result = shared_command(words, count, &answer);
    if (result == SHARED_HIT)
        result = answer.type == REDIS_STATUS ? SHARED_WRITTEN
                 : answer.type == REDIS_NIL  ? SHARED_SKIPPED
                                             : SHARED_ERROR;
    sl_buf_free(&answer.text);
    return result;
}

/* shared_backend.put: stores a type byte, the time of creation (8 bytes), and the compressed contents or error. */
static enum shared_result redis_put(const struct shared_entry *entry)
{
    struct sl_buf value = {0};
    sl_buf_u8(&value, entry->code == SL_OK ? IS_CONTENTS : IS_ERROR);
    sl_buf_u64(&value, (uint64_t)entry->created_s);
    if (entry->code == SL_OK)
        sl_buf_add(&value, entry->packed.data, entry->packed.size);
    else
        pack_error(&value, entry->marker);
    enum shared_result result = value.failed ? SHARED_BUSY : redis_set(entry, sl_buf_view(&value));
    sl_buf_free(&value);
    return result;
}

/* shared_backend.exists. An answer that is no number, such as an error, is SHARED_ERROR. */
static enum shared_result exists(const char *name)
{
    char key[320];
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("EXISTS"), redis_make_key(name, key)};
    enum shared_result result = shared_command(words, 2, &answer);
    if (result == SHARED_HIT)
        result = answer.type != REDIS_NUMBER ? SHARED_ERROR : answer.number ? SHARED_HIT : SHARED_MISS;
    sl_buf_free(&answer.text);
    return result;
}

/* shared_backend.del; SHARED_HIT also if there was no such key. */
static enum shared_result del(const char *name)
{
    char key[320];
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("DEL"), redis_make_key(name, key)};
    enum shared_result result = shared_command(words, 2, &answer);
    if (result == SHARED_HIT && answer.type != REDIS_NUMBER)
        result = SHARED_ERROR;
    sl_buf_free(&answer.text);
    return result;
}

/* shared_backend.probe: SHARED_HIT if the server works. One that is loading its data, or has lost its primary, answers with an error. */
static enum shared_result probe(void)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("PING")};
    enum shared_result result = shared_command(words, 1, &answer);
    if (result == SHARED_HIT && answer.type == REDIS_FAILURE)
        result = SHARED_ERROR;
    sl_buf_free(&answer.text);
    return result;
}

enum sl_code cache_redis_options(const struct config *config, struct redis_options *options, const char **key,
                                 struct sl_error *error)
{
    enum { TIMEOUT_MS = 2000 };
    const struct config_shared *shared = &config->shared;
    /* the Redis of the shared cache; without one, that of the kind with a size limit of its own */
    const char *url = shared->redis_url ? shared->redis_url : config->bounded.redis_url;
    *key = shared->redis_url ? "shared_cache.redis.url" : config->bounded.redis_url_key;
    if (redis_url_parse(url, options, NULL) != SL_OK)
        return sl_fail(error, SL_MALFORMED, "not the URL of a Redis server (example: redis://10.0.0.5:6379)");
    struct sl_str password = secret_open(shared->redis_password);
    *key = "shared_cache.redis.password";
    if (password.size >= sizeof options->password)
        return sl_fail(error, SL_MALFORMED, "the password is too long (at most %zu bytes)",
                       sizeof options->password - 1);
    if (password.size)
        memcpy(options->password, password.data, password.size + 1); /* with the NUL */
    options->files = (struct tls_files){shared->redis_certificate_path, shared->redis_key_path, shared->redis_ca_path};
    options->timeout_ms = TIMEOUT_MS;
    return SL_OK;
}

/* Reads the options of the connection, and checks the namespace. SL_MALFORMED: `*key` is the invalid configuration key. */
static enum sl_code read_redis(const struct config *config, struct redis_options *options, const char **key,
                               struct sl_error *error)
{
    if (cache_redis_options(config, options, key, error) != SL_OK)
        return error->code;
    *key = "shared_cache.redis.namespace";
    if (strlen(config->shared.redis_namespace) >= sizeof key_namespace)
        return sl_fail(error, SL_MALFORMED, "the namespace is too long (at most %zu bytes)", sizeof key_namespace - 1);
    return SL_OK;
}

enum sl_code shared_check_redis(const struct config *config, const char **key, struct sl_error *error)
{
    struct redis_options options;
    return read_redis(config, &options, key, error);
}

struct shared_backend *shared_redis(const struct config *config, struct fiber_group *group, const char **key,
                                    struct sl_error *error)
{
    struct redis_options options;
    const struct config_shared *shared = &config->shared;
    if (read_redis(config, &options, key, error) != SL_OK)
        return NULL;
    snprintf(key_namespace, sizeof key_namespace, "%s", shared->redis_namespace);
    max_inflate_ratio = config->max_inflate_ratio;
    connection = redis_open(&options, group);
    if (!connection) {
        sl_fail(error, SL_BUSY, "out of memory");
        return NULL;
    }
    /* patience: unusable answers in a row after which it is paused; negative: it may store errors; packed: entries are stored compressed */
    backend = (struct shared_backend){.name = "redis",
                                      .patience = 3,
                                      .negative = shared->redis_negative,
                                      .packed = true,
                                      .max_packed = shared->redis_max_value_size,
                                      .get = redis_get,
                                      .put = redis_put,
                                      .exists = exists,
                                      .del = del,
                                      .probe = probe,
                                      .close = redis_end};
    return &backend;
}
