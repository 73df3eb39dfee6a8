/* Answers about frames of JavaScript and of the JVM, for people. */
#include "cli/symbolicate/request.h"
#include "cli/symbolicate/table.h"

struct told_frame {
    struct sl_str module, function, filename;
    bool has_line, has_column;
    uint64_t line, column;
};

struct telling {
    enum local_request_kind kind;
    bool colour, pretty;
    struct table table;
    struct sl_buf cell, *out;
    bool any;
};

static void read_told_frame(struct sl_json *j, struct told_frame *frame)
{
    struct sl_str key;
    *frame = (struct told_frame){.has_line = false};
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key)) {
        if (sl_str_equal(key, SL_STR("module")))
            sl_json_text(j, &frame->module);
        else if (sl_str_equal(key, SL_STR("function")))
            sl_json_text(j, &frame->function);
        else if (sl_str_equal(key, SL_STR("filename")))
            sl_json_text(j, &frame->filename);
        else if (sl_str_equal(key, SL_STR("lineno")))
            frame->has_line = sl_json_u64(j, &frame->line);
        else if (sl_str_equal(key, SL_STR("colno")))
            frame->has_column = sl_json_u64(j, &frame->column);
        else
            sl_json_skip(j);
    }
}

static struct sl_str text_cell(struct telling *t, struct sl_str text)
{
    output_put_safe(&t->cell, text);
    return table_text(&t->table, &t->cell);
}

static struct sl_str number_cell(struct telling *t, bool is_set, uint64_t number)
{
    if (is_set)
        sl_buf_printf(&t->cell, "%llu", (unsigned long long)number);
    return table_text(&t->table, &t->cell);
}

static void put_told_row(struct telling *t, const struct told_frame *frame)
{
    struct row *row = table_add(&t->table);
    size_t at = 0;
    if (!row)
        return;
    if (t->kind == LOCAL_JVM)
        row->cells[at++] = text_cell(t, frame->module);
    row->cells[at++] = text_cell(t, frame->function);
    row->cells[at++] = text_cell(t, frame->filename);
    row->cells[at++] = number_cell(t, frame->has_line, frame->line);
    if (t->kind == LOCAL_JS)
        row->cells[at] = number_cell(t, frame->has_column, frame->column);
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

static void put_told_frame(struct telling *t, const struct told_frame *frame, size_t number)
{
    put_told_title(t, "Frame #", number);
    put_told_property(t, "Module:", frame->module);
    put_told_property(t, "Function:", frame->function);
    put_told_property(t, "File:", frame->filename);
    if (frame->has_line)
        sl_buf_printf(&t->cell, "%llu", (unsigned long long)frame->line);
    if (frame->has_line && frame->has_column)
        sl_buf_printf(&t->cell, ":%llu", (unsigned long long)frame->column);
    put_told_property(t, frame->has_column ? "Line/Column:" : "Line:", sl_buf_view(&t->cell));
    sl_buf_clear(&t->cell);
    sl_buf_u8(t->out, '\n');
}

static void tell_frames(struct telling *t, struct sl_json *j)
{
    struct told_frame frame;
    struct sl_str key;
    size_t number = 0;
    t->table.count = 0;
    if (!sl_json_array(j))
        return;
    while (sl_json_next(j, &key)) {
        read_told_frame(j, &frame);
        if (t->pretty)
            put_told_frame(t, &frame, number++);
        else
            put_told_row(t, &frame);
    }
    if (t->pretty)
        return;
    sl_buf_cstr(t->out, t->any ? "\n" : "");
    table_put(&t->table, t->colour, t->out);
    t->any = true;
}

static void tell_traces(struct telling *t, struct sl_json *j)
{
    struct sl_str key;
    if (!sl_json_array(j))
        return;
    while (sl_json_next(j, &key)) {
        if (!sl_json_object(j))
            continue;
        while (sl_json_next(j, &key)) {
            if (sl_str_equal(key, SL_STR("frames")))
                tell_frames(t, j);
            else
                sl_json_skip(j);
        }
    }
}

static void tell_errors(struct telling *t, struct sl_json *j)
{
    static const struct sl_str names[] = {SL_STR("abs_path"), SL_STR("uuid"), SL_STR("type")};
    struct sl_str texts[3], key;
    bool any = false;
    if (!sl_json_array(j))
        return;
    while (sl_json_next(j, &key)) {
        memset(texts, 0, sizeof texts);
        if (!sl_json_texts(j, names, texts, 3))
            continue;
        if (!any)
            sl_buf_printf(t->out, "%sErrors during symbolication%s\n", t->colour ? "\x1b[1m" : "",
                          t->colour ? "\x1b[0m" : "");
        put_told_property(t, "Path:", texts[0].size ? texts[0] : texts[1]);
        put_told_property(t, "Error:", texts[2]);
        sl_buf_u8(t->out, '\n');
        any = true;
    }
}

static bool tell(struct telling *t, struct sl_str answer)
{
    struct sl_json j = sl_json(answer, &t->table.arena, false);
    struct sl_str key;
    bool is_answer = sl_json_object(&j);
    while (is_answer && sl_json_next(&j, &key)) {
        struct sl_json traces = j;
        if (sl_str_equal(key, SL_STR("stacktraces")))
            tell_traces(t, &traces);
        sl_json_skip(&j);
    }
    j = sl_json(answer, &t->table.arena, false);
    is_answer = t->pretty && sl_json_object(&j);
    while (is_answer && sl_json_next(&j, &key)) {
        struct sl_json errors = j;
        if (sl_str_equal(key, SL_STR("errors")))
            tell_errors(t, &errors);
        sl_json_skip(&j);
    }
    bool good = !j.failed && !t->table.failed && !t->cell.failed && !t->out->failed;
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
