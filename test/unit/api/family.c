/* An API is one file: this one has a form of its own for errors, a prefix, keys of its group, a JSON body and jobs. */
#include "../http/support.h"

#include "api/access.h"
#include "api/impl.h"
#include "config/config.h"
#include "core/memory.h"

/* ---- the API ---- */
struct sum {
    struct sl_opt_u64 a, b;
};

static const struct sl_field sum_fields[] = {
    SL_FIELD(U64, true, sum, a, "a"),
    SL_FIELD(U64, true, sum, b, "b"),
    SL_FIELDS_END,
};

static bool read_fields(struct sl_fields *s)
{
    return sl_fields_object(s, NULL, sum_fields, s->context);
}

static bool read_sum(struct job *job, void *sum, struct sl_str text, struct json_failure *failure)
{
    return json_document(text, &job->arena, read_fields, sum, failure);
}

static void reply_word(struct http_exchange *x, int status, const char *detail)
{
    sl_buf_printf(&x->body, "sum: %d %s", status, detail ? detail : "-");
}

static void refuse_body(struct http_exchange *x, const struct json_failure *failure)
{
    http_reply_error(x, failure->status, failure->problem);
}

/* 1000 and more take a while. */
static enum sl_code add_up(struct job *job, void *arg, struct sl_error *error)
{
    const struct sum *sum = arg;
    uint64_t total = sum->a.value + sum->b.value;
    if (total >= 1000 && !fiber_sleep(200))
        return SL_CANCELLED;
    if (total == 13)
        return sl_fail(error, SL_INTERNAL, "bad luck");
    sl_buf_printf(&job->answer, "{\"sum\":%llu}", (unsigned long long)total);
    return SL_OK;
}

/* Waits for the end, and tells it in words of its own. */
static void answer_in_words(struct http_exchange *x, struct job *job)
{
    assert_int_equal(job_wait(job, UINT64_MAX), FIBER_WOKEN);
    http_reply(x, job->outcome == JOB_COMPLETED ? 200 : 500, "text/plain", sl_buf_view(&job->answer));
    job_remove_client(job);
}

/* Waits as the client asks, and is asked again. */
static const struct job_kind add = {
    .task = "add", .size = sizeof(struct sum), .read = read_sum, .refuse = refuse_body, .run = add_up};
static const struct job_kind tell = {.task = "tell",
                                     .size = sizeof(struct sum),
                                     .read = read_sum,
                                     .refuse = refuse_body,
                                     .answer = answer_in_words,
                                     .run = add_up};

static uint64_t limit(const struct http_exchange *x)
{
    (void)x;
    return 100000;
}

static const char *prefix(const void *service)
{
    assert_non_null(((const struct service *)service)->config);
    return "/sums";
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/add",
     .handler = job_handle,
     .body_limit = limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("proxy"),
     .job = &add},
    {.method = "POST", .pattern = "/tell", .handler = job_handle, .body_limit = limit, .job = &tell},
    {.method = NULL},
};

static const struct http_family family_sums = {
    .routes = routes, .prefix = prefix, .group = "proxy", .error = reply_word, .allow_separator = "; "};

/* ---- beside the others ---- */
extern const struct http_family family_jobs, family_health;
static const struct http_family *const families[] = {&family_health, &family_sums, &family_jobs, NULL};

static struct test_server server;
static struct config *config;
static struct service *service;

static void ready(void)
{
    memory_configure(1 << 30, 1000);
    service = service_new(config);
    assert_non_null(service);
    server.options.service = service;
}

static void adjust(struct http_options *options)
{
    struct value_problems problems = {0};
    assert_int_equal(config_load(NULL, &config, &problems, NULL), SL_OK);
    options->families = families;
    options->authorize = access_authorize;
}

static void stopped(void)
{
    service_stop(service);
    service_free(service);
}

static int setup(void **state)
{
    server_on_ready = ready;
    server_on_stop = stopped;
    server_start(&server, NULL, adjust);
    return 0;
}

