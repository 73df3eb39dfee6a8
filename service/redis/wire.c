/* Reads and writes a socket by libuv, and encrypts with TLS. */
#include "redis/wire.h"

#include <stdlib.h>
#include <uv.h>

#include "base/list.h"
#include "core/loop.h"

enum { READ_BYTES = 64 * 1024, SEAL_BYTES = 64 * 1024, KEEP_ALIVE_S = 15 };

struct write_buf { /* queued data */
    struct sl_link link;
    char *data;
    size_t size, encrypted; /* `encrypted` bytes of it are encrypted already */
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
    struct sl_list write_bufs;
    struct write_buf *sent; /* without TLS: the buffer being written */
    struct sl_buf out;      /* with TLS: the encrypted bytes being written */
    bool busy, opened, closed;
    char in[READ_BYTES];
    uint8_t plain[READ_BYTES];
};

static void write_buf_free(struct write_buf *write_buf)
{
    free(write_buf->data);
    free(write_buf);
}

static struct write_buf *take_write_buf(struct wire *wire)
{
    struct write_buf *write_buf = SL_LIST_FIRST(&wire->write_bufs, struct write_buf, link);
    sl_list_remove(&wire->write_bufs, &write_buf->link);
    return write_buf;
}

/* The handle is closed: frees everything. */
static void wire_free(uv_handle_t *handle)
{
    struct wire *wire = handle->data;
    while (wire->write_bufs.first)
        write_buf_free(take_write_buf(wire));
    if (wire->sent)
        write_buf_free(wire->sent);
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

/* Reports why the connection broke, and closes it; does nothing if it is closed already. */
static void wire_break(struct wire *wire, const char *why)
{
    if (wire->closed)
        return;
    wire->events.broke(wire->arg, why);
    wire_close(wire);
}

/* ---- output ---- */
static const char *write_next(struct wire *wire);

/* The buffer was written: writes what was added meanwhile. */
static void on_written(uv_write_t *request, int status)
{
    struct wire *wire = request->data;
    wire->busy = false;
    wire->out.size = 0;
    if (wire->sent)
        write_buf_free(wire->sent);
    wire->sent = NULL;
    const char *last_error = status == 0 ? write_next(wire) : uv_strerror(status);
    if (last_error)
        wire_break(wire, last_error);
}

/* Moves the next encrypted bytes to wire->out: TLS's own messages and, after the handshake, about SEAL_BYTES of the queued data. False if
 * TLS fails or memory is out. */
static bool encrypt_next(struct wire *wire)
{
    struct sl_buf *ready = tls_output(wire->tls);
    while (wire->opened && wire->write_bufs.first && ready->size < SEAL_BYTES) {
        struct write_buf *p = SL_LIST_FIRST(&wire->write_bufs, struct write_buf, link);
        size_t size = p->size - p->encrypted < SEAL_BYTES ? p->size - p->encrypted : SEAL_BYTES;
        if (!tls_write(wire->tls, (struct sl_bytes){(const uint8_t *)p->data + p->encrypted, size}))
            return false;
        p->encrypted += size;
        if (p->encrypted == p->size)
            write_buf_free(take_write_buf(wire));
    }
    struct sl_buf empty = wire->out; /* exchanges the buffers, to keep the memory of both */
    wire->out = *ready;
    *ready = empty;
    return !wire->out.failed;
}

/* Starts a write of the queued bytes, unless one is in progress, whose callback calls this again. Returns an error text, or NULL. */
static const char *write_next(struct wire *wire)
{
    uv_buf_t buf;
    if (wire->busy || wire->closed)
        return NULL;
    if (wire->tls) {
        if (!encrypt_next(wire))
            return tls_failure(wire->tls);
        buf = uv_buf_init((char *)wire->out.data, (unsigned)wire->out.size);
    } else {
        wire->sent = wire->write_bufs.first ? take_write_buf(wire) : NULL;
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
    struct write_buf *write_buf = malloc(sizeof *write_buf);
    if (!write_buf) {
        free(data);
        return false;
    }
    *write_buf = (struct write_buf){.data = data, .size = size};
    sl_list_append(&wire->write_bufs, &write_buf->link);
    (void)write_next(wire); /* an error breaks the connection, which the read callback reports, too */
    return true;
}

/* ---- input ---- */
/* Decrypts received bytes and passes them on, and sends what TLS itself answers. With no bytes, when the connection is new, it begins the
 * handshake. */
static void decrypt(struct wire *wire, struct sl_bytes bytes)
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
    const char *last_error = write_next(wire); /* may send an alert */
    if (result != TLS_MORE)
        last_error = result == TLS_END ? "connection closed by Redis" : tls_failure(wire->tls);
    if (last_error)
        wire_break(wire, last_error);
    else if (opens)
        wire->events.opened(wire->arg);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct wire *wire = handle->data;
    (void)suggested;
    *buf = uv_buf_init(wire->in, sizeof wire->in);
}

/* libuv has read bytes, the end of the stream, or an error. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct wire *wire = stream->data;
    struct sl_bytes bytes = {(const uint8_t *)buf->base, size > 0 ? (size_t)size : 0};
    if (size < 0)
        wire_break(wire, size == UV_EOF ? "connection closed by Redis" : uv_strerror((int)size));
    else if (size > 0 && wire->tls)
        decrypt(wire, bytes);
    else if (size > 0)
        wire->events.received(wire->arg, bytes);
}

/* ---- connecting ---- */
/* The connection is open, or failed. With TLS, it is usable after the handshake, which begins here. */
static void on_connect(uv_connect_t *request, int status)
{
    struct wire *wire = request->data;
    if (wire->closed)
        return;
    if (status == 0 && wire->handle.any.type == UV_TCP) {
        uv_tcp_nodelay(&wire->handle.tcp, 1);
        uv_tcp_keepalive(&wire->handle.tcp, 1,
                         KEEP_ALIVE_S); /* a subscriber that never writes would not notice a dead peer */
    }
    if (status == 0)
        status = uv_read_start(&wire->handle.stream, on_alloc, on_read);
    if (status != 0) {
        wire_break(wire, uv_strerror(status));
    } else if (wire->tls) {
        decrypt(wire, (struct sl_bytes){0});
    } else {
        wire->opened = true;
        wire->events.opened(wire->arg);
    }
}

/* Begins to connect to an IPv4 or IPv6 address; false if it is neither, or if the system refuses. */
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
    if (target->socket) { /* errors are reported to on_connect */
        uv_pipe_connect(&wire->connecting, &wire->handle.pipe, target->socket, on_connect);
    } else if (!begin_tcp(wire, target)) {
        wire_close(wire);
        return NULL;
    }
    return wire;
}
