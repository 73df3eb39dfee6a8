/* Resumable uploads as in Google Cloud Storage. A PUT sends the whole file, or a part with its Content-Range, or asks how much of the file
 * has arrived (Content-Range with an asterisk):
 *
 *     Content-Range: bytes 0-524287/2000000   -> 308, Range: bytes=0-524287
 *     Content-Range: bytes [asterisk]/2000000   -> 308, Range: bytes=0-524287; 200 once the file is stored
 *
 * The parts of a file are collected in a temporary file. */
#include "api/uploads/session.h"

#include "api/jobs/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/lru.h"
#include "core/pool.h"
#include "id/id.h"

/* MAX_OPEN: so many sessions may have a temporary file at once; HEAD_MAX: bytes of a symbol file in which its metadata is searched */
enum { MAX_SESSIONS = 100000, MAX_OPEN = 256, HEAD_MAX = 8 << 10 };
#define LIFE_MS (UINT64_C(7) * 24 * 3600 * 1000)

struct session {
    struct lru_entry lru; /* by secret; the list is in order of creation, as look-ups do not mark sessions as used */
    char secret[SESSION_SECRET];
    char scope[SYMBFILE_SCOPE];
    enum store_part part;
    uint64_t size; /* bytes of the decompressed contents */
    uint8_t md5[16];
    uint64_t received; /* bytes in `fd` */
    int fd;            /* temporary file with the parts that have arrived; -1: none yet */
    bool busy;         /* a request uses the session */
    bool done;         /* the file is stored */
    size_t key_size;
    char key[];
};

static size_t open_files; /* number of sessions with an open file, at most MAX_OPEN */

/* Closes the temporary file of the session, if it has one. */
static void session_close(struct session *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    s->fd = -1;
    open_files--;
}

static bool session_is_busy(const struct lru_entry *entry)
{
    return LRU_ITEM(entry, struct session, lru)->busy;
}

static void session_release(struct lru *lru, struct lru_entry *entry)
{
    struct session *s = LRU_ITEM(entry, struct session, lru);
    (void)lru;
    session_close(s);
    free(s);
}

static struct lru sessions = {
    .max_size = UINT64_MAX, .max_count = MAX_SESSIONS, .release = session_release, .in_use = session_is_busy};

/* Begins a session, which ends after LIFE_MS. The secret is all that a client needs to send the file; its first digits are the number of
 * this node, by which other nodes forward requests to it. False when out of memory, or if the system has no random bytes. */
bool session_new(uint16_t node, const char *scope, enum store_part part, struct sl_str key, uint64_t size,
                 const uint8_t md5[16], char secret[SESSION_SECRET])
{
    uint8_t random[(SESSION_SECRET - 1) / 2 - sizeof node]; /* two hex digits of the secret stand for a byte */
    struct session *s = calloc(1, sizeof *s + key.size);
    lru_expire(&sessions, loop_now_ms());
    if (!s || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        free(s);
        return false;
    }
    *s = (struct session){.part = part, .size = size, .fd = -1, .busy = true, .key_size = key.size};
    memcpy(s->scope, scope, sizeof s->scope);
    memcpy(s->key, key.data, key.size);
    memcpy(s->md5, md5, sizeof s->md5);
    snprintf(s->secret, sizeof s->secret, "%04x", node);
    sl_hex_encode(random, sizeof random, s->secret + 4);
    memcpy(secret, s->secret, SESSION_SECRET);
    s->lru.key = sl_str(s->secret);
    s->lru.expires_ms = loop_now_ms() + LIFE_MS;
    /* the new session is marked as busy meanwhile, so that lru_put does not evict it when all other sessions are busy */
    if (!lru_put(&sessions, &s->lru)) {
        free(s);
        return false;
    }
    s->busy = false;
    return true;
}

/* ---- finished files: checked and converted to the store's format; pool ---- */

struct session_file {
    struct session *session;
    const struct config_store *config;
    int fd;                 /* the file as it was sent */
    struct sl_mapping body; /* of `fd` */
    struct member_job job;  /* the file as it is to be stored, as if it were the member of an archive */
    struct sl_arena arena;
    struct gzip_check_result result; /* what the converter says of the file */
    int head;                        /* file with the start of the decompressed contents; -1 = none */
    bool wrong;                      /* differs from the announced size or MD5 */
};

