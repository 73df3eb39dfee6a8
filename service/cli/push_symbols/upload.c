/* Uploads the parts: several at a time, with retries after temporary failures. */
#include "cli/push_symbols/push.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <zstd.h>

#include "core/value_tree.h"
#include "fetch/fetch.h"
#include "fetch/libcurl.h"

enum { MAX_ANSWER = 1 << 20, MAX_PAUSE_S = 30 };

/* One HTTP request: the upload of a part, with its retries, or the query of what the service has. */
struct push_symbols_transfer {
    CURL *curl;
    struct curl_slist *headers;
    struct sl_buf answer;
    struct sl_mapping mapping;        /* the part's symbfile */
    uint8_t *packed;                  /* compressed body; NULL: uncompressed */
    size_t part;                      /* index of the part */
    uint64_t not_before_ms;           /* when the retry may start, on the monotonic clock */
    unsigned attempts;                /* requests that were started for the part */
    bool running, done, accepts_zstd; /* accepts_zstd: the answer says so in Accept-Encoding */
    bool failed;                      /* out of memory: the request lacks a header */
    long retry_after_s;               /* Retry-After of the answer; -1: none */
};

/* The upload of the symbols of one executable: of its ranges, then of its return pads. */
struct upload_run {
    const struct push_target *target;
    const struct push_job *job;
    const struct push_set *set; /* the parts of `kind`, which are being uploaded */
    enum push_kind kind;
    CURLM *multi;
    struct push_symbols_transfer *transfers; /* one for each part of `set` */
    size_t done;                             /* number of parts of `set` that were uploaded */
    uint64_t done_bytes;                     /* their uncompressed size */
    bool own_service, zstd; /* own_service: the service is a symloom; zstd: parts are sent compressed */
    int status;             /* a push_status; not PUSH_OK: an error was reported, and the upload ends */
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- progress ---- */
/* Reports an event on stderr, as a line or as JSON. `t`: the part that it is about; NULL: all parts of the kind. `text`: why a part failed;
 * empty: no reason. Nothing with --progress none, or for a sent part if a bar counts it. */
static void push_upload_report(const struct upload_run *s, const char *event, const struct push_symbols_transfer *t,
                               const char *text)
{
    char id[SL_FILE_ID_HEX];
    if (s->target->progress == PUSH_SILENT)
        return;
    sl_file_id_format_hex(&s->job->file_id, id);
    if (s->target->progress == PUSH_BAR) {
        if (t && t->done)
            return; /* the bar shows it */
        progress_end(s->target->bar);
    }
    if (s->target->progress != PUSH_JSON) {
        if (t)
            fprintf(stderr, "%s %s: part %zu of %zu %s%s%s\n", id, push_kind_names[s->kind], t->part + 1, s->set->count,
                    event, *text ? ": " : "", text);
        else
            fprintf(stderr, "%s %s: %s\n", id, push_kind_names[s->kind], event);
        return;
    }
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "event", sl_str(event));
    sl_json_member_str(&w, "file_id", sl_str(id));
    sl_json_member_str(&w, "kind", sl_str(push_kind_names[s->kind]));
    if (t) {
        sl_json_member_u64(&w, "part", t->part);
        sl_json_member_u64(&w, "parts", s->set->count);
        sl_json_member_u64(&w, "bytes", s->set->parts[t->part].size);
    }
    if (*text)
        sl_json_member_str(&w, "text", sl_str(text));
    sl_json_end_object(&w);
    sl_buf_u8(&json, '\n');
    fwrite(json.data, 1, json.size, stderr);
    sl_buf_free(&json);
}

/* Redraws the bar: it counts the parts of all kinds and executables, and the bytes sent of the kind that is being uploaded. */
static void show_bar(struct upload_run *s)
{
    char item[SL_FILE_ID_HEX + 16], id[SL_FILE_ID_HEX];
    uint64_t bytes = s->done_bytes;
    if (s->target->progress != PUSH_BAR)
        return;
    for (size_t i = 0; i < s->set->count; i++) {
        curl_off_t sent = 0;
        const struct push_symbols_transfer *t = &s->transfers[i];
        if (t->running && curl_easy_getinfo(t->curl, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK)
            bytes += (uint64_t)sent;
    }
    sl_file_id_format_hex(&s->job->file_id, id);
    snprintf(item, sizeof item, "%s %s", push_kind_names[s->kind], id);
    progress_show(s->target->bar, item, bytes);
}

/* ---- requests ---- */
/* Called by curl with a piece of the answer's body: keeps it. Returns 0, which makes curl end the transfer with an error, if the answer is
 * longer than MAX_ANSWER, or memory ran out. */
static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct push_symbols_transfer *t = arg;
    if (t->answer.size + size * count > MAX_ANSWER)
        return 0;
    sl_buf_add(&t->answer, data, size * count);
    return t->answer.failed ? 0 : size * count;
}

