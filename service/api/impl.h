/* What the files of api share. */
#pragma once

#include "api/jobs.h"
#include <uv.h>

#include "base/map.h"

struct name_memo;

struct service {
    const struct config *config;
    service_reload *reload;
    void *reload_arg;
    struct fiber_group jobs_group;
    struct sl_map jobs; /* by the 16 bytes of their ids */
    size_t running;
    struct job *finished_first, *finished_last; /* results that are kept, in the order of their ends */
    uint64_t kept_bytes, next_busy_log_ms;
    struct job *spare; /* to be used again, with their arenas */
    size_t spare_count, spare_bytes;
    uv_timer_t expiry;
    uint8_t random[256]; /* not used yet: its first `random_left` bytes */
    size_t random_left;
    bool draining, stopping;
    struct name_memo *names;
};

/* ---- query.c ---- */
struct api_query {
    bool has_timeout;
    uint64_t timeout_s;
    struct sl_str scope; /* "global" when absent */
};

/* False: the answer is set (400). */
bool query_read(struct http_exchange *x, struct api_query *query);

/* The checks of a POST route that takes JSON, before its body is read. */
void check_json_job(struct http_exchange *x);
uint64_t json_body_limit(const struct http_exchange *x);

void reply_text(struct http_exchange *x, int status, const char *text);

/* ---- handlers ---- */
void native_handle(struct http_exchange *x) SL_SUSPENDS;
void proxy_handle(struct http_exchange *x) SL_SUSPENDS;
void symbfile_handle(struct http_exchange *x) SL_SUSPENDS;
void symbfile_status_handle(struct http_exchange *x) SL_SUSPENDS;
void symbfile_delete_handle(struct http_exchange *x) SL_SUSPENDS;
void symbfile_unknown_handle(struct http_exchange *x);
void symbfile_check(struct http_exchange *x);
uint64_t symbfile_body_limit(const struct http_exchange *x);
void admin_reload_handle(struct http_exchange *x);
void admin_cache_handle(struct http_exchange *x) SL_SUSPENDS;
void health_handle(struct http_exchange *x);
void live_handle(struct http_exchange *x);
void ready_handle(struct http_exchange *x);
void metrics_handle(struct http_exchange *x);
