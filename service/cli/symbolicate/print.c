/* The text formats of answers: compact, pretty, full, markdown. */
#include "cli/symbolicate/symbolicate.h"

#include <stdio.h>
#include <time.h>

#include "apple/apple.h"
#include "id/id.h"

/* True if the options select the thread, or it is the stack of the last exception, which is always printed. */
static bool is_shown(const struct answer_style *style, size_t thread)
{
    return style->thread == ALL_THREADS || style->thread == (int64_t)thread || style->exception == (int64_t)thread;
}

/* Returns the index of the thread that is printed at position `index`: the stack of the last exception moves to position 0, and the threads
 * before it move one position back. */
static size_t shown_thread(const struct answer_style *style, size_t index)
{
    if (style->exception == ALL_THREADS || index > (size_t)style->exception)
        return index;
    return index ? index - 1 : (size_t)style->exception;
}

/* Appends a title if the thread is the stack of an Apple report's last exception. compact and pretty print no titles of other threads. */
static void put_exception_title(const struct answer_style *style, size_t thread, struct sl_buf *out)
{
    if ((int64_t)thread == style->exception)
        sl_buf_cstr(out, SL_APPLE_LAST_EXCEPTION "\n");
}

/* Prints a table of frames per shown thread (answer_print). False when out of memory. */
bool answer_print_compact(const struct symbolicated_answer *answer, const struct answer_style *style,
                          struct sl_buf *out)
{
    struct answer_printer p = printing_make(answer, style);
    bool any = false;
    for (size_t index = 0; index < answer->thread_count; index++) {
        size_t t = shown_thread(style, index);
        if (!is_shown(style, t))
            continue;
        p.table.count = 0;
        for (size_t i = 0, folded; i < answer->threads[t].frame_count; i += folded ? folded : 1) {
            if ((folded = printing_fold(&p, &answer->threads[t], i))) /* adds a line for frames that repeat */
                continue;
            printing_add_frame(&p, &answer->threads[t], i);
        }
        sl_buf_cstr(out, any ? "\n" : "");
        put_exception_title(style, t, out);
        table_put(&p.table, style->colour, out);
        any = true;
    }
    return printing_end(&p, out);
}

/* ---- pretty: frames with a line for each property ---- */

/* Appends a line with label, value and, unless it is empty, offset; nothing if the value is empty. */
static void put_property(struct sl_buf *out, const char *label, struct sl_str value, struct sl_str offset)
{
    if (value.size)
        sl_buf_printf(out, "%12s " SL_STR_FMT "%s" SL_STR_FMT "\n", label, SL_STR_ARG(value), offset.size ? " " : "",
                      SL_STR_ARG(offset));
}

/* Appends a title, bold on a terminal. */
static void put_title(const struct answer_style *style, struct sl_buf *out, const char *title)
{
    sl_buf_printf(out, "%s%s%s\n", style->colour ? "\x1b[1m" : "", title, style->colour ? "\x1b[0m" : "");
}

/* Appends a line for each column of the frame that has a label. If the next column's title is "", its value is an offset that goes on the
 * same line. */
static void put_properties(struct answer_printer *p, const struct answer_thread *thread, size_t index,
                           struct sl_buf *out)
{
    for (const struct print_column *column = p->table.columns; column->title; column++) {
        struct sl_str offset = {NULL, 0};
        if (!column->label)
            continue;
        struct sl_str value = printing_cell(p, column, thread, index);
        if (column[1].title && !*column[1].title)
            offset = printing_cell(p, &column[1], thread, index);
        put_property(out, column->label, value, offset);
    }
}

/* Appends the errors of a JavaScript or JVM request, each with the script's path or the mapping's id. */
static void put_request_errors(struct answer_printer *p, struct sl_buf *out)
{
    for (size_t i = 0; i < p->answer->error_count; i++) {
        const struct answer_error *error = &p->answer->errors[i];
        if (!i)
            put_title(p->style, out, "Errors during symbolication");
        put_property(out, "Path:", printing_text(p, error->path.size ? error->path : error->id),
                     (struct sl_str){NULL, 0});
        put_property(out, "Error:", printing_text(p, error->type), (struct sl_str){NULL, 0});
        sl_buf_u8(out, '\n');
    }
}

