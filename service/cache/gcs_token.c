/* The shared layer's token for its bucket at Google: one is kept, and the next one asked for while it is still good, so that
 * nobody waits. */
#include "cache/bucket.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
enum {
    WAIT_MS = 300,
    MARGIN_MS = 60 * 1000,    /* a token this near to its end is not used */
    AHEAD_MS = 5 * 60 * 1000, /* ... and this near, the next one is asked for */
    RETRY_MS = 1000,
    LIFE_MAX_S = 3600,
};

static struct {
    struct google_account account;
    struct fiber_group *group;
    struct sl_buf header; /* "Bearer ..." */
    uint64_t good_until_ms, not_before_ms;
    bool asking;
    struct fiber_wait_list changed;
} token;

static void gcs_token_ask(void *arg)
{
    (void)arg;
    struct sl_buf header = {0};
    struct sl_error error = {0};
    uint64_t life_s = 0;
    sl_buf_cstr(&header, "Bearer ");
    enum sl_code code = google_token(&token.account, SCOPE, "shared_cache", &header, &life_s, &error);
    if (code == SL_OK && header.failed)
        code = sl_fail(&error, SL_BUSY, "out of memory");
    if (code == SL_OK) {
        life_s = life_s == 0 ? GOOGLE_TOKEN_LIFE_S : life_s > LIFE_MAX_S ? LIFE_MAX_S : life_s;
        sl_buf_wipe(&token.header);
        token.header = header;
        token.good_until_ms = loop_now_ms() + life_s * 1000;
    } else {
        sl_buf_wipe(&header);
        token.not_before_ms = loop_now_ms() + RETRY_MS;
        if (code != SL_CANCELLED)
            log_warn("shared", "no token for the bucket", LOG_ERR(&error));
    }
    if (code != SL_CANCELLED)
        metric_add(METRIC_SOURCE_TOKEN, 1, "shared_gcs", code == SL_OK ? "ok" : "error", NULL);
    token.asking = false;
    fiber_wake_all(&token.changed);
}

static bool good_for(uint64_t ms)
{
    return token.good_until_ms > loop_now_ms() + ms;
}

const char *gcs_token_get(struct sl_arena *arena)
{
    uint64_t end = loop_now_ms() + WAIT_MS;
    if (!good_for(AHEAD_MS) && !token.asking && loop_now_ms() >= token.not_before_ms)
        token.asking = fiber_start(token.group, gcs_token_ask, NULL);
    while (!good_for(MARGIN_MS) && token.asking) {
        uint64_t now = loop_now_ms();
        if (now >= end || fiber_wait_on(&token.changed, end - now) == FIBER_CANCELLED)
            break;
    }
    return good_for(MARGIN_MS) ? sl_arena_strndup(arena, (const char *)token.header.data, token.header.size) : NULL;
}

void gcs_token_init(const struct google_account *account, struct fiber_group *group)
{
    token.account = *account;
    token.group = group;
    token.good_until_ms = token.not_before_ms = 0;
    token.asking = false;
}

void gcs_token_close(void)
{
    sl_buf_wipe(&token.header);
    token.good_until_ms = 0;
}
