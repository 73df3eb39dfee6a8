/* What the input of `symloom symbolicate` is. */
#include "cli/symbolicate/symbolicate.h"

#include "base/json.h"
#include "js/stack.h"

static const struct {
    const char *name;
    enum input_kind kind;
} kind_names[] = {
    {"minidump", INPUT_MINIDUMP}, {"apple", INPUT_APPLE}, {"trace", INPUT_TRACE},     {"jsstack", INPUT_JSSTACK},
    {"request", INPUT_REQUEST},   {"event", INPUT_EVENT}, {"mozilla", INPUT_MOZILLA},
};

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

/* What an object of JSON is by its members. Apple's reports, which are two objects, are what nothing else is. */
static enum input_kind kind_of_object(struct sl_str text)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, false);
    struct sl_str key;
    bool has_stacks = false, has_platform = false, has_event = false, has_jobs = false;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key)) {
            has_jobs |= sl_str_equal(key, SL_STR("jobs")) || sl_str_equal(key, SL_STR("memoryMap"));
            has_stacks |= sl_str_equal(key, SL_STR("stacktraces"));
            has_platform |= sl_str_equal(key, SL_STR("platform")) && sl_json_peek(&j) == SL_JSON_STRING;
            has_event |= sl_str_equal(key, SL_STR("event_id")) || sl_str_equal(key, SL_STR("debug_meta")) ||
                         (sl_str_equal(key, SL_STR("exception")) && sl_json_peek(&j) == SL_JSON_OBJECT);
            sl_json_skip(&j);
        }
    bool is_document = sl_json_end(&j);
    sl_arena_free(&arena);
    if (!is_document)
        return INPUT_APPLE;
    if (has_jobs)
        return INPUT_MOZILLA;
    return has_stacks ? INPUT_REQUEST : has_event || has_platform ? INPUT_EVENT : INPUT_APPLE;
}

static bool has_script_frames(struct sl_str text)
{
    enum { LINES = 10000 };
    struct sl_js_stack_frame frame;
    size_t at = 0;
    for (unsigned i = 0; i < LINES && at < text.size; i++) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size_t size = newline ? (size_t)(newline + 1 - text.data) - at : text.size - at;
        if (sl_js_stack_frame((struct sl_str){text.data + at, size}, &frame))
            return true;
        at += size;
    }
    return false;
}

enum input_kind input_kind_of(struct sl_bytes bytes)
{
    static const char *const reports[] = {"Inci", "----", "Proc"};
    size_t at = begins(bytes, "\xEF\xBB\xBF") ? 3 : 0;
    if (begins(bytes, "MDMP") || begins(bytes, "PMDM"))
        return INPUT_MINIDUMP;
    while (at < bytes.size && sl_is_blank((char)bytes.data[at]))
        at++;
    struct sl_bytes rest = sl_bytes_from(bytes, at);
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (begins(rest, reports[i]))
            return INPUT_APPLE;
    struct sl_str text = {(const char *)rest.data, rest.size};
    if (begins(rest, "{"))
        return kind_of_object(text);
    return has_script_frames(text) ? INPUT_JSSTACK : INPUT_UNKNOWN;
}