/* Prints the properties of each frame, one a line, and for JavaScript and JVM requests their errors (answer_print). False when out of
 * memory. */
bool answer_print_pretty(const struct symbolicated_answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct answer_printer p = printing_make(answer, style);
    for (size_t index = 0; index < answer->thread_count; index++) {
        size_t t = shown_thread(style, index);
        put_exception_title(style, t, out); /* not for a hidden thread: an exception's stack is always shown */
        for (size_t i = 0, folded; is_shown(style, t) && i < answer->threads[t].frame_count; i += folded ? folded : 1) {
            char title[32];
            if ((folded = answer_fold_cycle(&answer->threads[t], i, out))) { /* appends a line for frames that repeat */
                sl_buf_u8(out, '\n');
                continue;
            }
            snprintf(title, sizeof title, "Frame #%zu", i);
            put_title(style, out, title);
            put_properties(&p, &answer->threads[t], i, out);
            sl_buf_u8(out, '\n');
        }
    }
    if (style->view->is_request)
        put_request_errors(&p, out);
    return printing_end(&p, out);
}

/* ---- crash analysis of a minidump or core file ---- */

/* Appends what the analysis tells of the crash address: an offset from a null pointer, or the non-canonical address that x86-64 did not
 * report. */
static void put_adjusted(const struct answer_analysis *analysis, struct sl_buf *out)
{
    if (analysis->offset.set)
        sl_buf_printf(out, "Address:    a null pointer + 0x%llx\n", (unsigned long long)analysis->offset.value);
    if (analysis->adjusted.set)
        sl_buf_printf(out, "Address:    0x%llx, which is not canonical\n",
                      (unsigned long long)analysis->adjusted.value);
}

/* Appends the memory accesses of the instruction that crashed. */
static void put_accesses(const struct answer_analysis *analysis, struct sl_buf *out)
{
    for (size_t i = 0; i < analysis->access_count; i++) {
        const struct answer_access *access = &analysis->accesses[i];
        sl_buf_cstr(out, "Accesses:   ");
        output_put_safe(out, access->type.size ? access->type : SL_STR("access"));
        if (access->size.set)
            sl_buf_printf(out, " of %llu bytes", (unsigned long long)access->size.value);
        sl_buf_printf(out, " at 0x%llx%s\n", (unsigned long long)access->address.value,
                      access->is_guard ? ", likely in a guard page" : "");
    }
}

/* Appends the first valid addresses that differ from the invalid crash address in one bit, which a hardware error may have changed. */
static void put_flips(const struct answer_analysis *analysis, struct sl_buf *out)
{
    enum { SHOWN = 8 };
    for (size_t i = 0; i < analysis->flip_count && i < SHOWN; i++) {
        const struct answer_flip *flip = &analysis->flips[i];
        sl_buf_printf(out, "Bit flip:   0x%llx may have been meant", (unsigned long long)flip->address.value);
        if (flip->source.size) {
            sl_buf_cstr(out, " by ");
            output_put_safe(out, flip->source);
        }
        sl_buf_cstr(out, ", confidence ");
        output_put_safe(out, flip->confidence);
        sl_buf_u8(out, '\n');
    }
    if (analysis->flip_count > SHOWN)
        sl_buf_printf(out, "Bit flip:   %zu more (see -f json)\n", analysis->flip_count - SHOWN);
}

