/* POST /symbolicate-any: starts a job for a crash file at a URL. */
#include <stddef.h>
#include <stdio.h>

#include "api/crash/crash.h"
#include "api/sources.h"

struct any_file { /* the member "symbolicate" of the body */
    const struct crash_kind *kind;
    struct sl_str url, token;
    struct rewrite_rules rules;
};

struct any_body {
    struct any_file file;
    struct request_sources sources;
    struct scraping scraping;
    struct native_options options;
    struct sl_str platform;
};

/* ---- the body ---- */

/* The callback for the member `type`: sets the kind of crash file that it names. */
static bool any_read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct {
        struct sl_str name;
        const struct crash_kind *kind;
    } kinds[] = {{SL_STR("minidump"), &crash_minidump},
                 {SL_STR("applecrashreport"), &crash_apple},
                 {SL_STR("core"), &crash_core}};
    struct sl_str type;
    size_t where = s->json->at; /* position of the value, for the error message */
    if (!sl_fields_text(s, at, &type))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (sl_str_equal(type, kinds[i].name)) {
            *(const struct crash_kind **)out = kinds[i].kind;
            return true;
        }
    return sl_fields_fail(s, at, where, "unknown variant, expected minidump, applecrashreport or core");
}

/* The callback for the member `symbolicate`: what kind of file it is, its URL and access token, and rules that rename its first module.
 * In the table, `true` marks members that must be present. */
static bool any_read_file(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct sl_field fields[] = {
        SL_FIELD_BY(true, any_file, kind, "type", any_read_type),
        SL_FIELD(TEXT, true, any_file, url, "storage_url"),
        SL_FIELD(TEXT, false, any_file, token, "storage_token"),
        SL_FIELD_BY(false, any_file, rules, "rewrite_first_module", rewrite_read),
        SL_FIELDS_END,
    };
    return sl_fields_object(s, at, fields, out);
}

/* Reads the whole body into s->context, a struct any_body. `options` has the same members as in a body of POST /symbolicate. In the table,
 * `true` marks the member that must be present. */
static bool any_read_body(struct sl_fields *s)
{
    static const struct sl_field fields[] = {
        SL_FIELD_BY(true, any_body, file, "symbolicate", any_read_file),
        SL_FIELD_BY(false, any_body, sources, "sources", request_sources_read),
        SL_FIELD_BY(false, any_body, scraping, "scraping", scraping_read),
        SL_FIELD_BY(false, any_body, options, "options", native_read_options),
        SL_FIELD(TEXT, false, any_body, platform, "platform"),
        SL_FIELDS_END,
    };
    return sl_fields_object(s, NULL, fields, s->context);
}

/* ---- the download ---- */

/* Makes the request that downloads the crash file; without a token it has no Authorization header. NULL when out of memory. */
static struct fetch_request *any_download(struct job *job, const struct any_file *file)
{
    struct fetch_request *download = SL_ARENA_NEW(&job->arena, struct fetch_request);
    struct fetch_header *header = SL_ARENA_NEW(&job->arena, struct fetch_header);
    struct sl_buf value = {0};
    if (!download || !header)
        return NULL;
    sl_buf_cstr(&value, "Bearer ");
    sl_buf_str(&value, file->token);
    struct sl_str text = sl_buf_move_to_arena(&value, &job->arena);
    *header = (struct fetch_header){SL_STR("authorization"), {text}};
    *download = (struct fetch_request){
        .url = sl_arena_strndup(&job->arena, file->url.data, file->url.size),
        .headers = header,
        .header_count = file->token.data ? 1 : 0,
        .trusted = true, /* the storage of crash files may be in the private network */
        .source = "storage",
        .max_size = crash_max_bytes(file->kind, job->config),
    };
    return text.data && download->url ? download : NULL;
}

/* Turns the job into one of the kind that the body names, and returns its new request, which is empty. NULL when out of memory. */
static struct crash_work *any_become(struct job *job, const struct crash_kind *kind)
{
    job->kind = &kind->job;
    job->request = sl_arena_zalloc(&job->arena, 1, kind->job.size);
    if (job->request)
        crash_work_open(job, job->request);
    return job->request;
}

/* Reads the body and turns the job into one of the kind that it names. */
static bool any_read(struct job *job, void *arg, struct sl_str text, struct json_failure *failure)
{
    struct any_body *body = arg;
    *body = (struct any_body){.sources = {.config = job->config}, .scraping = scraping_default};
    if (!json_document(text, &job->arena, any_read_body, body, failure))
        return false;
    *failure = json_no_memory; /* the only failure that is possible from here on */
    struct crash_work *work = any_become(job, body->file.kind);
    if (!work || !(work->download = any_download(job, &body->file)))
        return false;
    struct native_request *request = &work->native;
    native_configure(request, job->config);
    work->rules = body->file.rules;
    request->platform = body->platform;
    request->scraping = body->scraping;
    request->options = body->options;
    /* replaces the configured sources that native_configure() has set: without sources in the body there are none, but for those that
     * native_add_configured() adds if the options ask for configured sources */
    request->sources = body->sources.items;
    request->source_count = body->sources.count;
    request->sources_number = body->sources.number;
    /* as for crash files in forms, clients cannot choose these two options */
    request->options.apply_source_context = SL_BOOL_TRUE;
    request->options.caller_first = false;
    return native_add_configured(request, job->config);
}

static const struct job_kind job_any = {
    .task = "symbolicate_any",
    .size = sizeof(struct any_body),
    .read = any_read,
};

static const struct http_route routes[] = {JSON_JOB("/symbolicate-any", &job_any), {.method = NULL}};

const struct http_family family_any = {.routes = routes, .group = "symbolicate"};
