/* Job results in Redis, from which other nodes answer polls. Values: 'R' a result, 'P' the job runs, 'L' only its node has the result. */
#include "api/jobs/results.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "api/impl.h"
#include "api/jobs/node.h"
#include "base/list.h"
#include "cache/redis.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "id/id.h"

/* RENEW_MS: how often the marker of a running job is renewed. REREAD_MS: how often a poll that waits reads the job's key again. REST_MS:
 * how long no command is sent after Redis did not respond. KEY_MAX: size of a key. OWNER_BYTES: how many bytes of the access key's hash a
 * Redis key has. RESULT_MAX: largest result, in bytes. */
enum { RENEW_MS = 10000, REREAD_MS = 2000, REST_MS = 5000, KEY_MAX = 224, OWNER_BYTES = 8, RESULT_MAX = 1 << 30 };
#define MARKER_S "30" /* seconds until the marker of a running job expires; it is renewed every RENEW_MS */

/* A handler that waits for the end of another node's job. */
struct job_result_listener {
    struct sl_link link;
    uint8_t id[16];
    bool ended; /* since the job's key was last read, a message on the channel said that the job has ended */
    struct fiber_wait_list waiting;
};

struct job_results {
    struct service *service;
    struct redis *redis, *channel;        /* one connection for commands, one subscribed to the channel */
    struct fiber_group group, publishing; /* renew_fiber and the connections; fibers that publish results */
    struct sl_list listeners;
    uint64_t rest_until_ms,
        next_log_ms; /* until rest_until_ms no command is sent, until next_log_ms no warning is logged */
    char channel_name[144];
    const char *space;  /* namespace of the keys */
    uint64_t max_value; /* largest value that is stored in Redis, in bytes */
};

/* ---- Redis commands ---- */

/* Writes the Redis key of a job. It has a hash of the access key's id, so that clients with another access key cannot find the job. */
static void write_key(const struct job_results *results, const uint8_t id[16], struct sl_str key_id, char out[KEY_MAX])
{
    char text[37];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    job_id_format(id, text);
    int size = snprintf(out, KEY_MAX, "%.128s:job:%s", results->space, text); /* a longer namespace is cut to fit */
    if (!key_id.size)
        return;
    SHA256((const uint8_t *)key_id.data, key_id.size, digest);
    out[size++] = '@';
    sl_hex_encode(digest, OWNER_BYTES, out + size);
}

static void write_job_key(const struct job_results *results, const struct job *job, char out[KEY_MAX])
{
    write_key(results, job->id, sl_str(job->key_id ? job->key_id : ""), out);
}

/* Sends a command to Redis; false if it failed or was not sent. On true the caller frees answer->text. After a failure to connect or
 * to get an answer, no command is sent for REST_MS, so that clients do not wait for a dead server. */
static bool results_command(struct job_results *results, const struct sl_str *words, size_t count,
                            struct redis_answer *answer)
{
    *answer = (struct redis_answer){0};
    if (loop_now_ms() < results->rest_until_ms)
        return false;
    enum redis_result result = redis_command(results->redis, words, count, answer);
    if (result == REDIS_ANSWERED && answer->type != REDIS_FAILURE)
        return true;
    /* a cancelled request, or lack of memory in this process, says nothing about Redis */
    if (result != REDIS_CANCELLED && result != REDIS_BUSY && loop_minutely(&results->next_log_ms))
        log_warn("jobs", "cannot share job results with other nodes: Redis does not respond as expected",
                 LOG_SLSTR("answer", sl_buf_view(&answer->text)));
    if (result == REDIS_TIMED_OUT || result == REDIS_UNREACHABLE)
        results->rest_until_ms = loop_now_ms() + REST_MS;
    sl_buf_free(&answer->text);
    return false;
}

/* Sets a key to a value that expires after `seconds` (a decimal number). False if Redis did not do it. */
static bool results_set(struct job_results *results, const char *key, struct sl_str value, struct sl_str seconds)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("SET"), sl_str(key), value, SL_STR("EX"), seconds};
    bool done = results_command(results, words, 5, &answer);
    sl_buf_free(&answer.text);
    return done;
}

/* Sets the key to a letter and the number of this node: 'P' = the job is running here, 'L' = its result is only on this node. */
static bool results_set_marker(struct job_results *results, const char *key, char what, struct sl_str seconds)
{
    char text[16];
    int size = snprintf(text, sizeof text, "%c%u", what, results->service->node);
    return results_set(results, key, (struct sl_str){text, (size_t)size}, seconds);
}

