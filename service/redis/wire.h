/* A byte stream to a Redis: a TCP or Unix socket on the loop, with or without TLS. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "tls/tls.h"

struct wire_target {
    const char *socket;      /* path; NULL = TCP */
    const char *address;     /* numeric */
    uint16_t port;           /* host order */
    struct tls_context *tls; /* NULL = no TLS */
    const char *host;        /* with `tls`: expected name in the server's certificate */
};

/* Called by the loop, never before a function of this header has returned. No event follows `broke`. */
struct wire_events {
    void (*opened)(void *arg); /* connected, and the TLS handshake is complete */
    void (*received)(void *arg, struct sl_bytes bytes);
    void (*broke)(void *arg, const char *why);
};

struct wire;
/* Begins to connect; NULL if that fails at once. */
struct wire *wire_open(const struct wire_target *target, const struct wire_events *events, void *arg);
/* Takes over `data`, allocated by malloc, and sends it after earlier data. Only after `opened`. False: no memory. */
bool wire_send(struct wire *wire, char *data, size_t size);
/* Drops unsent data and calls no more events. The loop frees it. */
void wire_close(struct wire *wire);
