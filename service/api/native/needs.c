/* Looks up single modules while stacks are walked. Fibers that ask for the same module at the same time share one look-up. */
#include "api/native/native.h"

struct module_need { /* the look-up of one module for one use */
    const struct search_target *use;
    struct search_result found;
    bool in_flight, known;          /* the look-up runs; `found` is its result */
    struct fiber_wait_list waiting; /* fibers that joined the look-up */
    struct module_need *next;
};

/* Returns the look-up of the module for this use; NULL if there is none. */
static struct module_need *find_known_need(const struct module_needs *needs, size_t module,
                                           const struct search_target *use)
{
    struct module_need *need = needs->first ? needs->first[module] : NULL;
    while (need && need->use != use)
        need = need->next;
    return need;
}

/* Returns the look-up of the module for this use, a new one if there is none; NULL when out of memory. */
static struct module_need *find_need(struct module_needs *needs, size_t module, const struct search_target *use)
{
    struct sl_arena *arena = needs->where.arena;
    struct module_need *need = find_known_need(needs, module, use);
    if (need)
        return need;
    if (!needs->first)
        needs->first = SL_ARENA_ARRAY(arena, struct module_need *, needs->count);
    if (!needs->first)
        return NULL;
    need = SL_ARENA_NEW(arena, struct module_need);
    if (need) {
        need->use = use;
        need->next = needs->first[module];
        needs->first[module] = need;
    }
    return need;
}

/* Runs the look-up and wakes the fibers that wait for it. SL_BUSY and SL_CANCELLED are not kept as its result, as they say nothing
 * about the file. */
static void look_up_need(const struct module_needs *needs, size_t module, struct module_need *need)
{
    need->in_flight = true;
    search_find(&needs->where, need->use, &needs->ids[module], &need->found);
    need->in_flight = false;
    need->known = need->found.code != SL_CANCELLED && need->found.code != SL_BUSY;
    fiber_wake_all(&need->waiting);
}

/* A fiber that waited for the look-up of another one, which then ended with SL_BUSY, does not try again: memory is still short. If
 * the other fiber was cancelled, it does. */
const struct search_result *module_needs_get(struct module_needs *needs, size_t module, const struct search_target *use)
{
    static const struct search_result cancelled = {.code = SL_CANCELLED,
                                                   .error = {.code = SL_CANCELLED, .message = "cancelled"}},
                                      busy = {.code = SL_BUSY, .error = {.code = SL_BUSY, .message = "out of memory"}};
    struct module_need *need = find_need(needs, module, use);
    bool has_joined = false;
    if (!need)
        return &busy;
    for (; need->in_flight; has_joined = true)
        if (fiber_wait_on(&need->waiting, UINT64_MAX) != FIBER_WOKEN)
            return &cancelled;
    if (!need->known && !(has_joined && need->found.code == SL_BUSY))
        look_up_need(needs, module, need);
    if (need->known)
        return &need->found;
    /* `found` also has SL_CANCELLED if search_find noticed the cancellation by itself */
    return fiber_cancelled() || need->found.code == SL_CANCELLED ? &cancelled : &busy;
}

const struct search_result *module_needs_peek(struct module_needs *needs, size_t module,
                                              const struct search_target *use)
{
    struct search_result found = {.code = SL_NOT_FOUND};
    const struct module_need *known = find_known_need(needs, module, use);
    if (known)
        return known->known ? &known->found : NULL;
    /* The cache of searches does not know files that were sent with the request, which come before others. */
    if (needs->where.own || !search_peek(&needs->where, use, &needs->ids[module], &found))
        return NULL;
    struct module_need *need = find_need(needs, module, use);
    if (!need) {
        cache_release(found.item);
        return NULL;
    }
    need->found = found;
    need->known = true;
    return &need->found;
}

void module_needs_release(struct module_needs *needs)
{
    for (size_t i = 0; needs->first && i < needs->count; i++)
        for (struct module_need *need = needs->first[i]; need; need = need->next)
            cache_release(need->found.item);
    needs->first = NULL;
}
