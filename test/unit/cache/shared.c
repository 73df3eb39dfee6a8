/* The layer behind the disk, against real servers: what one machine has computed, the next one need not. */
#include <sys/prctl.h>

#include "redis_server.h"

#include "cache/shared.h"
#include "core/loop.h"
#include "core/metrics.h"

struct plan {
    unsigned *runs;
    const char *write;
    size_t size; /* 0 = strlen */
    enum sl_code code;
    bool incomplete;
};

static enum sl_code compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)arena;
    const struct plan *plan = context;
    ++*plan->runs;
    size_t size = plan->write ? plan->size ? plan->size : strlen(plan->write) : 0;
    if (size)
        assert_int_equal(write(tmp->fd, plan->write, size), size);
    tmp->incomplete = plan->incomplete;
    if (plan->code != SL_OK)
        sl_fail(error, plan->code, "reasons");
    return plan->code;
}

/* Contents that begin with "bad" are not accepted. */
static enum sl_code load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    (void)loaded, (void)weight;
    return bytes.size >= 3 && memcmp(bytes.data, "bad", 3) == 0 ? sl_fail(error, SL_MALFORMED, "bad") : SL_OK;
}

static bool shareable(const void *context)
{
    return ((const struct plan *)context)->size != 1;
}

static const struct cache_kind derived = {
    .name = "symcaches", .section = CACHE_DERIVED, .version = 1001, .compute = compute, .load = load};
static const struct cache_kind objects = {
    .name = "objects", .section = CACHE_DOWNLOADED, .version = 2, .compute = compute, .shareable = shareable};
static const struct cache_kind *const kinds[] = {&derived, &objects};

static struct redis_server server;
static char first_dir[128], second_dir[128], bucket_dir[128];

static int setup(void **state)
{
    if (dir_setup(state) != 0)
        return -1;
    snprintf(first_dir, sizeof first_dir, "%s/first", test_dir);
    snprintf(second_dir, sizeof second_dir, "%s/second", test_dir);
    snprintf(bucket_dir, sizeof bucket_dir, "%s/bucket", test_dir);
    return 0;
}

static int teardown(void **state)
{
    redis_stop(&server);
    return dir_teardown(state);
}

static void machine_open(const char *dir)
{
    struct sl_error error = {0};
    test_config.cache_dir = dir;
    if (cache_init(&test_config, kinds, 2, &error) != SL_OK)
        fail_msg("%s", error.message);
}

/* Ends the machine, after it has stored what it had to, and starts another one. */
static void next_machine(const char *dir)
{
    cache_drain();
    cache_close();
    machine_open(dir);
}

static void run(void (*body)(void *arg))
{
    machine_open(first_dir);
    loop_run_fiber(body, NULL);
    cache_close();
}

/* The time that it took, in milliseconds. */
static uint64_t get(const struct cache_kind *kind, const char *text, const struct plan *plan, const char *contents)
{
    struct cache_key key = {sl_str(text), SL_STR("scope1")};
    struct cache_item *item;
    struct sl_error error = {0};
    uint64_t begin = clock_mono_ns();
    enum sl_code code = cache_get(kind, &key, plan, &item, &error);
    uint64_t took = (clock_mono_ns() - begin) / MS;
    if (code != SL_OK)
        fail_msg("%s: %s", sl_code_name(code), error.message);
    assert_int_equal(item->mapping.bytes.size, plan->size ? plan->size : strlen(contents));
    assert_memory_equal(item->mapping.bytes.data, contents, item->mapping.bytes.size);
    cache_release(item);
    return took;
}

static void get_error(const struct cache_kind *kind, const char *text, const struct plan *plan, enum sl_code code)
{
    struct cache_key key = {sl_str(text), SL_STR("scope1")};
    struct cache_item *item;
    struct sl_error error = {0};
    assert_int_equal(cache_get(kind, &key, plan, &item, &error), code);
    assert_string_equal(error.message, "reasons");
}

static const char *name_of(const struct cache_kind *kind, const char *text)
{
    static char out[200];
    char relative[128];
    cache_relative_path(sl_str(text), kind->version, false, relative);
    snprintf(out, sizeof out, "%s/%s", kind->name, relative);
    return out;
}

