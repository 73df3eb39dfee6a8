/* Limits of conversions. */
#include "../cache/support.h"

#include <stdatomic.h>
#include <time.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "conversion/conversion.h"

static struct sl_error error;

static enum sl_code run_converter(uint64_t size, const struct converter *converter, struct sl_bytes options)
{
    struct conversion_description about = {size, SL_STR("there"), NULL};
    struct converter_call call = {.options = options, .out = -1};
    error = (struct sl_error){0};
    return conversion_run(&about, converter, &call, NULL, &error);
}

static enum sl_code take_memory(struct conversion *conversion, const struct converter_call *call, void *result,
                                struct sl_error *failure)
{
    struct sl_arena arena = {.budget = &conversion->budget};
    const size_t *size = converter_options(call);
    bool got = sl_arena_alloc(&arena, *size, 1) != NULL;
    sl_arena_free(&arena);
    return got ? SL_OK : sl_fail(failure, SL_BUSY, "out of memory");
}

static const struct converter memory = {"memory", sizeof(size_t), 0, take_memory};

static enum sl_code run_memory(size_t size)
{
    return run_converter(1000, &memory, CONVERTER_OPTIONS(size));
}

/* Goes on until it is told to end, as readers do, and then makes something of what it has. */
static enum sl_code take_time(struct conversion *conversion, const struct converter_call *call, void *result,
                              struct sl_error *failure)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        if (!sl_budget_spend(&conversion->budget, 1))
            return SL_OK;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begun.tv_sec < 60);
    return SL_OK;
}

static const struct converter endless = {"endless", 0, 0, take_time};

static enum sl_code run_endless(uint64_t size)
{
    return run_converter(size, &endless, (struct sl_bytes){NULL, 0});
}

static enum sl_code be_short(struct conversion *conversion, const struct converter_call *call, void *result,
                             struct sl_error *failure)
{
    return sl_budget_fail(&conversion->budget, failure); /* as after a failed malloc */
}

static const struct converter short_of_memory = {"short_of_memory", 0, 0, be_short};

static int configure(void **state)
{
    test_config.conversion.max_memory = 32 << 20;
    test_config.conversion.max_time_ns = 20 * MS;
    test_config.conversion.max_heavy = 2;
    conversions_configure(&test_config);
    return 0;
}

static int configure_dir(void **state)
{
    return dir_setup(state) || configure(state);
}

