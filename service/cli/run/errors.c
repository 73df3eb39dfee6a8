/* `symloom run`: sends logged errors to Sentry. */
#include "cli/run/run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/json_write.h"
#include "core/build.h"
#include "core/log.h"
#include "core/loop.h"
#include "fetch/fetch.h"
#include "id/id.h"

/* MAX_WAITING: errors that wait to be sent to Sentry; further ones are dropped. SITES: entries of the table by which each place in the code
 * reports at most once a minute. LOOK_MS: how often the queue is looked into. TIMEOUT_S: the time that sending one error may take. */
enum { MAX_WAITING = 32, SITES = 64, MINUTE_MS = 60000, LOOK_MS = 1000, TIMEOUT_S = 10 };

/* A logged error that waits to be sent to Sentry. */
struct error_event {
    char module[32], message[256];
    struct sl_buf line; /* the JSON log line */
    int64_t at_s;
};

static struct {
    struct sl_secret dsn;
    bool ending;
    struct fiber_wait_list ended; /* woken when `ending` is set; errors_send waits on it for LOOK_MS at a time */
    pthread_mutex_t lock;         /* any thread may log an error */
    struct error_event waiting[MAX_WAITING];
    size_t count;
    /* the places in the code that reported an error last, for rate limiting; next_ms: when a place may report again */
    struct {
        const char *file;
        int line;
        uint64_t next_ms;
    } sites[SITES];
} errors = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- collecting ---- */
/* True if the place in the code, a file and line, has not reported in the last minute; then notes that it does now. Call with the lock
 * held. Two places that share an entry of the table overwrite each other's time, so both may report more often. */
static bool may_report_site(const char *file, int line)
{
    uint64_t now = clock_mono_ns() / 1000000;
    /* a source file has one text for __FILE__, so its address stands for the name */
    size_t at = ((uintptr_t)file / 8 + (size_t)line) % SITES;
    if (errors.sites[at].file == file && errors.sites[at].line == line && now < errors.sites[at].next_ms)
        return false;
    errors.sites[at].file = file;
    errors.sites[at].line = line;
    errors.sites[at].next_ms = now + MINUTE_MS;
    return true;
}

/* Called by the log for each error, on any thread: queues it for errors_send. It is dropped if the queue is full, or the same place in the
 * code reported within the last minute. */
static void queue_error(const struct log_report *report)
{
    pthread_mutex_lock(&errors.lock);
    if (errors.count < MAX_WAITING && may_report_site(report->file, report->line)) {
        struct error_event *event = &errors.waiting[errors.count++];
        *event = (struct error_event){.at_s = clock_wall_s()};
        snprintf(event->module, sizeof event->module, "%s", report->module);
        snprintf(event->message, sizeof event->message, "%s", report->message);
        sl_buf_str(&event->line, report->json);
    }
    pthread_mutex_unlock(&errors.lock);
}

void errors_init(struct sl_secret dsn)
{
    errors.dsn = dsn;
    if (secret_present(dsn))
        log_on_error(queue_error);
}

/* Removes the oldest event from the queue; the caller frees its line. False when the queue is empty. */
static bool remove_oldest(struct error_event *event)
{
    pthread_mutex_lock(&errors.lock);
    bool any = errors.count > 0;
    if (any) {
        *event = errors.waiting[0];
        memmove(errors.waiting, errors.waiting + 1, --errors.count * sizeof *errors.waiting);
    }
    pthread_mutex_unlock(&errors.lock);
    return any;
}

/* ---- the DSN ---- */
/* The parts of a Sentry DSN. */
struct dsn {
    struct sl_str scheme, key, host, path, project; /* path: "" or "/a/b" */
};

/* Parses a Sentry DSN, scheme://key[:secret]@host[/path]/project. False if the text is none, or the scheme is neither http nor https. */
static bool dsn_parse(struct sl_str text, struct dsn *dsn)
{
    const char *colon = text.size ? memmem(text.data, text.size, "://", 3) : NULL;
    if (!colon)
        return false;
    dsn->scheme = (struct sl_str){text.data, (size_t)(colon - text.data)};
    struct sl_str rest = {colon + 3, text.size - dsn->scheme.size - 3};
    const char *at = rest.size ? memchr(rest.data, '@', rest.size) : NULL;
    const char *slash = at ? memchr(at, '/', rest.size - (size_t)(at - rest.data)) : NULL;
    const char *last = slash ? memrchr(rest.data, '/', rest.size) : NULL;
    if (!last)
        return false;
    dsn->key = (struct sl_str){rest.data, (size_t)(at - rest.data)};
    const char *secret = memchr(dsn->key.data, ':', dsn->key.size); /* old DSNs include a secret, which is not needed */
    dsn->key.size = secret ? (size_t)(secret - dsn->key.data) : dsn->key.size;
    dsn->host = (struct sl_str){at + 1, (size_t)(slash - at) - 1};
    dsn->path = (struct sl_str){slash, (size_t)(last - slash)};
    dsn->project = (struct sl_str){last + 1, (size_t)(rest.data + rest.size - last) - 1};
    return (sl_str_equal(dsn->scheme, SL_STR("http")) || sl_str_equal(dsn->scheme, SL_STR("https"))) && dsn->key.size &&
           dsn->host.size && dsn->project.size;
}

