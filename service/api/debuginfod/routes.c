/* Routes of the debuginfod server: reads requests, and writes headers and errors of answers. */
#include "api/debuginfod/debuginfod.h"

#include <stdio.h>
#include <string.h>

#include "core/files.h"
#include "core/loop.h"
#include "core/metrics.h"

/* ---- requests ---- */

/* Reads the build id in the request's path, 1 to 64 bytes in hex, as a code id. Also sets the debug id of files with this build id, for
 * sources whose layout uses it. SL_NOT_FOUND if it is malformed; SL_BUSY when out of memory. */
static enum sl_code read_id(struct http_exchange *x, struct object_id *id)
{
    struct sl_str text = x->captures[0];
    uint8_t bytes[64];
    size_t size = 0;
    if (text.size % 2 || !sl_hex_decode(text, bytes, sizeof bytes, &size) || !size)
        return SL_NOT_FOUND;
    *id = (struct object_id){.type = OBJECT_ELF, .code_id = sl_code_id_normalise(&x->arena, text)};
    /* false: of a little-endian file, as nearly all are; the request does not tell */
    id->debug_id = sl_debug_id_from_build_id((struct sl_bytes){bytes, size}, false);
    id->has_debug_id = sl_debug_id_has_uuid(&id->debug_id);
    return id->code_id.size ? SL_OK : SL_BUSY;
}

/* Appends the values of all header fields with this name, which form one comma-separated list, each value with ", " behind it. Returns the
 * number of entries in the list. */
static uint64_t add_list(const struct http_exchange *x, struct sl_str name, struct sl_buf *out)
{
    uint64_t count = 0;
    for (size_t i = 0; i < x->header_count; i++) {
        struct sl_str value = x->headers[i].value;
        if (!sl_str_equal(x->headers[i].name, name) || !value.size)
            continue;
        count++;
        for (size_t at = 0; at < value.size; at++)
            count += value.data[at] == ',';
        sl_buf_str(out, value);
        sl_buf_cstr(out, ", ");
    }
    return count;
}

/* Returns the entry that this process adds to Via (RFC 9110, 7.6.3): "1.1 symloom-" and a random number, by which it recognises requests
 * that come back to it. */
static struct sl_str via_of_process(void)
{
    static char text[40];
    if (!text[0])
        snprintf(text, sizeof text, "1.1 symloom-%016llx", (unsigned long long)files_random());
    return sl_str(text);
}

void debuginfod_read_forwarding(struct http_exchange *x, const struct config *config,
                                struct debuginfod_forwarding *forwarding)
{
    struct sl_buf clients = {0}, servers = {0};
    struct sl_str entry = via_of_process();
    uint64_t hops = add_list(x, SL_STR("x-forwarded-for"), &clients) + 1;
    add_list(x, SL_STR("via"), &servers);
    bool was_here = servers.size && memmem(servers.data, servers.size, entry.data, entry.size);
    sl_buf_str(&clients, x->client);
    sl_buf_str(&servers, entry);
    forwarding->skips_upstreams = hops > config->debuginfod.max_hops || was_here;
    forwarding->forwarded_for = sl_buf_move_to_arena(&clients, &x->arena);
    forwarding->via = sl_buf_move_to_arena(&servers, &x->arena);
}

/* Sets in r->where on whose behalf upstreams are asked, or that they are not asked. */
static void read_forwarded(struct debuginfod_request *r)
{
    struct debuginfod_forwarding forwarding;
    debuginfod_read_forwarding(r->x, r->config, &forwarding);
    r->where.skips_upstreams = forwarding.skips_upstreams;
    r->where.forwarded_for = forwarding.forwarded_for;
    r->where.via = forwarding.via;
    if (r->where.skips_upstreams)
        r->where.list = 0; /* 0: do not cache the search result, as other requests do ask upstreams */
}

bool debuginfod_begin(struct debuginfod_request *r, struct http_exchange *x, const char *type)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    *r = (struct debuginfod_request){.x = x, .config = config, .type = type};
    r->begun_s = clock_wall_s();
    r->end_ms = loop_now_ms() + config->debuginfod.hold_ns / 1000000;
    if (!sl_parse_u64(http_header(x, "x-debuginfod-maxsize"), &r->max_size))
        r->max_size = UINT64_MAX;
    service_file_scope(config, &x->arena, &r->where);
    read_forwarded(r);
    enum sl_code code = read_id(x, &r->id);
    if (code != SL_OK)
        debuginfod_fail(r, code);
    return code == SL_OK;
}

void debuginfod_end(struct debuginfod_request *r)
{
    config_release(r->config);
}

/* ---- answers ---- */

/* Counts the request in the metric, once. */
static void count(struct debuginfod_request *r, const char *result)
{
    if (!r->answered)
        metric_add(METRIC_DEBUGINFOD_REQUESTS, 1, r->type, result, NULL);
    r->answered = true;
}

/* Answers 406: the file is larger than the client accepts. */
static void refuse_size(struct debuginfod_request *r)
{
    char body[64];
    snprintf(body, sizeof body, "File too large, max size=%llu", (unsigned long long)r->max_size);
    http_reply(r->x, 406, "text/plain", sl_str(body));
    count(r, "too_large");
}

static void set_copied(struct http_exchange *x, const char *name, struct sl_str value)
{
    const char *copy = value.size ? sl_arena_strndup(&x->arena, value.data, value.size) : NULL;
    if (copy)
        http_set_header(x, name, (struct sl_str){copy, value.size});
}