static double metric(const char *line)
{
    struct sl_buf out = {0};
    metrics_write(&out, false);
    sl_buf_u8(&out, 0);
    const char *at = strstr((const char *)out.data, line);
    double value = at ? strtod(at + strlen(line), NULL) : 0;
    sl_buf_free(&out);
    return value;
}

/* ---- a directory ---- */
FIBER_TEST(entries_are_shared_through_a_directory, test_config.shared.filesystem_path = bucket_dir)
{
    unsigned runs = 0;
    char path[300];
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents");
    next_machine(second_dir);
    snprintf(path, sizeof path, "bucket/%s", name_of(&derived, "a"));
    assert_string_equal(file_text(path), "contents");
    get(&derived, "a", &plan, "contents");
    assert_int_equal(runs, 1);
    snprintf(path, sizeof path, "second/%s", name_of(&derived, "a"));
    assert_string_equal(file_text(path), "contents");
    snprintf(path, sizeof path, "second/%s.metadata", name_of(&derived, "a"));
    assert_non_null(strstr(file_text(path), "\"scope\":\"scope1\""));
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND}; /* errors are not shared */
    get_error(&derived, "b", &missing, SL_NOT_FOUND);
    next_machine(first_dir);
    get_error(&derived, "b", &missing, SL_NOT_FOUND);
    assert_int_equal(runs, 3);
    struct plan own = {.runs = &runs, .write = "x", .size = 1}; /* the kind says no */
    get(&objects, "c", &own, "x");
    next_machine(second_dir);
    get(&objects, "c", &own, "x");
    assert_int_equal(runs, 5);
    cache_drain();
    assert_false(exists(".tmp"));
}

FIBER_TEST(damaged_shared_entries_are_computed_again, test_config.shared.filesystem_path = bucket_dir)
{
    unsigned runs = 0;
    char path[300];
    snprintf(path, sizeof path, "bucket/%s", name_of(&derived, "a"));
    put_file(path, "bad from elsewhere", 0);
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents"); /* what cannot be used is not believed */
    assert_int_equal(runs, 1);
    cache_drain();
    assert_string_equal(file_text(path), "contents"); /* it is replaced */
}

FIBER_TEST(empty_shared_entries_are_computed_again, test_config.shared.filesystem_path = bucket_dir)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "whole"};
    char path[400];
    snprintf(path, sizeof path, "bucket/%s", name_of(&derived, "a"));
    put_file(path, "", 0);
    get(&derived, "a", &plan, "whole");
    assert_int_equal(runs, 1);
    cache_drain();
}

static void broken_body(void *arg)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    char key[16];
    for (int i = 0; i < 30; i++) { /* beyond the patience */
        snprintf(key, sizeof key, "%d", i);
        get(&derived, key, &plan, "contents");
    }
    assert_int_equal(runs, 30);
    assert_true(metric("symloom_shared_up{backend=\"filesystem\"} ") == 0);
    cache_drain();
}

TEST(unusable_shared_directory_does_no_harm)
{
    put_file("bucket", "not a directory", 0);
    test_config.shared.filesystem_path = bucket_dir;
    run(broken_body);
}

/* ---- Redis ---- */
static void use_redis(void)
{
    redis_start(&server, 0, NULL, NULL);
    test_config.shared.redis_url = server.url;
}

