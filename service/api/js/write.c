/* Writes the answer of POST /symbolicate-js. Members are in the order in which Symbolicator writes them. */
#include <stdlib.h>

#include "api/js/js.h"
#include "base/json_write.h"

/* ---- frames ---- */

/* Writes the member `data`: which map the frame was resolved with, and whether it was resolved. */
static void write_data(struct sl_json_writer *w, const struct js_frame_origin *origin, bool symbolicated)
{
    sl_json_member_object(w, "data");
    if (origin) {
        sl_json_member_if_set(w, "sourcemap", origin->sourcemap);
        if (origin->json.data)
            sl_json_member_raw(w, "sourcemap_origin", origin->json);
        sl_json_member_if_set(w, "resolved_with", origin->resolved_with);
    }
    sl_json_member_boolean(w, "symbolicated", symbolicated);
    sl_json_end_object(w);
}

enum { NO_INDEX = -1 }; /* the frame is written without `index` */

/* Writes a frame, with its `index` among those that were sent unless that is NO_INDEX. Its source lines are those that were found, else
 * those that were sent. */
static void write_one(struct sl_json_writer *w, const struct js_frame *frame, bool symbolicated, int64_t index)
{
    sl_json_begin_object(w);
    if (index != NO_INDEX)
        sl_json_member_u64(w, "index", (uint64_t)index);
    sl_json_member_if_set(w, "platform", frame->platform);
    sl_json_member_if_set(w, "function", frame->function);
    sl_json_member_if_set(w, "filename", frame->filename);
    sl_json_member_if_set(w, "module", frame->module);
    sl_json_member_if_set(w, "abs_path", frame->abs_path);
    json_member_number(w, "lineno", frame->line);
    json_member_number(w, "colno", frame->column);
    if (frame->context)
        frame_lines_write(w, frame->context);
    else
        frame_lines_write_sent(w, frame->pre_context, frame->context_line, frame->post_context);
    write_data(w, frame->origin, symbolicated);
    sl_json_end_object(w);
}

/* Writes a frame, and the frames of functions into which it was inlined. A frame without position is copied from the request. */
static void js_write_frame(struct sl_json_writer *w, const struct js_request *r, const struct js_entry *entry,
                           int64_t index)
{
    if (entry->sent_size) {
        sl_json_put_raw(w, (struct sl_str){entry->sent, entry->sent_size});
        return;
    }
    for (const struct js_frame *frame = entry->frame; frame; frame = js_next_call(r, frame))
        if (!js_is_left_out(r, frame))
            write_one(w, frame, entry->symbolicated, index);
}

/* Writes the traces. Frames that would exceed the answer's limit, less `behind` bytes for what is written later, are omitted and
 * counted. `numbered`: frames have their index among those that were sent. */
static void js_write_traces(struct sl_json_writer *w, const struct js_request *r, const char *key,
                            const struct js_trace *traces, bool numbered, struct answer_limit *limit, uint64_t behind)
{
    sl_json_member_array(w, key);
    for (size_t t = 0; t < r->trace_count; t++) {
        sl_json_begin_object(w);
        sl_json_member_array(w, "frames");
        for (size_t i = 0; i < traces[t].count; i++) {
            if (!answer_limit_fits(limit, w->out, behind)) {
                limit->omitted += traces[t].count - i;
                break;
            }
            js_write_frame(w, r, &traces[t].frames[i], numbered ? (int64_t)i : NO_INDEX);
        }
        sl_json_end_array(w);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* ---- errors ---- */

/* Compares two optional numbers; an absent one comes first. */
static int optional_order(struct sl_opt_u64 a, struct sl_opt_u64 b)
{
    return a.set != b.set ? a.set - b.set : (a.value > b.value) - (a.value < b.value);
}

/* Compares errors by path, kind and all other members, so that only equal errors compare as equal. */
static int error_order(const void *left, const void *right)
{
    const struct js_error *a = left, *b = right;
    int order = sl_str_compare(a->abs_path, b->abs_path);
    order = order ? order : (a->problem > b->problem) - (a->problem < b->problem);
    order = order ? order : optional_order(a->line, b->line);
    order = order ? order : optional_order(a->column, b->column);
    order = order ? order : sl_str_compare(a->source, b->source);
    return order ? order : sl_str_compare(a->sourcemap, b->sourcemap);
}

/* Writes an error. Only JS_INVALID_LOCATION has line and `col`, which is null if the frame has no column. The map's name is the member
 * `url` if the map is malformed, otherwise `sourcemap`. */
static void js_write_error(struct sl_json_writer *w, const struct js_error *error)
{
    static const char *const types[] = {
        [JS_INVALID_LOCATION] = "invalid_location",   [JS_MISSING_SOURCE_CONTENT] = "missing_source_content",
        [JS_MISSING_SOURCE] = "missing_source",       [JS_MALFORMED_SOURCEMAP] = "malformed_sourcemap",
        [JS_MISSING_SOURCEMAP] = "missing_sourcemap", [JS_SCRAPING_DISABLED] = "scraping_disabled",
    };
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "abs_path", error->abs_path);
    sl_json_member_if_set(w, "type", sl_str(types[error->problem]));
    if (error->problem == JS_INVALID_LOCATION) {
        json_member_number(w, "line", error->line);
        json_member_number(w, "col", error->column);
        if (!error->column.set)
            sl_json_member_null(w, "col");
    }
    sl_json_member_if_set(w, "source", error->source);
    sl_json_member_if_set(w, error->problem == JS_MALFORMED_SOURCEMAP ? "url" : "sourcemap", error->sourcemap);
    sl_json_end_object(w);
}

/* Writes each error once, until the answer's limit is reached. Sorting makes equal errors adjacent. */
static void js_write_errors(struct sl_json_writer *w, struct js_error *errors, size_t count,
                            const struct answer_limit *limit)
{
    if (!count)
        return;
    qsort(errors, count, sizeof *errors, error_order);
    sl_json_member_array(w, "errors");
    for (size_t i = 0; i < count && answer_limit_fits(limit, w->out, 0); i++)
        if (i == 0 || error_order(&errors[i - 1], &errors[i]) != 0)
            js_write_error(w, &errors[i]);
    sl_json_end_array(w);
}

/* ---- scraping ---- */

/* Orders attempts by URL, then by the order of the look-ups. */
static int attempt_order(const void *left, const void *right)
{
    const struct js_file *const *a = left, *const *b = right;
    int order = sl_str_compare((*a)->key.path, (*b)->key.path);
    return order ? order : ((*a)->number > (*b)->number) - ((*a)->number < (*b)->number);
}

/* Writes an attempt to download a file from the web. */
static void write_attempt(struct sl_json_writer *w, const struct js_file *file)
{
    static const char *const states[] = {
        [JS_NOT_ATTEMPTED] = "not_attempted", [JS_SUCCESS] = "success", [JS_FAILURE] = "failure"};
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "url", file->key.path);
    sl_json_member_if_set(w, "status", sl_str(states[file->attempt.status]));
    sl_json_member_if_set(w, "reason", sl_str(file->attempt.reason));
    /* texts with data NULL write no member: only failures have a reason */
    if (file->attempt.details.size)
        sl_json_member_if_set(w, "details", file->attempt.details);
    sl_json_end_object(w);
}

