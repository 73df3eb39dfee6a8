/* Invalidates entries made from files that have changed, for example by an upload: in this process, in others, on other machines. */
#include "cache/shared.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"

/* ---- the processes of one service ---- */
/* How often a process looks for invalidation stamps of other services, which stamp_counter does not count. */
enum { GENERATION_MS = 1000 };

static atomic_uint local_counter;
/* Incremented when a process of this service has written invalidation stamps; in memory that these processes share
 * (cache_share_change_counter), or local. */
static atomic_uint *stamp_counter = &local_counter;

bool cache_share_change_counter(void)
{
    void *page = mmap(NULL, sizeof *stamp_counter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    stamp_counter = page;
    return true;
}

/* True if the generation of the invalidation stamps should be read again: GENERATION_MS after it was due last, or at once when a process of
 * this service has written stamps. */
bool cache_watch_is_due(struct cache_watch *watch, uint64_t now_ms)
{
    unsigned counter_seen = atomic_load(stamp_counter);
    if (now_ms < watch->due_ms && counter_seen == watch->counter_seen)
        return false;
    *watch = (struct cache_watch){now_ms + GENERATION_MS, counter_seen};
    return true;
}

/* ---- comparing with stamps ---- */
struct stamp_comparison { /* pool work */
    const char *dir;
    struct sl_str key;
    int64_t stamp_ns;
};

/* Pool work: reads the time of the newest invalidation stamp of the files that the key names. */
static void invalidate_compare(void *arg)
{
    struct stamp_comparison *c = arg;
    c->stamp_ns = cache_newest_stamp(c->dir, c->key);
}

/* In doubt returns true, so that no entry is used that may be outdated: if the invalidation stamp was made in the second `created_s`, as
 * either may be older, and if the stamps cannot be read. */
bool cache_was_invalidated(struct sl_str key, int64_t created_s)
{
    struct stamp_comparison c = {.dir = cache_dir_of_process(), .key = key};
    if (!c.dir)
        return false;
    return pool_run(POOL_IO, invalidate_compare, &c, NULL) != SL_OK ||
           (c.stamp_ns && c.stamp_ns / CACHE_SECOND_NS >= created_s);
}

/* ---- announcing ---- */
struct stamp_write { /* pool work */
    const char *dir;
    const struct cache_file *files;
    size_t count;
    int64_t at_ns;
    struct cache_generations generations;
};

/* Attempts to take the lock for writing invalidation stamps, which other processes hold for some microseconds. */
enum { ATTEMPTS = 1000, ATTEMPT_EVERY_MS = 2 };

/* Pool work: writes the stamps. SL_BUSY while another process has the lock for writing stamps. */
static enum sl_code stamp(void *arg, struct sl_error *error)
{
    struct stamp_write *s = arg;
    return cache_write_stamp(s->dir, s->files, s->count, s->at_ns, &s->generations, error);
}

/* Writes the invalidation stamps; does nothing without a cache directory. One fiber does so at a time, the others wait. Waits for the lock
 * that other processes may hold: tries to take it ATTEMPTS times, then SL_BUSY. SL_CANCELLED. */
static enum sl_code write_stamps(struct stamp_write *s, struct sl_error *error)
{
    static struct fiber_wait_list turn;
    static bool busy;
    enum sl_code code = SL_BUSY;
    if (!s->dir)
        return SL_OK;
    while (busy)
        if (fiber_wait_on(&turn, UINT64_MAX) == FIBER_CANCELLED)
            return sl_fail(error, SL_CANCELLED, "cancelled");
    busy = true;
    cache_invalidation_begin();
    for (int i = 0; i < ATTEMPTS && code == SL_BUSY; i++) {
        code = pool_call(POOL_IO, stamp, s, error);
        if (code == SL_BUSY && !fiber_sleep(ATTEMPT_EVERY_MS))
            code = sl_fail(error, SL_CANCELLED, "cancelled");
    }
    cache_invalidation_end(s->generations.previous, s->generations.made);
    atomic_fetch_add(stamp_counter, 1); /* other processes of this service read the generation at once */
    busy = false;
    fiber_wake_one(&turn);
    return code;
}

/* An entry to delete from the shared layer. */
struct shared_invalidation {
    const struct cache_kind *kind;
    struct shared_name name;
};

struct invalidated_names {
    struct shared_invalidation *items;
    size_t count, capacity;
};

/* cache_dropped_fn: lists an entry that was dropped from memory, to delete it from the shared layer too. */
static void add_name(void *arg, const struct cache_kind *kind, struct sl_str key)
{
    struct invalidated_names *names = arg;
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 16;
        struct shared_invalidation *items = realloc(names->items, capacity * sizeof *items);
        if (!items)
            return; /* the entry stays in the shared layer, but is not used: it is older than its stamp */
        names->items = items;
        names->capacity = capacity;
    }
    struct shared_invalidation *item = &names->items[names->count++];
    item->kind = kind;
    shared_name(&item->name, kind, key);
}

enum sl_code cache_invalidate(const struct cache_file *files, size_t count, struct sl_error *error)
{
    struct invalidated_names names = {0};
    struct stamp_write s = {.dir = cache_dir_of_process(), .files = files, .count = count, .at_ns = cache_now_ns()};
    enum sl_code code = write_stamps(&s, error);
    /* after the invalidation stamps were written: a computation that begins from now on is newer than they are, and reads the changed
     * file */
    cache_drop_files(files, count, add_name, &names);
    for (size_t i = 0; i < names.count; i++)
        shared_delete(names.items[i].kind, &names.items[i].name);
    bool announced = shared_publish_invalidation(files, count, s.at_ns);
    free(names.items);

    return code == SL_OK && !announced
               ? sl_fail(error, SL_INTERNAL,
                         "cannot notify Redis: other machines keep using their cached files; try again")
               : code;
}

/* cache_dropped_fn that does nothing: the machine that announced the invalidation has deleted the entries from the shared layer. */
static void ignore_dropped(void *arg, const struct cache_kind *kind, struct sl_str key)
{
    (void)arg, (void)kind, (void)key;
}

void cache_invalidate_remote(const struct cache_file *files, size_t count, int64_t at_ns)
{
    struct sl_error error = {0};
    struct stamp_write s = {.dir = cache_dir_of_process(), .files = files, .count = count, .at_ns = at_ns};
    if (write_stamps(&s, &error) != SL_OK)
        log_warn("cache",
                 "cannot store an invalidation in the cache directory; other processes keep using their cached files",
                 LOG_ERR(&error));
    cache_drop_files(files, count, ignore_dropped, NULL);
}
