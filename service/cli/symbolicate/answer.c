/* `symloom symbolicate`: parses answers to crash files and requests, chooses an output format and prints them. */
#include "cli/symbolicate/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "apple/apple.h"
#include "base/json_fields.h"
#include "cli/cli.h"
#include "cli/symbolicate/dump_print.h"
#include "cli/symbolicate/symbolicate.h"
#include "id/id.h"

static const struct sl_field frame_fields[] = {
    SL_FIELD(TEXT, false, answer_frame, trust, "trust"),
    SL_FIELD(HEX, false, answer_frame, address, "instruction_addr"),
    SL_FIELD(U64, false, answer_frame, index, "original_index"),
    SL_FIELD(HEX, false, answer_frame, symbol_address, "sym_addr"),
    SL_FIELD(HEX, false, answer_frame, line_start, "line_addr"),
    SL_FIELD(TEXT, false, answer_frame, package, "package"),
    SL_FIELD(TEXT, false, answer_frame, module, "module"),
    SL_FIELD(TEXT, false, answer_frame, function, "function"),
    SL_FIELD(TEXT, false, answer_frame, symbol, "symbol"),
    SL_FIELD(TEXT, false, answer_frame, filename, "filename"),
    SL_FIELD(TEXT, false, answer_frame, abs_path, "abs_path"),
    SL_FIELD(U64, false, answer_frame, line, "lineno"),
    SL_FIELD(U64, false, answer_frame, column, "colno"),
    SL_FIELD(TEXT, false, answer_frame, context_line, "context_line"),
    SL_FIELD_EACH(false, answer_frame, before, before_count, "pre_context", sl_fields_text),
    SL_FIELD_EACH(false, answer_frame, after, after_count, "post_context", sl_fields_text),
    SL_FIELDS_END,
};

static const struct sl_field thread_fields[] = {
    SL_FIELD(U64, false, answer_thread, id, "thread_id"),
    SL_FIELD(TEXT, false, answer_thread, name, "thread_name"),
    SL_FIELD(FLAG, false, answer_thread, requesting, "is_requesting"),
    SL_FIELD_ITEMS(answer_thread, frames, frame_count, "frames", frame_fields),
    SL_FIELDS_END,
};

static const struct sl_field outcome_fields[] = {
    SL_FIELD(TEXT, false, answer_outcome, status, "status"),
    SL_FIELD(TEXT, false, answer_outcome, details, "details"),
    SL_FIELDS_END,
};

static const struct sl_field candidate_fields[] = {
    SL_FIELD(TEXT, false, answer_candidate, location, "location"),
    SL_FIELD_PART(answer_candidate, download, "download", outcome_fields),
    SL_FIELD_PART(answer_candidate, debug, "debug", outcome_fields),
    SL_FIELD_PART(answer_candidate, unwind, "unwind", outcome_fields),
    SL_FIELDS_END,
};

static const struct sl_field module_fields[] = {
    SL_FIELD(HEX, false, answer_module, address, "image_addr"),
    SL_FIELD(U64, false, answer_module, size, "image_size"),
    SL_FIELD(TEXT, false, answer_module, arch, "arch"),
    SL_FIELD(TEXT, false, answer_module, code_file, "code_file"),
    SL_FIELD(TEXT, false, answer_module, code_id, "code_id"),
    SL_FIELD(TEXT, false, answer_module, debug_file, "debug_file"),
    SL_FIELD(TEXT, false, answer_module, debug_id, "debug_id"),
    SL_FIELD(TEXT, false, answer_module, debug_status, "debug_status"),
    SL_FIELD(TEXT, false, answer_module, unwind_status, "unwind_status"),
    SL_FIELD_ITEMS(answer_module, candidates, candidate_count, "candidates", candidate_fields),
    SL_FIELDS_END,
};

static const struct sl_field system_fields[] = {
    SL_FIELD(TEXT, false, symbolicated_answer, os_name, "os_name"),
    SL_FIELD(TEXT, false, symbolicated_answer, os_version, "os_version"),
    SL_FIELD(TEXT, false, symbolicated_answer, os_build, "os_build"),
    SL_FIELD(TEXT, false, symbolicated_answer, cpu_arch, "cpu_arch"),
    SL_FIELD(TEXT, false, symbolicated_answer, device, "device_model"),
    SL_FIELDS_END,
};

static const struct sl_field error_fields[] = {
    SL_FIELD(TEXT, false, answer_error, path, "abs_path"),
    SL_FIELD(TEXT, false, answer_error, id, "uuid"),
    SL_FIELD(TEXT, false, answer_error, type, "type"),
    SL_FIELDS_END,
};