/* Writes the attempts to download files, ordered by URL; no member if there was none. Files without a path had none. */
static void write_attempts(struct sl_json_writer *w, const struct js_request *r)
{
    const struct js_file **sorted = SL_ARENA_ARRAY(r->arena, const struct js_file *, r->finder.file_count + 1);
    size_t count = 0;
    w->out->failed |= !sorted;
    for (const struct js_file *file = r->finder.files; sorted && file; file = file->next)
        if (file->attempt.status != JS_NO_PATH)
            sorted[count++] = file;
    if (!count)
        return;
    qsort(sorted, count, sizeof *sorted, attempt_order);
    sl_json_member_array(w, "scraping_attempts");
    for (size_t i = 0; i < count; i++)
        write_attempt(w, sorted[i]);
    sl_json_end_array(w);
}

/* ---- bundles ---- */

/* Writes the ids of the bundles in which files were found, each once; no member if there are none. */
static void write_used_bundles(struct sl_json_writer *w, const struct js_request *r)
{
    struct sl_str *ids = SL_ARENA_ARRAY(r->arena, struct sl_str, r->finder.file_count + 1);
    size_t count = 0;
    w->out->failed |= !ids;
    for (const struct js_file *file = r->finder.files; ids && file; file = file->next)
        if (file->origin == JS_BUNDLED)
            ids[count++] = file->request.file->location;
    if (!count)
        return;
    qsort(ids, count, sizeof *ids, sl_str_order);
    sl_json_member_array(w, "used_artifact_bundles");
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !sl_str_equal(ids[i - 1], ids[i]))
            sl_json_put_str(w, ids[i]);
    sl_json_end_array(w);
}

/* ---- all ---- */

/* Writes an array of the bundle and the file in it, as type, path and debug id. */
static void write_bundled(struct sl_json_writer *w, const struct js_file *file)
{
    char id[SL_DEBUG_ID_TEXT];
    sl_json_member_array(w, "bundled");
    sl_json_put_str(w, file->uri);
    sl_json_begin_object(w);
    sl_json_member_object(w, js_type_name(file->key.type));
    sl_json_member_if_set(w, "abs_path", file->key.path);
    if (file->key.has_id) {
        sl_debug_id_format(&file->key.id, id);
        sl_json_member_if_set(w, "debug_id", sl_str(id));
    }
    sl_json_end_object(w);
    sl_json_end_object(w);
    sl_json_end_array(w);
}

struct sl_str js_origin_json(const struct js_file *file, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    sl_json_begin_object(&w);
    if (file->origin == JS_BUNDLED)
        write_bundled(&w, file);
    else
        sl_json_member_if_set(&w, file->origin == JS_SCRAPED ? "scraped_file" : "individual_file", file->uri);
    sl_json_end_object(&w);
    return sl_buf_move_to_arena(&text, arena);
}

/* Half of the limit is kept free for the raw traces, which follow the resolved ones. */
void js_write(const struct js_request *r, struct sl_buf *out)
{
    struct sl_json_writer writer = sl_json_writer(out), *w = &writer;
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "status", SL_STR("completed"));
    js_write_traces(w, r, "stacktraces", r->results, r->is_of_text, r->limit, r->limit->max / 2);
    js_write_traces(w, r, "raw_stacktraces", r->raw, false, r->limit, 0);
    js_write_errors(w, r->errors, r->error_count, r->limit);
    if (r->config->js.used_artifact_bundles)
        write_used_bundles(w, r);
    write_attempts(w, r);
    answer_limit_write(r->limit, w);
    sl_json_end_object(w);
}
