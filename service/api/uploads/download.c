/* Downloads from the upload store: GET /<debug file>/<debug id>/<file> and, for symbols of try builds,
 * /try/<debug file>/<debug id>/<file>. GET /api/syminfo/<file>/<id> answers with the metadata of a symbol file. */
#include "api/uploads/uploads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/json_fields.h"
#include "cache/cache.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "fetch/fetch.h"

enum { DEBUG_ID_DIGITS = 33, DAY_S = 24 * 60 * 60 };

struct download_target {
    struct http_exchange *x;
    const struct config_store *config;
    bool is_try, in_try;          /* is_try: the path begins with /try/; in_try: also search the part of try builds */
    struct sl_str file, id, name; /* parts of the path: debug file (or code file), debug id (or code id), wanted file */
    struct sl_str key;            /* name in the store (uploads_make_key) */
    const char *scope;            /* scope being searched; empty: the shared one */
    char (*scopes)[SYMBFILE_SCOPE]; /* further scopes, searched first */
    size_t scope_count;
    uint64_t store_ns; /* time spent in the store */
};

/* ---- answers ---- */

static bool has_query(const struct http_exchange *x, const char *key)
{
    return http_query_count(x, key) > 0;
}

/* True if the request has a header "Debug: true", by which clients of Mozilla's service ask for the header Debug-Time. */
static bool wants_debug(const struct http_exchange *x)
{
    struct sl_str debug = http_header(x, "debug");
    return sl_str_equal_nocase(debug, SL_STR("true")) || sl_str_equal_nocase(debug, SL_STR("yes")) ||
           sl_str_equal(debug, SL_STR("1"));
}

/* Sets the CORS headers: pages of any origin may read downloads. Requests without Origin header get them too, as from Mozilla's server. */
static void allow_scripts(struct http_exchange *x)
{
    http_set_header(x, "Access-Control-Allow-Origin", SL_STR("*"));
    http_set_header(x, "Access-Control-Allow-Methods", SL_STR("GET"));
    http_set_header(x, "Access-Control-Allow-Headers",
                    SL_STR("accept,accept-encoding,authorization,content-type,dnt,origin,user-agent,x-csrftoken,"
                           "x-requested-with"));
}

/* Adds the headers that all answers to downloads have: CORS and, for clients that ask for it, Debug-Time, the seconds spent in the
 * store. */
static void download_finish(struct download_target *w)
{
    char text[40];
    allow_scripts(w->x);
    if (!wants_debug(w->x))
        return;
    snprintf(text, sizeof text, w->store_ns ? "%.6f" : "0", (double)w->store_ns / 1e9); /* "0": no store was asked */
    const char *kept = sl_arena_strndup(&w->x->arena, text, strlen(text));
    if (kept)
        http_set_header(w->x, "Debug-Time", sl_str(kept));
}

/* Answers 404 with a text. */
static void not_found(struct download_target *w, const char *text)
{
    http_reply(w->x, 404, "text/html; charset=utf-8", sl_str(text));
    download_finish(w);
}

/* Makes the ETag from size and time of the stored file and from `form`: "-gzip" if the file is sent compressed, "" if not, as the two forms
 * must have different ETags. */
static void set_etag(struct http_exchange *x, const struct store_meta *meta, const char *form, char etag[64])
{
    (void)x;
    snprintf(etag, 64, "\"%llx-%llx%s\"", (unsigned long long)meta->size, (unsigned long long)meta->modified_ns, form);
}

struct download_file {
    struct sl_mapping mapping; /* of the file to send */
    struct sl_error error;
    enum sl_code code; /* result of file_copy */
    int plain;         /* temporary file: a copy of the stored file, then decompressed; -1 = none yet */
};

/* Called when the file was sent. */
static void file_unmap(void *arg)
{
    sl_unmap(&((struct download_file *)arg)->mapping);
}

/* Pool work: copies a compressed file of the store to a temporary file, as fetch_unpack decompresses a file in place. */
static void file_copy(void *arg)
{
    struct download_file *file = arg;
    file->plain = sl_unlinked_file(cache_tmp_dir());
    file->code = SL_OK;
    if (file->plain < 0 || !sl_write_all(file->plain, file->mapping.bytes))
        file->code = sl_fail_errno(&file->error, errno, "cannot write a requested symbol file to a temporary file");
}

