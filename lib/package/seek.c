/* Finds the frames of a zstd file, each of which can be decompressed by itself (`pzstd` and the seekable format write several). */
#include <zstd.h>

#include "package/impl.h"

enum { SKIPPABLE_MASK = 0xFFFFFFF0, SKIPPABLE = 0x184D2A50 };

/* True for a skippable frame, which has no contents (RFC 8878, 3.1.2). */
static bool is_skippable(struct sl_bytes frame)
{
    struct sl_reader r = sl_reader(frame, false);
    return (sl_read_u32(&r) & SKIPPABLE_MASK) == SKIPPABLE && !r.failed;
}

/* Returns where the last frame begins whose contents begin at or before `offset`. The start of the file if the offset is beyond all frames:
 * the decoder then reads all of it and finds the end. */
struct block_place zstd_find_frame(struct sl_bytes packed, uint64_t offset)
{
    struct block_place at = {0, 0};
    while (at.packed_offset < packed.size) {
        struct sl_bytes rest = sl_bytes_from(packed, at.packed_offset);
        unsigned long long size = is_skippable(rest) ? 0 : ZSTD_getFrameContentSize(rest.data, rest.size);
        if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > offset - at.offset)
            break; /* the next frame begins behind `offset`, or at an unknown offset */
        size_t packed_size = ZSTD_findFrameCompressedSize(rest.data, rest.size);
        if (ZSTD_isError(packed_size) || packed_size == 0)
            break;
        at.packed_offset += packed_size;
        at.offset += size;
    }
    return at.packed_offset < packed.size ? at : (struct block_place){0, 0};
}

/* True if there is a second frame and the first one states its decompressed size, without which the offset of the second is unknown. */
bool zstd_has_frames(struct sl_bytes packed)
{
    size_t size = ZSTD_findFrameCompressedSize(packed.data, packed.size);
    unsigned long long contents = ZSTD_getFrameContentSize(packed.data, packed.size);
    return !ZSTD_isError(size) && size < packed.size && contents != ZSTD_CONTENTSIZE_UNKNOWN &&
           contents != ZSTD_CONTENTSIZE_ERROR;
}
