/* fetch_get: one download, from the check of the deny list to the finished file. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/status.h"
#include "fetch/impl.h"
#include "fetch/libcurl.h"

enum {
    ATTEMPTS = 3,
    RETRY_PAUSE_MS = 20,
    MAX_REDIRECTS = 10,
    MAX_PAUSE_MS = 10000, /* longest Retry-After that a download waits for */
    MAX_PAUSES = 3,
    PAUSE_SPREAD_MS = 250, /* random time added to a pause, so that waiting downloads do not restart all at once */
    TOO_MANY_MS = 60000    /* how long a status 429 without Retry-After is cached */
};
#define DISCARD_NS 1000000000ull /* time limit for reading the rest of an unused body */

/* ---- request headers ---- */
/* True if the text is a token, the form of header names (RFC 9110, 5.6.2). */
static bool is_token(struct sl_str name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] <= ' ' || name.data[i] >= 127 || strchr("\"(),/:;<=>?@[\\]{}", name.data[i]))
            return false;
    return name.size > 0;
}

/* True if the text may be a header's value: no control characters, which could end the line. */
static bool is_field_value(struct sl_str value)
{
    for (size_t i = 0; i < value.size; i++)
        if (((uint8_t)value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 127)
            return false;
    return true;
}

/* True for header fields of connection, framing and ranges, which a source's configuration must not set: they could corrupt responses to
 * another source on a shared connection (RFC 9112, 11.2). */
static bool is_reserved_header(struct sl_str name)
{
    static const char *const names[] = {
        "Connection", "Content-Length", "Expect",  "If-Range",         "Keep-Alive", "Range",
        "TE",         "Trailer",        "Upgrade", "Transfer-Encoding"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sl_str_equal_nocase(name, sl_str(names[i])))
            return true;
    return false;
}

/* True if a header with this name in a source's configuration is sent. */
static bool may_send_header(struct sl_str name)
{
    return is_token(name) && !is_reserved_header(name);
}

/* Fails if a header of the request (from the source's configuration) has an invalid value. Called before the download, so that this is not
 * counted as a failure of the host. */
static enum sl_code check_headers(const struct fetch_request *request, struct sl_error *error)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (may_send_header(request->headers[i].name) && !is_field_value(secret_open(request->headers[i].value)))
            return sl_fail(error, SL_DOWNLOAD_ERROR, "failed to parse header value");
    return SL_OK;
}

/* True if the request for this hop sends a header of this name from the source's configuration. After a redirect to another host these are
 * not sent, as they may be secret. */
static bool source_sets_header(const struct fetch_download *d, const struct hop *hop, struct sl_str name)
{
    for (size_t i = 0; !hop->is_other_host && i < d->request->header_count; i++)
        if (sl_str_equal_nocase(d->request->headers[i].name, name) && may_send_header(name))
            return true;
    return false;
}

/* Makes the header list for a hop (one URL of a chain of redirects). First come the headers of the source's configuration, unless the hop
 * leads to another host; then our own, except those that the source sets. `referer`, `range`, `if_range`: NULL = none. NULL and an error
 * when out of memory. */
static struct curl_slist *request_headers(const struct fetch_download *d, const struct hop *hop, const char *referer,
                                          const char *range, const char *if_range, struct sl_error *error)
{
    const struct {
        const char *name, *value;
    } own[] = {{"User-Agent", "symloom/" SYMLOOM_VERSION},
               {"Accept-Encoding", "br, deflate, gzip, zstd"},
               {"Range", range},
               {"If-Range", if_range},
               {"Referer", referer}};
    struct curl_slist *list = NULL;
    bool ok = true;
    for (size_t i = 0; ok && !hop->is_other_host && i < d->request->header_count; i++) {
        const struct fetch_header *h = &d->request->headers[i];
        if (!may_send_header(h->name))
            continue;
        ok = libcurl_add_header(&list, h->name, secret_open(h->value));
    }
    for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
        if (own[i].value && !source_sets_header(d, hop, sl_str(own[i].name)))
            ok = libcurl_add_header(&list, sl_str(own[i].name), sl_str(own[i].value));
    if (ok)
        return list;
    curl_slist_free_all(list);
    sl_fail(error, SL_BUSY, "out of memory");
    return NULL;
}

