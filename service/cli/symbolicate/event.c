/* Converts Sentry events to requests: usable frames, innermost first, and the modules or mappings that they need. */
#include "cli/symbolicate/request.h"

#include "base/json_fields.h"
#include "base/json_write.h"

/* ---- frames ---- */

struct event_frame { /* members of the frame as raw JSON; data NULL: missing, or of another type than requests need */
    struct sl_str abs_path, lineno, colno, platform, function, filename, module, pre_context, context_line,
        post_context;
    struct sl_str in_app, signature, instruction_addr, addr_mode, function_id, package, symbol;
};

struct event_frames { /* of one stack, in the event's order: outermost first */
    struct event_frame *items;
    size_t count;
};

/* Reads a line or column to `out`, a struct sl_str, as the JSON has it. False if it is no integer from 0 to UINT32_MAX: JVM clients write
 * negative lines for native methods. */
static bool read_position(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str number;
    bool negative;
    uint64_t value;
    if (sl_json_peek(s->json) != SL_JSON_NUMBER || !sl_json_number(s->json, &number) ||
        !sl_json_integer(number, &negative, &value) || negative || value > UINT32_MAX)
        return false;
    *(struct sl_str *)out = number;
    return true;
}

#define CONTEXT                                                                                                        \
    SL_FIELD_AS_IS(ARRAY, false, event_frame, pre_context, "pre_context"),                                             \
        SL_FIELD_AS_IS(STRING, false, event_frame, context_line, "context_line"),                                      \
        SL_FIELD_AS_IS(ARRAY, false, event_frame, post_context, "post_context")

/* The members that a frame of each kind of request has, in output order; those with `true` are required. */
static const struct sl_field js_frame[] = {
    SL_FIELD_AS_IS(STRING, true, event_frame, abs_path, "abs_path"),
    SL_FIELD_BY(true, event_frame, lineno, "lineno", read_position),
    SL_FIELD_BY(false, event_frame, colno, "colno", read_position),
    SL_FIELD_AS_IS(STRING, false, event_frame, platform, "platform"),
    SL_FIELD_AS_IS(STRING, false, event_frame, function, "function"),
    SL_FIELD_AS_IS(STRING, false, event_frame, filename, "filename"),
    SL_FIELD_AS_IS(STRING, false, event_frame, module, "module"),
    CONTEXT,
    SL_FIELDS_END,
};
static const struct sl_field jvm_frame[] = {
    SL_FIELD_AS_IS(STRING, true, event_frame, function, "function"),
    SL_FIELD_AS_IS(STRING, true, event_frame, module, "module"),
    SL_FIELD_AS_IS(STRING, false, event_frame, platform, "platform"),
    SL_FIELD_AS_IS(STRING, false, event_frame, filename, "filename"),
    SL_FIELD_AS_IS(STRING, false, event_frame, abs_path, "abs_path"),
    SL_FIELD_BY(false, event_frame, lineno, "lineno", read_position),
    SL_FIELD_AS_IS(BOOL, false, event_frame, in_app, "in_app"),
    SL_FIELD_AS_IS(STRING, false, event_frame, signature, "signature"),
    CONTEXT,
    SL_FIELDS_END,
};
static const struct sl_field native_frame[] = {
    SL_FIELD_AS_IS(STRING, true, event_frame, instruction_addr, "instruction_addr"),
    SL_FIELD_AS_IS(STRING, false, event_frame, addr_mode, "addr_mode"),
    SL_FIELD_AS_IS(STRING, false, event_frame, function_id, "function_id"),
    SL_FIELD_AS_IS(STRING, false, event_frame, package, "package"),
    SL_FIELD_AS_IS(STRING, false, event_frame, function, "function"),
    SL_FIELD_AS_IS(STRING, false, event_frame, symbol, "symbol"),
    SL_FIELD_AS_IS(STRING, false, event_frame, filename, "filename"),
    SL_FIELD_AS_IS(STRING, false, event_frame, abs_path, "abs_path"),
    SL_FIELD_BY(false, event_frame, lineno, "lineno", read_position),
    SL_FIELD_AS_IS(BOOL, false, event_frame, in_app, "in_app"),
    SL_FIELD_AS_IS(STRING, false, event_frame, platform, "platform"),
    CONTEXT,
    SL_FIELDS_END,
};
static const struct sl_field *const frame_fields[] = {
    [LOCAL_JS] = js_frame, [LOCAL_JVM] = jvm_frame, [LOCAL_NATIVE] = native_frame};

