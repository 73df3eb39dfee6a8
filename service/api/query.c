/* What every route that starts or polls a job checks first. */
#include <stdio.h>

#include "api/impl.h"

void reply_text(struct http_exchange *x, int status, const char *text)
{
    http_reply(x, status, "text/plain; charset=utf-8", sl_str(text));
}

static bool api_query_refuse(struct http_exchange *x, const char *key, const char *reason)
{
    char text[128];
    snprintf(text, sizeof text, "Failed to deserialize query string: %s: %s", key, reason);
    reply_text(x, 400, text);
    return false;
}

bool query_read(struct http_exchange *x, struct api_query *query)
{
    *query = (struct api_query){.scope = SL_STR("global")};
    for (size_t i = 0; i < x->query_count; i++) {
        bool timeout = sl_str_equal(x->query[i].key, SL_STR("timeout"));
        bool scope = sl_str_equal(x->query[i].key, SL_STR("scope"));
        const char *key = timeout ? "timeout" : "scope";
        if (!timeout && !scope)
            continue;
        if (http_query_count(x, key) > 1)
            return api_query_refuse(x, key, "duplicate field");
        if (scope)
            query->scope = x->query[i].value;
        else if (!sl_parse_u64(x->query[i].value, &query->timeout_s))
            return api_query_refuse(x, key, "expected a number of seconds");
        query->has_timeout = query->has_timeout || timeout;
    }
    return true;
}

/* application/json or application/<anything>+json; parameters are allowed (RFC 9110, 8.3; RFC 6839, 3.1). */
static bool is_json(struct sl_str type)
{
    const char *end = type.size ? memchr(type.data, ';', type.size) : NULL;
    if (end)
        type.size = (size_t)(end - type.data);
    while (type.size && (type.data[type.size - 1] == ' ' || type.data[type.size - 1] == '\t'))
        type.size--;
    struct sl_str prefix = SL_STR("application/"), suffix = SL_STR("+json");
    if (sl_str_equal_nocase(type, SL_STR("application/json")))
        return true;
    return type.size > prefix.size + suffix.size &&
           sl_str_equal_nocase((struct sl_str){type.data, prefix.size}, prefix) &&
           sl_str_equal_nocase((struct sl_str){type.data + type.size - suffix.size, suffix.size}, suffix);
}

uint64_t json_job_limit(const struct http_exchange *x)
{
    const struct service *service = x->service;
    return service->config->symbolicate_body_max_bytes;
}

void check_json_job(struct http_exchange *x)
{
    struct api_query query;
    if (!query_read(x, &query))
        return;
    if (!is_json(http_header(x, "content-type"))) {
        reply_text(x, 415, "Expected request with `Content-Type: application/json`");
        return;
    }
    bool too_large = x->content_length >= 0 && (uint64_t)x->content_length > json_job_limit(x);
    if (!too_large) /* which the server refuses itself, before a missing slot would be told */
        job_slot_free(x);
}
