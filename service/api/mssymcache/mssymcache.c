/* GET /v<major>.<minor>.<patch>/<pdb name>/<pdb id>[/<age>]: SymCache files for Windows Performance Analyzer and TraceProcessor. A
 * file that is not cached takes long to make: clients that know Retry-After are told to come back, others wait. */
#include <stdio.h>
#include <stdlib.h>

#include "api/impl.h"
#include "base/list.h"
#include "core/log.h"
#include "core/loop.h"
#include "id/id.h"
#include "transcode/ms_symcaches.h"

/* LOWEST_MAJOR: lower major versions are not served. OWN_MAJORS: from this major version on, files are made by `symloom
 * symcachegen`, below it by Microsoft's tools. MAX_RETRY_S: longest time in Retry-After. MAX_OLDER: number of older versions that
 * are tried. */
enum { LOWEST_MAJOR = 3, OWN_MAJORS = 1000, MAX_RETRY_S = 30, MAX_OLDER = 16 };

/* ---- reading ---- */

/* Returns -1, 0 or 1, as `a` is lower than, equal to or higher than `b`. */
static int compare_versions(const unsigned a[3], const unsigned b[3])
{
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Parses a GUID: 32 hex digits, with or without dashes (at their usual places) and braces. */
static bool read_guid(struct sl_str text, struct sl_debug_id *id)
{
    char digits[32];
    size_t count = 0;
    if (text.size > 2 && text.data[0] == '{' && text.data[text.size - 1] == '}')
        text = (struct sl_str){text.data + 1, text.size - 2};
    bool dashed = text.size == 36;
    for (size_t i = 0; i < text.size; i++) {
        bool dash = dashed && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash && text.data[i] == '-')
            continue;
        if (dash || count == 32)
            return false;
        digits[count++] = text.data[i];
    }
    *id = (struct sl_debug_id){.age = 0};
    return count == 32 && sl_debug_id_parse((struct sl_str){digits, 32}, id);
}

/* Parses the age, a decimal number of at most 32 bits. */
static bool read_age(struct sl_str text, uint32_t *age)
{
    uint64_t number = 0;
    bool good = text.size <= 10 && sl_parse_u64(text, &number) && number <= UINT32_MAX;
    *age = (uint32_t)number;
    return good;
}

struct symcache_get { /* a request for a SymCache file, parsed */
    struct http_exchange *x;
    /* version: the highest that the client reads; known: that of the file it has (If-Version-Exceeds) */
    unsigned version[3], known[3];
    bool has_known, is_patient; /* `known` is set; the client knows Retry-After */
    struct ms_symcache_query query;
};

/* Parses the captures of the path into `asked`. False if the version or the id is invalid. A path without an age means age 1. */
static bool read_path(const struct http_exchange *x, struct symcache_get *asked)
{
    struct sl_str version = x->captures[0];
    uint32_t age = 1;
    if (x->capture_count < 3 || !sl_str_starts(version, SL_STR("v")) ||
        !transcoder_version((struct sl_str){version.data + 1, version.size - 1}, asked->version) ||
        !read_guid(x->captures[2], &asked->query.id) || (x->capture_count > 3 && !read_age(x->captures[3], &age)))
        return false;
    asked->query.id.age = age;
    asked->query.pdb_name = x->captures[1];
    return true;
}

/* True if the path belongs to this API: a transcoder is configured, and the path has a valid version and id. Other paths get 404. */
static bool mssymcache_there(const struct http_exchange *x)
{
    struct symcache_get asked = {.x = NULL};
    return ((const struct service *)x->service)->config->ms_symcache.transcoder_count && read_path(x, &asked);
}

/* True if the text is safe as the name of a file: the transcoder's input and output files get this name. */
static bool is_file_name(struct sl_str name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '/' || name.data[i] == '\\' || (unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7F)
            return false;
    return name.size && name.size < 200 && !sl_str_equal(name, SL_STR(".")) && !sl_str_equal(name, SL_STR(".."));
}

