/* Resolves frames with the source maps of their scripts. `raw` is a frame as it was sent, `frame` its result. */
#include "api/js/js.h"
#include "js/comment.h"
#include "js/names.h"
#include "js/smcache.h"

struct js_resolving { /* state of js_resolve and js_add_sources */
    struct js_request *request;
    struct sl_buf line; /* scratch buffer of frame_lines_keep */
    /* Name by which the caller's code calls the function of the current frame; data NULL: unknown. */
    struct sl_str caller;
};

/* Moves the text into the arena and returns it. When out of memory: data NULL, and request->out_of_memory is set. */
static struct sl_str js_kept(struct js_resolving *s, struct sl_buf *text)
{
    struct sl_str kept = sl_buf_move_to_arena(text, s->request->arena);
    s->request->out_of_memory |= !kept.data;
    return kept;
}

/* Adds an error to those that the answer lists. */
static void js_add_error(struct js_request *r, struct js_error error)
{
    if (sl_grow_in_arena(r->arena, &r->errors, &r->error_capacity, r->error_count + 1, sizeof *r->errors))
        r->errors[r->error_count++] = error;
    else
        r->out_of_memory = true;
}

/* Returns a cursor over the lines of a file; a file without an item is empty. */
static struct sl_context_cursor js_file_cursor(const struct js_file *file)
{
    struct sl_bytes bytes = file->item ? file->item->mapping.bytes : (struct sl_bytes){NULL, 0};
    return sl_context_cursor((struct sl_str){(const char *)bytes.data, bytes.size});
}

/* ---- lines ---- */

/* Copies the lines into the arena as the frame's context; long lines are cut around the frame's column. */
static void js_keep_lines(struct js_resolving *s, struct js_frame *frame, const struct sl_context *found)
{
    frame->context = frame_lines_keep(found, frame->column.value, &s->line, s->request->arena);
    s->request->out_of_memory |= !frame->context;
}

/* Sets the frame's context to the lines around its line number; leaves it as it is if the text has no such line. */
static void js_set_lines(struct js_resolving *s, struct js_frame *frame, struct sl_context_cursor cursor)
{
    struct sl_context found;
    if (sl_context_at(&cursor, frame->line.value, &found))
        js_keep_lines(s, frame, &found);
}

/* Sets the context of `raw`, a frame as it was sent, to lines of the minified script. The module remembers the lines found last, as most
 * frames of a script have the same very long line. */
static void js_set_script_lines(struct js_resolving *s, struct js_frame *raw, struct js_module *module)
{
    if (module->context_line != raw->line.value) { /* 0 at first, which is no line number */
        struct sl_context_cursor cursor = js_file_cursor(module->minified);
        module->context_line = raw->line.value;
        module->has_context = sl_context_at(&cursor, raw->line.value, &module->context);
    }
    if (module->has_context)
        js_keep_lines(s, raw, &module->context);
}

/* Lists a source whose text is not in the map: js_find_sources looks it up later. */
static void js_want_source(struct js_resolving *s, struct js_missing_source want)
{
    struct js_request *r = s->request;
    if (sl_grow_in_arena(r->arena, &r->wants, &r->want_capacity, r->want_count + 1, sizeof *r->wants))
        r->wants[r->want_count++] = want;
    else
        r->out_of_memory = true;
}

/* ---- a frame ---- */

/* Returns the path of a source, resolved against the URL of its map or, if that is embedded, of its script. */
static struct sl_str js_joined_path(struct js_resolving *s, const struct js_module *module, struct sl_str source)
{
    struct sl_buf path = {0};
    sl_js_join(module->label, source, &path);
    return js_kept(s, &path);
}

/* Returns the best name of the function. It is chosen from what the map says about the scope and the token at the position, the name
 * that the caller uses, and the name in the frame. */
static struct sl_str function_name(struct js_resolving *s, const struct js_frame *raw,
                                   const struct sl_smcache_position *position)
{
    struct sl_js_function_hints hints = {.scope = position->function,
                                         .kind = position->kind,
                                         .token = position->name,
                                         .caller = s->caller,
                                         .function = raw->function};
    if (position->inlined) /* what caller and frame say is about the function into which this one was inlined */
        hints.caller = hints.function = (struct sl_str){NULL, 0};
    struct sl_buf text = {0};
    sl_js_function_name(&hints, &text);
    return js_kept(s, &text);
}

