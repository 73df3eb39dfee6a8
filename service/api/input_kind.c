/* Detects the format of an input by its content. */
#include "api/input_kind.h"

#include <string.h>

#include "apple/apple.h"
#include "apple/samples.h"
#include "base/json.h"
#include "elfcore/elfcore.h"
#include "js/stack.h"
#include "minidump/microdump.h"
#include "text/text.h"

static const struct {
    const char *name;
    enum input_kind kind;
} kind_names[] = {
    {"minidump", INPUT_MINIDUMP},   {"apple", INPUT_APPLE}, {"trace", INPUT_TRACE},     {"jsstack", INPUT_JSSTACK},
    {"request", INPUT_REQUEST},     {"event", INPUT_EVENT}, {"mozilla", INPUT_MOZILLA}, {"profile", INPUT_PROFILE},
    {"addresses", INPUT_ADDRESSES}, {"text", INPUT_TEXT},   {"core", INPUT_CORE},
};

const char *input_kind_name(enum input_kind kind)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++)
        if (kind_names[i].kind == kind)
            return kind_names[i].name;
    return NULL;
}

bool input_kind_parse(const char *name, enum input_kind *kind)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++)
        if (strcmp(kind_names[i].name, name) == 0) {
            *kind = kind_names[i].kind;
            return true;
        }
    return false;
}

static bool begins(struct sl_bytes bytes, const char *text)
{
    return bytes.size >= strlen(text) && memcmp(bytes.data, text, strlen(text)) == 0;
}

/* True if the first line of the text is a complete JSON value, as the header of an Apple report (`.ips`) is. */
static bool has_header_line(struct sl_str text)
{
    struct sl_arena arena = {0};
    const char *end = memchr(text.data, '\n', text.size);
    struct sl_json j = sl_json((struct sl_str){text.data, end ? (size_t)(end - text.data) : 0}, &arena, false);
    sl_json_skip(&j);
    bool is_header = sl_json_end(&j);
    sl_arena_free(&arena);
    return is_header;
}

/* True if the text has a second Apple report in JSON behind the first. */
static bool has_several_reports(struct sl_str text)
{
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_str line;
    bool was_in_report = false, ends = false;
    sl_text_begin(&reader);
    while (!ends && sl_text_next_line(&text, &line)) { /* up to the end of the first report */
        while (sl_text_next(&reader, &line, &piece))
            ;
        ends = was_in_report && !sl_text_is_in_report(&reader);
        was_in_report = sl_text_is_in_report(&reader);
    }
    sl_text_end(&reader);
    text = sl_str_trimmed(text);
    return ends && text.size && text.data[0] == '{' && has_header_line(text);
}

/* Returns the kind of a text that begins with `{`. It is an Apple report if it is two JSON objects, the first of them in one line, or one
 * object with threads and images. Other objects are recognised by their members; an object with none of the known members counts as an
 * event. */
static enum input_kind kind_of_object(struct sl_str text)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, false);
    struct sl_str key;
    bool has_stacks = false, has_jobs = false, has_images = false;
    bool has_meta = false, has_tables = false, has_processes = false;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key)) {
            has_jobs |= sl_str_equal(key, SL_STR("jobs")) || sl_str_equal(key, SL_STR("memoryMap"));
            has_stacks |= sl_str_equal(key, SL_STR("stacktraces"));
            has_images |= sl_str_equal(key, SL_STR("usedImages"));
            has_meta |= sl_str_equal(key, SL_STR("meta")) && sl_json_peek(&j) == SL_JSON_OBJECT;
            has_tables |= (sl_str_equal(key, SL_STR("threads")) || sl_str_equal(key, SL_STR("libs"))) &&
                          sl_json_peek(&j) == SL_JSON_ARRAY;
            has_processes |= sl_str_equal(key, SL_STR("processByPid")); /* of a stackshot, an Apple report */
            sl_json_skip(&j);
        }
    bool is_document = sl_json_end(&j);
    sl_arena_free(&arena);
    if (!is_document && has_header_line(text))
        return has_several_reports(text) ? INPUT_TEXT : INPUT_APPLE;
    if (has_jobs)
        return INPUT_MOZILLA;
    if (has_meta && has_tables && !has_stacks)
        return INPUT_PROFILE;
    if ((has_images && has_tables) || has_processes)
        return INPUT_APPLE;
    return has_stacks ? INPUT_REQUEST : INPUT_EVENT;
}