static void redis_body(void *arg)
{
    unsigned runs = 0;
    static char large[300001];
    for (size_t i = 0; i < 300000; i++)
        large[i] = (char)('a' + i * i % 23);
    struct plan plan = {.runs = &runs, .write = "contents"}, big = {.runs = &runs, .write = large};
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND}, denied = {.runs = &runs, .code = SL_PERMISSION_DENIED};
    struct plan internal = {.runs = &runs, .code = SL_INTERNAL};
    get(&derived, "a", &plan, "contents");
    get(&derived, "large", &big, large);
    get_error(&derived, "b", &missing, SL_NOT_FOUND);
    get_error(&derived, "c", &denied, SL_PERMISSION_DENIED);
    get_error(&derived, "d", &internal, SL_INTERNAL);
    assert_int_equal(runs, 5);
    next_machine(second_dir);
    get(&derived, "a", &plan, "contents");
    assert_int_equal(runs, 5);
    get(&derived, "large", &big, large);
    assert_int_equal(runs, 5);
    struct cache_key key = {SL_STR("b"), SL_STR("scope1")};
    struct cache_item *item;
    assert_int_equal(cache_get(&derived, &key, &missing, &item, NULL), SL_NOT_FOUND);
    assert_int_equal(runs, 5);
    get_error(&derived, "c", &denied, SL_PERMISSION_DENIED); /* may be that machine's own fault */
    assert_int_equal(runs, 6);
    get_error(&derived, "d", &internal, SL_INTERNAL);
    assert_int_equal(runs, 7);
    char command[300];
    snprintf(command, sizeof command, "TTL test:%s", name_of(&derived, "a"));
    assert_non_null(strstr(redis_ask(&server, command), ":-1\r\n"));
    snprintf(command, sizeof command, "TTL test:%s", name_of(&derived, "b"));
    int ttl = leading_number(redis_ask(&server, command) + 1);
    assert_true(ttl > 3500 && ttl <= 3600);
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":3\r\n"));
    cache_drain();
}

TEST(contents_and_errors_are_shared_in_redis)
{
    use_redis();
    run(redis_body);
}

TEST(redis_over_tcp_takes_a_password)
{
    int port = free_port();
    char url[100];
    redis_start(&server, port, "--requirepass", "sesame");
    server.greeting = "AUTH sesame\r\nSELECT 3\r\n";
    snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d/3", port);
    test_config.shared.redis_url = url;
    test_config.shared.redis_password = (struct sl_secret){SL_STR("sesame")}; /* the key wins over the URL */
    run(redis_body);
}

FIBER_TEST(contents_replace_old_errors, use_redis(), test_config.restart_retries_malformed = false)
{
    unsigned runs = 0;
    struct plan missing = {.runs = &runs, .code = SL_MALFORMED}, plan = {.runs = &runs, .write = "contents"};
    get_error(&derived, "a", &missing, SL_MALFORMED);
    cache_drain();
    cache_close();
    test_config.derived.retry_malformed_after = 0; /* of age for this machine */
    machine_open(second_dir);
    get(&derived, "a", &plan, "contents");
    cache_drain();
    cache_close();
    test_config.derived.retry_malformed_after = 24 * 3600 * S;
    snprintf(second_dir, sizeof second_dir, "%s/third", test_dir);
    machine_open(second_dir);
    get(&derived, "a", &plan, "contents"); /* has taken the error's place */
    assert_int_equal(runs, 2);
    cache_drain();
}

FIBER_TEST(errors_are_not_shared_when_disabled, use_redis(), test_config.shared.redis_negative = false)
{
    unsigned runs = 0;
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND};
    get_error(&derived, "a", &missing, SL_NOT_FOUND);
    next_machine(second_dir);
    get_error(&derived, "a", &missing, SL_NOT_FOUND);
    assert_int_equal(runs, 2);
    cache_drain();
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":0\r\n"));
}

/* Nor what a scarcity has made of it: with errors wanted, nothing is stored of these. */
FIBER_TEST(busy_and_incomplete_entries_are_not_shared, use_redis())
{
    unsigned runs = 0;
    struct plan busy = {.runs = &runs, .code = SL_BUSY}, cancelled = {.runs = &runs, .code = SL_CANCELLED};
    struct plan part = {.runs = &runs, .write = "part", .incomplete = true},
                plan = {.runs = &runs, .write = "contents"};
    get_error(&derived, "a", &busy, SL_BUSY);
    get_error(&derived, "b", &cancelled, SL_CANCELLED);
    get(&derived, "c", &part, "part");
    next_machine(second_dir);
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":0\r\n"));
    get(&derived, "a", &plan, "contents");
    get(&derived, "b", &plan, "contents");
    get(&derived, "c", &plan, "contents");
    assert_int_equal(runs, 6);
    cache_drain();
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":3\r\n"));
}

FIBER_TEST(large_values_stay_out_of_redis, use_redis(), test_config.shared.redis_max_value_size = 32 << 10)
{
    unsigned runs = 0;
    static char noise[64 << 10];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    struct plan plan = {.runs = &runs, .write = noise, .size = sizeof noise};
    get(&derived, "noise", &plan, noise);
    cache_drain();
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":0\r\n"));
}