struct js_text_frame *js_text_frame(const struct js_request *request, const struct js_frame *frame)
{
    return request->is_of_text ? (struct js_text_frame *)frame : NULL; /* `frame` is its first member */
}

const struct js_frame *js_next_call(const struct js_request *request, const struct js_frame *frame)
{
    const struct js_text_frame *text = js_text_frame(request, frame);
    return text ? text->call : NULL;
}

bool js_is_left_out(const struct js_request *request, const struct js_frame *frame)
{
    const struct js_text_frame *text = js_text_frame(request, frame);
    return text && text->is_left_out;
}

/* Sets the frame's function, file and position from the map. Maps count lines and columns from 0, frames from 1. For a frame of a text
 * also sets is_hidden and knows_function. */
static void js_set_position(struct js_resolving *s, const struct js_module *module, const struct js_frame *raw,
                            struct js_frame *frame, const struct sl_smcache_position *position)
{
    struct sl_str source = sl_smcache_source(module->item->loaded, position->source);
    frame->function = function_name(s, raw, position);
    if (source.size) {
        frame->abs_path = js_joined_path(s, module, source);
        struct sl_js_file file = sl_js_file(source, frame->abs_path, raw->module);
        frame->filename = file.name;
        frame->module = file.module;
    }
    frame->line = (struct sl_opt_u64){true, (uint64_t)position->line + 1};
    frame->column = (struct sl_opt_u64){true, (uint64_t)position->column + 1};
    struct js_text_frame *text = js_text_frame(s->request, frame); /* NULL: the request is no text */
    if (text) {
        text->is_hidden = position->is_hidden;
        text->knows_function = position->kind != SL_JS_FUNCTION_UNKNOWN || position->inlined;
    }
}

/* Adds the lines of the original source if the map contains its text; otherwise lists the source to be looked up. */
static void js_set_source(struct js_resolving *s, const struct js_module *module, const struct js_frame *raw,
                          struct js_frame *frame, const struct sl_smcache_position *position)
{
    const struct sl_smcache *table = module->item->loaded;
    if (sl_smcache_text(table, position->source).data) {
        js_set_lines(s, frame, sl_smcache_cursor(table, position->source, position->line + 1));
        return;
    }
    struct sl_str path = js_joined_path(s, module, sl_smcache_source(table, position->source));
    js_want_source(s, (struct js_missing_source){
                          .frame = frame, .abs_path = raw->abs_path, .path = path, .sourcemap = module->label});
}

/* Sets what the map says about the position and, unless the request forbids it, the lines of the source. */
static void set_position_and_lines(struct js_resolving *s, const struct js_module *module, const struct js_frame *raw,
                                   struct js_frame *frame, const struct sl_smcache_position *position)
{
    js_set_position(s, module, raw, frame, position);
    if (s->request->apply_source_context != SL_BOOL_FALSE)
        js_set_source(s, module, raw, frame, position);
}

/* Makes a frame of the result as a copy of the frame that was sent, but without its context, which is of the script; NULL when out
 * of memory. If the frame is part of a struct js_text_frame, so is the copy. */
static struct js_frame *make_result(struct js_resolving *s, const struct js_frame *raw)
{
    const struct js_text_frame *text = js_text_frame(s->request, raw);
    /* `more` is the copy if the request is a text: its first member is `frame` */
    struct js_text_frame *more = text ? SL_ARENA_NEW(s->request->arena, struct js_text_frame) : NULL;
    struct js_frame *frame = text ? &more->frame : SL_ARENA_NEW(s->request->arena, struct js_frame);
    if (text && !more)
        frame = NULL;
    s->request->out_of_memory |= !frame;
    if (more)
        *more = *text;
    else if (frame)
        *frame = *raw;
    if (frame)
        frame->context = NULL; /* js_set_script_lines has set lines of the script */
    return frame;
}

/* Sets function, file and position of a frame. If the request is a text and the frame wants it (wants_calls), also makes a frame for
 * each function into which this one was inlined. Keeps the token at the innermost position in s->caller: it is the name by which the
 * next callee is called. */