/* ---- interpreting responses ---- */
bool exchange_coding(const struct exchange *e, enum unpack_format *coding, struct sl_error *error)
{
    const struct transfer *t = &e->transfer;
    static const struct {
        const char *name;
        enum unpack_format coding;
    } codings[] = {{"", UNPACK_NONE},       {"identity", UNPACK_NONE},   {"br", UNPACK_BR},    {"gzip", UNPACK_GZIP},
                   {"x-gzip", UNPACK_GZIP}, {"deflate", UNPACK_DEFLATE}, {"zstd", UNPACK_ZSTD}};
    if (t->coding_count > 1) {
        sl_fail(error, SL_DOWNLOAD_ERROR, "Multiple content encodings not supported");
        return false;
    }
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if (strcmp(t->coding, codings[i].name) == 0) { /* exactly, as Symbolicator does */
            *coding = codings[i].coding;
            return true;
        }
    sl_fail(error, SL_DOWNLOAD_ERROR, "Unsupported content encoding");
    return false;
}

static const char too_large[] = "Maximum file size exceeded";

enum sl_code fetch_too_large(struct sl_error *error)
{
    return sl_fail(error, SL_MALFORMED, too_large);
}

static bool is_too_large(const struct sl_error *error)
{
    return error->code == SL_MALFORMED && strcmp(error->message, too_large) == 0;
}

bool fetch_is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Decides how to go on after a 206 response to a request for the first part of a file. PARTIAL: it is that part, so the others are
 * downloaded too (parts.c); COMPLETE: it is the whole file; EMPTY: the file has no bytes; REFUSED: it is too large; WITHOUT_RANGE: its
 * Content-Range makes no sense, so the file is requested without a range. */
static enum verdict get_range_verdict(struct exchange *e)
{
    struct transfer *t = &e->transfer;
    if (!byte_range_parse(t->content_range, &e->range))
        return WITHOUT_RANGE;
    if (e->range.total == 0)
        return EMPTY;
    if (e->range.start == 0 && e->range.end + 1 == e->range.total)
        return COMPLETE;
    if (e->range.start != 0 || e->range.end >= e->range.total)
        return WITHOUT_RANGE;
    if (e->range.total > e->download->max_size || e->range.total > INT64_MAX) {
        fetch_too_large(&e->error);
        return REFUSED;
    }
    t->limit = e->range.end + 1; /* a longer body fails */
    return PARTIAL;
}

/* Returns the most bytes that a body with a content coding may have: `max_size` is for the decoded body, and incompressible contents grow a
 * little when encoded. */
static uint64_t coded_limit(uint64_t max_size)
{
    uint64_t more = max_size / 8 + 64 * 1024;
    return max_size > UINT64_MAX - more ? UINT64_MAX : max_size + more;
}

/* Decides, when the head of a response is complete, how to go on. Redirects are followed only for plain downloads: not for requests with a
 * method, nor for those to the machine's credential service (request->own). A 302 of dev.azure.com leads to a login page, so it is not
 * followed either. */
static enum verdict get_verdict(struct exchange *e)
{
    struct transfer *t = &e->transfer;
    const struct fetch_request *request = e->download->request;
    if (fetch_is_redirect(t->status) && t->location && !request->method && !request->own &&
        !(t->status == 302 && strcmp(e->hop->host, "dev.azure.com") == 0))
        return REDIRECT;
    if (t->status == 416 && e->ranged) /* range not satisfiable, e.g. as the file is empty */
        return WITHOUT_RANGE;
    if (t->status < 200 || t->status > 299)
        return BAD_STATUS;
    if (request->method && strcmp(request->method, "HEAD") == 0)
        return COMPLETE;
    if (!exchange_coding(e, &e->download->coding, &e->error))
        return REFUSED;
    if (e->download->coding != UNPACK_NONE) /* an encoded body may be a little larger than max_size */
        t->limit = coded_limit(e->download->max_size);
    if (t->status == 206 && t->has_content_range && e->ranged)
        return get_range_verdict(e);
    if (t->content_length > 0 && (uint64_t)t->content_length > t->limit) {
        fetch_too_large(&e->error);
        return REFUSED;
    }
    return COMPLETE;
}

