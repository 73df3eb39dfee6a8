/* Downloads archives from build servers. Each redirect target is checked before a request is sent to it. */
#include "api/uploads/by_url.h"

#include <curl/curl.h>
#include <stdio.h>

/* HEAD_S, GET_S: time limits of requests, in seconds. PAUSE_MS: pause before the first retry; each further pause is twice as long. */
enum { RETRIES = 5, PAUSE_MS = 200, HEAD_S = 5, GET_S = 300, MAX_REDIRECTS = 5 };
#define SECOND_NS UINT64_C(1000000000)

/* True if archives may be downloaded from this URL: an https URL of a host in mozilla.store.allowed_download_domains, or any URL if
 * allow_any_domain is set. Otherwise `failure` is set. `c_url` is the same text as `url`, as a C string. */
static bool check_url(struct archive *archive, struct sl_str url, const char *c_url)
{
    const struct config_store *config = archive->config;
    const char *host = fetch_url_valid(c_url) ? fetch_url_host(archive->arena, c_url) : NULL;
    if (!host)
        return archive_fail(archive, 400, "Enter a valid URL.");
    if (config->allow_any_domain)
        return true;
    if (!sl_str_starts(url, SL_STR("https://")))
        return archive_fail(archive, 400, "Insecure URL");
    for (size_t i = 0; i < config->allowed_download_domain_count; i++)
        if (sl_str_equal_nocase(sl_str(host), config->allowed_download_domains[i]))
            return true;
    return archive_fail(archive, 400, "Not an allowed domain ('%s') to download from.", host);
}

/* ---- HEAD requests ---- */

struct url_head { /* response to a HEAD request */
    struct archive *archive;
    int status;               /* HTTP status from 300 on; 0: it was below 300, or there was no response */
    bool has_size, no_memory; /* no_memory: for `location` */
    uint64_t size;
    const char *location; /* NULL: none, or no_memory */
};

/* fetch_request.field, called for each header field of a response: stores Location and Content-Length. A length of 19 or more digits, which
 * might overflow, counts as absent. */
static void head_field(void *arg, struct sl_str name, struct sl_str value)
{
    struct url_head *head = arg;
    if (sl_str_equal_nocase(name, SL_STR("location"))) {
        head->location = sl_arena_strndup(head->archive->arena, value.data, value.size);
        head->no_memory = !head->location;
    }
    if (!sl_str_equal_nocase(name, SL_STR("content-length")))
        return;
    head->has_size = value.size < 19 && sl_parse_u64(value, &head->size);
}

/* fetch_request.refused, called for a status of 300 or more: stores it, as head_with_retries decides by it. Returns SL_PERMISSION_DENIED
 * because the fetcher does not retry after that. */
static enum sl_code head_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)body;
    ((struct url_head *)arg)->status = status;
    return sl_fail(error, SL_PERMISSION_DENIED, "the server of the archive responded with status %d", status);
}

enum sl_code uploads_head(struct fetch_request request, struct sl_error *error)
{
    struct sl_buf nothing = {0};
    request.method = "HEAD";
    request.source = "uploads";
    request.keep_wrapper = request.whole = true; /* there is no body to decompress or to split */
    request.max_size = INT64_MAX;                /* any Content-Length */
    request.timeout_ns = HEAD_S * SECOND_NS;
    enum sl_code code = fetch_text(&request, &nothing, error);
    sl_buf_free(&nothing);
    return code;
}

/* Sends HEAD once; `*head` gets what the response says. */
static enum sl_code head_once(struct url_head *head, const char *url, struct sl_error *error)
{
    *head = (struct url_head){.archive = head->archive};
    return uploads_head((struct fetch_request){.url = url, .refused = head_refused, .field = head_field, .arg = head},
                        error);
}

/* Sends HEAD to one URL, with retries after the statuses 429 and 500; `*head` gets what the last response says, which may be another error
 * status. False if there was no response, 429 or 500 came again and again, or the request was cancelled: archive_fail() has stored why. */
static bool head_with_retries(struct url_head *head, const char *url)
{
    struct sl_error error;
    uint64_t pause = PAUSE_MS;
    enum sl_code code = head_once(head, url, &error);
    for (int i = 0; i < RETRIES && (head->status == 429 || head->status == 500); i++, pause *= 2) {
        if (!fiber_sleep(pause))
            return archive_fail(head->archive, 503, "cancelled");
        code = head_once(head, url, &error);
    }
    if (head->status == 429 || head->status == 500)
        return archive_fail(head->archive, 500, "RetryError trying to open %s", url);
    return code == SL_OK || head->status || archive_fail(head->archive, 500, "ConnectionError trying to open %s", url);
}

/* Resolves a Location header against `url` (RFC 3986, section 5.2). One that is absolute, or cannot be resolved, is returned as it is;
 * check_url refuses the latter. NULL when out of memory. */