static bool is_true(struct http_exchange *x, const char *name)
{
    return sl_str_equal_nocase(http_header(x, name), SL_STR("true"));
}

static size_t header_count(const struct http_exchange *x, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < x->header_count; i++)
        count += sl_str_equal_nocase(x->headers[i].name, sl_str(name));
    return count;
}

/* Reads the header fields into `asked`. Returns NULL, or the error message for the client. is_patient: the client knows Retry-After;
 * `known`: the version of the file that it has. */
static const char *read_fields(struct symcache_get *asked)
{
    struct http_exchange *x = asked->x;
    struct sl_str known = http_header(x, "if-version-exceeds");
    asked->is_patient = is_true(x, "accept-retry-after") || is_true(x, "allow-retry-after");
    asked->has_known = known.data != NULL;
    if (header_count(x, "if-version-exceeds") > 1)
        return "Only one If-Version-Exceeds header is permitted.";
    if (!known.data)
        return NULL;
    if (!transcoder_version(sl_str_trimmed(known), asked->known))
        return "The If-Version-Exceeds header value is not a valid version.";
    if (!asked->known[0]) /* major version 0 */
        return "The If-Version-Exceeds header value is an unsupported version number.";
    if (compare_versions(asked->known, asked->version) >= 0)
        return "The If-Version-Exceeds header value must be less than the requested version.";
    return NULL;
}

/* Returns the transcoder with the highest major version up to the client's; NULL if there is none. Versions from OWN_MAJORS on are
 * another kind of file: transcoders of one kind do not serve clients of the other. */
static const struct transcoder *choose_transcoder(const struct config *config, const unsigned version[3])
{
    const struct transcoder *best = NULL;
    if (version[0] < LOWEST_MAJOR)
        return NULL;
    for (size_t i = 0; i < config->ms_symcache.transcoder_count; i++) {
        const struct transcoder *t = &config->ms_symcache.transcoders[i];
        if ((t->version[0] >= OWN_MAJORS) == (version[0] >= OWN_MAJORS) && t->version[0] <= version[0] &&
            (!best || t->version[0] > best->version[0]))
            best = t;
    }
    return best;
}

/* ---- answers ---- */

static void mssymcache_release(void *item)
{
    cache_release(item);
}

/* Replies with the file, or with 304 if the file that the client has is of this version or newer. Takes over the reference to
 * `item`. */
static void reply_item(struct symcache_get *asked, const unsigned version[3], struct cache_item *item)
{
    struct http_exchange *x = asked->x;
    char type[80], etag[64];
    if (asked->has_known && compare_versions(asked->known, version) >= 0) {
        cache_release(item);
        http_reply_empty(x, 304);
        return;
    }
    snprintf(type, sizeof type, "application/vnd.ms-symcache; version=%u.%u.%u", version[0], version[1], version[2]);
    snprintf(etag, sizeof etag, "\"%u.%u.%u-%llx-%llx\"", version[0], version[1], version[2],
             (unsigned long long)item->mapping.bytes.size, (unsigned long long)item->time_created);
    const char *kept = sl_arena_strndup(&x->arena, type, strlen(type));
    http_reply_file(x, kept ? kept : "application/vnd.ms-symcache", &item->mapping, etag, item->time_created,
                    mssymcache_release, item);
}

/* Moving average of the seconds that making a file takes, from which Retry-After is computed. 0: none was made yet. */
static double average_s;

/* Replies 404 with Retry-After, which in this protocol means that the file is being made. The time is the average, but between 1 and
 * MAX_RETRY_S seconds. */