/* Looks for stacks in the first LINES lines of a text. Returns INPUT_TEXT if there are native frames without names, or LLVM symbolizer
 * markup; else INPUT_JSSTACK if there are JavaScript frames with a URL, without which they cannot be symbolicated; else INPUT_UNKNOWN. */
static enum input_kind kind_of_stacks(struct sl_str text)
{
    enum { LINES = 10000 };
    struct sl_text reader;
    struct sl_text_piece piece;
    struct sl_str line;
    bool native = false, script = false;
    sl_text_begin(&reader);
    for (unsigned i = 0; i < LINES && !native && sl_text_next_line(&text, &line); i++)
        while (sl_text_next(&reader, &line, &piece)) {
            /* SL_TEXT_MADE: a line that the reader makes from markup that lists a module */
            native |= (piece.kind == SL_TEXT_NATIVE && !piece.native.is_named) || piece.kind == SL_TEXT_MADE;
            script |= piece.kind == SL_TEXT_SCRIPT && piece.js.url.size;
        }
    sl_text_end(&reader);
    return native ? INPUT_TEXT : script ? INPUT_JSSTACK : INPUT_UNKNOWN;
}

/* True if the first HEAD bytes of the input contain no NUL. */
static bool looks_like_text(struct sl_bytes bytes)
{
    enum { HEAD = 1 << 16 };
    return !bytes.size || !memchr(bytes.data, 0, bytes.size < HEAD ? bytes.size : HEAD);
}

/* First by magic bytes, then by the members of a JSON object, at last by lines of text. */
enum input_kind input_kind_detect(struct sl_bytes bytes)
{
    /* how Apple's crash reports begin; "-----" is above the line "Translated Report" */
    static const char *const reports[] = {"Incident Identifier:", "-----", "Process:"};
    size_t at = begins(bytes, "\xEF\xBB\xBF") ? 3 : 0; /* behind a byte order mark */
    if (begins(bytes, "MDMP") || begins(bytes, "PMDM"))
        return INPUT_MINIDUMP;
    struct sl_str whole = {(const char *)bytes.data, bytes.size};
    if (sl_elfcore_is(bytes))
        return INPUT_CORE;
    /* formats without a reader; one of them, Android tombstones, is text with native frames */
    if (input_unread_kind(bytes))
        return looks_like_text(bytes) && kind_of_stacks(whole) == INPUT_TEXT ? INPUT_TEXT : INPUT_UNKNOWN;
    while (at < bytes.size && sl_is_blank((char)bytes.data[at]))
        at++;
    struct sl_bytes rest = sl_bytes_from(bytes, at);
    struct sl_str text = {(const char *)rest.data, rest.size};
    if (begins(rest, "{") && !begins(rest, "{{{")) /* "{{{" begins markup of LLVM's symbolizer, not JSON */
        return sl_apple_is_metrickit(text) ? INPUT_APPLE : kind_of_object(text);
    if (sl_microdump_is_in(rest)) /* before the reports: Android logs begin with dashes too */
        return INPUT_MINIDUMP;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (begins(rest, reports[i]))
            return INPUT_APPLE;
    if (sl_apple_is_text(text) || sl_samples_is_text(text))
        return INPUT_APPLE;
    return looks_like_text(rest) ? kind_of_stacks(text) : INPUT_UNKNOWN;
}
