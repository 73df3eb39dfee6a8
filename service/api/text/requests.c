/* Makes the requests to the APIs for scripts (JavaScript) and the JVM: modules, sources, options as a JSON body, which they read; frames
 * directly as the structs into which the APIs read frames. */
#include "api/text/work.h"

#include "base/json_write.h"

void text_put_part(struct sl_json_writer *w, const char *key, struct sl_str json)
{
    if (json.data)
        sl_json_member_raw(w, key, json);
}

/* Iterates over the stacks of one kind. */
struct text_stacks {
    const struct text_work *work;
    int kind;    /* sl_text_piece.kind of their frames */
    size_t next; /* index in work->stacks */
};

/* Returns the next stack of the kind; NULL: there is none. */
static const struct text_stack *next_stack(struct text_stacks *s)
{
    while (s->next < s->work->stack_count) {
        const struct text_stack *stack = &s->work->stacks[s->next++];
        if ((int)s->work->items[stack->first].piece.kind == s->kind)
            return stack;
    }
    return NULL;
}

/* Returns how many stacks of the kind the text has. */
static size_t count_stacks(const struct text_work *work, int kind)
{
    struct text_stacks s = {.work = work, .kind = kind};
    size_t count = 0;
    while (next_stack(&s))
        count++;
    return count;
}

/* Returns the next frame of the kind: the first in work->items at or behind index `*at`, which is set to the index behind it. There must be
 * one: items of other kinds may stand between the frames of a stack, but the caller asks only as often as the stack has frames. */
static const struct text_item *next_item(const struct text_work *work, int kind, size_t *at)
{
    while ((int)work->items[*at].piece.kind != kind)
        ++*at;
    return &work->items[(*at)++];
}

/* ---- scripts ---- */

/* Returns the name of the script for frames that name none ("f@1:23"): the only script that the request or the command has. If the
 * request's only file is a source map, it is the script of that map. Data NULL if there is no such script, or if there are several. */
static struct sl_str only_script(const struct text_work *work)
{
    struct sl_str only = {NULL, 0}, map = SL_STR(".map");
    size_t scripts = 0;
    if (work->local && work->local->files)
        return work->local->files->only_script;
    for (size_t i = 0; i < work->files.count; i++) {
        struct sl_str name = work->files.items[i].name;
        bool is_map = sl_str_ends(name, map);
        if (is_map && work->files.count > 1) /* belongs to one of the other files */
            continue;
        scripts++;
        only = (struct sl_str){name.data, name.size - (is_map ? map.size : 0)};
    }
    return scripts == 1 ? only : (struct sl_str){NULL, 0};
}

/* True if the line contains nothing but the frame, white space, "at" and "async". */
static bool is_alone(const struct sl_js_stack_frame *frame)
{
    struct sl_str before = frame->before;
    if (frame->escapes && before.size) { /* in an encoded string a line begins with the `\n` before it: skip that */
        const char *newline = memchr(before.data, 'n', before.size);
        size_t skipped = newline ? (size_t)(newline + 1 - before.data) : 0;
        before = (struct sl_str){before.data + skipped, before.size - skipped};
    }
    before = sl_str_trimmed(before);
    return !sl_str_trimmed(frame->behind).size &&
           (!before.size || sl_str_equal(before, SL_STR("at")) || sl_str_equal(before, SL_STR("at async")));
}

/* True if further frames, for functions into which the frame's function was inlined, can be written as lines behind the frame's line: it
 * ends with a line end, is the last one of the text, or lies in a JSON string, where lines are escaped. */
static bool can_be_repeated(const struct text_work *work, const struct text_item *item)
{
    const struct sl_js_stack_frame *frame = &item->piece.js;
    struct sl_str text = work->parts[TEXT_TEXT];
    bool is_last = item->source.data + item->source.size == text.data + text.size;
    return !frame->of_eval && (frame->escapes || is_last || sl_str_ends(frame->behind, SL_STR("\n")));
}

/* Makes the frame of the request from a frame of the text; a frame that names no script gets the script `only`. The frame is part of a
 * struct js_text_frame, whose other members only requests made from a text have. False when out of memory. */
static bool fill_js_frame(const struct text_work *work, const struct text_item *item, struct sl_str only,
                          struct js_request *r, struct js_entry *entry)
{
    const struct sl_js_stack_frame *text = &item->piece.js;
    struct js_text_frame *more = SL_ARENA_NEW(r->arena, struct js_text_frame);
    struct sl_buf url = {0};
    sl_js_stack_put_url(text->url, &url); /* without escapes and colour codes */
    struct sl_str plain = sl_buf_move_to_arena(&url, r->arena);
    if (!more || !plain.data)
        return false;
    struct js_frame *frame = &more->frame;
    frame->abs_path = plain.size ? plain : only;
    frame->line = (struct sl_opt_u64){true, text->line};
    frame->column = (struct sl_opt_u64){true, text->column};
    if (text->function.size)
        frame->function = text->function;
    more->is_apart = item->is_apart; /* the next frame is not the caller */
    more->is_alone = is_alone(text);
    more->wants_calls = can_be_repeated(work, item); /* inlined functions may be written as lines of their own */
    entry->frame = frame;
    return true;
}

