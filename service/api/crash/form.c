/* The form in which crash files come. It is taken to disk as it is and its parts are views of it, so a large dump is in memory
 * once, as pages of its file. */
#include "api/crash/crash.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "api/sources.h"
#include "http/multipart.h"

enum { MAX_JSON_PART = 1 << 20 };

static const struct sl_str part_names[CRASH_PARTS] = {
    [PART_SOURCES] = SL_STR("sources"),
    [PART_SCRAPING] = SL_STR("scraping"),
    [PART_OPTIONS] = SL_STR("options"),
    [PART_PLATFORM] = SL_STR("platform"),
    [PART_REWRITE] = SL_STR("rewrite_first_module"),
};

struct form_reading {
    struct crash_work *work;
    struct crash_form *form; /* of the work */
    const struct config *config;
    const char *tmp_dir;
    int fd;
    struct sl_str boundary;
    struct multipart *multipart;
    struct own_file *artifact; /* that is read; NULL = it is none */
    int part;                  /* enum crash_part that is read; -1 = another one */
    int status;                /* 0: all went well */
    struct sl_buf problem;
    const char *cause; /* of broken framing */
    struct sl_error error;
};

uint64_t crash_body_limit(const struct http_exchange *x)
{
    const struct service *service = x->service;
    return service->config->crash_file_body_max_bytes;
}

void crash_check(struct http_exchange *x)
{
    struct api_query query;
    struct sl_str boundary;
    if (!query_read(x, &query))
        return;
    if (!multipart_boundary(http_header(x, "content-type"), &boundary)) {
        reply_text(x, 400, "Invalid `boundary` for `multipart/form-data` request");
        return;
    }
    bool too_large = x->content_length >= 0 && (uint64_t)x->content_length > crash_body_limit(x);
    if (!too_large) /* which the server refuses itself, before a missing slot would be told */
        job_slot_free(x);
}

/* ---- parts ---- */

static enum sl_code form_begin_artifact(struct form_reading *r, struct sl_error *error)
{
    struct sl_str called = multipart_file_name(r->multipart);
    const char *kept = sl_arena_strndup(r->work->request->arena, called.data ? called.data : "", called.size);
    if (r->form->artifact_count == OWN_FILES_MAX)
        return sl_fail(error, SL_MALFORMED, "more than %d files", OWN_FILES_MAX);
    if (!kept)
        return sl_fail(error, SL_BUSY, "out of memory");
    r->artifact = &r->form->artifacts[r->form->artifact_count++];
    *r->artifact = (struct own_file){.name = {kept, called.size}, .text = {"", 0}};
    return SL_OK;
}

static enum sl_code form_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    struct form_reading *r = arg;
    r->part = -1;
    r->artifact = NULL;
    if (sl_str_equal(name, SL_STR("artifact")))
        return form_begin_artifact(r, error);
    for (int i = 0; i < CRASH_PARTS; i++)
        if (sl_str_equal(name, i == PART_FILE ? sl_str(r->work->kind->part) : part_names[i]))
            r->part = i;
    if (r->part >= 0) /* the last of several counts */
        r->form->parts[r->part] = (struct sl_bytes){r->form->body.bytes.data, 0};
    return SL_OK;
}

/* The pieces of a part follow one another in the body. */
static enum sl_code form_data(void *arg, struct sl_bytes data, struct sl_error *error)
{
    struct form_reading *r = arg;
    if (r->artifact) {
        if (!r->artifact->text.size)
            r->artifact->text.data = (const char *)data.data;
        r->artifact->text.size += data.size;
    }
    if (r->part < 0)
        return SL_OK;
    struct sl_bytes *part = &r->form->parts[r->part];
    if (!part->size)
        part->data = data.data;
    part->size += data.size;
    if (r->part == PART_FILE || part->size <= MAX_JSON_PART)
        return SL_OK;
    r->status = 413;
    sl_buf_printf(&r->problem, "Field " SL_STR_FMT " larger than %d bytes", SL_STR_ARG(part_names[r->part]),
                  MAX_JSON_PART);
    return sl_fail(error, SL_MALFORMED, "a part is too large");
}

static bool form_split(struct form_reading *r)
{
    const struct multipart_callbacks callbacks = {.begin = form_begin, .data = form_data, .arg = r};
    struct multipart *m = r->multipart = multipart_new(r->work->request->arena, r->boundary, &callbacks);
    if (!m) {
        r->status = 503;
        return false;
    }
    enum sl_code code = multipart_feed(m, r->form->body.bytes, &r->error);
    code = code ? code : multipart_finish(m, &r->error);
    if (code != SL_OK && !r->status) {
        r->status = 400;
        r->cause = r->error.message;
        sl_buf_cstr(&r->problem, "Error parsing `multipart/form-data` request");
    }
    return code == SL_OK;
}

/* ---- JSON of parts ---- */

struct form_value { /* one value and what takes it */
    sl_field_read *read;
    void *out;
};

static bool form_read_value(struct sl_fields *s)
{
    const struct form_value *value = s->context;
    return value->read(s, NULL, value->out);
}

static bool form_read_platform(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    if (sl_json_peek(s->json) == SL_JSON_NULL) {
        sl_json_skip(s->json);
        return !s->json->failed;
    }
    return sl_fields_text(s, at, out);
}

