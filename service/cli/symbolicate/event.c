/* Events of Sentry as requests: the frames that can be used, innermost first, and the files that they need. */
#include "cli/symbolicate/request.h"

#include "core/json.h"

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
    const struct event_options *options;
    struct event_trace *traces; /* of exceptions, then of threads */
    size_t trace_count, trace_capacity;
    struct sl_str platform, release, dist, images;
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
static bool read_event(struct event *e, struct sl_str text)
{
    struct sl_json j = sl_json(text, e->arena, false), threads = j;
    struct sl_str key;
    bool has_threads = false;
    if (!sl_json_object(&j))
        return false;
    while (sl_json_next(&j, &key)) {
        if (sl_str_equal(key, SL_STR("platform")))
            sl_json_text(&j, &e->platform);
        else if (sl_str_equal(key, SL_STR("release")))
            sl_json_text(&j, &e->release);
        else if (sl_str_equal(key, SL_STR("dist")))
            sl_json_text(&j, &e->dist);
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
    return sl_json_end(&j) && !threads.failed;
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
static size_t put_frames(struct event *e, const struct event_frames *frames, bool jvm, uint64_t *index,
                         struct json_writer *w)
{
    const struct kept_member *members = jvm ? jvm_members : js_members;
    struct sl_str values[MOST_MEMBERS];
    size_t count = 0;
    for (size_t i = frames->count; i-- > 0;) {
        struct sl_json j = sl_json(frames->items[i], e->arena, false);
        if (!read_members(&j, members, values))
            continue;
        json_object_begin(w);
        for (size_t k = 0; members[k].name.data; k++)
            if (values[k].data) {
                json_key_str(w, members[k].name);
                json_raw(w, values[k]);
            }
        if (jvm) {
            json_key(w, "index");
            json_u64(w, (*index)++);
        }
        json_object_end(w);
        count++;
    }
    return count;
}

static void put_exception(const struct event_trace *trace, struct json_writer *w)
{
    json_object_begin(w);
    json_key(w, "type");
    json_raw(w, trace->type);
    json_key(w, "module");
    json_raw(w, trace->module.data ? trace->module : SL_STR("\"\""));
    json_object_end(w);
}

/* Returns how many frames there are; SIZE_MAX: out of memory. */
static size_t put_traces(struct event *e, bool jvm, struct json_writer *w)
{
    size_t count = 0;
    uint64_t index = 0;
    json_key(w, "stacktraces");
    json_array_begin(w);
    for (size_t i = 0; i < e->trace_count; i++) {
        struct json_writer before = *w;
        size_t size = w->out->size;
        struct event_frames frames;
        if (!list_frames(e, e->traces[i].stack, &frames))
            return SIZE_MAX;
        json_object_begin(w);
        if (jvm && e->traces[i].type.data) {
            json_key(w, "exception");
            put_exception(&e->traces[i], w);
        }
        json_key(w, "frames");
        json_array_begin(w);
        size_t put = put_frames(e, &frames, jvm, &index, w);
        json_array_end(w);
        json_object_end(w);
        if (!put) { /* a stack of nothing is none */
            *w = before;
            w->out->size = size;
        }
        count += put;
    }
    json_array_end(w);
    return count;
}

static void put_exceptions(const struct event *e, struct json_writer *w)
{
    json_key(w, "exceptions");
    json_array_begin(w);
    for (size_t i = 0; i < e->trace_count; i++)
        if (e->traces[i].type.data)
            put_exception(&e->traces[i], w);
    json_array_end(w);
}

/* The image as a module of the request, if it is one that counts. */
static void put_module(struct sl_json *j, bool jvm, struct json_writer *w)
{
    static const struct sl_str names[] = {SL_STR("type"), SL_STR("uuid"), SL_STR("debug_id"), SL_STR("code_file")};
    struct sl_str texts[4] = {{NULL, 0}};
    struct sl_debug_id id;
    if (sl_json_peek(j) != SL_JSON_OBJECT || !sl_json_texts(j, names, texts, 4))
        return;
    bool is_map = sl_str_equal(texts[0], SL_STR("sourcemap")), is_mapping = sl_str_equal(texts[0], SL_STR("proguard"));
    bool is_bundle = sl_str_equal(texts[0], SL_STR("jvm"));
    struct sl_str uuid = is_mapping && texts[1].data ? texts[1] : texts[2];
    if (jvm ? !is_mapping && !is_bundle : !is_map || !texts[3].data)
        return;
    if (!sl_debug_id_parse(uuid, &id))
        return;
    json_object_begin(w);
    json_key(w, "type");
    json_str(w, is_bundle ? SL_STR("source") : texts[0]);
    json_key(w, jvm ? "uuid" : "debug_id");
    json_str(w, uuid);
    if (!jvm) {
        json_key(w, "code_file");
        json_str(w, texts[3]);
    }
    json_object_end(w);
}

static void put_event_modules(struct event *e, bool jvm, struct json_writer *w)
{
    struct sl_json j = sl_json(e->images.data ? e->images : SL_STR("[]"), e->arena, false);
    struct sl_str key;
    json_key(w, "modules");
    json_array_begin(w);
    if (sl_json_array(&j))
        while (sl_json_next(&j, &key)) {
            struct sl_json image = j;
            put_module(&image, jvm, w);
            sl_json_skip(&j);
        }
    json_array_end(w);
}

static void put_event_text(struct json_writer *w, const char *key, struct sl_str text)
{
    if (!text.size)
        return;
    json_key(w, key);
    json_str(w, text);
}

static enum sl_code put_request(struct event *e, bool jvm, struct sl_buf *body, struct sl_error *error)
{
    struct json_writer w = json_writer(body);
    const char *at = e->release.size ? memchr(e->release.data, '@', e->release.size) : NULL;
    json_object_begin(&w);
    put_event_text(&w, "platform", e->platform);
    json_key(&w, jvm ? "sources" : "source");
    json_raw(&w, jvm ? SL_STR("[]") : SL_STR("{\"id\":\"local\",\"url\":\"http://localhost/\",\"token\":\"\"}"));
    json_key(&w, "options");
    json_raw(&w, SL_STR("{\"frame_order\":\"callee_first\"}"));
    if (jvm) {
        put_event_text(&w, "release_package",
                       at ? (struct sl_str){e->release.data, (size_t)(at - e->release.data)} : e->release);
        put_exceptions(e, &w);
    } else {
        put_event_text(&w, "release", e->release);
        put_event_text(&w, "dist", e->dist);
    }
    size_t count = put_traces(e, jvm, &w);
    put_event_modules(e, jvm, &w);
    json_object_end(&w);
    if (count == SIZE_MAX || body->failed)
        return sl_fail(error, SL_BUSY, "out of memory");
    return count ? SL_OK : sl_fail(error, SL_NOT_FOUND, "Event has no usable frames");
}

enum sl_code event_request(struct sl_str text, const struct event_options *options, struct sl_arena *arena,
                           enum local_request_kind *kind, struct sl_buf *body, struct sl_error *error)
{
    static const struct sl_str scripts[] = {SL_STR("node"), SL_STR("nodejs"), SL_STR("javascript")};
    static const struct sl_str jvms[] = {SL_STR("java"), SL_STR("android")};
    struct event e = {.arena = arena, .options = options};
    bool is_js = false, is_jvm = false;
    if (!read_event(&e, text))
        return sl_fail(error, SL_MALFORMED, "failed to parse event json file");
    e.platform = options->platform ? sl_str(options->platform) : e.platform;
    e.release = options->release ? sl_str(options->release) : e.release;
    e.dist = options->dist ? sl_str(options->dist) : e.dist;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        is_js |= sl_str_equal(e.platform, scripts[i]);
    for (size_t i = 0; i < sizeof jvms / sizeof *jvms; i++)
        is_jvm |= sl_str_equal(e.platform, jvms[i]);
    if (!is_js && !is_jvm)
        return sl_fail(error, SL_UNSUPPORTED, "invalid platform " SL_STR_FMT, SL_STR_ARG(e.platform));
    *kind = is_js ? LOCAL_JS : LOCAL_JVM;
    return put_request(&e, is_jvm, body, error);
}
