/* Text tables, and their columns for the frames of answers. */
#include "cli/symbolicate/symbolicate.h"

#include "base/grow.h"

/* ---- tables ---- */

/* Adds an empty row, which the caller fills before adding the next, since the rows may then move. NULL when out of memory, with t->failed
 * set. */
struct print_row *table_add(struct print_table *t)
{
    if (!sl_grow_in_arena(&t->arena, &t->rows, &t->capacity, t->count + 1, sizeof *t->rows)) {
        t->failed = true;
        return NULL;
    }
    t->rows[t->count] = (struct print_row){.below = {NULL, 0}};
    return &t->rows[t->count++];
}

struct sl_str table_text(struct print_table *t, struct sl_buf *buf)
{
    struct sl_str text = sl_buf_view(buf);
    char *copy = sl_arena_strndup(&t->arena, text.data ? text.data : "", text.size);
    t->failed |= !copy || buf->failed;
    sl_buf_clear(buf);
    return (struct sl_str){copy, copy ? text.size : 0};
}

static unsigned max_columns; /* table_fit(): the width of tables; 0: unlimited */

void table_fit(unsigned columns)
{
    max_columns = columns;
}

/* Shrinks the widest text columns, one character at a time, until the table has at most max_columns (0: unlimited). No column becomes
 * narrower than SHORTEST, and columns of numbers keep their width. */
