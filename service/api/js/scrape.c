/* Scraping: downloads scripts, maps and sources from the web, as the request's rules allow. */
#include "api/js/js.h"
#include "core/duration.h"
#include "core/metrics.h"

/* Scraped files are fetched again every hour; the minute of it depends on the URL, so that not all are fetched at once. */
enum { PERIOD_S = 3600 };

/* ---- rules ---- */

/* True if the path begins with a URL scheme and ":" (RFC 3986, section 3.1), and sets `*scheme`. For http and https, scraping_url
 * also requires a host. */
static bool is_url(struct sl_str path, struct sl_str *scheme)
{
    size_t i = 0;
    for (; i < path.size && path.data[i] != ':'; i++) {
        char c = path.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || !(sl_is_digit(c) || c == '+' || c == '-' || c == '.')))
            return false;
    }
    *scheme = (struct sl_str){path.data, i};
    return i > 0 && i < path.size;
}

static bool is_web(struct sl_str scheme)
{
    return sl_str_equal_nocase(scheme, SL_STR("http")) || sl_str_equal_nocase(scheme, SL_STR("https"));
}

/* Records a failed attempt. `details` (NULL: none) is moved to the arena; when out of memory the request ends. */
static void scrape_refuse(struct js_request *r, struct js_file *file, const char *reason, struct sl_buf *details)
{
    struct sl_str text = details ? sl_buf_move_to_arena(details, r->arena) : SL_STR("");
    if (!text.data)
        r->finder.stopped = SL_BUSY;
    file->attempt = (struct js_attempt){JS_FAILURE, reason, text};
}

/* True if the request may fetch the URL; otherwise the refusal is recorded as the file's attempt. */
static bool scrape_allowed(struct js_request *r, struct js_file *file, struct sl_str scheme, struct sl_str url)
{
    const struct scraping *s = &r->scraping;
    struct sl_buf details = {0};
    if (s->enabled == SL_BOOL_FALSE || r->allow_scraping == SL_BOOL_FALSE) {
        file->disabled = true;
        scrape_refuse(r, file, "disabled", NULL);
        return false;
    }
    if (!is_web(scheme)) {
        sl_buf_printf(&details, "`" SL_STR_FMT "` is not an allowed download scheme", SL_STR_ARG(scheme));
        scrape_refuse(r, file, "invalid_host", &details);
        return false;
    }
    if (!scraping_origin_allowed(r->arena, s->allowed_origins, s->allowed_origin_count, url)) {
        sl_buf_printf(&details, SL_STR_FMT " is not an allowed download origin", SL_STR_ARG(file->key.path));
        scrape_refuse(r, file, "invalid_host", &details);
        return false;
    }
    /* other addresses that are reserved are refused when the connection is made */
    const char *host = fetch_url_host(r->arena, url.data);
    bool local = host && (strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0);
    if (local && !r->config->connect_to_reserved_ips) {
        sl_buf_printf(&details, "Can't connect to restricted host %s", host);
        scrape_refuse(r, file, "invalid_host", &details);
    }
    return !local || r->config->connect_to_reserved_ips;
}

/* ---- the download ---- */

static struct sl_str without_fragment(struct sl_str url, struct sl_arena *arena)
{
    const char *hash = memchr(url.data, '#', url.size);
    size_t size = hash ? (size_t)(hash - url.data) : url.size;
    return (struct sl_str){sl_arena_strndup(arena, url.data, size), size};
}

/* Returns the URL, "#" and the time at which the URL's current hour began (s). As part of the cache key this makes the file expire
 * every hour. Data NULL when out of memory. */
static struct sl_str url_of_hour(struct sl_str url, int64_t now_s, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    int64_t begin;
    if (!scraping_period_begin(url, PERIOD_S, now_s, &begin))
        return (struct sl_str){NULL, 0};
    sl_buf_printf(&text, SL_STR_FMT "#%lld", SL_STR_ARG(url), (long long)begin);
    return sl_buf_move_to_arena(&text, arena);
}

/* Returns the word for `reason` of a failed attempt in the answer. */
static const char *failure_reason(enum sl_code code)
{
    switch (code) {
    case SL_NOT_FOUND: return "not_found";
    case SL_PERMISSION_DENIED: return "permission_denied";
    case SL_TIMEOUT: return "timeout";
    case SL_DOWNLOAD_ERROR: return "download_error";
    default: return "other";
    }
}

/* Records a failed download. `details` in the answer is the error's message; for a timeout its duration; for a file that was not found
 * an empty text. */
static void scrape_failed(struct js_request *r, struct js_file *file, const struct sl_error *error)
{
    struct sl_buf details = {0};
    if (file->code == SL_TIMEOUT) {
        sl_buf_cstr(&details, "Timeout after ");
        duration_format(error->duration_ns, &details);
    } else if (file->code != SL_NOT_FOUND) {
        sl_buf_cstr(&details, error->message);
    }
    scrape_refuse(r, file, failure_reason(file->code), &details);
}

/* Downloads the file, or gets it from the cache: file->uri, which has the hour, is part of its key. */
static void scrape_get(struct js_request *r, struct js_file *file)
{
    struct sl_error error = {.code = SL_OK};
    file->request.location = file->uri;
    file->code = source_file_get(&file->request, r->arena, &file->item, &error);
    metric_observe(METRIC_JS_ITEMS, 1, "scraped_files", NULL, NULL);
    if (file->code == SL_CANCELLED || file->code == SL_BUSY)
        r->finder.stopped = file->code;
    else if (file->code == SL_OK)
        file->attempt.status = JS_SUCCESS;
    else
        scrape_failed(r, file, &error);
}

/* The result is in file->code and file->attempt; a path that is no valid URL leaves both unchanged, so that the file is not found. The
 * URL's fragment is removed before the download, as it is not sent. */
void js_scrape(struct js_request *r, struct js_file *file)
{
    struct sl_str scheme, url;
    if (!is_url(file->key.path, &scheme))
        return;
    /* URLs of other schemes need no normal form: scrape_allowed refuses them */
    url = is_web(scheme) ? scraping_url(r->arena, file->key.path) : file->key.path;
    if (!url.data || !scrape_allowed(r, file, scheme, url))
        return;
    url = without_fragment(url, r->arena);
    file->origin = JS_SCRAPED;
    file->match = MATCH_FROM_WEB;
    file->request = (struct source_request){
        .scope = r->scope,
        .url = url,
        .headers = r->scraping.headers,
        .header_count = r->scraping.header_count,
        .accept_invalid_certs = r->scraping.verify_ssl == SL_BOOL_FALSE,
        .origin_allowed = scraping_origin_allowed,
        .origins = r->scraping.allowed_origins,
        .origin_count = r->scraping.allowed_origin_count,
        .is_utf8 = true,
    };
    file->uri = url.data ? url_of_hour(url, r->finder.now_s, r->arena) : url; /* data NULL if `url` is: out of memory */
    if (file->uri.data)
        scrape_get(r, file);
    else
        r->finder.stopped = SL_BUSY;
}