static void set_calls(struct js_resolving *s, const struct js_module *module, const struct js_frame *raw,
                      struct js_frame *frame, struct sl_smcache_position position)
{
    struct sl_str token = position.name;
    set_position_and_lines(s, module, raw, frame, &position);
    const struct js_text_frame *text = js_text_frame(s->request, raw);
    /* sl_smcache_caller replaces `position` by that of the call, or returns false if the function was not inlined */
    while (text && text->wants_calls && sl_smcache_caller(module->item->loaded, &position)) {
        struct js_frame *call = make_result(s, raw);
        if (!call)
            return;
        call->origin = frame->origin;
        set_position_and_lines(s, module, raw, call, &position);
        js_text_frame(s->request, frame)->call = call;
        frame = call;
    }
    s->caller = token;
}

/* Sets which map resolved the frame. If `sourcemap` has no data, keeps the name that was sent. False when out of memory. */
static bool js_set_origin(struct js_resolving *s, const struct js_module *module, struct sl_str sourcemap,
                          struct js_frame *frame)
{
    struct js_frame_origin *origin = SL_ARENA_NEW(s->request->arena, struct js_frame_origin);
    s->request->out_of_memory |= !origin;
    if (!origin)
        return false;
    *origin = (struct js_frame_origin){
        .sourcemap = sourcemap, .resolved_with = sl_str(artifact_match_name(module->match)), .json = module->origin};
    if (!sourcemap.data && frame->origin)
        origin->sourcemap = frame->origin->sourcemap;
    frame->origin = origin;
    return true;
}

/* Resolves a frame with the map of its script into `entry`; false if the map has nothing at its position, or when out of memory.
 * Frames count lines and columns from 1, and a missing column is the first one; maps count from 0. */
static bool map_frame(struct js_resolving *s, const struct js_module *module, const struct js_frame *raw,
                      struct js_entry *entry)
{
    struct sl_smcache_position position;
    uint64_t column = raw->column.value ? raw->column.value - 1 : 0;
    if (!sl_smcache_lookup(module->item->loaded, (uint32_t)(raw->line.value - 1), (uint32_t)column, &position))
        return false;
    struct js_frame *frame = make_result(s, raw);
    if (!frame)
        return false;
    *entry = (struct js_entry){.frame = frame, .symbolicated = true};
    if (!js_set_origin(s, module, module->label, frame))
        return false;
    set_calls(s, module, raw, frame, position);
    return true;
}

/* Adds an error that says why the script has no usable map. A frame whose map is malformed also says which map that is. */
static void js_add_map_error(struct js_resolving *s, const struct js_module *module, struct js_frame *raw)
{
    struct js_error error = {.abs_path = raw->abs_path, .problem = JS_MISSING_SOURCEMAP};
    if (module->code == SL_MALFORMED) {
        error.problem = JS_MALFORMED_SOURCEMAP;
        error.sourcemap = module->label;
        js_set_origin(s, module, (struct sl_str){NULL, 0}, raw);
    } else if (module->map && module->map->disabled) { /* the request forbids downloads from the web */
        error.problem = JS_SCRAPING_DISABLED;
    }
    js_add_error(s->request, error);
}

/* Resolves the frame into `entry`. If that fails, `entry` gets the frame as it was sent, the error is recorded, and false is
 * returned. A script that refers to no map is no error: its frames only get lines of the script. */
static bool resolve_frame(struct js_resolving *s, const struct js_entry *sent, struct js_entry *entry)
{
    struct js_request *r = s->request;
    struct js_frame *raw = sent->sent_size ? NULL : sent->frame; /* NULL: it has no position */
    struct js_module *module = raw ? sl_map_get(&r->modules_by_path, raw->abs_path) : NULL;
    *entry = *sent;
    if (!module)
        return false;
    if (raw->line.value == 0) {
        js_add_error(r, (struct js_error){.abs_path = raw->abs_path,
                                          .problem = JS_INVALID_LOCATION,
                                          .line = raw->line,
                                          .column = raw->column});
        return false;
    }
    if (module->minified->code != SL_OK) {
        enum js_problem problem = module->minified->disabled ? JS_SCRAPING_DISABLED : JS_MISSING_SOURCE;
        js_add_error(r, (struct js_error){.abs_path = raw->abs_path, .problem = problem});
        return false;
    }
    if (r->apply_source_context != SL_BOOL_FALSE)
        js_set_script_lines(s, raw, module);
    if (!module->has_map)
        return false;
    if (!module->item) {
        js_add_map_error(s, module, raw);
        return false;
    }
    if (map_frame(s, module, raw, entry))
        return true;
    /* unlike the error above this one always has a column, 0 if none was sent */
    js_add_error(r, (struct js_error){.abs_path = raw->abs_path,
                                      .problem = JS_INVALID_LOCATION,
                                      .line = raw->line,
                                      .column = {true, raw->column.value}});
    return false;
}

