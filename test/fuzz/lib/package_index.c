/* The reader of indexes on hostile bytes behind a valid header; what it reads can be written again. */
#include <stdlib.h>

#include "package/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mends the hash of the header, so that the rest is reached. */
static void mend(uint8_t *copy, size_t size)
{
    enum { HEADER = 32, SECTION_COUNT = 8, HASH = 24 };
    if (size < HEADER || copy[SECTION_COUNT] > 16)
        return;
    size_t content = HEADER + copy[SECTION_COUNT] * 24u;
    memset(copy + SECTION_COUNT + 1, 0, 3);
    memset(copy + HASH, 0, 8);
    uint64_t hash = content <= size ? sl_hash(copy, content) : 0;
    memcpy(copy + HASH, &hash, 8);
}

static void write_again(const struct sl_index *index)
{
    struct sl_index_builder builder = {0};
    struct sl_buf out = {0};
    struct sl_index_file file;
    struct sl_index again;
    uint32_t *numbers = malloc((index->file_count + 1) * sizeof *numbers);
    for (size_t i = 0; numbers && i < index->file_count; i++)
        numbers[i] = sl_index_file(index, i, &file) ? sl_index_add_file(&builder, &file) : UINT32_MAX;
    if (numbers)
        sl_index_copy_objects(&builder, index, numbers);
    if (numbers && sl_index_finish(&builder, 7, &out) &&
        (sl_index_open(sl_buf_bytes(&out), &again, NULL) != SL_OK || again.key != 7))
        __builtin_trap();
    sl_buf_free(&out);
    sl_index_builder_free(&builder);
    free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = aligned_alloc(8, (size + 7) & ~(size_t)7);
    struct sl_index index;
    struct sl_index_object object;
    struct sl_index_source source;
    struct sl_buf path = {0};
    size_t first;
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    mend(copy, size);
    if (sl_index_open((struct sl_bytes){copy, size}, &index, NULL) == SL_OK) {
        for (size_t i = 0; i <= index.object_count; i++)
            if (sl_index_object(&index, i, &object)) {
                sl_index_member_path(&object, &path);
                if (sl_index_find(&index, &object.id, object.id.size, &first) > index.object_count)
                    __builtin_trap();
                sl_buf_clear(&path);
            }
        for (size_t i = 0; i <= index.source_count; i++)
            sl_index_source(&index, i, &source);
        write_again(&index);
    }
    sl_buf_free(&path);
    free(copy);
    return 0;
}
