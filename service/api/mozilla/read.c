/* Reads the bodies of symbolication requests. Checks are made in a fixed order, whatever the order of the keys in the JSON; the
 * first error is answered. Messages never repeat what was sent. */
#include "api/mozilla/mozilla.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_NAME = 1024 }; /* longest file name of a module, in bytes */

struct moz_reading { /* state of mozilla_read */
    struct mozilla_request *request;
    struct json_failure *failure;
    struct sl_str body;
    size_t module_count; /* modules of all jobs */
};

/* Sets the failure "out of memory" (status 503) and returns false. */
static bool moz_no_memory(struct moz_reading *r)
{
    *r->failure = json_no_memory;
    return false;
}

/* Sets a failure with status 400 and the formatted message, and returns false; without memory for the message, the failure "out of
 * memory" instead. */
__attribute__((format(printf, 2, 3))) static bool moz_wrong(struct moz_reading *r, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *r->failure = (struct json_failure){400, sl_arena_strndup(r->request->arena, text, strlen(text))};
    return r->failure->problem ? false : moz_no_memory(r);
}

/* Sets the failure of a request that has more modules or frames than the configuration allows, and returns false. */
static bool moz_too_much(struct moz_reading *r)
{
    *r->failure = (struct json_failure){413, "Payload is too large"};
    return false;
}

/* ---- modules ---- */

/* True if the text may be the name of a debug file: letters, digits, the characters in `others` and those in `extra`. */
bool mozilla_is_name(struct sl_str name, struct sl_str extra)
{
    static const char others[] = "_.+{}@<> ~-";
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool alphanumeric = sl_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alphanumeric && !(c && memchr(others, c, sizeof others - 1)) && /* without its NUL */
            !(extra.size && memchr(extra.data, c, extra.size)))
            return false;
    }
    return name.size <= MAX_NAME;
}

/* True if all characters are hex digits; an empty id is allowed and means "not known". */
static bool is_hex(struct sl_str id)
{
    for (size_t i = 0; i < id.size; i++)
        if (sl_hex_digit(id.data[i]) < 0)
            return false;
    return true;
}

/* Skips an array; true if it has exactly two values. Sets `values` to parsers at these values, to read them afterwards. */
static bool is_pair(struct sl_json *j, struct sl_json values[2])
{
    struct sl_str key;
    size_t count = 0;
    if (sl_json_peek(j) != SL_JSON_ARRAY) {
        sl_json_skip(j);
        return false;
    }
    sl_json_enter(j);
    for (; sl_json_next(j, &key); count++) {
        if (count < 2)
            values[count] = *j;
        sl_json_skip(j);
    }
    return count == 2;
}

/* Reads a string; false if the value is no string, or its text is not valid. */
static bool moz_text(struct sl_json *j, struct sl_str *text)
{
    *text = (struct sl_str){NULL, 0};
    return sl_json_peek(j) == SL_JSON_STRING && sl_json_string(j, text);
}

/* Reads a module, [debug file name, debug id]. False: the failure is set; its message has the numbers of job and module. */
static bool moz_read_module(struct moz_reading *r, size_t job, size_t index, struct sl_json *j,
                            struct mozilla_module *module)
{
    struct sl_json values[2];
    *module = (struct mozilla_module){.native = NATIVE_NO_MODULE};
    if (++r->module_count > r->request->config->max_request_modules)
        return moz_too_much(r);
    if (!is_pair(j, values))
        return moz_wrong(r, "job %zu has invalid modules: module index %zu does not have a debug_filename and debug_id",
                         job, index);
    if (!moz_text(&values[0], &module->file) ||
        !mozilla_is_name(module->file, sl_str(r->request->config->mozilla.extra_name_chars)))
        return moz_wrong(r, "job %zu has invalid modules: module index %zu has an invalid debug_filename", job, index);
    if (!moz_text(&values[1], &module->id) || !is_hex(module->id))
        return moz_wrong(r, "job %zu has invalid modules: module index %zu has an invalid debug_id", job, index);
    return true;
}

