/* Writes a sampling report with symbol names. */
#include "apple/samples_impl.h"

#include "base/buf.h"

static void put_position(const struct sl_samples_name *name, struct sl_buf *out)
{
    sl_buf_str(out, name->file);
    if (name->line)
        sl_buf_printf(out, ":%llu", (unsigned long long)name->line);
}

/* Writes " + 12". With several addresses it keeps the report's list, which is relative to the same function if the
 * report names one. */
static void put_offset(const struct sl_samples_row *row, const struct sl_samples_name *name, struct sl_buf *out)
{
    if (row->has_several && row->function.data && row->offset.size)
        sl_buf_printf(out, " + " SL_STR_FMT, SL_STR_ARG(row->offset));
    else if (name->has_offset)
        sl_buf_printf(out, " + %llu%s", (unsigned long long)name->offset, row->has_several ? ",..." : "");
}

/* Writes "main  (in app) + 12  [0x10000400c]  main.c:7". */
static void put_sample_row(struct sl_str line, const struct sl_samples_row *row, const struct sl_samples_name *name,
                           struct sl_buf *out)
{
    struct sl_str tail = apple_skip(line, row->tail);
    bool has_position = row->filename.size != 0;
    sl_buf_printf(out, SL_STR_FMT "  (in " SL_STR_FMT ")", SL_STR_ARG(name->function), SL_STR_ARG(row->image_name));
    put_offset(row, name, out);
    sl_buf_str(out, (struct sl_str){line.data + row->name_end, row->tail - row->name_end});
    if (name->file.size) {
        sl_buf_cstr(out, "  ");
        put_position(name, out);
    }
    if (!name->file.size || !has_position)
        sl_buf_str(out, tail);
}

/* Writes "main + 12 (main.c:7 in app + 16396) [0x10000400c] 1-8". */
static void put_spindump_row(struct sl_str line, const struct sl_samples_row *row, const struct sl_samples_name *name,
                             struct sl_buf *out)
{
    sl_buf_str(out, name->function);
    put_offset(row, name, out);
    sl_buf_cstr(out, " (");
    if (name->file.size) {
        put_position(name, out);
        sl_buf_cstr(out, " in ");
    }
    sl_buf_str(out, row->image_and_offset);
    sl_buf_u8(out, ')');
    sl_buf_str(out, apple_skip(line, row->name_end));
}

bool sl_samples_write(const struct sl_samples *samples, const struct sl_samples_name *names, struct sl_buf *out)
{
    size_t at = 0;
    for (size_t i = 0; i < samples->row_count; i++) {
        const struct sl_samples_row *row = &samples->rows[i];
        const struct sl_str line = {samples->text.data + row->line, row->line_size};
        if (!names[i].function.data)
            continue;
        sl_buf_str(out, (struct sl_str){samples->text.data + at, row->line + row->name - at});
        (row->in_sample ? put_sample_row : put_spindump_row)(line, row, &names[i], out);
        at = row->line + row->line_size;
    }
    sl_buf_str(out, apple_skip(samples->text, at));
    return !out->failed;
}
