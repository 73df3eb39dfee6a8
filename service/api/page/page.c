/* Serves GET /, the files below /page/, and GET /openapi.yaml, the description of all APIs. */
#include "api/page/page.h"

#include "core/duration.h"

static const struct config *page_config(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config;
}

/* Adds security headers: the page may load nothing from other origins, and no other page may show it in a frame. */
static void protect(struct http_exchange *x)
{
    http_set_header(
        x, "Content-Security-Policy",
        SL_STR("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
               "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"));
    http_set_header(x, "Referrer-Policy", SL_STR("no-referrer"));
    http_set_header(x, "Cross-Origin-Opener-Policy", SL_STR("same-origin"));
}

/* ---- files ---- */

static const struct sl_str description = SL_STR("openapi.yaml");

/* Returns the file of the page with this name; NULL if there is none. */
static const struct page_file *file_named(struct sl_str name)
{
    for (const struct page_file *file = page_files; file->type; file++)
        if (sl_str_equal(file->name, name))
            return file;
    return NULL;
}

/* Replies with a file of the page, compressed if the client accepts that. Only then it gets an ETag, which stands for exact bytes:
 * plain bytes may still be compressed by the server. */
static void reply_page_file(struct http_exchange *x, const struct page_file *file, struct sl_str cache_control)
{
    bool packed = http_accepts_gzip(x);
    struct sl_bytes bytes = packed ? file->packed : file->plain;
    if (packed && http_has_tag(x, file->tag))
        http_reply_empty(x, 304);
    else
        http_reply(x, 200, file->type, (struct sl_str){(const char *)bytes.data, bytes.size});
    protect(x);
    http_set_header(x, "Vary", SL_STR("Accept-Encoding"));
    http_set_header(x, "Cache-Control", cache_control);
    if (packed)
        http_set_header(x, "ETag", file->tag);
    if (packed && x->status == 200)
        http_set_header(x, "Content-Encoding", SL_STR("gzip"));
}

/* Replies with the page, for which browsers ask each time, as it has the names of the current files. If the page is disabled, this
 * route exists for Mozilla's API, and the reply is a page with the words by which its clients recognize their server. */
static void answer_page(struct http_exchange *x)
{
    static const struct sl_str mozilla_page =
        SL_STR("<!doctype html><html lang=\"en\"><head><title>symloom</title></head>"
               "<body><p>Mozilla Symbolication Server</p></body></html>");
    const struct config *config = page_config(x);
    if (config->page_enabled) {
        reply_page_file(x, file_named(config->mozilla.on ? SL_STR("mozilla.html") : SL_STR("index.html")),
                        SL_STR("private, no-cache"));
    } else {
        http_reply(x, 200, "text/html; charset=utf-8", mozilla_page);
        protect(x);
    }
}

/* True if the file is served below /page/; the others have paths of their own. */
static bool is_asset(const struct page_file *file)
{
    return !sl_str_ends(file->name, SL_STR(".html")) && !sl_str_equal(file->name, description);
}

/* Serves a file below /page/; browsers may keep it for an hour, as the page names it with its version. */
static void answer_asset(struct http_exchange *x)
{
    const struct page_file *file = file_named(x->captures[0]);
    if (file && is_asset(file))
        reply_page_file(x, file, SL_STR("private, max-age=3600"));
    else
        http_reply_error(x, 404, NULL);
}

static void answer_description(struct http_exchange *x)
{
    reply_page_file(x, file_named(description), SL_STR("private, no-cache"));
}

/* ---- data for the page ---- */

/* Answers with an example of a request that the page can send: the stack of this service. Fails only when out of memory. */
static void answer_example(struct http_exchange *x)
{
    struct sl_buf json = {0};
    if (page_example(&json)) {
        http_reply_json(x, 200, &json);
    } else {
        sl_buf_free(&json);
        http_reply_no_memory(x);
    }
}

/* Writes what the page shows about the service: version, number of sources, limits. */
static void write_about(const struct config *config, struct sl_json_writer *w)
{
    const struct {
        const char *key;
        uint64_t value;
    } limits[] = {
        {"symbolicate_body_max_bytes", config->symbolicate_body_max_bytes},
        {"crash_file_body_max_bytes", config->crash_file_body_max_bytes},
        {"max_request_frames", config->max_request_frames},
        {"max_request_modules", config->max_request_modules},
        {"max_response_frames", config->max_response_frames},
        {"max_concurrent_requests", config->max_concurrent_requests},
        {"max_job_duration_seconds", DURATION_MS(config->max_job_duration_ns) / 1000},
        {"result_ttl_seconds", DURATION_MS(config->result_ttl_ns) / 1000},
    };
    sl_json_begin_object(w);
    sl_json_member_str(w, "version", SL_STR(SYMLOOM_VERSION));
    sl_json_member_u64(w, "sources", config->source_count);
    sl_json_member_object(w, "limits");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sl_json_member_u64(w, limits[i].key, limits[i].value);
    sl_json_end_object(w);
    sl_json_end_object(w);
}

/* Answers what the page shows about the service. */
static void answer_about(struct http_exchange *x)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    write_about(page_config(x), &w);
    if (json.failed) {
        sl_buf_free(&json);
        http_reply_no_memory(x);
    } else {
        http_reply_json(x, 200, &json);
    }
}

/* ---- routes ---- */

#define PAGE_ROUTE(pattern_, handler_, ...)                                                                            \
    {                                                                                                                  \
        .method = "GET", .pattern = (pattern_), .handler = (handler_), .rights = API_RIGHT("page"), .immediate = true, \
        __VA_ARGS__                                                                                                    \
    }
static const struct http_route page_routes[] = {
    PAGE_ROUTE("/", answer_page, .page_view = true),
    {.method = NULL},
};

static const struct http_route asset_routes[] = {
    PAGE_ROUTE("/page/example.json", answer_example),
    PAGE_ROUTE("/page/about.json", answer_about),
    PAGE_ROUTE("/page/{asset}", answer_asset),
    {.method = "POST",
     .pattern = "/page/read",
     .handler = page_read,
     .body_limit = json_job_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("page")},
    {.method = NULL},
};

/* This route needs no access key: the description is the same for every service of this version. */
static const struct http_route description_routes[] = {
    {.method = "GET", .pattern = "/openapi.yaml", .handler = answer_description, .immediate = true},
    {.method = NULL},
};

static bool page_enabled(const void *service)
{
    return ((const struct service *)service)->config->page_enabled;
}

static bool page_or_mozilla_enabled(const void *service)
{
    return page_enabled(service) || ((const struct service *)service)->config->mozilla.on;
}

const struct http_family family_page = {
    .routes = page_routes, .enabled = page_or_mozilla_enabled, .group = "page", .offers_basic_auth = true};
const struct http_family family_assets = {
    .routes = asset_routes, .enabled = page_enabled, .group = "page", .offers_basic_auth = true};
const struct http_family family_description = {.routes = description_routes, .offers_basic_auth = true};
