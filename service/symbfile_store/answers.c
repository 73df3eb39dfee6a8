/* The cache of answers of the upload store to look-ups of modules: until the store changes, an answer needs no access to disk or bucket.
 *
 * Whoever changes the published symbfiles also changes the file (in a bucket: object) `generation` in the store. Each process reads it
 * at look-ups, at most once a second, and drops all cached answers if it has changed. The process that makes a change drops its own
 * answers at once. If there are too many, the least recently used are dropped. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/loop.h"
#include "core/lru.h"
#include "core/pool.h"

enum { LOOK_EVERY_MS = 1000 /* age at which the generation is read again */, MAX_ANSWERS = 32768 };

/* ---- the file `generation` ---- */
/* Makes the path of the file `generation` in the store's directory. False if it is too long. */
static bool generation_path(const char *store, char out[STORE_PATH])
{
    return snprintf(out, STORE_PATH, "%s/generation", store) < STORE_PATH;
}

bool store_changed(const char *store)
{
    char path[STORE_PATH];
    struct change_counter before; /* both are not used */
    int64_t made;
    errno = ENAMETOOLONG; /* of generation_path; change_counter_bump sets its own */
    /* false: not exclusive, other processes may announce changes at the same time */
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
    /* as last read: inode and time of the file, or the random bytes of the bucket's object */
    struct change_counter generation;
    uint64_t epoch, checked_ms;     /* how often all answers were dropped; when `generation` was read, 0 = never */
    bool is_reading;                /* a fiber reads the generation now */
    bool outdated;                  /* drop the answers when the store responds again */
    struct fiber_wait_list waiting; /* fibers that wait until the generation is read */
} answers = {.known = {.max_size = UINT64_MAX, .max_count = MAX_ANSWERS, .release = cached_answer_release}};

static void drop_answers(void)
{
    answers.epoch++;
    answers.outdated = false;
    lru_clear(&answers.known);
}

/* If the store does not respond, the change that this process tried may have been made nevertheless. The answers are kept then, as they are
 * all that is known while the store is down, and dropped when it responds again. */
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
    struct lru_entry *found = lru_get(&answers.known, key, 0); /* 0: answers do not expire by time */
    if (!found)
        return false;
    const struct cached_answer *entry = LRU_ITEM(found, struct cached_answer, lru);
    *answer = entry->found ? *entry->found : (struct upload_answer){.found = false}; /* NULL: nothing was uploaded */
    return true;
}

/* Caches an answer, unless all answers were dropped since `epoch`, the value of answers_epoch() before the search: then the store has
 * changed during the search, and the answer may be outdated. */
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
struct answers_check {          /* reads the generation on the pool */
    struct change_counter seen; /* result */
    int number;                 /* result: errno; 0: the store is available */
    char store[512];
};

/* Pool work: checks that the store's directory is mounted and reads its file `generation`. */
static void read_generation_job(void *arg)
{
    struct answers_check *check = arg;
    if (!symbfile_store_dir(check->store)) /* no store: check->seen stays zero, as if it never changed */
        return;
    char path[STORE_PATH];
    if (!store_present(check->store))
        check->number = errno;
    else if (generation_path(check->store, path))
        check->seen = change_counter_read(path, true); /* true: the directory may be on a file server (NFS) */
}

/* Reads the generation of the store, by which changes of other processes are noticed. SL_DOWNLOAD_ERROR if the store's directory is gone.
 * Records for operators whether the store responds (store_note; for a bucket remote_generation does that). */
static enum sl_code read_generation(struct change_counter *seen, struct sl_error *error)
{
    if (remote_bucket()) {
        uint64_t number[2] = {0};
        enum sl_code asked = remote_generation(number, error);
        *seen = (struct change_counter){number[0], (int64_t)number[1]};
        return asked;
    }
    struct answers_check check = {.number = 0};
    enum sl_code code = pool_run(POOL_IO, read_generation_job, &check, error);
    *seen = check.seen;
    if (code != SL_OK)
        return code;
    if (check.number)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the upload store's directory %s (is it mounted?): %s",
                       check.store, strerror(check.number));
    store_note(check.number ? error->message : NULL);
    return code;
}

bool answers_current(void)
{
    return answers.checked_ms && loop_now_ms() - answers.checked_ms < LOOK_EVERY_MS;
}

/* Reads the generation of the store, and drops the cached answers if it has changed. If another fiber is reading it, waits for that fiber
 * instead. SL_DOWNLOAD_ERROR at once if the store failed within the last two seconds (store_is_down). */
enum sl_code answers_refresh(struct sl_error *error)
{
    while (answers.is_reading)
        if (fiber_wait_on(&answers.waiting, UINT64_MAX) == FIBER_CANCELLED)
            return sl_fail(error, SL_CANCELLED, "cancelled");
    if (answers_current())
        return SL_OK;
    if (store_is_down(error))
        return SL_DOWNLOAD_ERROR;
    struct change_counter seen = {0};
    uint64_t begun_ms = loop_now_ms();
    answers.is_reading = true;
    enum sl_code code = read_generation(&seen, error);
    answers.is_reading = false;
    if (code == SL_OK) {
        answers.checked_ms = begun_ms ? begun_ms : 1; /* 0 means: not checked yet */
        /* outdated: this process has tried a change while the store did not respond; it may have been made nevertheless */
        if (answers.outdated || memcmp(&seen, &answers.generation, sizeof seen) != 0)
            drop_answers();
        answers.generation = seen;
    }
    fiber_wake_all(&answers.waiting);
    return code;
}
