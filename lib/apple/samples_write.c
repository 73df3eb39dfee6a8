/* Writes a sampling report again, with names from debug information. */
#include "apple/samples_impl.h"

#include "base/buf.h"

/* Writes "main.c:7", or "main.c" if the line is unknown. */
static void put_position(const struct sl_samples_name *name, struct sl_buf *out)
{
    sl_buf_str(out, name->file);
    if (name->line)
        sl_buf_printf(out, ":%llu", (unsigned long long)name->line);
}

/* Writes the offset in the function, like " + 12"; nothing if it is unknown. Of a row with several addresses only the first was looked up.
 * If the report names the function, the report's list of offsets (" + 12,8,...") is kept; otherwise the first offset is written with ",..."
 * after it. */
static void put_offset(const struct sl_samples_row *row, const struct sl_samples_name *name, struct sl_buf *out)
{
    if (row->has_several && row->function.data && row->offset.size)
        sl_buf_printf(out, " + " SL_STR_FMT, SL_STR_ARG(row->offset));
    else if (name->has_offset)
        sl_buf_printf(out, " + %llu%s", (unsigned long long)name->offset, row->has_several ? ",..." : "");
}

/* Writes the part of a row of sample(1) from the function on: "main  (in app) + 12  [0x10000400c]  main.c:7". The text after the address is
 * kept, unless a new source position replaces an old one there. */
static void put_sample_row(struct sl_str line, const struct sl_samples_row *row, const struct sl_samples_name *name,
                           struct sl_buf *out)
{
    struct sl_str tail = apple_skip(line, row->tail);
    bool has_position = row->filename.size != 0;
    sl_buf_printf(out, SL_STR_FMT "  (in " SL_STR_FMT ")", SL_STR_ARG(name->function), SL_STR_ARG(row->image_name));
    put_offset(row, name, out);
    sl_buf_str(out, (struct sl_str){line.data + row->name_end, row->tail - row->name_end}); /* "  [0x10000400c]" */
    if (name->file.size) {
        sl_buf_cstr(out, "  ");
        put_position(name, out);
    }
    if (!name->file.size || !has_position)
        sl_buf_str(out, tail);
}

/* Writes the part of a row of spindump from the function on: "main + 12 (main.c:7 in app + 16396) [0x10000400c] 1-8". What follows the
 * location is kept. */
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

/* Replaces the locations of rows that have a new name. All text between these, rows without a new name included, is copied as it is. */
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
