/* Handlers that tests of bodies share: one that adds up what it got, and one that waits at a gate. */
#pragma once

#include "support.h"

#include <assert.h>
#include <stdatomic.h>

#define HEAD(path) "POST " path " HTTP/1.1\r\nHost: x\r\n"

static inline uint64_t large_limit(const struct http_exchange *x)
{
    (void)x;
    return 64 << 20;
}

static inline void reply_sum(struct http_exchange *x, uint64_t size, uint64_t sum)
{
    struct sl_json_writer w = sl_json_writer(&x->body);
    sl_json_begin_array(&w);
    sl_json_put_u64(&w, size);
    sl_json_put_u64(&w, sum);
    sl_json_end_array(&w);
    x->status = 200;
    http_set_header(x, "Content-Type", SL_STR("application/json"));
}

static inline uint64_t add_up(uint64_t sum, struct sl_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        sum = sum * 31 + bytes.data[i];
    return sum;
}

static inline void collect(struct http_exchange *x)
{
    struct sl_bytes body;
    if (http_body(x, &body) == SL_OK)
        reply_sum(x, body.size, add_up(0, body));
}

static struct fiber_wait_list gate; /* loop thread */
static atomic_int at_gate, cancelled;

static inline void wait_at_gate(struct http_exchange *x)
{
    at_gate++;
    if (fiber_wait_on(&gate, UINT64_MAX) == FIBER_CANCELLED) {
        cancelled++;
        assert(http_client_gone(x));
    } else {
        http_reply(x, 200, "text/plain", SL_STR("through"));
    }
}

static inline void open_gate(struct http_exchange *x)
{
    fiber_wake_all(&gate);
    http_reply_empty(x, 204);
}

static inline void wait_for(atomic_int *counter, int value)
{
    for (int i = 0; i < 20000 && atomic_load(counter) < value; i++)
        poll(NULL, 0, 1);
    assert_true(atomic_load(counter) >= value);
}
