#include "cli/symbolicate/table.h"

#include "base/grow.h"
#include "cli/cli.h"

struct row *table_add(struct table *t)
{
    if (!sl_grow_in_arena(&t->arena, &t->rows, &t->capacity, t->count + 1, sizeof *t->rows)) {
        t->failed = true;
        return NULL;
    }
    t->rows[t->count] = (struct row){.below = {NULL, 0}};
    return &t->rows[t->count++];
}

struct sl_str table_text(struct table *t, struct sl_buf *buf)
{
    struct sl_str text = sl_buf_view(buf);
    char *kept = sl_arena_strndup(&t->arena, text.data ? text.data : "", text.size);
    t->failed |= !kept || buf->failed;
    sl_buf_clear(buf);
    return (struct sl_str){kept, kept ? text.size : 0};
}

static int columns_of(struct sl_str text) /* on a terminal: characters */
{
    int count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((uint8_t)text.data[i] & 0xC0) != 0x80;
    return count;
}

static unsigned most_columns;

void table_fit(unsigned columns)
{
    most_columns = columns;
}

/* Takes what is too much from the widest columns of text, as long as these still say something. */
static void fit_widths(const struct table *t, int *widths)
{
    enum { SHORTEST = 16 };
    int total = -1, count = 0;
    for (; t->columns[count].title; count++)
        total += widths[count] + 2;
    for (; most_columns && total > (int)most_columns; total--) {
        int widest = -1;
        for (int c = 0; c < count; c++)
            if (!t->columns[c].right && widths[c] > SHORTEST && (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return;
        widths[widest]--;
    }
}

static void put_row(const struct column *columns, const struct sl_str *cells, const int *widths, struct sl_buf *out)
{
    size_t last = 0;
    for (size_t c = 0; columns[c].title; c++)
        last = cells[c].size ? c + 1 : last;
    for (size_t c = 0; c < last; c++) {
        int pad = widths[c] > columns_of(cells[c]) ? widths[c] - columns_of(cells[c]) : 0;
        bool right = columns[c].right && cells[c].size;
        sl_buf_printf(out, "%s%*s", c ? "  " : " ", right ? pad : 0, "");
        if (most_columns && !columns[c].right)
            output_put_trimmed(out, cells[c], (size_t)widths[c]);
        else
            sl_buf_str(out, cells[c]);
        sl_buf_fill(out, ' ', right || c + 1 == last ? 0 : (size_t)pad);
    }
    sl_buf_u8(out, '\n');
}

void table_put(const struct table *t, bool colour, struct sl_buf *out)
{
    int widths[MAX_COLUMNS] = {0};
    struct sl_str titles[MAX_COLUMNS] = {{NULL, 0}};
    struct column left[MAX_COLUMNS + 1] = {{NULL, false}};
    for (size_t c = 0; t->columns[c].title; c++) {
        titles[c] = sl_str(t->columns[c].title);
        left[c].title = t->columns[c].title;
        widths[c] = columns_of(titles[c]);
        for (size_t i = 0; i < t->count; i++) {
            int width = columns_of(t->rows[i].cells[c]);
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