/* Replaces file->mapping by one of the decompressed file, for clients that do not accept gzip. On failure the mapping stays. */
static enum sl_code file_inflate(struct download_file *file) SL_SUSPENDS
{
    struct sl_mapping plain;
    file->plain = -1;
    enum sl_code code = pool_run(POOL_COMPRESS | POOL_HEAVY, file_copy, file, &file->error);
    if (code == SL_OK)
        code = file->code;
    if (code == SL_OK)
        code = fetch_unpack(file->plain, 0, &file->error); /* 0: the limit of downloads */
    if (code == SL_OK)
        code = pool_map_fd(file->plain, &plain, &file->error);
    sl_close(file->plain);
    if (code == SL_OK) {
        sl_unmap(&file->mapping);
        file->mapping = plain;
    }
    return code;
}

/* Answers that the store failed: 503 for SL_BUSY, else 500. Answers nothing if the request was cancelled. */
static void answer_store_failure(struct http_exchange *x, enum sl_code code)
{
    if (code != SL_CANCELLED)
        uploads_error(x, code == SL_BUSY ? 503 : 500, NULL);
}

/* Sends the mapped file of the store. One that is stored compressed is sent so if the client accepts gzip, else it is decompressed
 * first. */
static void send_file(struct download_target *w, struct download_file *file, const struct store_meta *meta)
{
    struct http_exchange *x = w->x;
    const char *type = uploads_media_type(w->config, w->name, &x->arena);
    char etag[64];
    bool as_it_is = !meta->is_packed || http_accepts_gzip(x);
    set_etag(x, meta, meta->is_packed && as_it_is ? "-gzip" : "", etag);
    if (!as_it_is) {
        enum sl_code code = file_inflate(file);
        if (code != SL_OK) {
            sl_unmap(&file->mapping);
            answer_store_failure(x, code);
            return;
        }
    } else if (meta->is_packed) {
        http_set_header(x, "Content-Encoding", SL_STR("gzip"));
    }
    if (meta->is_packed)
        http_set_header(x, "Vary", SL_STR("Accept-Encoding"));
    http_set_header(x, "Cache-Control", *w->scope ? SL_STR("no-transform, private") : SL_STR("no-transform"));
    http_reply_file(x, type ? type : "application/octet-stream", &file->mapping, etag, meta->modified_ns / 1000000000,
                    file_unmap, file);
    download_finish(w);
}

/* Redirects the client to the URL of the file. A HEAD request gets 200 with the Location, as it only asks whether the file exists. */
static void redirect(struct download_target *w, const char *url)
{
    http_reply_empty(w->x, sl_str_equal(w->x->method, SL_STR("HEAD")) ? 200 : 302);
    http_set_header(w->x, "Location", sl_str(url));
    download_finish(w);
}

/* ---- the store ---- */

/* Searches the file in one part of the store (releases or try builds), in the scope w->scope. If it is there, sends it, or redirects to the
 * store's URL of it, as mozilla.store.serve says. True if the request is answered: the file was found, or there was an error. */
static bool try_part(struct download_target *w, enum store_part part)
{
    struct http_exchange *x = w->x;
    struct sl_str name = uploads_name(&x->arena, w->scope, store_prefixes[part], w->key);
    /* files of a scope are private, so they are not at the public URL: they are sent instead of a redirect */
    bool direct = w->config->serve == STORE_DIRECT || (*w->scope && w->config->public_url);
    const char *url = direct || !name.data ? NULL : store_url(name, &x->arena);
    struct download_file *file = SL_ARENA_NEW(&x->arena, struct download_file);
    struct store_meta meta;
    struct sl_error error;
    if (!file || !name.data) {
        http_reply_no_memory(x);
        return true;
    }
    uint64_t begin = clock_mono_ns();
    /* false: without the MD5 */
    enum sl_code code = url ? store_stat(name, false, &meta, &error) : store_open(name, &file->mapping, &meta, &error);
    w->store_ns += clock_mono_ns() - begin;
    metric_observe_since(METRIC_TECKEN_EXISTS, begin, NULL);
    if (code == SL_NOT_FOUND)
        return false;
    if (code == SL_OK && meta.modified_ns)
        metric_observe(METRIC_TECKEN_FILE_AGE, ((double)clock_wall_us() / 1e6 - (double)meta.modified_ns / 1e9) / DAY_S,
                       part == STORE_TRY ? "try" : "regular", NULL, NULL);
    if (code != SL_OK)
        answer_store_failure(x, code);
    else if (url)
        redirect(w, url);
    else
        send_file(w, file, &meta);
    return true;
}

/* Searches the other symbol stores (mozilla.store.extra), and redirects to the first that has the file. True if the request is answered:
 * the file was found, or there was an error. */
