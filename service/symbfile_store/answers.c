/* Cached results of look-ups in the store of uploads, so that a module needs no access to the disk or bucket until something
 * changes.
 *
 * Every change of the published sets sets the mtime of the file `generation` in the store; each process checks that at a
 * look-up if the last check was a second ago, and drops all answers if it has changed. The process that makes the change drops
 * them at once. LRU eviction. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/loop.h"
#include "core/lru.h"
#include "core/pool.h"

enum { LOOK_EVERY_MS = 1000 /* age at which the generation is read again */, MAX_ANSWERS = 32768 };

/* ---- the file ---- */
/* Makes the path of the generation file. False if it is too long. */
static bool generation_path(const char *store, char out[STORE_PATH])
{
    return snprintf(out, STORE_PATH, "%s/generation", store) < STORE_PATH;
}

bool store_changed(const char *store)
{
    char path[STORE_PATH];
    struct change_counter before;
    int64_t made;
    errno = ENAMETOOLONG;
    return generation_path(store, path) && change_counter_bump(path, false, &before, &made);
}

/* ---- the cache; loop thread ---- */
struct cached_answer {
    struct lru_entry lru;
    struct upload_answer *found; /* NULL = nothing was found */
    char key[];
};

static void cached_answer_free(struct cached_answer *entry)
{
    free(entry->found);
    free(entry);
}

static void cached_answer_release(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    cached_answer_free(LRU_ITEM(entry, struct cached_answer, lru));
}

static struct {
    struct lru known;
    struct change_counter generation; /* for a bucket: the random bytes of its object */
    uint64_t epoch, checked_ms;       /* number of changes seen; time of the last check, 0 = none yet */
    bool looking, outdated;
    struct fiber_wait_list waiting;
} answers = {.known = {.max_size = UINT64_MAX, .max_count = MAX_ANSWERS, .release = cached_answer_release}};

static void drop_answers(void)
{
    answers.epoch++;
    answers.outdated = false;
    lru_clear(&answers.known);
}

/* Called after a change by this process. If it failed because the store does not answer, it may have been made nevertheless:
 * the answers are kept while the store is down, and dropped when it answers again. */
void symbfile_answers_clear(void)
{
    if (store_is_down(NULL))
        answers.outdated = true;
    else
        drop_answers();
}

uint64_t answers_epoch(void)
{
    return answers.epoch;
}

bool answers_get(struct sl_str key, struct upload_answer *answer)
{
    struct lru_entry *found = lru_get(&answers.known, key, 0);
    if (!found)
        return false;
    const struct cached_answer *entry = LRU_ITEM(found, struct cached_answer, lru);
    *answer = entry->found ? *entry->found : (struct upload_answer){.found = false};
    return true;
}

/* Caches an answer. `epoch` is that from before the look-up: if the store has changed meanwhile, the answer may be outdated
 * and is not cached. */
void answers_put(struct sl_str key, const struct upload_answer *answer, uint64_t epoch)
{
    if (epoch != answers.epoch)
        return;
    struct cached_answer *entry = malloc(sizeof *entry + key.size);
    if (!entry)
        return; /* not cached */
    *entry = (struct cached_answer){.lru.key = {entry->key, key.size}};
    memcpy(entry->key, key.data, key.size);
    if (answer->found && (entry->found = malloc(sizeof *entry->found)))
        *entry->found = *answer;
    if ((answer->found && !entry->found) || !lru_put(&answers.known, &entry->lru))
        cached_answer_free(entry);
}

/* ---- changes of other processes ---- */
struct answers_check { /* pool work */
    struct change_counter seen;
    int number; /* errno; 0: the store is available */
    char store[512];
};

/* Pool work: reads the generation file of the store. */
static void look(void *arg)
{
    struct answers_check *looked = arg;
    if (!symbfile_store_dir(looked->store))
        return;
    char path[STORE_PATH];
    if (!store_present(looked->store))
        looked->number = errno;
    else if (generation_path(looked->store, path))
        looked->seen = change_counter_read(path, true);
}

/* Reads the generation of the store, by which changes of other processes are noticed. SL_DOWNLOAD_ERROR if a directory is gone, which is
 * also noted for operators. */
static enum sl_code look_at_store(struct change_counter *seen, struct sl_error *error)
{
    if (remote_bucket()) {
        uint64_t number[2] = {0};
        enum sl_code asked = remote_generation(number, error);
        *seen = (struct change_counter){number[0], (int64_t)number[1]};
        return asked;
    }
    struct answers_check looked = {.number = 0};
    enum sl_code code = pool_run(POOL_IO, look, &looked, error);
    *seen = looked.seen;
    if (code != SL_OK)
        return code;
    if (looked.number)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "%s (is it mounted?): %s", looked.store, strerror(looked.number));
    store_note(looked.number ? error->message : NULL);
    return code;
}

bool answers_current(void)
{
    return answers.checked_ms && loop_now_ms() - answers.checked_ms < LOOK_EVERY_MS;
}

/* Drops the cached answers if the store has changed. One fiber reads the generation, the others wait for it. */
enum sl_code answers_refresh(struct sl_error *error)
{
    while (answers.looking)
        if (fiber_wait_on(&answers.waiting, UINT64_MAX) == FIBER_CANCELLED)
            return sl_fail(error, SL_CANCELLED, "cancelled");
    if (answers_current())
        return SL_OK;
    if (store_is_down(error))
        return SL_DOWNLOAD_ERROR;
    struct change_counter seen = {0};
    uint64_t begun_ms = loop_now_ms();
    answers.looking = true;
    enum sl_code code = look_at_store(&seen, error);
    answers.looking = false;
    if (code == SL_OK) {
        answers.checked_ms = begun_ms ? begun_ms : 1; /* 0 means: not checked yet */
        if (answers.outdated || memcmp(&seen, &answers.generation, sizeof seen) != 0)
            drop_answers();
        answers.generation = seen;
    }
    fiber_wake_all(&answers.waiting);
    return code;
}
