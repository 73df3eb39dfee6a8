#include "redis/wire.h"

#include <stdlib.h>
#include <uv.h>

#include "base/list.h"
#include "core/loop.h"

enum { READ_BYTES = 64 * 1024, SEAL_BYTES = 64 * 1024, KEEP_ALIVE_S = 15 };

struct parcel { /* of the list of what is to be sent */
    struct sl_link link;
    char *data;
    size_t size, sealed; /* of it is sealed already */
};

struct wire {
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } handle;
    uv_connect_t connecting;
    uv_write_t writing;
    struct wire_events events;
    void *arg;
    struct tls *tls;
    struct sl_list parcels;
    struct parcel *sent; /* on its way, when nothing is sealed */
    struct sl_buf out;   /* on its way, when it is sealed */
    bool busy, opened, closed;
    char in[READ_BYTES];
    uint8_t plain[READ_BYTES];
};

static void parcel_free(struct parcel *parcel)
{
    free(parcel->data);
    free(parcel);
}

static struct parcel *take_parcel(struct wire *wire)
{
    struct parcel *parcel = SL_LIST_FIRST(&wire->parcels, struct parcel, link);
    sl_list_remove(&wire->parcels, &parcel->link);
    return parcel;
}

static void wire_free(uv_handle_t *handle)
{
    struct wire *wire = handle->data;
    while (wire->parcels.first)
        parcel_free(take_parcel(wire));
    if (wire->sent)
        parcel_free(wire->sent);
    sl_buf_free(&wire->out);
    tls_free(wire->tls);
    free(wire);
}

void wire_close(struct wire *wire)
{
    if (!wire->closed)
        uv_close(&wire->handle.any, wire_free);
    wire->closed = true;
}

static void wire_break(struct wire *wire, const char *why)
{
    if (wire->closed)
        return;
    wire->events.broke(wire->arg, why);
    wire_close(wire);
}

/* ---- out ---- */
static const char *pump(struct wire *wire);

static void on_written(uv_write_t *request, int status)
{
    struct wire *wire = request->data;
    wire->busy = false;
    wire->out.size = 0;
    if (wire->sent)
        parcel_free(wire->sent);
    wire->sent = NULL;
    const char *trouble = status == 0 ? pump(wire) : uv_strerror(status);
    if (trouble)
        wire_break(wire, trouble);
}

/* The next bytes to write: what TLS wants to say by itself, and a bounded part of what is to be sent. */
static bool seal(struct wire *wire)
{
    struct sl_buf *ready = tls_output(wire->tls);
    while (wire->opened && wire->parcels.first && ready->size < SEAL_BYTES) {
        struct parcel *p = SL_LIST_FIRST(&wire->parcels, struct parcel, link);
        size_t size = p->size - p->sealed < SEAL_BYTES ? p->size - p->sealed : SEAL_BYTES;
        if (!tls_write(wire->tls, (struct sl_bytes){(const uint8_t *)p->data + p->sealed, size}))
            return false;
        p->sealed += size;
        if (p->sealed == p->size)
            parcel_free(take_parcel(wire));
    }
    struct sl_buf empty = wire->out;
    wire->out = *ready;
    *ready = empty;
    return !wire->out.failed;
}

/* One write at a time; what comes meanwhile waits for its end. Says what is wrong, or NULL. */
static const char *pump(struct wire *wire)
{
    uv_buf_t buf;
    if (wire->busy || wire->closed)
        return NULL;
    if (wire->tls) {
        if (!seal(wire))
            return tls_failure(wire->tls);
        buf = uv_buf_init((char *)wire->out.data, (unsigned)wire->out.size);
    } else {
        wire->sent = wire->parcels.first ? take_parcel(wire) : NULL;
        buf = wire->sent ? uv_buf_init(wire->sent->data, (unsigned)wire->sent->size) : uv_buf_init(NULL, 0);
    }
    if (buf.len == 0)
        return NULL;
    wire->writing.data = wire;
    int code = uv_write(&wire->writing, &wire->handle.stream, &buf, 1, on_written);
    wire->busy = code == 0;
    return code == 0 ? NULL : uv_strerror(code);
}