/* Adds the script frames of the text to `request`, a struct js_request, a trace for each stack. False when out of memory. */
bool text_fill_js(const struct text_work *work, void *request)
{
    struct js_request *r = request;
    struct text_stacks stacks = {.work = work, .kind = SL_TEXT_SCRIPT};
    const struct text_stack *stack;
    struct sl_str only = only_script(work);
    r->is_of_text = true;
    r->skips_answer = work->wants_text; /* a text is made from the frames of the result, without the API's JSON */
    r->trace_count = 0;
    r->frame_count = work->js_frames;
    r->raw = SL_ARENA_ARRAY(r->arena, struct js_trace, count_stacks(work, SL_TEXT_SCRIPT) + 1);
    while (r->raw && (stack = next_stack(&stacks))) {
        struct js_trace *trace = &r->raw[r->trace_count++];
        size_t at = stack->first;
        trace->frames = SL_ARENA_ARRAY(r->arena, struct js_entry, stack->count);
        for (trace->count = 0; trace->frames && trace->count < stack->count; trace->count++)
            if (!fill_js_frame(work, next_item(work, SL_TEXT_SCRIPT, &at), only, r, &trace->frames[trace->count]))
                return false;
        if (!trace->frames)
            return false;
    }
    return r->raw != NULL;
}

/* Appends the JSON body of a request to the API for scripts, without frames. */
void text_put_js_body(const struct text_work *work, struct sl_buf *body)
{
    struct sl_json_writer w = sl_json_writer(body);
    sl_json_begin_object(&w);
    sl_json_member_raw(&w, "stacktraces", SL_STR("[]"));
    if (work->js_modules.size)
        sl_json_member_raw(&w, "modules", work->js_modules);
    text_put_part(&w, "source", work->parts[TEXT_SOURCE]);
    text_put_part(&w, "scraping", work->parts[TEXT_SCRAPING]);
    if (work->parts[TEXT_RELEASE].data)
        sl_json_member_str(&w, "release", work->parts[TEXT_RELEASE]);
    if (work->parts[TEXT_DIST].data)
        sl_json_member_str(&w, "dist", work->parts[TEXT_DIST]);
    /* a text gets no lines of source code: apply_source_context would only take time */
    sl_json_member_raw(&w, "options",
                       work->wants_text ? SL_STR("{\"frame_order\":\"callee_first\",\"apply_source_context\":false}")
                                        : SL_STR("{\"frame_order\":\"callee_first\"}"));
    sl_json_end_object(&w);
}

/* ---- the JVM ---- */

/* Makes the frame of the request from a frame of the text. "Native Method" and "Unknown Source" in place of the file are no file names. */
static void fill_jvm_frame(const struct sl_jvm_trace_frame *text, size_t index, struct jvm_frame *frame)
{
    bool has_no_file = !text->file.size || sl_str_equal(text->file, SL_STR("Native Method")) ||
                       sl_str_equal(text->file, SL_STR("Unknown Source"));
    /* the API calls the class `module` */
    *frame = (struct jvm_frame){.module = text->class, .function = text->method, .index = {true, index}};
    if (!has_no_file)
        frame->filename = text->file;
    frame->line = (struct sl_opt_u64){text->has_line, text->line};
}

/* Adds the JVM frames of the text to `request`, a struct jvm_request, a trace for each stack. False when out of memory. */
bool text_fill_jvm(const struct text_work *work, void *request)
{
    struct jvm_request *r = request;
    struct text_stacks stacks = {.work = work, .kind = SL_TEXT_JAVA};
    const struct text_stack *stack;
    if (work->wants_text) /* the request only loads the mappings, by which write.c rewrites the lines of the text */
        return true;
    r->trace_count = r->frame_count = 0;
    r->traces = SL_ARENA_ARRAY(r->arena, struct jvm_trace, count_stacks(work, SL_TEXT_JAVA) + 1);
    while (r->traces && (stack = next_stack(&stacks))) {
        struct jvm_trace *trace = &r->traces[r->trace_count++];
        size_t at = stack->first;
        if (!(trace->frames = SL_ARENA_ARRAY(r->arena, struct jvm_frame, stack->count)))
            return false;
        for (; trace->count < stack->count; trace->count++, r->frame_count++)
            fill_jvm_frame(&next_item(work, SL_TEXT_JAVA, &at)->piece.jvm, r->frame_count,
                           &trace->frames[trace->count]);
    }
    return r->traces != NULL;
}

/* Appends the JSON body of a request to the API for the JVM, without frames. */
void text_put_jvm_body(const struct text_work *work, struct sl_buf *body)
{
    struct sl_json_writer w = sl_json_writer(body);
    sl_json_begin_object(&w);
    sl_json_member_raw(&w, "stacktraces", SL_STR("[]"));
    if (work->jvm_modules.size)
        sl_json_member_raw(&w, "modules", work->jvm_modules);
    text_put_part(&w, "sources", work->parts[TEXT_SOURCES]);
    /* configured_sources: search the sources of the configuration besides those of the request */
    sl_json_member_raw(&w, "options", SL_STR("{\"frame_order\":\"callee_first\",\"configured_sources\":true}"));
    sl_json_end_object(&w);
}