static bool form_read_part(struct form_reading *r, enum crash_part part, sl_field_read *read, void *out)
{
    struct sl_str text = {(const char *)r->form->parts[part].data, r->form->parts[part].size};
    struct form_value value = {read, out};
    struct json_failure failure;
    if (!text.data || json_document(text, r->work->request->arena, form_read_value, &value, &failure))
        return true;
    r->status = failure.status == 503 ? 503 : 400;
    sl_buf_cstr(&r->problem, failure.problem);
    return false;
}

/* The order of frames and whether there is source context are not for clients to say. */
static bool form_read_json(struct form_reading *r)
{
    struct native_request *request = r->work->request;
    struct request_sources sources = {.config = r->config};
    native_configure(request, r->config);
    if (!form_read_part(r, PART_SOURCES, request_sources_read, &sources) ||
        !form_read_part(r, PART_SCRAPING, scraping_read, &request->scraping) ||
        !form_read_part(r, PART_OPTIONS, native_read_options, &request->options) ||
        !form_read_part(r, PART_PLATFORM, form_read_platform, &request->platform) ||
        (r->work->kind->rewrites && !form_read_part(r, PART_REWRITE, rewrite_read, &r->work->rules)))
        return false;
    if (r->form->parts[PART_SOURCES].data) {
        request->sources = sources.items;
        request->source_count = sources.count;
        request->sources_number = sources.number;
    }
    bool good = native_add_configured(request, r->config);
    for (size_t i = 0; i < r->form->artifact_count && good; i++) {
        const struct own_file *file = &r->form->artifacts[i];
        struct sl_bytes bytes = {(const uint8_t *)file->text.data, file->text.size};
        good = native_add_own(request, file->name, bytes);
    }
    if (!good) {
        r->status = 503;
        return false;
    }
    request->options.apply_source_context = SL_BOOL_TRUE;
    request->options.caller_first = false;
    return true;
}

/* ---- compressed crash files ---- */

static bool is_packed(struct sl_bytes file)
{
    return file.size > 4 && (memcmp(file.data, "\x1f\x8b", 2) == 0 || memcmp(file.data, "\x28\xb5\x2f\xfd", 4) == 0);
}

static void form_no_memory(struct form_reading *r, enum sl_code code)
{
    r->status = code == SL_BUSY ? 503 : 500;
}

/* What cannot be unpacked stays as it is, and is no crash file then. */
static void form_unpack(struct form_reading *r)
{
    struct sl_bytes *file = &r->form->parts[PART_FILE];
    int fd = sl_unlinked_file(r->tmp_dir);
    if (fd < 0 || !sl_write_all(fd, *file)) {
        form_no_memory(r, sl_fail_errno(&r->error, errno, "cannot write a crash file"));
    } else {
        enum sl_code code = fetch_unwrap(fd, r->config->crash_file_body_max_bytes, &r->error);
        if (code == SL_OK)
            code = sl_map_fd(fd, &r->form->unpacked, &r->error);
        if (code == SL_OK)
            *file = r->form->unpacked.bytes;
        else if (code == SL_BUSY || code == SL_INTERNAL)
            form_no_memory(r, code);
    }
    if (fd >= 0)
        close(fd);
}

static void form_read(void *arg)
{
    struct form_reading *r = arg;
    if (sl_map_fd(r->fd, &r->form->body, &r->error) != SL_OK) {
        form_no_memory(r, r->error.code);
        return;
    }
    if (form_split(r) && form_read_json(r) && is_packed(r->form->parts[PART_FILE]))
        form_unpack(r);
}

/* ---- answers ---- */

static void form_refuse(struct http_exchange *x, struct form_reading *r)
{
    sl_buf_u8(&r->problem, 0);
    const char *text = r->problem.failed || r->problem.size == 1 ? NULL : (const char *)r->problem.data;
    if (r->status == 503)
        http_reply_no_memory(x);
    else
        http_reply_detail(x, r->status, text ? text : "the request could not be read", r->cause);
}

/* What is wrong with the crash file; NULL = nothing that could be told now. */
static const char *form_problem(const struct form_reading *r)
{
    const struct crash_kind *kind = r->work->kind;
    struct sl_bytes file = r->form->parts[PART_FILE];
    if (!file.data)
        return kind->missing;
    return kind->refuse ? kind->refuse(file) : NULL;
}

static bool form_take(struct http_exchange *x, struct form_reading *r)
{
    struct sl_error error;
    if (http_body_take(x, &r->fd) != SL_OK)
        return false;
    enum sl_code code = http_pool_run(x, POOL_JSON, form_read, r, &error);
    close(r->fd);
    if (code != SL_OK) {
        http_reply_detail(x, 503, error.message, NULL);
        return false;
    }
    const char *problem = r->status ? NULL : form_problem(r);
    if (problem) {
        r->status = 400;
        sl_buf_cstr(&r->problem, problem);
    }
    if (r->status)
        form_refuse(x, r);
    return !r->status;
}

bool crash_form_read(struct http_exchange *x, const struct config *config, struct crash_work *work)
{
    struct form_reading r = {.work = work, .form = &work->form, .config = config, .tmp_dir = cache_tmp_dir()};
    multipart_boundary(http_header(x, "content-type"), &r.boundary); /* crash_check has seen it */
    bool good = form_take(x, &r);
    sl_buf_free(&r.problem);
    memory_set(&x->memory, work->request->arena->used);
    return good;
}

void crash_form_close(struct crash_form *form)
{
    if (form->body.bytes.data)
        sl_unmap(&form->body);
    if (form->unpacked.bytes.data)
        sl_unmap(&form->unpacked);
    *form = (struct crash_form){.parts = {{NULL, 0}}};
}
