/* libcurl's multi-socket interface on the loop: a poll handle per socket, one timer per connection pool. */
#include "fetch/impl.h"

#include <netdb.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "fetch/libcurl.h"

struct fetch_connection_pool {
    CURLM *multi;
    uv_timer_t timer;
    int running;
};

struct watched { /* a socket of curl that the loop watches */
    uv_poll_t poll;
    struct fetch_connection_pool *pool;
    curl_socket_t socket;
};

struct fetch_state fetch_state;
static struct fetch_connection_pool pools[DRIVER_POOLS];

/* Passes the result of each transfer that curl has finished to the transfer. */
static void collect(struct fetch_connection_pool *pool)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));)
        if (message->msg == CURLMSG_DONE)
            transfer_finished(message->easy_handle, message->data.result);
}

/* On the loop: a socket is readable or writable, or has failed. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watched *w = poll->data;
    int action = status < 0
                     ? CURL_CSELECT_ERR
                     : ((events & UV_READABLE) ? CURL_CSELECT_IN : 0) | ((events & UV_WRITABLE) ? CURL_CSELECT_OUT : 0);
    struct fetch_connection_pool *pool = w->pool;
    curl_multi_socket_action(pool->multi, w->socket, action, &pool->running);
    collect(pool);     /* results of transfers that have ended */
    transfer_resume(); /* transfers whose socket curl has closed too early */
}

/* On the loop: the time that curl has set by on_timeout has come. */
static void on_timer(uv_timer_t *timer)
{
    struct fetch_connection_pool *pool = timer->data;
    curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &pool->running);
    collect(pool);
    transfer_resume();
}

static void free_watched(uv_handle_t *handle)
{
    free(handle->data);
}

/* Called by curl (CURLMOPT_SOCKETFUNCTION) to have a socket watched for the events `what`, or not any more. `of_socket` is what
 * curl_multi_assign has set, NULL at first. Returns -1, which fails the transfer, when out of memory. */
static int on_socket(CURL *easy, curl_socket_t socket, int what, void *arg, void *of_socket)
{
    struct fetch_connection_pool *pool = arg;
    struct watched *w = of_socket;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            curl_multi_assign(pool->multi, socket, NULL);
            uv_poll_stop(&w->poll);
            uv_close((uv_handle_t *)&w->poll, free_watched);
            transfer_socket_gone(easy); /* lists the transfer for transfer_resume */
        }
        return 0;
    }
    if (!w) {
        w = calloc(1, sizeof *w);
        if (!w || uv_poll_init_socket(loop_get(), &w->poll, socket) != 0) {
            free(w);
            transfer_fail_for_memory(easy);
            return -1;
        }
        w->pool = pool;
        w->socket = socket;
        w->poll.data = w;
        curl_multi_assign(pool->multi, socket, w);
    }
    int events = ((what & CURL_POLL_IN) ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) ? UV_WRITABLE : 0);
    uv_poll_start(&w->poll, events, on_ready);
    return 0;
}