static bool try_extra(struct download_target *w)
{
    const char *url;
    uint64_t begin = clock_mono_ns();
    enum sl_code code = uploads_find_extra(w->config, w->key, &w->x->arena, &url);
    w->store_ns += w->config->extra_count ? clock_mono_ns() - begin : 0;
    if (code == SL_OK)
        redirect(w, url);
    else if (code != SL_NOT_FOUND && code != SL_CANCELLED)
        uploads_error(w->x, 503, NULL);
    return code != SL_NOT_FOUND; /* cancelled: nobody is answered */
}

/* ---- code ids ---- */

/* Reads the metadata of a symbol file (a JSON document, codeinfo.c), by its file name and its debug or code id, in one part of the store.
 * SL_NOT_FOUND if there is none. */
static enum sl_code read_codeinfo(struct http_exchange *x, const char *scope, enum store_part part, struct sl_str file,
                                  struct sl_str id, struct sl_buf *info, struct sl_error *error)
{
    static const char *const prefixes[STORE_PARTS] = {"codeinfo/", "try/codeinfo/"};
    struct sl_str parts[3] = {file, id, SL_STR("x")}, key;
    if (!uploads_make_key(&x->arena, parts, &key)) /* sets the size when out of memory; else a part is invalid */
        return key.size ? sl_fail(error, SL_BUSY, "out of memory") : SL_NOT_FOUND;
    key.size -= 2; /* metadata is stored as "<file>/<ID>": a key without its third part "/x" */
    struct sl_str name = uploads_name(&x->arena, scope, prefixes[part], key);
    return name.data ? store_read(name, info, error) : sl_fail(error, SL_BUSY, "out of memory");
}

/* Searches the metadata of a symbol file in the part of releases and, if `in_try`, then in that of try builds; `*is_try` says in which one
 * it was found. SL_NOT_FOUND if there is none. */
static enum sl_code find_codeinfo(struct http_exchange *x, const char *scope, bool in_try, struct sl_str file,
                                  struct sl_str id, struct sl_buf *info, bool *is_try)
{
    struct sl_error error;
    uint64_t begin = clock_mono_ns();
    enum sl_code code = read_codeinfo(x, scope, STORE_REGULAR, file, id, info, &error);
    *is_try = code == SL_NOT_FOUND;
    if (*is_try && in_try)
        code = read_codeinfo(x, scope, STORE_TRY, file, id, info, &error);
    metric_observe_since(METRIC_TECKEN_SYMINFO, begin, NULL);
    /* Mozilla's service counts here whether the answer was cached; this one caches none */
    metric_add(METRIC_TECKEN_SYMINFO_CACHED, 1, "false", NULL, NULL);
    return code;
}

struct codeinfo_texts {
    struct sl_str debug_id, debug_filename, code_file, code_id, generator, key;
};

/* Parses the metadata of a symbol file. SL_NOT_FOUND if it is malformed or lacks debug id, debug file or key, which the answers need;
 * SL_BUSY when out of memory. */
static enum sl_code codeinfo_texts(struct sl_arena *arena, const struct sl_buf *info, struct codeinfo_texts *texts)
{
    static const struct sl_field fields[] = {
        SL_FIELD(TEXT, false, codeinfo_texts, debug_id, "debug_id"),
        SL_FIELD(TEXT, false, codeinfo_texts, debug_filename, "debug_filename"),
        SL_FIELD(TEXT, false, codeinfo_texts, code_file, "code_file"),
        SL_FIELD(TEXT, false, codeinfo_texts, code_id, "code_id"),
        SL_FIELD(TEXT, false, codeinfo_texts, generator, "generator"),
        SL_FIELD(TEXT, false, codeinfo_texts, key, "key"),
        SL_FIELDS_END,
    };
    struct sl_json j = sl_json(sl_buf_view(info), arena, true); /* true: also strings that are not UTF-8 */
    *texts = (struct codeinfo_texts){.key = {NULL, 0}};
    bool good =
        sl_json_read_object(&j, fields, texts) && texts->debug_id.size && texts->debug_filename.size && texts->key.size;
    return j.busy ? SL_BUSY : good ? SL_OK : SL_NOT_FOUND;
}

/* Returns the query of the request's target with its "?", or an empty text. */
static struct sl_str query_text(const struct http_exchange *x)
{
    const char *mark = memchr(x->target.data, '?', x->target.size);
    return mark ? (struct sl_str){mark, (size_t)(x->target.data + x->target.size - mark)} : SL_STR("");
}

