/* Transfers: one HTTP exchange each, made by a curl handle, and how the fiber of a download waits for it. */
#include "fetch/impl.h"

#include <strings.h>

#include <errno.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

/* DISCARD_MAX: a body that is not stored, such as that of an error, is received up to this size, so that the connection can be reused.
 * RECEIVE_BUFFER: size of the buffer into which curl receives. */
enum { DISCARD_MAX = 64 * 1024, RECEIVE_BUFFER = 64 * 1024 };

void transfer_note_restricted(const struct transfer *t)
{
    metric_add(METRIC_BLOCKED_ADDRESSES, 1, NULL, NULL, NULL);
    log_info("fetch",
             "blocked a request to a reserved IP address; allow it with connect_to_reserved_ips or "
             "allowed_reserved_networks",
             LOG_URL("url", t->url));
}

/* Called by curl to create the socket for each address that it connects to: the address is checked here, after the name was resolved. Not
 * for a Unix socket, which the service has chosen itself. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = arg;
    if (!t->socket && address_refused(&address->addr, t->pool)) {
        t->restricted = true;
        transfer_note_restricted(t);
        return CURL_SOCKET_BAD;
    }
    t->opened = true;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    t->scarce = fd < 0 && sl_fail_errno(NULL, errno, "") == SL_BUSY; /* out of descriptors or memory */
    return fd;
}

/* Marks the transfer as changed and wakes the fiber that waits for it in transfer_wait, maybe together with other transfers of the
 * download. */
static void transfer_report(struct transfer *t)
{
    t->has_changed = true;
    fiber_wake_all(t->events);
}

/* ---- the head ---- */
/* Copies a header's value with a NUL at its end; cuts it so that both fit `capacity` bytes. */
static void copy_value(char *to, size_t capacity, struct sl_str value)
{
    size_t size = value.size < capacity - 1 ? value.size : capacity - 1;
    memcpy(to, value.data, size);
    to[size] = '\0';
}

/* Returns the seconds from now that a Retry-After gives, as a number or an HTTP date (RFC 9110, 10.2.3); -1 if it is neither. */
static int64_t retry_after(struct sl_str value)
{
    char text[64];
    copy_value(text, sizeof text, value);
    if (text[0] >= '0' && text[0] <= '9') {
        char *end;
        long long seconds = strtoll(text, &end, 10);
        return *end ? -1 : seconds;
    }
    time_t at = curl_getdate(text, NULL);
    int64_t now = clock_wall_s();
    return at < 0 ? -1 : at > now ? at - now : 0;
}

/* True if a Content-Length is a number greater than INT64_MAX: curl reports such a length as unknown. */
static bool beyond_int64(struct sl_str value)
{
    uint64_t number = 0;
    bool over = false;
    for (size_t i = 0; i < value.size; i++) {
        unsigned digit = (unsigned)(value.data[i] - '0');
        if (digit > 9)
            return false;
        over = over || __builtin_mul_overflow(number, 10u, &number) || __builtin_add_overflow(number, digit, &number);
    }
    return over || number > INT64_MAX;
}

/* Keeps the value of a header field if it is one that is used later; the name may be in any case. An ETag that does not fit is left out, as
 * a cut one would match nothing. Of several Location fields the first counts. */
static void read_field(struct transfer *t, struct sl_str name, struct sl_str value)
{
    if (t->field)
        t->field(t->field_arg, name, value);
    if (sl_str_equal_nocase(name, SL_STR("content-range"))) {
        t->has_content_range = true;
        copy_value(t->content_range, sizeof t->content_range, value);
    } else if (sl_str_equal_nocase(name, SL_STR("content-encoding"))) {
        t->coding_count++;
        copy_value(t->coding, sizeof t->coding, value);
    } else if (sl_str_equal_nocase(name, SL_STR("content-type"))) {
        static const struct sl_str html = SL_STR("text/html");
        t->is_html = value.size >= html.size && sl_str_equal_nocase((struct sl_str){value.data, html.size}, html);
    } else if (sl_str_equal_nocase(name, SL_STR("content-length"))) {
        t->length_overflows = beyond_int64(value);
    } else if (sl_str_equal_nocase(name, SL_STR("etag"))) {
        copy_value(t->etag, sizeof t->etag, value);
        if (value.size >= sizeof t->etag)
            t->etag[0] = '\0';
    } else if (sl_str_equal_nocase(name, SL_STR("retry-after"))) {
        t->retry_after_s = retry_after(value);
    } else if (sl_str_equal_nocase(name, SL_STR("last-modified"))) {
        char text[64];
        copy_value(text, sizeof text, value);
        t->modified_s = (int64_t)curl_getdate(text, NULL);
    } else if (sl_str_equal_nocase(name, SL_STR("location")) && !t->location) {
        t->location = strndup(value.data, value.size);
    }
}