/* Called by curl with each header line of an answer: keeps Retry-After in seconds (a date is read as 0), and whether Accept-Encoding names
 * zstd. A status line (`HTTP/...`) begins a new answer, such as the final one after an interim one, and resets both. */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct push_symbols_transfer *t = arg;
    struct sl_str line = {data, size * count};
    if (sl_str_starts(line, SL_STR("HTTP/"))) {
        t->retry_after_s = -1;
        t->accepts_zstd = false;
    } else if (line.size > 12 && strncasecmp(data, "Retry-After:", 12) == 0) {
        t->retry_after_s = strtol(data + 12, NULL, 10);
    } else if (line.size > 16 && strncasecmp(data, "Accept-Encoding:", 16) == 0) {
        t->accepts_zstd = memmem(data, line.size, "zstd", 4) != NULL;
    }
    return size * count;
}

/* Adds a header to the request, unless the value is empty. Sets t->failed when out of memory. */
static void add_header(struct push_symbols_transfer *t, const char *name, const char *value)
{
    if (value && *value && !libcurl_add_header(&t->headers, sl_str(name), sl_str(value)))
        t->failed = true;
}

/* Sets up the request of `path` on the service, with the access key; the caller adds the headers t->headers to it. False when out of
 * memory, or the URL is too long. */
