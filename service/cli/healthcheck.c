/* `symloom healthcheck`: checks a running service, for use in containers. */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/server.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fetch/libcurl.h"

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"addr", 0, OPTION_VALUE, false, "IP:PORT|unix:/path", "Connect to this address (default: from the configuration)"},
    {"timeout", 0, OPTION_VALUE, false, "SECONDS", "Give up after this time (default: 30)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Discards the body: only the response status matters. */
static size_t discard(char *data, size_t size, size_t count, void *arg)
{
    (void)data, (void)arg;
    return size * count;
}

/* Prints "ERROR", which scripts look for, on stdout, and the cause on stderr. Returns the exit status. */
static int unhealthy(const char *text)
{
    puts("ERROR");
    return server_failed("healthcheck failed", text);
}

/* Copies the address, with a wildcard (0.0.0.0, [::]) replaced by loopback: a service may listen on a wildcard, but it is no address to
 * connect to. */
static void reachable(const char *address, char *out, size_t size)
{
    const char *any = "0.0.0.0:", *any6 = "[::]:";
    if (strncmp(address, any, strlen(any)) == 0)
        snprintf(out, size, "127.0.0.1:%s", address + strlen(any));
    else if (strncmp(address, any6, strlen(any6)) == 0)
        snprintf(out, size, "[::1]:%s", address + strlen(any6));
    else
        snprintf(out, size, "%s", address);
}

/* Requests /healthcheck from the service at `address` (IP:PORT or unix:/path) and prints the result. `name` is sent as the Host header,
 * because a service with `allowed_hosts` refuses all others; NULL: curl's default. Returns the exit status. */
static int healthcheck_request(const char *address, const char *name, long seconds)
{
    char url[512], text[768], where[400];
    bool local = strncmp(address, "unix:", 5) == 0;
    struct sl_error error;
    if (libcurl_load(&error) != SL_OK)
        return unhealthy(error.message);
    reachable(address, where, sizeof where);
    snprintf(url, sizeof url, "http://%s/healthcheck", local ? "localhost" : where);
    CURL *curl = curl_easy_init();
    if (!curl)
        return server_failed("out of memory", NULL);
    long status = 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    /* no proxy, even if the environment names one */
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, seconds);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    if (local)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, address + 5);
    struct curl_slist *headers = NULL;
    if (name) {
        if (!libcurl_add_header(&headers, SL_STR("Host"), sl_str(name))) {
            curl_easy_cleanup(curl);
            return server_failed("out of memory", NULL);
        }
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        snprintf(text, sizeof text, "cannot check the health of symloom (%s): %s", where, curl_easy_strerror(code));
        return unhealthy(text);
    }
    if (status < 200 || status > 299) {
        snprintf(text, sizeof text, "symloom (%s) is unhealthy. Status: %ld", where, status);
        return unhealthy(text);
    }
    puts("OK");
    return 0;
}

/* The command: asks the service whether it is healthy, at the address --addr or the first of `bind` in the configuration. Returns the exit
 * status. */
static int healthcheck_check(const struct options *o)
{
    char *end;
    const char *text = option_value(o, "timeout", "30"), *address = option_value(o, "addr", NULL);
    long seconds = strtol(text, &end, 10);
    if (!options_arguments(o, 0) || !server_may_connect(o))
        return 2;
    if (*end || seconds <= 0 || seconds > 86400)
        return options_wrong(o, "--timeout: '%s' is not a number of seconds", text);
    struct config *config = NULL;
    struct progress progress;
    int status = address ? 0 : server_load(o, &config);
    if (status)
        return status;
    progress_begin(&progress, o, "asking");
    progress_set_item(&progress, address ? address : config->bind[0], 0);
    const char *name = config && config->http.allowed_host_count > 0 ? config->http.allowed_hosts[0] : NULL;
    status = healthcheck_request(address ? address : config->bind[0], name, seconds);
    progress_end(&progress);
    config_release(config);
    return status;
}

const struct command command_healthcheck = {
    .name = "healthcheck",
    .summary = "check whether a running service is healthy",
    .usage = "healthcheck [OPTION...]",
    .about = "Asks a running service whether it is healthy. Prints OK, or ERROR with exit status 1.",
    .examples = "symloom healthcheck --addr 127.0.0.1:3021",
    .options = specs,
    .run = healthcheck_check,
};
