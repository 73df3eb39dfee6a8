/* Pushes the metrics as DogStatsD datagrams over UDP or a Unix socket. */
#include "core/statsd.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "core/metrics_impl.h"
#include "core/pool.h"

enum { PERIOD_MS = 10000, RETRY_MS = 30000, UDP_PACKET = 1432, UNIX_PACKET = 8192, VALUES_PER_LINE = 60 };

static struct {
    struct statsd_options options;
    int fd;               /* -1 = not connected */
    uint64_t next_try_ms; /* no attempt to connect before this time */
    size_t most;          /* maximum size of a packet in bytes */
    struct sl_buf packet, line;
} statsd = {.fd = -1};

void statsd_init(const struct statsd_options *options)
{
    statsd.options = *options;
    if (!options->server)
        return;
    metrics_keep_values();
    if (options->mozilla_names)
        metrics_use_mozilla_names();
}

/* ---- the socket; on the pool ---- */
/* Connects to the Unix socket of the StatsD agent (the server). -1 on failure, e.g. if the agent does not run yet. */
static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, size + 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Returns a UDP socket connected to the first address of the family for which that succeeds; -1 if there is none. */
static int connect_one(const struct addrinfo *at, int family)
{
    for (; at; at = at->ai_next) {
        int fd = at->ai_family == family ? socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        sl_close(fd);
    }
    return -1;
}

/* Opens a UDP socket to "host:port" or "[address]:port"; -1 on failure. connect(2) on UDP succeeds without a listener, so it does not tell
 * which address is right: IPv4 comes first, where most agents listen. */
