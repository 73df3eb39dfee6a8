/* Answers about frames of JavaScript and of the JVM, for people. */
#include "cli/symbolicate/answer.h"
#include "cli/symbolicate/request.h"
#include "cli/symbolicate/table.h"

struct telling {
    enum local_request_kind kind;
    bool colour, pretty;
    struct table table;
    struct sl_buf cell, *out;
    bool any;
};

static struct sl_str text_cell(struct telling *t, struct sl_str text)
{
    output_put_safe(&t->cell, text);
    return table_text(&t->table, &t->cell);
}

static struct sl_str number_cell(struct telling *t, struct sl_opt_u64 number)
{
    if (number.set)
        sl_buf_printf(&t->cell, "%llu", (unsigned long long)number.value);
    return table_text(&t->table, &t->cell);
}

static void put_told_row(struct telling *t, const struct answer_frame *frame)
{
    struct row *row = table_add(&t->table);
    size_t at = 0;
    if (!row)
        return;
    if (t->kind == LOCAL_JVM)
        row->cells[at++] = text_cell(t, frame->module);
    row->cells[at++] = text_cell(t, frame->function);
    row->cells[at++] = text_cell(t, frame->filename);
    row->cells[at++] = number_cell(t, frame->line);
    if (t->kind == LOCAL_JS)
        row->cells[at] = number_cell(t, frame->column);
}

static void put_told_property(struct telling *t, const char *label, struct sl_str value)
{
    if (!value.size)
        return;
    sl_buf_printf(t->out, "%12s ", label);
    output_put_safe(t->out, value);
    sl_buf_u8(t->out, '\n');
}

static void put_told_title(struct telling *t, const char *title, size_t number)
{
    sl_buf_printf(t->out, "%s%s%zu%s\n", t->colour ? "\x1b[1m" : "", title, number, t->colour ? "\x1b[0m" : "");
}

static void put_told_frame(struct telling *t, const struct answer_frame *frame, size_t number)
{
    put_told_title(t, "Frame #", number);
    put_told_property(t, "Module:", frame->module);
    put_told_property(t, "Function:", frame->function);
    put_told_property(t, "File:", frame->filename);
    if (frame->line.set)
        sl_buf_printf(&t->cell, "%llu", (unsigned long long)frame->line.value);
    if (frame->line.set && frame->column.set)
        sl_buf_printf(&t->cell, ":%llu", (unsigned long long)frame->column.value);
    put_told_property(t, frame->column.set ? "Line/Column:" : "Line:", sl_buf_view(&t->cell));
    sl_buf_clear(&t->cell);
    sl_buf_u8(t->out, '\n');
}

static void tell_frames(struct telling *t, const struct answer_thread *trace)
{
    t->table.count = 0;
    for (size_t i = 0; i < trace->frame_count; i++)
        if (t->pretty)
            put_told_frame(t, &trace->frames[i], i);
        else
            put_told_row(t, &trace->frames[i]);
    if (t->pretty || !trace->frames)
        return;
    sl_buf_cstr(t->out, t->any ? "\n" : "");
    table_put(&t->table, t->colour, t->out);
    t->any = true;
}

static void tell_errors(struct telling *t, const struct answer *answer)
{
    if (answer->error_count)
        sl_buf_printf(t->out, "%sErrors during symbolication%s\n", t->colour ? "\x1b[1m" : "",
                      t->colour ? "\x1b[0m" : "");
    for (size_t i = 0; i < answer->error_count; i++) {
        const struct answer_error *error = &answer->errors[i];
        put_told_property(t, "Path:", error->path.size ? error->path : error->id);
        put_told_property(t, "Error:", error->type);
        sl_buf_u8(t->out, '\n');
    }
}

static bool tell(struct telling *t, struct sl_str text)
{
    struct answer answer;
    bool good = answer_read(text, &t->table.arena, &answer);
    for (size_t i = 0; good && i < answer.thread_count; i++)
        tell_frames(t, &answer.threads[i]);
    if (good && t->pretty)
        tell_errors(t, &answer);
    good = good && !t->table.failed && !t->cell.failed && !t->out->failed;
    sl_buf_free(&t->cell);
    sl_arena_free(&t->table.arena);
    return good;
}

bool request_print_compact(struct sl_str answer, enum local_request_kind kind, bool colour, struct sl_buf *out)
{
    static const struct column js[] = {
        {"Function", false}, {"File", false}, {"Line", true}, {"Column", true}, {NULL, false}};
    static const struct column jvm[] = {
        {"Module", false}, {"Function", false}, {"File", false}, {"Line", true}, {NULL, false}};
    struct telling t = {.kind = kind, .colour = colour, .table.columns = kind == LOCAL_JS ? js : jvm, .out = out};
    return tell(&t, answer);
}

bool request_print_pretty(struct sl_str answer, enum local_request_kind kind, bool colour, struct sl_buf *out)
{
    struct telling t = {.kind = kind, .colour = colour, .pretty = true, .out = out};
    return tell(&t, answer);
}