/* Called when the head of a response is complete: keeps the verdict on it for carry_out, and returns what to do with the body. */
static enum body_action decide(struct transfer *t)
{
    struct exchange *e = t->arg;
    e->verdict = get_verdict(e);
    switch (e->verdict) {
    case COMPLETE:
    case PARTIAL:
        e->download->is_html = t->is_html;
        if (e->download->request->modified_s && t->modified_s >= 0)
            *e->download->request->modified_s = t->modified_s;
        return BODY_STORE;
    case REDIRECT:
    case BAD_STATUS: return BODY_DISCARD;
    default: return BODY_STOP; /* ends the transfer: the body is not needed */
    }
}

/* Retry-After is kept for 429 and 503. A 302 that gets here was not followed (get_verdict): it usually leads to a login page. SL_NOT_FOUND
 * has no text, as the code says enough: there is no such file. */
enum sl_code exchange_status(const struct exchange *e, struct sl_error *error)
{
    const struct fetch_request *request = e->download->request;
    long status = e->transfer.status;
    e->download->too_many = status == 429;
    if (status == 429 || status == 503)
        e->download->retry_after_s = e->transfer.retry_after_s;
    if (request->refused)
        return request->refused(request->arg, (int)status, sl_buf_view(&e->download->explanation), error);
    if (status == 401 || status == 403)
        return sl_fail(error, SL_PERMISSION_DENIED, "%ld %s", status, status_reason((int)status));
    if (status == 302)
        return sl_fail(error, SL_PERMISSION_DENIED, "Potential login page detected");
    if (status >= 400 && status <= 499 && status != 429)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    return sl_fail(error, SL_DOWNLOAD_ERROR, "%ld %s", status, status_reason((int)status));
}

