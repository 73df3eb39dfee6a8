/* Events of Sentry as requests: the frames that can be used, innermost first, and the files that they need. */
#include "cli/symbolicate/request.h"

#include "base/json_write.h"

/* ---- members ---- */

struct kept_member {
    struct sl_str name;
    enum sl_json_type type;
    bool required;
};

static const struct kept_member js_members[] = {
    {SL_STR("abs_path"), SL_JSON_STRING, true},
    {SL_STR("lineno"), SL_JSON_NUMBER, true},
    {SL_STR("colno"), SL_JSON_NUMBER, false},
    {SL_STR("platform"), SL_JSON_STRING, false},
    {SL_STR("function"), SL_JSON_STRING, false},
    {SL_STR("filename"), SL_JSON_STRING, false},
    {SL_STR("module"), SL_JSON_STRING, false},
    {SL_STR("pre_context"), SL_JSON_ARRAY, false},
    {SL_STR("context_line"), SL_JSON_STRING, false},
    {SL_STR("post_context"), SL_JSON_ARRAY, false},
    {{NULL, 0}, SL_JSON_NONE, false},
};
static const struct kept_member jvm_members[] = {
    {SL_STR("function"), SL_JSON_STRING, true},     {SL_STR("module"), SL_JSON_STRING, true},
    {SL_STR("platform"), SL_JSON_STRING, false},    {SL_STR("filename"), SL_JSON_STRING, false},
    {SL_STR("abs_path"), SL_JSON_STRING, false},    {SL_STR("lineno"), SL_JSON_NUMBER, false},
    {SL_STR("in_app"), SL_JSON_BOOL, false},        {SL_STR("signature"), SL_JSON_STRING, false},
    {SL_STR("pre_context"), SL_JSON_ARRAY, false},  {SL_STR("context_line"), SL_JSON_STRING, false},
    {SL_STR("post_context"), SL_JSON_ARRAY, false}, {{NULL, 0}, SL_JSON_NONE, false},
};
static const struct kept_member native_members[] = {
    {SL_STR("instruction_addr"), SL_JSON_STRING, true},
    {SL_STR("addr_mode"), SL_JSON_STRING, false},
    {SL_STR("function_id"), SL_JSON_STRING, false},
    {SL_STR("package"), SL_JSON_STRING, false},
    {SL_STR("function"), SL_JSON_STRING, false},
    {SL_STR("symbol"), SL_JSON_STRING, false},
    {SL_STR("filename"), SL_JSON_STRING, false},
    {SL_STR("abs_path"), SL_JSON_STRING, false},
    {SL_STR("lineno"), SL_JSON_NUMBER, false},
    {SL_STR("in_app"), SL_JSON_BOOL, false},
    {SL_STR("platform"), SL_JSON_STRING, false},
    {SL_STR("pre_context"), SL_JSON_ARRAY, false},
    {SL_STR("context_line"), SL_JSON_STRING, false},
    {SL_STR("post_context"), SL_JSON_ARRAY, false},
    {{NULL, 0}, SL_JSON_NONE, false},
};
static const struct kept_member *const members_of[] = {
    [LOCAL_JS] = js_members, [LOCAL_JVM] = jvm_members, [LOCAL_NATIVE] = native_members};
enum { MOST_MEMBERS = 16 };

/* A line or column: none of what the clients of JVMs write for native methods. */
static bool is_place(struct sl_str number)
{
    bool negative;
    uint64_t value;
    return sl_json_integer(number, &negative, &value) && !negative && value <= UINT32_MAX;
}

/* The members of the object that comes next, as they are written; false when one that is required is missing. */
static bool read_members(struct sl_json *j, const struct kept_member *members, struct sl_str values[MOST_MEMBERS])
{
    struct sl_str key, value;
    bool complete = true;
    for (size_t i = 0; members[i].name.data; i++)
        values[i] = (struct sl_str){NULL, 0};
    if (sl_json_peek(j) != SL_JSON_OBJECT) {
        sl_json_skip(j);
        return false;
    }
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        enum sl_json_type type = sl_json_peek(j);
        bool good = sl_json_value(j, &value);
        for (size_t i = 0; good && members[i].name.data; i++)
            if (sl_str_equal(key, members[i].name) && type == members[i].type &&
                (type != SL_JSON_NUMBER || is_place(value)))
                values[i] = value;
    }
    for (size_t i = 0; members[i].name.data; i++)
        complete &= !members[i].required || values[i].data;
    return complete;
}

/* ---- the event ---- */

struct event_trace {
    struct sl_str type, module; /* of an exception: JSON; data NULL: none */
    struct sl_str stack;        /* JSON; data NULL: none */
};

