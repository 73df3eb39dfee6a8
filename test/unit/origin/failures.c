/* Which failures are believed, and for how long. */
#include "../check.h"

#include "core/loop.h"
#include "origin/failures.h"

#define SOURCE SL_STR("source")
#define A      SL_STR("https://host/a")
#define B      SL_STR("https://host/b")
#define C      SL_STR("https://host/c")

static int64_t ago(int64_t seconds)
{
    return ((int64_t)clock_wall_us() - seconds * 1000000) * 1000;
}

static bool is_doubted(struct sl_str location, enum sl_code code, int64_t seconds_ago)
{
    return origin_should_retry(SOURCE, location, code, ago(seconds_ago));
}

static int setup(void **state)
{
    loop_init(1);
    return 0;
}

static int teardown(void **state)
{
    origin_failures_clear();
    loop_close();
    return 0;
}

static int forget(void **state)
{
    origin_failures_clear();
    return 0;
}

TEST(facts_about_a_file_are_not_failures)
{
    static const enum sl_code facts[] = {SL_OK, SL_NOT_FOUND, SL_MALFORMED, SL_UNSUPPORTED, SL_INTERNAL, SL_BUSY};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        assert_false(origin_is_failure(facts[i]));
        assert_false(is_doubted(A, facts[i], 3600));
    }
    assert_true(origin_is_failure(SL_DOWNLOAD_ERROR) && origin_is_failure(SL_TIMEOUT));
    assert_true(origin_is_failure(SL_PERMISSION_DENIED));
}

TEST(recent_failures_are_not_retried)
{
    assert_false(is_doubted(A, SL_TIMEOUT, 0));
    assert_false(is_doubted(A, SL_TIMEOUT, 29));
    assert_false(is_doubted(A, SL_TIMEOUT, -3600)); /* of a clock that was ahead */
}

TEST(one_failed_file_is_retried_at_a_time)
{
    assert_true(is_doubted(A, SL_DOWNLOAD_ERROR, 31));
    assert_false(is_doubted(B, SL_DOWNLOAD_ERROR, 31));
    assert_true(is_doubted(A, SL_DOWNLOAD_ERROR, 31));  /* what else is made of the same file */
    assert_false(is_doubted(A, SL_DOWNLOAD_ERROR, -1)); /* it has failed again */
}

TEST(all_failures_are_retried_once_the_source_answers)
{
    origin_record_result(SOURCE, A, SL_DOWNLOAD_ERROR);
    assert_false(is_doubted(A, SL_DOWNLOAD_ERROR, 5));
    assert_false(is_doubted(B, SL_TIMEOUT, 5));
    origin_record_result(SOURCE, C, SL_NOT_FOUND);
    assert_true(is_doubted(A, SL_DOWNLOAD_ERROR, 5));
    assert_true(is_doubted(B, SL_TIMEOUT, 5));
    assert_false(is_doubted(B, SL_TIMEOUT, -1)); /* since then */
}

TEST(file_that_keeps_failing_is_retried_rarely)
{
    for (int i = 0; i < 3; i++) {
        origin_record_result(SOURCE, A, SL_DOWNLOAD_ERROR);
        origin_record_result(SOURCE, B, SL_OK);
    }
    assert_false(is_doubted(A, SL_DOWNLOAD_ERROR, 0));
}

TEST(refusals_and_failures_are_kept_separate)
{
    origin_record_result(SOURCE, A, SL_TIMEOUT);
    origin_record_result(SOURCE, B, SL_PERMISSION_DENIED); /* it answers, though not with a file */
    assert_true(is_doubted(A, SL_TIMEOUT, 5));
    assert_false(is_doubted(B, SL_PERMISSION_DENIED, 5));
    origin_record_result(SOURCE, C, SL_OK);
    assert_true(is_doubted(B, SL_PERMISSION_DENIED, 5));
}

TEST(sources_of_one_id_are_told_apart_by_root)
{
    origin_record_result(SOURCE, A, SL_TIMEOUT);
    origin_record_result(SOURCE, SL_STR("https://other/a"), SL_TIMEOUT);
    origin_record_result(SOURCE, SL_STR("https://other/b"), SL_OK);
    assert_false(is_doubted(A, SL_TIMEOUT, 5));
    assert_true(is_doubted(SL_STR("https://other/a"), SL_TIMEOUT, 5));
}

TEST(answers_seen_by_other_processes_count)
{
    origin_record_result(SOURCE, A, SL_TIMEOUT);
    origin_note_success(SOURCE, B, ago(5)); /* from before */
    assert_false(is_doubted(A, SL_TIMEOUT, 5));
    origin_note_success(SOURCE, B, ago(-1));
    assert_true(is_doubted(A, SL_TIMEOUT, 5));
}

TEST(many_and_long_source_ids_are_harmless)
{
    char id[32];
    for (int i = 0; i < 10000; i++) {
        int size = snprintf(id, sizeof id, "source %d", i);
        origin_record_result((struct sl_str){id, (size_t)size}, A, SL_TIMEOUT);
    }
    char text[2000] = "";
    memset(text, 'x', sizeof text - 1);
    origin_record_result(sl_str(text), A, SL_TIMEOUT);
    origin_record_result(SOURCE, (struct sl_str){NULL, 0}, SL_TIMEOUT);
    assert_false(origin_should_retry(SOURCE, (struct sl_str){NULL, 0}, SL_TIMEOUT, ago(5)));
}

TEST_FILE(.begin = setup, .end = teardown, .setup = forget);