/* ---- one exchange ---- */
enum sl_code exchange_start(struct exchange *e, const char *referer, const char *range, const char *if_range,
                            struct sl_error *error)
{
    struct fetch_download *d = e->download;
    struct transfer *t = &e->transfer;
    t->url = e->hop->url;
    t->user = e->hop->user;
    t->password = e->hop->password;
    /* with `trusted_host`, hosts that the first one redirects to are not trusted */
    bool is_trusted = d->request->trusted || (d->request->trusted_host && strcmp(e->hop->host, d->first.host) == 0);
    t->pool = d->request->own ? DRIVER_OWN : is_trusted ? DRIVER_TRUSTED : DRIVER_RESTRICTED;
    t->method = d->request->method;
    t->field = d->request->field;
    t->field_arg = d->request->arg;
    t->body = secret_open(d->request->body);
    sl_buf_clear(&d->explanation);
    t->discarded = d->request->refused ? &d->explanation : NULL; /* `refused` is given the body of an error */
    t->accept_invalid_certs = d->request->accept_invalid_certs;
    t->fd = d->fd;
    t->arg = e;
    t->events = &d->events;
    if (address_host_refused(e->hop->host, t->pool)) {
        transfer_note_restricted(t);
        return sl_fail(error, SL_DOWNLOAD_ERROR, "destination is restricted");
    }
    t->headers = request_headers(d, e->hop, referer, range, if_range, error);
    if (!t->headers)
        return error->code;
    return transfer_start(t) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Observes, for a metric, the time to the first byte of the response ("connect") and from there to its end ("body"). */
static void count_phases(const struct exchange *e)
{
    curl_off_t first = 0, all = 0;
    const char *source = e->download->request->source;
    if (!e->transfer.easy || !e->transfer.head_complete ||
        curl_easy_getinfo(e->transfer.easy, CURLINFO_STARTTRANSFER_TIME_T, &first) != CURLE_OK ||
        curl_easy_getinfo(e->transfer.easy, CURLINFO_TOTAL_TIME_T, &all) != CURLE_OK)
        return;
    metric_observe(METRIC_DOWNLOAD_SECONDS, (double)first / 1e6, source, "connect", NULL);
    if (e->transfer.stored)
        metric_observe(METRIC_DOWNLOAD_SECONDS, (double)(all > first ? all - first : 0) / 1e6, source, "body", NULL);
}

void exchange_end(struct exchange *e)
{
    count_phases(e);
    transfer_end(&e->transfer);
    curl_slist_free_all(e->transfer.headers);
    metric_add(METRIC_DOWNLOAD_BYTES, e->transfer.stored, e->download->request->source, NULL, NULL);
}

/* ---- one attempt ---- */
struct hops {       /* the chain of redirects of an attempt */
    struct hop now; /* the URL to request next */
    const char *referer;
    unsigned redirects; /* followed so far */
    bool ranged;        /* request only the first part */
};

/* Waits until the body is received and stored; if it is only the first part of the file, gets the other parts too. */
static enum sl_code end_of_body(struct exchange *e, struct sl_error *error)
{
    if (e->verdict == PARTIAL)
        return parts_get(e, error);
    enum sl_code code = transfer_wait_end(&e->transfer, e->download->limit, error);
    if (code == SL_OK && e->transfer.too_long)
        code = fetch_too_large(error);
    return code == SL_OK ? transfer_failure(&e->transfer, error) : code;
}

/* Makes the target of a redirect the next URL to request, if it may be followed. */
static enum sl_code follow(struct exchange *e, struct hops *hops, struct sl_error *error)
{
    struct hop next;
    if (++hops->redirects > MAX_REDIRECTS)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "too many redirects");
    const struct fetch_request *request = e->download->request;
    enum sl_code code = hop_follow(e->download->arena, e->hop, e->transfer.location, &next, error);
    if (code == SL_OK && request->may_follow && !request->may_follow(request->arg, next.url))
        code = sl_fail(error, SL_PERMISSION_DENIED, "redirected to an origin that is not allowed");
    if (code == SL_OK) {
        hops->referer = hop_referer(e->download->arena, &hops->now, &next);
        hops->now = next;
    }
    return code;
}

/* Receives the rest of a response that is not needed, for a second at most, so that the connection can be reused. Only being cancelled is a
 * failure. */
static enum sl_code discard(struct exchange *e, struct sl_error *error)
{
    struct time_limit limit = earlier_time_limit(time_limit(DISCARD_NS), e->download->limit);
    return transfer_wait_end(&e->transfer, limit, NULL) == SL_CANCELLED ? sl_fail(error, SL_CANCELLED, "cancelled")
                                                                        : SL_OK;
}

/* Goes on as the verdict on a response says. `*again`, false before, is set if another request must follow: for the target of a redirect,
 * or for the file without a range. */
static enum sl_code carry_out(struct exchange *e, struct hops *hops, bool *again, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    switch (e->verdict) {
    case COMPLETE:
    case PARTIAL: return end_of_body(e, error);
    case EMPTY: e->download->coding = UNPACK_NONE; return SL_OK; /* nothing to decode */
    case WITHOUT_RANGE: hops->ranged = false; break;
    case REDIRECT:
        code = discard(e, error);
        if (code == SL_OK)
            code = follow(e, hops, error);
        break;
    case BAD_STATUS: code = discard(e, error); return code == SL_OK ? exchange_status(e, error) : code;
    case REFUSED: *error = e->error; return e->error.code;
    }
    *again = code == SL_OK;
    return code;
}

/* Sends the request for the current URL of the chain of redirects, and goes on as the response requires. With hops->ranged it asks only for
 * the first `split_size` bytes: the rest of a larger file is received in several requests at once (parts.c). `*again`: another request must
 * follow. `head`: time limit for the head of the response. */