/* Has a converter decompress the file, if it is a gzip file, and sets `wrong` if the contents do not have the announced size and MD5, which
 * is no error (SL_OK). `head` gets the beginning of the contents. */
static enum sl_code session_check(struct session_file *f) SL_SUSPENDS
{
    const struct session *s = f->session;
    const struct gzip_check_options options = {
        .max_size = s->size, .head_size = HEAD_MAX, .is_plain = !f->job.meta.is_packed};
    struct conversion_description about = {.location = {s->key, s->key_size}};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = -1};
    converter_add_file(&call, INPUT_FILE, f->fd);
    call.out = f->head = memfd_create("head", MFD_CLOEXEC);
    if (f->head < 0)
        return sl_fail_errno(&f->job.error, errno, "cannot create a file in memory");
    enum sl_code code = conversion_run(&about, &converter_gzip_check, &call, &f->result, &f->job.error);
    f->wrong = code == SL_MALFORMED ||
               (code == SL_OK && (f->result.size != s->size || memcmp(f->result.md5, s->md5, 16) != 0));
    return code == SL_MALFORMED ? SL_OK : code;
}

/* Reads the metadata of a symbol file from the beginning of its contents, into job.info and job.names. */
static void read_info(struct session_file *f, struct sl_str key)
{
    char head[HEAD_MAX];
    ssize_t size = pread(f->head, head, sizeof head, 0);
    if (size > 0)
        codeinfo_read((struct sl_str){head, (size_t)size}, key, &f->arena, &f->job.info, f->job.names);
}

/* Pool work: writes the checked file to job.work as it is stored: a gzip file with the store's header instead of the client's, any other as
 * it is. */
static void session_write(void *arg)
{
    struct session_file *f = arg;
    struct member_job *job = &f->job;
    uint8_t head[STORE_GZIP_HEADER_SIZE];
    struct sl_str key = {f->session->key, f->session->key_size};
    job->code = sl_map_fd(f->fd, &f->body, &job->error);
    if (job->code != SL_OK)
        return;
    struct sl_bytes stream = f->body.bytes;
    /* the client's gzip header, 0 bytes of a plain file; from the converter, so not trusted to be less than the file */
    uint64_t skip = f->result.header_size < stream.size ? f->result.header_size : stream.size;
    stream = (struct sl_bytes){stream.data + skip, stream.size - skip};
    job->code = store_tmp_file_create(&job->work, &job->error);
    if (job->code != SL_OK)
        return;
    store_gzip_header_write(f->session->size, f->session->md5, head);
    job->meta.size = stream.size + (job->meta.is_packed ? sizeof head : 0);
    if ((job->meta.is_packed && !sl_write_all(job->work.fd, (struct sl_bytes){head, sizeof head})) ||
        !sl_write_all(job->work.fd, stream))
        job->code = sl_fail_errno(&job->error, errno, "cannot write to the upload store");
    if (sl_str_ends(key, SL_STR(".sym")))
        read_info(f, key);
}

/* Checks the size and MD5 of the file that has arrived (`wrong`). If they are right, writes the file to job.work as the store keeps it. */
static enum sl_code session_check_and_write(struct session_file *f) SL_SUSPENDS
{
    struct session *s = f->session;
    struct sl_str key = {s->key, s->key_size};
    f->job.work.fd = f->head = -1;
    f->job.meta = (struct store_meta){
        .is_packed = uploads_is_packed(f->config, key), .original_size = s->size, .has_original = true};
    memcpy(f->job.meta.md5, s->md5, sizeof f->job.meta.md5);
    enum sl_code code = session_check(f);
    if (code == SL_OK && !f->wrong) {
        code = pool_run(POOL_IO | POOL_HEAVY, session_write, f, &f->job.error);
        code = code == SL_OK ? f->job.code : code;
    }
    sl_close(f->head);
    return code;
}

/* Pool work: discards job.work and unmaps the file that has arrived. */
static void session_unmap(void *arg)
{
    struct session_file *f = arg;
    store_tmp_file_discard(&f->job.work);
    if (f->body.bytes.data)
        sl_unmap(&f->body);
}

/* Checks and stores the complete file in `fd`, and answers: 200 if it is stored, 400 if size or MD5 differ from the announced ones
 * (`wrong`), else 500 or 503. uploads_publish_one takes an archive, so the file becomes the only member of one. */