struct event {
    struct sl_arena *arena;
    const struct sentry_project *project;
    enum local_request_kind kind;
    struct event_trace *traces; /* of exceptions, then of threads */
    size_t trace_count, trace_capacity;
    struct sl_str platform, release, dist, images, signal; /* of the last two the JSON */
};

static void read_event_value(struct event *e, struct sl_json *j, bool exception)
{
    struct event_trace trace = {.stack = {NULL, 0}};
    struct sl_str key, raw = {NULL, 0};
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key)) {
        enum sl_json_type type = sl_json_peek(j);
        struct sl_str *out = exception && sl_str_equal(key, SL_STR("type")) && type == SL_JSON_STRING ? &trace.type
                             : exception && sl_str_equal(key, SL_STR("module")) && type == SL_JSON_STRING
                                 ? &trace.module
                             : sl_str_equal(key, SL_STR("stacktrace")) && type == SL_JSON_OBJECT     ? &trace.stack
                             : sl_str_equal(key, SL_STR("raw_stacktrace")) && type == SL_JSON_OBJECT ? &raw
                                                                                                     : NULL;
        if (out)
            sl_json_value(j, out);
        else
            sl_json_skip(j);
    }
    trace.stack = raw.data ? raw : trace.stack;
    if (sl_grow_in_arena(e->arena, &e->traces, &e->trace_capacity, e->trace_count + 1, sizeof *e->traces))
        e->traces[e->trace_count++] = trace;
    else
        sl_json_no_memory(j);
}

/* {"values": [..]} */
static void read_event_values(struct event *e, struct sl_json *j, bool exception)
{
    struct sl_str key;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key)) {
        if (!sl_str_equal(key, SL_STR("values")))
            sl_json_skip(j);
        else if (sl_json_array(j))
            while (sl_json_next(j, &key))
                read_event_value(e, j, exception);
    }
}

static void read_images(struct event *e, struct sl_json *j)
{
    struct sl_str key;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("images")) && sl_json_peek(j) == SL_JSON_ARRAY)
            sl_json_value(j, &e->images);
        else
            sl_json_skip(j);
    }
}

/* Exceptions come first, wherever the event has them. */
static bool read_event(struct event *e, struct sl_str text, struct sl_error *error)
{
    struct sl_json j = sl_json(text, e->arena, false), threads = j;
    struct sl_str key;
    bool has_threads = false;
    if (!sl_json_object(&j) && !j.failed) {
        sl_fail(error, SL_MALFORMED, "it is no JSON object");
        return false;
    }
    while (sl_json_next(&j, &key)) {
        if (sl_str_equal(key, SL_STR("platform")))
            sl_json_text(&j, &e->platform);
        else if (sl_str_equal(key, SL_STR("release")))
            sl_json_text(&j, &e->release);
        else if (sl_str_equal(key, SL_STR("dist")))
            sl_json_text(&j, &e->dist);
        else if (sl_str_equal(key, SL_STR("signal")) && sl_json_peek(&j) == SL_JSON_NUMBER)
            sl_json_value(&j, &e->signal);
        else if (sl_str_equal(key, SL_STR("exception")))
            read_event_values(e, &j, true);
        else if (sl_str_equal(key, SL_STR("debug_meta")))
            read_images(e, &j);
        else {
            if (sl_str_equal(key, SL_STR("threads"))) {
                threads = j;
                has_threads = true;
            }
            sl_json_skip(&j);
        }
    }
    if (has_threads)
        read_event_values(e, &threads, false);
    if (sl_json_end(&j) && !threads.failed)
        return true;
    const struct sl_json *failed = j.failed ? &j : &threads;
    struct sl_json_place place = sl_json_place(text, failed->at);
    sl_fail(error, sl_json_code(failed), "%s at line %zu column %zu", failed->problem, place.line, place.column);
    return false;
}

/* ---- the request ---- */

struct event_frames {     /* of one stack, as the event has them */
    struct sl_str *items; /* JSON objects */
    size_t count, capacity;
};

/* The objects of the list `frames`. */
static bool list_frames(struct event *e, struct sl_str stack, struct event_frames *frames)
{
    struct sl_json j = sl_json(stack, e->arena, false);
    struct sl_str key, frame;
    *frames = (struct event_frames){.items = NULL};
    if (!stack.data || !sl_json_object(&j))
        return true;
    while (sl_json_next(&j, &key)) {
        if (!sl_str_equal(key, SL_STR("frames")) || sl_json_peek(&j) != SL_JSON_ARRAY) {
            sl_json_skip(&j);
            continue;
        }
        sl_json_enter(&j);
        while (sl_json_next(&j, &key)) {
            if (!sl_json_value(&j, &frame))
                break;
            if (!sl_grow_in_arena(e->arena, &frames->items, &frames->capacity, frames->count + 1, sizeof frame))
                return false;
            frames->items[frames->count++] = frame;
        }
    }
    return !j.busy;
}

