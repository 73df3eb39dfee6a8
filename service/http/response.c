/* Reads headers and query of a request, and sets its response, for handlers and for the server's own checks. */
#include "core/status.h"
#include "http/impl.h"

/* ---- request ---- */
struct sl_str http_header(const struct http_exchange *x, const char *name)
{
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < x->header_count; i++)
        if (sl_str_equal_nocase(x->headers[i].name, wanted))
            return x->headers[i].value;
    return (struct sl_str){NULL, 0};
}

/* Returns how often the key is in the query. */
size_t http_query_count(const struct http_exchange *x, const char *key)
{
    size_t count = 0;
    struct sl_str wanted = sl_str(key);
    for (size_t i = 0; i < x->query_count; i++)
        count += sl_str_equal(x->query[i].key, wanted);
    return count;
}

/* Returns the value of the first such key in the query; data NULL: absent. */
struct sl_str http_query(const struct http_exchange *x, const char *key)
{
    struct sl_str wanted = sl_str(key);
    for (size_t i = 0; i < x->query_count; i++)
        if (sl_str_equal(x->query[i].key, wanted))
            return x->query[i].value;
    return (struct sl_str){NULL, 0};
}

void http_put_base_url(const struct http_exchange *x, struct sl_buf *out)
{
    const struct request *r = (const struct request *)x; /* *x is the first member of a request */
    bool is_secure = r->connection->tls || sl_str_equal(http_header(x, "x-forwarded-proto"), SL_STR("https"));
    sl_buf_printf(out, "%s://" SL_STR_FMT "/", is_secure ? "https" : "http", SL_STR_ARG(http_header(x, "host")));
}

bool http_client_gone(const struct http_exchange *x)
{
    const struct request *r = (const struct request *)x; /* *x is the first member of a request */
    return r->connection->dead;
}

enum sl_code http_pool_run(struct http_exchange *x, enum pool_job kind, void (*fn)(void *arg), void *arg,
                           struct sl_error *error)
{
    fiber_set_cancel(&x->group.cancelled); /* raised when the client is gone: ends the job early */
    enum sl_code code = pool_run(kind, fn, arg, error);
    fiber_set_cancel(NULL);
    return code;
}

/* ---- headers of the response ---- */
enum { HEADER_STEP = 8 };

/* Finds a header of the response. False, with `*value` unchanged, if it is not set. */
bool header_is_set(const struct http_exchange *x, const char *name, struct sl_str *value)
{
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < x->response_header_count; i++) {
        if (sl_str_equal_nocase(x->response_headers[i].name, wanted)) {
            *value = x->response_headers[i].value;
            return true;
        }
    }
    return false;
}

/* True if a header's value has no control characters other than tabs. */
static bool is_clean(struct sl_str value)
{
    for (size_t i = 0; i < value.size; i++)
        if ((uint8_t)value.data[i] < 0x20 && value.data[i] != '\t')
            return false;
    return true;
}

void http_set_header(struct http_exchange *x, const char *name, struct sl_str value)
{
    struct sl_str wanted = sl_str(name);
    if (!is_clean(value)) /* a line end in a value would forge headers */
        return;
    for (size_t i = 0; i < x->response_header_count; i++) {
        if (sl_str_equal_nocase(x->response_headers[i].name, wanted)) {
            x->response_headers[i].value = value;
            return;
        }
    }
    if (x->response_header_count % HEADER_STEP == 0) { /* the array is full */
        struct http_header *grown =
            SL_ARENA_ARRAY(&x->arena, struct http_header, x->response_header_count + HEADER_STEP);
        if (!grown) {
            x->header_lost = true;
            return;
        }
        if (x->response_header_count)
            memcpy(grown, x->response_headers, x->response_header_count * sizeof *grown);
        x->response_headers = grown;
    }
    x->response_headers[x->response_header_count++] = (struct http_header){wanted, value};
}

/* Appends the name to the header Vary, or sets it. */
void http_add_vary(struct http_exchange *x, struct sl_str name)
{
    struct sl_str set;
    struct sl_buf text = {0};
    if (header_is_set(x, "Vary", &set)) {
        sl_buf_str(&text, set);
        sl_buf_cstr(&text, ", ");
    }
    sl_buf_str(&text, name);
    struct sl_str value = sl_buf_move_to_arena(&text, &x->arena);
    x->header_lost |= !value.data; /* out of memory: the response is not sent */
    http_set_header(x, "Vary", value);
}

