/* Frames of zstd: each can be decompressed by itself (`pzstd`, the seekable format). */
#include <zstd.h>

#include "package/impl.h"

enum { SKIPPABLE_MASK = 0xFFFFFFF0, SKIPPABLE = 0x184D2A50 };

static bool is_skippable(struct sl_bytes frame)
{
    struct sl_reader r = sl_reader(frame, false);
    return (sl_read_u32(&r) & SKIPPABLE_MASK) == SKIPPABLE && !r.failed;
}

struct block_place zstd_find_frame(struct sl_bytes packed, uint64_t offset)
{
    struct block_place at = {0, 0};
    while (at.packed_offset < packed.size) {
        struct sl_bytes rest = sl_bytes_from(packed, at.packed_offset);
        unsigned long long size = is_skippable(rest) ? 0 : ZSTD_getFrameContentSize(rest.data, rest.size);
        if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > offset - at.offset)
            break;
        size_t packed_size = ZSTD_findFrameCompressedSize(rest.data, rest.size);
        if (ZSTD_isError(packed_size) || packed_size == 0)
            break;
        at.packed_offset += packed_size;
        at.offset += size;
    }
    return at.packed_offset < packed.size ? at : (struct block_place){0, 0};
}

bool zstd_has_frames(struct sl_bytes packed)
{
    size_t size = ZSTD_findFrameCompressedSize(packed.data, packed.size);
    unsigned long long contents = ZSTD_getFrameContentSize(packed.data, packed.size);
    return !ZSTD_isError(size) && size < packed.size && contents != ZSTD_CONTENTSIZE_UNKNOWN &&
           contents != ZSTD_CONTENTSIZE_ERROR;
}