/* Forgets the header fields of a head, because another head follows it. */
static void forget_head(struct transfer *t)
{
    free(t->location);
    t->location = NULL;
    t->has_content_range = t->length_overflows = t->is_html = false;
    t->coding_count = 0;
    t->etag[0] = t->coding[0] = t->content_range[0] = '\0';
    t->retry_after_s = t->modified_s = -1;
}

/* Called by curl for each line of a head (`one` is always 1). When the head is complete (empty line), `decide` chooses what to do with the
 * body. A proxy and interim responses (1xx, except 101) send heads before that of the response: their fields are forgotten. Returns `size`:
 * any other value would end the transfer. */
static size_t on_header(char *data, size_t one, size_t size, void *arg)
{
    struct transfer *t = arg;
    t->last_progress_ms = loop_now_ms();
    if (t->head_complete)
        return size; /* a trailer field, behind the body: ignored */
    struct sl_str line = sl_str_trimmed((struct sl_str){data, size});
    if (sl_str_starts(line, SL_STR("HTTP/"))) {
        forget_head(t); /* the status line of a new head */
        return size;
    }
    if (line.size == 0) {
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
        if (t->status < 200 && t->status != 101)
            return size;
        curl_off_t length = -1;
        curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        t->content_length = t->length_overflows ? INT64_MAX : length; /* curl says -1 for such a length */
        t->head_complete = true;
        t->action = t->decide(t);
        transfer_report(t);
        return size;
    }
    const char *colon = memchr(line.data, ':', line.size);
    if (colon) {
        struct sl_str name = {line.data, (size_t)(colon - line.data)};
        read_field(t, name, sl_str_trimmed((struct sl_str){colon + 1, line.size - name.size - 1}));
    }
    return size;
}

/* ---- the body ---- */
/* Called by curl for each piece of the body (`one` is always 1): adds it to the spool, or discards it. Returning less than `size` ends the
 * transfer. If the disk is slower than the network, so that the spool has no room, pauses the transfer; transfer_store lets it go on. */
static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
    struct transfer *t = arg;
    t->last_progress_ms = loop_now_ms();
    if (t->action == BODY_DISCARD) {
        t->discarded_bytes += size;
        if (t->discarded)
            sl_buf_add(t->discarded, data, size);
        return t->discarded_bytes <= DISCARD_MAX ? size : 0;
    }
    if (t->action == BODY_STOP || !t->head_complete)
        return 0;
    if (size > t->limit - t->stored) {
        t->too_long = true;
        return 0;
    }
    if (!spool_has_room(&t->spool, size)) {
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    uint64_t length = t->content_length > 0 ? (uint64_t)t->content_length : SPOOL_SIZE;
    if (!spool_add(&t->spool, (struct sl_bytes){(const uint8_t *)data, size}, length)) {
        t->scarce = true;
        return 0;
    }
    t->stored += size;
    if (t->spool.full.size) /* wakes the fiber, which writes the full buffer */
        transfer_report(t);
    return size;
}

