/* BPF objects: functions of the stream must be sound, by address, and not overlap. */
#include <stdlib.h>

#include "btf/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sl_function *f, size_t files, uint64_t end)
{
    if (f->address < end || !f->size || !f->name.size || f->address + f->size < f->address || f->inlinee_count)
        abort();
    uint64_t at = f->address;
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        if (line->address < at || !line->size || !line->line || line->address - f->address >= f->size ||
            line->size > f->address + f->size - line->address || (line->file != SL_NO_FILE && line->file >= files))
            abort();
        at = line->address + line->size;
    }
}

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    uint64_t end = 0;
    (void)sink, (void)error;
    for (size_t i = 0; i < batch->function_count; i++) {
        check(&batch->functions[i], batch->file_count, end);
        end = batch->functions[i].address + batch->functions[i].size;
    }
    return SL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_object *object;
    struct sl_function_sink sink = {.consume = consume};
    struct sl_object_limits limits = {.max_section_size = 1 << 22};
    if (sl_object_open((struct sl_bytes){data, size}, &limits, &object, NULL) != SL_OK)
        return 0;
    sl_btf_read(object, &sink, NULL);
    sl_object_close(object);
    return 0;
}