static void reply_later(struct http_exchange *x)
{
    char text[16];
    unsigned delay = average_s < 1 ? 1 : average_s > MAX_RETRY_S ? MAX_RETRY_S : (unsigned)(average_s + 0.999);
    snprintf(text, sizeof text, "%u", delay);
    const char *kept = sl_arena_strndup(&x->arena, text, strlen(text));
    http_reply_empty(x, 404);
    http_set_header(x, "Retry-After", kept ? sl_str(kept) : SL_STR("1"));
}

/* ---- work in the background ---- */

struct background_conversion { /* a file that is being made in the background */
    struct sl_link link;
    struct ms_symcache_query query;
    struct sl_str key;
    struct sl_arena arena;
};
static struct sl_list running;

/* True if the file with this cache key is being made in the background. */
static bool is_running(struct sl_str key)
{
    for (const struct background_conversion *b = SL_LIST_FIRST(&running, struct background_conversion, link); b;
         b = SL_LIST_NEXT(b, link))
        if (sl_str_equal(b->key, key))
            return true;
    return false;
}

/* Frees the record. The struct of its arena lies in that arena's own memory, so a copy of the struct is used to free it. */
static void background_end(struct background_conversion *b)
{
    sl_list_remove(&running, &b->link);
    config_release((struct config *)(uintptr_t)b->query.config);
    struct sl_arena arena = b->arena;
    sl_arena_free(&arena);
}

/* A fiber: makes the file and updates the average time, in which this time counts for a quarter. Errors are not reported: the
 * client's next request meets them. */
static void background_run(void *arg)
{
    struct background_conversion *b = arg;
    struct cache_item *item;
    struct sl_error error;
    uint64_t begin = clock_mono_ns();
    if (ms_symcache_get(&b->query, &b->arena, &item, &error) == SL_OK) {
        double took_s = (double)(clock_mono_ns() - begin) / 1e9;
        average_s = average_s > 0 ? (3 * average_s + took_s) / 4 : took_s;
        cache_release(item);
    }
    background_end(b);
}

/* Starts making the file in the background. True if it is being made now, also if that began before; false when out of memory or
 * fibers. The record copies what it needs of the request, and retains the configuration, as it outlives the request. */
static bool begin_background(struct service *service, const struct ms_symcache_query *query)
{
    struct sl_arena arena = {0};
    struct background_conversion *b = SL_ARENA_NEW(&arena, struct background_conversion);
    const char *name = sl_arena_strndup(&arena, query->pdb_name.data, query->pdb_name.size);
    struct sl_str key = ms_symcache_key(query, &arena);
    if (!b || !name || !key.data || is_running(key)) {
        bool runs = b && name && key.data; /* all three are set: so is_running was true */
        sl_arena_free(&arena);
        return runs;
    }
    *b = (struct background_conversion){.query = *query, .key = key, .arena = arena};
    b->query.pdb_name.data = name;
    b->query.is_cached_only = false;
    config_retain(query->config);
    sl_list_prepend(&running, &b->link);
    if (fiber_start(&service->jobs_group, background_run, b))
        return true;
    background_end(b);
    return false;
}

/* ---- the request ---- */

/* Replies with a cached file of an older version with the same major version, which the client reads as well, and starts making the
 * requested version in the background. False if no older version is cached. */
static bool reply_older(struct symcache_get *asked)
{
    struct ms_symcache_query older = asked->query;
    unsigned versions[MAX_OLDER][3];
    size_t count = ms_symcache_get_older(older.config, older.transcoder->version, versions, MAX_OLDER);
    older.is_cached_only = true;
    for (size_t i = 0; i < count; i++) {
        struct cache_item *item;
        struct sl_error error;
        memcpy(older.version, versions[i], sizeof older.version);
        if (ms_symcache_get(&older, &asked->x->arena, &item, &error) != SL_OK)
            continue;
        begin_background(asked->x->service, &asked->query); /* if that fails, the next request tries again */
        reply_item(asked, versions[i], item);
        return true;
    }
    return false;
}

