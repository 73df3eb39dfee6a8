#include "api/impl.h"

#include <stdio.h>

enum { JSON_WEIGHT = 4 }; /* times its size is what a body and all that is read out of it may take */

/* Of routes with errors of the usual form; uploads of symbfiles check for themselves. */
#define ACCESS(group_, right_)                                                                                         \
    .group = (group_), .rights = (const char *const[])                                                                 \
    {                                                                                                                  \
        (right_), NULL                                                                                                 \
    }

/* Collectors send with either method. */
#define SYMBFILE_UPLOAD(method_, pattern_)                                                                             \
    {                                                                                                                  \
        .method = (method_), .pattern = (pattern_), .handler = symbfile_handle, .family = HTTP_SYMBFILE,               \
        .takes_work = true, .check = symbfile_check, .body_limit = symbfile_body_limit                                 \
    }

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/healthcheck", .handler = health_handle, .health = true, .immediate = true},
    {.method = "GET", .pattern = "/live", .handler = live_handle, .health = true, .immediate = true},
    {.method = "GET", .pattern = "/ready", .handler = ready_handle, .health = true, .immediate = true},
    {.method = "GET", .pattern = "/metrics", .handler = metrics_handle, .health = true, ACCESS("metrics", "metrics")},
    {.method = "POST",
     .pattern = "/symbolicate",
     .handler = native_handle,
     .takes_work = true,
     .check = check_json_job,
     .body_limit = json_body_limit,
     .body_weight = JSON_WEIGHT,
     ACCESS("symbolicate", "symbolicate")},
    {.method = "GET", .pattern = "/requests/{id}", .handler = job_poll, ACCESS("symbolicate", "symbolicate")},
    {.method = "GET",
     .pattern = "/proxy/{rest..}",
     .handler = proxy_handle,
     .takes_work = true,
     ACCESS("proxy", "proxy")},
    SYMBFILE_UPLOAD("POST", "/api/symbols-ranges"),
    SYMBFILE_UPLOAD("PUT", "/api/symbols-ranges"),
    SYMBFILE_UPLOAD("POST", "/api/symbols-returnpads"),
    SYMBFILE_UPLOAD("PUT", "/api/symbols-returnpads"),
    {.method = "GET", .pattern = "/api/symbols/{id}", .handler = symbfile_status_handle, .family = HTTP_SYMBFILE},
    {.method = "DELETE", .pattern = "/api/symbols/{id}", .handler = symbfile_delete_handle, .family = HTTP_SYMBFILE},
    {.method = "GET", .pattern = "/api/symbols/{rest..}", .handler = symbfile_unknown_handle, .family = HTTP_SYMBFILE},
    {.method = "POST", .pattern = "/admin/reload", .handler = admin_reload_handle, ACCESS("admin", "admin")},
    {.method = "DELETE", .pattern = "/admin/cache", .handler = admin_cache_handle, ACCESS("admin", "admin")},
    {.method = NULL},
};

const struct http_route *api_routes(struct config *config)
{
    const char *prefix = config->symbfile.path_prefix;
    enum { COUNT = sizeof routes / sizeof *routes };
    struct http_route *copy = *prefix ? SL_ARENA_ARRAY(&config->arena, struct http_route, COUNT) : NULL;
    if (!*prefix)
        return routes;
    for (size_t i = 0; copy && i < COUNT; i++) {
        copy[i] = routes[i];
        if (copy[i].family != HTTP_SYMBFILE)
            continue;
        size_t size = strlen(prefix) + strlen(routes[i].pattern) + 1;
        char *pattern = sl_arena_alloc(&config->arena, size, 1);
        if (!pattern)
            return NULL;
        snprintf(pattern, size, "%s%s", prefix, routes[i].pattern);
        copy[i].pattern = pattern;
    }
    return copy;
}