/* ---- bodies ---- */
void http_reply_empty(struct http_exchange *x, int status)
{
    x->status = status;
    shared_blob_release(x->content);
    x->content = NULL;
    sl_buf_clear(&x->body);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct sl_str body)
{
    http_reply_empty(x, status);
    if (content_type)
        http_set_header(x, "Content-Type", sl_str(content_type));
    sl_buf_str(&x->body, body);
}

void http_reply_json(struct http_exchange *x, int status, struct sl_buf *json)
{
    if (json->failed) {
        sl_buf_free(json);
        http_reply_no_memory(x);
        return;
    }
    x->status = status;
    http_set_header(x, "Content-Type", SL_STR("application/json"));
    sl_buf_free(&x->body);
    x->body = *json;
    *json = (struct sl_buf){0};
}

void http_reply_content(struct http_exchange *x, int status, const char *content_type, struct shared_blob *content)
{
    http_reply_empty(x, status);
    http_set_header(x, "Content-Type", sl_str(content_type));
    x->content = content;
}

void http_reply_no_memory(struct http_exchange *x)
{
    http_reply_error(x, 503, "not enough memory for this request");
}

void http_reply_detail(struct http_exchange *x, int status, const char *detail, const char *cause)
{
    http_reply_empty(x, status);
    http_set_header(x, "Content-Type", SL_STR("application/json"));
    struct sl_json_writer w = sl_json_writer(&x->body);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "detail", sl_str(detail));
    if (cause) {
        sl_json_member_array(&w, "causes");
        sl_json_put_str(&w, sl_str(cause));
        sl_json_end_array(&w);
    }
    sl_json_end_object(&w);
}

/* Returns the Cache-Control of a file: if the handler has set only "public" or "private", the max-age of the options is
 * added. Data NULL when out of memory. */
static struct sl_str cache_control(struct http_exchange *x)
{
    const struct request *r = (const struct request *)x; /* *x is the first member of a request */
    struct sl_str set, value = header_is_set(x, "Cache-Control", &set) ? set : SL_STR("private");
    struct sl_buf text = {0};
    sl_buf_str(&text, value);
    if (!memchr(value.data, '=', value.size)) /* it has no max-age */
        sl_buf_printf(&text, ", max-age=%llu", (unsigned long long)r->server->options.file_max_age_s);
    return sl_buf_move_to_arena(&text, &x->arena);
}

void http_reply_file(struct http_exchange *x, const char *content_type, struct sl_mapping *file, const char *etag,
                     int64_t modified_s, void (*release)(void *arg), void *arg)
{
    http_reply_empty(x, 200);
    x->file = file;
    x->file_release = release;
    x->file_arg = arg;
    x->file_modified_s = modified_s;
    http_set_header(x, "Content-Type", sl_str(content_type));
    http_set_header(x, "Accept-Ranges", SL_STR("bytes"));
    if (etag) {
        char *copy = sl_arena_strndup(&x->arena, etag, strlen(etag));
        x->header_lost |= !copy; /* out of memory: the response is not sent */
        http_set_header(x, "ETag", sl_str(copy ? copy : ""));
    }
    struct sl_str cache = cache_control(x);
    x->header_lost |= !cache.data;
    http_set_header(x, "Cache-Control", cache);
}

/* ---- the server's own errors ---- */
/* Responds with the error in the server's own format, for routes whose API has none of its own (http_family.error). */
static void reply_in_own_form(struct http_exchange *x, int status, const char *detail)
{
    if (status == 404 || status == 405)
        return; /* an unknown path or method has an empty body */
    if (status == 413)
        http_reply(x, status, "text/plain; charset=utf-8",
                   SL_STR("Failed to buffer the request body: length limit exceeded"));
    else
        http_reply_detail(x, status, detail ? detail : status_reason(status), NULL);
}

void http_reply_error(struct http_exchange *x, int status, const char *detail)
{
    http_reply_empty(x, status);
    if (x->route && x->route->family->error)
        x->route->family->error(x, status, detail);
    else
        reply_in_own_form(x, status, detail);
}
