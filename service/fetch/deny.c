/* Hosts from which nothing is downloaded for a while. Deny list: failed downloads of a host are counted in buckets of time. A host with too
 * many of them within a window is blocked; only now and then a download is let through (a probe), to test whether the host answers again.
 * Pauses: a host that sends Retry-After is not asked before that time; this does not count as a failure. */
#include "fetch/impl.h"

#include <stdlib.h>

#include "base/map.h"
#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"

struct bucket {
    uint64_t start_ms;
    unsigned failures;
};

struct deny_host {
    struct sl_str name; /* stored after the buckets */
    uint64_t blocked_until_ms, paused_until_ms;
    uint64_t probe_due_ms; /* for a blocked host: when the next download may test it */
    /* seconds since the epoch: compared with the time at which another process unblocked all hosts */
    int64_t blocked_at_s;
    char trigger[320];      /* the failure that blocked the host, for the error */
    size_t count, capacity; /* of `buckets`, which are sorted, the oldest first */
    struct bucket buckets[];
};

enum {
    SWEEP_AT = 1024,  /* from this number of hosts in the table on, those without recent failures are removed */
    PROBE_MS = 20000, /* interval of probes, unless set in the options */
    /* longest time that a look-up caches the error of a blocked host, as an operator may unblock it before */
    REMEMBERED_MS = 60000
};
static struct sl_map hosts;
static size_t sweep_at = SWEEP_AT;

/* Returns the length of the window in which failures are counted. */
static uint64_t window_ms(void)
{
    return DURATION_MS(fetch_state.options.deny_window_ns);
}

/* Returns the length of a bucket; at least 1, as times are divided by it. */
static uint64_t bucket_ms(void)
{
    uint64_t ms = DURATION_MS(fetch_state.options.deny_bucket_ns);
    return ms ? ms : 1;
}

/* Returns the time between two probes of a blocked host. */
static uint64_t probe_ms(void)
{
    uint64_t ms = DURATION_MS(fetch_state.options.deny_probe_ns);
    return ms ? ms : PROBE_MS;
}

/* True if a host is neither blocked nor paused and has no failure within the window, so that its entry may be removed. */
static bool may_remove(const struct deny_host *host, uint64_t now)
{
    bool recent = host->count && host->buckets[host->count - 1].start_ms + bucket_ms() + window_ms() > now;
    return !recent && host->blocked_until_ms <= now && host->paused_until_ms <= now;
}

/* If the table has many hosts, removes those that are not blocked or paused and have not failed lately. Does so again when the table has
 * twice the hosts that are left, so that not every call looks at all of them. */
static void sweep(uint64_t now)
{
    if (hosts.count < sweep_at)
        return;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&hosts, e));) {
        struct deny_host *host = e->value;
        if (may_remove(host, now)) {
            sl_map_remove(&hosts, host->name); /* moves no other entry, so the loop may go on */
            free(host);
        }
    }
    sweep_at = hosts.count * 2 > SWEEP_AT ? hosts.count * 2 : SWEEP_AT;
}

/* Returns the entry of a host, created if necessary with room for the buckets of a whole window. NULL when out of memory. */
static struct deny_host *find_host(struct sl_str name)
{
    struct deny_host *host = sl_map_get(&hosts, name);
    if (host)
        return host;
    uint64_t capacity = window_ms() / bucket_ms() + 1;
    if (capacity > 4096) /* bounds the memory of a host: then failures in the oldest part of a window are not counted */
        capacity = 4096;
    size_t bytes = sizeof *host + (size_t)capacity * sizeof *host->buckets;
    host = sl_map_add(&hosts, name, bytes, &name); /* `name` becomes a copy behind the buckets */
    if (!host)
        return NULL;
    host->capacity = (size_t)capacity;
    host->name = name;
    return host;
}

/* True if the options list the host as one that is never blocked. */
static bool never_blocked(struct sl_str name)
{
    for (size_t i = 0; i < fetch_state.options.deny_never_block_count; i++)
        if (sl_str_equal(fetch_state.options.deny_never_block[i], name))
            return true;
    return false;
}

/* Counts a failure in the host's bucket for this time, a new one if the last is for an earlier time, and returns the number of failures
 * within the window. If there is no room for a new bucket, the oldest is dropped. */
static unsigned count_failure(struct deny_host *host, uint64_t now)
{
    uint64_t start = now - now % bucket_ms();
    if (host->count && host->buckets[host->count - 1].start_ms == start) {
        host->buckets[host->count - 1].failures++;
    } else {
        if (host->count == host->capacity)
            memmove(host->buckets, host->buckets + 1, --host->count * sizeof *host->buckets);
        host->buckets[host->count++] = (struct bucket){start, 1};
    }
    unsigned total = 0;
    for (size_t i = 0; i < host->count; i++)
        if (host->buckets[i].start_ms + window_ms() >= start)
            total += host->buckets[i].failures;
    return total;
}

/* Counts a failed download of a host, unless it is blocked already. With `deny_threshold` failures within the window, blocks the host
 * unless the options list it as never blocked; `why` becomes a part of the error of later downloads. While a host is blocked, a download is
 * let through now and then as a probe, which tests whether it answers. Without memory the failure is not counted. */
