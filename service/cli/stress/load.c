/* `symloom stress`: a thread per concurrent request, each with a persistent connection. */
#include "cli/stress/stress.h"

#include "cli/cli.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fetch/libcurl.h"

struct workload_run { /* shared by the threads that send the requests of a workload */
    const struct stress_load *load;
    struct stress_workload *workload;
    size_t number;        /* index of the workload */
    double begin, end;    /* of the measurement; monotonic clock, seconds */
    atomic_size_t next;   /* number of the next request */
    pthread_mutex_t lock; /* protects the results in `workload`, `capacity` and `failed` */
    size_t capacity;      /* of workload->seconds */
    bool failed;          /* out of memory */
};

static double stress_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Sleeps until a time of the monotonic clock, in seconds. */
static void sleep_until(double when)
{
    const struct timespec at = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* ---- one request ---- */

enum { ANSWER_BEGIN = 32 };

struct answer_begin {
    char text[ANSWER_BEGIN + 1];
    size_t size;
};

/* Called by curl with a piece of the response: keeps the first ANSWER_BEGIN bytes, in which "status":"completed" would be; discards the
 * rest. */
static size_t keep_beginning(char *data, size_t one, size_t size, void *arg)
{
    struct answer_begin *begin = arg;
    size_t left = ANSWER_BEGIN - begin->size, copied = size < left ? size : left;
    memcpy(begin->text + begin->size, data, copied);
    begin->size += copied;
    begin->text[begin->size] = '\0';
    return size;
}

/* Sets what is the same for all requests of a thread. The empty proxy: connects to the service directly, whatever the environment says. */
static void prepare(CURL *curl, const struct stress_workload *workload)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_beginning);
    if (workload->type) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, workload->body.data ? (const char *)workload->body.data : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)workload->body.size);
    }
}

/* Makes the headers of request `number`. All uploads of a workload use one file id, made of the workload's index; with --cold each uses a
 * new one. False when out of memory. The caller frees `*list` in either case. */
static bool make_headers(const struct workload_run *run, size_t number, struct curl_slist **list)
{
    const struct stress_workload *workload = run->workload;
    const char *key = getenv("SYMLOOM_API_KEY");
    char text[4200] = "APIKey ";
    /* without a value curl leaves the header out: no pause before large bodies for "100 Continue" */
    *list = curl_slist_append(NULL, "Expect:");
    bool good = *list != NULL;
    if (workload->type)
        good = good && libcurl_add_header(list, SL_STR("Content-Type"), sl_str(workload->type));
    if (!workload->uploads)
        return good;
    if (key && access_key_encode(key, text + strlen(text), sizeof text - strlen(text)))
        good = good && libcurl_add_header(list, SL_STR("Authorization"), sl_str(text));
    snprintf(text, sizeof text, "%016zx%016zx", run->number + 1, run->load->cold ? number + 1 : 0);
    return good && libcurl_add_header(list, SL_STR("FileID"), sl_str(text));
}

/* Sends request `number` of a workload. True if it was answered with 200 and, for workloads that report a status, completed. When out of
 * memory, sends nothing and sets run->failed. With --cold each request has a scope of its own, so that no cache entry serves it. */
static bool stress_request(CURL *curl, struct workload_run *run, size_t number)
{
    const struct stress_workload *workload = run->workload;
    struct curl_slist *headers;
    struct answer_begin begin = {.size = 0};
    char url[4096], scope[64] = "";
    long status = 0;
    if (!make_headers(run, number, &headers)) {
        curl_slist_free_all(headers);
        pthread_mutex_lock(&run->lock);
        run->failed = true;
        pthread_mutex_unlock(&run->lock);
        return false;
    }
    if (workload->scoped && run->load->cold)
        snprintf(scope, sizeof scope, "?scope=%zu-%zu", run->number, number);
    else if (workload->scoped)
        snprintf(scope, sizeof scope, "?scope=%zu", run->number);
    snprintf(url, sizeof url, "%s%s%s", run->load->url, workload->path, scope);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &begin);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return status == 200 && (!workload->completes || strstr(begin.text, "\"status\":\"completed\""));
}

/* ---- threads ---- */

/* Records the result of one request: its latency if it is `good`, else one more error. The latency of a failed request is not kept, as it
 * would distort the percentiles. */