static const struct sl_field exception_fields[] = {
    SL_FIELD(TEXT, false, answer_exception, module, "module"),
    SL_FIELD(TEXT, false, answer_exception, type, "type"),
    SL_FIELDS_END,
};

/* ---- analysis of the crash ---- */

static const struct sl_field adjusted_fields[] = {
    SL_FIELD(HEX, false, answer_analysis, adjusted, "address"),
    SL_FIELD(HEX, false, answer_analysis, offset, "offset"),
    SL_FIELDS_END,
};

static const struct sl_field next_fields[] = {
    SL_FIELD(HEX, false, answer_analysis, next, "address"),
    SL_FIELDS_END,
};

static const struct sl_field access_fields[] = {
    SL_FIELD(HEX, false, answer_access, address, "address"),
    SL_FIELD(U64, false, answer_access, size, "size"),
    SL_FIELD(TEXT, false, answer_access, type, "access_type"),
    SL_FIELD(FLAG, false, answer_access, is_guard, "is_likely_guard_page"),
    SL_FIELDS_END,
};

static const struct sl_field flip_fields[] = {
    SL_FIELD(HEX, false, answer_flip, address, "address"),
    SL_FIELD(TEXT, false, answer_flip, source, "source_register"),
    SL_FIELD(RAW, false, answer_flip, confidence, "confidence"),
    SL_FIELDS_END,
};

static const struct sl_field analysis_fields[] = {
    SL_FIELD(TEXT, false, answer_analysis, instruction, "instruction"),
    SL_FIELD(FLAG, false, answer_analysis, is_stack_overflow, "is_likely_stack_overflow"),
    SL_FIELD_SAME("adjusted_address", adjusted_fields),
    SL_FIELD_SAME("instruction_pointer_update", next_fields),
    SL_FIELD_ITEMS(answer_analysis, accesses, access_count, "memory_accesses", access_fields),
    SL_FIELD_ITEMS(answer_analysis, flips, flip_count, "possible_bit_flips", flip_fields),
    SL_FIELD_EACH(false, answer_analysis, inconsistencies, inconsistency_count, "crash_inconsistencies",
                  sl_fields_text),
    SL_FIELDS_END,
};

static const struct sl_field missing_code_fields[] = {
    SL_FIELD(TEXT, false, answer_module, code_file, "code_file"),
    SL_FIELD(TEXT, false, answer_module, code_id, "code_id"),
    SL_FIELDS_END,
};

static const struct sl_field detail_fields[] = {
    SL_FIELD_PART(symbolicated_answer, missing_code, "missing_code", missing_code_fields),
    SL_FIELD_PART(symbolicated_answer, analysis, "crash_analysis", analysis_fields),
    SL_FIELDS_END,
};

/* ---- the answer ---- */

static const struct sl_field answer_fields[] = {
    SL_FIELD(TEXT, false, symbolicated_answer, status, "status"),
    SL_FIELD(TEXT, false, symbolicated_answer, message, "message"),
    SL_FIELD(TEXT, false, symbolicated_answer, detail, "detail"),
    SL_FIELD(U64, false, symbolicated_answer, timestamp, "timestamp"),
    SL_FIELD(U64, false, symbolicated_answer, signal, "signal"),
    SL_FIELD(TEXT, false, symbolicated_answer, reason, "crash_reason"),
    SL_FIELD(TEXT, false, symbolicated_answer, details, "crash_details"),
    SL_FIELD(TEXT, false, symbolicated_answer, assertion, "assertion"),
    SL_FIELD_SAME("system_info", system_fields),
    SL_FIELD_SAME("details", detail_fields),
    SL_FIELD_ITEMS(symbolicated_answer, threads, thread_count, "stacktraces", thread_fields),
    SL_FIELD_ITEMS(symbolicated_answer, modules, module_count, "modules", module_fields),
    SL_FIELD_ITEMS(symbolicated_answer, errors, error_count, "errors", error_fields),
    SL_FIELD_ITEMS(symbolicated_answer, exceptions, exception_count, "exceptions", exception_fields),
    SL_FIELDS_END,
};

bool answer_read(struct sl_str text, struct sl_arena *arena, struct symbolicated_answer *answer)
{
    struct sl_json j = sl_json(text, arena, false);
    *answer = (struct symbolicated_answer){.status = {NULL, 0}};
    sl_json_read_object(&j, answer_fields, answer);
    return sl_json_end(&j);
}

/* ---- queries ---- */

bool answer_frame_is_inline(const struct answer_thread *thread, size_t index)
{
    const struct answer_frame *frame = &thread->frames[index];
    return index + 1 < thread->frame_count && frame->index.set && frame[1].index.set &&
           frame->index.value == frame[1].index.value;
}