static enum sl_code one_exchange(struct fetch_download *d, struct hops *hops, struct time_limit head, bool *again,
                                 struct sl_error *error)
{
    const struct hop hop = hops->now; /* a copy, as a redirect changes hops->now */
    struct exchange e = {.download = d, .hop = &hop, .ranged = hops->ranged};
    char range[64];
    snprintf(range, sizeof range, "bytes=0-%llu", (unsigned long long)fetch_state.options.split_size - 1);
    e.transfer.limit = d->max_size;
    e.transfer.head = head;
    e.transfer.decide = decide;
    *again = false;
    enum sl_code code = exchange_start(&e, hops->referer, hops->ranged ? range : NULL, NULL, error);
    if (code == SL_OK)
        code = transfer_wait_head(&e.transfer, d->limit, error);
    if (code == SL_OK && !e.transfer.head_complete) {
        code = transfer_failure(&e.transfer, error);
        d->os_error = e.transfer.os_error;
        if (code == SL_OK)
            code = sl_fail(error, SL_DOWNLOAD_ERROR, "the server ended its response before the headers were complete");
    } else if (code == SL_OK) {
        code = carry_out(&e, hops, again, error);
    }
    exchange_end(&e);
    return code;
}

/* On the pool: empties the file. Freeing the data of a failed attempt on disk takes time. */
static enum sl_code empty_file(void *arg, struct sl_error *error)
{
    return ftruncate(*(const int *)arg, 0) == 0 ? SL_OK
                                                : sl_fail_errno(error, errno, "cannot truncate the downloaded file");
}

/* Empties the file for a new attempt, and sets its position to 0. If it is empty already, without the pool. */
static enum sl_code begin_file(int fd, struct sl_error *error)
{
    struct stat file;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return sl_fail_errno(error, errno, "cannot rewind the downloaded file");
    if (fstat(fd, &file) == 0 && file.st_size == 0)
        return SL_OK;
    return pool_call(POOL_IO, empty_file, &fd, error);
}

/* One attempt of a download: sends requests, following redirects, until the file is complete or one fails. The heads of all responses
 * together have one time limit. If the URL is signed, makes a new one, as a signature is valid only for a short time. */
static enum sl_code attempt(struct fetch_download *d, struct sl_error *error)
{
    const struct fetch_request *request = d->request;
    /* ranged: first requests the beginning of the file, to receive the rest of a large one in parallel */
    struct hops hops = {.now = d->first, .ranged = !request->whole && !request->method};
    struct time_limit head = time_limit(fetch_state.options.head_timeout_ns);
    d->coding = UNPACK_NONE;
    d->os_error = 0;
    d->retry_after_s = -1;
    d->too_many = false;
    if (request->sign) {
        const char *url = request->sign(request->arg, d->arena);
        if (!url)
            return sl_fail(error, SL_BUSY, "out of memory");
        if (hop_parse(d->arena, url, &hops.now, error) != SL_OK)
            return error->code;
    }
    enum sl_code code = begin_file(d->fd, error);
    if (code != SL_OK)
        return code;
    metric_add(METRIC_DOWNLOAD_ATTEMPTS, 1, d->request->source, NULL, NULL);
    bool again;
    do
        code = one_exchange(d, &hops, head, &again, error);
    while (code == SL_OK && again);
    return code;
}

/* True if another attempt would have the same result, or must not be made (SL_CANCELLED). */
static bool is_final(enum sl_code code)
{
    return code == SL_OK || code == SL_NOT_FOUND || code == SL_PERMISSION_DENIED || code == SL_CANCELLED;
}

/* Returns a random number less than `below`; 0 if the system has no random bytes yet. */
static uint32_t random_below(uint32_t below)
{
    uint32_t number;
    return getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number ? number % below : 0;
}

/* Returns the pause after attempt `i`, counted from 1. If the request sets its number of attempts, the pause is random, so that clients
 * whose requests failed together do not retry together: up to 1 s after the first attempt, then up to 2, 4 and 8 s. */
