/* Receives forms with crash files; the body may also be a core file itself. The body goes to a temporary file, and its parts are views of
 * the mapped file, so a large dump is in memory only once. A crash file that was sent compressed is copied to a second temporary file and
 * unpacked there:
 *
 *     body of the request ──▶ file, mapped ──▶ parts: JSON, debug files, the crash file
 *                                                     compressed: ──▶ second file ──▶ unpacked by a worker, mapped */
#include "api/crash/crash.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "api/sources.h"
#include "core/pool.h"
#include "http/multipart.h"

enum { MAX_JSON_PART = 1 << 20 };

static const struct sl_str part_names[CRASH_PARTS] = {
    [PART_SOURCES] = SL_STR("sources"),
    [PART_SCRAPING] = SL_STR("scraping"),
    [PART_OPTIONS] = SL_STR("options"),
    [PART_PLATFORM] = SL_STR("platform"),
    [PART_REWRITE] = SL_STR("rewrite_first_module"),
    [PART_MODULES] = SL_STR("modules"),
};

struct form_reading {
    struct crash_work *work;
    struct crash_form *form; /* &work->form */
    const struct config *config;
    const char *tmp_dir;
    int fd;     /* temporary file with the body */
    int packed; /* temporary file with a compressed crash file, which is unpacked in place; -1: it is not compressed */
    struct sl_str boundary; /* of the form; data NULL: the body is the crash file itself */
    int status;             /* HTTP status of a refusal; 0: no error */
    struct sl_buf problem;  /* message of a refusal */
    const char *cause;      /* detail of a refusal if the form is malformed, else NULL */
    struct sl_error error;
};

uint64_t crash_max_bytes(const struct crash_kind *kind, const struct config *config)
{
    return kind->is_core ? config->core_body_max_bytes : config->crash_file_body_max_bytes;
}

uint64_t crash_body_limit(const struct http_exchange *x)
{
    const struct service *service = x->service;
    return crash_max_bytes((const struct crash_kind *)x->route->job, service->config);
}

/* ---- parts ---- */

/* Finds the parts of the form. False if it is refused: r->status and r->problem are set. */
static bool split_parts(struct form_reading *r)
{
    struct form_part parts[CRASH_PARTS];
    for (int i = 0; i < CRASH_PARTS; i++)
        parts[i] = (struct form_part){.name = part_names[i], .max = MAX_JSON_PART};
    parts[PART_FILE] = (struct form_part){.name = sl_str(r->work->kind->part)}; /* the crash file: no limit (max 0) */
    r->form->artifacts.keeps_folders = true;                                    /* file names with their folders */
    enum sl_code code = form_split(r->form->body.bytes, r->boundary, r->work->native.arena, &r->form->artifacts, parts,
                                   CRASH_PARTS, &r->error);
    for (int i = 0; i < CRASH_PARTS; i++)
        r->form->parts[i] = (struct sl_bytes){(const uint8_t *)parts[i].text.data, parts[i].text.size};
    if (code == SL_OK)
        return true;
    r->status = code == SL_BUSY ? 503 : code == SL_UNSUPPORTED ? 413 : 400;
    /* a malformed form is answered with the text that Symbolicator has for it; the reason is added as the cause */
    r->cause = code == SL_MALFORMED ? r->error.message : NULL;
    sl_buf_cstr(&r->problem, r->cause ? "Error parsing `multipart/form-data` request" : r->error.message);
    return false;
}

/* ---- JSON of parts ---- */

struct form_value { /* how to read the JSON document in a part of the form */
    sl_field_read *read;
    void *out;
};

/* Adapts a sl_field_read, which reads a member, to read a whole document. */
static bool form_read_value(struct sl_fields *s)
{
    const struct form_value *value = s->context;
    return value->read(s, NULL, value->out);
}

/* The callback for the part `platform`, a JSON text or null; with null the platform stays unset. */
static bool form_read_platform(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    if (sl_json_peek(s->json) == SL_JSON_NULL) {
        sl_json_skip(s->json);
        return !s->json->failed;
    }
    return sl_fields_text(s, at, out);
}

