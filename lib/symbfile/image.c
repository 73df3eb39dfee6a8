/* Opens the image of an ELF executable: its loaded segments. */
#include "symbfile/image.h"

#include "base/order.h"

#include <stdlib.h>

/* MAX_SEGMENTS: far more than programs have; limited because each look-up walks over all segments. */
enum { PAGE = 4096, MAX_SEGMENTS = 1024 };

SL_ORDER_BY(symbfile_image_by_address, struct image_segment, address)

/* Reads and sorts the loaded segments; segments that are empty or wrap around the address space are left out. If executable segments
 * overlap, the instructions at an address would be ambiguous, so such files are rejected: SL_MALFORMED. */
static enum sl_code read_segments(struct sl_symbfile_image *image, struct sl_object *object, struct sl_error *error)
{
    struct sl_segment s;
    uint64_t load_address = sl_object_info(object)->load_address;
    image->segments = calloc(MAX_SEGMENTS, sizeof *image->segments);
    if (!image->segments)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; sl_object_segment(object, i, &s); i++) {
        struct image_segment segment = {s.address + load_address, s.memory_size, s.bytes, s.executable};
        if (image->segment_count == MAX_SEGMENTS)
            return sl_fail(error, SL_UNSUPPORTED, "the executable has more than %d loadable segments", MAX_SEGMENTS);
        if (s.memory_size && s.memory_size <= UINT64_MAX - segment.address)
            image->segments[image->segment_count++] = segment;
    }
    qsort(image->segments, image->segment_count, sizeof *image->segments, symbfile_image_by_address);
    const struct image_segment *before = NULL;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *segment = &image->segments[i];
        if (!segment->executable)
            continue;
        if (before && before->address + before->memory_size > segment->address)
            return sl_fail(error, SL_MALFORMED, "the executable segments of the file overlap at 0x%llx",
                           (unsigned long long)segment->address);
        before = segment;
    }
    return SL_OK;
}

enum sl_code sl_symbfile_image_open(struct sl_object *object, struct sl_symbfile_image **out, struct sl_error *error)
{
    const struct sl_object_info *info = sl_object_info(object);
    *out = NULL;
    if (info->format != SL_FORMAT_ELF || !info->is_64bit)
        return sl_fail(error, SL_UNSUPPORTED, "symbfiles are made of 64-bit ELF files only");
    if (info->big_endian)
        return sl_fail(error, SL_UNSUPPORTED, "symbfiles cannot be made of big-endian files");
    struct sl_symbfile_image *image = calloc(1, sizeof *image);
    if (!image)
        return sl_fail(error, SL_BUSY, "out of memory");
    image->file = sl_object_file(object);
    image->family = sl_arch_family(info->arch);
    enum sl_code code = read_segments(image, object, error);
    if (code == SL_OK)
        *out = image;
    else
        sl_symbfile_image_close(image);
    return code;
}

void sl_symbfile_image_close(struct sl_symbfile_image *image)
{
    if (!image)
        return;
    free(image->segments);
    free(image);
}

bool sl_symbfile_image_base(const struct sl_symbfile_image *image, uint64_t *base)
{
    if (!image->segment_count)
        return false;
    *base = image->segments[0].address & ~(uint64_t)(PAGE - 1);
    return true;
}

/* Returns the segment that contains the address; NULL if there is none. */
static const struct image_segment *symbfile_image_find(const struct sl_symbfile_image *image, uint64_t address)
{
    for (size_t i = 0; i < image->segment_count; i++)
        if (address >= image->segments[i].address &&
            address - image->segments[i].address < image->segments[i].memory_size)
            return &image->segments[i];
    return NULL;
}

struct sl_bytes image_code(const struct sl_symbfile_image *image, uint64_t address, uint64_t size)
{
    const struct image_segment *s = symbfile_image_find(image, address);
    if (!s || size > s->memory_size - (address - s->address))
        return (struct sl_bytes){NULL, 0};
    return sl_bytes_part(s->bytes, address - s->address, size);
}