/* ---- publishing ---- */
void results_announce(struct job *job)
{
    struct job_results *results = job->service->results;
    char key[KEY_MAX];
    if (!results || job->announced)
        return;
    write_job_key(results, job, key);
    job->announced = results_set_marker(results, key, 'P', SL_STR(MARKER_S));
}

/* Renews the markers of this node's running jobs; when a process dies, nobody renews its markers, and they expire. The ids are
 * copied first, as service.jobs may change while the fiber waits for Redis. */
static void renew_all(struct job_results *results)
{
    struct service *service = results->service;
    struct sl_buf ids = {0};
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&service->jobs, e));) {
        const struct job *job = e->value;
        if (job->announced && job->outcome == JOB_RUNNING)
            sl_buf_add(&ids, job->id, sizeof job->id);
    }
    for (size_t at = 0; at + 16 <= ids.size; at += 16) {
        const struct job *job = sl_map_get(&service->jobs, (struct sl_str){(const char *)ids.data + at, 16});
        char key[KEY_MAX];
        if (!job || job->outcome != JOB_RUNNING)
            continue;
        write_job_key(results, job, key);
        if (!results_set_marker(results, key, 'P', SL_STR(MARKER_S)))
            break; /* Redis does not respond: the others would fail too */
    }
    sl_buf_free(&ids);
}

static void renew_fiber(void *arg)
{
    while (fiber_sleep(RENEW_MS))
        renew_all(arg);
}

struct publication { /* the end of one job, to be published by a fiber, which frees it */
    struct job_results *results;
    uint8_t id[16];
    char key[KEY_MAX];
    struct shared_blob *content; /* the result (a reference); NULL: there is none to keep */
    uint64_t ttl_s;
    struct sl_bytes bytes; /* of `content`, while it is compressed */
    struct sl_buf frame;   /* 'R' and the zstd frame */
};

/* Pool work: sets p->frame to 'R', the letter of a result, and the result compressed at level 1, the fastest. When out of memory the
 * frame is marked as failed. */
static void compress_result(void *arg)
{
    struct publication *p = arg;
    size_t bound = ZSTD_compressBound(p->bytes.size);
    sl_buf_u8(&p->frame, 'R');
    if (!sl_buf_reserve(&p->frame, bound))
        return;
    size_t size = ZSTD_compress(p->frame.data + 1, bound, p->bytes.data, p->bytes.size, 1);
    if (ZSTD_isError(size))
        p->frame.failed = true;
    else
        p->frame.size += size;
}

/* Compresses the result into p->frame. False if it is too large for Redis, cannot be read because it was moved to a file, or when
 * out of memory. JSON seldom shrinks to less than a sixteenth, so results 16 times as large as the largest value are not even
 * compressed. */
static bool pack_result(struct publication *p)
{
    struct sl_error error;
    if (shared_blob_size(p->content) > p->results->max_value * 16)
        return false;
    p->bytes = shared_blob_pin(p->content);
    bool packed = p->bytes.data && pool_run(POOL_COMPRESS, compress_result, p, &error) == SL_OK;
    if (p->bytes.data)
        shared_blob_unpin(p->content);
    return packed && !p->frame.failed && p->frame.size <= p->results->max_value;
}

/* Stores the end of a job in Redis: its result, or the marker 'L' if pack_result cannot pack it; if there is no result to keep,
 * deletes the key. Then notifies the nodes that wait for the job. */
static void publish_end(struct publication *p)
{
    struct job_results *results = p->results;
    char seconds[24], id[37];
    struct redis_answer answer;
    struct sl_str gone[] = {SL_STR("DEL"), sl_str(p->key)};
    struct sl_str ttl = {seconds, (size_t)snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)p->ttl_s)};
    if (!p->content)
        results_command(results, gone, 2, &answer);
    else if (pack_result(p))
        results_set(results, p->key, sl_buf_view(&p->frame), ttl);
    else
        results_set_marker(results, p->key, 'L', ttl);
    if (!p->content) /* only results_command leaves its answer to the caller; results_set frees it */
        sl_buf_free(&answer.text);
    job_id_format(p->id, id);
    struct sl_str notice[] = {SL_STR("PUBLISH"), sl_str(results->channel_name), sl_str(id)};
    results_command(results, notice, 3, &answer);
    sl_buf_free(&answer.text);
}

/* A fiber that publishes the end of a job, and frees the record of it. */
static void publish_fiber(void *arg)
{
    struct publication *p = arg;
    publish_end(p);
    shared_blob_release(p->content);
    sl_buf_free(&p->frame);
    free(p);
}