/* Appends a line per contradiction between the reported crash reason and the instruction. Names that `rows` lacks are left out. */
static void put_inconsistencies(const struct answer_analysis *analysis, struct sl_buf *out)
{
    static const struct {
        struct sl_str name;
        const char *text;
    } rows[] = {
        {SL_STR("int_div_by_zero_not_possible"), "reason is a division by zero, but the instruction does not divide"},
        {SL_STR("priv_instruction_crash_without_priv_instruction"),
         "reason is a privileged instruction, but the instruction is not privileged"},
        {SL_STR("non_canonical_address_falsely_reported"),
         "reason is a non-canonical address, but the instruction accesses none"},
        {SL_STR("crashing_access_not_found_in_memory_accesses"), "the instruction does not access the crash address"},
        {SL_STR("access_violation_when_access_allowed"), "the crash address is mapped memory that allows this access"},
    };
    for (size_t i = 0; i < analysis->inconsistency_count; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (sl_str_equal(rows[k].name, analysis->inconsistencies[i]))
                sl_buf_printf(out, "Doubt:      %s\n", rows[k].text);
}

/* Appends which file has the crashing instruction, if the core file lacks it; nothing if the instruction is known. */
static void put_missing_code(const struct answer_module *module, struct sl_buf *out)
{
    if (!module->code_file.size)
        return;
    sl_buf_cstr(out, "Code:       not in the core; name the file with --symbols: ");
    output_put_safe(out, module->code_file);
    if (module->code_id.size) {
        sl_buf_cstr(out, ", build id ");
        output_put_safe(out, module->code_id);
    }
    sl_buf_u8(out, '\n');
}

/* Appends what the analysis of the crashing instruction found; what it did not find is left out. */
static void put_analysis(const struct answer_analysis *analysis, struct sl_buf *out)
{
    if (analysis->instruction.size) {
        sl_buf_cstr(out, "Code:       ");
        output_put_safe(out, analysis->instruction);
        sl_buf_u8(out, '\n');
    }
    put_accesses(analysis, out);
    if (analysis->next.set)
        sl_buf_printf(out, "Jumps to:   0x%llx\n", (unsigned long long)analysis->next.value);
    put_adjusted(analysis, out);
    if (analysis->is_stack_overflow)
        sl_buf_cstr(out, "Stack:      probably overflowed\n");
    put_flips(analysis, out);
    put_inconsistencies(analysis, out);
}

/* ---- everything ---- */

/* Appends a labelled line, if there is a value. */
static void put_known(struct sl_buf *out, const char *label, struct sl_str value)
{
    if (!value.size)
        return;
    sl_buf_printf(out, "%-11s ", label);
    output_put_safe(out, value);
    sl_buf_u8(out, '\n');
}

/* Appends each line of the crash's details as a line of its own with the label "Details:". */
static void put_details(struct sl_buf *out, struct sl_str details)
{
    struct sl_str line;
    while (sl_str_next_line(&details, &line))
        put_known(out, "Details:", line);
}

/* Appends the OS, processor and device of the crash on one line; nothing if all are unknown. */
static void put_system_line(const struct symbolicated_answer *answer, struct sl_buf *out)
{
    const struct sl_str parts[] = {answer->os_name, answer->os_version, answer->os_build, answer->cpu_arch,
                                   answer->device};
    bool any = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].size) {
            sl_buf_cstr(out, any ? " " : "System:     ");
            output_put_safe(out, parts[i]);
            any = true;
        }
    sl_buf_cstr(out, any ? "\n" : "");
}

