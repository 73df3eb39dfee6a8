/* Queries the other processes of this service by their unix sockets. */
#include "api/jobs/peers.h"

#include <stdio.h>

#include "api/impl.h"
#include "api/jobs/node.h"

enum { ANSWER_MAX = 16 << 20 /* bytes */, AT_ONCE = 15 /* helper fibers */ };
#define TIMEOUT_NS UINT64_C(2000000000)

struct peer_requests { /* state of peers_request, shared by its fibers; `x`, `accept` and `texts` are its parameters */
    struct http_exchange *x;
    const struct config *config;
    const char *url;
    struct sl_str accept;
    struct sl_buf *texts;
    size_t next; /* index of the next process to query; shared by all workers */
};

/* A worker fiber: queries the next process until none is left. Skips this process, for which node_socket returns NULL. A process
 * that does not answer 200 leaves an empty text. */
static void gather(void *arg)
{
    struct peer_requests *g = arg;
    while (g->next < g->config->http.processes) {
        size_t index = g->next++;
        struct fetch_header headers[NODE_MAX_HEADERS + 1];
        const char *socket = node_socket(g->config, &g->x->arena, index);
        struct fetch_relay relay = {
            .url = g->url, .socket = socket, .headers = headers, .timeout_ns = TIMEOUT_NS, .max_size = ANSWER_MAX};
        int status = 0;
        relay.header_count = node_headers(g->x, headers);
        headers[relay.header_count++] = (struct fetch_header){SL_STR("Accept"), secret_make(g->accept)};
        if (socket && (fetch_relay(&relay, &status, &g->texts[index], NULL) != SL_OK || status != 200))
            sl_buf_free(&g->texts[index]);
    }
}

bool peers_should_answer(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config->process.directory && !node_is_forwarded(x);
}

void peers_request(struct http_exchange *x, const char *path, struct sl_str accept, struct sl_buf *texts)
{
    /* held, as the configuration may be replaced while the fibers wait */
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    size_t others = config->http.processes - 1;
    char url[128];
    struct peer_requests gathering = {
        .x = x, .config = config, .url = url, .accept = accept.data ? accept : SL_STR("*/*"), .texts = texts};
    snprintf(url, sizeof url, "http://localhost%s", path);
    fiber_run_workers(gather, &gathering, others < AT_ONCE ? others : AT_ONCE);
    config_release(config);
}
