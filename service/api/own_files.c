#include "api/own_files.h"

#include "core/pool.h"
#include "http/multipart.h"

static struct sl_str form_boundary(const struct http_exchange *x)
{
    struct sl_str boundary;
    return multipart_boundary(http_header(x, "content-type"), &boundary) ? boundary : (struct sl_str){NULL, 0};
}

void check_json_or_form(struct http_exchange *x)
{
    struct api_query query;
    if (!form_boundary(x).data)
        check_json_job(x);
    else if (query_read(x, &query) && (x->content_length < 0 || (uint64_t)x->content_length <= json_job_limit(x)))
        job_slot_free(x);
}

/* ---- the form ---- */

struct own_reading {
    const struct json_body *body;
    struct own_files *files;
    struct sl_str boundary;
    struct sl_bytes bytes;
    struct multipart *multipart;
    struct sl_str request; /* data NULL: none yet */
    struct sl_str *part;   /* NULL: one that does not matter */
    int status;            /* 0: all went well */
    const char *problem, *cause;
    struct json_failure failure;
    struct sl_error error;
};

static struct sl_str last_part(struct sl_str path)
{
    for (size_t i = path.size; i > 0; i--)
        if (path.data[i - 1] == '/' || path.data[i - 1] == '\\')
            return (struct sl_str){path.data + i, path.size - i};
    return path;
}

static enum sl_code own_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    struct own_reading *r = arg;
    r->part = NULL;
    if (sl_str_equal(name, SL_STR("request"))) {
        r->part = &r->request;
    } else if (sl_str_equal(name, SL_STR("artifact"))) {
        if (r->files->count == OWN_FILES_MAX)
            return sl_fail(error, SL_MALFORMED, "more than %d files", OWN_FILES_MAX);
        struct own_file *file = &r->files->items[r->files->count++];
        struct sl_str called = multipart_file_name(r->multipart);
        const char *kept = sl_arena_strndup(r->body->arena, called.data ? called.data : "", called.size);
        if (!kept)
            return sl_fail(error, SL_BUSY, "out of memory");
        file->name = last_part((struct sl_str){kept, called.size});
        r->part = &file->text;
    }
    if (r->part)
        *r->part = (struct sl_str){"", 0};
    return SL_OK;
}

/* The pieces of a part follow one another in the body. */
static enum sl_code own_data(void *arg, struct sl_bytes data, struct sl_error *error)
{
    struct own_reading *r = arg;
    (void)error;
    if (!r->part)
        return SL_OK;
    if (!r->part->size)
        r->part->data = (const char *)data.data;
    r->part->size += data.size;
    return SL_OK;
}

static void own_refuse(struct own_reading *r, int status, const char *problem, const char *cause)
{
    r->status = status;
    r->problem = problem;
    r->cause = cause;
}

static void own_read(void *arg)
{
    struct own_reading *r = arg;
    const struct multipart_callbacks callbacks = {.begin = own_begin, .data = own_data, .arg = r};
    const char *copy = sl_arena_strndup(r->body->arena, (const char *)r->bytes.data, r->bytes.size);
    r->multipart = copy ? multipart_new(r->body->arena, r->boundary, &callbacks) : NULL;
    enum sl_code code = SL_BUSY;
    if (r->multipart)
        code = multipart_feed(r->multipart, (struct sl_bytes){(const uint8_t *)copy, r->bytes.size}, &r->error);
    if (code == SL_OK)
        code = multipart_finish(r->multipart, &r->error);
    if (code == SL_BUSY)
        own_refuse(r, 503, NULL, NULL);
    else if (code != SL_OK)
        own_refuse(r, 400, "Error parsing `multipart/form-data` request", r->error.message);
    else if (!r->request.data)
        own_refuse(r, 400, "missing request", NULL);
    else if (!r->body->read(r->body->arg, r->request, &r->failure))
        own_refuse(r, r->failure.status == 422 ? 400 : r->failure.status, r->failure.problem, NULL);
}

static bool own_form_read(struct http_exchange *x, struct own_reading *r)
{
    struct sl_error error;
    r->failure = json_no_memory;
    if (http_body(x, &r->bytes) != SL_OK)
        return false;
    if (http_pool_run(x, POOL_JSON, own_read, r, &error) != SL_OK) {
        http_reply_error(x, 503, error.message);
        return false;
    }
    if (r->status == 503)
        http_reply_no_memory(x);
    else if (r->status)
        http_reply_detail(x, r->status, r->problem, r->cause);
    memory_set(&x->memory, r->bytes.size + r->body->arena->used); /* instead of what it might have been */
    return !r->status;
}

bool own_files_read(struct http_exchange *x, const struct json_body *body, struct own_files *files)
{
    struct own_reading r = {.body = body, .files = files, .boundary = form_boundary(x)};
    files->sent = r.boundary.data != NULL;
    return files->sent ? own_form_read(x, &r) : json_body_read(x, body);
}

/* ---- finding ---- */

const struct own_file *own_files_named(const struct own_files *files, struct sl_str path, const char *suffix)
{
    size_t end = 0;
    while (end < path.size && path.data[end] != '?' && path.data[end] != '#')
        end++;
    struct sl_str name = last_part((struct sl_str){path.data, end}), more = sl_str(suffix);
    for (size_t i = 0; name.size && i < files->count; i++) {
        struct sl_str called = files->items[i].name;
        if (called.size == name.size + more.size && sl_str_starts(called, name) && sl_str_ends(called, more))
            return &files->items[i];
    }
    return NULL;
}