static void session_publish(struct http_exchange *x, struct session *s, const struct config *config, int fd)
{
    struct session_file *f = calloc(1, sizeof *f);
    if (!f) {
        http_reply_no_memory(x);
        return;
    }
    f->session = s;
    f->config = &config->mozilla.store;
    f->fd = fd;
    struct archive_member member = {.key = {s->key, s->key_size}};
    struct archive archive = {.arena = &f->arena, .config = f->config, .members = &member, .count = 1};
    memcpy(archive.scope, s->scope, sizeof archive.scope);
    f->job.archive = &archive;
    f->job.member = &member;
    enum sl_code code = session_check_and_write(f);
    if (code == SL_OK && !f->wrong)
        code = uploads_publish_one(&archive, s->part, &f->job, &f->job.error);
    if (pool_run(POOL_IO, session_unmap, f, NULL) == SL_BUSY) /* no memory for a pool job */
        session_unmap(f);
    if (code != SL_OK && code != SL_CANCELLED)
        log_error("uploads", "cannot store an uploaded file; the client gets an error", LOG_SLSTR("file", member.key),
                  LOG_ERR(&f->job.error));
    if (f->wrong)
        uploads_reply_error(x, 400, SL_STR("size or MD5 of the file differ from what was announced"));
    else if (code != SL_OK)
        uploads_reply_error(x, code == SL_BUSY ? 503 : 500, SL_STR("Internal Server Error"));
    else
        http_reply_empty(x, 200);
    s->done = code == SL_OK && !f->wrong;
    sl_buf_free(&f->job.info);
    sl_arena_free(&f->arena);
    free(f);
}

/* ---- the protocol ---- */

/* Replies 308 with the range of bytes that has arrived; without a Range header if nothing has. */
static void reply_incomplete(struct http_exchange *x, const struct session *s)
{
    char text[48];
    snprintf(text, sizeof text, "bytes=0-%llu", (unsigned long long)(s->received ? s->received - 1 : 0));
    const char *kept = sl_arena_strndup(&x->arena, text, strlen(text));
    http_reply_empty(x, 308);
    if (s->received && kept)
        http_set_header(x, "Range", sl_str(kept));
}

struct session_piece {           /* a Content-Range */
    bool asks;                   /* "bytes [asterisk]/...": asks how much has arrived */
    uint64_t first, last, total; /* offsets of the first and the last byte; size of the file */
    bool has_total;
};

/* Takes decimal digits, at most 18, which fit 64 bits, from the front of the text. False if there are none. */
static bool session_number(struct sl_str *text, uint64_t *number)
{
    size_t i = 0;
    *number = 0;
    for (; i < text->size && i < 18 && sl_is_digit(text->data[i]); i++)
        *number = *number * 10 + (uint64_t)(text->data[i] - '0');
    *text = (struct sl_str){text->data + i, text->size - i};
    return i > 0;
}

/* Removes `c` from the front of the text; false if the text does not begin with it. */
static bool take_char(struct sl_str *text, char c)
{
    bool there = text->size && *text->data == c;
    if (there)
        *text = (struct sl_str){text->data + 1, text->size - 1};
    return there;
}

/* Reads a Content-Range: "bytes a-b/total". An asterisk for a-b asks how much has arrived (`asks`); one for total: it is unknown. False if
 * it is malformed. */
static bool read_piece(struct sl_str text, struct session_piece *piece)
{
    *piece = (struct session_piece){0};
    if (!sl_str_starts(text, SL_STR("bytes ")))
        return false;
    text = (struct sl_str){text.data + 6, text.size - 6};
    piece->asks = take_char(&text, '*');
    if (!piece->asks && (!session_number(&text, &piece->first) || !take_char(&text, '-') ||
                         !session_number(&text, &piece->last) || piece->last < piece->first))
        return false;
    if (!take_char(&text, '/'))
        return false;
    piece->has_total = !take_char(&text, '*');
    return (!piece->has_total || session_number(&text, &piece->total)) && !text.size;
}

struct session_append {
    int from, to;      /* file of the request's body; temporary file of the session */
    uint64_t at, size; /* offset in `to`; size by the Content-Range */
};

/* Pool work: appends the body of a request to the session's temporary file. SL_MALFORMED: it does not have the size of its Content-Range;
 * other errors: it could not be read or written. */