/* Reads the modules of job number `index` from the JSON `text`. False: the failure is set. */
static bool moz_read_modules(struct moz_reading *r, size_t index, struct sl_str text, struct mozilla_job *job)
{
    struct sl_json j = sl_json(text, r->request->arena, false);
    struct sl_arena_array modules = {.arena = r->request->arena, .item = sizeof *job->modules};
    struct sl_str key;
    bool good = true;
    if (sl_json_peek(&j) != SL_JSON_ARRAY)
        return moz_wrong(r, "job %zu has invalid modules: modules must be a list", index);
    sl_json_enter(&j);
    while (good && sl_json_next(&j, &key)) {
        struct mozilla_module *module = sl_arena_array_add(&modules);
        good = module ? moz_read_module(r, index, modules.count - 1, &j, module) : moz_no_memory(r);
    }
    job->module_count = modules.count;
    if (!good)
        sl_arena_array_discard(&modules); /* job->modules stays NULL; the request is refused */
    else if (!(job->modules = sl_arena_array_finish(&modules)))
        return moz_no_memory(r);
    return good;
}

/* ---- stacks ---- */

struct moz_position { /* where a frame is, for messages: indexes */
    size_t job, stack, frame;
};

/* Sets the failure for the frame at `at`, and returns false. */
static bool moz_bad_frame(struct moz_reading *r, const struct moz_position *at, const char *what)
{
    return moz_wrong(r, "job %zu has invalid stacks: stack %zu frame %zu %s", at->job, at->stack, at->frame, what);
}

/* Reads an array; true if it has exactly two values. Sets `texts` to the numbers as written; data NULL where a value is not a
 * number. */
static bool moz_number_pair(struct sl_json *j, struct sl_str texts[2])
{
    struct sl_str key;
    size_t count = 0;
    if (sl_json_peek(j) != SL_JSON_ARRAY) {
        sl_json_skip(j);
        return false;
    }
    sl_json_enter(j);
    for (; sl_json_next(j, &key); count++) {
        struct sl_str text = {NULL, 0};
        if (sl_json_peek(j) == SL_JSON_NUMBER)
            sl_json_number(j, &text);
        else
            sl_json_skip(j);
        if (count < 2)
            texts[count] = text;
    }
    return count == 2;
}

/* True if the text is a number without fraction and exponent; false for data NULL. */
static bool moz_is_whole(struct sl_str number)
{
    bool whole = number.data;
    for (size_t i = 0; i < number.size; i++)
        whole = whole && number.data[i] != '.' && number.data[i] != 'e' && number.data[i] != 'E';
    return whole;
}

/* Reads the module index of a frame. -1 means that its module is not known; "-0" is 0. */
static bool read_index(struct moz_reading *r, const struct moz_position *at, struct sl_str text, size_t module_count,
                       struct mozilla_frame *frame)
{
    bool negative;
    uint64_t magnitude;
    if (!moz_is_whole(text))
        return moz_bad_frame(r, at, "has an invalid module_index");
    if (!sl_json_integer(text, &negative, &magnitude) ||
        (negative && magnitude ? magnitude > 1 : magnitude >= module_count))
        return moz_bad_frame(r, at, "has a module_index that isn't in modules");
    frame->module = negative && magnitude ? MOZILLA_UNKNOWN : (uint32_t)magnitude;
    return true;
}

/* Reads the offset of a frame in its module. -1 is accepted, as the address before the module, and -0 is 0. Other negative numbers
 * and those that are not integers are refused; but with non_integer_offsets = skip the latter are kept as text. */
static bool read_offset(struct moz_reading *r, const struct moz_position *at, struct sl_str text,
                        struct mozilla_frame *frame)
{
    bool negative, whole = moz_is_whole(text);
    if (text.data && !whole && r->request->config->mozilla.non_integer_offsets == MOZILLA_SKIP) {
        frame->literal = text.data;
        frame->literal_size = (uint32_t)text.size;
        frame->kind = MOZILLA_LITERAL;
        return true;
    }
    if (!whole || !sl_json_integer(text, &negative, &frame->offset) || (negative && frame->offset > 1))
        return moz_bad_frame(r, at, "has an invalid module_offset");
    frame->kind = negative && frame->offset ? MOZILLA_BEFORE : MOZILLA_AT;
    return true;
}

