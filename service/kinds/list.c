/* What the sources have for a module, in their order. Most of them say so without asking anybody; those that do ask, do it
 * at the same time. */
#include "kinds/impl.h"

#include "core/log.h"

struct round { /* the waiting for several listings */
    struct fiber_wait_list finished;
    size_t running;
};

struct task {
    struct listing *listing;
    const struct object_id *id;
    struct sl_str scope;
    const enum file_type *types;
    size_t type_count;
    struct sl_arena *arena;
    struct round *round;
};

static bool asks(const struct source *source)
{
    return source->type == SOURCE_SENTRY || origin_has_index(source);
}

static void list_one(struct task *t)
{
    struct listing *l = t->listing;
    struct sl_error error = {0};
    l->code = origin_list(l->source, t->id, t->types, t->type_count, t->arena, &l->files, &l->count, &error);
    if (l->code == SL_OK && l->count && origin_has_index(l->source))
        l->code = source_index_filter(l->source, t->scope, t->arena, l->files, &l->count);
    if (l->code == SL_OK)
        return;
    l->count = 0;
    if (l->code == SL_CANCELLED)
        return;
    log_debug("find", "a source could not be listed", LOG_SLSTR("source", l->source->id), LOG_ERR(&error));
    l->code = SL_OK;
}

static void list_fiber(void *arg)
{
    struct task *t = arg;
    list_one(t);
    if (--t->round->running == 0)
        fiber_wake_all(&t->round->finished);
}

static bool list_concurrently(struct task **tasks, size_t count)
{
    struct fiber_group group;
    struct round round = {0};
    bool cancelled = false;
    fiber_group_init(&group, fiber_group_current());
    for (size_t i = 0; i + 1 < count; i++) {
        tasks[i]->round = &round;
        round.running++;
        if (!fiber_start(&group, list_fiber, tasks[i])) { /* no fiber to be had: one after the other */
            round.running--;
            list_one(tasks[i]);
        }
    }
    list_one(tasks[count - 1]);
    while (round.running && !cancelled)
        cancelled = fiber_wait_on(&round.finished, UINT64_MAX) == FIBER_CANCELLED;
    if (cancelled)
        fiber_group_cancel(&group);
    fiber_group_wait(&group);
    return !cancelled && !fiber_cancelled();
}

enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings)
{
    struct task *tasks = SL_ARENA_ARRAY(arena, struct task, source_count ? source_count : 1);
    struct task **asking = SL_ARENA_ARRAY(arena, struct task *, source_count ? source_count : 1);
    size_t count = 0;
    if (!tasks || !asking)
        return SL_INTERNAL;
    for (size_t i = 0; i < source_count; i++) {
        listings[i] = (struct listing){.source = &sources[i]};
        tasks[i] = (struct task){&listings[i], id, scope, types, type_count, arena, NULL};
        if (asks(&sources[i]))
            asking[count++] = &tasks[i];
        else
            list_one(&tasks[i]);
    }
    if (count && !list_concurrently(asking, count))
        return SL_CANCELLED;
    for (size_t i = 0; i < source_count; i++)
        if (listings[i].code == SL_CANCELLED)
            return SL_CANCELLED;
    return SL_OK;
}