static int teardown(void **state)
{
    server_stop(&server);
    config_release(config);
    return 0;
}

static int post(const char *target, const char *body, struct answer *answer)
{
    char request[1024];
    snprintf(request, sizeof request, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", target,
             strlen(body), body);
    return exchange(&server, request, answer);
}

static void assert_post(const char *target, const char *body, int status, const char *expected)
{
    struct answer answer;
    assert_int_equal(post(target, body, &answer), status);
    assert_str(answer.body, expected);
    answer_free(&answer);
}

/* ---- tests ---- */
TEST(family_bodies_are_read_into_fields)
{
    char large[60000];
    int size = snprintf(large, sizeof large, "{\"a\":1,\"b\":2,\"c\":\"");
    memset(large + size, 'x', 50000);
    memcpy(large + size + 50000, "\"}", 3);
    assert_post("/sums/add", "{\"a\":20,\"b\":22}", 200, "{\"sum\":42}");
    assert_post("/sums/add", "{\"a\":20,\"b\":22}}", 400, "sum: 400 trailing characters at line 1 column 16");
    assert_post("/sums/add", "{\"a\":20}", 422, "sum: 422 missing field `b` at line 1 column 1");
    assert_post("/sums/add", "{\"a\":13,\"b\":0}", 200, "{\"status\":\"internal_error\"}");
    struct sl_buf request = {0};
    struct answer answer;
    sl_buf_printf(&request, "POST /sums/add HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", strlen(large),
                  large);
    assert_int_equal(exchange_bytes(&server, request.data, request.size, &answer), 200); /* on the pool */
    assert_str(answer.body, "{\"sum\":3}");
    answer_free(&answer);
    sl_buf_free(&request);
}

TEST(family_errors_have_the_form_of_the_family)
{
    struct answer answer;
    assert_post("/add", "{}", 404, "");
    assert_int_equal(exchange(&server, "GET /sums/add HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    assert_str(answer.body, "sum: 405 -");
    assert_str(answer_header(&answer, "Allow"), "POST");
    answer_free(&answer);
    assert_int_equal(exchange(&server, "POST /sums/add HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n", &answer),
                     413);
    assert_str(answer.body, "sum: 413 -");
    answer_free(&answer);
}

TEST(family_jobs_are_waited_for_and_polled)
{
    struct answer answer;
    char poll[200], id[37];
    assert_int_equal(post("/sums/add?timeout=0", "{\"a\":1000,\"b\":1}", &answer), 200);
    assert_true(sl_str_starts(answer.body, SL_STR("{\"status\":\"pending\",\"request_id\":\"")));
    snprintf(id, sizeof id, "%.36s", answer.body.data + strlen("{\"status\":\"pending\",\"request_id\":\""));
    answer_free(&answer);
    assert_int_equal(exchange(&server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 200);
    assert_non_null(strstr(answer.body.data, "symloom_jobs_accepted_total{task=\"add\"}"));
    answer_free(&answer);
    snprintf(poll, sizeof poll, "GET /requests/%s HTTP/1.1\r\nHost: x\r\n\r\n", id);
    assert_int_equal(exchange(&server, poll, &answer), 200);
    assert_str(answer.body, "{\"sum\":1001}");
    answer_free(&answer);
    assert_post("/sums/tell", "{\"a\":1000,\"b\":2}", 200, "{\"sum\":1002}");
    assert_post("/sums/tell", "{\"a\":6,\"b\":7}", 500, "{\"status\":\"internal_error\"}");
}

TEST(family_group_needs_keys_when_required)
{
    static struct sl_str groups[] = {{"proxy", 5}};
    config->auth.require = groups;
    config->auth.require_count = 1;
    assert_post("/sums/add", "{}", 401, "sum: 401 authentication required");
    config->auth.require_count = 0;
    assert_post("/sums/add", "{\"a\":1,\"b\":2}", 200, "{\"sum\":3}");
}

TEST_FILE(.begin = setup, .end = teardown);