/* Reads a frame, [module index, offset], and marks the module as referenced: only such modules are looked up. False: the failure is
 * set. */
static bool moz_read_frame(struct moz_reading *r, const struct moz_position *at, struct sl_json *j,
                           const struct mozilla_job *job, struct mozilla_frame *frame)
{
    struct sl_str texts[2];
    *frame = (struct mozilla_frame){.module = MOZILLA_UNKNOWN};
    if (++r->request->frame_count > r->request->config->max_request_frames)
        return moz_too_much(r);
    if (!moz_number_pair(j, texts))
        return moz_bad_frame(r, at, "is not a list of two items");
    if (!read_index(r, at, texts[0], job->module_count, frame) || !read_offset(r, at, texts[1], frame))
        return false;
    if (frame->module != MOZILLA_UNKNOWN)
        job->modules[frame->module].referenced = true;
    return true;
}

/* Reads the frames of one stack and appends them to `frames`. False: the failure is set. */
static bool moz_read_stack(struct moz_reading *r, struct moz_position *at, struct sl_json *j,
                           const struct mozilla_job *job, struct sl_arena_array *frames)
{
    struct sl_str key;
    bool good = true;
    if (sl_json_peek(j) != SL_JSON_ARRAY)
        return moz_wrong(r, "job %zu has invalid stacks: stack %zu is not a list", at->job, at->stack);
    sl_json_enter(j);
    for (at->frame = 0; good && sl_json_next(j, &key); at->frame++) {
        struct mozilla_frame *frame = sl_arena_array_add(frames);
        good = frame ? moz_read_frame(r, at, j, job, frame) : moz_no_memory(r);
    }
    return good;
}

/* Reads the stacks of a job: job->frames has the frames of all of them. False: the failure is set. */
static bool moz_read_stacks(struct moz_reading *r, size_t index, struct sl_str text, struct mozilla_job *job)
{
    struct sl_json j = sl_json(text, r->request->arena, false);
    struct sl_arena_array stacks = {.arena = r->request->arena, .item = sizeof *job->stacks};
    struct sl_arena_array frames = {.arena = r->request->arena, .item = sizeof *job->frames};
    struct moz_position at = {.job = index};
    struct sl_str key;
    bool good = true;
    if (sl_json_peek(&j) != SL_JSON_ARRAY)
        return moz_wrong(r, "job %zu has invalid stacks: stacks must be a list of lists", index);
    sl_json_enter(&j);
    for (; good && sl_json_next(&j, &key); at.stack++) {
        struct mozilla_stack *stack = sl_arena_array_add(&stacks);
        if (stack)
            stack->first = (uint32_t)frames.count;
        good = stack ? moz_read_stack(r, &at, &j, job, &frames) : moz_no_memory(r);
        if (good)
            stack->count = (uint32_t)frames.count - stack->first;
    }
    job->stack_count = stacks.count;
    job->frame_count = frames.count;
    if (good && !stacks.count)
        good = moz_wrong(r, "job %zu has invalid stacks: no stacks specified", index);
    if (good) {
        job->stacks = sl_arena_array_finish(&stacks);
        job->frames = sl_arena_array_finish(&frames);
        return (job->stacks && job->frames) || moz_no_memory(r);
    }
    sl_arena_array_discard(&stacks);
    sl_arena_array_discard(&frames);
    return false;
}

/* ---- jobs ---- */

struct job_members { /* members of a job as raw JSON; data NULL: missing */
    struct sl_str stacks, modules;
};

static const struct sl_field job_fields[] = {
    SL_FIELD(RAW, false, job_members, stacks, "stacks"),
    SL_FIELD(RAW, false, job_members, modules, "memoryMap"),
    SL_FIELDS_END,
};

