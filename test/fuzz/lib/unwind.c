/* Unwind information of every format: what is read must be sound ranges, and their text, read back, must be the same text
 * as the one it then gives. */
#include <stdlib.h>

#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct checked {
    struct sl_unwind_text text;
    enum sl_code (*range)(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error);
};

static enum sl_code check(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error)
{
    struct checked *c = (struct checked *)sink;
    if (!range->row_count || !range->size || range->start + range->size < range->start ||
        range->rows[0].address != range->start || !range->rows[0].count || range->rows[0].rules[0].reg != SL_UNWIND_CFA)
        abort();
    for (size_t i = 1; i < range->row_count; i++)
        if (range->rows[i].address < range->rows[i - 1].address || range->rows[i].address - range->start >= range->size)
            abort();
    return c->range(sink, range, error);
}

static bool append(void *arg, struct sl_str text)
{
    sl_buf_str(arg, text);
    return true;
}

static bool read_text(struct sl_bytes file, struct sl_buf *out, enum sl_cpu_family *family)
{
    struct sl_object *object;
    struct checked c;
    struct sl_object_limits limits = {.max_section_size = 1 << 22};
    if (sl_object_open(file, &limits, &object, NULL) != SL_OK)
        return false;
    sl_unwind_text_init(&c.text, object);
    c.range = c.text.sink.range;
    c.text.sink.range = check;
    c.text.write = append;
    c.text.arg = out;
    *family = c.text.family;
    sl_unwind_read(object, &c.text.sink, NULL);
    sl_unwind_text_free(&c.text);
    sl_object_close(object);
    return !out->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const modules[] = {
        [SL_CPU_X86] = "x86",       [SL_CPU_X86_64] = "x86_64",   [SL_CPU_ARM] = "arm",
        [SL_CPU_ARM64] = "arm64",   [SL_CPU_PPC] = "ppc",         [SL_CPU_PPC64] = "ppc64",
        [SL_CPU_MIPS] = "mips",     [SL_CPU_MIPS64] = "mips64",   [SL_CPU_ARM64_32] = "arm64_32",
        [SL_CPU_WASM32] = "wasm32", [SL_CPU_UNKNOWN] = "unknown",
    };
    struct sl_buf first = {0}, second = {0}, third = {0};
    enum sl_cpu_family family, ignored;
    if (read_text((struct sl_bytes){data, size}, &first, &family)) {
        struct sl_buf head = {0};
        sl_buf_printf(&head, "MODULE Linux %s 3249D99D0C4049318610F4E4FB0B69360 x\n", modules[family]);
        sl_buf_add(&head, first.data, first.size);
        if (read_text(sl_buf_bytes(&head), &second, &ignored)) {
            head.size -= first.size;
            sl_buf_add(&head, second.data, second.size);
            if (read_text(sl_buf_bytes(&head), &third, &ignored) &&
                !sl_str_equal(sl_buf_view(&second), sl_buf_view(&third)))
                abort();
        }
        sl_buf_free(&head);
    }
    sl_buf_free(&first);
    sl_buf_free(&second);
    sl_buf_free(&third);
    return 0;
}