/* ---- start and end ---- */
/* Sets the curl options of the request. */
static void set_options(struct transfer *t)
{
    CURL *c = t->easy;
    const struct fetch_options *o = &fetch_state.options;
    curl_easy_setopt(c, CURLOPT_PRIVATE, t);
    curl_easy_setopt(c, CURLOPT_URL, t->url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L); /* download.c checks every redirect */
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* do not wait for the resolver thread at the end of a transfer */
    /* + 1, as 0 would mean curl's default of 300 s */
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(DURATION_MS(o->connect_timeout_ns) + 1));
    curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, 30L); /* seconds; a connection idle for longer is not used again */
    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)RECEIVE_BUFFER);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->curl_error);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (t->user) {
        curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(c, CURLOPT_USERNAME, t->user);
        curl_easy_setopt(c, CURLOPT_PASSWORD, t->password ? t->password : "");
    }
    if (t->method && strcmp(t->method, "HEAD") == 0) {
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    } else if (t->method) {
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, t->method);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.size);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, t->body.data ? t->body.data : "");
    }
    if (t->socket)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, t->socket);
    if (t->pool == DRIVER_OWN) /* peers and services of the machine are reached without a proxy */
        curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    else if (fetch_state.http_proxy && strncasecmp(t->url, "http:", 5) == 0) /* NO_PROXY still holds */
        curl_easy_setopt(c, CURLOPT_PROXY, fetch_state.http_proxy);
    if (fetch_state.ca_file)
        curl_easy_setopt(c, CURLOPT_CAINFO, fetch_state.ca_file);
    if (t->accept_invalid_certs) {
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static struct transfer *running;

/* Adds the transfer to the list of running ones, which fetch_log_state and fetch_progress read. */
static void join_running(struct transfer *t)
{
    t->next_running = running;
    t->running_link = &running;
    if (running)
        running->running_link = &t->next_running;
    running = t;
}

/* Logs each running transfer, for operators. */
void fetch_log_state(void)
{
    for (const struct transfer *t = running; t; t = t->next_running) {
        const struct log_field fields[] = {LOG_URL("url", t->url),
                                           LOG_U64("bytes", t->stored),
                                           LOG_U64("silent_ms", loop_now_ms() - t->last_progress_ms),
                                           {.key = NULL}};
        /* NULL: without a rate limit */
        log_write(NULL, LOG_INFO, "state", __FILE__, __LINE__, "download", fields);
    }
}

/* Removes the transfer from the list of running ones, if it is there. */
static void leave_running(struct transfer *t)
{
    if (!t->running_link)
        return;
    *t->running_link = t->next_running;
    if (t->next_running)
        t->next_running->running_link = t->running_link;
    t->running_link = NULL;
}

/* Sets `progress` to the bytes, and to host and file name ("host file"), of the running transfer that has stored most bytes. False if none
 * runs. */
bool fetch_progress(struct fetch_progress *progress)
{
    const struct transfer *most = running;
    struct sl_arena arena = {0};
    for (const struct transfer *t = running; t; t = t->next_running)
        most = t->stored > most->stored ? t : most;
    if (!most)
        return false;
    const char *url = fetch_public_url(&arena, most->url), *host = url ? fetch_url_host(&arena, url) : NULL;
    const char *slash = url ? strrchr(url, '/') : NULL;
    progress->stored = most->stored;
    snprintf(progress->item, sizeof progress->item, "%s %s", host ? host : "", slash ? slash + 1 : "");
    sl_arena_free(&arena);
    return true;
}

/* Creates the curl handle and adds it to its connection pool, which starts the transfer. False when out of memory. */
bool transfer_start(struct transfer *t)
{
    t->retry_after_s = t->content_length = -1;
    t->last_progress_ms = loop_now_ms();
    t->easy = curl_easy_init();
    if (!t->easy)
        return false;
    set_options(t);
    if (driver_add(t->pool, t->easy)) {
        join_running(t);
        return true;
    }
    curl_easy_cleanup(t->easy);
    t->easy = NULL;
    return false;
}

/* Called when curl has ended a transfer: keeps the result and, if no connection was made, the errno; wakes the fiber that waits. */
void transfer_finished(CURL *easy, CURLcode result)
{
    struct transfer *t = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    t->result = result;
    if (result == CURLE_COULDNT_CONNECT)
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &t->os_error);
    t->done = true;
    transfer_report(t);
}