/* In a trace of a text, with the callee first: leaves out the frames of functions that the map hides (is_hidden), if their caller is
 * known and the line of the text has nothing but the frame (is_alone). A hidden function with the name and file of its caller is a part
 * of the caller that the compiler moved out. The caller then gets the position in that part, which is more exact than the position of
 * the call. */
static void leave_out_hidden(const struct js_request *r, const struct js_trace *sent, struct js_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        struct js_entry *entry = &trace->frames[i], *next = i + 1 < trace->count ? &trace->frames[i + 1] : NULL;
        if (!entry->symbolicated)
            continue;
        /* the next frame is the caller, unless the text says that it is not */
        bool is_called = next && next->symbolicated && !js_text_frame(r, sent->frames[i].frame)->is_apart;
        for (struct js_text_frame *text = js_text_frame(r, entry->frame); text; text = js_text_frame(r, text->call)) {
            struct js_frame *caller = text->call ? text->call : is_called ? next->frame : NULL;
            if (!text->is_hidden || !caller || !text->is_alone)
                continue;
            text->is_left_out = true;
            if (sl_str_equal(text->frame.function, caller->function) &&
                sl_str_equal(text->frame.abs_path, caller->abs_path)) {
                caller->line = text->frame.line;
                caller->column = text->frame.column;
            }
        }
    }
}

/* Resolves the frames, callers first: the name by which a caller calls a function helps to name that function's frame. The name is
 * forgotten at a frame that was not resolved, or whose next line is not its caller. Frames for which the answer's limit leaves no memory
 * stay as they were sent and are counted. From traces of a text, hidden functions are then left out. */
void js_resolve(struct js_request *r)
{
    struct js_resolving s = {.request = r};
    for (size_t t = 0; t < r->trace_count && !r->out_of_memory; t++) {
        size_t count = r->raw[t].count;
        s.caller = (struct sl_str){NULL, 0};
        for (size_t n = 0; n < count && !r->out_of_memory; n++) {
            size_t i = r->callee_first ? count - 1 - n : n;
            if (!answer_limit_has_memory(r->limit)) {
                r->results[t].frames[i] = r->raw[t].frames[i];
                r->limit->omitted++;
                continue;
            }
            const struct js_entry *sent = &r->raw[t].frames[i];
            const struct js_text_frame *text = sent->sent_size ? NULL : js_text_frame(r, sent->frame);
            if (text && text->is_apart)
                s.caller = (struct sl_str){NULL, 0};
            if (!resolve_frame(&s, sent, &r->results[t].frames[i]))
                s.caller = (struct sl_str){NULL, 0};
        }
        if (r->is_of_text)
            leave_out_hidden(r, &r->raw[t], &r->results[t]);
    }
    sl_buf_free(&s.line);
}

/* Frames whose source was not found get no lines, and the answer lists an error. Stops when the answer's limit leaves no memory. */
void js_add_sources(struct js_request *r)
{
    struct js_resolving s = {.request = r};
    for (size_t i = 0; i < r->want_count && !r->out_of_memory && answer_limit_has_memory(r->limit); i++) {
        const struct js_missing_source *want = &r->wants[i];
        if (want->file->code == SL_OK)
            js_set_lines(&s, want->frame, js_file_cursor(want->file));
        else
            js_add_error(r, (struct js_error){.abs_path = want->abs_path,
                                              .problem = JS_MISSING_SOURCE_CONTENT,
                                              .source = want->path,
                                              .sourcemap = want->sourcemap});
    }
    sl_buf_free(&s.line);
}
