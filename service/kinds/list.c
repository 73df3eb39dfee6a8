/* What the sources have for a module, in their order. Most of them say so without asking anybody; those that do ask, do it
 * at the same time. */
#include "kinds/impl.h"

#include "core/log.h"

struct task {
    struct listing *listing;
    const struct object_id *id;
    struct sl_str scope;
    const enum file_type *types;
    size_t type_count;
    struct sl_arena *arena;
};

static bool asks(const struct source *source)
{
    return source->type == SOURCE_SENTRY || origin_has_index(source);
}

bool lists_at_once(const struct source *sources, size_t source_count)
{
    for (size_t i = 0; i < source_count; i++)
        if (asks(&sources[i]))
            return false;
    return true;
}

static void list_one(void *arg)
{
    struct task *t = arg;
    struct listing *l = t->listing;
    struct sl_error error = {0};
    l->code = origin_list(l->source, t->id, t->types, t->type_count, t->arena, &l->files, &l->count, &error);
    if (l->code == SL_OK && l->count && origin_has_index(l->source))
        l->code = source_index_filter(l->source, t->scope, t->arena, l->files, &l->count);
    if (l->code == SL_OK)
        return;
    l->count = 0;
    if (l->code == SL_CANCELLED || l->code == SL_BUSY)
        return;
    log_debug("find", "a source could not be listed", LOG_SLSTR("source", l->source->id), LOG_ERR(&error));
    l->code = SL_OK;
}

enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings)
{
    struct task *tasks = SL_ARENA_ARRAY(arena, struct task, source_count ? source_count : 1);
    void **asking = SL_ARENA_ARRAY(arena, void *, source_count ? source_count : 1);
    size_t count = 0;
    if (!tasks || !asking)
        return SL_BUSY;
    for (size_t i = 0; i < source_count; i++) {
        listings[i] = (struct listing){.source = &sources[i]};
        tasks[i] = (struct task){&listings[i], id, scope, types, type_count, arena};
        if (asks(&sources[i]))
            asking[count++] = &tasks[i];
        else
            list_one(&tasks[i]);
    }
    if (count && !fiber_for_each(list_one, asking, count, count))
        return SL_CANCELLED;
    for (size_t i = 0; i < source_count; i++)
        if (listings[i].code != SL_OK)
            return listings[i].code;
    return SL_OK;
}
