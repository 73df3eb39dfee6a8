/* What walks over stacks need of single modules before the request's own look-ups: asked for by many, had once. */
#include "api/native/native.h"

struct module_need {
    const struct kinds_use *use;
    struct kinds_found found;
    bool asking, known;
    struct fiber_wait_list waiting; /* for the one that asks */
    struct module_need *next;
};

static struct module_need *need_of(struct native_request *request, struct native_module *module,
                                   const struct kinds_use *use)
{
    struct module_need *need = module->needs;
    while (need && need->use != use)
        need = need->next;
    if (need)
        return need;
    need = SL_ARENA_NEW(&request->needs_arena, struct module_need);
    if (need) {
        need->use = use;
        need->next = module->needs;
        module->needs = need;
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
    struct native_module *module = &request->modules[index];
    struct module_need *need = need_of(request, module, use);
    if (!need)
        return &busy;
    while (need->asking)
        if (fiber_wait_on(&need->waiting, UINT64_MAX) != FIBER_WOKEN)
            return &cancelled;
    if (!need->known)
        ask(request, module->id, need);
    if (need->known)
        return &need->found;
    return fiber_cancelled() || need->found.code == SL_CANCELLED ? &cancelled : &busy;
}

void native_report_needs(struct native_request *request)
{
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_module *module = &request->modules[i];
        for (struct module_need *need = module->found ? module->needs : NULL; need; need = need->next)
            candidates_merge(request->arena, &module->found->lookup.candidates, &need->found.candidates);
    }
}

void native_release_needs(struct native_request *request)
{
    for (size_t i = 0; i < request->module_count; i++) {
        for (struct module_need *need = request->modules[i].needs; need; need = need->next)
            cache_release(need->found.item);
        request->modules[i].needs = NULL;
    }
    sl_arena_free(&request->needs_arena);
}
