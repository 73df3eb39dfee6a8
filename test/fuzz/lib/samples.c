/* Reports of samples: read, what belongs together looked at, and written with a name for every row. */
#include "apple/samples.h"
#include "base/buf.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_row(const struct sl_samples *samples, size_t index)
{
    const struct sl_samples_row *row = &samples->rows[index];
    if (row->line + row->line_size > samples->text.size || row->name > row->name_end || row->name_end > row->tail ||
        row->tail > row->line_size || (row->caller != SL_SAMPLES_NONE && row->caller >= index) ||
        (row->thread != SL_SAMPLES_NONE && row->thread >= samples->thread_count))
        __builtin_trap();
    if (row->image == SL_SAMPLES_NONE)
        return;
    if (row->image >= samples->image_count || row->address < samples->images[row->image].begin)
        __builtin_trap();
}

static void write_names(const struct sl_samples *samples, struct sl_arena *arena)
{
    struct sl_samples_name *names = SL_ARENA_ARRAY(arena, struct sl_samples_name, samples->row_count);
    struct sl_buf out = {0};
    for (size_t i = 0; names && i < samples->row_count; i++)
        names[i] = (struct sl_samples_name){SL_STR("f"), SL_STR("f.c"), i % 2, i, i % 3 != 0};
    if (names && (!sl_samples_write(samples, names, &out) || !sl_str_is_utf8(sl_buf_view(&out))))
        __builtin_trap();
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_str text = {(const char *)data, size};
    struct sl_arena arena, more = {0};
    struct sl_samples samples;
    if (!sl_str_is_utf8(text))
        return 0;
    sl_samples_is_text(text);
    sl_arena_init(&arena, 256 * size + (64 << 10)); /* in proportion to the file */
    enum sl_code code = sl_samples_read(text, &arena, &samples, NULL);
    if (code == SL_BUSY)
        __builtin_trap();
    for (size_t i = 0; code == SL_OK && i < samples.row_count; i++)
        look_at_row(&samples, i);
    if (code == SL_OK)
        write_names(&samples, &more);
    sl_arena_free(&arena);
    sl_arena_free(&more);
    return 0;
}