/* ---- the event ---- */

struct event_trace {
    struct sl_str type, module; /* those of an exception, as raw JSON; data NULL: none */
    struct sl_str stack, raw; /* `stacktrace`, and as the client sent it `raw_stacktrace`: raw JSON; data NULL: none */
};

struct event_traces {
    struct event_trace *items;
    size_t count;
};

struct sentry_event_reading {
    struct sl_arena *arena;
    const struct sentry_project *project;
    enum local_request_kind kind;
    struct event_traces exceptions, threads;
    struct sl_str platform, release, dist, images, signal; /* images, signal: raw JSON */
};

static const struct sl_field exception_fields[] = {
    SL_FIELD_AS_IS(STRING, false, event_trace, type, "type"),
    SL_FIELD_AS_IS(STRING, false, event_trace, module, "module"),
    SL_FIELD_AS_IS(OBJECT, false, event_trace, stack, "stacktrace"),
    SL_FIELD_AS_IS(OBJECT, false, event_trace, raw, "raw_stacktrace"),
    SL_FIELDS_END,
};
static const struct sl_field exceptions_fields[] = {
    SL_FIELD_ITEMS(event_traces, items, count, "values", exception_fields),
    SL_FIELDS_END,
};
static const struct sl_field threads_fields[] = {
    SL_FIELD_ITEMS(event_traces, items, count, "values",
                   &exception_fields[2]), /* without the first two, type and module: threads have only stacks */
    SL_FIELDS_END,
};
static const struct sl_field images_fields[] = {
    SL_FIELD_AS_IS(ARRAY, false, sentry_event_reading, images, "images"),
    SL_FIELDS_END,
};
static const struct sl_field event_fields[] = {
    SL_FIELD(TEXT, false, sentry_event_reading, platform, "platform"),
    SL_FIELD(TEXT, false, sentry_event_reading, release, "release"),
    SL_FIELD(TEXT, false, sentry_event_reading, dist, "dist"),
    SL_FIELD_AS_IS(NUMBER, false, sentry_event_reading, signal, "signal"),
    SL_FIELD_PART(sentry_event_reading, exceptions, "exception", exceptions_fields),
    SL_FIELD_PART(sentry_event_reading, threads, "threads", threads_fields),
    SL_FIELD_SAME("debug_meta", images_fields),
    SL_FIELDS_END,
};

/* Reads the event. False with the reason in `error`: no object, invalid JSON (with its place), or out of memory. */
static bool read_event(struct sentry_event_reading *e, struct sl_str text, struct sl_error *error)
{
    struct sl_json j = sl_json(text, e->arena, false);
    if (!sl_json_read_object(&j, event_fields, e) && !j.failed) { /* valid JSON, but another type */
        sl_fail(error, SL_MALFORMED, "not a JSON object");
        return false;
    }
    if (sl_json_end(&j))
        return true;
    struct sl_json_position position = sl_json_position(text, j.at);
    sl_fail(error, sl_json_code(&j), "%s at line %zu column %zu", j.problem, position.line, position.column);
    return false;
}

/* ---- the request ---- */

/* Reads the elements of `frames` of a stack; none if the stack is missing. Prefers the raw stack, since Sentry has symbolicated the other.
 * False when out of memory. */
static bool list_frames(struct sentry_event_reading *e, const struct event_trace *trace, struct event_frames *frames)
{
    const struct sl_field fields[] = {SL_FIELD_ITEMS(event_frames, items, count, "frames", frame_fields[e->kind]),
                                      SL_FIELDS_END};
    struct sl_str stack = trace->raw.data ? trace->raw : trace->stack;
    struct sl_json j = sl_json(stack, e->arena, false);
    *frames = (struct event_frames){.items = NULL};
    return !stack.data || sl_json_read_object(&j, fields, frames);
}

/* Returns the frame's value for a field, as raw JSON. */
static struct sl_str frame_member(const struct event_frame *frame, const struct sl_field *field)
{
    return *(const struct sl_str *)(const void *)((const char *)frame + field->offset);
}

/* True if the frame has all required members of `fields`. */
static bool is_complete(const struct event_frame *frame, const struct sl_field *fields)
{
    for (; fields->key.data; fields++)
        if (fields->required && !frame_member(frame, fields).data)
            return false;
    return true;
}