/* Appends what is known of the crash as a whole. */
static void put_crash(const struct symbolicated_answer *answer, struct sl_buf *out)
{
    char text[64] = "";
    time_t seconds = (time_t)answer->timestamp.value;
    struct tm tm;
    put_system_line(answer, out);
    if (answer->timestamp.set && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        put_known(out, "Time:", sl_str(text));
    put_known(out, "Crash:", answer->reason.size ? answer->reason : SL_STR("none"));
    put_details(out, answer->details);
    put_missing_code(&answer->missing_code, out);
    put_analysis(&answer->analysis, out);
    put_known(out, "Assertion:", answer->assertion);
    if (answer->signal.set)
        sl_buf_printf(out, "Signal:     %llu\n", (unsigned long long)answer->signal.value);
}

/* Appends a source line with its number. `mark` is `>` for the frame's own line, else a blank. */
static void put_source_line(struct sl_buf *out, char mark, uint64_t number, struct sl_str text)
{
    sl_buf_printf(out, "%c %6llu | ", mark, (unsigned long long)number);
    output_put_safe_but(out, text, '\t');
    sl_buf_u8(out, '\n');
}

/* Returns the frame's source line and up to --context lines before and after it, a line each; empty without --context or source. */
static struct sl_str source_below(struct answer_printer *p, const struct answer_frame *frame)
{
    size_t before = frame->before_count, after = frame->after_count;
    uint64_t most = p->style->context, line = frame->line.value;
    if (!most || !frame->context_line.data)
        return (struct sl_str){NULL, 0};
    for (size_t i = before > most ? before - (size_t)most : 0; i < before; i++)
        put_source_line(&p->buf, ' ', line - (before - i), frame->before[i]);
    put_source_line(&p->buf, '>', line, frame->context_line);
    for (size_t i = 0; i < after && i < most; i++)
        put_source_line(&p->buf, ' ', line + 1 + i, frame->after[i]);
    return table_text(&p->table, &p->buf);
}

/* Appends the thread's frames as a table, source lines below each row; nothing if it has no frames. */
static void put_frames(struct answer_printer *p, const struct answer_thread *thread, struct sl_buf *out)
{
    p->table.columns = p->style->view->columns;
    p->table.count = 0;
    for (size_t i = 0, folded; i < thread->frame_count; i += folded ? folded : 1) {
        struct print_row *row = NULL;
        if ((folded = printing_fold(p, thread, i))) /* adds a line for frames that repeat */
            continue;
        if ((row = printing_add_frame(p, thread, i)))
            row->below = source_below(p, &thread->frames[i]);
    }
    if (thread->frame_count)
        table_put(&p->table, p->style->colour, out);
}

/* Appends a thread with its title "Thread <id> <name>". The stack of an exception, which has a name but no id, is titled by its name
 * alone. */
static void put_thread(struct answer_printer *p, const struct answer_thread *thread, struct sl_buf *out)
{
    bool is_thread = thread->id.set || !thread->name.size;
    sl_buf_cstr(out, is_thread ? "\nThread" : "\n");
    if (thread->id.set)
        sl_buf_printf(out, " %llu", (unsigned long long)thread->id.value);
    sl_buf_cstr(out, is_thread && thread->name.size ? " " : "");
    output_put_safe(out, thread->name);
    sl_buf_cstr(out, thread->requesting ? " (crashed)\n" : "\n");
    put_frames(p, thread, out);
}

/* Returns a line for each file that was searched for the module, with the result of its download; an empty text without --candidates. */
static struct sl_str candidates_below(struct answer_printer *p, const struct answer_module *module)
{
    for (size_t i = 0; p->style->candidates && i < module->candidate_count; i++) {
        sl_buf_cstr(&p->buf, "    ");
        output_put_safe(&p->buf, module->candidates[i].download.status);
        sl_buf_cstr(&p->buf, "  ");
        output_put_safe(&p->buf, module->candidates[i].location);
        sl_buf_u8(&p->buf, '\n');
    }
    return table_text(&p->table, &p->buf);
}

/* True if a frame is in the module: then its debug or unwind information was looked for. */
static bool is_used(const struct answer_module *module)
{
    bool unwound = module->unwind_status.size && !sl_str_equal(module->unwind_status, SL_STR("unused"));
    return unwound || !sl_str_equal(module->debug_status, SL_STR("unused"));
}

/* Prints the table of modules, only used ones unless `unused` is set, each with its candidates below. Nothing when there are none. */
static void put_modules(struct answer_printer *p, struct sl_buf *out)
{
    static const struct print_column columns[] = {
        {"Start", true},   {"End", true},       {"Arch", false}, {"Debug", false},
        {"Unwind", false}, {"Debug ID", false}, {"Name", false}, {NULL, false},
    };
    p->table.columns = columns;
    p->table.count = 0;
    for (size_t i = 0; i < p->answer->module_count; i++) {
        const struct answer_module *module = &p->answer->modules[i];
        struct print_row *row = p->style->unused || is_used(module) ? table_add(&p->table) : NULL;
        if (!row) /* not shown; or out of memory, which printing_end() returns */
            continue;
        const uint64_t bounds[] = {module->address.value, module->address.value + module->size.value};
        for (size_t c = 0; c < 2; c++) {
            sl_buf_printf(&p->buf, "0x%llx", (unsigned long long)bounds[c]);
            row->cells[c] = table_text(&p->table, &p->buf);
        }
        const struct sl_str texts[] = {module->arch, module->debug_status, module->unwind_status, module->debug_id,
                                       path_file_name(module->code_file.size ? module->code_file : module->debug_file)};
        for (size_t c = 0; c < sizeof texts / sizeof *texts; c++)
            row->cells[2 + c] = printing_text(p, texts[c]);
        row->below = candidates_below(p, module);
    }
    if (p->table.count) {
        sl_buf_cstr(out, "\nModules\n");
        table_put(&p->table, p->style->colour, out);
    }
}

/* True if the status of a candidate file is an error. `notfound` is none: most sources have only some of the files. */
static bool is_failure(struct sl_str status)
{
    return status.size && !sl_str_equal(status, SL_STR("ok")) && !sl_str_equal(status, SL_STR("notfound"));
}

/* Appends "error: <whose>: <where>: <status>: <details>", without the parts that are empty. `whose` is a module, a script or a mapping,
 * `where` the location of its file. */
static void put_error(struct sl_buf *out, struct sl_str whose, struct sl_str where, struct sl_str status,
                      struct sl_str details)
{
    /* the status `error` says nothing that the details do not say */
    bool has_details = sl_str_equal(status, SL_STR("error")) && details.size;
    const struct sl_str parts[] = {whose, where, has_details ? (struct sl_str){NULL, 0} : status, details};
    sl_buf_cstr(out, "error");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].size) {
            sl_buf_cstr(out, ": ");
            output_put_safe(out, parts[i]);
        }
    sl_buf_u8(out, '\n');
}

