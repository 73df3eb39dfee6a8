/* Numbers of nodes (a node is a process of a cluster), and the forwarding of polls to the node that has the job. */
#include "api/jobs/node.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <unistd.h>

#include "api/impl.h"
#include "core/log.h"
#include "core/metrics.h"

#define GRACE_NS UINT64_C(5000000000) /* time for the transfer, beyond the client's timeout */
enum { RESULT_MAX = 1 << 30 };        /* largest answer of another node that is relayed, in bytes */

/* Returns the node number of the service's first process: cluster.node_id, or without it a hash of the host name. Process 1 has the
 * next number, and so on. */
static uint16_t node_first(const struct config *config)
{
    char name[256] = "";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    if (config->cluster.node_id != UINT64_MAX)
        return (uint16_t)config->cluster.node_id;
    gethostname(name, sizeof name - 1);
    SHA256((const uint8_t *)name, strlen(name), digest);
    return (uint16_t)(digest[0] << 8 | digest[1]);
}

uint16_t node_own_id(const struct config *config)
{
    return (uint16_t)(node_first(config) + config->process.index);
}

const char *node_socket(const struct config *config, struct sl_arena *arena, size_t index)
{
    char path[128];
    if (!config->process.directory || index >= config->http.processes || index == config->process.index)
        return NULL;
    int size = snprintf(path, sizeof path, "%s/%zu", config->process.directory, index);
    return sl_arena_strndup(arena, path, (size_t)size);
}

bool node_is_forwarded(const struct http_exchange *x)
{
    return http_header(x, "x-symloom-forwarded").data != NULL;
}

/* Returns the URL of the service with this node, without trailing slashes; NULL if cluster.peers has none, or when out of memory.
 * The configuration has the number of the peer's first process only; the peer is taken to have as many processes as this service.
 * Its URL may lead to any of them, which forwards to the right one. */
static const char *peer_url(const struct config *config, struct sl_arena *arena, unsigned node)
{
    for (size_t i = 0; i < config->cluster.peer_count; i++) {
        struct sl_str url = config->cluster.peers[i].value;
        uint16_t first;
        if (!config_peer_number(config->cluster.peers[i].key, &first) || node < first ||
            node - first >= config->http.processes)
            continue;
        while (url.size && url.data[url.size - 1] == '/')
            url.size--;
        return sl_arena_strndup(arena, url.data, url.size);
    }
    return NULL;
}

/* Returns the URL for polling the job at the node with base URL `base`; NULL when out of memory. */
static const char *job_url(struct http_exchange *x, const char *base, const uint8_t id[16],
                           const struct api_query *query)
{
    struct sl_buf url = {0};
    sl_buf_printf(&url, "%s/requests/", base);
    for (int i = 0; i < 16; i++)
        sl_buf_printf(&url, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
    if (query->has_timeout)
        sl_buf_printf(&url, "?timeout=%llu", (unsigned long long)query->timeout_s);
    const char *text = url.failed ? NULL : sl_arena_strndup(&x->arena, (const char *)url.data, url.size);
    sl_buf_free(&url);
    return text;
}

/* The client's credentials are sent too, as the node that has the job checks them. */
size_t node_headers(const struct http_exchange *x, struct fetch_header headers[NODE_MAX_HEADERS])
{
    static const char *const credentials[] = {"authorization", "x-api-key"};
    size_t count = 0;
    headers[count++] = (struct fetch_header){SL_STR(NODE_FORWARDED), secret_make(SL_STR("1"))};
    for (size_t i = 0; i < sizeof credentials / sizeof *credentials; i++) {
        struct sl_str value = http_header(x, credentials[i]);
        if (value.size)
            headers[count++] = (struct fetch_header){sl_str(credentials[i]), secret_make(value)};
    }
    if (x->request_id.size)
        headers[count++] = (struct fetch_header){SL_STR("X-Request-Id"), secret_make(x->request_id)};
    return count;
}

/* Returns how long to wait for the other node: the client's timeout, but at most the longest duration of a job. A client without a
 * timeout waits for that duration. To both some time for the transfer is added. */
static uint64_t relay_timeout_ns(const struct config *config, const struct api_query *query)
{
    uint64_t ns = config->max_job_duration_ns;
    if (query->has_timeout && __builtin_mul_overflow(query->timeout_s, UINT64_C(1000000000), &ns))
        ns = config->max_job_duration_ns;
    if (ns > config->max_job_duration_ns)
        ns = config->max_job_duration_ns;
    return ns + GRACE_NS;
}

const char *node_get_url(struct http_exchange *x, unsigned node, const char **socket)
{
    const struct config *config = ((const struct service *)x->service)->config;
    *socket = NULL;
    if (node == ((const struct service *)x->service)->node)
        return NULL;
    /* computed modulo 2^16: a node of another machine gives an index without a process, for which node_socket returns NULL */
    *socket = node_socket(config, &x->arena, (uint16_t)(node - node_first(config)));
    if (*socket)
        return "http://localhost";
    return node_is_forwarded(x) ? NULL : peer_url(config, &x->arena, node);
}

bool node_relay(struct http_exchange *x, const uint8_t id[16], const struct api_query *query)
{
    const struct config *config = ((const struct service *)x->service)->config;
    unsigned owner = (unsigned)id[0] << 8 | id[1];
    const char *socket, *base = node_get_url(x, owner, &socket);
    const char *url = base ? job_url(x, base, id, query) : NULL;
    if (!url)
        return false;
    struct fetch_header headers[NODE_MAX_HEADERS];
    struct fetch_relay relay = {.url = url,
                                .socket = socket,
                                .headers = headers,
                                .timeout_ns = relay_timeout_ns(config, query),
                                .max_size = RESULT_MAX};
    struct sl_buf body = {0};
    struct sl_error error = {0};
    int status = 0;
    relay.header_count = node_headers(x, headers);
    enum sl_code code = fetch_relay(&relay, &status, &body, &error);
    if (code != SL_OK && code != SL_CANCELLED) /* cancelled: the client is gone */
        log_warn("jobs", "cannot forward a poll to the node that has the job; the client gets 404",
                 LOG_U64("node", owner), LOG_ERR(&error));
    metric_add(METRIC_POLLS, 1, code == SL_OK && status == 200 ? "forwarded" : "unknown", NULL, NULL);
    if (code == SL_OK && status == 200) {
        http_reply_json(x, 200, &body);
        return true;
    }
    sl_buf_free(&body);
    http_reply_empty(x, 404);
    return true;
}
