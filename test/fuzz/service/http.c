/* A request as it comes from the network: head filter, parser, router, query, body framing. The first byte says where
 * the stream is cut in two reads. */
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handler(struct http_exchange *x)
{
    (void)x;
}

static uint64_t limit(const struct http_exchange *x)
{
    (void)x;
    return 4096;
}

static const struct http_route routes[] = {
    {"POST", "/symbolicate", handler, false, true, NULL, limit},
    {"GET", "/requests/{id}", handler, false, false, NULL, NULL},
    {"GET", "/proxy/{path..}", handler, false, true, NULL, NULL},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

static const struct http_route other_routes[] = {
    {"POST", "/api/symbols/{id}/x", handler, false, true, NULL, limit},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

static void refuse(struct http_exchange *x, int status, const char *detail)
{
    http_reply(x, status, "text/plain", sl_str(detail ? detail : "refused"));
}

static const char *prefix(const void *service)
{
    (void)service;
    return "/p";
}

static const struct http_family family = {.routes = routes};
static const struct http_family other = {.routes = other_routes, .prefix = prefix, .error = refuse};
static const struct http_family *const families[] = {&family, &other, NULL};

static struct http_server *server;

static void start(void)
{
    static const char *const hosts[] = {"x", "y"};
    loop_init(2);
    log_set_levels("off");
    parse_init();
    server = calloc(1, sizeof *server);
    if (!server)
        abort();
    http_options_default(&server->options);
    server->options.families = families;
    if (!server_take_routes(server))
        abort();
    server->options.allowed_hosts = hosts;
    server->options.allowed_host_count = 2;
    server->proxies = calloc(1, sizeof *server->proxies);
    server->proxy_count = server->proxies && network_parse(SL_STR("127.0.0.0/8"), server->proxies);
    server->random[0] = 1;
}

static void feed_body(struct request *r, struct sl_bytes data)
{
    while (data.size > 0 && !r->message_done) {
        size_t used = parse_body(r, data);
        if (used > data.size || used == 0)
            abort(); /* every call makes progress */
        data.data += used;
        data.size -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!server)
        start();
    if (size == 0)
        return 0;
    struct connection c = {.server = server, .peer = "127.0.0.1"};
    size_t cut = data[0] % size, head_size = 0;
    struct sl_bytes stream = {data + 1, size - 1};
    enum head_result result = head_scan(&c.scan, (struct sl_bytes){stream.data, cut}, &server->options, &head_size);
    if (result == HEAD_MORE)
        result = head_scan(&c.scan, stream, &server->options, &head_size);
    if (result != HEAD_COMPLETE)
        return 0;
    struct request *r = request_new(&c);
    if (!r)
        return 0;
    parse_head(r, (struct sl_bytes){stream.data, head_size}, c.scan.lines);
    struct sl_bytes rest = {stream.data + head_size, stream.size - head_size};
    size_t first = rest.size ? cut % rest.size : 0;
    feed_body(r, (struct sl_bytes){rest.data, first});
    feed_body(r, (struct sl_bytes){rest.data + first, rest.size - first});
    body_finish(r);
    request_free(r);
    return 0;
}
