/* Answers as the options want them: which format, which threads, and where to. */
#include "cli/symbolicate/dump_print.h"
#include "cli/symbolicate/symbolicate.h"

#include <stdio.h>
#include <unistd.h>

#include "id/id.h"

enum { OF_STACKS = 1 << SORT_DUMP | 1 << SORT_REPORT | 1 << SORT_NATIVE, OF_SCRIPTS = 1 << SORT_JS | 1 << SORT_JVM };

static const struct answer_format answer_formats[] = {
    {.name = "json", .sorts = ~0u},
    {"compact", OF_STACKS, answer_print_compact, &view_program, .crashed_only = true, .needs_candidates = true},
    {"compact", 1 << SORT_JS, answer_print_compact, &view_js, .needs_candidates = true},
    {"compact", 1 << SORT_JVM, answer_print_compact, &view_jvm, .needs_candidates = true},
    {"pretty", OF_STACKS, answer_print_pretty, &view_program, .crashed_only = true, .needs_candidates = true},
    {"pretty", 1 << SORT_JS, answer_print_pretty, &view_request_lines, .needs_candidates = true},
    {"pretty", 1 << SORT_JVM, answer_print_pretty, &view_request_lines, .needs_candidates = true},
    {"full", OF_STACKS, answer_print_full, &view_program_full, .needs_candidates = true},
    {"full", 1 << SORT_JS, answer_print_full, &view_js_full},
    {"full", 1 << SORT_JVM, answer_print_full, &view_jvm_full},
    {"markdown", OF_STACKS, answer_print_markdown, &view_program_full, .needs_candidates = true},
    {"markdown", 1 << SORT_JS, answer_print_markdown, &view_js_full},
    {"markdown", 1 << SORT_JVM, answer_print_markdown, &view_jvm_full},
    {"stackwalk", 1 << SORT_DUMP, answer_print_stackwalk, .needs_walk = true, .needs_registers = true,
     .skips_writer = true, .needs_candidates = true},
    {"machine", 1 << SORT_DUMP, answer_print_machine, .needs_walk = true, .skips_writer = true,
     .needs_candidates = true},
    {"minidump-json", 1 << SORT_DUMP, answer_print_minidump_json, .needs_walk = true, .needs_facts = true,
     .is_json = true},
};
enum { FORMATS = sizeof answer_formats / sizeof *answer_formats };

static bool is_request(enum answer_sort sort)
{
    return OF_SCRIPTS >> sort & 1;
}

static void wrong_format(const char *name, enum answer_sort sort)
{
    char names[160] = "";
    size_t size = 0;
    for (size_t i = 0; i < FORMATS; i++)
        if (answer_formats[i].sorts >> sort & 1)
            size +=
                (size_t)snprintf(names + size, sizeof names - size, "%s%s", size ? ", " : "", answer_formats[i].name);
    options_wrong("symbolicate", "--format: '%s' is none of: %s", name, names);
}

const struct answer_format *answer_format_of(const struct options *o, enum answer_sort sort)
{
    static const char *const threads[] = {"crashed-only", "all-threads", "thread", "thread-index"};
    bool people = isatty(STDOUT_FILENO) && sort != SORT_MOZILLA && !symbolicate_as_symbolicli();
    const char *name = symbolicate_format(o, people ? "compact" : "json");
    const struct answer_format *format = NULL;
    int chosen = 0;
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(answer_formats[i].name, name) == 0 && answer_formats[i].sorts >> sort & 1)
            format = &answer_formats[i];
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        chosen += option_given(o, threads[i]);
    if (!format)
        wrong_format(name, sort);
    else if (chosen > 1)
        options_wrong("symbolicate", "only one of --crashed-only, --all-threads, --thread and --thread-index");
    else if ((option_given(o, "stack-contents") || option_given(o, "stack-pointers")) &&
             strcmp(format->name, "stackwalk") != 0)
        options_wrong("symbolicate", "--stack-contents and --stack-pointers are for --format stackwalk");
    else if (chosen && !option_given(o, "all-threads") && (!format->print || format->is_json))
        options_wrong("symbolicate", "JSON has all threads");
    else if (chosen && !option_given(o, "all-threads") && is_request(sort))
        options_wrong("symbolicate", "these stacks are none of threads");
    else
        return format;
    return NULL;
}

static bool is_thread_number(const struct answer_format *format, const struct walked_dump *walked, size_t thread,
                             uint64_t number)
{
    if (!format->skips_writer)
        return thread == number;
    return !dump_thread_is_writer(walked, thread) && dump_thread_number(walked, thread) == number;
}

/* The index of the thread that the options ask for. False: a usage error, which was reported. */
static bool choose_thread(const struct options *o, const struct answer_format *format, const struct answer *answer,
                          const struct walked_dump *walked, int64_t *thread)
{
    uint64_t id, index;
    bool by_id = option_given(o, "thread"), by_index = option_given(o, "thread-index");
    bool all = option_given(o, "all-threads") || (format->view && format->view->is_request) ||
               (!format->crashed_only && !option_given(o, "crashed-only") && !option_given(o, "brief"));
    if (!option_number(o, "thread", "symbolicate", &id) || !option_number(o, "thread-index", "symbolicate", &index))
        return false;
    *thread = all ? ALL_THREADS : answer_crashed_thread(answer);
    for (size_t t = 0; t < answer->thread_count && (by_id || by_index); t++)
        if (by_id ? answer->threads[t].id.set && answer->threads[t].id.value == id
                  : is_thread_number(format, walked, t, index)) {
            *thread = (int64_t)t;
            return true;
        }
    if (by_id || by_index)
        options_wrong("symbolicate", "no such thread");
    return !by_id && !by_index;
}