bool wire_send(struct wire *wire, char *data, size_t size)
{
    struct parcel *parcel = malloc(sizeof *parcel);
    if (!parcel) {
        free(data);
        return false;
    }
    *parcel = (struct parcel){.data = data, .size = size};
    sl_list_append(&wire->parcels, &parcel->link);
    (void)pump(wire); /* what is wrong with the connection is read soon, too */
    return true;
}

/* ---- in ---- */
static void unseal(struct wire *wire, struct sl_bytes bytes)
{
    enum tls_result result = TLS_MORE;
    size_t size;
    tls_feed(wire->tls, bytes);
    while (!wire->closed && (result = tls_read(wire->tls, wire->plain, sizeof wire->plain, &size)) == TLS_DATA)
        wire->events.received(wire->arg, (struct sl_bytes){wire->plain, size});
    if (wire->closed)
        return;
    bool opens = !wire->opened && tls_is_ready(wire->tls);
    wire->opened |= opens;
    const char *trouble = pump(wire); /* sends an alert too */
    if (result != TLS_MORE)
        trouble = result == TLS_END ? "closed by the other side" : tls_failure(wire->tls);
    if (trouble)
        wire_break(wire, trouble);
    else if (opens)
        wire->events.opened(wire->arg);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct wire *wire = handle->data;
    (void)suggested;
    *buf = uv_buf_init(wire->in, sizeof wire->in);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct wire *wire = stream->data;
    struct sl_bytes bytes = {(const uint8_t *)buf->base, size > 0 ? (size_t)size : 0};
    if (size < 0)
        wire_break(wire, size == UV_EOF ? "closed by the other side" : uv_strerror((int)size));
    else if (size > 0 && wire->tls)
        unseal(wire, bytes);
    else if (size > 0)
        wire->events.received(wire->arg, bytes);
}

/* ---- the beginning ---- */
static void on_connect(uv_connect_t *request, int status)
{
    struct wire *wire = request->data;
    if (wire->closed)
        return;
    if (status == 0 && wire->handle.any.type == UV_TCP) {
        uv_tcp_nodelay(&wire->handle.tcp, 1);
        uv_tcp_keepalive(&wire->handle.tcp, 1,
                         KEEP_ALIVE_S); /* who listens would not notice that the other side is gone */
    }
    if (status == 0)
        status = uv_read_start(&wire->handle.stream, on_room, on_read);
    if (status != 0) {
        wire_break(wire, uv_strerror(status));
    } else if (wire->tls) {
        unseal(wire, (struct sl_bytes){0});
    } else {
        wire->opened = true;
        wire->events.opened(wire->arg);
    }
}

static bool begin_tcp(struct wire *wire, const struct wire_target *target)
{
    struct sockaddr_storage at;
    if (uv_ip4_addr(target->address, target->port, (struct sockaddr_in *)&at) != 0 &&
        uv_ip6_addr(target->address, target->port, (struct sockaddr_in6 *)&at) != 0)
        return false;
    return uv_tcp_connect(&wire->connecting, &wire->handle.tcp, (const struct sockaddr *)&at, on_connect) == 0;
}

struct wire *wire_open(const struct wire_target *target, const struct wire_events *events, void *arg)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return NULL;
    wire->events = *events;
    wire->arg = arg;
    wire->connecting.data = wire;
    if (target->tls && !(wire->tls = tls_connect(target->tls, target->host))) {
        free(wire);
        return NULL;
    }
    int code =
        target->socket ? uv_pipe_init(loop_get(), &wire->handle.pipe, 0) : uv_tcp_init(loop_get(), &wire->handle.tcp);
    if (code != 0) {
        tls_free(wire->tls);
        free(wire);
        return NULL;
    }
    wire->handle.any.data = wire;
    if (target->socket) {
        uv_pipe_connect(&wire->connecting, &wire->handle.pipe, target->socket, on_connect);
    } else if (!begin_tcp(wire, target)) {
        wire_close(wire);
        return NULL;
    }
    return wire;
}