static uint64_t retry_pause_ms(const struct fetch_download *d, unsigned i)
{
    return d->request->attempts ? random_below((1000u << (i < 4 ? i - 1 : 3)) + 1) : RETRY_PAUSE_MS;
}

/* If the failure is a temporary one (SL_DOWNLOAD_ERROR), says in the error that it may be cached for `ms` milliseconds only. Returns
 * `code`. */
static enum sl_code limit_ttl(uint64_t ms, enum sl_code code, struct sl_error *error)
{
    if (code == SL_DOWNLOAD_ERROR)
        error->duration_ns = ms * MS_NS;
    return code;
}

/* Repeats attempts until the result is final, their number is used up, the deadline would pass during the next pause, or the host asks
 * (Retry-After) for a pause longer than MAX_PAUSE_MS. The error is then cached only for the pause that the host wants or, after a status
 * 429 without Retry-After, for TOO_MANY_MS (limit_ttl). */
static enum sl_code attempts(struct fetch_download *d, struct sl_str host, struct sl_error *error)
{
    unsigned most = d->request->attempts ? d->request->attempts : ATTEMPTS;
    for (unsigned i = 1;; i++) {
        enum sl_code code = attempt(d, error);
        if (d->retry_after_s > 0)
            deny_pause(host, d->retry_after_s);
        if (is_final(code))
            return code;
        /* asked: what is left of the pause that the host wants (Retry-After); 0: none */
        uint64_t now = loop_now_ms(), pause = retry_pause_ms(d, i), asked = deny_pause_ms(host);
        if (asked > pause)
            pause = asked;
        if (i == most || asked > MAX_PAUSE_MS)
            return asked ? limit_ttl(asked, code, error) : d->too_many ? limit_ttl(TOO_MANY_MS, code, error) : code;
        if (now >= d->limit.until_ms || pause >= d->limit.until_ms - now)
            return code;
        log_debug("fetch", "download attempt failed", LOG_URL("url", d->first.url), LOG_ERR(error));
        if (!fiber_sleep(pause))
            return sl_fail(error, SL_CANCELLED, "cancelled");
    }
}

/* Fails if the host is blocked by the deny list. d->is_probe is set if it is blocked and this download may test whether it works again;
 * then later calls for this download let it through. */
static enum sl_code check_host(struct fetch_download *d, struct sl_str host, struct sl_error *error)
{
    enum sl_code code = d->request->deny_list && !d->is_probe ? deny_check(host, &d->is_probe, error) : SL_OK;
    d->blocked = code != SL_OK;
    return code;
}

/* Waits while the host is in a pause that it has asked for (Retry-After), then takes a slot, which limits concurrent downloads. Starts
 * again if the host has asked for another pause while this download waited for the slot. SL_DOWNLOAD_ERROR if a pause is too long, or after
 * MAX_PAUSES of them. */
static enum sl_code take_slot(struct sl_str host, struct fetch_slot *slot, struct sl_error *error)
{
    for (unsigned i = 0;; i++) {
        uint64_t ms = deny_pause_ms(host);
        if (ms > MAX_PAUSE_MS || (ms && i == MAX_PAUSES))
            return limit_ttl(ms,
                             sl_fail(error, SL_DOWNLOAD_ERROR,
                                     SL_STR_FMT " asked to wait %llus before the next request (Retry-After)",
                                     SL_STR_ARG(host), (unsigned long long)(ms + 999) / 1000),
                             error);
        if (ms && !fiber_sleep(ms + random_below(PAUSE_SPREAD_MS)))
            return sl_fail(error, SL_CANCELLED, "cancelled");
        enum sl_code code = slot_take(host, slot, error);
        if (code != SL_OK || !deny_pause_ms(host))
            return code;
        slot_give(slot);
    }
}

/* Downloads with one of the host's slots, and tells the deny list whether the host has failed; not if it has asked for time (429,
 * Retry-After). Decodes and unpacks the file after the slot is given back. */