static enum sl_code append_work(void *arg, struct sl_error *error)
{
    struct session_append *a = arg;
    struct sl_mapping mapping;
    enum sl_code code = sl_map_fd(a->from, &mapping, error);
    if (code != SL_OK)
        return code;
    if (mapping.bytes.size != a->size)
        code = sl_fail(error, SL_MALFORMED, "the body does not have the size in its Content-Range");
    else if (!sl_write_all_at(a->to, mapping.bytes, a->at))
        code = sl_fail_errno(error, errno, "cannot write the part to a temporary file");
    sl_unmap(&mapping);
    return code;
}

/* Opens the session's temporary file, if it has none yet. False if MAX_OPEN sessions have one, or if it cannot be created. */
static bool session_open(struct session *s)
{
    struct cache_tmp tmp;
    if (s->fd >= 0)
        return true;
    if (open_files >= MAX_OPEN || cache_tmp_create(&tmp, true, NULL) != SL_OK) /* true: a file without a name */
        return false;
    s->fd = tmp.fd;
    open_files++;
    return true;
}

/* Answers a request whose part of the file was not appended: 400 for SL_MALFORMED, 503 for SL_BUSY, else 500; nothing if it was cancelled.
 * The client may send the part again, as the parts before it are still there. */
static void answer_failed_piece(struct http_exchange *x, const struct session *s, enum sl_code code,
                                const struct sl_error *error)
{
    if (code == SL_CANCELLED)
        return;
    if (code == SL_MALFORMED) {
        uploads_reply_error(x, 400, sl_str(error->message));
        return;
    }
    log_error("uploads", "cannot store a part of an upload in a temporary file; the client gets an error",
              LOG_SLSTR("file", ((struct sl_str){s->key, s->key_size})), LOG_ERR(error));
    if (code == SL_BUSY)
        http_reply_no_memory(x);
    else
        uploads_reply_error(x, 500, SL_STR("Internal Server Error"));
}

/* Appends a part of the file, and answers how much has arrived; with the last part the file is stored. A part that does not start where the
 * one before ended is not appended: the answer tells the client from where to go on. */
static void session_piece(struct http_exchange *x, struct session *s, const struct config *config,
                          const struct session_piece *piece, int body)
{
    struct session_append append = {.from = body, .at = s->received, .size = piece->last - piece->first + 1};
    struct sl_error error;
    if (piece->first != s->received) {
        reply_incomplete(x, s);
        return;
    }
    if (!session_open(s)) {
        uploads_reply_error(x, 503, SL_STR("too many uploads"));
        return;
    }
    append.to = s->fd;
    enum sl_code code = pool_call(POOL_IO, append_work, &append, &error);
    if (code != SL_OK) {
        answer_failed_piece(x, s, code, &error);
        return;
    }
    s->received += append.size;
    if (piece->has_total && s->received == piece->total)
        session_publish(x, s, config, s->fd);
    else
        reply_incomplete(x, s);
}

/* Handles a PUT to a session: the question how much has arrived, a part of the file, or, without Content-Range, the whole file. */
static void session_take(struct http_exchange *x, struct session *s, const struct config *config)
{
    struct sl_str range = http_header(x, "content-range");
    struct session_piece piece;
    int body = -1;
    if (range.data && !read_piece(range, &piece)) {
        uploads_reply_error(x, 400, SL_STR("malformed Content-Range"));
    } else if (range.data && piece.asks) {
        if (s->done)
            http_reply_empty(x, 200);
        else
            reply_incomplete(x, s);
    } else if (http_body_take(x, &body) == SL_OK) { /* `body` is a file now; after an error the server has answered */
        if (range.data)
            session_piece(x, s, config, &piece, body);
        else
            session_publish(x, s, config, body);
    }
    sl_close(body);
}

/* ---- sessions of other processes ---- */

enum { RELAY_ANSWER_MAX = 64 << 10 };
#define RELAY_NS (UINT64_C(600) * 1000000000)

struct relaying {
    struct http_exchange *x;
    int fd;                 /* file of the request's body */
    struct sl_mapping body; /* of `fd` */
    struct sl_error error;
    struct sl_str range; /* Range header of the other process's answer */
};

/* fetch_relay.field, called for each header field of the other process's answer: copies Range, which tells the client how much has
 * arrived. */
static void relay_field(void *arg, struct sl_str name, struct sl_str value)
{
    struct relaying *p = arg;
    const char *kept =
        sl_str_equal_nocase(name, SL_STR("range")) ? sl_arena_strndup(&p->x->arena, value.data, value.size) : NULL;
    if (kept)
        p->range = (struct sl_str){kept, value.size};
}