/* Appends an error for each candidate file of the module that failed: at the download, or when read for debug or unwind information. An
 * error that repeats the one of the step before is not shown again. */
static void put_module_errors(const struct answer_module *module, struct sl_buf *out)
{
    struct sl_str name = path_file_name(module->debug_file.size ? module->debug_file : module->code_file);
    for (size_t i = 0; i < module->candidate_count; i++) {
        const struct answer_candidate *c = &module->candidates[i];
        const struct answer_outcome outcomes[] = {c->download, c->debug, c->unwind};
        for (size_t k = 0; k < 3; k++) {
            bool is_repeated = k && sl_str_equal(outcomes[k].status, outcomes[k - 1].status) &&
                               sl_str_equal(outcomes[k].details, outcomes[k - 1].details);
            if (is_failure(outcomes[k].status) && !is_repeated)
                put_error(out, name, c->location, outcomes[k].status, outcomes[k].details);
        }
    }
}

/* Prints the errors of modules and of the request after an empty line; nothing when there are none. */
static void put_errors(const struct symbolicated_answer *answer, struct sl_buf *out)
{
    struct sl_buf errors = {0};
    for (size_t i = 0; i < answer->module_count; i++)
        put_module_errors(&answer->modules[i], &errors);
    for (size_t i = 0; i < answer->error_count; i++) {
        const struct answer_error *error = &answer->errors[i];
        put_error(&errors, error->path.size ? error->path : error->id, (struct sl_str){NULL, 0}, error->type,
                  (struct sl_str){NULL, 0});
    }
    sl_buf_cstr(out, errors.size && out->size ? "\n" : "");
    sl_buf_str(out, sl_buf_view(&errors));
    out->failed |= errors.failed;
    sl_buf_free(&errors);
}

/* Appends a line "missing: <debug file> <Breakpad id>" for each used module without debug information, for scripts that fetch the files. */
static void put_missing(const struct symbolicated_answer *answer, struct sl_buf *out)
{
    bool any = false;
    for (size_t i = 0; i < answer->module_count; i++) {
        const struct answer_module *module = &answer->modules[i];
        struct sl_debug_id id;
        char text[SL_DEBUG_ID_TEXT] = "";
        if (sl_str_equal(module->debug_status, SL_STR("unused")) || sl_str_equal(module->debug_status, SL_STR("found")))
            continue;
        if (sl_debug_id_parse(module->debug_id, &id))
            sl_debug_id_format_breakpad(&id, text);
        sl_buf_cstr(out, any ? "missing: " : "\nmissing: ");
        output_put_safe(out, module->debug_file.size ? module->debug_file : module->code_file);
        sl_buf_printf(out, "%s%s\n", *text ? " " : "", text);
        any = true;
    }
}