static int connect_udp(const char *server)
{
    char host[256];
    const char *colon = strrchr(server, ':');
    bool bracketed = server[0] == '[';
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    /* - 2 * bracketed: without the brackets around the host */
    if (!colon || snprintf(host, sizeof host, "%.*s", (int)(colon - server) - 2 * bracketed, server + bracketed) < 0 ||
        getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return -1;
    int fd = connect_one(found, AF_INET);
    if (fd < 0)
        fd = connect_one(found, AF_INET6);
    freeaddrinfo(found);
    return fd;
}

/* Connects to the server if not connected, at most once in RETRY_MS. True if connected. */
static bool statsd_connect(void)
{
    const char *server = statsd.options.server;
    uint64_t now = clock_mono_ns() / 1000000;
    if (statsd.fd >= 0)
        return true;
    if (now < statsd.next_try_ms)
        return false;
    bool local = strncmp(server, "unix:", 5) == 0;
    statsd.next_try_ms = now + RETRY_MS;
    statsd.most = local ? UNIX_PACKET : UDP_PACKET; /* bytes of one datagram */
    statsd.fd = local ? connect_unix(server + 5) : connect_udp(server);
    return statsd.fd >= 0;
}

/* ---- packets ---- */
/* Sends the lines of the packet and empties it. They are lost if the server is slow (EAGAIN) or refuses the size (EMSGSIZE); after other
 * errors the socket is closed as well, and opened again later. */
static void send_packet(void)
{
    if (statsd.packet.size && statsd.fd >= 0 &&
        send(statsd.fd, statsd.packet.data, statsd.packet.size, MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
        errno != EMSGSIZE) {
        bool is_refused = errno == ECONNREFUSED;
        close(statsd.fd); /* the server is gone: until the next connect, lines are dropped */
        statsd.fd = -1;
        statsd.next_try_ms =
            clock_mono_ns() / 1000000 + (is_refused ? 0 : RETRY_MS); /* refused: an agent may start at any moment */
    }
    sl_buf_clear(&statsd.packet);
}

/* Adds the finished line to the packet, which is sent first if it would become too large. A line larger than a packet is dropped. */
static void add_line(void)
{
    size_t size = statsd.line.size;
    if (!statsd.line.failed && size <= statsd.most) {
        if (statsd.packet.size && statsd.packet.size + 1 + size > statsd.most)
            send_packet();
        if (statsd.packet.size)
            sl_buf_u8(&statsd.packet, '\n');
        sl_buf_add(&statsd.packet, statsd.line.data, size);
    }
    sl_buf_clear(&statsd.line);
}

/* ---- lines ---- */
void statsd_add_tag(struct sl_buf *tags, struct sl_str name, struct sl_str value)
{
    const struct sl_str parts[2] = {name, value};
    if (tags->size)
        sl_buf_u8(tags, ',');
    for (int part = 0; part < 2; part++) {
        for (size_t i = 0; i < parts[part].size; i++) {
            char c = parts[part].data[i];
            /* these characters would end the tag */
            sl_buf_u8(tags, (uint8_t)c <= ' ' || strchr(",|#", c) ? '_' : (uint8_t)c);
        }
        if (part == 0)
            sl_buf_u8(tags, ':');
    }
}

/* Begins a line with the configured prefix and the metric's name; names of Mozilla's services have no prefix. */
static void begin_line(const struct metric_push *push)
{
    if (*statsd.options.prefix && !push->is_mozilla)
        sl_buf_printf(&statsd.line, "%s.", statsd.options.prefix);
    sl_buf_cstr(&statsd.line, push->name);
}

/* Ends the line with type, sample rate and tags, and adds it to the packet. `rate`: the share of the observed values that are sent; if it
 * is below 1, the server multiplies accordingly. */
static void end_line(const char *kind, double rate, const struct metric_push *push)
{
    struct sl_buf tags = {0};
    sl_buf_printf(&statsd.line, "|%s", kind);
    if (rate < 1)
        sl_buf_printf(&statsd.line, "|@%.6g", rate);
    if (statsd.options.tagged) {
        sl_buf_cstr(&tags, statsd.options.tags);
        if (push->is_mozilla)
            statsd_add_tag(&tags, SL_STR("host"), sl_str(statsd.options.host));
        for (int i = 0; i < METRIC_LABELS && push->label_names[i]; i++)
            if (push->sample.labels[i][0])
                statsd_add_tag(&tags, sl_str(push->label_names[i]), sl_str(push->sample.labels[i]));
    }
    if (tags.size) {
        sl_buf_cstr(&statsd.line, "|#");
        sl_buf_str(&statsd.line, sl_buf_view(&tags));
    }
    sl_buf_free(&tags);
    add_line();
}

/* Writes the values of a histogram, at most VALUES_PER_LINE per line. Durations are kept in seconds, and written in milliseconds. */
static void push_values(const struct metric_push *push)
{
    double rate = push->values_seen ? (double)push->value_count / (double)push->values_seen : 1;
    for (size_t i = 0; i < push->value_count;) {
        begin_line(push);
        for (int n = 0; n < VALUES_PER_LINE && i < push->value_count; n++, i++)
            sl_buf_printf(&statsd.line, ":%.6g", (double)push->values[i] * (push->seconds ? 1e3 : 1));
        end_line(push->form, rate, push);
    }
}

/* Called by metrics_push for each series: writes the values of a histogram, or the one value of a gauge ("g") or counter ("c"). */
static void push_one(void *arg, const struct metric_push *push)
{
    (void)arg;
    if (push->values) {
        push_values(push);
        return;
    }
    begin_line(push);
    sl_buf_printf(&statsd.line, ":%.15g", push->sample.value);
    end_line(push->gauge ? "g" : "c", 1, push);
}

/* Sends all metrics that have changed since the last call. On the pool, as resolving the server's name may take long. Without a connection
 * the metrics are kept for the next call. */
static void push_all(void *arg)
{
    (void)arg;
    if (statsd_connect()) {
        metrics_push(push_one, NULL);
        send_packet();
    }
}

void statsd_run(void *unused)
{
    (void)unused;
    if (!statsd.options.server)
        return;
    bool on = true;
    while (on) {
        on = fiber_sleep(PERIOD_MS);
        metrics_collect();
        if (on)
            pool_run(POOL_IO, push_all, NULL, NULL);
    }
    push_all(NULL); /* on the loop: quick, as the server's name is usually resolved by now */
    sl_close(statsd.fd);
    statsd.fd = -1;
    sl_buf_free(&statsd.packet);
    sl_buf_free(&statsd.line);
}