bool errors_dsn_valid(struct sl_str text)
{
    struct dsn dsn;
    return dsn_parse(text, &dsn);
}

/* ---- sending ---- */
/* Formats a time, in seconds since 1970, as ISO 8601 in UTC. */
static void format_time(int64_t seconds, char out[32])
{
    struct tm tm;
    time_t time = (time_t)seconds;
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &tm));
}

/* Writes the event as a Sentry envelope: a header line, an item's header and the item. Writes nothing if no event id can be made; the event
 * is then not sent. */
static void write_envelope(const struct error_event *event, struct sl_buf *out)
{
    char id[33], time[32], host[256] = "";
    uint8_t random[16] = {0};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return;
    sl_hex_encode(random, sizeof random, id);
    gethostname(host, sizeof host - 1);
    format_time(event->at_s, time);
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "event_id", sl_str(id));
    sl_json_member_str(&w, "timestamp", sl_str(time));
    sl_json_member_str(&w, "platform", sl_str("native"));
    sl_json_member_str(&w, "level", sl_str("error"));
    sl_json_member_str(&w, "logger", sl_str(event->module));
    sl_json_member_str(&w, "release", sl_str("symloom@" BUILD_VERSION));
    sl_json_member_str(&w, "server_name", sl_str(host));
    sl_json_member_object(&w, "logentry");
    sl_json_member_str(&w, "formatted", sl_str(event->message));
    sl_json_end_object(&w);
    sl_json_member_raw(&w, "extra", sl_buf_view(&event->line));
    sl_json_end_object(&w);
    sl_buf_printf(out, "{\"event_id\":\"%s\"}\n{\"type\":\"event\",\"length\":%zu}\n", id, json.size);
    sl_buf_str(out, sl_buf_view(&json));
    sl_buf_u8(out, '\n');
    out->failed |= json.failed;
    sl_buf_free(&json);
}

/* Sends an event to the Sentry server of the DSN. The server's answer, and failures, are ignored. */
static void send_event(const struct error_event *event)
{
    struct dsn dsn = {.path = {NULL, 0}};
    struct sl_buf url = {0}, auth = {0}, body = {0}, answer = {0};
    struct sl_error error;
    if (dsn_parse(secret_open(errors.dsn), &dsn)) /* else the body stays empty, and nothing is sent */
        write_envelope(event, &body);
    sl_buf_printf(&url, SL_STR_FMT "://" SL_STR_FMT SL_STR_FMT "/api/" SL_STR_FMT "/envelope/", SL_STR_ARG(dsn.scheme),
                  SL_STR_ARG(dsn.host), SL_STR_ARG(dsn.path), SL_STR_ARG(dsn.project));
    sl_buf_u8(&url, '\0');
    sl_buf_printf(&auth, "Sentry sentry_version=7, sentry_client=symloom/" BUILD_VERSION ", sentry_key=" SL_STR_FMT,
                  SL_STR_ARG(dsn.key));
    struct fetch_header headers[] = {{SL_STR("X-Sentry-Auth"), {sl_buf_view(&auth)}},
                                     {SL_STR("Content-Type"), {SL_STR("application/x-sentry-envelope")}}};
    struct fetch_request request = {.url = (const char *)url.data,
                                    .headers = headers,
                                    .header_count = sizeof headers / sizeof *headers,
                                    .trusted = true, /* the host may have a reserved (private) address */
                                    .source = "errors",
                                    .max_size = 64 * 1024,
                                    .timeout_ns = TIMEOUT_S * UINT64_C(1000000000),
                                    .keep_wrapper = true, /* do not decompress the answer, */
                                    .whole = true,        /* nor request it in ranges */
                                    .method = "POST",
                                    .body = {sl_buf_view(&body)}};
    if (!url.failed && !auth.failed && !body.failed && body.size)
        fetch_text(&request, &answer, &error);
    sl_buf_free(&url);
    sl_buf_free(&auth);
    sl_buf_free(&body);
    sl_buf_free(&answer);
}

void errors_send(void *unused)
{
    (void)unused;
    struct error_event event;
    bool enabled = secret_present(errors.dsn);
    while (enabled) {
        enabled = !errors.ending && fiber_wait_on(&errors.ended, LOOK_MS) == FIBER_TIMED_OUT;
        while (remove_oldest(&event)) {
            send_event(&event);
            sl_buf_free(&event.line);
        }
    }
    log_on_error(NULL); /* from here on no error is queued; those queued since the last look are dropped */
    while (remove_oldest(&event))
        sl_buf_free(&event.line);
}

void errors_end(void)
{
    errors.ending = true;
    fiber_wake_all(&errors.ended);
}