/* For a path with a code id instead of a debug id: finds the metadata by code file and code id, and redirects to the path of the symbol
 * file, which has the debug id. Metadata is stored under both ids, so the code id in it is compared. True if the request is answered: the
 * symbol file was found, or there was an error. */
static bool find_by_code(struct download_target *w)
{
    struct http_exchange *x = w->x;
    struct codeinfo_texts texts;
    struct sl_buf info = {0}, url = {0};
    bool in_try; /* whether the metadata was in the part of try builds: not used */
    metric_add(METRIC_TECKEN_BY_CODE_ID, 1, NULL, NULL, NULL);
    enum sl_code code = find_codeinfo(x, w->scope, w->in_try, w->file, w->id, &info, &in_try);
    if (code == SL_OK)
        code = codeinfo_texts(&x->arena, &info, &texts);
    bool found = code == SL_OK && sl_str_equal_nocase(texts.code_id, w->id);
    if (found) {
        sl_buf_cstr(&url, w->is_try ? "/try/" : "/"); /* false below: slashes are percent-encoded, too */
        fetch_encode(&url, texts.debug_filename, false);
        sl_buf_u8(&url, '/');
        sl_buf_str(&url, texts.debug_id);
        sl_buf_u8(&url, '/');
        fetch_encode(&url, w->name, false);
        sl_buf_str(&url, query_text(x));
        struct sl_str location = sl_buf_move_to_arena(&url, &x->arena);
        http_reply_empty(x, 302);
        if (location.data)
            http_set_header(x, "Location", location);
        else
            http_reply_no_memory(x);
        download_finish(w);
    }
    sl_buf_free(&info);
    if (code != SL_OK && code != SL_NOT_FOUND) {
        answer_store_failure(x, code);
        return true;
    }
    return found;
}

/* ---- downloads ---- */

/* True for requests of debuggers that no store can answer: a debug id of zeros, the file "file.ptr", or a file whose extension is not in
 * mozilla.store.download_extensions. */
static bool is_ignored(const struct download_target *w)
{
    bool zeros = w->id.size == DEBUG_ID_DIGITS;
    for (size_t i = 0; i < w->id.size; i++)
        zeros = zeros && w->id.data[i] == '0';
    if (zeros || sl_str_equal(w->name, SL_STR("file.ptr")))
        return true;
    for (size_t i = 0; i < w->config->download_extension_count; i++)
        if (sl_str_ends(w->name, w->config->download_extensions[i]))
            return false;
    return true;
}

/* Searches the file in the part of releases and, if w->in_try, in that of try builds, in the scope w->scope. True if the request is
 * answered. */
static bool try_parts(struct download_target *w)
{
    return try_part(w, STORE_REGULAR) || (w->in_try && try_part(w, STORE_TRY));
}

/* True if a symbol file is wanted and the id is too short for a debug id: then it may be a code id. */
static bool is_by_code(const struct download_target *w)
{
    return sl_str_ends(w->name, SL_STR(".sym")) && w->id.size < DEBUG_ID_DIGITS;
}

/* Calls `try` with w->scope set to each scope that the request may read and then to the shared one, until it returns true: the request is
 * answered. False if it never did. */
static bool try_scopes(struct download_target *w, bool (*try)(struct download_target *w))
{
    for (size_t i = 0; i < w->scope_count; i++) {
        w->scope = w->scopes[i];
        if (try(w))
            return true;
    }
    w->scope = "";
    return try(w);
}

/* Answers a download. Searches the store, in the scopes of the request and the shared one, then other symbol stores; if no one has the
 * file, treats the id as a code id and searches the symbol file by that. */
static void download_serve(struct http_exchange *x, bool is_try)
{
    const struct service *service = x->service;
    /* a reference, as `token` and `w` point into the configuration, which may be replaced meanwhile */
    const struct config *config = config_retain(service->config);
    const struct mozilla_token *token;
    uint64_t begin = clock_mono_ns();
    struct download_target w = {.x = x,
                                .config = &config->mozilla.store,
                                .is_try = is_try,
                                .in_try = is_try || has_query(x, "try"),
                                .file = x->captures[0],
                                .id = x->captures[1],
                                .name = x->captures[2]};
    if (!uploads_get_token(x, &token)) {
        /* the token is invalid; uploads_get_token has answered */
    } else if (!uploads_make_key(&x->arena, x->captures, &w.key)) {
        uploads_error(x, w.key.size ? 503 : 404, NULL); /* no key, but its size: out of memory */
    } else if (is_ignored(&w)) {
        not_found(&w, "Symbol Not Found (and ignored)");
    } else if (!uploads_list_scopes(x, token, &w.scopes, &w.scope_count)) {
        http_reply_no_memory(x);
    } else if (!try_scopes(&w, try_parts) && !try_extra(&w) && !(is_by_code(&w) && try_scopes(&w, find_by_code))) {
        not_found(&w, "Symbol Not Found");
    }
    metric_observe_since(METRIC_TECKEN_DOWNLOAD, begin, NULL);
    config_release(config);
}