/* Called by curl (CURLMOPT_TIMERFUNCTION) to set its timer to `ms` milliseconds from now; -1 = stop it. */
static int on_timeout(CURLM *multi, long ms, void *arg)
{
    struct fetch_connection_pool *pool = arg;
    if (ms < 0)
        uv_timer_stop(&pool->timer);
    else /* also for 0: curl must not be called from its own callback */
        uv_timer_start(&pool->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

bool driver_add(enum driver_pool pool, CURL *easy)
{
    return curl_multi_add_handle(pools[pool].multi, easy) == CURLM_OK;
}

void driver_remove(enum driver_pool pool, CURL *easy)
{
    curl_multi_remove_handle(pools[pool].multi, easy);
}

/* Returns the port of a proxy URL. Without one, curl uses 443 for https and 1080 for all other schemes. */
static uint16_t proxy_port(CURLU *url)
{
    char *port = NULL, *scheme = NULL;
    curl_url_get(url, CURLUPART_PORT, &port, 0);
    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    long number = port ? strtol(port, NULL, 10) : scheme && strcmp(scheme, "https") == 0 ? 443 : 1080;
    curl_free(port);
    curl_free(scheme);
    return (uint16_t)number;
}

/* Records the addresses of the proxy whose URL is in an environment variable: downloads may connect to them even if they are reserved
 * addresses, as the operator has set it. */
static void add_proxy(const char *variable)
{
    const char *url = getenv(variable);
    if (!url || !*url)
        return;
    CURLU *parts = curl_url();
    char *host = NULL;
    struct addrinfo *found = NULL;
    if (parts && curl_url_set(parts, CURLUPART_URL, url, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK && getaddrinfo(host, NULL, NULL, &found) == 0) {
        size_t most = sizeof fetch_state.proxies / sizeof *fetch_state.proxies;
        for (struct addrinfo *a = found; a && fetch_state.proxy_count < most; a = a->ai_next) {
            struct proxy *proxy = &fetch_state.proxies[fetch_state.proxy_count];
            proxy->address.bits = 128;
            proxy->port = proxy_port(parts);
            fetch_state.proxy_count += network_sockaddr(a->ai_addr, proxy->address.bytes);
        }
        freeaddrinfo(found);
    } else {
        log_warn("fetch", "cannot resolve the proxy of this environment variable; downloads may fail",
                 LOG_STR("variable", variable));
    }
    curl_free(host);
    curl_url_cleanup(parts);
}

/* Uses the proxy of HTTP_PROXY, unless http_proxy is set. curl never reads it, as in a CGI program the header field `Proxy` of a request
 * sets it (CVE-2016-5385); so here it is ignored in CGI programs. */
static void take_http_proxy(void)
{
    const char *proxy = getenv("HTTP_PROXY");
    if (!proxy || !*proxy || getenv("http_proxy"))
        return;
    if (getenv("REQUEST_METHOD") || getenv("GATEWAY_INTERFACE")) {
        log_warn("fetch", "ignoring HTTP_PROXY (in CGI environments clients can set it); set http_proxy instead");
        return;
    }
    fetch_state.http_proxy = proxy;
    add_proxy("HTTP_PROXY");
}

/* Creates the connection pools and finds the proxies that environment variables name. Called once, at the start or by the first download;
 * ends the process when out of memory. */
static void driver_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (size_t i = 0; i < DRIVER_POOLS; i++) {
        struct fetch_connection_pool *pool = &pools[i];
        uv_timer_init(loop_get(), &pool->timer);
        pool->timer.data = pool;
        pool->multi = curl_multi_init();
        if (!pool->multi)
            abort();
        curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
        curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
        curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
        curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, 128L); /* idle connections that are kept */
    }
    /* curl reads these variables itself; here only the proxies' addresses are recorded */
    static const char *const variables[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        add_proxy(variables[i]);
    take_http_proxy();
}

/* Frees the connection pools, if there are any, and what curl_global_init has allocated. No transfer may be running. */
void driver_close(void)
{
    for (size_t i = 0; i < DRIVER_POOLS; i++) {
        if (!pools[i].multi)
            continue;
        curl_multi_cleanup(pools[i].multi);
        uv_close((uv_handle_t *)&pools[i].timer, NULL);
        pools[i].multi = NULL;
    }
    if (fetch_state.started)
        curl_global_cleanup();
}

enum sl_code fetch_start(struct sl_error *error)
{
    enum sl_code code = libcurl_load(error);
    if (code == SL_OK && !fetch_state.started)
        driver_init();
    fetch_state.started = code == SL_OK;
    return code;
}

void fetch_init(const struct fetch_options *options)
{
    const char *ca_file = getenv("SSL_CERT_FILE");
    fetch_state = (struct fetch_state){.ca_file = ca_file && *ca_file ? ca_file : NULL};
    fetch_configure(options);
}

void fetch_configure(const struct fetch_options *options)
{
    fetch_state.options = *options;
    fetch_state.tmp_dir = options->tmp_dir; /* these four have atomic copies, for pool threads */
    fetch_state.max_download_size = options->max_download_size;
    fetch_state.max_download_timeout_ns = options->max_download_timeout_ns;
    fetch_state.max_inflate_ratio = options->max_inflate_ratio;
    if (!fetch_state.options.split_size) /* 0: the default */
        fetch_state.options.split_size = 128u << 20;
}

void fetch_collect_metrics(void)
{
    metric_set(METRIC_BLOCKED_HOSTS, (double)deny_blocked(), NULL, NULL, NULL);
}

void fetch_close(void)
{
    driver_close();
    slots_close();
    deny_close();
}