static void limits_body(void *arg)
{
    assert_int_equal(run_memory(1 << 20), SL_OK);
    assert_int_equal(run_memory(40 << 20), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more than 32 MiB of memory");
    assert_int_equal(run_endless(1000), SL_UNSUPPORTED);
    assert_string_equal(error.message, "the conversion of the file needs more than 20ms of time");
    assert_int_equal(run_endless(5 << 20), SL_UNSUPPORTED);
    assert_string_equal(error.message, "the conversion of the file needs more than 1.02s of time");
    assert_int_equal(run_converter(1000, &short_of_memory, (struct sl_bytes){NULL, 0}), SL_BUSY);
}

/* A caller's own time limit, as of a download that is unpacked, counts instead of the configured one. */
static void own_limit_body(void *arg)
{
    struct conversion_description about = {5 << 20, SL_STR("there"), NULL, .time_ns = 5 * MS};
    struct converter_call call = {.out = -1};
    assert_int_equal(conversion_run(&about, &endless, &call, NULL, &error), SL_TIMEOUT);
}

TEST(conversion_ends_at_the_time_limit_of_its_caller, .setup = configure)
{
    loop_run_fiber(own_limit_body, NULL);
}

TEST(conversion_ends_at_its_limits, .setup = configure)
{
    loop_run_fiber(limits_body, NULL);
}

static enum sl_code check_for_long(struct conversion *conversion, const struct converter_call *call, void *result,
                                   struct sl_error *failure)
{
    *(size_t *)result = converter_input_bytes(call, INPUT_FILE).size;
    return take_time(conversion, call, NULL, failure);
}

static const struct converter long_check = {"long_check", 0, sizeof(size_t), check_for_long};

static void check_body(void *arg)
{
    size_t size = 0;
    put_file("download", "12345", 0);
    int fd = open(in_dir("download"), O_RDONLY);
    struct conversion_description about = {.location = SL_STR("there")};
    struct converter_call call = {.out = -1};
    converter_add_file(&call, INPUT_FILE, fd);
    assert_int_equal(conversion_run(&about, &long_check, &call, &size, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "the conversion of the file needs more than 20ms of time");
    assert_int_equal(size, 5);
    close(fd);
}

TEST(check_of_a_download_ends_at_its_limits, .setup = configure_dir, .teardown = dir_teardown)
{
    loop_run_fiber(check_body, NULL);
}

/* ---- heavy ones ---- */
static double waiting(void)
{
    static const char line[] = "symloom_waiting{what=\"heavy\"} ";
    struct sl_buf out = {0};
    metrics_write(&out, false);
    sl_buf_add(&out, "", 1);
    const char *at = strstr((const char *)out.data, line);
    double value = at ? strtod(at + sizeof line - 1, NULL) : -1;
    sl_buf_free(&out);
    return value;
}

static _Atomic int running, most;
static int finished;

static enum sl_code be_heavy(struct conversion *conversion, const struct converter_call *call, void *result,
                             struct sl_error *failure)
{
    int now = ++running, before = most;
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    struct timespec nap = {0, 2000000};
    nanosleep(&nap, NULL);
    running--;
    return SL_OK;
}

static const struct converter heavy = {"heavy", 0, 0, be_heavy};

static void run_heavy(void *arg)
{
    struct sl_error mine;
    struct conversion_description about = {(UINT64_C(1) << 30) + 1, SL_STR("there"), NULL};
    struct converter_call call = {.out = -1};
    enum sl_code code = conversion_run(&about, &heavy, &call, NULL, &mine);
    assert_int_equal(code, fiber_cancelled() ? SL_CANCELLED : SL_OK);
    finished += code == SL_OK;
}

static void heavy_body(void *arg)
{
    struct fiber_group group, cancelled;
    fiber_group_init(&group, NULL);
    for (int i = 0; i < 12; i++)
        assert_true(fiber_start(&group, run_heavy, NULL));
    assert_true(fiber_sleep(1));
    fiber_group_init(&cancelled, NULL);
    for (int i = 0; i < 3; i++)
        assert_true(fiber_start(&cancelled, run_heavy, NULL));
    assert_true(fiber_sleep(1));
    assert_true(waiting() >= 3);
    fiber_group_cancel(&cancelled);
    fiber_group_wait(&cancelled);
    assert_int_equal(run_converter(1000, &heavy, (struct sl_bytes){NULL, 0}), SL_OK); /* a small one does not wait */
    fiber_group_wait(&group);
    assert_true(waiting() == 0);
}

TEST(heavy_conversions_wait_for_each_other, .setup = configure)
{
    most = finished = 0;
    loop_run_fiber(heavy_body, NULL);
    assert_int_equal(finished, 12);
    assert_true(most <= 3); /* two, and the small one */
    most = finished = 0;
    test_config.conversion.max_heavy = 1;
    conversions_configure(&test_config);
    loop_run_fiber(heavy_body, NULL);
    assert_int_equal(finished, 12);
    assert_true(most <= 2);
}

/* ---- the end of the process ---- */
static atomic_bool at_work;

static enum sl_code work_on(struct conversion *conversion, const struct converter_call *call, void *result,
                            struct sl_error *failure)
{
    atomic_store(&at_work, true);
    return take_time(conversion, call, NULL, failure);
}

static const struct converter working = {"working", 0, 0, work_on};

static void be_cut(void *arg)
{
    *(enum sl_code *)arg = run_converter(UINT64_C(1) << 30, &working, (struct sl_bytes){NULL, 0});
}

static void cut_body(void *arg)
{
    enum sl_code code = SL_OK;
    struct fiber_group group;
    struct timespec begun, ended;
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, be_cut, &code));
    while (!atomic_load(&at_work))
        assert_true(fiber_sleep(1));
    clock_gettime(CLOCK_MONOTONIC, &begun);
    conversions_abort_all();
    fiber_group_wait(&group);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_int_equal(code, SL_CANCELLED);
    assert_true(ended.tv_sec - begun.tv_sec < 30); /* it would have taken minutes */
}

/* Last: there are no conversions afterwards. */
TEST(conversion_is_cancelled_at_shutdown, .setup = configure)
{
    loop_run_fiber(cut_body, NULL);
}

static int begin_file(void **state)
{
    loop_init(4);
    return 0;
}

TEST_FILE(.begin = begin_file);
