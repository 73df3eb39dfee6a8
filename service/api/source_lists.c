#include "api/source_lists.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_LISTS = 64, MAX_LIST_TEXT = 16 * 1024 };

struct kept_list {
    struct kept_list *next;
    unsigned references; /* the table's, and one of each arena */
    uint64_t policy;     /* number of the configuration whose policy it was read by */
    struct source_list list;
    struct sl_arena arena;
    size_t size;
    char text[]; /* may hold secrets */
};

static struct {
    pthread_mutex_t lock; /* of all that follows, and of the references */
    struct kept_list *first;
    size_t count;
} lists = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- one list ---- */
static void list_unref(struct kept_list *kept)
{
    if (--kept->references)
        return;
    sl_arena_free(&kept->arena);
    explicit_bzero(kept->text, kept->size);
    free(kept);
}

static void list_release(void *kept)
{
    pthread_mutex_lock(&lists.lock);
    list_unref(kept);
    pthread_mutex_unlock(&lists.lock);
}

static struct kept_list *list_read(struct sl_str text, const struct source_policy *policy)
{
    struct kept_list *kept = calloc(1, sizeof *kept + text.size);
    if (!kept)
        return NULL;
    memcpy(kept->text, text.data, text.size);
    kept->size = text.size;
    kept->references = 1;
    kept->list.number = source_list_number();
    struct source *sources = NULL;
    struct value_problems problems = {.arena = &kept->arena};
    struct sl_json json = sl_json((struct sl_str){kept->text, kept->size}, &kept->arena, false);
    enum sl_code code = source_read_list(&json, "sources", policy, &sources, &kept->list.count, &problems);
    kept->list.items = sources;
    if (code == SL_OK)
        return kept;
    list_unref(kept);
    return NULL;
}

/* ---- the table: the one used last comes first. Under the lock ---- */
static void lists_add(struct kept_list *kept)
{
    kept->next = lists.first;
    lists.first = kept;
    lists.count++;
}

static void lists_drop(struct kept_list **place)
{
    struct kept_list *kept = *place;
    *place = kept->next;
    lists.count--;
    list_unref(kept);
}

static const struct source_list *lists_hold(struct kept_list *kept, struct sl_arena *arena)
{
    if (!sl_arena_at_end(arena, list_release, kept))
        return NULL;
    kept->references++;
    return &kept->list;
}

static struct kept_list **lists_place(struct sl_str text, uint64_t policy)
{
    struct kept_list **place = &lists.first;
    for (; *place; place = &(*place)->next)
        if ((*place)->policy == policy && (*place)->size <= text.size &&
            memcmp((*place)->text, text.data, (*place)->size) == 0)
            return place;
    return NULL;
}

const struct source_list *source_lists_find(struct sl_str text, const struct config *config, struct sl_arena *arena,
                                            size_t *size)
{
    const struct source_list *list = NULL;
    pthread_mutex_lock(&lists.lock);
    struct kept_list **place = lists_place(text, config->sources_number);
    if (place) {
        struct kept_list *kept = *place;
        *place = kept->next;
        kept->next = lists.first;
        lists.first = kept;
        *size = kept->size;
        list = lists_hold(kept, arena);
    }
    pthread_mutex_unlock(&lists.lock);
    return list;
}

static void lists_shrink(size_t most)
{
    while (lists.count > most) {
        struct kept_list **last = &lists.first;
        while ((*last)->next)
            last = &(*last)->next;
        lists_drop(last);
    }
}

const struct source_list *source_lists_keep(struct sl_str text, const struct source_policy *policy,
                                            const struct config *config, struct sl_arena *arena)
{
    struct kept_list *kept = text.size <= MAX_LIST_TEXT ? list_read(text, policy) : NULL;
    if (!kept)
        return NULL;
    kept->policy = config->sources_number;
    pthread_mutex_lock(&lists.lock);
    struct kept_list **known = lists_place(text, kept->policy);
    if (known) { /* by another thread meanwhile */
        list_unref(kept);
        kept = *known;
    } else {
        lists_add(kept);
        lists_shrink(MAX_LISTS);
    }
    const struct source_list *list = lists_hold(kept, arena);
    pthread_mutex_unlock(&lists.lock);
    return list;
}

void source_lists_forget(void)
{
    pthread_mutex_lock(&lists.lock);
    lists_shrink(0);
    pthread_mutex_unlock(&lists.lock);
}