static enum sl_code with_slot(struct fetch_download *d, struct sl_str host, struct sl_error *error)
{
    struct fetch_slot slot;
    enum sl_code code = take_slot(host, &slot, error);
    if (code != SL_OK)
        return code;
    uint64_t start = clock_mono_ns();
    d->limit =
        time_limit(d->request->timeout_ns ? d->request->timeout_ns : fetch_state.options.max_download_timeout_ns);
    /* again: the host may have been blocked while this download waited for the slot */
    code = check_host(d, host, error);
    if (code == SL_OK) {
        code = attempts(d, host, error);
        bool asks_for_time = d->too_many || d->retry_after_s >= 0;
        if (d->request->deny_list && !asks_for_time && (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT))
            deny_register(host, error);
        /* any answer, also a refusal, shows that the host works */
        if (d->is_probe && (is_final(code) || code == SL_MALFORMED) && code != SL_CANCELLED)
            deny_answered(host);
    }
    slot_give(&slot);
    metric_observe(METRIC_DOWNLOAD_SECONDS, (double)(clock_mono_ns() - start) / 1e9, d->request->source, "total", NULL);
    return code == SL_OK ? download_finish(d, error) : code;
}

/* Returns the value of the label `result` in the metric of downloads. */
static const char *result_name(const struct fetch_download *d, enum sl_code code, const struct sl_error *error)
{
    if (d->blocked)
        return "blocked";
    if (code != SL_OK && is_too_large(error))
        return "too_large";
    return code == SL_DOWNLOAD_ERROR ? "error" : sl_code_name(code);
}

void fetch_on_failure(fetch_failure_listener *listener, void *arg)
{
    fetch_state.failure_listener = listener;
    fetch_state.failure_arg = arg;
}

/* Tells the listener which server failed and why, in words for a warning: the operating system's for a connection that failed, else the
 * error's. Its first letter becomes lower case, unless the second is upper case (an abbreviation). */
static void report_failure(const struct fetch_download *d, const struct sl_error *error)
{
    const struct hop *hop = &d->first;
    const char *what = error->message;
    char server[300], why[sizeof error->message + 32];
    if (!fetch_state.failure_listener || !hop->host || !hop->port || d->blocked)
        return;
    bool usual = strcmp(hop->port, strcmp(hop->scheme, "https") == 0 ? "443" : "80") == 0;
    snprintf(server, sizeof server, "%s%s%s", hop->host, usual ? "" : ":", usual ? "" : hop->port);
    if (d->os_error)
        what = strerror((int)d->os_error);
    snprintf(why, sizeof why, "%s%s", error->code == SL_TIMEOUT ? "timed out after " : "", what);
    if (why[0] && islower((unsigned char)why[1])) /* not for "SSL ..." */
        why[0] = (char)tolower((unsigned char)why[0]);
    fetch_state.failure_listener(fetch_state.failure_arg, server, why);
}

enum sl_code fetch_get(const struct fetch_request *request, int fd, struct sl_error *error)
{
    struct sl_error own;
    struct sl_arena arena = {0};
    struct fetch_download d = {.request = request, .arena = &arena, .fd = fd};
    error = error ? error : &own;
    *error = (struct sl_error){0};
    d.max_size = request->max_size ? request->max_size : fetch_state.options.max_download_size;
    enum sl_code code = fetch_start(error);
    if (code == SL_OK)
        code = hop_parse(&arena, request->url, &d.first, error);
    if (code == SL_OK)
        code = check_headers(request, error);
    if (code == SL_OK)
        code = check_host(&d, sl_str(d.first.host), error);
    if (code == SL_OK)
        code = with_slot(&d, sl_str(d.first.host), error);
    metric_add(METRIC_DOWNLOADS, 1, request->source, result_name(&d, code, error), NULL);
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_INTERNAL)
        log_debug("fetch", "download failed", LOG_STR("source", request->source), LOG_URL("url", request->url),
                  LOG_ERR(error));
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT)
        report_failure(&d, error);
    sl_buf_free(&d.explanation);
    sl_arena_free(&arena);
    return code;
}
