/* Eviction policy of the Redis server. If it holds the entries of the kind with a size limit of its own (CACHE_BOUNDED), it needs this
 * limit and an LRU policy. A server that never evicts (noeviction) refuses every write as soon as it is full. */
#include "cache/shared.h"

#include <stdio.h>

#include "core/log.h"
#include "redis/redis.h"

enum { EVERY_MS = 60000 };

static struct {
    struct shared_backend *redis;
    uint64_t max_size; /* bytes that the server may use */
    unsigned samples;  /* maxmemory-samples */
    bool manage;       /* the configuration lets this service set the policy */
    bool keeps;        /* the server is known never to evict */
} policy;

/* Changes one setting of the server. Redis of cloud providers may refuse that, which is only logged: the service also works with their
 * policy. */
static void set_one(const char *name, const char *value)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("CONFIG"), SL_STR("SET"), sl_str(name), sl_str(value)};
    if (shared_command(words, 4, &answer) == SHARED_HIT && answer.type == REDIS_FAILURE)
        log_warn("shared", "cannot set the eviction policy of Redis; set it in the configuration of Redis",
                 LOG_STR("setting", name), LOG_SLSTR("answer", sl_buf_view(&answer.text)));
    sl_buf_free(&answer.text);
}

/* Sets memory limit and eviction policy of the server. */
static void manage(void)
{
    char size[24], samples[24];
    snprintf(size, sizeof size, "%llu", (unsigned long long)policy.max_size);
    snprintf(samples, sizeof samples, "%u", policy.samples);
    set_one("maxmemory", size);
    set_one("maxmemory-policy", "allkeys-lru");
    set_one("maxmemory-samples", samples);
}

/* Reads the server's eviction policy into policy.keeps, and logs when it is noeviction for the first time. A server that refuses the
 * question, as those of cloud providers may, counts as one that evicts. */
static void check_policy(void)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("CONFIG"), SL_STR("GET"), SL_STR("maxmemory-policy")};
    if (shared_command(words, 3, &answer) == SHARED_HIT) {
        /* the answer to CONFIG GET is an array of name and value; `answer` has its last element */
        bool keeps = answer.type == REDIS_TEXT && sl_str_equal(sl_buf_view(&answer.text), SL_STR("noeviction"));
        if (keeps && !policy.keeps)
            log_error("shared", "Redis has no eviction policy, so it stores nothing more once it is full; set "
                                "maxmemory-policy to allkeys-lru");
        policy.keeps = keeps;
    }
    sl_buf_free(&answer.text);
}

/* Runs as a fiber until it is cancelled: sets the policy once, if the configuration wants that, and checks it every minute, as an operator
 * may change it. Does nothing while the Redis is paused. */
static void policy_fiber(void *arg)
{
    (void)arg;
    bool managed = false;
    do {
        if (!breaker_allows(policy.redis))
            continue; /* with the sleep */
        if (policy.manage && !managed) {
            manage();
            managed = true;
        }
        check_policy();
    } while (fiber_sleep(EVERY_MS));
}

void redis_policy_init(const struct config *config, struct shared_backend *redis, struct fiber_group *group)
{
    policy.redis = redis;
    policy.max_size = config->bounded.max_size;
    policy.samples = config->bounded.evict_count;
    policy.manage = config->bounded.redis_manage;
    policy.keeps = false;
    fiber_start(group, policy_fiber, NULL);
}

bool redis_policy_keeps(void)
{
    return policy.keeps;
}