static void fit_widths(const struct print_table *t, int *widths)
{
    enum { SHORTEST = 16 };
    int total = -1, count = 0; /* -1: before the first column there is one blank instead of two */
    for (; t->columns[count].title; count++)
        total += widths[count] + 2;
    for (; max_columns && total > (int)max_columns; total--) {
        int widest = -1;
        for (int c = 0; c < count; c++)
            if (!t->columns[c].right && widths[c] > SHORTEST && (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return;
        widths[widest]--;
    }
}

/* Appends a row of cells, padded to the widths of their columns; if the width of tables is limited (max_columns), long texts are shortened
 * to them. No blanks follow the last cell, so that lines have none at their end. */
static void put_row(const struct print_column *columns, const struct sl_str *cells, const int *widths,
                    struct sl_buf *out)
{
    size_t last = 0;
    for (size_t c = 0; columns[c].title; c++)
        last = cells[c].size ? c + 1 : last;
    for (size_t c = 0; c < last; c++) {
        int pad = widths[c] > output_columns(cells[c]) ? widths[c] - output_columns(cells[c]) : 0;
        bool right = columns[c].right && cells[c].size;
        sl_buf_printf(out, "%s%*s", c ? "  " : " ", right ? pad : 0, "");
        if (max_columns && !columns[c].right)
            output_put_trimmed(out, cells[c], (size_t)widths[c]);
        else
            sl_buf_str(out, cells[c]);
        sl_buf_fill(out, ' ', right || c + 1 == last ? 0 : (size_t)pad);
    }
    sl_buf_u8(out, '\n');
}

/* Prints titles (bold with `colour`) and rows. Columns are as wide as their widest cell, unless table_fit() limits the table.
 * Titles are always left-aligned: their row uses `left`, a copy of the columns without right alignment. */
void table_put(const struct print_table *t, bool colour, struct sl_buf *out)
{
    int widths[MAX_COLUMNS] = {0};
    struct sl_str titles[MAX_COLUMNS] = {{NULL, 0}};
    struct print_column left[MAX_COLUMNS + 1] = {{NULL, false}};
    for (size_t c = 0; t->columns[c].title; c++) {
        titles[c] = sl_str(t->columns[c].title);
        left[c].title = t->columns[c].title;
        widths[c] = output_columns(titles[c]);
        for (size_t i = 0; i < t->count; i++) {
            int width = output_columns(t->rows[i].cells[c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    fit_widths(t, widths);
    sl_buf_cstr(out, colour ? "\x1b[1m" : "");
    put_row(left, titles, widths, out);
    sl_buf_cstr(out, colour ? "\x1b[0m" : "");
    for (size_t i = 0; i < t->count; i++) {
        put_row(t->columns, t->rows[i].cells, widths, out);
        sl_buf_str(out, t->rows[i].below);
    }
}

/* ---- frames ---- */

/* Returns the module that contains the frame's address (or ends just before it) and has the frame's `package` as its code file; NULL if
 * there is none. A module without size has no end. */
static const struct answer_module *find_frame_module(const struct symbolicated_answer *answer,
                                                     const struct answer_frame *frame)
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

/* Appends how the stack walk found the frame: `inline` for an inlined call, `none` if the answer does not say. */
static void put_trust(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    struct sl_str trust = thread->frames[index].trust;
    output_put_safe(&p->buf, answer_frame_is_inline(thread, index) ? SL_STR("inline")
                             : trust.data                          ? trust
                                                                   : SL_STR("none"));
}

/* Appends the frame's position in the stack (print_column.put, which passes the thread too). */
static void put_index(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    (void)thread;
    sl_buf_printf(&p->buf, "%zu", index);
}

static void put_instruction(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    if (thread->frames[index].address.set)
        sl_buf_printf(&p->buf, "0x%llx", (unsigned long long)thread->frames[index].address.value);
}

static void put_package(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    output_put_safe(&p->buf, path_file_name(thread->frames[index].package));
}

static void put_offset(struct sl_buf *buf, uint64_t offset)
{
    sl_buf_printf(buf, "+0x%llx", (unsigned long long)offset);
}

/* Appends the address as an offset from the start of its module. */
static void put_package_offset(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    const struct answer_module *module = find_frame_module(p->answer, &thread->frames[index]);
    if (module)
        put_offset(&p->buf, thread->frames[index].address.value - module->address.value);
}

static void put_function(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    output_put_safe(&p->buf, answer_frame_name(&thread->frames[index]));
}

/* Appends the address as an offset from the start of its function, 0 if that is unknown; nothing if the function has no name. */
static void put_function_offset(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    const struct answer_frame *frame = &thread->frames[index];
    if (answer_frame_name(frame).data)
        put_offset(&p->buf, frame->symbol_address.set ? frame->address.value - frame->symbol_address.value : 0);
}

/* Appends "file:line"; nothing if the file is unknown. */
static void put_file_and_line(struct sl_buf *buf, struct sl_str file, const struct answer_frame *frame)
{
    if (!file.data)
        return;
    output_put_safe(buf, file);
    sl_buf_printf(buf, ":%llu", (unsigned long long)frame->line.value);
}

static void put_file(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    put_file_and_line(&p->buf, thread->frames[index].filename, &thread->frames[index]);
}

static void put_path(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    const struct answer_frame *frame = &thread->frames[index];
    put_file_and_line(&p->buf, frame->abs_path.data ? frame->abs_path : frame->filename, frame);
}

/* ---- columns for JavaScript and the JVM ---- */

static void put_class(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    output_put_safe(&p->buf, thread->frames[index].module);
}

static void put_filename(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    output_put_safe(&p->buf, thread->frames[index].filename);
}

static void put_line(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    if (thread->frames[index].line.set)
        sl_buf_printf(&p->buf, "%llu", (unsigned long long)thread->frames[index].line.value);
}

static void put_column(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    if (thread->frames[index].column.set)
        sl_buf_printf(&p->buf, "%llu", (unsigned long long)thread->frames[index].column.value);
}

/* Appends the line of a frame without column (view_request_lines). If it has a column, put_line_and_column() prints both as one value. */
static void put_lone_line(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    if (!thread->frames[index].column.set)
        put_line(p, thread, index);
}

/* Appends "line:column"; nothing unless both are known. */
static void put_line_and_column(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    const struct answer_frame *frame = &thread->frames[index];
    if (frame->line.set && frame->column.set)
        sl_buf_printf(&p->buf, "%llu:%llu", (unsigned long long)frame->line.value,
                      (unsigned long long)frame->column.value);
}

/* Appends "path:line:column", without the column if it is unknown. */
static void put_path_and_column(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    put_path(p, thread, index);
    if (thread->frames[index].column.set)
        sl_buf_printf(&p->buf, ":%llu", (unsigned long long)thread->frames[index].column.value);
}

const struct frame_view view_program = {
    .columns = {{"Trust", false, "Trust:", put_trust},
                {"Instruction", true, "Instruction:", put_instruction},
                {"Module File", false, "Module:", put_package},
                {"", true, NULL, put_package_offset},
                {"Function", false, "Function:", put_function},
                {"", true, NULL, put_function_offset},
                {"File", false, "File:", put_file}},
};
const struct frame_view view_program_full = {
    .columns = {{"#", true, NULL, put_index},
                {"Trust", false, NULL, put_trust},
                {"Instruction", true, NULL, put_instruction},
                {"Module File", false, NULL, put_package},
                {"", true, NULL, put_package_offset},
                {"Function", false, NULL, put_function},
                {"", true, NULL, put_function_offset},
                {"File", false, NULL, put_path}},
};
const struct frame_view view_js = {
    .is_request = true,
    .columns = {{"Function", false, NULL, put_function},
                {"File", false, NULL, put_filename},
                {"Line", true, NULL, put_line},
                {"Column", true, NULL, put_column}},
};
const struct frame_view view_js_full = {
    .is_request = true,
    .columns = {{"#", true, NULL, put_index},
                {"Function", false, NULL, put_function},
                {"File", false, NULL, put_path_and_column}},
};
const struct frame_view view_jvm = {
    .is_request = true,
    .columns = {{"Module", false, NULL, put_class},
                {"Function", false, NULL, put_function},
                {"File", false, NULL, put_filename},
                {"Line", true, NULL, put_line}},
};
const struct frame_view view_request_lines = {
    .is_request = true,
    .columns = {{"Module", false, "Module:", put_class},
                {"Function", false, "Function:", put_function},
                {"File", false, "File:", put_filename},
                {"Line", true, "Line:", put_lone_line},
                {"Column", true, "Line/Column:", put_line_and_column}},
};
const struct frame_view view_jvm_full = {
    .is_request = true,
    .columns = {{"#", true, NULL, put_index},
                {"Module", false, NULL, put_class},
                {"Function", false, NULL, put_function},
                {"File", false, NULL, put_path_and_column}},
};

struct sl_str printing_text(struct answer_printer *p, struct sl_str text)
{
    output_put_safe(&p->buf, text);
    return table_text(&p->table, &p->buf);
}

struct sl_str printing_cell(struct answer_printer *p, const struct print_column *column,
                            const struct answer_thread *thread, size_t index)
{
    column->put(p, thread, index);
    return table_text(&p->table, &p->buf);
}

struct print_row *printing_add_frame(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    struct print_row *row = table_add(&p->table);
    for (size_t c = 0; row && p->table.columns[c].title; c++)
        row->cells[c] = printing_cell(p, &p->table.columns[c], thread, index);
    return row;
}

struct answer_printer printing_make(const struct symbolicated_answer *answer, const struct answer_style *style)
{
    return (struct answer_printer){answer, style, {.columns = style->view ? style->view->columns : NULL}, {0}};
}

bool printing_end(struct answer_printer *p, const struct sl_buf *out)
{
    sl_buf_free(&p->buf);
    sl_arena_free(&p->table.arena);
    return !p->table.failed && !out->failed;
}

size_t printing_fold(struct answer_printer *p, const struct answer_thread *thread, size_t index)
{
    struct sl_buf line = {0};
    /* frames can only repeat others before them; the line about them goes below the table's last row, so there must be one */
    size_t count = p->table.count ? answer_fold_cycle(thread, index, &line) : 0;
    if (count) {
        struct print_row *row = &p->table.rows[p->table.count - 1];
        sl_buf_str(&p->buf, row->below);
        sl_buf_u8(&p->buf, ' ');
        sl_buf_str(&p->buf, sl_buf_view(&line));
        struct sl_str copy = sl_buf_move_to_arena(&p->buf, &p->table.arena);
        p->table.failed |= !copy.data || line.failed;
        row->below = copy.data ? copy : row->below;
    }
    sl_buf_free(&line);
    return count;
}
