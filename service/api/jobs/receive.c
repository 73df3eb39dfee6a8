/* Handles requests that start jobs, up to the start. A body is JSON, or a multipart form with JSON and files. */
#include "api/impl.h"
#include "api/form_files.h"
#include "http/multipart.h"

/* Largest JSON body that is parsed on the loop, in bytes: takes about 0.1 ms. */
enum { SMALL_BODY = 16 * 1024 };

/* ---- the head ---- */

/* Returns a media type without its parameters. */
static struct sl_str without_parameters(struct sl_str type)
{
    const char *end = type.size ? memchr(type.data, ';', type.size) : NULL;
    if (end)
        type.size = (size_t)(end - type.data);
    while (type.size && (type.data[type.size - 1] == ' ' || type.data[type.size - 1] == '\t'))
        type.size--;
    return type;
}

/* True for application/json and application/<anything>+json; parameters after `;` are ignored (RFC 9110, section 8.3; RFC 6839,
 * section 3.1). */
static bool is_json(struct sl_str type)
{
    type = without_parameters(type);
    struct sl_str prefix = SL_STR("application/"), suffix = SL_STR("+json");
    if (sl_str_equal_nocase(type, SL_STR("application/json")))
        return true;
    return type.size > prefix.size + suffix.size &&
           sl_str_equal_nocase((struct sl_str){type.data, prefix.size}, prefix) &&
           sl_str_equal_nocase((struct sl_str){type.data + type.size - suffix.size, suffix.size}, suffix);
}

/* True for application/octet-stream; parameters after `;` are ignored. */
static bool is_octets(struct sl_str type)
{
    return sl_str_equal_nocase(without_parameters(type), SL_STR("application/octet-stream"));
}

/* Checks query, Content-Type and length of a request before its body is received; sets the answer if it is refused. For kinds that
 * answer by themselves only a free slot is checked here: they check the rest in functions of their own. */
void job_check(struct http_exchange *x)
{
    const struct job_kind *kind = x->route->job;
    struct sl_str type = http_header(x, "content-type"), boundary;
    struct api_query query;
    if (kind->answer) {
        job_slot_free(x);
        return;
    }
    if (!query_read(x, &query))
        return;
    bool is_form = (kind->receive || kind->files) && multipart_boundary(type, &boundary);
    bool is_file = kind->takes_file && is_octets(type);
    /* kinds with `receive` take no JSON: only forms and, with takes_file, files */
    if (kind->receive && !is_form && !is_file)
        reply_text(x, 400, "Invalid `boundary` for `multipart/form-data` request");
    else if (!is_form && !is_file && !is_json(type))
        reply_text(x, 415, "Expected request with `Content-Type: application/json`");
    else if (x->content_length < 0 /* unknown */ || (uint64_t)x->content_length <= x->route->body_limit(x))
        /* sets 503 if no slot is free; not for a larger body, which the server answers with 413 later */
        job_slot_free(x);
}

/* ---- the body ---- */

struct body_receiver { /* state while the body of a request is received and parsed */
    struct job *job;
    struct request_files *files; /* NULL: a JSON body, not a form */
    struct sl_str boundary;
    struct sl_bytes bytes;
    struct json_failure failure; /* set unless `good` */
    struct sl_error error;       /* why the form is malformed */
    bool good;                   /* the body was read into job->request */
};

/* Splits a form into r->files and `*request`, which is its part "request"; a form without this part is refused. False: r->failure says
 * why; for SL_BUSY (out of memory) the caller has set it before. */
static bool read_form(struct body_receiver *r, struct sl_bytes form, struct sl_str *request)
{
    struct form_part part = {.name = SL_STR("request")};
    enum sl_code code = form_split(form, r->boundary, &r->job->arena, r->files, &part, 1, &r->error);
    *request = part.text;
    if (code != SL_OK && code != SL_BUSY)
        r->failure = (struct json_failure){400, "Error parsing `multipart/form-data` request"};
    else if (code == SL_OK && !request->data)
        r->failure = (struct json_failure){400, "missing request"};
    return code == SL_OK && request->data;
}