FIBER_TEST(garbage_in_redis_is_a_miss, use_redis())
{
    static const char *const values[] = {
        "\"\"",
        "x",
        "\"\\x00\\x01\\x02\\x03\\x04\\x05\\x06\\x07\"",
        "\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00garbage\"",
        "\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x28\\xb5\\x2f\\xfd\"",
        "\"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00garbage\"",
        "\"\\x07\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x28\\xb5\\x2f\\xfd\"",
    };
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    size_t count = sizeof values / sizeof *values;
    for (size_t i = 0; i < count; i++) {
        char key[8], command[600];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(command, sizeof command, "SET test:%s %s", name_of(&derived, key), values[i]);
        assert_non_null(strstr(redis_ask(&server, command), "+OK"));
        get(&derived, key, &plan, "contents");
        snprintf(command, sizeof command, "GET test:%s", name_of(&derived, "none")); /* a use that works */
        redis_ask(&server, command);
    }
    assert_int_equal(runs, count);
    cache_drain();
}

/* ---- Redis and a bucket ---- */
static void both_body(void *arg)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents");
    get(&objects, "o", &plan, "contents");
    next_machine(second_dir);
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":1\r\n")); /* objects go into the bucket alone */
    assert_non_null(strstr(redis_ask(&server, "FLUSHALL"), "+OK"));
    get(&derived, "a", &plan, "contents");
    get(&objects, "o", &plan, "contents");
    assert_int_equal(runs, 2);
    cache_drain();
    assert_non_null(strstr(redis_ask(&server, "DBSIZE"), ":1\r\n")); /* found in the bucket, put into Redis */
}

TEST(redis_is_asked_before_the_bucket)
{
    use_redis();
    test_config.shared.filesystem_path = bucket_dir;
    test_config.shared.route[0] = SHARED_BUCKET_ONLY;
    run(both_body);
}

/* ---- servers that fail ---- */

static void wait_for_up(bool up)
{
    uint64_t end = loop_now_ms() + 30000;
    while ((metric("symloom_shared_up{backend=\"redis\"} ") == 1) != up) {
        assert_true(loop_now_ms() < end);
        fiber_sleep(5);
    }
}

static void absent_body(void *arg)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents");
    get(&derived, "b", &plan, "contents");
    redis_start(&server, 0, NULL, NULL);
    wait_for_up(true);
    get(&derived, "c", &plan, "contents");
    next_machine(second_dir);
    get(&derived, "c", &plan, "contents");
    assert_int_equal(runs, 3);
    redis_stop(&server);
    get(&derived, "d", &plan, "contents");
    get(&derived, "e", &plan, "contents");
    wait_for_up(false);
    redis_start(&server, 0, NULL, NULL);
    wait_for_up(true);
    get(&derived, "f", &plan, "contents");
    next_machine(first_dir);
    get(&derived, "f", &plan, "contents");
    assert_int_equal(runs, 6);
    cache_drain();
}

TEST(lost_redis_is_reconnected)
{
    char url[200];
    snprintf(url, sizeof url, "unix://%s/redis.sock", test_dir);
    test_config.shared.redis_url = url;
    run(absent_body);
}

struct many {
    unsigned running;
    struct fiber_wait_list done;
    struct plan plan;
    int next;
};

static void one_of_many(void *arg)
{
    struct many *many = arg;
    char key[16];
    snprintf(key, sizeof key, "many %d", many->next++);
    get(&derived, key, &many->plan, "contents");
    if (--many->running == 0)
        fiber_wake_all(&many->done);
}

FIBER_TEST(paused_redis_costs_its_timeout_once, use_redis())
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents");
    wait_for_up(true);
    kill(server.pid, SIGSTOP);
    /* Many at once wait for the same time limit; those after them for nothing. */
    struct many many = {.plan = plan, .running = 20};
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    uint64_t begin = clock_mono_ns();
    for (int i = 0; i < 20; i++)
        assert_true(fiber_start(&group, one_of_many, &many));
    while (many.running)
        fiber_wait_on(&many.done, UINT64_MAX);
    fiber_group_wait(&group);
    assert_in_range((clock_mono_ns() - begin) / MS, 1900, 4000);
    begin = clock_mono_ns();
    for (int i = 0; i < 20; i++) {
        char key[24];
        snprintf(key, sizeof key, "after %d", i);
        get(&derived, key, &plan, "contents");
    }
    assert_in_range((clock_mono_ns() - begin) / MS, 0, 1500);
    kill(server.pid, SIGCONT);
    wait_for_up(true);
    get(&derived, "b", &plan, "contents");
    next_machine(second_dir);
    get(&derived, "b", &plan, "contents");
    assert_int_equal(runs, 42);
    cache_drain();
}