static void download_regular(struct http_exchange *x)
{
    download_serve(x, false);
}

static void download_try(struct http_exchange *x)
{
    download_serve(x, true);
}

/* ---- information on a file ---- */

/* Answers with the metadata of a symbol file and its URL at this service. */
static void write_syminfo(struct http_exchange *x, const struct codeinfo_texts *texts, bool is_try)
{
    struct sl_buf body = {0}, url = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    http_put_base_url(x, &url);
    sl_buf_cstr(&url, is_try ? "try/" : "");
    fetch_encode(&url, texts->key, true); /* true: keeps slashes */
    const struct {
        const char *key;
        struct sl_str text;
    } members[] = {{"debug_id", texts->debug_id},   {"debug_filename", texts->debug_filename},
                   {"code_file", texts->code_file}, {"code_id", texts->code_id},
                   {"generator", texts->generator}, {"url", sl_buf_view(&url)}};
    sl_json_begin_object(&w);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        sl_json_member_str(&w, members[i].key, members[i].text);
    sl_json_end_object(&w);
    http_reply_json(x, 200, &body);
    sl_buf_free(&url);
}

/* GET /api/syminfo: answers with the metadata of the symbol file of a code file and code id (or debug file and debug id). Searches the
 * scopes of the request, then the shared one, which is the empty scope. */
static void syminfo(struct http_exchange *x)
{
    const struct mozilla_token *token;
    struct codeinfo_texts texts;
    struct sl_buf info = {0};
    bool is_try;
    char(*scopes)[SYMBFILE_SCOPE];
    size_t count;
    if (!uploads_get_token(x, &token))
        return;
    enum sl_code code = uploads_list_scopes(x, token, &scopes, &count) ? SL_NOT_FOUND : SL_BUSY;
    for (size_t i = 0; code == SL_NOT_FOUND && i <= count; i++)
        /* true: also in the part of try builds */
        code = find_codeinfo(x, i < count ? scopes[i] : "", true, x->captures[0], x->captures[1], &info, &is_try);
    if (code == SL_OK)
        code = codeinfo_texts(&x->arena, &info, &texts);
    if (code != SL_OK && code != SL_NOT_FOUND)
        answer_store_failure(x, code);
    else if (code == SL_NOT_FOUND)
        http_reply(x, 404, "text/html; charset=utf-8", SL_STR("Code file / id Not Found"));
    else
        write_syminfo(x, &texts, is_try);
    allow_scripts(x);
    sl_buf_free(&info);
}

/* ---- the family ---- */

static void download_unknown(struct http_exchange *x)
{
    uploads_error(x, 404, NULL);
}

/* http_route.there of unknown paths below /api/: true if a store is configured, but not for /api/symbols, which belongs to another API. */
static bool api_there(const struct http_exchange *x)
{
    return uploads_find(x) && !sl_str_starts(x->path, SL_STR("/api/symbols"));
}

#define DOWNLOAD(pattern_, handler_)                                                                                   \
    {                                                                                                                  \
        .method = "GET", .pattern = (pattern_), .handler = (handler_), .there = uploads_find,                          \
        .rights = API_RIGHT("downloads")                                                                               \
    }
#define UNKNOWN(method_, pattern_, there_)                                                                             \
    {                                                                                                                  \
        .method = (method_), .pattern = (pattern_), .handler = download_unknown, .there = (there_), .immediate = true  \
    }
static const struct http_route routes[] = {
    DOWNLOAD("/try/{file}/{id}/{name}", download_try),
    UNKNOWN("GET", "/try/{rest..}", uploads_find),
    DOWNLOAD("/api/syminfo/{file}/{id}", syminfo),
    UNKNOWN("GET", "/api/{rest..}", api_there),
    UNKNOWN("POST", "/api/{rest..}", api_there),
    DOWNLOAD("/{file}/{id}/{name}", download_regular),
    {.method = NULL},
};

const struct http_family family_downloads = {
    .routes = routes, .group = "downloads", .error = uploads_error, .allow_separator = ", "};
