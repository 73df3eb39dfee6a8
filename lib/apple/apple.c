/* Detects the format of a report. */
#include "apple/impl.h"
#include "apple/samples.h"

#include "base/buf.h"
#include "base/json_fields.h"

/* The results of a report may take MIN_BUDGET bytes and BUDGET_PER_BYTE for each byte of it; a real report needs less than half of that. */
enum { BUDGET_PER_BYTE = 4, MIN_BUDGET = 512 << 10 };
/* The same limit for sampling reports and stackshots, whose results are larger than their text: a sampling report writes a call once for
 * all paths through it, but the result repeats it in each path; a stackshot writes a frame as only two numbers. */
enum { SAMPLES_BUDGET_PER_BYTE = 48 };

void *apple_add(struct sl_arena_array *items, struct apple_budget *budget, size_t cost)
{
    if (cost > budget->left) {
        budget->used_up = true;
        return NULL;
    }
    budget->left -= cost;
    return sl_arena_array_add(items);
}

/* Returns the text from `at` on, without white space at its beginning. */
static struct sl_str rest_at(struct sl_str text, size_t at)
{
    while (at < text.size && sl_is_blank(text.data[at]))
        at++;
    return (struct sl_str){text.data + at, text.size - at};
}

static bool begins_object(struct sl_str text)
{
    return text.size && text.data[0] == '{';
}

/* Finds the JSON object at the beginning of `*text` and advances `*text` past it; returns false if there is none. */
static bool take_object(struct sl_str *text, struct sl_arena *arena, struct sl_str *object)
{
    struct sl_json j = sl_json(*text, arena, false);
    if (!begins_object(*text) || !sl_json_value(&j, object))
        return false;
    *text = rest_at(*text, j.at);
    return true;
}

struct apple_body_members { /* as JSON text */
    struct sl_str threads, images;
};

static const struct sl_field body_fields[] = {
    SL_FIELD_AS_IS(ARRAY, true, apple_body_members, threads, "threads"),
    SL_FIELD_AS_IS(ARRAY, true, apple_body_members, images, "usedImages"),
    SL_FIELDS_END,
};

/* True if the JSON object has the arrays `threads` and `usedImages`, as the body of a crash report. */
static bool is_body(struct sl_str object, struct sl_arena *arena)
{
    struct sl_json j = sl_json(object, arena, false);
    return sl_json_read_object(&j, body_fields, &(struct apple_body_members){.threads = {NULL, 0}});
}

/* Reads the JSON line in front of a report into `*header`. Values that are no strings stay empty: the report may still be readable. */
static void read_header(struct sl_str object, struct sl_arena *arena, struct apple_header *header)
{
    static const struct sl_field fields[] = {
        SL_FIELD(TEXT, false, apple_header, timestamp, "timestamp"),
        SL_FIELD(TEXT, false, apple_header, os_version, "os_version"),
        SL_FIELD(TEXT, false, apple_header, bug_type, "bug_type"),
        SL_FIELDS_END,
    };
    struct sl_json j = sl_json(object, arena, false);
    *header = (struct apple_header){.timestamp = {NULL, 0}};
    sl_json_read_object(&j, fields, header);
}

/* Console writes a report as readable text, the line "Full Report" and then the JSON. Returns the text from the beginning of that JSON on;
 * the whole text if there is no such line with JSON after it. */
static struct sl_str full_report(struct sl_str text)
{
    struct sl_str rest = text, line;
    bool found = false;
    while (sl_str_next_line(&rest, &line)) {
        if (found && begins_object(sl_str_trimmed(line)))
            return rest_at(text, (size_t)(line.data - text.data));
        found = found || sl_str_equal(sl_str_trimmed(line), SL_STR("Full Report"));
    }
    return text;
}

/* Sets `*text` to `bytes`, without byte order mark and leading white space; bytes that are not UTF-8 become U+FFFD. False if out of
 * memory. */
static bool decode_text(struct sl_bytes bytes, struct sl_arena *arena, struct sl_str *text)
{
    *text = (struct sl_str){(const char *)bytes.data, bytes.size};
    if (!sl_str_is_utf8(*text)) {
        struct sl_buf buf = {.budget = arena->budget};
        sl_buf_utf8(&buf, *text);
        *text = sl_buf_move_to_arena(&buf, arena);
        if (!text->data)
            return false;
    }
    *text = rest_at(*text, sl_str_starts(*text, SL_STR("\xEF\xBB\xBF")) ? 3 : 0);
    return true;
}

/* Fails with SL_MALFORMED if the report has used up its budget, which only a crafted report can do. Otherwise memory is short. */
static enum sl_code fail_for_memory(const struct sl_arena *arena, const struct apple_budget *budget,
                                    struct sl_error *error)
{
    return budget->used_up
               ? sl_fail(error, SL_MALFORMED,
                         "the report has more threads, images or registers than a file of its size can contain")
               : sl_budget_fail(arena->budget, error);
}

/* Turns a failure of the JSON reader into an error: SL_BUSY means there that memory or the report's budget is used up. */
static enum sl_code fail_for_json(const struct sl_json *j, const struct sl_arena *arena,
                                  const struct apple_budget *budget, struct sl_error *error)
{
    return sl_json_code(j) == SL_BUSY
               ? fail_for_memory(arena, budget, error)
               : sl_fail(error, SL_MALFORMED, "malformed JSON in the crash report: %s at offset %zu", j->problem,
                         j->at);
}

