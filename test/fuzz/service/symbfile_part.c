/* A part of an upload on hostile bytes: the first byte says which part of how many it is. */
#include "symbfile_store/symbfile_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    uint64_t count = 1 + (data[0] & 3), number = (data[0] >> 2 & 3) % count;
    size_t step = (size_t)(data[0] >> 4) * 5 + 1;
    struct symbfile_failure failure = {0};
    struct symbfile_part *part = symbfile_part_new(number, count, 1 << 20, NULL);
    bool good = part != NULL;
    for (size_t at = 1; at < size && good; at += step)
        good = symbfile_part_feed(part, (struct sl_bytes){data + at, size - at < step ? size - at : step}, &failure);
    if (good)
        good = symbfile_part_finish(part, &failure);
    if (good == (failure.status != 0))
        __builtin_trap(); /* a failure without a reason, or the reverse */
    symbfile_part_free(part);
    return 0;
}
