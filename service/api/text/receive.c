/* Receives POST /symbolicate-text: the body is a text with stacks, or a form with the text as one part. */
#include "api/text/work.h"

#include "api/impl.h"
#include "http/multipart.h"

enum { MAX_JSON_PART = 4 << 20 };

static const struct sl_str part_names[TEXT_PARTS] = {
    [TEXT_TEXT] = SL_STR("text"),       [TEXT_MODULES] = SL_STR("modules"),   [TEXT_SOURCES] = SL_STR("sources"),
    [TEXT_OPTIONS] = SL_STR("options"), [TEXT_SCRAPING] = SL_STR("scraping"), [TEXT_SOURCE] = SL_STR("source"),
    [TEXT_RELEASE] = SL_STR("release"), [TEXT_DIST] = SL_STR("dist"),
};

struct text_receiver {
    struct job *job;
    struct text_work *work;
    struct sl_bytes bytes;
    struct sl_str boundary; /* data NULL: the body is the text */
    struct json_failure failure;
    struct sl_error error;
    bool good;
};

/* Splits a form into its parts and files. False: `failure` says what is wrong with the form. Before the call the caller sets `failure` to
 * "out of memory", which stays for any other error. */
static bool split_form(struct text_receiver *r, struct sl_bytes form)
{
    struct form_part parts[TEXT_PARTS];
    for (int i = 0; i < TEXT_PARTS; i++)
        parts[i] = (struct form_part){.name = part_names[i],
                                      .max = i == TEXT_TEXT ? r->job->config->text_max_body : MAX_JSON_PART};
    r->work->files.sent = true; /* the request is a form */
    enum sl_code code = form_split(form, r->boundary, &r->job->arena, &r->work->files, parts, TEXT_PARTS, &r->error);
    for (int i = 0; i < TEXT_PARTS; i++)
        r->work->parts[i] = parts[i].text;
    if (code == SL_OK && !r->work->parts[TEXT_TEXT].data)
        r->failure = (struct json_failure){400, "missing part `text`"};
    else if (code == SL_UNSUPPORTED)
        r->failure = (struct json_failure){413, "a part of the form is too large"};
    else if (code == SL_MALFORMED)
        r->failure = (struct json_failure){400, "Error parsing `multipart/form-data` request"};
    return code == SL_OK && r->work->parts[TEXT_TEXT].data;
}

/* Pool work: copies the body to the job's arena, as the job outlives the request and has views of the text, and reads it. Sets `good`, or
 * `failure` if it is false. */
static void read_copy(void *arg)
{
    struct text_receiver *r = arg;
    const char *copy = sl_arena_strndup(&r->job->arena, (const char *)r->bytes.data, r->bytes.size);
    r->failure = json_no_memory;
    if (!copy)
        return;
    if (!r->boundary.data)
        r->work->parts[TEXT_TEXT] = (struct sl_str){copy, r->bytes.size};
    else if (!split_form(r, (struct sl_bytes){(const uint8_t *)copy, r->bytes.size}))
        return;
    r->good = text_fill(r->job, r->work, &r->failure);
}

/* Reads the query parameter `scope`, in which symbols are searched, and copies it to the job's arena. False: the answer is set. */
static bool read_scope(struct http_exchange *x, struct text_work *work)
{
    struct api_query query;
    if (!query_read(x, &query))
        return false;
    const char *copy = sl_arena_strndup(work->native.arena, query.scope.data, query.scope.size);
    if (!copy) {
        http_reply_no_memory(x);
        return false;
    }
    work->native.scope = (struct sl_str){copy, query.scope.size};
    return true;
}

/* Reads the query parameters `format` (the only format to look up) and `guess` (enum text_guess). False: the answer is set. */
static bool read_query(struct http_exchange *x, struct text_work *work)
{
    /* in the order of enum text_guess */
    static const struct sl_str guesses[] = {SL_STR("unique"), SL_STR("newest"), SL_STR("none")};
    struct sl_str format = http_query(x, "format"), guess = http_query(x, "guess");
    bool good = !guess.data;
    for (int i = 0; guess.data && i < 3; i++)
        if (sl_str_equal(guess, guesses[i])) {
            work->guess = (enum text_guess)i;
            good = true;
        }
    if (!good)
        reply_text(x, 400, "Failed to deserialize query string: guess: expected unique, newest or none");
    else if (format.data && !sl_str_equal(format, SL_STR("auto")) && !sl_text_format_parse(format, &work->only))
        return reply_text(x, 400, "Failed to deserialize query string: format: unknown format"), false;
    return good;
}

bool text_wants_json(const struct http_exchange *x)
{
    struct sl_str accept = http_header(x, "accept");
    const char *json = accept.size ? memmem(accept.data, accept.size, "application/json", 16) : NULL;
    const char *text = accept.size ? memmem(accept.data, accept.size, "text/plain", 10) : NULL;
    return json && (!text || json < text);
}

bool text_receive(struct http_exchange *x, struct job *job, void *arg)
{
    struct text_work *work = arg;
    struct text_receiver r = {.job = job, .work = work};
    struct sl_error error;
    work->wants_text = !text_wants_json(x);
    if (!multipart_boundary(http_header(x, "content-type"), &r.boundary))
        r.boundary = (struct sl_str){NULL, 0};
    if (!read_scope(x, work) || !read_query(x, work) || http_body(x, &r.bytes) != SL_OK)
        return false;
    if (http_pool_run(x, POOL_JSON, read_copy, &r, &error) != SL_OK) {
        http_reply_error(x, 503, error.message);
        return false;
    }
    memory_resize(&x->memory, r.bytes.size + job->arena.used); /* from the estimate (body_weight) to what is used */
    if (r.good)
        return true;
    if (r.failure.status == 503)
        http_reply_no_memory(x);
    else /* 422 is for requests whose whole body is JSON: parts of a form get 400 */
        http_reply_detail(x, r.failure.status == 422 ? 400 : r.failure.status, r.failure.problem,
                          r.error.code ? r.error.message : NULL);
    return false;
}
