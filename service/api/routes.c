#include "api/impl.h"

const struct http_route api_routes[] = {
    {.method = "GET", .pattern = "/healthcheck", .handler = health_handle, .health = true},
    {.method = "GET", .pattern = "/live", .handler = live_handle, .health = true},
    {.method = "GET", .pattern = "/ready", .handler = ready_handle, .health = true},
    {.method = "GET", .pattern = "/metrics", .handler = metrics_handle, .health = true},
    {.method = "POST",
     .pattern = "/symbolicate",
     .handler = native_handle,
     .takes_work = true,
     .check = check_json_job,
     .body_limit = json_body_limit},
    {.method = "GET", .pattern = "/requests/{id}", .handler = job_poll},
    {.method = "GET", .pattern = "/proxy/{rest..}", .handler = proxy_handle, .takes_work = true},
    {.method = NULL},
};