int64_t answer_exception_thread(const struct symbolicated_answer *answer)
{
    for (size_t t = answer->thread_count; t-- > 0;)
        if (!answer->threads[t].id.set && sl_str_equal(answer->threads[t].name, SL_STR(SL_APPLE_LAST_EXCEPTION)))
            return (int64_t)t;
    return ALL_THREADS;
}

int64_t answer_requesting_thread(const struct symbolicated_answer *answer)
{
    for (size_t t = 0; t < answer->thread_count; t++)
        if (answer->threads[t].requesting)
            return (int64_t)t;
    return ALL_THREADS;
}

int64_t answer_crashed_thread(const struct symbolicated_answer *answer)
{
    int64_t thread = answer_requesting_thread(answer);
    return thread == ALL_THREADS && answer->thread_count ? 0 : thread;
}

/* ---- endless recursion f, g, f, g ...: folded into one line ---- */

/* MAX_IN_CYCLE: functions of the longest cycle that is found. FEWEST_FOLDED: fewer repeated frames are printed in full. */
enum { MAX_IN_CYCLE = 16, FEWEST_FOLDED = 32 };

/* True if both frames have the same address, function and line: one of them repeats the other's call. */
static bool is_same_call(const struct answer_frame *a, const struct answer_frame *b)
{
    return a->address.set && b->address.set && a->address.value == b->address.value &&
           sl_str_equal(a->function, b->function) && a->line.value == b->line.value;
}

/* Returns the number of frames from `index` on that repeat the `length` frames before them, rounded down to whole
 * cycles. */
static size_t repeated(const struct answer_thread *thread, size_t index, size_t length)
{
    size_t end = index;
    while (end < thread->frame_count && is_same_call(&thread->frames[end], &thread->frames[end - length]))
        end++;
    return (end - index) / length * length;
}

/* Appends a number with thousands separators. */
static void put_count(struct sl_buf *out, size_t count)
{
    if (count >= 1000) {
        put_count(out, count / 1000);
        sl_buf_printf(out, ",%03zu", count % 1000);
    } else {
        sl_buf_printf(out, "%zu", count);
    }
}

/* Appends the line for `count` frames from `index` on that repeat the `length` frames before: "... 1,998 frames of f -> g repeat (2,010 in
 * all) ...". */
static void put_cycle(const struct answer_thread *thread, size_t index, size_t length, size_t count, struct sl_buf *out)
{
    sl_buf_cstr(out, "... ");
    put_count(out, count);
    sl_buf_cstr(out, " frames of ");
    for (size_t i = 0; i < length; i++) { /* callers first */
        const struct answer_frame *frame = &thread->frames[index - 1 - i];
        struct sl_str name = frame->function.size ? frame->function : frame->symbol;
        sl_buf_cstr(out, i ? " -> " : "");
        if (name.size)
            output_put_safe(out, name);
        else
            sl_buf_printf(out, "0x%llx", (unsigned long long)frame->address.value);
    }
    sl_buf_cstr(out, " repeat (");
    put_count(out, thread->frame_count);
    sl_buf_cstr(out, " in all) ...\n");
}

size_t answer_fold_cycle(const struct answer_thread *thread, size_t index, struct sl_buf *line)
{
    for (size_t length = 1; length <= MAX_IN_CYCLE && length <= index; length++) {
        size_t count = repeated(thread, index, length);
        if (count < FEWEST_FOLDED)
            continue;
        put_cycle(thread, index, length, count, line);
        return count;
    }
    return 0;
}

/* ---- options: format, threads, output ---- */

/* Bit sets of enum answer_kind, as in answer_format.sorts: OF_STACKS are answers with stacks of native code, OF_SCRIPTS with stacks of
 * JavaScript or the JVM. */
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

/* True if the answer is to a JavaScript or JVM request, whose stacks are no threads. */
static bool is_request(enum answer_kind sort)
{
    return OF_SCRIPTS >> sort & 1;
}

/* Reports that the value of --format, `name`, does not exist for this kind of answer, and lists those that do. */
static void wrong_format(const struct options *o, const char *name, enum answer_kind sort)
{
    char names[160] = "";
    size_t size = 0;
    for (size_t i = 0; i < FORMATS; i++)
        if (answer_formats[i].sorts >> sort &
            1) /* `sorts`: bit set of the kinds of answer that the format exists for */
            size +=
                (size_t)snprintf(names + size, sizeof names - size, "%s%s", size ? ", " : "", answer_formats[i].name);
    options_wrong(o, "--format: '%s' is not one of %s", name, names);
}