/* Appends the answer for a native program: first the crash; then the stack of the last exception, the crashed thread and the other threads;
 * then modules, errors and missing debug files. */
static void print_program(struct answer_printer *p, struct sl_buf *out)
{
    const struct symbolicated_answer *answer = p->answer;
    const struct answer_style *style = p->style;
    int64_t first = answer_crashed_thread(answer); /* ALL_THREADS means none, also in style->exception */
    put_crash(answer, out);
    if (style->exception != ALL_THREADS)
        put_thread(p, &answer->threads[style->exception], out);
    if (first != ALL_THREADS && first != style->exception && is_shown(style, (size_t)first))
        put_thread(p, &answer->threads[first], out);
    for (size_t t = 0; t < answer->thread_count; t++)
        if ((int64_t)t != first && (int64_t)t != style->exception && is_shown(style, t))
            put_thread(p, &answer->threads[t], out);
    put_modules(p, out);
    put_errors(answer, out);
    put_missing(answer, out);
}

/* Appends a line per exception of a JVM answer: "module.type", or only the part that is known; no line if neither is. */
static void put_exceptions(struct answer_printer *p, struct sl_buf *out)
{
    for (size_t i = 0; i < p->answer->exception_count; i++) {
        const struct answer_exception *e = &p->answer->exceptions[i];
        sl_buf_str(&p->buf, e->module);
        sl_buf_cstr(&p->buf, e->module.size && e->type.size ? "." : "");
        sl_buf_str(&p->buf, e->type);
        put_known(out, "Crash:", sl_buf_view(&p->buf));
        sl_buf_clear(&p->buf);
    }
}

/* Appends the answer to a JavaScript or JVM request: exceptions, stacks and errors. */
static void print_request(struct answer_printer *p, struct sl_buf *out)
{
    put_exceptions(p, out);
    for (size_t t = 0; t < p->answer->thread_count; t++)
        if (is_shown(p->style, t)) {
            sl_buf_printf(out, "%sStack %zu\n", out->size ? "\n" : "", t);
            put_frames(p, &p->answer->threads[t], out);
        }
    put_errors(p->answer, out);
}

/* Prints everything in the answer (answer_print), which is for a JavaScript or JVM request, or for a native program. False when out of
 * memory. */
bool answer_print_full(const struct symbolicated_answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct answer_printer p = printing_make(answer, style);
    if (style->view->is_request)
        print_request(&p, out);
    else
        print_program(&p, out);
    return printing_end(&p, out);
}

/* ---- Markdown ---- */

/* Prints the format `full` in code blocks, for pasting into a bug report (answer_print). False when out of memory. */
bool answer_print_markdown(const struct symbolicated_answer *answer, const struct answer_style *style,
                           struct sl_buf *out)
{
    struct answer_style plain = *style;
    struct sl_buf text = {0};
    plain.colour = false;
    bool good = answer_print_full(answer, &plain, &text);
    struct sl_str rest = sl_buf_view(&text);
    while (good && rest.size) { /* blocks are separated by empty lines */
        const char *end = rest.size > 1 ? memmem(rest.data, rest.size, "\n\n", 2) : NULL;
        size_t size = end ? (size_t)(end + 1 - rest.data) : rest.size; /* a block keeps the first of both line ends */
        sl_buf_cstr(out, "```text\n");
        sl_buf_str(out, (struct sl_str){rest.data, size});
        sl_buf_cstr(out, end ? "```\n\n" : "```\n");
        size += end != NULL;
        rest = (struct sl_str){rest.data + size, rest.size - size};
    }
    sl_buf_free(&text);
    return good && !out->failed;
}
