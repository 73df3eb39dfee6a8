#include "kinds/search.h"

#include "core/turn.h"

struct crowd { /* searches that one fiber runs */
    struct fiber *fiber;
    struct fiber_group helpers;
    struct search *first, *last; /* that can go on */
    size_t unfinished;
};

static void make_ready(struct search *search)
{
    struct crowd *crowd = search->crowd;
    search->next_ready = NULL;
    *(crowd->last ? &crowd->last->next_ready : &crowd->first) = search;
    crowd->last = search;
}

void search_answered(struct search *search)
{
    if (--search->waiting)
        return;
    make_ready(search);
    fiber_wake(search->crowd->fiber);
}

static void help(void *arg)
{
    struct search *search = arg;
    search->helper(search);
    search_answered(search);
}

void search_in_fiber(struct search *search, void (*work)(struct search *search))
{
    search->helper = work;
    search->helped = true;
    search->waiting++;
    if (fiber_start(&search->crowd->helpers, help, search))
        return;
    search->waiting--;
    work(search);
}

static void go_on(struct search *search)
{
    while (!search->waiting && search->next) {
        void (*step)(struct search * search) = search->next;
        search->next = NULL;
        step(search);
    }
    search->crowd->unfinished -= !search->waiting;
}

static void withdraw(struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        cache_withdraw(&search->probes[i].look);
    for (size_t i = 0; i < search->other_count; i++)
        cache_withdraw(&search->others[i].look);
    cache_withdraw(&search->table);
    cache_release(search->table.item); /* answered, and not taken any more */
}

struct search search_of(const struct kinds_search *where, const struct object_id *id, enum purpose purpose)
{
    return (struct search){.sources = where->sources,
                           .source_count = where->source_count,
                           .list = where->list,
                           .id = id,
                           .scope = where->scope,
                           .purpose = purpose,
                           .arena = where->arena};
}

bool search_run(struct search *searches, size_t count)
{
    struct crowd crowd = {.fiber = fiber_self(), .unfinished = count};
    bool going = !fiber_cancelled();
    fiber_group_init(&crowd.helpers, fiber_group_current());
    for (size_t i = 0; i < count; i++) {
        searches[i].crowd = &crowd;
        make_ready(&searches[i]);
    }
    while (going && crowd.unfinished) {
        struct search *search = crowd.first;
        if (!search) {
            fiber_expect("entries of the cache");
            going = fiber_suspend();
            continue;
        }
        crowd.first = search->next_ready;
        if (!crowd.first)
            crowd.last = NULL;
        go_on(search);
        if (turn_is_over())
            going = fiber_yield();
    }
    if (!going)
        fiber_group_cancel(&crowd.helpers);
    fiber_group_wait(&crowd.helpers);
    for (size_t i = 0; !going && i < count; i++)
        withdraw(&searches[i]);
    return going;
}
