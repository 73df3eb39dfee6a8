/* Go programs: functions of the stream must be sound, in the file's order or not. */
#include <stdlib.h>

#include "go/go.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sl_function *f, size_t files, int depth)
{
    uint64_t at = f->address;
    if (!f->size || !f->name.size || f->address + f->size < f->address || depth > 513)
        abort();
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        if (line->address < at || line->address - f->address >= f->size ||
            (line->file != SL_NO_FILE && line->file >= files))
            abort();
        at = line->address + line->size;
    }
    for (uint32_t i = 0; i < f->inlinee_count; i++) {
        const struct sl_function *inlinee = &f->inlinees[i];
        if (inlinee->address < f->address || inlinee->address + inlinee->size > f->address + f->size)
            abort();
        check(inlinee, files, depth + 1);
    }
}

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    (void)sink, (void)error;
    for (size_t i = 0; i < batch->function_count; i++)
        check(&batch->functions[i], batch->file_count, 0);
    return SL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_object *object;
    struct sl_function_sink sink = {.consume = consume};
    struct sl_object_limits limits = {.max_section_size = 1 << 22};
    if (sl_object_open((struct sl_bytes){data, size}, &limits, &object, NULL) != SL_OK)
        return 0;
    sl_go_read(object, &sink, NULL);
    sl_object_close(object);
    return 0;
}
