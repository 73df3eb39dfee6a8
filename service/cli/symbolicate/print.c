/* Crashes for people. */
#include "cli/symbolicate/print_analysis.h"
#include "cli/symbolicate/symbolicate.h"
#include "cli/symbolicate/table.h"

#include <time.h>

#include "apple/apple.h"
#include "id/id.h"

/* ---- frames ---- */

struct printing {
    const struct answer *answer;
    const struct answer_style *style;
    struct table table;
    struct sl_buf buf; /* of one cell */
};

/* The module that the frame says it is in. */
static const struct answer_module *print_module_of(const struct answer *answer, const struct answer_frame *frame)
{
    for (size_t i = 0; i < answer->module_count; i++) {
        const struct answer_module *module = &answer->modules[i];
        uint64_t at = frame->address.value - module->address.value;
        if (frame->address.set && frame->address.value >= module->address.value && frame->package.size &&
            (!module->size.set || at <= module->size.value) && sl_str_equal(module->code_file, frame->package))
            return module;
    }
    return NULL;
}

static const char *print_trust(const struct answer_thread *thread, size_t index, struct sl_buf *buf)
{
    const struct answer_frame *frame = &thread->frames[index];
    bool is_inline = index + 1 < thread->frame_count && frame->index.set && frame[1].index.set &&
                     frame->index.value == frame[1].index.value;
    if (!is_inline && frame->trust.data)
        output_put_safe(buf, frame->trust);
    return is_inline ? "inline" : frame->trust.data ? "" : "none";
}

enum {
    CELL_TRUST,
    CELL_ADDRESS,
    CELL_MODULE,
    CELL_MODULE_OFFSET,
    CELL_FUNCTION,
    CELL_FUNCTION_OFFSET,
    CELL_FILE,
    CELLS
};

static void put_offset(struct sl_buf *buf, uint64_t offset)
{
    sl_buf_printf(buf, "+0x%llx", (unsigned long long)offset);
}

static void put_place(struct sl_buf *buf, struct sl_str file, const struct answer_frame *frame)
{
    if (!file.data)
        return;
    output_put_safe(buf, file);
    sl_buf_printf(buf, ":%llu", (unsigned long long)frame->line.value);
}

static void fill_cells(struct printing *p, const struct answer_thread *thread, size_t index, bool whole_path,
                       struct sl_str cells[CELLS])
{
    const struct answer_frame *frame = &thread->frames[index];
    const struct answer_module *module = print_module_of(p->answer, frame);
    struct sl_str name = frame->function.data ? frame->function : frame->symbol;
    struct sl_buf *buf = &p->buf;
    sl_buf_cstr(buf, print_trust(thread, index, buf));
    cells[CELL_TRUST] = table_text(&p->table, buf);
    if (frame->address.set)
        sl_buf_printf(buf, "0x%llx", (unsigned long long)frame->address.value);
    cells[CELL_ADDRESS] = table_text(&p->table, buf);
    output_put_safe(buf, path_file_name(frame->package));
    cells[CELL_MODULE] = table_text(&p->table, buf);
    if (module)
        put_offset(buf, frame->address.value - module->address.value);
    cells[CELL_MODULE_OFFSET] = table_text(&p->table, buf);
    output_put_safe(buf, name);
    cells[CELL_FUNCTION] = table_text(&p->table, buf);
    if (name.data)
        put_offset(buf, frame->symbol_address.set ? frame->address.value - frame->symbol_address.value : 0);
    cells[CELL_FUNCTION_OFFSET] = table_text(&p->table, buf);
    put_place(buf, whole_path && frame->abs_path.data ? frame->abs_path : frame->filename, frame);
    cells[CELL_FILE] = table_text(&p->table, buf);
}

static const struct column frame_columns[] = {
    {"Trust", false}, {"Instruction", true}, {"Module File", false}, {"", true}, {"Function", false},
    {"", true},       {"File", false},       {NULL, false},
};

static bool is_shown(const struct answer_style *style, size_t thread)
{
    return style->thread == ALL_THREADS || style->thread == (int64_t)thread || style->exception == (int64_t)thread;
}