static bool push_upload_prepare(struct push_symbols_transfer *t, const struct push_target *target, const char *path)
{
    char url[2048], agent[64];
    t->curl = curl_easy_init();
    if (!t->curl || snprintf(url, sizeof url, "%s%s", target->url, path) >= (int)sizeof url)
        return false;
    sl_buf_clear(&t->answer);
    t->failed = false;
    t->retry_after_s = -1;
    snprintf(agent, sizeof agent, "symloom/%s", SYMLOOM_VERSION);
    if (target->key) {
        char value[4200];
        snprintf(value, sizeof value, "APIKey %s", target->key);
        add_header(t, "Authorization", value);
    }
    curl_easy_setopt(t->curl, CURLOPT_URL, url);
    curl_easy_setopt(t->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(t->curl, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(t->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->curl, CURLOPT_CONNECTTIMEOUT, (long)target->timeout_s);
    /* --timeout: ends a transfer of less than a byte a second for that long */
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_TIME, (long)target->timeout_s);
    curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
    if (target->ca_file)
        curl_easy_setopt(t->curl, CURLOPT_CAINFO, target->ca_file);
    if (target->insecure) {
        curl_easy_setopt(t->curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(t->curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    return !t->failed;
}

/* Frees what one request has used, except for the answer; the next attempt to upload the part starts afresh. */
static void end_request(struct push_symbols_transfer *t)
{
    curl_easy_cleanup(t->curl);
    curl_slist_free_all(t->headers);
    free(t->packed);
    if (t->mapping.bytes.data)
        sl_unmap(&t->mapping);
    t->curl = NULL;
    t->headers = NULL;
    t->packed = NULL;
    t->mapping = (struct sl_mapping){0};
}

/* Adds headers that describe the executable to the request. Only symloom knows these headers, so other services do not get them. */
static void add_identity(const struct upload_run *s, struct push_symbols_transfer *t)
{
    char text[32];
    if (!s->own_service)
        return;
    snprintf(text, sizeof text, "%.16s", s->set->sha256);
    add_header(t, "UploadID", text);
    add_header(t, "BuildID", s->job->build_id);
    add_header(t, "Arch", s->job->arch);
    add_header(t, "CodeFile", s->job->code_file);
    if (s->job->has_base) {
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)s->job->base);
        add_header(t, "BaseAddress", text);
    }
}

/* Starts the upload of a part, compressed if s->zstd. False when out of memory, its temporary file is unreadable, or the URL too long. */
static bool start(struct upload_run *s, struct push_symbols_transfer *t)
{
    char text[64], id[SL_FILE_ID_BASE64];
    const struct push_part *part = &s->set->parts[t->part];
    snprintf(text, sizeof text, "/api/symbols-%s", push_kind_names[s->kind]);
    if (!push_upload_prepare(t, s->target, text) || sl_map_fd(part->fd, &t->mapping, NULL) != SL_OK)
        return false;
    struct sl_bytes body = t->mapping.bytes;
    if (s->zstd) {
        size_t capacity = ZSTD_compressBound(body.size);
        t->packed = malloc(capacity);
        size_t size = t->packed ? ZSTD_compress(t->packed, capacity, body.data, body.size, s->target->zstd_level) : 0;
        if (!t->packed || ZSTD_isError(size))
            return false;
        body = (struct sl_bytes){t->packed, size};
        add_header(t, "Content-Encoding", "zstd");
    }
    sl_file_id_format_base64(&s->job->file_id, id);
    add_header(t, "FileID", id);
    snprintf(text, sizeof text, "%zu", t->part);
    add_header(t, "FilePart", text);
    snprintf(text, sizeof text, "%zu", s->set->count);
    add_header(t, "FileParts", text);
    add_header(t, "Content-Type", "application/octet-stream");
    add_identity(s, t);
    if (t->failed)
        return false;
    curl_easy_setopt(t->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
    t->running = true;
    t->attempts++;
    return curl_multi_add_handle(s->multi, t->curl) == CURLM_OK;
}

/* ---- answers ---- */
/* Parses the body of the answer as JSON; the value null if it is not JSON. */
static struct value parse_answer(const struct push_symbols_transfer *t, struct sl_arena *arena)
{
    struct value answer = {0};
    struct sl_json j = sl_json(sl_buf_view(&t->answer), arena, false);
    return value_from_json(arena, &j, &answer) && sl_json_end(&j) ? answer : (struct value){0};
}

/* Returns the string member `key` of a JSON object; empty if there is none, or `object` is NULL or no object. */
static struct sl_str text_at(const struct value *object, const char *key)
{
    const struct value *value = value_get(object, key);
    return value && value->type == VALUE_STRING ? value->string : SL_STR("");
}

/* True if the answer says that the service stored the part: `{"success": true}`. */
static bool is_success(const struct value *answer)
{
    const struct value *value = value_get(answer, "success");
    return value && value->type == VALUE_BOOL && value->boolean;
}

/* Begins an error about a part, after the progress line has ended: "error: URL: KIND part N: ". The URL is shown without secrets. */
static void begin_part_error(const struct upload_run *s, const struct push_symbols_transfer *t)
{
    struct sl_arena arena = {0};
    const char *url = fetch_public_url(&arena, s->target->url);
    progress_end(s->target->bar);
    fprintf(stderr, "error: %s: %s part %zu: ", url ? url : "no URL", push_kind_names[s->kind], t->part + 1);
    sl_arena_free(&arena);
}

/* Reports that the service refused a part: the HTTP status, and the code, text and uuid that the answer may contain. */
static void report_refusal(const struct upload_run *s, const struct push_symbols_transfer *t, long http,
                           const struct value *answer)
{
    const struct value *error = value_get(answer, "error");
    struct sl_str uuid = text_at(answer, "uuid");
    begin_part_error(s, t);
    fprintf(stderr, "the service responded with %ld", http);
    if (error && error->type == VALUE_MAP)
        fprintf(stderr, ", code " SL_STR_FMT ": " SL_STR_FMT, SL_STR_ARG(text_at(error, "Code")),
                SL_STR_ARG(text_at(error, "Text")));
    if (uuid.size)
        fprintf(stderr, "\n  " SL_STR_FMT " (quote this when asking for support)", SL_STR_ARG(uuid));
    fputc('\n', stderr);
}

/* Reports that a part got no answer, with curl's reason. The URL is shown without secrets. */
static void report_broken(const struct upload_run *s, const struct push_symbols_transfer *t, const char *why)
{
    begin_part_error(s, t);
    fprintf(stderr, "%s\n", why);
}

/* True if another attempt may succeed: curl's error `code` is about the connection, or, if there was an answer, its status `http` is that
 * of a temporary failure. */
static bool is_temporary(CURLcode code, long http)
{
    static const long statuses[] = {408, 429, 500, 502, 503, 504};
    if (code != CURLE_OK)
        return code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT || code == CURLE_SEND_ERROR ||
               code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (http == statuses[i])
            return true;
    return false;
}

/* Returns the pause before a part is sent again, in milliseconds: what the answer's Retry-After says, but at most an hour; else 1, 2, 4 ..
 * 30 seconds, less a random part of up to 25 %. */
static uint64_t pause_ms(const struct push_symbols_transfer *t)
{
    uint16_t random = 0;
    if (t->retry_after_s >= 0)
        return (uint64_t)(t->retry_after_s < 3600 ? t->retry_after_s : 3600) * 1000;
    uint64_t seconds = t->attempts < 6 ? UINT64_C(1) << (t->attempts - 1) : MAX_PAUSE_S;
    seconds = seconds < MAX_PAUSE_S ? seconds : MAX_PAUSE_S;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = 0;
    return seconds * 1000 - seconds * 250 * random / 65536;
}

/* Handles the end of a part's request, `code` is curl's result: counts the part as done, plans a retry, or reports an error and ends the
 * upload (s->status). */
static void push_upload_finish(struct upload_run *s, struct push_symbols_transfer *t, CURLcode code)
{
    long http = 0;
    struct sl_arena arena = {0};
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    curl_multi_remove_handle(s->multi, t->curl);
    struct value answer = parse_answer(t, &arena);
    bool sent_packed = t->packed != NULL;
    t->running = false;
    if (code == CURLE_OK && http == 200 && is_success(&answer)) {
        t->done = true;
        s->done++;
        s->done_bytes += s->set->parts[t->part].size;
        s->target->bar->done++;
        push_upload_report(s, "sent", t, "");
    } else if (code == CURLE_OK && http == 415 && sent_packed) {
        s->zstd = false; /* the service does not support zstd: start_due_transfers sends the part again, uncompressed */
        t->attempts--;   /* not counted as a retry */
    } else if (is_temporary(code, http) && t->attempts <= s->target->retries) {
        char text[64];
        snprintf(text, sizeof text, "status %ld", http);
        t->not_before_ms = now_ms() + pause_ms(t);
        push_upload_report(s, "failed, will retry", t, code != CURLE_OK ? curl_easy_strerror(code) : text);
    } else {
        if (code != CURLE_OK)
            report_broken(s, t, curl_easy_strerror(code));
        else
            report_refusal(s, t, http, &answer);
        s->status = code == CURLE_OK && (http == 401 || http == 403) ? PUSH_DENIED : PUSH_FAILED;
    }
    sl_arena_free(&arena);
    end_request(t);
}

/* Reports that a request could not be made, and ends the upload. `what`: the request and the possible reasons. */
static void report_unprepared(struct upload_run *s, const char *what)
{
    progress_end(s->target->bar);
    fprintf(stderr, "error: cannot prepare %s\n", what);
    s->status = PUSH_FAILED;
}

/* ---- the parts of one kind ---- */
/* Starts the upload of parts that are neither running nor waiting for a retry, until --concurrency are running (`running` are). Lowers
 * `*wait_ms` to the time until the next retry. */
static void start_due_transfers(struct upload_run *s, size_t running, uint64_t *wait_ms)
{
    for (size_t i = 0; i < s->set->count && running < s->target->concurrency; i++) {
        struct push_symbols_transfer *t = &s->transfers[i];
        uint64_t now = now_ms();
        if (t->done || t->running)
            continue;
        if (t->not_before_ms > now) {
            *wait_ms = t->not_before_ms - now < *wait_ms ? t->not_before_ms - now : *wait_ms;
            continue;
        }
        if (!start(s, t)) {
            report_unprepared(s, "a part: out of memory, its temporary file is unreadable, or the URL is too long");
            return;
        }
        running++;
    }
}

/* Uploads all parts of one kind, several at a time; stops at the first that fails for good (s->status). */
static void send_all(struct upload_run *s)
{
    while (s->done < s->set->count && s->status == PUSH_OK) {
        uint64_t wait_ms = s->target->progress == PUSH_BAR ? 100 : 1000; /* redraws the bar ten times a second */
        size_t running = 0;
        int left;
        for (size_t i = 0; i < s->set->count; i++)
            running += s->transfers[i].running;
        start_due_transfers(s, running, &wait_ms);
        curl_multi_perform(s->multi, &left);
        show_bar(s);
        for (CURLMsg *m; (m = curl_multi_info_read(s->multi, &left));) {
            struct push_symbols_transfer *t;
            if (m->msg == CURLMSG_DONE &&
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t) == CURLE_OK) {
                push_upload_finish(s, t, m->data.result);
                wait_ms = 0; /* starts another part at once */
            }
        }
        if (wait_ms)
            curl_multi_poll(s->multi, NULL, 0, (int)wait_ms, NULL);
    }
}

/* Uploads all parts of one kind, s->set. Returns a push_status; problems are reported. */
static int send_set(struct upload_run *s)
{
    s->transfers = calloc(s->set->count, sizeof *s->transfers);
    s->multi = curl_multi_init();
    s->done = 0;
    s->done_bytes = 0;
    if (!s->transfers || !s->multi) {
        fputs("error: out of memory\n", stderr);
        s->status = PUSH_FAILED;
    } else {
        for (size_t i = 0; i < s->set->count; i++)
            s->transfers[i].part = i;
        send_all(s);
    }
    for (size_t i = 0; s->transfers && i < s->set->count; i++) {
        struct push_symbols_transfer *t = &s->transfers[i];
        if (t->running)
            curl_multi_remove_handle(s->multi, t->curl);
        end_request(t);
        sl_buf_free(&t->answer);
    }
    progress_end(s->target->bar);
    free(s->transfers);
    curl_multi_cleanup(s->multi);
    return s->status;
}

/* ---- state on the service ---- */

/* Asks the service what it has of the executable. True when the service is a symloom; `published` then receives the hash of the parts of
 * each kind that it has published, or "". Sets s->zstd to whether the service accepts zstd. s->status is PUSH_FAILED, after a report, when
 * the request could not be made; a request without an answer is no error: the parts are sent as to another service. */
static bool push_upload_query(struct upload_run *s, char published[PUSH_KINDS][65])
{
    struct push_symbols_transfer t = {0};
    char path[64], id[SL_FILE_ID_HEX];
    long http = 0;
    struct sl_arena arena = {0};
    struct value answer = {0};
    sl_file_id_format_hex(&s->job->file_id, id);
    snprintf(path, sizeof path, "/api/symbols/%s", id);
    if (push_upload_prepare(&t, s->target, path)) {
        curl_easy_setopt(t.curl, CURLOPT_HTTPHEADER, t.headers);
        if (curl_easy_perform(t.curl) == CURLE_OK)
            answer = parse_answer(&t, &arena);
        curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &http);
        s->zstd = t.accepts_zstd;
    } else {
        report_unprepared(s, "a request: out of memory, or the URL is too long");
    }
    /* only symloom answers with a file_id, or, for an executable it does not know, a JSON error with a uuid */
    bool is_symloom =
        (http == 200 && text_at(&answer, "file_id").size) || (http == 404 && text_at(&answer, "uuid").size);
    for (int kind = 0; kind < PUSH_KINDS; kind++) {
        published[kind][0] = '\0';
        const struct value *state = value_get(&answer, push_kind_names[kind]);
        if (is_symloom && sl_str_equal(text_at(state, "state"), SL_STR("published")))
            snprintf(published[kind], 65, SL_STR_FMT, SL_STR_ARG(text_at(state, "sha256")));
    }
    sl_arena_free(&arena);
    end_request(&t);
    sl_buf_free(&t.answer);
    return is_symloom;
}

int push_upload(const struct push_target *target, const struct push_job *job)
{
    struct upload_run s = {.target = target, .job = job};
    char published[PUSH_KINDS][65];
    s.own_service = push_upload_query(&s, published);
    /* s.zstd is now what the answer to the query said; "auto" only trusts a symloom */
    s.zstd = target->compress == COMPRESS_ZSTD || (target->compress == COMPRESS_AUTO && s.zstd && s.own_service);
    bool wanted[PUSH_KINDS];
    for (int kind = 0; kind < PUSH_KINDS; kind++) {
        const struct push_set *set = &job->sets[kind];
        wanted[kind] = job->wanted[kind] && set->count && (target->force || strcmp(published[kind], set->sha256) != 0);
        target->bar->total += wanted[kind] ? set->count : 0;
    }
    for (int kind = 0; kind < PUSH_KINDS && s.status == PUSH_OK; kind++) {
        s.kind = (enum push_kind)kind;
        s.set = &job->sets[kind];
        if (!job->wanted[kind] || !s.set->count)
            continue;
        if (wanted[kind])
            send_set(&s);
        else
            push_upload_report(&s, "already uploaded", NULL, "");
    }
    return s.status;
}