/* A list of transfers whose socket curl has closed before the head of the response was complete. It works around a fault of libcurl 7.88:
 * when an address does not answer in time, curl closes the socket and then waits for the timeout of the whole connect, instead of trying
 * the next address at once. curl_easy_pause(CURLPAUSE_CONT) makes it do that; it must be called when curl's callback has returned
 * (transfer_resume). */
static struct transfer *gone;
static bool going_on; /* transfer_resume runs: sockets that curl_easy_pause closes are not listed */

/* Removes the transfer from the list `gone`, if it is there. */
static void leave_gone(struct transfer *t)
{
    if (!t->gone_link)
        return;
    *t->gone_link = t->next_gone;
    if (t->next_gone)
        t->next_gone->gone_link = t->gone_link;
    t->gone_link = NULL;
}

void transfer_fail_for_memory(CURL *easy)
{
    struct transfer *t = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    if (t)
        t->scarce = true;
}

/* Only before the head of the response: later the transfer needs no other address of the host. Not while transfer_resume runs (`going_on`),
 * as its loop would not end. */
void transfer_socket_gone(CURL *easy)
{
    struct transfer *t = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
    if (going_on || !t || t->done || t->head_complete || t->gone_link)
        return;
    t->next_gone = gone;
    t->gone_link = &gone;
    if (gone)
        gone->gone_link = &t->next_gone;
    gone = t;
}

/* Makes curl look again at the transfers whose socket it has closed before the head was complete, by pausing and unpausing them: libcurl
 * 7.88 would wait for the timeout of the whole connect instead of trying the host's next address at once. This may close further sockets:
 * `going_on` keeps those from being listed, so that the loop ends. */
void transfer_resume(void)
{
    going_on = true;
    for (struct transfer *t; (t = gone);) {
        leave_gone(t);
        if (t->done || t->head_complete)
            continue;
        curl_easy_pause(t->easy, CURLPAUSE_ALL);
        curl_easy_pause(t->easy, CURLPAUSE_CONT);
    }
    going_on = false;
}

/* Ends a transfer, also one that is running or was never started, and frees what it holds. May be called twice. */
void transfer_end(struct transfer *t)
{
    t->done = true;
    leave_running(t);
    leave_gone(t);
    if (t->easy) {
        driver_remove(t->pool, t->easy);
        curl_easy_cleanup(t->easy);
    }
    t->easy = NULL;
    spool_free(&t->spool);
    free(t->location);
    t->location = NULL;
}

/* The message is only the limit as a text ("300s"): whoever shows it puts "timed out after" in front. error->duration_ns is the limit as a
 * number. */
enum sl_code fail_for_time_limit(struct sl_error *error, uint64_t ns)
{
    struct sl_buf text = {0};
    duration_format_short(ns, &text);
    enum sl_code code = sl_fail(error, SL_TIMEOUT, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&text)));
    if (error)
        error->duration_ns = ns;
    sl_buf_free(&text);
    return code;
}

struct time_limit time_limit(uint64_t ns)
{
    uint64_t now = loop_now_ms(), ms = DURATION_MS(ns);
    return (struct time_limit){ms > UINT64_MAX - now ? UINT64_MAX : now + ms, ns};
}

struct time_limit earlier_time_limit(struct time_limit a, struct time_limit b)
{
    return a.until_ms <= b.until_ms ? a : b;
}

/* Writes a buffer of the spool to the file, and lets curl go on with a transfer that was paused for lack of room. The stall timeout is for
 * the server, so the time of the last progress is set to now: time spent on the disk does not count. */
static enum sl_code transfer_store(struct transfer *t, struct sl_error *error)
{
    enum sl_code code = spool_write(&t->spool, t->fd, error);
    t->last_progress_ms = loop_now_ms();
    if (code == SL_OK && t->paused) {
        t->paused = false;
        curl_easy_pause(t->easy, CURLPAUSE_CONT);
    }
    return code;
}

enum sl_code transfer_store_rest(struct transfer *t, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    while (code == SL_OK && t->result == CURLE_OK && t->spool.full.size + t->spool.filling.size > 0)
        code = transfer_store(t, error);
    return code;
}

