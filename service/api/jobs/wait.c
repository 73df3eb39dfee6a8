/* Lets the client that started a job, and clients that poll for it, wait until it has ended. */
#include "api/impl.h"
#include "api/jobs/node.h"
#include "api/jobs/results.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { RETRY_AFTER_S = 30 }; /* advice to clients that poll: the seconds to wait */

/* The loop waits again after each wake-up, as a job also wakes its waiters when the service stops. FIBER_WOKEN therefore means that
 * the job has ended or the service stops. */
enum fiber_wait job_wait(struct job *job, uint64_t most_ms)
{
    uint64_t now = loop_now_ms(), end;
    enum fiber_wait result = FIBER_WOKEN;
    if (__builtin_add_overflow(now, most_ms, &end))
        end = UINT64_MAX;
    while (job->outcome == JOB_RUNNING && !job->service->stopping && result == FIBER_WOKEN) {
        now = loop_now_ms();
        if (now >= end)
            return FIBER_TIMED_OUT;
        result = fiber_wait_on(&job->waiters, end == UINT64_MAX ? UINT64_MAX : end - now);
    }
    return result;
}

/* Writes the id as a UUID. */
void job_id_format(const uint8_t id[16], char out[37])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0, at = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[at++] = '-';
        out[at++] = digits[id[i] >> 4];
        out[at++] = digits[id[i] & 15];
    }
    out[36] = '\0';
}

/* Answers that the job still runs, with its id; x->job_id keeps the id for the access log. */
void job_reply_pending(struct http_exchange *x, const uint8_t bytes[16])
{
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    job_id_format(bytes, x->job_id);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("pending"));
    sl_json_member_str(&w, "request_id", sl_str(x->job_id));
    sl_json_member_u64(&w, "retry_after", RETRY_AFTER_S);
    sl_json_end_object(&w);
    http_reply_json(x, 200, &body);
}

/* Sends the job's id to the client ("pending"). First publishes in Redis that this node runs the job, so that other nodes can answer
 * polls. Publishing may suspend: false without an answer if the job ended meanwhile; the caller then replies with its result. */
static bool reveal(struct http_exchange *x, struct job *job)
{
    job->revealed = true;
    job->polled_ms = loop_now_ms();
    results_announce(job);
    if (job->outcome != JOB_RUNNING)
        return false;
    job_reply_pending(x, job->id);
    return true;
}

/* Answers with the result. job->result is the stored copy of a job whose id a client knows, shared with the reply. Without one only
 * this request can have the answer: the reply takes the buffer job->answer, which is empty afterwards. */
static void reply_result(struct http_exchange *x, struct job *job)
{
    /* time between the end of the job and the first fetch of its result */
    if (!job->fetched && job->outcome != JOB_BUSY)
        metric_observe(METRIC_JOB_RESULT_IDLE, (double)(loop_now_ms() - job->finished_ms) / 1e3, NULL, NULL, NULL);
    job->fetched = true;
    if (job->outcome == JOB_BUSY)
        http_reply_no_memory(x);
    else if (job->result)
        http_reply_content(x, 200, "application/json", shared_blob_retain(job->result));
    else
        http_reply_json(x, 200, &job->answer);
}

/* Returns how long the client wants to wait in ms; UINT64_MAX (until the end) without `timeout`, or if it overflows. */
uint64_t job_client_timeout_ms(const struct api_query *query)
{
    uint64_t ms;
    return query->has_timeout && !__builtin_mul_overflow(query->timeout_s, 1000u, &ms) ? ms : UINT64_MAX;
}

void job_answer(struct http_exchange *x, struct job *job, const struct api_query *query)
{
    job_id_format(job->id, x->job_id);
    enum fiber_wait waited = job_wait(job, job_client_timeout_ms(query));
    if (job->outcome != JOB_RUNNING) {
        x->waited_ns += job->waited_ns; /* for the access log */
        metric_add(METRIC_POLLS, 1, "done", NULL, NULL);
        reply_result(x, job);
    } else if (waited == FIBER_CANCELLED) {
        /* no answer: the client is gone; job_remove_client cancels the job, unless a client knows its id */
    } else if (job->service->stopping && !query->has_timeout) { /* clients with a timeout expect an id to poll with */
        http_reply_detail(x, 503, "service is shutting down", NULL);
    } else {
        bool pending = reveal(x, job);
        metric_add(METRIC_POLLS, 1, pending ? "pending" : "done", NULL, NULL);
        if (!pending)
            reply_result(x, job);
    }
    job_remove_client(job);
}

/* GET /requests/{id}: answers from this node's jobs, else from the results in Redis, else by asking the node that the id names. 404
 * without a body if none knows the job. */
static void job_poll(struct http_exchange *x)
{
    struct api_query query;
    uint8_t id[16];
    if (!query_read(x, &query))
        return;
    bool is_valid = job_id_parse(x->captures[0], id);
    struct job *job = is_valid ? job_find(x, id) : NULL;
    if (job) {
        job_answer(x, job, &query);
    } else if (!is_valid || !(results_poll(x, id, &query) || node_relay(x, id, &query))) {
        metric_add(METRIC_POLLS, 1, "unknown", NULL, NULL);
        http_reply_empty(x, 404);
    }
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/requests/{id}", .handler = job_poll, .rights = API_RIGHT("symbolicate")},
    {.method = NULL},
};

const struct http_family family_jobs = {.routes = routes, .group = "symbolicate"};