/* The index of the thread that is shown at this place: where the last exception was thrown comes first. */
static size_t shown_thread(const struct answer_style *style, size_t place)
{
    if (style->exception == ALL_THREADS || place > (size_t)style->exception)
        return place;
    return place ? place - 1 : (size_t)style->exception;
}

/* Frames that repeat others are a line below the row before them; the number of them. */
static size_t fold_below(struct printing *p, const struct answer_thread *thread, size_t index)
{
    struct sl_buf line = {0};
    size_t count = p->table.count ? answer_fold_cycle(thread, index, &line) : 0;
    if (count) {
        struct row *row = &p->table.rows[p->table.count - 1];
        sl_buf_str(&p->buf, row->below);
        sl_buf_u8(&p->buf, ' ');
        sl_buf_str(&p->buf, sl_buf_view(&line));
        struct sl_str kept = sl_buf_keep(&p->buf, &p->table.arena);
        p->table.failed |= !kept.data || line.failed;
        row->below = kept.data ? kept : row->below;
    }
    sl_buf_free(&line);
    return count;
}

/* Only this one has a title where the others have none. */
static void put_exception_title(const struct answer_style *style, size_t thread, struct sl_buf *out)
{
    if ((int64_t)thread == style->exception)
        sl_buf_cstr(out, SL_APPLE_LAST_EXCEPTION "\n");
}

bool answer_print_compact(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct printing p = {answer, style, {.columns = frame_columns}, {0}};
    bool any = false;
    for (size_t place = 0; place < answer->thread_count; place++) {
        size_t t = shown_thread(style, place);
        if (!is_shown(style, t))
            continue;
        p.table.count = 0;
        for (size_t i = 0, folded; i < answer->threads[t].frame_count; i += folded ? folded : 1) {
            if ((folded = fold_below(&p, &answer->threads[t], i)))
                continue;
            struct row *row = table_add(&p.table);
            if (row)
                fill_cells(&p, &answer->threads[t], i, false, row->cells);
        }
        sl_buf_cstr(out, any ? "\n" : "");
        put_exception_title(style, t, out);
        table_put(&p.table, style->colour, out);
        any = true;
    }
    sl_buf_free(&p.buf);
    sl_arena_free(&p.table.arena);
    return !p.table.failed && !out->failed;
}

/* ---- frames, a line for each of their properties ---- */

static void put_property(struct sl_buf *out, const char *label, struct sl_str value, struct sl_str offset)
{
    if (value.size)
        sl_buf_printf(out, "%12s " SL_STR_FMT "%s" SL_STR_FMT "\n", label, SL_STR_ARG(value), offset.size ? " " : "",
                      SL_STR_ARG(offset));
}

bool answer_print_pretty(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    const struct sl_str none = {NULL, 0};
    struct printing p = {answer, style, {.columns = frame_columns}, {0}};
    for (size_t place = 0; place < answer->thread_count; place++) {
        size_t t = shown_thread(style, place);
        put_exception_title(style, t, out);
        for (size_t i = 0, folded; is_shown(style, t) && i < answer->threads[t].frame_count; i += folded ? folded : 1) {
            struct sl_str cells[CELLS];
            if ((folded = answer_fold_cycle(&answer->threads[t], i, out))) {
                sl_buf_u8(out, '\n');
                continue;
            }
            fill_cells(&p, &answer->threads[t], i, false, cells);
            sl_buf_printf(out, "%sFrame #%zu%s\n", style->colour ? "\x1b[1m" : "", i, style->colour ? "\x1b[0m" : "");
            put_property(out, "Trust:", cells[CELL_TRUST], none);
            put_property(out, "Instruction:", cells[CELL_ADDRESS], none);
            put_property(out, "Module:", cells[CELL_MODULE], cells[CELL_MODULE_OFFSET]);
            put_property(out, "Function:", cells[CELL_FUNCTION], cells[CELL_FUNCTION_OFFSET]);
            put_property(out, "File:", cells[CELL_FILE], none);
            sl_buf_u8(out, '\n');
        }
    }
    sl_buf_free(&p.buf);
    sl_arena_free(&p.table.arena);
    return !p.table.failed && !out->failed;
}