const struct answer_format *answer_format_choose(const struct options *o, enum answer_kind sort)
{
    static const char *const threads[] = {"crashed-only", "all-threads", "thread", "thread-index"};
    /* without --format, text for people at a terminal; JSON for programs, and as symbolicli and Mozilla's API give it */
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
        wrong_format(o, name, sort);
    else if (chosen > 1)
        options_wrong(o, "--crashed-only, --all-threads, --thread and --thread-index cannot be combined");
    else if ((option_given(o, "stack-contents") || option_given(o, "stack-pointers")) &&
             strcmp(format->name, "stackwalk") != 0)
        options_wrong(o, "--stack-contents and --stack-pointers need --format stackwalk");
    else if (chosen && !option_given(o, "all-threads") && (!format->print || format->is_json))
        options_wrong(o, "--crashed-only, --thread and --thread-index cannot be used with JSON, which has all threads");
    else if (chosen && !option_given(o, "all-threads") && is_request(sort))
        options_wrong(
            o, "--crashed-only, --thread and --thread-index cannot be used here: the stacks belong to no threads");
    else
        return format;
    return NULL;
}

/* True if `number`, the value of --thread-index, means the thread with index `thread`. Breakpad's formats (skips_writer) do not count the
 * thread that wrote the dump, so their numbers may be lower. */
static bool is_thread_number(const struct answer_format *format, const struct walked_dump *walked, size_t thread,
                             uint64_t number)
{
    if (!format->skips_writer)
        return thread == number;
    return !dump_thread_is_writer(walked, thread) && dump_thread_number(walked, thread) == number;
}

/* Sets `*thread` to the index of the thread to be printed: the one of --thread or --thread-index, if given. Otherwise it is ALL_THREADS if
 * the options or the format want all threads, else the index of the crashed one. False after a report of a usage error. */
static bool choose_thread(const struct options *o, const struct answer_format *format,
                          const struct symbolicated_answer *answer, const struct walked_dump *walked, int64_t *thread)
{
    uint64_t id, index;
    bool by_id = option_given(o, "thread"), by_index = option_given(o, "thread-index");
    bool all = option_given(o, "all-threads") || (format->view && format->view->is_request) ||
               (!format->crashed_only && !option_given(o, "crashed-only") && !option_given(o, "brief"));
    if (!option_number(o, "thread", &id) || !option_number(o, "thread-index", &index))
        return false;
    *thread = all ? ALL_THREADS : answer_crashed_thread(answer);
    for (size_t t = 0; t < answer->thread_count && (by_id || by_index); t++)
        if (by_id ? answer->threads[t].id.set && answer->threads[t].id.value == id
                  : is_thread_number(format, walked, t, index)) {
            *thread = (int64_t)t;
            return true;
        }
    if (by_id)
        options_wrong(o, "--thread: the input has no thread %" PRIu64, id);
    else if (by_index)
        options_wrong(o, "--thread-index: the input has no thread %" PRIu64, index);
    return !by_id && !by_index;
}

/* True if the output is to be coloured: as --color and the terminal want it, but never in the file of --output. */
static bool colours(const struct options *o)
{
    return !option_given(o, "output") && output_colour(option_value(o, "color", NULL));
}

/* Formats the answer as text, by the options. Returns 0, or an exit status after a report. */
static int put_stacks(const struct options *o, const struct answer_format *format,
                      const struct symbolicated_answer *answer, const struct walked_dump *walked, struct sl_buf *out)
{
    struct answer_style style = {.colour = colours(o),
                                 .unused = option_given(o, "verbose"),
                                 .candidates = option_given(o, "candidates"),
                                 .brief = option_given(o, "brief"),
                                 .stack_contents = option_given(o, "stack-contents"),
                                 .stack_pointers = option_given(o, "stack-pointers"),
                                 .view = format->view,
                                 .walked = walked};
    if (!option_number(o, "context", &style.context) || !choose_thread(o, format, answer, walked, &style.thread))
        return 2;
    bool is_chosen = option_given(o, "thread") || option_given(o, "thread-index");
    /* the thread with the last exception is printed first, unless the user chose one thread */
    style.exception = is_chosen ? ALL_THREADS : answer_exception_thread(answer);
    return !out->failed && format->print(answer, &style, out) ? 0 : report_no_memory();
}

/* ---- missing symbols ---- */

const struct missing_words missing_symbols = {
    .wanted = "symbols",
    .unit = "modules on the stack",
    .advice = "run with -f full -d to see every location",
    .no_location = "nowhere to search: pass --symbols with a directory or URL",
};

