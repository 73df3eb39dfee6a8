/* Look-ups at the same time: of one key, of several processes; and what they cost. */
#include "plan.h"

#include "base/cancel.h"
#include "core/pool.h"

/* ---- flights ---- */

enum { CROWD = 500 };

struct crowd {
    struct fiber_wait_list gate;
    struct plan plan;
    unsigned runs, arrived, cancelled;
};

static void crowd_fiber(void *arg)
{
    struct crowd *crowd = arg;
    struct cache_key key = key_of("crowded");
    struct cache_item *item;
    enum sl_code code = cache_get(&kind, &key, &crowd->plan, &item, NULL);
    if (code == SL_CANCELLED) {
        crowd->cancelled++;
        return;
    }
    assert_int_equal(code, SL_OK);
    assert_memory_equal(item->mapping.bytes.data, "together", 8);
    crowd->arrived++;
    cache_release(item);
}

/* Begins `count` look-ups, which wait at the gate. */
static void crowd_begin(struct crowd *crowd, struct fiber_group *group, int count)
{
    *crowd = (struct crowd){.plan = {.write = "together", .runs = &crowd->runs, .gate = &crowd->gate}};
    fiber_group_init(group, NULL);
    for (int i = 0; i < count; i++)
        assert_true(fiber_start(group, crowd_fiber, crowd));
    while (!crowd->gate.first)
        assert_true(fiber_sleep(1));
}

FIBER_TEST(concurrent_lookups_share_one_computation)
{
    struct crowd crowd;
    struct fiber_group group;
    crowd_begin(&crowd, &group, CROWD);
    fiber_wake_all(&crowd.gate);
    fiber_group_wait(&group);
    assert_int_equal(crowd.arrived, CROWD);
    assert_int_equal(crowd.runs, 1);
}

FIBER_TEST(computation_outlives_cancelled_callers)
{
    struct crowd crowd;
    struct fiber_group group;
    crowd_begin(&crowd, &group, 3);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_int_equal(crowd.cancelled, 3);
    fiber_wake_all(&crowd.gate); /* the computation was not theirs */
    get(&kind, "crowded", &crowd.plan, "together");
    assert_int_equal(crowd.runs, 1);
}

FIBER_TEST(draining_cancels_computations)
{
    struct crowd crowd;
    struct fiber_group group;
    crowd_begin(&crowd, &group, 1);
    cache_drain();
    fiber_group_wait(&group);
    assert_int_equal(crowd.cancelled, 1);
    assert_false(exists("objects"));
}

/* ---- computations that nobody waits for ---- */
static struct {
    atomic_bool open;
    atomic_int inside;
    unsigned runs;
} spin;

static void spin_work(void *arg)
{
    atomic_fetch_add(&spin.inside, 1);
    while (!sl_is_cancelled() && !atomic_load(&spin.open))
        usleep(100);
}

/* What is made without it would lack something. */
static enum sl_code spin_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)context, (void)arena;
    spin.runs++;
    (void)pool_run(POOL_CONVERT, spin_work, NULL, error);
    assert_int_equal(write(tmp->fd, "spun", 4), 4);
    return SL_OK;
}

static const struct cache_kind spinning = {
    .name = "derived", .section = CACHE_DERIVED, .version = 1, .compute = spin_compute};

static void spin_fiber(void *arg)
{
    struct cache_key key = key_of("spin");
    struct cache_item *item;
    *(enum sl_code *)arg = cache_get(&spinning, &key, NULL, &item, NULL);
    cache_release(item);
}

/* A look-up that has a computation at work. */
static void spin_begin(struct fiber_group *group, enum sl_code *code)
{
    int before = atomic_load(&spin.inside);
    fiber_group_init(group, NULL);
    assert_true(fiber_start(group, spin_fiber, code));
    while (atomic_load(&spin.inside) == before)
        assert_true(fiber_sleep(1));
}

static void spin_leave(struct fiber_group *group)
{
    fiber_group_cancel(group);
    fiber_group_wait(group);
}

FIBER_TEST(abandoned_computation_is_cancelled_only_once)
{
    const struct cache_kind *const all[] = {&spinning};
    struct fiber_group group, other;
    enum sl_code code = SL_OK, other_code = SL_INTERNAL;
    cache_drain();
    cache_close();
    assert_int_equal(cache_init(&test_config, all, 1, NULL), SL_OK);
    spin_begin(&group, &code);
    spin_leave(&group);
    assert_int_equal(code, SL_CANCELLED);
    fiber_group_init(&other, NULL); /* joins what is about to end: it is computed again, and to its end */
    assert_true(fiber_start(&other, spin_fiber, &other_code));
    while (spin.runs < 2)
        assert_true(fiber_sleep(1));
    spin_leave(&other);
    assert_int_equal(other_code, SL_CANCELLED);
    atomic_store(&spin.open, true);
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, spin_fiber, &code));
    fiber_group_wait(&group);
    assert_int_equal(code, SL_OK);
    assert_int_equal(spin.runs, 2);
    cache_drain();
}

/* ---- several processes ---- */

static void shared_directory_body(void *arg)
{
    int seed = *(int *)arg;
    unsigned runs = 0;
    for (int i = 0; i < 200; i++) {
        char name[16], contents[32];
        int number = (i * 7 + seed * 13) % 40;
        snprintf(name, sizeof name, "key%d", number);
        snprintf(contents, sizeof contents, "contents %d", number);
        struct plan plan = {.runs = &runs, .write = contents};
        get(&kind, name, &plan, contents);
        if (i % 10 == seed) {
            struct cleanup_options options = {.all = true};
            struct cleanup_totals totals;
            assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, NULL), SL_OK);
        }
        if (i % 50 == 0)
            reopen_cache();
    }
}

/* Runs before this process has a loop of its own: threads do not survive a fork. */
TEST(processes_share_a_cache_directory, .alone = true)
{
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            loop_init(2);
            open_cache();
            loop_run_fiber(shared_directory_body, &i);
            cache_close();
            _exit(0);
        }
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(files_below("tmp"), 0);
}

/* ---- costs ---- */

FIBER_TEST(cache_hits_are_cheap)
{
    enum { HITS = 200000, FILES = 400 };
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    char text[200];
    snprintf(text, sizeof text, "scope: global\n\nsource: microsoft\nlocation: https://example.com/%0120d\n", 1);
    get(&kind, text, &plan, "contents");
    struct cache_key key = key_of(text);
    struct cache_item *item;
    uint64_t begin = clock_mono_ns();
    for (int i = 0; i < HITS; i++) {
        assert_int_equal(cache_get(&kind, &key, &plan, &item, NULL), SL_OK);
        cache_release(item);
    }
    uint64_t memory = (clock_mono_ns() - begin) / HITS, disk = 0;
    for (int round = 0; round < 2; round++) {
        begin = clock_mono_ns();
        for (int i = 0; i < FILES; i++) {
            snprintf(text, sizeof text, "scope: global\n\nsource: microsoft\nlocation: https://example.com/%0120d\n",
                     i);
            get(&kind, text, &plan, "contents");
        }
        disk = (clock_mono_ns() - begin) / FILES;
        if (round == 0)
            reopen_cache();
    }
    print_message("memory hit %llu ns, disk hit %llu us\n", (unsigned long long)memory,
                  (unsigned long long)disk / 1000);
    assert_int_equal(runs, FILES);
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