/* Writes the frames innermost first, the reverse of the event's order, and leaves out those without a required member. Frames of the JVM
 * get the next number of `*index`, which counts over all stacks. Returns the number of frames written. */
static size_t put_frames(struct sentry_event_reading *e, const struct event_frames *frames, uint64_t *index,
                         struct sl_json_writer *w)
{
    size_t count = 0;
    for (size_t i = frames->count; i-- > 0;) {
        if (!is_complete(&frames->items[i], frame_fields[e->kind]))
            continue;
        sl_json_begin_object(w);
        for (const struct sl_field *field = frame_fields[e->kind]; field->key.data; field++) {
            struct sl_str value = frame_member(&frames->items[i], field);
            if (value.data)
                sl_json_member_raw(w, field->key.data, value);
        }
        if (e->kind == LOCAL_JVM)
            sl_json_member_u64(w, "index", (*index)++);
        sl_json_end_object(w);
        count++;
    }
    return count;
}

/* Writes an exception's `type` and `module`, which are JSON already; a missing module, required in requests, becomes an empty text. */
static void put_exception(const struct event_trace *trace, struct sl_json_writer *w)
{
    sl_json_begin_object(w);
    sl_json_member_raw(w, "type", trace->type);
    sl_json_member_raw(w, "module", trace->module.data ? trace->module : SL_STR("\"\""));
    sl_json_end_object(w);
}

/* Writes the stacks of exceptions, then those of threads. Returns the number of their frames; SIZE_MAX: out of memory. */
static size_t put_traces(struct sentry_event_reading *e, struct sl_json_writer *w)
{
    size_t count = 0;
    uint64_t index = 0;
    sl_json_member_array(w, "stacktraces");
    for (size_t i = 0; i < e->exceptions.count + e->threads.count; i++) {
        const struct event_trace *trace =
            i < e->exceptions.count ? &e->exceptions.items[i] : &e->threads.items[i - e->exceptions.count];
        struct sl_json_writer before = *w;
        size_t size = w->out->size;
        struct event_frames frames;
        if (!list_frames(e, trace, &frames))
            return SIZE_MAX;
        sl_json_begin_object(w);
        if (e->kind == LOCAL_JVM && trace->type.data) {
            sl_json_put_key(w, "exception");
            put_exception(trace, w);
        }
        if (e->kind == LOCAL_NATIVE) /* the event's mark of the crashed thread is not read */
            sl_json_member_boolean(w, "is_requesting", false);
        sl_json_member_array(w, "frames");
        size_t put = put_frames(e, &frames, &index, w);
        sl_json_end_array(w);
        sl_json_end_object(w);
        if (!put) { /* drop a stack without usable frames */
            *w = before;
            w->out->size = size;
        }
        count += put;
    }
    sl_json_end_array(w);
    return count;
}

/* Writes the exceptions that have a type, a required member of JVM requests. */
static void put_exceptions(const struct sentry_event_reading *e, struct sl_json_writer *w)
{
    sl_json_member_array(w, "exceptions");
    for (size_t i = 0; i < e->exceptions.count; i++)
        if (e->exceptions.items[i].type.data)
            put_exception(&e->exceptions.items[i], w);
    sl_json_end_array(w);
}

struct event_image {
    struct sl_str type, uuid, debug_id, code_file;
};

static const struct sl_field image_fields[] = {
    SL_FIELD(TEXT, false, event_image, type, "type"),
    SL_FIELD(TEXT, false, event_image, uuid, "uuid"),
    SL_FIELD(TEXT, false, event_image, debug_id, "debug_id"),
    SL_FIELD(TEXT, false, event_image, code_file, "code_file"),
    SL_FIELDS_END,
};

/* Writes an image of the event (`debug_meta.images`) as a module of the request. False, and nothing is written, if this kind of request
 * does not use images of its type, or the image lacks its id. */