/* ---- everything ---- */

static void put_known(struct sl_buf *out, const char *label, struct sl_str value)
{
    if (!value.size)
        return;
    sl_buf_printf(out, "%-11s ", label);
    output_put_safe(out, value);
    sl_buf_u8(out, '\n');
}

/* A line for each of them. */
static void put_details(struct sl_buf *out, struct sl_str details)
{
    struct sl_str line;
    while (sl_str_next_line(&details, &line))
        put_known(out, "Details:", line);
}

static void put_system_line(const struct answer *answer, struct sl_buf *out)
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

static void put_crash(const struct answer *answer, struct sl_buf *out)
{
    char text[64] = "";
    time_t seconds = (time_t)answer->timestamp.value;
    struct tm tm;
    put_system_line(answer, out);
    if (answer->timestamp.set && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        put_known(out, "Time:", sl_str(text));
    put_known(out, "Crash:", answer->reason.size ? answer->reason : SL_STR("none"));
    put_details(out, answer->details);
    answer_put_analysis(&answer->analysis, out);
    put_known(out, "Assertion:", answer->assertion);
    if (answer->signal.set)
        sl_buf_printf(out, "Signal:     %llu\n", (unsigned long long)answer->signal.value);
}

static void put_source_line(struct sl_buf *out, char mark, uint64_t number, struct sl_str text)
{
    sl_buf_printf(out, "%c %6llu | ", mark, (unsigned long long)number);
    output_put_safe_but(out, text, '\t');
    sl_buf_u8(out, '\n');
}

/* The lines of source around that of the frame. */
static struct sl_str source_below(struct printing *p, const struct answer_frame *frame)
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

static void put_thread(struct printing *p, const struct answer_thread *thread, struct sl_buf *out)
{
    static const struct column columns[] = {
        {"#", true},         {"Trust", false}, {"Instruction", true}, {"Module File", false}, {"", true},
        {"Function", false}, {"", true},       {"File", false},       {NULL, false},
    };
    p->table = (struct table){.columns = columns, .arena = p->table.arena, .failed = p->table.failed};
    for (size_t i = 0, folded; i < thread->frame_count; i += folded ? folded : 1) {
        if ((folded = fold_below(p, thread, i)))
            continue;
        struct row *row = table_add(&p->table);
        if (!row)
            return;
        sl_buf_printf(&p->buf, "%zu", i);
        row->cells[0] = table_text(&p->table, &p->buf);
        fill_cells(p, thread, i, true, &row->cells[1]);
        row->below = source_below(p, &thread->frames[i]);
    }
    bool is_thread = thread->id.set || !thread->name.size;
    sl_buf_cstr(out, is_thread ? "\nThread" : "\n");
    if (thread->id.set)
        sl_buf_printf(out, " %llu", (unsigned long long)thread->id.value);
    sl_buf_cstr(out, is_thread && thread->name.size ? " " : "");
    output_put_safe(out, thread->name);
    sl_buf_cstr(out, thread->requesting ? " (crashed)\n" : "\n");
    if (thread->frame_count)
        table_put(&p->table, p->style->colour, out);
}

static struct sl_str candidates_below(struct printing *p, const struct answer_module *module)
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

static bool is_used(const struct answer_module *module)
{
    bool unwound = module->unwind_status.size && !sl_str_equal(module->unwind_status, SL_STR("unused"));
    return unwound || !sl_str_equal(module->debug_status, SL_STR("unused"));
}

static struct sl_str safe_text(struct printing *p, struct sl_str text)
{
    output_put_safe(&p->buf, text);
    return table_text(&p->table, &p->buf);
}

static void put_modules(struct printing *p, struct sl_buf *out)
{
    static const struct column columns[] = {
        {"Start", true},   {"End", true},       {"Arch", false}, {"Debug", false},
        {"Unwind", false}, {"Debug ID", false}, {"Name", false}, {NULL, false},
    };
    p->table = (struct table){.columns = columns, .arena = p->table.arena, .failed = p->table.failed};
    for (size_t i = 0; i < p->answer->module_count; i++) {
        const struct answer_module *module = &p->answer->modules[i];
        struct row *row = p->style->unused || is_used(module) ? table_add(&p->table) : NULL;
        if (!row)
            continue;
        const uint64_t bounds[] = {module->address.value, module->address.value + module->size.value};
        for (size_t c = 0; c < 2; c++) {
            sl_buf_printf(&p->buf, "0x%llx", (unsigned long long)bounds[c]);
            row->cells[c] = table_text(&p->table, &p->buf);
        }
        const struct sl_str texts[] = {module->arch, module->debug_status, module->unwind_status, module->debug_id,
                                       path_file_name(module->code_file.size ? module->code_file : module->debug_file)};
        for (size_t c = 0; c < sizeof texts / sizeof *texts; c++)
            row->cells[2 + c] = safe_text(p, texts[c]);
        row->below = candidates_below(p, module);
    }
    if (p->table.count) {
        sl_buf_cstr(out, "\nModules\n");
        table_put(&p->table, p->style->colour, out);
    }
}

static bool is_failure(struct sl_str status)
{
    return status.size && !sl_str_equal(status, SL_STR("ok")) && !sl_str_equal(status, SL_STR("notfound"));
}

/* "error: <whose>: <where>: <why>" */
static void put_error(struct sl_buf *out, struct sl_str whose, struct sl_str where, struct sl_str status,
                      struct sl_str details)
{
    bool told = sl_str_equal(status, SL_STR("error")) && details.size;
    const struct sl_str parts[] = {whose, where, told ? (struct sl_str){NULL, 0} : status, details};
    sl_buf_cstr(out, "error");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].size) {
            sl_buf_cstr(out, ": ");
            output_put_safe(out, parts[i]);
        }
    sl_buf_u8(out, '\n');
}

