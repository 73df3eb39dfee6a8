/* LRU cache of the lists of symbol sources that requests send as JSON: a client sends the same list with every request. */
#include "api/source_lists.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/lru.h"

enum { MAX_LISTS = 64, MAX_LIST_TEXT = 16 * 1024 };

struct source_list_entry {
    struct lru_entry lru;
    unsigned references; /* the cache has one while it holds the entry, each request that uses the list has one */
    struct source_list list;
    struct sl_arena arena;
    size_t size; /* bytes of `text` */
    /* The cache key: config.sources_number of the configuration whose policy allowed the list, and the list's JSON, which
     * may hold secrets. */
    uint64_t policy;
    char text[];
};

/* Drops a reference; with the last one the list is freed, and its text, which may hold secrets, overwritten. */
static void list_unref(struct source_list_entry *kept)
{
    if (--kept->references)
        return;
    sl_arena_free(&kept->arena);
    explicit_bzero(kept->text, kept->size);
    free(kept);
}

/* lru.release: drops the reference of the cache to an entry that was removed from it. */
static void list_release_removed(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    list_unref(LRU_ITEM(entry, struct source_list_entry, lru));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `lists` and the references of its entries */
static struct lru lists = {.max_size = UINT64_MAX, .max_count = MAX_LISTS, .release = list_release_removed};

/* ---- one list ---- */
/* Drops the reference of a request's arena, when that is freed. */
static void list_release(void *kept)
{
    pthread_mutex_lock(&lock);
    list_unref(kept);
    pthread_mutex_unlock(&lock);
}

/* Makes an entry with one reference, which the cache will hold, from the JSON text of a list. Copies the text, as the parsed sources are
 * views of it. NULL when out of memory, or if the list is not valid. */
static struct source_list_entry *list_read(struct sl_str text, const struct source_policy *policy)
{
    struct source_list_entry *kept = calloc(1, sizeof *kept + text.size);
    if (!kept)
        return NULL;
    memcpy(kept->text, text.data, text.size);
    kept->size = text.size;
    kept->references = 1;
    kept->list.number = source_list_number(); /* a new number, by which results of searches in this list are cached */
    struct source *sources = NULL;
    struct value_problems problems = {.arena = &kept->arena}; /* not used: the caller has parsed the same text before */
    struct sl_json json = sl_json((struct sl_str){kept->text, kept->size}, &kept->arena, false);
    enum sl_code code = source_read_list(&json, "sources", policy, &sources, &kept->list.count, &problems);
    kept->list.items = sources;
    if (code == SL_OK)
        return kept;
    list_unref(kept);
    return NULL;
}

/* ---- the cache: call with `lock` held ---- */

/* Adds a reference that is dropped when the arena is freed, and returns the list. NULL when out of memory. */
static const struct source_list *lists_hold(struct source_list_entry *kept, struct sl_arena *arena)
{
    if (!sl_arena_on_free(arena, list_release, kept))
        return NULL;
    kept->references++;
    return &kept->list;
}

/* Finds the cached list with whose JSON text `text` begins, if it was allowed by the configuration with the sources_number `policy`; NULL
 * if there is none. `text` is the rest of a request that is not parsed yet, so where the list ends in it is not known. */
static struct source_list_entry *lists_find(struct sl_str text, uint64_t policy)
{
    for (struct source_list_entry *kept = LRU_NEWEST(&lists, struct source_list_entry, lru); kept;
         kept = LRU_OLDER(kept, lru))
        if (kept->policy == policy && kept->size <= text.size && memcmp(kept->text, text.data, kept->size) == 0)
            return kept;
    return NULL;
}

const struct source_list *source_lists_find(struct sl_str text, const struct config *config, struct sl_arena *arena,
                                            size_t *size)
{
    const struct source_list *list = NULL;
    pthread_mutex_lock(&lock);
    struct source_list_entry *kept = lists_find(text, config->sources_number);
    if (kept) {
        lru_touch(&lists, &kept->lru, 0); /* 0: the time does not matter, as lists do not expire */
        *size = kept->size;
        list = lists_hold(kept, arena);
    }
    pthread_mutex_unlock(&lock);
    return list;
}

const struct source_list *source_lists_put(struct sl_str text, const struct source_policy *policy,
                                           const struct config *config, struct sl_arena *arena)
{
    struct source_list_entry *kept = text.size <= MAX_LIST_TEXT ? list_read(text, policy) : NULL;
    if (!kept)
        return NULL;
    kept->policy = config->sources_number;
    /* the key is one piece of memory: `policy`, and `text`, which follows it in the struct */
    kept->lru.key = (struct sl_str){(const char *)kept + offsetof(struct source_list_entry, policy),
                                    sizeof kept->policy + kept->size};
    pthread_mutex_lock(&lock);
    struct source_list_entry *known = lists_find(text, kept->policy); /* another thread may have added it */
    /* lists_hold takes a reference, which is dropped with the arena */
    const struct source_list *list = lists_hold(known ? known : kept, arena);
    if (known || !lru_put(&lists, &kept->lru)) /* the cache does not hold `kept`: drop the reference meant for it */
        list_unref(kept);
    pthread_mutex_unlock(&lock);
    return list;
}

void source_lists_clear(void)
{
    pthread_mutex_lock(&lock);
    lru_clear(&lists);
    pthread_mutex_unlock(&lock);
}