/* Publishes the end of a job from a fiber of its own. When out of memory nothing is published: the marker in Redis expires, and
 * other nodes then forward polls to this node. */
void results_publish(struct job *job)
{
    struct job_results *results = job->service->results;
    struct publication *p = results && job->announced ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return;
    /* after an internal error or lack of memory clients submit the work again, so that the result is not kept, as in is_kept */
    bool kept = job->result && job->outcome != JOB_INTERNAL_ERROR && job->outcome != JOB_BUSY;
    p->results = results;
    memcpy(p->id, job->id, sizeof p->id);
    write_job_key(results, job, p->key);
    p->content = kept ? shared_blob_retain(job->result) : NULL;
    p->ttl_s = DURATION_MS(job->service->config->result_ttl_ns) / 1000 + 1; /* rounded up to whole seconds */
    /* also beyond max_fibers, as the job was admitted before */
    if (fiber_start_admitted(&results->publishing, publish_fiber, p))
        return;
    shared_blob_release(p->content);
    free(p);
}

/* ---- polls for jobs of other nodes ---- */

/* Called for each message of the channel, which is the id of a job that has ended: wakes the handlers that wait for this job. */
static void on_ended(void *arg, struct sl_str message)
{
    struct job_results *results = arg;
    uint8_t id[16];
    if (!job_id_parse(message, id))
        return;
    for (struct job_result_listener *l = SL_LIST_FIRST(&results->listeners, struct job_result_listener, link); l;
         l = SL_LIST_NEXT(l, link))
        if (memcmp(l->id, id, sizeof id) == 0) {
            l->ended = true;
            fiber_wake_all(&l->waiting);
        }
}

struct result_decompression { /* input and output of decompress_result */
    struct sl_str frame;      /* input */
    struct sl_buf text;       /* output */
    bool scarce;              /* it failed for lack of memory */
};

/* Pool work: decompresses a result. Marks `text` as failed if the frame is damaged or too large, or when out of memory; in the last case
 * also sets `scarce`. ZSTD_getFrameContentSize reports errors as sizes beyond RESULT_MAX. */
static void decompress_result(void *arg)
{
    struct result_decompression *u = arg;
    unsigned long long size = ZSTD_getFrameContentSize(u->frame.data, u->frame.size);
    if (size > RESULT_MAX || !sl_buf_reserve(&u->text, (size_t)size)) {
        u->scarce = size <= RESULT_MAX;
        u->text.failed = true;
        return;
    }
    size_t done = ZSTD_decompress(u->text.data, (size_t)size, u->frame.data, u->frame.size);
    if (ZSTD_isError(done)) {
        u->scarce = ZSTD_getErrorCode(done) == ZSTD_error_memory_allocation;
        u->text.failed = true;
    } else {
        u->text.size = done;
    }
}

/* Decompresses a result and replies with it, or with 503 when out of memory. False: no reply was made, as the result is damaged or
 * the client is gone. */
static bool reply_frame(struct http_exchange *x, struct sl_str frame)
{
    struct result_decompression u = {.frame = frame};
    struct sl_error error;
    enum sl_code code = pool_run(POOL_COMPRESS, decompress_result, &u, &error);
    if (code == SL_OK && !u.text.failed) {
        metric_add(METRIC_POLLS, 1, "done", NULL, NULL);
        http_reply_json(x, 200, &u.text);
        return true;
    }
    sl_buf_free(&u.text);
    bool scarce = code == SL_BUSY || (code == SL_OK && u.scarce);
    if (scarce)
        http_reply_no_memory(x); /* with false, the caller would answer that there is no such job */
    return scarce;
}

/* What Redis says about a job: nothing of use, it runs, or it has ended and the poll is answered. */
enum job_result_state { KNOWN_NOT, KNOWN_RUNNING, KNOWN_ANSWERED };

/* Reads the job's key. KNOWN_ANSWERED: it had the result ('R'), and the poll is answered. KNOWN_RUNNING: 'P'. KNOWN_NOT: there is no
 * such key, Redis does not respond, the result is damaged, or it is only on the job's node ('L'); the caller then forwards the poll to
 * that node. */
static enum job_result_state results_get(struct job_results *results, struct http_exchange *x, const uint8_t id[16])
{
    char key[KEY_MAX];
    struct redis_answer answer;
    enum job_result_state known = KNOWN_NOT;
    write_key(results, id, x->key_id, key);
    struct sl_str words[] = {SL_STR("GET"), sl_str(key)};
    if (!results_command(results, words, 2, &answer))
        return KNOWN_NOT;
    struct sl_str value = sl_buf_view(&answer.text);
    if (answer.type == REDIS_TEXT && value.size && value.data[0] == 'P')
        known = KNOWN_RUNNING;
    else if (answer.type == REDIS_TEXT && value.size && value.data[0] == 'R')
        known = reply_frame(x, (struct sl_str){value.data + 1, value.size - 1}) ? KNOWN_ANSWERED : KNOWN_NOT;
    sl_buf_free(&answer.text);
    return known;
}