static bool colours(const struct options *o)
{
    return !option_given(o, "output") && output_colour(option_value(o, "color", NULL));
}

static int put_stacks(const struct options *o, const struct answer_format *format, const struct answer *answer,
                      const struct walked_dump *walked, struct sl_buf *out)
{
    struct answer_style style = {.colour = colours(o),
                                 .unused = option_given(o, "verbose"),
                                 .candidates = option_given(o, "candidates"),
                                 .brief = option_given(o, "brief"),
                                 .stack_contents = option_given(o, "stack-contents"),
                                 .stack_pointers = option_given(o, "stack-pointers"),
                                 .view = format->view,
                                 .walked = walked};
    if (!option_number(o, "context", "symbolicate", &style.context) ||
        !choose_thread(o, format, answer, walked, &style.thread))
        return 2;
    bool is_chosen = option_given(o, "thread") || option_given(o, "thread-index");
    style.exception = is_chosen ? ALL_THREADS : answer_exception_thread(answer);
    return !out->failed && format->print(answer, &style, out) ? 0 : report_no_memory();
}

/* ---- what was not found ---- */

const struct missing_words missing_symbols = {
    .wanted = "symbols",
    .unit = "modules on the stack",
    .advice = "run with -f full -d to see every location",
    .no_place = "nowhere to search: pass --symbols with a directory or URL",
};

static bool is_status(struct sl_str status, const char *name)
{
    return sl_str_equal(status, sl_str(name));
}

/* "host:port" of a URL; else all of it. */
static struct sl_str host_of(struct sl_str location)
{
    const char *scheme = location.size ? memmem(location.data, location.size, "://", 3) : NULL;
    if (!scheme)
        return location;
    size_t begin = (size_t)(scheme - location.data) + 3;
    const char *slash = memchr(location.data + begin, '/', location.size - begin);
    size_t end = slash ? (size_t)(slash - location.data) : location.size;
    return (struct sl_str){location.data + begin, end - begin};
}

/* What became of a file that might have been the one. A server that fails does so for all files; a file that cannot be read is one. */
static void describe_outcome(struct missing_report *report, struct sl_str location,
                             const struct answer_outcome *outcome)
{
    static const char *const harmless[] = {"", "ok", "notfound", "cancelled"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (is_status(outcome->status, harmless[i]))
            return;
    bool is_server = !is_status(outcome->status, "malformed");
    struct sl_str why = outcome->details.size ? outcome->details : outcome->status;
    if (is_status(outcome->status, "noperm"))
        why = SL_STR("permission denied");
    missing_failure(report, is_server ? host_of(location) : location, why);
}

/* As directories of symbols have it: Breakpad's form of the debug id; else the code id, or nothing. */
static struct sl_str shown_id(const struct answer_module *module, char text[SL_DEBUG_ID_TEXT])
{
    struct sl_debug_id id;
    if (!sl_debug_id_parse(module->debug_id, &id))
        return module->code_id;
    sl_debug_id_format_breakpad(&id, text);
    return sl_str(text);
}

static void describe_module(const struct answer_module *module, struct missing_report *report)
{
    struct sl_str name = path_file_name(module->code_file.size ? module->code_file : module->debug_file);
    char text[SL_DEBUG_ID_TEXT];
    struct sl_str id = shown_id(module, text);
    bool found = is_status(module->debug_status, "found");
    if (found ? missing_found(report, name, id) : missing_thing(report, name, id))
        missing_count(report, !found, 1);
    for (size_t k = 0; k < module->candidate_count && !found; k++) {
        const struct answer_candidate *c = &module->candidates[k];
        describe_outcome(report, c->location, &c->download);
        describe_outcome(report, c->location, &c->debug);
    }
}

void answer_describe_missing(const struct answer *answer, struct missing_report *report)
{
    for (size_t i = 0; i < answer->module_count; i++)
        if (!is_status(answer->modules[i].debug_status, "unused"))
            describe_module(&answer->modules[i], report);
}

/* ---- the answer ---- */

/* What is written, in `out` or in the answer's own place. */
static int put_answer(const struct options *o, const struct answer_format *format, const struct answer *answer,
                      const struct walked_dump *walked, struct sl_buf *text, struct sl_buf *out, struct sl_str *written)
{
    bool good = true;
    if (!format->print) {
        good = put_answer_json(text, option_given(o, "indent"), out, written);
    } else {
        bool indent = option_given(o, "indent") && format->is_json;
        struct sl_buf compact = {0};
        int status = put_stacks(o, format, answer, walked, indent ? &compact : out);
        if (indent && !status)
            put_indented(sl_buf_view(&compact), out);
        sl_buf_free(&compact);
        *written = sl_buf_view(out);
        return status || !out->failed ? status : report_no_memory();
    }
    return good && !out->failed ? 0 : report_no_memory();
}

/* An answer that is written as it is need not be read. */
int answer_tell(const struct options *o, const struct answer_format *format, enum answer_sort sort,
                const struct walked_dump *walked, struct missing_report *missing, struct sl_buf *text)
{
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct answer answer = {.thread_count = 0};
    struct sl_str written;
    bool stacks = OF_STACKS >> sort & 1, checks = stacks && option_given(o, "fail-on-missing");
    bool reads = checks || format->print;
    bool good = !reads || answer_read(sl_buf_view(text), &arena, &answer);
    if (good && reads && stacks)
        answer_describe_missing(&answer, missing); /* before its text is written */
    int status = good ? put_answer(o, format, &answer, walked, text, &out, &written) : report_no_memory();
    if (!status)
        status = symbolicate_write(o, written);
    missing->advised = option_given(o, "candidates");
    if (!status && (checks || (format->print && !format->is_json)))
        missing_tell(missing, o);
    status = missing_status(missing, o, status);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return status;
}