/* Reads a crash report in JSON. SL_MALFORMED with the position if it is malformed or its budget is used up; SL_BUSY if memory is short. */
static enum sl_code read_ips(struct sl_str body, const struct apple_header *header,
                             const struct sl_apple_options *options, struct sl_arena *arena,
                             struct apple_budget *budget, struct sl_crash *crash, struct sl_error *error)
{
    struct sl_json j;
    bool read = apple_read_ips(body, header, options, arena, budget, crash, &j);
    return read ? SL_OK : fail_for_json(&j, arena, budget, error);
}

/* Reads a stackshot into `crash`, with the larger limit of memory per byte of the report. */
static enum sl_code read_stackshot(struct sl_str body, const struct apple_header *header, struct sl_arena *arena,
                                   struct apple_budget *budget, struct sl_crash *crash, struct sl_error *error)
{
    struct sl_json j;
    budget->left = SAMPLES_BUDGET_PER_BYTE * (uint64_t)body.size + MIN_BUDGET;
    bool read = apple_read_stackshot(body, header, arena, budget, crash, &j);
    return read ? SL_OK : fail_for_json(&j, arena, budget, error);
}

/* Reads a text into `crash`: a sampling report, which has a larger limit of memory per byte, or a crash report. */
static enum sl_code read_text(struct sl_str text, const struct apple_header *header,
                              const struct sl_apple_options *options, struct sl_arena *arena,
                              struct apple_budget *budget, struct sl_crash *crash, struct sl_error *error)
{
    if (sl_samples_is_text(text)) {
        budget->left = SAMPLES_BUDGET_PER_BYTE * (uint64_t)text.size + MIN_BUDGET;
        enum sl_code code = apple_read_samples(text, header, options, arena, budget, crash, error);
        return code == SL_BUSY ? fail_for_memory(arena, budget, error) : code;
    }
    if (!apple_read_text(text, header, options, arena, budget, crash))
        return fail_for_memory(arena, budget, error);
    if (!crash->thread_count && !crash->module_count)
        return sl_fail(error, SL_MALFORMED, "the crash report has neither a thread nor an image");
    return SL_OK;
}

enum sl_code sl_apple_read(struct sl_bytes bytes, const struct sl_apple_options *options, struct sl_arena *arena,
                           struct sl_crash *crash, struct sl_error *error)
{
    struct apple_header header = {.timestamp = {NULL, 0}};
    struct apple_budget budget = {.left = BUDGET_PER_BYTE * (uint64_t)bytes.size + MIN_BUDGET};
    struct sl_str text, rest, first, body;
    *crash = (struct sl_crash){.crashed = true, .format = SL_FORMAT_MACHO};
    if (!decode_text(bytes, arena, &text))
        return sl_budget_fail(arena->budget, error);
    if (sl_apple_is_metrickit(text)) {
        size_t problem; /* its position, counted from 1; 0: memory or budget is used up */
        if (apple_read_metrickit(text, arena, &budget, crash, &problem))
            return SL_OK;
        return problem ? sl_fail(error, SL_MALFORMED, "malformed MetricKit payload at offset %zu", problem - 1)
                       : fail_for_memory(arena, &budget, error);
    }
    /* Forms of a report: a text alone; one JSON object (the body of an `.ips` file, or a stackshot); a JSON line with time and type (the
     * header), followed by a text or by such an object. Console puts a translated text in front of such JSON; then the JSON is read. */
    rest = begins_object(text) ? text : full_report(text);
    if (!take_object(&rest, arena, &first))
        return read_text(text, &header, options, arena, &budget, crash, error);
    if (is_body(first, arena))
        return read_ips(first, &header, options, arena, &budget, crash, error);
    if (apple_is_stackshot(first, arena))
        return read_stackshot(first, &header, arena, &budget, crash, error);
    read_header(first, arena, &header);
    if (!begins_object(rest)) /* header and text; if the header was not at the beginning, all is read as one text */
        return read_text(begins_object(text) ? rest : text, &header, options, arena, &budget, crash, error);
    body = rest; /* a malformed object is passed on whole: read_ips() reports the position */
    if (take_object(&rest, arena, &first)) {
        body = first;
        if (!is_body(body, arena))
            return apple_is_stackshot(body, arena)
                       ? read_stackshot(body, &header, arena, &budget, crash, error)
                       : sl_fail(error, SL_UNSUPPORTED, "unsupported apple report type " SL_STR_FMT,
                                 SL_STR_ARG(header.bug_type.size ? header.bug_type : SL_STR("unknown")));
    }
    return read_ips(body, &header, options, arena, &budget, crash, error);
}

bool sl_apple_is_text(struct sl_str text)
{
    enum { LINES = 20000 }; /* searched at most: limits the work for large texts */
    struct apple_thread_line thread;
    struct apple_frame_line frame;
    struct sl_str line;
    bool after_thread = false;
    for (size_t i = 0; i < LINES && sl_str_next_line(&text, &line); i++) {
        while (line.size && sl_is_blank(line.data[line.size - 1]))
            line.size--;
        if ((after_thread && apple_frame_line(line, &frame)) || sl_str_starts(line, SL_STR("Binary Images:")) ||
            sl_str_equal(line, SL_STR("Binary Images")))
            return true;
        /* blank lines may lie between the heading of a thread and its first frame */
        after_thread = apple_thread_header(line, &thread) || (after_thread && !line.size);
    }
    return false;
}