static bool put_module(struct sentry_event_reading *e, struct sl_str text, struct sl_json_writer *w)
{
    struct sl_json j = sl_json(text, e->arena, false);
    struct event_image image = {.type = {NULL, 0}};
    struct sl_debug_id id;
    bool jvm = e->kind == LOCAL_JVM; /* else JavaScript, as native requests return early */
    if (!sl_json_read_object(&j, image_fields, &image))
        return false;
    bool is_map = sl_str_equal(image.type, SL_STR("sourcemap"));
    bool is_mapping = sl_str_equal(image.type, SL_STR("proguard")), is_bundle = sl_str_equal(image.type, SL_STR("jvm"));
    if (e->kind == LOCAL_NATIVE) {
        if (!image.type.data || is_map || is_mapping || is_bundle)
            return false;
        sl_json_put_raw(w, text); /* native requests take images unchanged */
        return true;
    }
    /* the JVM uses mappings and source bundles, JavaScript source maps that name their script; Sentry writes the id of a mapping as `uuid`
     * or `debug_id` */
    struct sl_str uuid = is_mapping && image.uuid.data ? image.uuid : image.debug_id;
    if ((jvm ? !is_mapping && !is_bundle : !is_map || !image.code_file.data) || !sl_debug_id_parse(uuid, &id))
        return false;
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", is_bundle ? SL_STR("source") : image.type);
    sl_json_member_str(w, jvm ? "uuid" : "debug_id", uuid);
    if (!jvm)
        sl_json_member_str(w, "code_file", image.code_file);
    sl_json_end_object(w);
    return true;
}

/* Writes `modules`: the images of the event that the request can use. Returns their number. */
static size_t put_event_modules(struct sentry_event_reading *e, struct sl_json_writer *w)
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

/* Writes `source`, where a JavaScript request finds scripts and source maps: the Sentry project. Requests must have this member: offline it
 * is a placeholder, to which nothing is sent. */
static void put_artifacts(const struct sentry_project *project, struct sl_json_writer *w)
{
    struct sl_buf url = {0};
    sl_buf_str(&url, project->online ? project->url : SL_STR("http://localhost/"));
    sl_buf_cstr(&url, project->online ? "artifact-lookup/" : "");
    sl_json_begin_object(w);
    put_member(w, "id", project->online ? SL_STR("sentry:project") : SL_STR("local"));
    put_member(w, "url", sl_buf_view(&url));
    /* an empty text stands for no token, as requests must have the member */
    sl_json_member_str(w, "token", secret_open(project->token).data ? secret_open(project->token) : SL_STR(""));
    sl_json_end_object(w);
    w->out->failed |= url.failed;
    sl_buf_free(&url);
}

/* Writes the request. SL_NOT_FOUND if no frame of the event can be symbolicated, or a native event has no images; SL_BUSY: out of
 * memory. */
static enum sl_code put_request(struct sentry_event_reading *e, struct sl_buf *body, struct sl_error *error)
{
    struct sl_json_writer w = sl_json_writer(body);
    /* a release is "package@version": the JVM needs the package, by which it tells the application's frames */
    const char *at = e->release.size ? memchr(e->release.data, '@', e->release.size) : NULL;
    bool js = e->kind == LOCAL_JS;
    sl_json_begin_object(&w);
    put_member(&w, "platform", e->platform);
    if (js) {
        sl_json_put_key(&w, "source");
        put_artifacts(e->project, &w);
    } else if (e->kind == LOCAL_JVM) { /* a required member */
        sl_json_member_raw(&w, "sources", SL_STR("[]"));
    }
    sl_json_member_raw(&w, "options", SL_STR("{\"frame_order\":\"callee_first\"}")); /* as put_frames() writes them */
    if (e->kind == LOCAL_JVM) {
        put_member(&w, "release_package",
                   at ? (struct sl_str){e->release.data, (size_t)(at - e->release.data)} : e->release);
        put_exceptions(e, &w);
    } else if (js) {
        put_member(&w, "release", e->release);
        put_member(&w, "dist", e->dist);
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

/* Finds out which kind of request the event's platform needs; false if no kind supports the platform. */
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
    struct sentry_event_reading e = {.arena = arena, .project = options->project};
    if (!read_event(&e, text, error))
        return error->code; /* SL_MALFORMED or SL_BUSY */
    e.platform = options->platform ? sl_str(options->platform) : e.platform;
    e.release = options->release ? sl_str(options->release) : e.release;
    e.dist = options->dist ? sl_str(options->dist) : e.dist;
    if (!event_kind(e.platform, &e.kind))
        return sl_fail(error, SL_UNSUPPORTED, "invalid platform " SL_STR_FMT, SL_STR_ARG(e.platform));
    *kind = e.kind;
    return put_request(&e, body, error);
}