/* Reads a JSON part of the form into `out`, if it was sent. False if it is malformed: r->status and r->problem are set. */
static bool form_read_part(struct form_reading *r, enum crash_part part, sl_field_read *read, void *out)
{
    struct sl_str text = {(const char *)r->form->parts[part].data, r->form->parts[part].size};
    struct form_value value = {read, out};
    struct json_failure failure;
    if (!text.data || json_document(text, r->work->native.arena, form_read_value, &value, &failure))
        return true;
    r->status = failure.status == 503 ? 503 : 400;
    sl_buf_cstr(&r->problem, failure.problem);
    return false;
}

/* Reads the JSON parts of the form into the request. False if one is malformed, or when out of memory: r->status is set. */
static bool form_read_json(struct form_reading *r)
{
    struct native_request *request = &r->work->native;
    struct request_sources sources = {.config = r->config};
    native_configure(request, r->config);
    if (!form_read_part(r, PART_SOURCES, request_sources_read, &sources) ||
        !form_read_part(r, PART_SCRAPING, scraping_read, &request->scraping) ||
        !form_read_part(r, PART_OPTIONS, native_read_options, &request->options) ||
        !form_read_part(r, PART_PLATFORM, form_read_platform, &request->platform) ||
        (r->work->kind->rewrites && !form_read_part(r, PART_REWRITE, rewrite_read, &r->work->rules)) ||
        (r->work->kind->is_core && !form_read_part(r, PART_MODULES, core_read_ids, &r->work->ids)))
        return false;
    if (r->form->parts[PART_SOURCES].data) {
        request->sources = sources.items;
        request->source_count = sources.count;
        request->sources_number = sources.number;
    }
    request->files = r->form->artifacts.items;
    request->file_count = r->form->artifacts.count;
    if (!native_add_configured(request, r->config)) { /* adds the configured sources if the options ask for them */
        r->status = 503;
        return false;
    }
    /* for crash files, clients cannot switch off source context or reverse the order of frames */
    request->options.apply_source_context = SL_BOOL_TRUE;
    request->options.caller_first = false;
    return true;
}

/* ---- compressed crash files ---- */

/* True if the crash file is compressed, by its magic bytes: with gzip or zstd, core files also with xz. */
static bool is_packed(const struct crash_kind *kind, struct sl_bytes file)
{
    static const struct sl_str gzip = SL_STR("\x1F\x8B"), zstd = SL_STR("\x28\xB5\x2F\xFD"),
                               xz = SL_STR("\xFD"
                                           "7zXZ\0");
    struct sl_str text = {(const char *)file.data, file.size};
    return file.size > 4 &&
           (sl_str_starts(text, gzip) || sl_str_starts(text, zstd) || (kind->is_core && sl_str_starts(text, xz)));
}

/* Sets the status for a failure of the service itself, not of the form: 503 for lack of memory, else 500. */
static void form_fail_internal(struct form_reading *r, enum sl_code code)
{
    r->status = code == SL_BUSY ? 503 : 500;
}

/* Sets status and message for a compressed core file that is damaged (400) or too large when decompressed (413). */
static void form_bad_core(struct form_reading *r, enum sl_code code)
{
    r->status = code == SL_MALFORMED ? 400 : 413;
    sl_buf_printf(&r->problem, "cannot decompress the core file: %s", r->error.message);
}

/* Copies a compressed crash file from the body to a temporary file of its own, r->packed. */
static void form_copy_packed(struct form_reading *r)
{
    r->packed = sl_unlinked_file(r->tmp_dir);
    if (r->packed < 0 || !sl_write_all(r->packed, r->form->parts[PART_FILE]))
        form_fail_internal(r,
                           sl_fail_errno(&r->error, errno, "cannot write an uploaded crash file to a temporary file"));
}

/* Pool work: maps the body and reads its parts except the crash file. If that is compressed, it is copied to a temporary file, in which
 * form_unpack() will decompress it. */