/* Reads a job. The whole body has been checked to be valid JSON, so parsing the members again can only fail for lack of memory. */
static bool moz_read_job(struct moz_reading *r, size_t index, struct sl_json *j, struct mozilla_job *job)
{
    struct job_members members = {.stacks = {NULL, 0}};
    *job = (struct mozilla_job){.modules = NULL};
    if (sl_json_peek(j) != SL_JSON_OBJECT)
        return moz_wrong(r, "job %zu is invalid", index);
    if (!sl_json_read_object(j, job_fields, &members))
        return moz_no_memory(r);
    if (!members.stacks.data)
        return moz_wrong(r, "job %zu is invalid: no stacks specified", index);
    if (!members.modules.data)
        return moz_wrong(r, "job %zu is invalid: no memoryMap specified", index);
    return moz_read_modules(r, index, members.modules, job) && moz_read_stacks(r, index, members.stacks, job);
}

/* Reads the list of jobs. Counts them first, with a copy of the parser, as too many jobs are reported before any other error. */
static bool moz_read_jobs(struct moz_reading *r, struct sl_str text)
{
    struct mozilla_request *request = r->request;
    uint64_t most = request->config->mozilla.max_jobs;
    struct sl_json j = sl_json(text, request->arena, false), counting = j;
    struct sl_str key;
    size_t count = 0;
    if (sl_json_peek(&j) != SL_JSON_ARRAY)
        return moz_wrong(r, "jobs must be a list");
    for (sl_json_enter(&counting); sl_json_next(&counting, &key); count++)
        sl_json_skip(&counting);
    if (most && count > most) /* 0: no limit */
        return moz_wrong(r, "please limit number of jobs in a single request to <= %llu", (unsigned long long)most);
    struct sl_arena_array jobs = {.arena = request->arena, .item = sizeof *request->jobs};
    bool good = true;
    sl_json_enter(&j);
    while (good && sl_json_next(&j, &key)) {
        struct mozilla_job *job = sl_arena_array_add(&jobs);
        good = job ? moz_read_job(r, jobs.count - 1, &j, job) : moz_no_memory(r);
    }
    request->job_count = jobs.count;
    if (!good)
        sl_arena_array_discard(&jobs);
    else if (!(request->jobs = sl_arena_array_finish(&jobs)))
        return moz_no_memory(r);
    return good;
}

struct mozilla_body_members { /* members of the body as raw JSON; data NULL: missing */
    struct sl_str jobs, version;
};

static const struct sl_field body_fields[] = {
    SL_FIELD(RAW, false, mozilla_body_members, jobs, "jobs"),
    SL_FIELD(RAW, false, mozilla_body_members, version, "version"),
    SL_FIELDS_END,
};

/* True if the JSON text is the number `wanted`. */
static bool is_number(struct sl_str text, uint64_t wanted)
{
    uint64_t value;
    return sl_parse_u64(text, &value) && value == wanted;
}

/* Reads the body, at whose start `j` is. `members` are set if it is an object. The path "/" has no version (0): then a body with
 * "jobs" or "version": 5 is of version 5, any other of version 4. A body without "jobs" is itself a job. */
static bool moz_read_body(struct moz_reading *r, struct sl_json j, const struct mozilla_body_members *members)
{
    struct mozilla_request *request = r->request;
    if (!request->version)
        request->version = members->jobs.data || is_number(members->version, 5) ? 5 : 4;
    if (request->version == 4 && request->config->mozilla.v4_require_version && !is_number(members->version, 4))
        return moz_wrong(r, "version is not 4");
    if (request->version == 5 && members->jobs.data)
        return moz_read_jobs(r, members->jobs);
    request->job_count = 1;
    request->jobs = SL_ARENA_ARRAY(request->arena, struct mozilla_job, 1);
    return request->jobs ? moz_read_job(r, 0, &j, request->jobs) : moz_no_memory(r);
}

bool mozilla_read(struct mozilla_request *request, struct sl_str body, struct json_failure *failure)
{
    struct moz_reading r = {.request = request, .failure = failure, .body = body};
    struct mozilla_body_members members = {.jobs = {NULL, 0}};
    struct sl_json j = sl_json(body, request->arena, false), all = j;
    sl_json_read_object(&all, body_fields, &members);
    if (!sl_json_end(&all))
        /* busy: memory was short, which says nothing about the body */
        return all.busy ? moz_no_memory(&r) : moz_wrong(&r, "Payload is not valid JSON");
    return moz_read_body(&r, j, &members) && (mozilla_prepare(request) || moz_no_memory(&r));
}