/* Sets the headers that describe the file. If an upstream sent the file, its headers for file name and package are passed on; else they
 * are what this service knows. */
static void describe(struct debuginfod_request *r, const struct debuginfod_answer *answer)
{
    char size[24];
    struct sl_str name = origin_note_field(answer->note, "FILE"), package = origin_note_field(answer->note, "ARCHIVE");
    snprintf(size, sizeof size, "%zu", answer->bytes.size);
    set_copied(r->x, "X-DEBUGINFOD-SIZE", sl_str(size));
    set_copied(r->x, "X-DEBUGINFOD-FILE", name.size ? name : answer->name);
    set_copied(r->x, "X-DEBUGINFOD-ARCHIVE", package.size ? package : answer->package);
    set_copied(r->x, "X-DEBUGINFOD-IMASIGNATURE", origin_note_field(answer->note, "IMASIGNATURE"));
    if (answer->is_public)
        http_set_header(r->x, "Cache-Control", SL_STR("public"));
}

void debuginfod_make_etag(struct sl_str source, struct sl_str path, uint64_t size, int64_t time_created, char out[64])
{
    uint64_t hash = sl_hash(path.data, path.size) * 31 + sl_hash(source.data, source.size);
    snprintf(out, 64, "\"%016llx-%llx-%llx\"", (unsigned long long)hash, (unsigned long long)size,
             (unsigned long long)time_created);
}

void debuginfod_send(struct debuginfod_request *r, const struct debuginfod_answer *answer)
{
    struct sl_mapping *part = SL_ARENA_NEW(&r->x->arena, struct sl_mapping);
    if (!part || answer->bytes.size > r->max_size) {
        answer->release(answer->arg);
        if (part)
            refuse_size(r);
        else
            http_reply_no_memory(r->x);
        return;
    }
    *part = (struct sl_mapping){.bytes = answer->bytes}; /* a view; answer->release() frees what it points to */
    describe(r, answer);
    http_reply_file(r->x, "application/octet-stream", part, answer->etag, answer->time_created, answer->release,
                    answer->arg);
    r->x->file_is_resident = answer->is_resident;
    /* a cache entry made since the request began was fetched for it, or for an equal one */
    count(r, answer->time_created >= r->begun_s ? "fetched" : "hit");
}

void debuginfod_not_found(struct debuginfod_request *r)
{
    http_reply(r->x, 404, "text/plain", SL_STR("not found"));
    count(r, "not_found");
}

void debuginfod_fail(struct debuginfod_request *r, enum sl_code code)
{
    if (code == SL_NOT_FOUND) {
        debuginfod_not_found(r);
    } else if (code == SL_UNSUPPORTED) {
        refuse_size(r);
    } else if (code != SL_CANCELLED) {
        http_reply_error(
            r->x, 503, "a symbol source does not answer, so it is not known whether the file exists; try again later");
        count(r, "reset"); /* the metric's label for it: elfutils' clients get a reset instead (prefers_reset) */
    }
}

/* ---- the family ---- */

bool debuginfod_is_enabled(const void *service)
{
    return ((const struct service *)service)->config->debuginfod.enabled;
}

const char *debuginfod_path_prefix(const void *service)
{
    return ((const struct service *)service)->config->debuginfod.path_prefix;
}

/* http_family.error: writes errors as plain text, because clients of debuginfod print them. */
static void write_error(struct http_exchange *x, int status, const char *detail)
{
    if (status == 404)
        detail = "not found";
    http_reply(x, status, "text/plain",
               sl_str(detail          ? detail
                      : status == 405 ? "only GET and HEAD are allowed"
                                      : "error"));
}

/* http_family.prefers_reset: true if the connection is to be reset instead of answering 503. Clients of elfutils try again after a reset,
 * but remember a status as "no such file". Not behind a proxy, which would turn the reset into a status of its own. */
static bool prefers_reset(const struct http_exchange *x)
{
    const struct config *config = ((const struct service *)x->service)->config;
    return config->debuginfod.transient == DEBUGINFOD_RESET &&
           sl_str_starts(http_header(x, "user-agent"), SL_STR("elfutils/")) && !http_is_proxied(x);
}

/* Handler of all other paths below /buildid/: answers 404, so that they do not reach the routes of other APIs. */
static void unknown_path(struct http_exchange *x)
{
    http_reply_empty(x, 404);
}

#define ROUTE(path, function)                                                                                          \
    {                                                                                                                  \
        .method = "GET", .pattern = (path), .handler = (function), .takes_work = true,                                 \
        .rights = API_RIGHT("debuginfod")                                                                              \
    }

static const struct http_route routes[] = {
    ROUTE("/buildid/{id}/debuginfo", debuginfod_debuginfo),
    ROUTE("/buildid/{id}/executable", debuginfod_executable),
    ROUTE("/buildid/{id}/section/{name}", debuginfod_section),
    ROUTE("/buildid/{id}/source/{path..}", debuginfod_source),
    ROUTE("/buildid/{rest..}", unknown_path),
    {.method = NULL},
};

const struct http_family family_debuginfod = {.routes = routes,
                                              .group = "debuginfod",
                                              .enabled = debuginfod_is_enabled,
                                              .prefix = debuginfod_path_prefix,
                                              .prefers_reset = prefers_reset,
                                              .error = write_error};
