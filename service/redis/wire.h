/* What carries bytes to a Redis: a TCP or Unix socket on the loop, sealed or not. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "tls/tls.h"

struct wire_target {
    const char *socket;      /* path; NULL = TCP */
    const char *address;     /* numeric */
    uint16_t port;           /* host order */
    struct tls_context *tls; /* NULL = not sealed */
    const char *host;        /* with `tls`: who the other side must be */
};

/* Called by the loop, never from within a function of this header. After `broke` nothing is called any more. */
struct wire_events {
    void (*opened)(void *arg); /* the handshake is done too */
    void (*received)(void *arg, struct sl_bytes bytes);
    void (*broke)(void *arg, const char *why);
};

struct wire;
/* NULL: it cannot be begun. */
struct wire *wire_open(const struct wire_target *target, const struct wire_events *events, void *arg);
/* Takes `data`, of malloc, and sends it behind what was sent before. After `opened`. False: no memory. */
bool wire_send(struct wire *wire, char *data, size_t size);
/* Gives up what is not sent yet; nothing is called any more. The loop frees it. */
void wire_close(struct wire *wire);
