#include "kinds/mozilla_health.h"

#include <stdlib.h>

#include "base/map.h"
#include "cache/cache.h"
#include "core/loop.h"

/* How long an answer counts, good or bad, and how long the store may take for one. */
enum { FRESH_MS = 10000, FAILED_MS = 1000, PROBE_MS = 3000 };

struct store_health {
    enum sl_code code;
    uint64_t until_ms; /* of loop_now_ms: the store is asked again from then on; 0 = now */
    bool is_asked;     /* by a probe that runs */
    size_t id_size;
    char id[];
};

static struct sl_map stores; /* by id: as many as were ever configured */

static struct store_health *health_of(const struct source *store)
{
    struct store_health *health = sl_map_get(&stores, store->id);
    if (health)
        return health;
    health = calloc(1, sizeof *health + store->id.size + 1);
    if (!health)
        return NULL;
    memcpy(health->id, store->id.data, store->id.size);
    health->id_size = store->id.size;
    void **slot = sl_map_slot(&stores, (struct sl_str){health->id, health->id_size}, NULL);
    if (!slot) {
        free(health);
        return NULL;
    }
    *slot = health;
    return health;
}

void mozilla_health_forget(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&stores, e));)
        free(e->value);
    sl_map_free(&stores);
}

/* SL_OK for every answer, also that it has no such file or that it refuses us. */
static enum sl_code outcome(enum sl_code code, const struct sl_error *error)
{
    bool no_bucket = code == SL_NOT_FOUND && strcmp(error->message, object_no_bucket) == 0;
    return code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || no_bucket ? code : SL_OK;
}

void mozilla_health_note(const struct source *store, enum sl_code code, const struct sl_error *error)
{
    struct store_health *health = health_of(store);
    if (!health || code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return;
    if (outcome(code, error) == SL_OK) {
        health->code = SL_OK;
        health->until_ms = loop_now_ms() + FRESH_MS;
    } else {
        health->until_ms = 0;
    }
}

/* ---- asking the store itself ---- */

struct probe {
    const struct source *store;
    struct store_health *health;
    struct sl_arena arena;
    bool has_answer;
};

static void ask_store(void *arg)
{
    struct probe *p = arg;
    struct source once = *p->store;
    struct remote_file file = {.source = &once, .type = FILE_BREAKPAD};
    struct cache_tmp text;
    struct sl_error error = {0};
    /* of no module: stores say that they do not have it */
    static const struct sl_str place = SL_STR("heartbeat.pdb/000000000000000000000000000000001/heartbeat.sym");
    once.attempts = 1;
    if (!origin_move(&file, place, &p->arena) || cache_tmp_create(&text, true, &error) != SL_OK)
        return;
    enum sl_code code = origin_fetch(&file, text.fd, &error);
    cache_tmp_discard(&text);
    if (code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED)
        return;
    p->has_answer = true;
    p->health->code = outcome(code, &error);
    p->health->until_ms = loop_now_ms() + (p->health->code == SL_OK ? FRESH_MS : FAILED_MS);
}

/* Asks within PROBE_MS. While the service itself is busy, what was last known stays. */
static void probe_store(void *arg)
{
    struct probe *p = arg;
    struct fiber_group group;
    uint64_t begin = loop_now_ms();
    fiber_group_init(&group, fiber_group_current());
    fiber_group_deadline(&group, PROBE_MS);
    p->health->is_asked = true;
    if (fiber_start(&group, ask_store, p))
        fiber_group_wait(&group);
    else
        fiber_group_finish(&group);
    p->health->is_asked = false;
    if (!p->has_answer && loop_now_ms() - begin >= PROBE_MS && !fiber_cancelled()) {
        p->health->code = SL_TIMEOUT;
        p->health->until_ms = loop_now_ms() + FAILED_MS;
    }
    sl_arena_free(&p->arena);
}

enum sl_code kinds_mozilla_reachable(const struct config *config)
{
    struct sl_arena arena = {0};
    size_t count = config->mozilla.source_count, asked = 0;
    struct probe *probes = SL_ARENA_ARRAY(&arena, struct probe, count + 1);
    void **waiting = SL_ARENA_ARRAY(&arena, void *, count + 1);
    enum sl_code worst = SL_OK;
    for (size_t i = 0; probes && waiting && i < count; i++) {
        struct store_health *health = health_of(&config->mozilla.stores[i]);
        probes[i] = (struct probe){.store = &config->mozilla.stores[i], .health = health};
        if (health && !health->is_asked && health->until_ms <= loop_now_ms())
            waiting[asked++] = &probes[i];
    }
    if (asked)
        fiber_for_each(probe_store, waiting, asked, asked);
    for (size_t i = 0; probes && i < count; i++)
        if (probes[i].health && probes[i].health->code != SL_OK)
            worst = probes[i].health->code;
    sl_arena_free(&arena);
    return worst;
}