enum sl_code transfer_wait(struct transfer *const *transfers, size_t count, struct time_limit limit,
                           struct sl_error *error)
{
    uint64_t stall_ns = fetch_state.options.stall_timeout_ns, now = loop_now_ms();
    bool has_changed = false;
    for (size_t i = 0; i < count; i++) {
        const struct transfer *t = transfers[i];
        struct time_limit stall = {t->last_progress_ms + DURATION_MS(stall_ns), stall_ns};
        limit = earlier_time_limit(limit, t->head_complete ? stall : t->head);
    }
    if (now >= limit.until_ms)
        return fail_for_time_limit(error, limit.ns);
    for (size_t i = 0; i < count; i++) {
        if (transfers[i]->spool.full.size)
            return transfer_store(transfers[i], error);
        has_changed |= transfers[i]->has_changed;
        transfers[i]->has_changed = false;
    }
    if (has_changed)
        return SL_OK;
    fiber_set_wait_reason("a download");
    /* all transfers of a download have the same list `events` */
    if (fiber_wait_on(transfers[0]->events, limit.until_ms - now) == FIBER_CANCELLED)
        return sl_fail(error, SL_CANCELLED, "cancelled");
    return SL_OK; /* also after a timeout, which the next call finds */
}

enum sl_code transfer_wait_head(struct transfer *t, struct time_limit limit, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    while (code == SL_OK && !t->head_complete && !t->done)
        code = transfer_wait(&t, 1, limit, error);
    return code;
}

enum sl_code transfer_wait_end(struct transfer *t, struct time_limit limit, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    while (code == SL_OK && !t->done)
        code = transfer_wait(&t, 1, limit, error);
    return code == SL_OK ? transfer_store_rest(t, error) : code;
}

/* True if the process has no free descriptors. curl, its resolver and its TLS library report other errors then. */
static bool descriptors_used_up(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    sl_close(fd);
    return fd < 0 && sl_fail_errno(NULL, errno, "") == SL_BUSY; /* SL_BUSY: the code for EMFILE and ENFILE */
}

/* Sets and returns SL_DOWNLOAD_ERROR with curl's text for the failure; for failures of TLS and of the proxy with a short text instead. */
static enum sl_code transport_error(const struct transfer *t, struct sl_error *error)
{
    const char *text = t->curl_error;
    if (strstr(text, "certificate verify failed"))
        text = "certificate verify failed";
    else if (strstr(text, "SSL routines"))
        text = "SSL error";
    /* the rest of the text contains the proxy URL with its password */
    else if (strncmp(text, "Unsupported proxy", 17) == 0)
        text = "Unsupported proxy";
    else if (!text[0])
        text = curl_easy_strerror(t->result);
    return sl_fail(error, SL_DOWNLOAD_ERROR, "%s", text);
}

enum sl_code transfer_failure(const struct transfer *t, struct sl_error *error)
{
    /* when on_body has refused a body that is not wanted, curl reports an error of writing: this is no failure */
    bool stopped = t->result == CURLE_WRITE_ERROR && t->head_complete && t->action != BODY_STORE;
    if (t->result == CURLE_OK || stopped)
        return SL_OK;
    /* when no descriptor is free, curl and its resolver fail with misleading errors */
    if (t->scarce || t->result == CURLE_OUT_OF_MEMORY || (!t->head_complete && descriptors_used_up()))
        return sl_fail(error, SL_BUSY, "out of memory or file descriptors");
    if (t->restricted && !t->opened) /* all addresses of the host were refused */
        return sl_fail(error, SL_DOWNLOAD_ERROR, "destination is restricted");
    switch (t->result) {
    case CURLE_OPERATION_TIMEDOUT: return sl_fail(error, SL_DOWNLOAD_ERROR, "operation timed out");
    case CURLE_PEER_FAILED_VERIFICATION: return sl_fail(error, SL_DOWNLOAD_ERROR, "certificate verify failed");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_SHUTDOWN_FAILED: return sl_fail(error, SL_DOWNLOAD_ERROR, "SSL error");
    default: return transport_error(t, error);
    }
}