/* Innermost first; those that lack what they need are left out. Returns how many there are. */
static size_t put_frames(struct event *e, const struct event_frames *frames, uint64_t *index, struct sl_json_writer *w)
{
    const struct kept_member *members = members_of[e->kind];
    struct sl_str values[MOST_MEMBERS];
    size_t count = 0;
    for (size_t i = frames->count; i-- > 0;) {
        struct sl_json j = sl_json(frames->items[i], e->arena, false);
        if (!read_members(&j, members, values))
            continue;
        sl_json_begin_object(w);
        for (size_t k = 0; members[k].name.data; k++)
            if (values[k].data) {
                sl_json_put_key_str(w, members[k].name);
                sl_json_put_raw(w, values[k]);
            }
        if (e->kind == LOCAL_JVM)
            sl_json_member_u64(w, "index", (*index)++);
        sl_json_end_object(w);
        count++;
    }
    return count;
}

static void put_exception(const struct event_trace *trace, struct sl_json_writer *w)
{
    sl_json_begin_object(w);
    sl_json_member_raw(w, "type", trace->type);
    sl_json_member_raw(w, "module", trace->module.data ? trace->module : SL_STR("\"\""));
    sl_json_end_object(w);
}

/* Returns how many frames there are; SIZE_MAX: out of memory. */
static size_t put_traces(struct event *e, struct sl_json_writer *w)
{
    size_t count = 0;
    uint64_t index = 0;
    sl_json_member_array(w, "stacktraces");
    for (size_t i = 0; i < e->trace_count; i++) {
        struct sl_json_writer before = *w;
        size_t size = w->out->size;
        struct event_frames frames;
        if (!list_frames(e, e->traces[i].stack, &frames))
            return SIZE_MAX;
        sl_json_begin_object(w);
        if (e->kind == LOCAL_JVM && e->traces[i].type.data) {
            sl_json_put_key(w, "exception");
            put_exception(&e->traces[i], w);
        }
        if (e->kind == LOCAL_NATIVE)
            sl_json_member_boolean(w, "is_requesting", false);
        sl_json_member_array(w, "frames");
        size_t put = put_frames(e, &frames, &index, w);
        sl_json_end_array(w);
        sl_json_end_object(w);
        if (!put) { /* a stack of nothing is none */
            *w = before;
            w->out->size = size;
        }
        count += put;
    }
    sl_json_end_array(w);
    return count;
}

static void put_exceptions(const struct event *e, struct sl_json_writer *w)
{
    sl_json_member_array(w, "exceptions");
    for (size_t i = 0; i < e->trace_count; i++)
        if (e->traces[i].type.data)
            put_exception(&e->traces[i], w);
    sl_json_end_array(w);
}

/* The image as a module of the request, if it is one that counts. */
static bool put_module(struct event *e, struct sl_str image, struct sl_json_writer *w)
{
    static const struct sl_str names[] = {SL_STR("type"), SL_STR("uuid"), SL_STR("debug_id"), SL_STR("code_file")};
    struct sl_json j = sl_json(image, e->arena, false);
    struct sl_str texts[4] = {{NULL, 0}};
    struct sl_debug_id id;
    bool jvm = e->kind == LOCAL_JVM;
    if (sl_json_peek(&j) != SL_JSON_OBJECT || !sl_json_texts(&j, names, texts, 4))
        return false;
    bool is_map = sl_str_equal(texts[0], SL_STR("sourcemap")), is_mapping = sl_str_equal(texts[0], SL_STR("proguard"));
    bool is_bundle = sl_str_equal(texts[0], SL_STR("jvm"));
    if (e->kind == LOCAL_NATIVE) {
        if (!texts[0].data || is_map || is_mapping || is_bundle)
            return false;
        sl_json_put_raw(w, image);
        return true;
    }
    struct sl_str uuid = is_mapping && texts[1].data ? texts[1] : texts[2];
    if ((jvm ? !is_mapping && !is_bundle : !is_map || !texts[3].data) || !sl_debug_id_parse(uuid, &id))
        return false;
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", is_bundle ? SL_STR("source") : texts[0]);
    sl_json_member_str(w, jvm ? "uuid" : "debug_id", uuid);
    if (!jvm)
        sl_json_member_str(w, "code_file", texts[3]);
    sl_json_end_object(w);
    return true;
}

