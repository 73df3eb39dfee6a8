/* Calls that an event loop begins: it waits for the answer itself, and leaves to a thread what needs more. */
#include "functions.h"

#include <poll.h>
#include <stdio.h>

#include "core/log.h"

static const struct worker_settings two = {.max_workers = 2, .warm = 2, .max_memory = 64 << 20, .max_threads = 4};
static struct worker_pool *pool;

static int open_two(void **state)
{
    log_set_levels("off");
    pool = open_pool(&two);
    return 0;
}

static int close_it(void **state)
{
    pid_t launcher = worker_pool_counts(pool).launcher;
    worker_pool_close(pool);
    wait_until_gone(launcher);
    return 0;
}

TEST_FILE(.setup = open_two, .teardown = close_it);

struct begun {
    struct deed_options options;
    struct worker_call call;
    struct deed_result result;
    struct worker_outcome outcome;
    struct sl_error error;
    struct running_job *running;
};

static void begin(struct begun *b, enum deed deed)
{
    *b = (struct begun){.options = {.deed = deed}, .call = {.out = -1, .limits = test_limits}};
    b->call.options = (struct sl_bytes){(const uint8_t *)&b->options, sizeof b->options};
    b->running = worker_begin(pool, &test_functions[DEED], &b->call, &b->result, b);
}

/* Begins a call with an idle worker, after as many usual ones as it takes until there is one that has greeted. */
static void begin_surely(struct begun *b, enum deed deed)
{
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(run_deed(pool, DO_NOTHING, 0).code, SL_OK);
        begin(b, deed);
        if (b->running)
            return;
    }
    fail();
}

static void assert_ready(struct begun *b)
{
    void *ready[4];
    struct pollfd readable = {worker_pool_ready_fd(pool), POLLIN, 0};
    assert_int_equal(poll(&readable, 1, 10000), 1);
    assert_int_equal(worker_list_ready(pool, ready, 4), 1);
    assert_ptr_equal(ready[0], b);
}

static void assert_none_ready(void)
{
    void *ready[1];
    assert_int_equal(worker_list_ready(pool, ready, 1), 0);
}

TEST(an_answer_is_taken_when_it_is_ready)
{
    struct begun b;
    enum sl_code code = SL_INTERNAL;
    for (int i = 0; i < 20; i++) {
        begin_surely(&b, TELL_PROCESS);
        assert_ready(&b);
        assert_none_ready();
        assert_true(worker_take_answer(b.running, &b.outcome, &code, &b.error));
        assert_int_equal(code, SL_OK);
        assert_true(b.result.value > 1);
    }
}

TEST(calls_that_cannot_begin_are_refused)
{
    struct begun b[3];
    enum sl_code code;
    begin_surely(&b[0], SLEEP_FOR_EVER);
    begin(&b[1], SLEEP_FOR_EVER); /* NULL if the other worker has not greeted yet */
    begin(&b[2], DO_NOTHING);
    assert_null(b[2].running);
    for (int i = 0; i < 2; i++)
        if (b[i].running)
            assert_int_equal(worker_finish(b[i].running, false, &b[i].outcome, &b[i].error), SL_CANCELLED);
    begin_surely(&b[0], DO_NOTHING);
    assert_ready(&b[0]);
    assert_true(worker_take_answer(b[0].running, &b[0].outcome, &code, &b[0].error));
}

TEST(a_thread_takes_over_a_call)
{
    struct begun b;
    unsigned before = 0;
    for (int i = 0; i < 20; i++) {
        begin_surely(&b, TELL_PROCESS);
        assert_int_equal(worker_finish(b.running, true, &b.outcome, &b.error), SL_OK);
        assert_true(b.result.value > 1);
        assert_none_ready(); /* its answer is gone */
        before = before ? before : count_descriptors();
    }
    assert_in_range(count_descriptors(), before, before + 4); /* those of a second worker */
}

TEST(deaths_are_left_to_a_thread)
{
    static const enum deed deaths[] = {READ_NOWHERE, END_PROCESS, ABORT, ANSWER_GARBAGE, ANSWER_FOR_ANOTHER};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        struct begun b;
        enum sl_code code;
        begin_surely(&b, deaths[i]);
        assert_ready(&b);
        assert_false(worker_take_answer(b.running, &b.outcome, &code, &b.error));
        assert_int_equal(worker_finish(b.running, true, &b.outcome, &b.error), SL_MALFORMED);
        assert_true(b.outcome.is_death);
        assert_none_ready();
    }
}

/* Ending it takes time, which the loop does not have. */
TEST(a_worker_that_keeps_its_output_open_is_left_to_a_thread)
{
    struct begun b;
    enum sl_code code;
    do { /* until a worker is idle that has greeted */
        assert_int_equal(run_deed(pool, DO_NOTHING, 0).code, SL_OK);
        b = (struct begun){.options = {.deed = KEEP_OUTPUT, .number = 1},
                           .call = {.out = fileno(tmpfile()), .limits = test_limits}};
        b.call.options = (struct sl_bytes){(const uint8_t *)&b.options, sizeof b.options};
        b.running = worker_begin(pool, &test_functions[DEED], &b.call, &b.result, &b);
    } while (!b.running);
    assert_ready(&b);
    uint64_t started = worker_pool_counts(pool).started;
    assert_false(worker_take_answer(b.running, &b.outcome, &code, &b.error));
    assert_int_equal(worker_finish(b.running, true, &b.outcome, &b.error), SL_OK);
    assert_false(b.outcome.is_death);
    for (int i = 0; i < 1000 && worker_pool_counts(pool).started == started; i++)
        poll(NULL, 0, 10);
    assert_int_equal(worker_pool_counts(pool).started, started + 1); /* another one, as two are kept warm */
}

/* A worker that was taken over by an earlier file: the calls after it have their answers, whoever gives them. */
TEST(what_a_worker_does_after_its_answer_costs_no_later_call)
{
    static const enum deed deeds[] = {ANSWER_TWICE, DIE_AFTER_ANSWER, POISON};
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
        struct begun b;
        enum sl_code code;
        begin_surely(&b, deeds[i]);
        assert_ready(&b);
        assert_true(worker_take_answer(b.running, &b.outcome, &code, &b.error));
        begin(&b, TELL_PROCESS);
        if (b.running) {
            assert_ready(&b);
            if (!worker_take_answer(b.running, &b.outcome, &code, &b.error))
                code = worker_finish(b.running, true, &b.outcome, &b.error);
            assert_int_equal(code, SL_OK);
        }
        assert_int_equal(run_deed(pool, DO_NOTHING, 0).code, SL_OK);
    }
}