static void record_result(struct workload_run *run, bool good, double seconds)
{
    struct stress_workload *workload = run->workload;
    pthread_mutex_lock(&run->lock);
    if (workload->operations == run->capacity) {
        /* when out of memory this latency is lost: run->failed makes run_workloads report it */
        size_t more = run->capacity * 2 + 1024;
        double *grown = reallocarray(workload->seconds, more, sizeof *grown);
        run->failed = run->failed || !grown;
        workload->seconds = grown ? grown : workload->seconds;
        run->capacity = grown ? more : run->capacity;
    }
    if (!good)
        workload->errors++;
    else if (workload->operations < run->capacity)
        workload->seconds[workload->operations++] = seconds;
    pthread_mutex_unlock(&run->lock);
}

/* Runs as a thread: sends requests of a workload until run->end. With --rate, each request has a fixed time to start, and its latency
 * counts from then, even if the thread was late: otherwise a slow service would reduce the load and hide its own delays. */
static void *stress_thread(void *arg)
{
    struct workload_run *run = arg;
    CURL *curl = curl_easy_init();
    if (curl)
        prepare(curl, run->workload);
    for (double start; curl;) {
        size_t number = atomic_fetch_add(&run->next, 1);
        start = run->load->rate > 0 ? run->begin + (double)number / run->load->rate : stress_now();
        if (start >= run->end)
            break;
        if (run->load->rate > 0)
            sleep_until(start);
        bool good = stress_request(curl, run, number);
        double now = stress_now();
        if (now < run->end) /* requests that end after the measurement are not counted */
            record_result(run, good, now - start);
    }
    if (curl)
        curl_easy_cleanup(curl);
    return NULL;
}

/* Sends the unmeasured requests (--warmup) of each workload in sequence. Fails unless all are answered. */
static enum sl_code stress_warm(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                                struct sl_error *error)
{
    bool good = true, failed = false;
    for (size_t i = 0; i < count; i++) {
        struct stress_load warm = *load;
        struct workload_run run = {
            .load = &warm, .workload = &workloads[i], .number = i, .lock = PTHREAD_MUTEX_INITIALIZER};
        CURL *curl = curl_easy_init();
        /* all warm-up requests share one scope and file id. Measured requests use the same ones, and so find cached results, unless --cold
         * is given: then each has its own */
        warm.cold = false;
        if (curl)
            prepare(curl, &workloads[i]);
        for (unsigned n = 0; curl && n < load->warmup; n++)
            good = stress_request(curl, &run, n) && good;
        if (curl)
            curl_easy_cleanup(curl);
        failed = failed || !curl || run.failed;
    }
    if (failed)
        return sl_fail(error, SL_BUSY, "out of memory");
    return good ? SL_OK
                : sl_fail(error, SL_INTERNAL,
                          "a warm-up request failed; the service must answer each workload before it is measured");
}

static int by_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sends the requests of all workloads at the same time, each from as many threads as its concurrency says; waits for their end, and sorts
 * the latencies for percentiles. */
static enum sl_code run_workloads(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                                  struct workload_run *runs, pthread_t *threads, struct sl_error *error)
{
    size_t started = 0;
    bool failed = false;
    double begin = stress_now();
    for (size_t i = 0; i < count; i++) {
        runs[i] = (struct workload_run){
            .load = load, .workload = &workloads[i], .number = i, .begin = begin, .end = begin + load->seconds};
        pthread_mutex_init(&runs[i].lock, NULL);
        for (unsigned k = 0; k < workloads[i].concurrency && !failed; k++) {
            failed = pthread_create(&threads[started], NULL, stress_thread, &runs[i]) != 0;
            started += !failed;
        }
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++) {
        failed = failed || runs[i].failed;
        pthread_mutex_destroy(&runs[i].lock);
        if (workloads[i].operations)
            qsort(workloads[i].seconds, workloads[i].operations, sizeof *workloads[i].seconds, by_seconds);
    }
    return failed ? sl_fail(error, SL_BUSY, "cannot start the load: out of memory or threads") : SL_OK;
}

enum sl_code stress_run(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                        double *warmup_s, struct sl_error *error)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += workloads[i].concurrency;
    struct workload_run *runs = calloc(count, sizeof *runs);
    pthread_t *threads = calloc(all, sizeof *threads);
    double begin = stress_now();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    enum sl_code code = stress_warm(load, workloads, count, error);
    *warmup_s = stress_now() - begin;
    if (!runs || !threads)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (code == SL_OK)
        code = run_workloads(load, workloads, count, runs, threads, error);
    free(runs);
    free(threads);
    return code;
}
