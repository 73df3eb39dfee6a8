/* Requests of operators to a running service: reload the configuration, invalidate cached files, unblock hosts. */
#include "api/impl.h"
#include "core/log.h"
#include "cache_kinds/invalidate.h"

/* Reads the query parameters of DELETE /admin/cache; those that are not sent become empty. False if one occurs twice, or if their
 * combination does not name files (invalidation_is_valid). */
static bool read_query(struct http_exchange *x, struct invalidation *what)
{
    const struct {
        const char *key;
        struct sl_str *value;
    } fields[] = {{"source", &what->source},
                  {"location", &what->location},
                  {"debug_file", &what->debug_file},
                  {"debug_id", &what->debug_id}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i].value = SL_STR("");
        if (http_query_count(x, fields[i].key) > 1)
            return false;
        for (size_t q = 0; q < x->query_count; q++)
            if (sl_str_equal(x->query[q].key, sl_str(fields[i].key)))
                *fields[i].value = x->query[q].value;
    }
    return invalidation_is_valid(what);
}

/* DELETE /admin/cache: invalidates the cached files that the query names. */
static void forget_files(struct http_exchange *x)
{
    struct invalidation what;
    struct sl_error error = {0};
    if (!read_query(x, &what)) {
        http_reply_detail(
            x, 400,
            "'source' is required; add either 'location', or 'debug_file' and 'debug_id', to invalidate one "
            "file",
            NULL);
        return;
    }
    switch (invalidate_entries(&what, &error)) {
    case SL_OK:
        log_info("cache", "invalidated cached files of a symbol source", LOG_SLSTR("source", what.source),
                 LOG_SLSTR("location", what.location), LOG_SLSTR("debug_file", what.debug_file),
                 LOG_SLSTR("debug_id", what.debug_id));
        http_reply_empty(x, 204);
        break;
    case SL_NOT_FOUND: /* the source is not configured, or the debug id is malformed: error.message says which */
    case SL_MALFORMED: http_reply_detail(x, 400, error.message, NULL); break;
    default:
        log_error("cache", "cannot invalidate the cached files of a symbol source", LOG_SLSTR("source", what.source),
                  LOG_ERR(&error));
        http_reply_detail(x, 500, "internal error", NULL);
    }
}

/* DELETE /admin/blocked-hosts: lets all processes of the service send requests again to hosts that were blocked after failures. */
static void release_hosts(struct http_exchange *x)
{
    struct sl_error error = {0};
    if (release_blocked_hosts(&error) == SL_OK) {
        log_info("fetch", "blocked hosts may be asked again");
        http_reply_empty(x, 204);
    } else {
        log_error("fetch",
                  "blocked hosts were released in this process only, as the other processes could not be notified; "
                  "repeat the request",
                  LOG_ERR(&error));
        http_reply_detail(x, 500, "internal error", NULL);
    }
}

/* Answers 400 with the reasons why a configuration was rejected; `problems` has one reason per line. */
static void write_problems(struct http_exchange *x, struct sl_str problems)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    struct sl_str problem;
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "detail", SL_STR("the configuration was rejected; the old one stays in use"));
    sl_json_member_array(&w, "errors");
    while (sl_str_next_line(&problems, &problem))
        sl_json_put_str(&w, problem);
    sl_json_end_array(&w);
    sl_json_end_object(&w);
    http_reply_json(x, 400, &json);
}

/* POST /admin/reload: loads the configuration again; 400 with the problems if it was rejected. Also 400 if the program has set no reload
 * function (service_on_reload). */
static void reload(struct http_exchange *x)
{
    const struct service *service = x->service;
    struct sl_buf problems = {0};
    if (service->reload && service->reload(service->reload_arg, &problems))
        http_reply_empty(x, 200);
    else
        write_problems(x, sl_buf_view(&problems));
    sl_buf_free(&problems);
}

static const struct http_route routes[] = {
    {.method = "POST", .pattern = "/admin/reload", .handler = reload, .operators = true, .rights = API_RIGHT("admin")},
    {.method = "DELETE",
     .pattern = "/admin/cache",
     .handler = forget_files,
     .operators = true,
     .rights = API_RIGHT("admin")},
    {.method = "DELETE",
     .pattern = "/admin/blocked-hosts",
     .handler = release_hosts,
     .operators = true,
     .rights = API_RIGHT("admin")},
    {.method = NULL},
};

const struct http_family family_admin = {.routes = routes, .group = "admin", .always_requires_key = true};