/* Returns how many there are. */
static size_t put_event_modules(struct event *e, struct sl_json_writer *w)
{
    struct sl_json j = sl_json(e->images.data ? e->images : SL_STR("[]"), e->arena, false);
    struct sl_str key, image;
    size_t count = 0;
    sl_json_member_array(w, "modules");
    if (sl_json_array(&j))
        while (sl_json_next(&j, &key) && sl_json_value(&j, &image))
            count += put_module(e, image, w);
    sl_json_end_array(w);
    return count;
}

static void put_event_text(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (!text.size)
        return;
    sl_json_member_str(w, key, text);
}

/* Where the scripts of an event are. */
static void put_artifacts(const struct sentry_project *project, struct sl_json_writer *w)
{
    struct sl_buf url = {0};
    sl_buf_str(&url, project->online ? project->url : SL_STR("http://localhost/"));
    sl_buf_cstr(&url, project->online ? "artifact-lookup/" : "");
    sl_json_begin_object(w);
    put_event_text(w, "id", project->online ? SL_STR("sentry:project") : SL_STR("local"));
    put_event_text(w, "url", sl_buf_view(&url));
    sl_json_member_str(w, "token", secret_open(project->token).data ? secret_open(project->token) : SL_STR(""));
    sl_json_end_object(w);
    w->out->failed |= url.failed;
    sl_buf_free(&url);
}

static enum sl_code put_request(struct event *e, struct sl_buf *body, struct sl_error *error)
{
    struct sl_json_writer w = sl_json_writer(body);
    const char *at = e->release.size ? memchr(e->release.data, '@', e->release.size) : NULL;
    bool js = e->kind == LOCAL_JS;
    sl_json_begin_object(&w);
    put_event_text(&w, "platform", e->platform);
    if (js) {
        sl_json_put_key(&w, "source");
        put_artifacts(e->project, &w);
    } else if (e->kind == LOCAL_JVM) { /* which needs them */
        sl_json_member_raw(&w, "sources", SL_STR("[]"));
    }
    sl_json_member_raw(&w, "options", SL_STR("{\"frame_order\":\"callee_first\"}"));
    if (e->kind == LOCAL_JVM) {
        put_event_text(&w, "release_package",
                       at ? (struct sl_str){e->release.data, (size_t)(at - e->release.data)} : e->release);
        put_exceptions(e, &w);
    } else if (js) {
        put_event_text(&w, "release", e->release);
        put_event_text(&w, "dist", e->dist);
    } else if (e->signal.data) {
        sl_json_member_raw(&w, "signal", e->signal);
    }
    size_t count = put_traces(e, &w), modules = put_event_modules(e, &w);
    sl_json_end_object(&w);
    if (count == SIZE_MAX || body->failed)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (e->kind == LOCAL_NATIVE && !modules)
        return sl_fail(error, SL_NOT_FOUND, "Event has no debug images");
    return count ? SL_OK : sl_fail(error, SL_NOT_FOUND, "Event has no usable frames");
}

static bool event_kind(struct sl_str platform, enum local_request_kind *kind)
{
    static const struct {
        struct sl_str name;
        enum local_request_kind kind;
    } platforms[] = {
        {SL_STR("objc"), LOCAL_NATIVE},   {SL_STR("cocoa"), LOCAL_NATIVE}, {SL_STR("swift"), LOCAL_NATIVE},
        {SL_STR("native"), LOCAL_NATIVE}, {SL_STR("c"), LOCAL_NATIVE},     {SL_STR("csharp"), LOCAL_NATIVE},
        {SL_STR("node"), LOCAL_JS},       {SL_STR("nodejs"), LOCAL_JS},    {SL_STR("javascript"), LOCAL_JS},
        {SL_STR("java"), LOCAL_JVM},      {SL_STR("android"), LOCAL_JVM},
    };
    for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++)
        if (sl_str_equal(platform, platforms[i].name)) {
            *kind = platforms[i].kind;
            return true;
        }
    return false;
}

enum sl_code event_request(struct sl_str text, const struct event_options *options, struct sl_arena *arena,
                           enum local_request_kind *kind, struct sl_buf *body, struct sl_error *error)
{
    struct event e = {.arena = arena, .project = options->project};
    if (!read_event(&e, text, error))
        return error->code;
    e.platform = options->platform ? sl_str(options->platform) : e.platform;
    e.release = options->release ? sl_str(options->release) : e.release;
    e.dist = options->dist ? sl_str(options->dist) : e.dist;
    if (!event_kind(e.platform, &e.kind))
        return sl_fail(error, SL_UNSUPPORTED, "invalid platform " SL_STR_FMT, SL_STR_ARG(e.platform));
    *kind = e.kind;
    return put_request(&e, body, error);
}