static void full_body(void *arg)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&derived, "a", &plan, "contents");
    cache_drain();
    assert_int_equal(runs, 1);
    assert_true(
        metric("symloom_shared_ops_total{backend=\"redis\",cache=\"symcaches\",op=\"put\",result=\"error\"} ") >= 1);
}

TEST(full_redis_does_no_harm)
{
    redis_start(&server, 0, "--maxmemory", "1");
    test_config.shared.redis_url = server.url;
    run(full_body);
}

/* A server that accepts and says something else than Redis does. */
static void babble_body(void *arg)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    assert_true(get(&derived, "a", &plan, "contents") < 1500);
    assert_true(get(&derived, "b", &plan, "contents") < 1500);
    assert_int_equal(runs, 2);
    cache_drain();
}

static void babble(const char *path, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char question[1000];
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 10), 0);
    server.pid = fork();
    if (server.pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test crashes */
    for (int fd; server.pid == 0 && (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
        if (read(fd, question, sizeof question) > 0 && write(fd, text, strlen(text)) > 0)
            continue;
    close(listener);
}

TEST(servers_that_are_no_redis_are_refused)
{
    static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",   "$-5\r\n",     "*1000000000000\r\n",
                                        "+PONG\r\n$99999999999999999999\r\n", "-ERR no\r\n", "+PONG\r\n:12\r\n"};
    char url[256];
    snprintf(server.socket, sizeof server.socket, "%s/redis.sock", test_dir);
    snprintf(url, sizeof url, "unix://%s", server.socket);
    test_config.shared.redis_url = url;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(first_dir, sizeof first_dir, "%s/first%zu", test_dir, i);
        babble(server.socket, texts[i]);
        run(babble_body);
        redis_stop(&server);
    }
}

/* ---- the queue ---- */
FIBER_TEST(uploads_beyond_the_queue_are_dropped, test_config.shared.filesystem_path = bucket_dir,
           test_config.shared.max_upload_queue_bytes = 7)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    const char *dropped =
        "symloom_shared_ops_total{backend=\"filesystem\",cache=\"symcaches\",op=\"put\",result=\"dropped\"} ";
    double before = metric(dropped);
    get(&derived, "a", &plan, "contents");
    cache_drain();
    assert_true(metric(dropped) == before + 1);
    assert_false(exists("bucket"));
}

FIBER_TEST(entries_in_use_are_uploaded_again, test_config.shared.filesystem_path = bucket_dir)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    char path[300], key[16];
    const char *discarded =
        "symloom_shared_ops_total{backend=\"filesystem\",cache=\"symcaches\",op=\"put\",result=\"discarded\"} ";
    double before = metric(discarded);
    for (int i = 0; i < 200; i++) { /* in use for longer than an hour, and gone from the bucket */
        snprintf(key, sizeof key, "%d", i);
        snprintf(path, sizeof path, "first/%s", name_of(&derived, key));
        put_file(path, "contents", 2 * 3600 * S);
        get(&derived, key, &plan, "contents");
    }
    cache_drain();
    double lost = metric(discarded) - before;
    assert_int_equal(runs, 0);
    assert_true(lost >= 150 && lost < 200); /* 95 of 100, with a chance of failure below 10^-12 */
    size_t found = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "%d", i);
        snprintf(path, sizeof path, "bucket/%s", name_of(&derived, key));
        found += exists(path);
    }
    assert_int_equal(found, 200 - (size_t)lost);
}

static int begin_file(void **state)
{
    loop_init(4);
    return 0;
}

static int end_file(void **state)
{
    loop_close();
    return 0;
}

TEST_FILE(.begin = begin_file, .end = end_file, .setup = setup, .teardown = teardown);
