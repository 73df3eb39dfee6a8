/* POST /symbolicate-any: a crash file that is at some address becomes a job. */
#include <stddef.h>
#include <stdio.h>

#include "api/crash/crash.h"
#include "api/json_body.h"
#include "api/sources.h"

struct any_file { /* the member "symbolicate" */
    struct sl_str type, url, token;
};

struct any_reading {
    struct crash_work *work;
    const struct config *config;
    struct request_sources sources;
    struct any_file file;
};

/* ---- the body ---- */

static bool any_read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct {
        struct sl_str name;
        const struct crash_kind *kind;
    } kinds[] = {{SL_STR("minidump"), &crash_minidump}, {SL_STR("applecrashreport"), &crash_apple}};
    struct any_reading *r = s->context;
    struct sl_str *type = out;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, type))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (sl_str_equal(*type, kinds[i].name)) {
            r->work->kind = kinds[i].kind;
            return true;
        }
    return sl_fields_fail(s, at, where, "unknown variant, expected minidump or applecrashreport");
}

static bool any_read_rules(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct any_reading *r = s->context;
    (void)out;
    return rewrite_read(s, at, &r->work->rules);
}

static bool any_read_sources(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct any_reading *r = s->context;
    (void)out;
    return request_sources_read(s, at, &r->sources);
}

static bool any_read_scraping(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct any_reading *r = s->context;
    (void)out;
    return scraping_read(s, at, &r->work->request->scraping);
}

static bool any_read_options(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct any_reading *r = s->context;
    (void)out;
    return native_read_options(s, at, &r->work->request->options);
}

static bool any_read_platform(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct any_reading *r = s->context;
    (void)out;
    return sl_fields_text(s, at, &r->work->request->platform);
}

static bool any_read_file(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct sl_field fields[] = {
        SL_FIELD_BY(true, any_file, type, "type", any_read_type),
        SL_FIELD(TEXT, true, any_file, url, "storage_url"),
        SL_FIELD(TEXT, false, any_file, token, "storage_token"),
        {SL_STR("rewrite_first_module"), SL_FIELD_CUSTOM, false, 0, any_read_rules},
        SL_FIELDS_END,
    };
    return sl_fields_object(s, at, fields, out);
}

static bool any_read_body(struct sl_fields *s)
{
    static const struct sl_field fields[] = {
        SL_FIELD_BY(true, any_reading, file, "symbolicate", any_read_file),
        {SL_STR("sources"), SL_FIELD_CUSTOM, false, 0, any_read_sources},
        {SL_STR("scraping"), SL_FIELD_CUSTOM, false, 0, any_read_scraping},
        {SL_STR("options"), SL_FIELD_CUSTOM, false, 0, any_read_options},
        {SL_STR("platform"), SL_FIELD_CUSTOM, false, 0, any_read_platform},
        SL_FIELDS_END,
    };
    return sl_fields_object(s, NULL, fields, s->context);
}

/* ---- the download ---- */

static bool any_make_download(struct any_reading *r)
{
    struct sl_arena *arena = r->work->request->arena;
    struct fetch_request *download = SL_ARENA_NEW(arena, struct fetch_request);
    struct fetch_header *header = SL_ARENA_NEW(arena, struct fetch_header);
    struct sl_buf value = {0};
    if (!download || !header)
        return false;
    sl_buf_cstr(&value, "Bearer ");
    sl_buf_str(&value, r->file.token);
    struct sl_str text = sl_buf_keep(&value, arena);
    *header = (struct fetch_header){SL_STR("authorization"), {text}};
    *download = (struct fetch_request){
        .url = sl_arena_strndup(arena, r->file.url.data, r->file.url.size),
        .headers = header,
        .header_count = r->file.token.data ? 1 : 0,
        .trusted = true,
        .source = "storage",
        .max_size = r->config->crash_file_body_max_bytes,
    };
    r->work->download = download;
    return text.data && download->url;
}

static bool any_read(void *arg, struct sl_str text, struct json_failure *failure)
{
    struct any_reading *r = arg;
    struct native_request *request = r->work->request;
    native_configure(request, r->config);
    if (!json_document(text, request->arena, any_read_body, r, failure))
        return false;
    request->sources = r->sources.items; /* without any, those of the configuration do not count */
    request->source_count = r->sources.count;
    request->sources_number = r->sources.number;
    request->options.apply_source_context = SL_BOOL_TRUE;
    request->options.caller_first = false;
    if (native_add_configured(request, r->config) && any_make_download(r))
        return true;
    *failure = json_no_memory;
    return false;
}

static void any_handle(struct http_exchange *x)
{
    struct api_query query;
    struct job *job = job_new(x);
    if (!job)
        return;
    struct crash_work *work = query_read(x, &query) ? crash_work_new(x, job, NULL, query.scope) : NULL;
    struct any_reading r = {.work = work, .config = job->config, .sources = {.config = job->config}};
    struct json_body body = {.arena = &job->arena, .read = any_read, .arg = &r};
    bool good = work && json_body_read(x, &body);
    crash_start(x, job, work, good, &query);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/symbolicate-any",
     .handler = any_handle,
     .takes_work = true,
     .check = check_json_job,
     .body_limit = json_job_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("symbolicate"),
     .task = "symbolicate_any"},
    {.method = NULL},
};

const struct http_family family_any = {.routes = routes, .group = "symbolicate"};