/* Parses the body into job->request. Copies it to the job's arena first, as the request keeps views of it. Parsers set `failure` for
 * wrong input only, so it says "out of memory" first. */
static void read_copy(void *arg)
{
    struct body_receiver *r = arg;
    struct job *job = r->job;
    const char *copy = sl_arena_strndup(&job->arena, (const char *)r->bytes.data, r->bytes.size);
    struct sl_str text = {copy, r->bytes.size};
    r->failure = json_no_memory;
    r->good = copy && (!r->files || read_form(r, (struct sl_bytes){(const uint8_t *)copy, text.size}, &text)) &&
              job->kind->read(job, job->request, text, &r->failure);
}

/* Answers a form that cannot be read. Failures that are 422 for a JSON body are 400 for a form, as in Symbolicator. */
static void refuse_form(struct http_exchange *x, const struct body_receiver *r)
{
    int status = r->failure.status;
    if (status == 503)
        http_reply_no_memory(x);
    else
        http_reply_detail(x, status == 422 ? 400 : status, r->failure.problem, r->error.code ? r->error.message : NULL);
}

/* Answers a body that is no valid request: 400 if it is not JSON, 422 if it is JSON with wrong members, both as text with the
 * sentences that Symbolicator uses. Other failures are answered as {"detail":...}. */
static void refuse_json(struct http_exchange *x, const struct json_failure *failure)
{
    struct sl_buf text = {0};
    if (failure->status != 400 && failure->status != 422) {
        http_reply_detail(x, failure->status, failure->problem, NULL);
        return;
    }
    sl_buf_cstr(&text, failure->status == 400 ? "Failed to parse the request body as JSON: "
                                              : "Failed to deserialize the JSON body into the target type: ");
    sl_buf_cstr(&text, failure->problem);
    http_reply(x, failure->status, "text/plain; charset=utf-8", sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Receives the body of a job and parses it: forms and large JSON on the pool. False if the answer is set, or if the client is gone. */
static bool read_body(struct http_exchange *x, struct job *job)
{
    const struct job_kind *kind = job->kind;
    struct body_receiver r = {.job = job};
    struct sl_error error;
    if (kind->files && multipart_boundary(http_header(x, "content-type"), &r.boundary))
        r.files = (struct request_files *)((char *)job->request + kind->files); /* an offset in the request */
    if (http_body(x, &r.bytes) != SL_OK)
        return false;
    if (r.files) /* a form, even without files */
        r.files->sent = true;
    if (!r.files && r.bytes.size <= SMALL_BODY) {
        read_copy(&r);
    } else if (http_pool_run(x, POOL_JSON, read_copy, &r, &error) != SL_OK) {
        http_reply_error(x, 503, error.message);
        return false;
    }
    if (!r.good && r.files)
        refuse_form(x, &r);
    else if (!r.good)
        (kind->refuse ? kind->refuse : refuse_json)(x, &r.failure);
    memory_resize(&x->memory, r.bytes.size + job->arena.used); /* replaces the estimate by the true need */
    return r.good;
}

/* ---- the job ---- */

/* Receives and parses the request, and checks if the client may send it. False: the answer is set, or the client is gone. */
static bool receive(struct http_exchange *x, struct job *job)
{
    const struct job_kind *kind = job->kind;
    if (kind->head) /* stores query and headers in the request */
        kind->head(x, job->request);
    if (kind->receive ? !kind->receive(x, job, job->request) : !read_body(x, job))
        return false;
    /* job->kind, not `kind`: reading the body may have replaced the job's kind */
    return !job->kind->is_allowed || job->kind->is_allowed(x, job->request);
}

/* Handles a request that starts a job: receives it, runs it, and answers, or replies with its id. */
void job_handle(struct http_exchange *x)
{
    const struct job_kind *kind = x->route->job;
    struct api_query query = {.scope = SL_STR("global")};
    if (!kind->answer && !query_read(x, &query))
        return;
    struct job *job = job_new(x, kind, query.scope);
    if (!job)
        return;
    if (!receive(x, job) || !job_begin(x, job))
        job_discard(job);
    else if (kind->answer)
        kind->answer(x, job);
    else
        job_answer(x, job, &query);
}