void deny_register(struct sl_str name, const struct sl_error *why)
{
    uint64_t now = loop_now_ms();
    if (!fetch_state.options.deny_list_enabled || name.size == 0)
        return;
    sweep(now);
    struct deny_host *host = find_host(name);
    if (!host || host->blocked_until_ms > now)
        return;
    if (count_failure(host, now) < fetch_state.options.deny_threshold || never_blocked(name))
        return;
    host->blocked_until_ms = now + DURATION_MS(fetch_state.options.deny_block_ns);
    host->blocked_at_s = clock_wall_s();
    host->probe_due_ms = now + probe_ms();
    const char *prefix = why->code == SL_TIMEOUT ? "download timed out after " : "download failed: ";
    struct sl_buf text = {0};
    sl_buf_cstr(&text, prefix);
    sl_buf_cstr(&text, why->message);
    size_t size = text.size < sizeof host->trigger - 1 ? text.size : sizeof host->trigger - 1;
    if (size)
        memcpy(host->trigger, text.data, size);
    host->trigger[size] = '\0';
    sl_buf_free(&text);
    log_warn("fetch", "host blocked after too many download failures", LOG_SLSTR("host", name), LOG_ERR(why));
}

/* Returns the number of hosts that are blocked now. */
size_t deny_blocked(void)
{
    uint64_t now = loop_now_ms();
    size_t count = 0;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&hosts, e));)
        count += ((const struct deny_host *)e->value)->blocked_until_ms > now;
    return count;
}

uint64_t fetch_blocked_ms(const char *name)
{
    const struct deny_host *host = sl_map_get(&hosts, sl_str(name));
    uint64_t now = loop_now_ms();
    uint64_t until = !host                                            ? 0
                     : host->blocked_until_ms > host->paused_until_ms ? host->blocked_until_ms
                                                                      : host->paused_until_ms;
    return until > now ? until - now : 0;
}

/* ---- pauses ---- */

/* Notes that a host asks for a pause of so many seconds (Retry-After); cut to the time for which hosts are blocked. A pause is never
 * shortened. Without memory it is ignored. */
void deny_pause(struct sl_str name, int64_t seconds)
{
    uint64_t now = loop_now_ms(), most = DURATION_MS(fetch_state.options.deny_block_ns);
    uint64_t ms = seconds < INT32_MAX ? (uint64_t)seconds * 1000 : most;
    sweep(now);
    struct deny_host *host = name.size ? find_host(name) : NULL;
    if (host && now + (ms < most ? ms : most) > host->paused_until_ms)
        host->paused_until_ms = now + (ms < most ? ms : most);
}

uint64_t deny_pause_ms(struct sl_str name)
{
    const struct deny_host *host = sl_map_get(&hosts, name);
    uint64_t now = loop_now_ms();
    return host && host->paused_until_ms > now ? host->paused_until_ms - now : 0;
}

/* ---- unblocking ---- */

/* Ends block and pause of a host, and forgets its failures: otherwise the next one would block it again. */
static void host_release(struct deny_host *host)
{
    host->blocked_until_ms = host->paused_until_ms = 0;
    host->count = 0;
}

void fetch_release_hosts(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&hosts, e));)
        host_release(e->value);
}

/* True if a host that was blocked at the time `since_s` must be unblocked: the options now list it as never blocked, or an operator has
 * unblocked all hosts since then, in this or another process. */
static bool was_released(struct sl_str name, int64_t since_s)
{
    return never_blocked(name) || (fetch_state.options.released && fetch_state.options.released(since_s));
}

/* Ends the block of a host that has answered a probe (a download that was let through to test it), and forgets its failures. */
void deny_answered(struct sl_str name)
{
    struct deny_host *host = sl_map_get(&hosts, name);
    uint64_t now = loop_now_ms();
    if (!host || host->blocked_until_ms <= now)
        return;
    host->blocked_until_ms = 0;
    host->count = 0;
    log_warn("fetch", "a blocked host responds again", LOG_SLSTR("host", name));
}

enum sl_code deny_check(struct sl_str name, bool *is_probe, struct sl_error *error)
{
    struct deny_host *host = fetch_state.options.deny_list_enabled ? sl_map_get(&hosts, name) : NULL;
    uint64_t now = loop_now_ms();
    if (!host || host->blocked_until_ms <= now)
        return SL_OK;
    /* unblocked by an operator, or by new options */
    bool released = was_released(name, host->blocked_at_s);
    host = sl_map_get(&hosts, name); /* again: was_released suspends, so the entry may have been removed */
    if (host && released)
        host_release(host);
    if (!host || host->blocked_until_ms <= now)
        return SL_OK;
    if (host->probe_due_ms <= now) { /* this download is let through as a probe; the next one not before probe_ms() */
        host->probe_due_ms = now + probe_ms();
        *is_probe = true;
        return SL_OK;
    }
    struct sl_buf time = {0};
    duration_format(fetch_state.options.deny_block_ns, &time);
    enum sl_code code = sl_fail(error, SL_DOWNLOAD_ERROR,
                                "Host " SL_STR_FMT " is temporarily blocked because there were too many download "
                                "failures. It will remain blocked for a maximum of " SL_STR_FMT
                                ". The error that triggered the block was: `%s`.",
                                SL_STR_ARG(name), SL_STR_ARG(sl_buf_view(&time)), host->trigger);
    uint64_t rest_ms = host->blocked_until_ms - now;
    if (error) /* how long callers may cache the error */
        error->duration_ns = (rest_ms < REMEMBERED_MS ? rest_ms : REMEMBERED_MS) * UINT64_C(1000000);
    sl_buf_free(&time);
    return code;
}

void deny_close(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&hosts, e));)
        free(e->value);
    sl_map_free(&hosts);
    sweep_at = SWEEP_AT;
}