/* Makes the file while the client waits, and replies with it; 404 if it cannot be made. */
static void reply_computed(struct symcache_get *asked)
{
    struct cache_item *item;
    struct sl_error error;
    enum sl_code code = ms_symcache_get(&asked->query, &asked->x->arena, &item, &error);
    if (code == SL_OK)
        reply_item(asked, asked->query.version, item);
    else if (code == SL_BUSY)
        http_reply_no_memory(asked->x);
    else if (code != SL_CANCELLED)
        http_reply_empty(asked->x, 404);
}

/* Replies with the first of these: the file from the cache; an older version from the cache; 304 if the client's file is as new as
 * the one that would be made; "retry later" if the client knows that; otherwise the file, for which the client waits. */
static void answer(struct symcache_get *asked)
{
    struct http_exchange *x = asked->x;
    struct ms_symcache_query cached = asked->query;
    struct cache_item *item;
    struct sl_error error;
    struct sl_str key = ms_symcache_key(&asked->query, &x->arena);
    bool runs = key.data && is_running(key);
    cached.is_cached_only = true;
    /* With is_cached_only, SL_BUSY means that the file is not in the cache. While it is being made (`runs`), that is known without
     * asking. */
    enum sl_code code = runs ? SL_BUSY : ms_symcache_get(&cached, &x->arena, &item, &error);
    if (code == SL_OK)
        reply_item(asked, asked->query.version, item);
    else if (code == SL_CANCELLED)
        return;
    else if (code != SL_BUSY)
        http_reply_empty(x, 404);
    else if (reply_older(asked))
        return;
    else if (asked->has_known && compare_versions(asked->known, asked->query.version) >= 0)
        http_reply_empty(x, 304);
    else if (asked->is_patient && begin_background(x->service, &asked->query))
        reply_later(x);
    else
        reply_computed(asked);
}

/* Answers a request for a SymCache file. Holds the configuration, as it may be replaced while the file is made. */
static void mssymcache_get(struct http_exchange *x)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    struct symcache_get asked = {.x = x, .query.config = config};
    /* mssymcache_there has checked the path, so "", a wrong path, does not occur */
    const char *wrong = read_path(x, &asked) ? read_fields(&asked) : "";
    const struct transcoder *transcoder = choose_transcoder(config, asked.version);
    if (!is_file_name(asked.query.pdb_name)) {
        http_reply_empty(x, 400);
    } else if (wrong) {
        reply_text(x, 400, wrong);
    } else if (!transcoder) {
        http_reply_empty(x, 404);
    } else {
        /* Clients above version 3.1.0 know Retry-After. If the transcoder has another major version, it is not known from which
         * version on: then the client waits, which every client can do. */
        asked.is_patient = asked.is_patient || (asked.version[0] == transcoder->version[0] &&
                                                compare_versions(asked.version, (const unsigned[3]){3, 1, 0}) > 0);
        asked.query.transcoder = transcoder;
        memcpy(asked.query.version, transcoder->version, sizeof asked.query.version);
        answer(&asked);
    }
    config_release((struct config *)(uintptr_t)config);
}

/* Replies to errors of the server with the status alone: this API has no error bodies. */
static void mssymcache_error(struct http_exchange *x, int status, const char *detail)
{
    (void)detail;
    http_reply_empty(x, status);
}

#define SYMCACHE(pattern_)                                                                                             \
    {                                                                                                                  \
        .method = "GET", .pattern = (pattern_), .handler = mssymcache_get, .takes_work = true,                         \
        .there = mssymcache_there, .rights = API_RIGHT("symcache")                                                     \
    }
static const struct http_route routes[] = {
    SYMCACHE("/{version}/{name}/{id}"),
    SYMCACHE("/{version}/{name}/{id}/{age}"),
    {.method = NULL},
};

const struct http_family family_mssymcache = {
    .routes = routes, .group = "symcache", .offers_basic_auth = true, .error = mssymcache_error};