/* Files that were there, or might have been, and were of no use. */
static void put_module_errors(const struct answer_module *module, struct sl_buf *out)
{
    struct sl_str name = path_file_name(module->debug_file.size ? module->debug_file : module->code_file);
    for (size_t i = 0; i < module->candidate_count; i++) {
        const struct answer_candidate *c = &module->candidates[i];
        const struct answer_outcome outcomes[] = {c->download, c->debug, c->unwind};
        for (size_t k = 0; k < 3; k++) {
            bool again = k && sl_str_equal(outcomes[k].status, outcomes[k - 1].status) &&
                         sl_str_equal(outcomes[k].details, outcomes[k - 1].details);
            if (is_failure(outcomes[k].status) && !again)
                put_error(out, name, c->location, outcomes[k].status, outcomes[k].details);
        }
    }
}

static void put_errors(const struct answer *answer, struct sl_buf *out)
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

/* What would have to be had for more names. */
static void put_missing(const struct answer *answer, struct sl_buf *out)
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

int64_t answer_exception_thread(const struct answer *answer)
{
    for (size_t t = answer->thread_count; t-- > 0;)
        if (!answer->threads[t].id.set && sl_str_equal(answer->threads[t].name, SL_STR(SL_APPLE_LAST_EXCEPTION)))
            return (int64_t)t;
    return ALL_THREADS;
}

int64_t answer_crashed_thread(const struct answer *answer)
{
    for (size_t t = 0; t < answer->thread_count; t++)
        if (answer->threads[t].requesting)
            return (int64_t)t;
    return answer->thread_count ? 0 : ALL_THREADS;
}

bool answer_print_full(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    struct printing p = {answer, style, {.columns = frame_columns}, {0}};
    int64_t first = answer_crashed_thread(answer);
    put_crash(answer, out);
    if (style->exception != ALL_THREADS)
        put_thread(&p, &answer->threads[style->exception], out);
    if (first != ALL_THREADS && first != style->exception && is_shown(style, (size_t)first))
        put_thread(&p, &answer->threads[first], out);
    for (size_t t = 0; t < answer->thread_count; t++)
        if ((int64_t)t != first && (int64_t)t != style->exception && is_shown(style, t))
            put_thread(&p, &answer->threads[t], out);
    put_modules(&p, out);
    put_errors(answer, out);
    put_missing(answer, out);
    sl_buf_free(&p.buf);
    sl_arena_free(&p.table.arena);
    return !p.table.failed && !out->failed;
}