/* Waits until the job ends, but at most REREAD_MS, after which the key is read again because messages of the channel may get lost.
 * False: the client's timeout is over, or the client is gone. */
static bool await_end(struct job_result_listener *l, uint64_t end_ms)
{
    uint64_t now = loop_now_ms();
    if (now >= end_ms || fiber_cancelled())
        return false;
    if (!l->ended)
        fiber_wait_on(&l->waiting, end_ms - now < REREAD_MS ? end_ms - now : REREAD_MS);
    return !fiber_cancelled();
}

/* The handler is in the list of listeners before it first reads the key: a job that ends in between is then not missed. Polls for
 * jobs of this node are not answered here. */
bool results_poll(struct http_exchange *x, const uint8_t id[16], const struct api_query *query)
{
    const struct service *service = x->service;
    struct job_results *results = service->results;
    uint64_t now = loop_now_ms(), end;
    unsigned owner = (unsigned)id[0] << 8 | id[1];
    if (!results || owner == service->node)
        return false;
    if (__builtin_add_overflow(now, job_client_timeout_ms(query), &end))
        end = UINT64_MAX;
    struct job_result_listener listener = {0};
    memcpy(listener.id, id, sizeof listener.id);
    sl_list_prepend(&results->listeners, &listener.link);
    enum job_result_state known;
    do {
        listener.ended = false;
        known = results_get(results, x, id);
    } while (known == KNOWN_RUNNING && !service->stopping && await_end(&listener, end));
    sl_list_remove(&results->listeners, &listener.link);
    if (known == KNOWN_RUNNING) {
        metric_add(METRIC_POLLS, 1, "pending", NULL, NULL);
        job_reply_pending(x, id);
    }
    return known != KNOWN_NOT;
}

/* ---- open and close ---- */

static const char no_memory_message[] =
    "cannot share job results over Redis: out of memory; other nodes cannot answer for jobs of this one";

/* Opens two connections to Redis (`channel` receives messages, `redis` is for all other commands), and starts the fiber that renews
 * markers. NULL if results are not shared, or on failure: the service then works without. Invalid options are not logged, as the check of
 * the configuration reports them. */
struct job_results *results_open(struct service *service)
{
    const struct config_shared *shared = &service->config->shared;
    struct redis_options options;
    struct sl_error error = {0};
    const char *key;
    if (service->config->cluster.results != CLUSTER_REDIS || !shared->redis_url)
        return NULL;
    if (cache_redis_options(service->config, &options, &key, &error) != SL_OK)
        return NULL;
    struct job_results *results = calloc(1, sizeof *results);
    if (!results) {
        log_error("jobs", no_memory_message);
        return NULL;
    }
    results->service = service;
    results->space = shared->redis_namespace;
    results->max_value = shared->redis_max_value_size;
    snprintf(results->channel_name, sizeof results->channel_name, "%s:jobs", results->space);
    fiber_group_init(&results->group, NULL);
    fiber_group_init(&results->publishing, NULL);
    results->redis = redis_open(&options, &results->group);
    results->channel = redis_open(&options, &results->group);
    if (!results->redis || !results->channel) {
        log_error("jobs", no_memory_message);
        redis_close(results->redis);
        redis_close(results->channel);
        free(results);
        return NULL;
    }
    if (!redis_listen(results->channel, results->channel_name, on_ended, results) ||
        !fiber_start(&results->group, renew_fiber, results))
        log_error("jobs", "cannot share job results over Redis: this process is out of memory; other nodes cannot "
                          "answer for its jobs");
    return results; /* also then: results are still stored and read */
}

void results_close(struct job_results *results)
{
    if (!results)
        return;
    fiber_group_wait(&results->publishing);
    for (struct job_result_listener *l = SL_LIST_FIRST(&results->listeners, struct job_result_listener, link); l;
         l = SL_LIST_NEXT(l, link))
        fiber_wake_all(&l->waiting);
    while (results->listeners.first) /* each handler answers, as the service is stopping, and removes its listener */
        fiber_sleep(1);
    fiber_group_cancel(&results->group);
    fiber_group_wait(&results->group);
    redis_close(results->redis);
    redis_close(results->channel);
    free(results);
}
