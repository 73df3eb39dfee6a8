/* What walks over stacks need of single modules before the request's own look-ups: asked for by many, had once. */
#include "api/native/native.h"

struct module_need {
    const struct kinds_use *use;
    struct kinds_found found;
    bool asking, known;
    struct fiber_wait_list waiting; /* for the one that asks */
    struct module_need *next;
};

static struct module_need *need_of(struct native_request *request, uint32_t index, const struct kinds_use *use)
{
    if (!request->needs)
        request->needs = SL_ARENA_ARRAY(&request->needs_arena, struct module_need *, request->module_count);
    if (!request->needs)
        return NULL;
    struct module_need *need = request->needs[index];
    while (need && need->use != use)
        need = need->next;
    if (need)
        return need;
    need = SL_ARENA_NEW(&request->needs_arena, struct module_need);
    if (need) {
        need->use = use;
        need->next = request->needs[index];
        request->needs[index] = need;
    }
    return need;
}

/* Scarcity says nothing about a file, and who was cancelled does not ask for the others. */
static void ask(struct native_request *request, const struct object_id *id, struct module_need *need)
{
    struct kinds_search where = {request->sources, request->source_count, request->scope, &request->needs_arena};
    need->asking = true;
    kinds_find(&where, need->use, id, &need->found);
    need->asking = false;
    need->known = need->found.code != SL_CANCELLED && need->found.code != SL_BUSY;
    fiber_wake_all(&need->waiting);
}

const struct kinds_found *module_need(struct native_request *request, uint32_t index, const struct kinds_use *use)
{
    static const struct kinds_found cancelled = {.code = SL_CANCELLED, .error = {SL_CANCELLED, 0, "cancelled"}},
                                    busy = {.code = SL_BUSY, .error = {SL_BUSY, 0, "out of memory"}};
    struct module_need *need = need_of(request, index, use);
    if (!need)
        return &busy;
    while (need->asking)
        if (fiber_wait_on(&need->waiting, UINT64_MAX) != FIBER_WOKEN)
            return &cancelled;
    if (!need->known)
        ask(request, request->modules[index].id, need);
    if (need->known)
        return &need->found;
    return fiber_cancelled() || need->found.code == SL_CANCELLED ? &cancelled : &busy;
}

void native_report_needs(struct native_request *request)
{
    for (size_t i = 0; request->needs && i < request->module_count; i++) {
        struct native_found *found = request->modules[i].found;
        for (struct module_need *need = found ? request->needs[i] : NULL; need; need = need->next)
            candidates_merge(request->arena, &found->lookup.candidates, &need->found.candidates);
    }
}

void native_release_needs(struct native_request *request)
{
    for (size_t i = 0; request->needs && i < request->module_count; i++)
        for (struct module_need *need = request->needs[i]; need; need = need->next)
            cache_release(need->found.item);
    request->needs = NULL;
    sl_arena_free(&request->needs_arena);
}