/* Answers with the status and body of the other process's answer; with 503 if that could not be reached (`code`). */
static void relay_answer(struct relaying *p, enum sl_code code, int status, struct sl_buf *answer)
{
    if (code == SL_CANCELLED)
        return;
    if (code != SL_OK)
        log_warn("uploads", "cannot forward a request to the process that has its upload; the client gets 503",
                 LOG_ERR(&p->error));
    if (code != SL_OK)
        uploads_reply_error(p->x, 503, SL_STR("Service Unavailable"));
    else if (answer->size)
        http_reply_json(p->x, status, answer);
    else
        http_reply_empty(p->x, status);
    if (p->range.data)
        http_set_header(p->x, "Range", p->range);
}

/* Sends the request on to `url`, at the process or node that has the session, and answers with that one's answer. `socket`: path of its
 * Unix socket, if it is a process on this machine, else NULL. */
static void session_relay(struct relaying *p, const char *url, const char *socket)
{
    struct fetch_header headers[NODE_MAX_HEADERS + 1];
    struct sl_str range = http_header(p->x, "content-range");
    struct fetch_relay relay = {.url = url,
                                .socket = socket,
                                .headers = headers,
                                .timeout_ns = RELAY_NS,
                                .max_size = RELAY_ANSWER_MAX,
                                .method = "PUT",
                                .body = p->body.bytes,
                                .field = relay_field,
                                .arg = p};
    struct sl_buf answer = {0};
    int status = 0;
    relay.header_count = node_headers(p->x, headers);
    if (range.data) /* the fetcher takes all header values as secrets */
        headers[relay.header_count++] = (struct fetch_header){SL_STR("Content-Range"), secret_make(range)};
    enum sl_code code = fetch_relay(&relay, &status, &answer, &p->error);
    relay_answer(p, code, status, &answer);
    sl_buf_free(&answer);
}

/* Returns the URL of the session at the process or node whose number is at the beginning of the session's secret; NULL if that is this
 * process, if it is unknown, or when out of memory. `*socket` gets the path of its Unix socket, or NULL. */
static const char *session_url(struct http_exchange *x, const char **socket)
{
    uint8_t all[(SESSION_SECRET - 1) / 2];
    size_t size;
    struct sl_str secret = x->captures[0];
    if (secret.size != SESSION_SECRET - 1 || !sl_hex_decode(secret, all, sizeof all, &size))
        return NULL;
    const char *base = node_get_url(x, (unsigned)all[0] << 8 | all[1], socket);
    struct sl_buf url = {0};
    if (!base)
        return NULL;
    sl_buf_printf(&url, "%s/upload/v2/session/" SL_STR_FMT, base, SL_STR_ARG(secret));
    return sl_buf_move_to_arena(&url, &x->arena).data;
}

/* Forwards the request to the process or node that has the session, and answers it. False if that is this process, or unknown. */
static bool session_forward(struct http_exchange *x)
{
    const char *socket, *url = session_url(x, &socket);
    struct relaying p = {.x = x, .fd = -1};
    if (!url)
        return false;
    if (http_body_take(x, &p.fd) != SL_OK) /* which has answered */
        return true;
    enum sl_code code = pool_map_fd(p.fd, &p.body, &p.error);
    if (code == SL_OK)
        session_relay(&p, url, socket);
    else
        relay_answer(&p, code, 0, NULL); /* there is no answer to relay */
    if (p.body.bytes.data)
        pool_unmap(&p.body);
    close(p.fd);
    return true;
}

/* Handles a PUT for a session of this process, or forwards it to the process that has the session. Only one request at a time may use a
 * session, as parts of the file are appended to one temporary file: a second one gets 503. */
void session_put(struct http_exchange *x)
{
    lru_expire(&sessions, loop_now_ms());
    struct lru_entry *entry = lru_find(&sessions, x->captures[0]);
    struct session *s = entry ? LRU_ITEM(entry, struct session, lru) : NULL;
    if (!s && session_forward(x))
        return;
    if (!s || s->busy) {
        uploads_reply_error(x, s ? 503 : 404, s ? SL_STR("an upload is in progress") : SL_STR("Not Found"));
        return;
    }
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    s->busy = true;
    session_take(x, s, config);
    s->busy = false;
    if (s->done) /* the session stays without its temporary file: a client may ask again whether the file is stored */
        session_close(s);
    config_release(config);
}

uint64_t session_limit(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config->mozilla.store.max_upload_size;
}
