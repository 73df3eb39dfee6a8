/* Checks the query of routes that start or poll jobs. */
#include <stdio.h>

#include "api/impl.h"

void reply_text(struct http_exchange *x, int status, const char *text)
{
    http_reply(x, status, "text/plain; charset=utf-8", sl_str(text));
}

/* Answers 400 with the sentence that Symbolicator uses, as its clients may know it. Returns false. */
static bool api_query_refuse(struct http_exchange *x, const char *key, const char *reason)
{
    char text[128];
    snprintf(text, sizeof text, "Failed to deserialize query string: %s: %s", key, reason);
    reply_text(x, 400, text);
    return false;
}

/* Reads the query's `timeout` and `scope`; other parameters are ignored. False: the answer is set. */
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

uint64_t json_job_limit(const struct http_exchange *x)
{
    const struct service *service = x->service;
    return service->config->symbolicate_body_max_bytes;
}