static const char *url_resolve(struct archive *archive, const char *url, const char *location)
{
    CURLU *parser = curl_url();
    char *text = NULL;
    const char *found = location;
    CURLUcode code =
        parser ? curl_url_set(parser, CURLUPART_URL, location, CURLU_NON_SUPPORT_SCHEME) : CURLUE_OUT_OF_MEMORY;
    if (code != CURLUE_OK && code != CURLUE_OUT_OF_MEMORY) { /* no scheme: relative */
        code = curl_url_set(parser, CURLUPART_URL, url, 0);
        if (code == CURLUE_OK)
            code = curl_url_set(parser, CURLUPART_URL, location, 0);
        if (code == CURLUE_OK)
            code = curl_url_get(parser, CURLUPART_URL, &text, 0);
        if (code == CURLUE_OK)
            found = sl_arena_strndup(archive->arena, text, strlen(text));
    }
    curl_free(text);
    curl_url_cleanup(parser);
    return code == CURLUE_OUT_OF_MEMORY ? NULL : found;
}

/* ---- the download ---- */

/* Follows the redirects from the URL `first` by HEAD requests, and checks each target before a request is sent to it. Sets `*last` to the
 * final URL, and u->size to the archive's size. False: `failure` is set. */
static bool find_size(struct uploads_url *u, const char *first, const char **last)
{
    struct archive *archive = u->archive;
    struct url_head head = {.archive = archive};
    const char *url = first;
    for (;; url = *last) {
        if (!check_url(archive, sl_str(url), url) || !head_with_retries(&head, url))
            return false;
        if (head.no_memory)
            return archive_fail(archive, 503, "out of memory");
        *last = url;
        if (!fetch_is_redirect(head.status) || !head.location)
            break;
        if (u->redirect_count == MAX_REDIRECTS)
            return archive_fail(archive, 400, "Too many redirects trying to open %s", first);
        if (!(*last = url_resolve(archive, url, head.location)))
            return archive_fail(archive, 503, "out of memory");
        u->redirects[u->redirect_count++] = sl_str(*last);
    }
    if (head.status >= 500)
        return archive_fail(archive, 500, "%s errored (%d)", url, head.status);
    if (head.status >= 300)
        return archive_fail(archive, 400, "%s can't be found (%d)", url, head.status);
    if (!head.has_size)
        return archive_fail(archive, 400, "%s has no content length", url);
    u->size = head.size;
    return head.size <= archive->config->max_upload_size || archive_fail(archive, 413, "Upload is too large");
}

/* fetch_request.may_follow, for redirects of the download itself: true if archives may be downloaded from the URL. */
static bool may_redirect(void *arg, const char *url)
{
    struct uploads_url *u = arg;
    bool good = check_url(u->archive, sl_str(url), url);
    u->archive->failure.status = 0; /* set by check_url; instead uploads_fetch reports the download's error */
    return good;
}

/* fetch_request.refused: returns SL_PERMISSION_DENIED for any error status, as the fetcher does not retry after that. */
static enum sl_code get_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)arg, (void)body;
    return sl_fail(error, SL_PERMISSION_DENIED, "the server of the archive responded with status %d", status);
}

/* Downloads the archive from the URL at which the redirects end. The archive's file name is the last path component of the URL that the
 * client sent. False: `failure` is set. */
bool uploads_fetch(struct uploads_url *u, struct sl_str text, int fd)
{
    struct archive *archive = u->archive;
    const char *first = sl_arena_strndup(archive->arena, text.data, text.size), *last = NULL;
    struct sl_error error;
    if (!first || strlen(first) != text.size) /* the URL contains a NUL */
        return archive_fail(archive, first ? 400 : 503, first ? "Enter a valid URL." : "out of memory");
    if (!find_size(u, first, &last))
        return false;
    struct fetch_request request = {.url = last,
                                    .source = "uploads",
                                    .keep_wrapper = true,
                                    .max_size = archive->config->max_upload_size,
                                    .timeout_ns = GET_S * SECOND_NS,
                                    .may_follow = may_redirect, /* checks targets of redirects */
                                    .refused = get_refused,     /* no retry after an error status */
                                    .arg = u};
    enum sl_code code = fetch_get(&request, fd, &error);
    if (code == SL_BUSY)
        return archive_fail(archive, 503, "out of memory");
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_INTERNAL)
        return archive_fail(archive, 500, "ConnectionError trying to open %s", last);
    if (code != SL_OK)
        return archive_fail(archive, 400, "non-200 status code when retrieving %s", last);
    const char *query = strpbrk(first, "?#");
    struct sl_str path = {first, query ? (size_t)(query - first) : text.size};
    const char *slash = memrchr(path.data, '/', path.size); /* not NULL: a valid URL has "://" */
    archive->filename = (struct sl_str){slash + 1, (size_t)(path.data + path.size - slash - 1)};
    u->url = sl_str(first);
    return true;
}