const struct missing_words missing_core_symbols = {
    .wanted = "symbols",
    .unit = "modules on the stack",
    .advice = "run with --local-debug-info to search the files of this machine that the core names",
    .no_location =
        "nowhere to search: pass --local-debug-info to search the files of this machine that the core names, "
        "or --symbols with a directory or URL",
};

/* True if the status that the answer has for a module or file is `name`. */
static bool is_status(struct sl_str status, const char *name)
{
    return sl_str_equal(status, sl_str(name));
}

/* Returns "host:port" of a URL; any other text unchanged. */
static struct sl_str get_host(struct sl_str location)
{
    const char *scheme = location.size ? memmem(location.data, location.size, "://", 3) : NULL;
    if (!scheme)
        return location;
    size_t begin = (size_t)(scheme - location.data) + 3;
    const char *slash = memchr(location.data + begin, '/', location.size - begin);
    size_t end = slash ? (size_t)(slash - location.data) : location.size;
    return (struct sl_str){location.data + begin, end - begin};
}

/* Adds the failure of a candidate file to the report; nothing if it was usable, is not there, or was cancelled. A failing server affects
 * all its files, so the failure is listed once for its host; a malformed file is listed by its own location. */
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
    missing_failure(report, is_server ? get_host(location) : location, why);
}

/* Returns the id by which a user finds the module's file in symbol directories: the debug id in Breakpad's form, in `text`, else the code
 * id; empty if there is none. */
static struct sl_str shown_id(const struct answer_module *module, char text[SL_DEBUG_ID_TEXT])
{
    struct sl_debug_id id;
    if (!sl_debug_id_parse(module->debug_id, &id))
        return module->code_id;
    sl_debug_id_format_breakpad(&id, text);
    return sl_str(text);
}

/* Adds a module to the report as found or missing, and counts it once; for a missing one, also the failures of its candidate files. */
static void describe_module(const struct answer_module *module, struct missing_report *report)
{
    struct sl_str name = path_file_name(module->code_file.size ? module->code_file : module->debug_file);
    char text[SL_DEBUG_ID_TEXT];
    struct sl_str id = shown_id(module, text);
    bool found = is_status(module->debug_status, "found");
    if (found ? missing_found(report, name, id) : missing_add(report, name, id))
        missing_count(report, !found, 1);
    for (size_t k = 0; k < module->candidate_count && !found; k++) {
        const struct answer_candidate *c = &module->candidates[k];
        describe_outcome(report, c->location, &c->download);
        describe_outcome(report, c->location, &c->debug);
    }
}

void answer_describe_missing(const struct symbolicated_answer *answer, struct missing_report *report)
{
    for (size_t i = 0; i < answer->module_count; i++)
        if (!is_status(answer->modules[i].debug_status, "unused"))
            describe_module(&answer->modules[i], report);
}

/* ---- printing ---- */

/* Formats the answer. `*written` is the result: a view of `out` or, for the answer's own JSON without --indent, of `text`, which is
 * changed. Returns 0, or an exit status after a report. */
static int put_answer(const struct options *o, const struct answer_format *format,
                      const struct symbolicated_answer *answer, const struct walked_dump *walked, struct sl_buf *text,
                      struct sl_buf *out, struct sl_str *written)
{
    bool good = true;
    if (!format->print) {
        good = answer_write_json(text, option_given(o, "indent"), out, written);
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

/* The answer is not parsed if the format is its own JSON and --fail-on-missing is absent, because parsing a large one takes long. */
int answer_print_notes(const struct options *o, const struct answer_format *format, enum answer_kind sort,
                       const struct walked_dump *walked, struct missing_report *missing, struct sl_buf *text)
{
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct symbolicated_answer answer = {.thread_count = 0};
    struct sl_str written;
    /* missing symbols are those of native code; --fail-on-missing needs them in every format */
    bool stacks = OF_STACKS >> sort & 1, checks = stacks && option_given(o, "fail-on-missing");
    bool reads = checks || format->print;
    bool good = !reads || answer_read(sl_buf_view(text), &arena, &answer);
    if (good && reads && stacks)
        answer_describe_missing(&answer, missing); /* before put_answer consumes the text */
    int status = good ? put_answer(o, format, &answer, walked, text, &out, &written) : report_no_memory();
    if (!status)
        status = symbolicate_write(o, written);
    /* the advice is -d, which is --candidates: not for a user who gave it */
    missing->advised = missing->words == &missing_symbols && option_given(o, "candidates");
    if (!status && (checks || (format->print && !format->is_json)))
        missing_print(missing, o);
    status = missing_status(missing, o, status);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return status;
}
