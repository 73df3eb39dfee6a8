/* A debug file that comes with a request: plain, compressed, or an archive of them. What is found lies in the file or in what was
 * unpacked, and has ids that find it. */
#include <stdlib.h>

#include "search/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct sl_error error = {0};
    struct supplied_objects *own = SL_ARENA_NEW(&arena, struct supplied_objects);
    uint64_t sum = 0;
    if (!own)
        abort();
    *own = (struct supplied_objects){.arena = &arena, .bytes_left = 16 << 20};
    if (supplied_objects_add(own, SL_STR("a"), (struct sl_bytes){data, size}, &error) != SL_OK)
        abort();
    for (size_t i = 0; i < own->count; i++) {
        const struct supplied_object *object = &own->items[i];
        struct object_id id = {.type = OBJECT_ELF, .debug_id = object->debug_id, .has_debug_id = true};
        for (size_t at = 0; at < object->bytes.size; at++)
            sum += object->bytes.data[at];
        supplied_objects_find(own, &search_unwind_target, &id);
    }
    if (sum == UINT64_MAX)
        abort();
    sl_arena_free(&arena);
    return 0;
}