static void form_read(void *arg)
{
    struct form_reading *r = arg;
    if (sl_map_fd(r->fd, &r->form->body, &r->error) != SL_OK) {
        form_fail_internal(r, r->error.code);
        return;
    }
    if (!r->boundary.data) /* no form: the body is the crash file; form_read_json() then only sets defaults */
        r->form->parts[PART_FILE] = r->form->body.bytes;
    bool good = (!r->boundary.data || split_parts(r)) && form_read_json(r);
    if (good && is_packed(r->work->kind, r->form->parts[PART_FILE]))
        form_copy_packed(r);
}

/* Decompresses a compressed crash file in place, in r->packed. If the data are damaged or too large, a core file is refused here; other
 * files stay as they were sent, and their reader will reject them. */
static void form_unpack(struct form_reading *r) SL_SUSPENDS
{
    if (r->packed < 0 || r->status)
        return;
    enum sl_code code = fetch_unpack_core(r->packed, crash_max_bytes(r->work->kind, r->config), &r->error);
    if (code == SL_OK)
        code = pool_map_fd(r->packed, &r->form->unpacked, &r->error);
    if (code == SL_OK)
        r->form->parts[PART_FILE] = r->form->unpacked.bytes;
    else if (code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED)
        form_fail_internal(r, code);
    else if (r->work->kind->is_core)
        form_bad_core(r, code);
}

/* ---- answers ---- */

/* Answers a refused form with r->status, r->problem and r->cause. Status 503 always means that memory was short. */
static void form_refuse(struct http_exchange *x, struct form_reading *r)
{
    sl_buf_u8(&r->problem, 0); /* the end of the C string; with nothing before it (size 1) there is no text */
    const char *text = r->problem.failed || r->problem.size == 1 ? NULL : (const char *)r->problem.data;
    if (r->status == 503)
        http_reply_no_memory(x);
    else
        http_reply_detail(x, r->status, text ? text : "cannot read the request", r->cause);
}

/* Returns the error message for a crash file that is missing or that kind->refuse() rejects; NULL if there is no such problem. */
static const char *form_problem(const struct form_reading *r)
{
    const struct crash_kind *kind = r->work->kind;
    struct sl_bytes file = r->form->parts[PART_FILE];
    if (!file.data)
        return kind->missing;
    return kind->refuse ? kind->refuse(file) : NULL;
}

/* Of the two temporary files, keeps the one with the (unpacked) crash file open as form->fd, for the worker that will read it, and closes
 * the other one. */
static void keep_file(struct form_reading *r)
{
    struct crash_form *form = r->form;
    bool is_unpacked = form->unpacked.bytes.data != NULL;
    form->fd = is_unpacked ? r->packed : r->fd;
    if (!is_unpacked && form->parts[PART_FILE].data)
        form->file_offset = (uint64_t)(form->parts[PART_FILE].data - form->body.bytes.data);
    sl_close(is_unpacked ? r->fd : r->packed);
}

/* Receives the body and reads it on the pool. False if it was refused, and the answer is set, or if the client is gone. */
static bool form_take(struct http_exchange *x, struct form_reading *r)
{
    struct sl_error error;
    if (http_body_take(x, &r->fd) != SL_OK)
        return false;
    enum sl_code code = http_pool_run(x, POOL_JSON, form_read, r, &error);
    if (code == SL_OK)
        form_unpack(r);
    keep_file(r); /* also after a failure: it closes one of the two files */
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

bool crash_receive(struct http_exchange *x, struct job *job, void *arg)
{
    struct crash_work *work = arg;
    struct form_reading r = {
        .work = work, .form = &work->form, .config = job->config, .tmp_dir = cache_tmp_dir(), .packed = -1};
    if (!multipart_boundary(http_header(x, "content-type"), &r.boundary))
        r.boundary = (struct sl_str){NULL, 0}; /* the body is the crash file: job_check() has refused all else */
    bool good = form_take(x, &r);
    sl_buf_free(&r.problem);
    memory_resize(&x->memory, work->native.arena->used); /* the body and the unpacked file are in files */
    return good;
}

void crash_form_close(struct crash_form *form)
{
    if (form->body.bytes.data)
        sl_unmap(&form->body);
    if (form->unpacked.bytes.data)
        sl_unmap(&form->unpacked);
    sl_close(form->fd);
    *form = (struct crash_form){.parts = {{NULL, 0}}, .fd = -1};
}