/* ---- everything of JavaScript and of a JVM ---- */

static void put_trace(struct printing *p, size_t number, bool is_jvm, struct sl_buf *out)
{
    static const struct column js[] = {{"#", true}, {"Function", false}, {"File", false}, {NULL, false}};
    static const struct column jvm[] = {
        {"#", true}, {"Module", false}, {"Function", false}, {"File", false}, {NULL, false}};
    const struct answer_thread *trace = &p->answer->threads[number];
    p->table = (struct table){.columns = is_jvm ? jvm : js, .arena = p->table.arena, .failed = p->table.failed};
    for (size_t i = 0; i < trace->frame_count; i++) {
        const struct answer_frame *frame = &trace->frames[i];
        struct row *row = table_add(&p->table);
        size_t at = 0;
        if (!row)
            return;
        sl_buf_printf(&p->buf, "%zu", i);
        row->cells[at++] = table_text(&p->table, &p->buf);
        if (is_jvm)
            row->cells[at++] = safe_text(p, frame->module);
        row->cells[at++] = safe_text(p, frame->function);
        put_place(&p->buf, frame->abs_path.data ? frame->abs_path : frame->filename, frame);
        if (frame->column.set)
            sl_buf_printf(&p->buf, ":%llu", (unsigned long long)frame->column.value);
        row->cells[at] = table_text(&p->table, &p->buf);
        row->below = source_below(p, frame);
    }
    sl_buf_printf(out, "%sStack %zu\n", out->size ? "\n" : "", number);
    if (trace->frame_count)
        table_put(&p->table, p->style->colour, out);
}

static void put_exceptions(struct printing *p, struct sl_buf *out)
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

static bool print_traces(const struct answer *answer, const struct answer_style *style, bool is_jvm, struct sl_buf *out)
{
    struct printing p = {answer, style, {.columns = frame_columns}, {0}};
    put_exceptions(&p, out);
    for (size_t t = 0; t < answer->thread_count; t++)
        if (is_shown(style, t))
            put_trace(&p, t, is_jvm, out);
    put_errors(answer, out);
    sl_buf_free(&p.buf);
    sl_arena_free(&p.table.arena);
    return !p.table.failed && !out->failed;
}

bool answer_print_full_js(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    return print_traces(answer, style, false, out);
}

bool answer_print_full_jvm(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    return print_traces(answer, style, true, out);
}

/* ---- for Markdown ---- */

/* Everything in blocks that Markdown leaves as they are, to be pasted. */
static bool put_blocks(answer_print *print, const struct answer *answer, const struct answer_style *style,
                       struct sl_buf *out)
{
    struct answer_style plain = *style;
    struct sl_buf text = {0};
    plain.colour = false;
    bool good = print(answer, &plain, &text);
    struct sl_str rest = sl_buf_view(&text);
    while (good && rest.size) { /* blocks are separated by empty lines */
        const char *end = rest.size > 1 ? memmem(rest.data, rest.size, "\n\n", 2) : NULL;
        size_t size = end ? (size_t)(end + 1 - rest.data) : rest.size;
        sl_buf_cstr(out, "```text\n");
        sl_buf_str(out, (struct sl_str){rest.data, size});
        sl_buf_cstr(out, end ? "```\n\n" : "```\n");
        size += end != NULL;
        rest = (struct sl_str){rest.data + size, rest.size - size};
    }
    sl_buf_free(&text);
    return good && !out->failed;
}

bool answer_print_markdown(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    return put_blocks(answer_print_full, answer, style, out);
}

bool answer_print_markdown_js(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    return put_blocks(answer_print_full_js, answer, style, out);
}

bool answer_print_markdown_jvm(const struct answer *answer, const struct answer_style *style, struct sl_buf *out)
{
    return put_blocks(answer_print_full_jvm, answer, style, out);
}
