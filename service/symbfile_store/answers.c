/* What was found, or not, in the store of uploads, so that a module costs no look at the disk or the bucket until something changes.
 *
 * Every change of what can be found sets the time of the file `generation` in the store; each process looks at it when it is
 * asked for something and has not done so for a second, and forgets everything when it is another. The process that makes
 * the change forgets at once. Answers that nobody asks for make room for others: two maps, the older of which is given up
 * when the younger is full. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "core/loop.h"
#include "core/pool.h"

enum { LOOK_EVERY_MS = 1000, MOST = 16384 /* in each map */ };

/* ---- the file ---- */
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

/* ---- what is remembered; loop thread ---- */
struct remembered {
    struct upload_answer *found; /* NULL = nothing */
    size_t key_size;
    char key[];
};

static struct {
    struct sl_map young, old;
    struct change_counter generation; /* of a bucket: the random bytes of its object */
    uint64_t epoch, looked_ms;        /* number of the changes that were seen; 0 = not looked yet */
    bool looking, outdated;
    struct fiber_wait_list waiting;
} answers;

static void remembered_free(struct remembered *entry)
{
    free(entry->found);
    free(entry);
}

static void give_up(struct sl_map *map)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(map, e));)
        remembered_free(e->value);
    sl_map_free(map);
}

static void forget(void)
{
    answers.epoch++;
    answers.outdated = false;
    give_up(&answers.young);
    give_up(&answers.old);
}

/* A change that failed because the store does not answer may have been made: what is remembered stays as long as it is all there is. */
void symbfile_answers_forget(void)
{
    if (store_is_down(NULL))
        answers.outdated = true;
    else
        forget();
}

uint64_t answers_epoch(void)
{
    return answers.epoch;
}

static void symbfile_answers_keep(struct remembered *entry)
{
    if (answers.young.count >= MOST) {
        give_up(&answers.old);
        answers.old = answers.young;
        answers.young = (struct sl_map){0};
    }
    struct sl_str key = {entry->key, entry->key_size};
    struct remembered *before = sl_map_remove(&answers.young, key); /* the map's key is a part of its entry */
    if (before)
        remembered_free(before);
    void **slot = sl_map_slot(&answers.young, key, NULL);
    if (slot)
        *slot = entry;
    else
        remembered_free(entry);
}

bool answers_get(struct sl_str key, struct upload_answer *answer)
{
    struct remembered *entry = sl_map_get(&answers.young, key);
    if (!entry && (entry = sl_map_remove(&answers.old, key)))
        symbfile_answers_keep(entry);
    entry = sl_map_get(&answers.young, key);
    if (!entry)
        return false;
    *answer = entry->found ? *entry->found : (struct upload_answer){.found = false};
    return true;
}

void answers_put(struct sl_str key, const struct upload_answer *answer, uint64_t epoch)
{
    if (epoch != answers.epoch)
        return;
    struct remembered *entry = malloc(sizeof *entry + key.size);
    if (!entry)
        return; /* it is asked for again */
    *entry = (struct remembered){.key_size = key.size};
    memcpy(entry->key, key.data, key.size);
    if (answer->found && (entry->found = malloc(sizeof *entry->found)))
        *entry->found = *answer;
    if (answer->found && !entry->found)
        remembered_free(entry);
    else
        symbfile_answers_keep(entry);
}

/* ---- what others did ---- */
struct looked { /* pool work */
    struct change_counter seen;
    int number; /* errno; 0: the store is there */
    char store[512];
};

static void look(void *arg)
{
    struct looked *looked = arg;
    if (!symbfile_store_dir(looked->store))
        return;
    char path[STORE_PATH];
    if (!store_present(looked->store))
        looked->number = errno;
    else if (generation_path(looked->store, path))
        looked->seen = change_counter_read(path, true);
}

static enum sl_code look_at_store(struct change_counter *seen, struct sl_error *error)
{
    if (remote_bucket()) {
        uint64_t number[2] = {0};
        enum sl_code asked = remote_generation(number, error);
        *seen = (struct change_counter){number[0], (int64_t)number[1]};
        return asked;
    }
    struct looked looked = {.number = 0};
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
    return answers.looked_ms && loop_now_ms() - answers.looked_ms < LOOK_EVERY_MS;
}

enum sl_code answers_look(struct sl_error *error)
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
        answers.looked_ms = begun_ms ? begun_ms : 1;
        if (answers.outdated || memcmp(&seen, &answers.generation, sizeof seen) != 0)
            forget();
        answers.generation = seen;
    }
    fiber_wake_all(&answers.waiting);
    return code;
}
