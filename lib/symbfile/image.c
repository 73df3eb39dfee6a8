#include "symbfile/image.h"

#include <stdlib.h>

enum { PT_LOAD = 1, PF_X = 1, PAGE = 4096, PROGRAM_HEADER = 56, MAX_SEGMENTS = 1024 };

static int symbfile_image_by_address(const void *left, const void *right)
{
    const struct image_segment *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static enum sl_code read_segments(struct sl_symbfile_image *image, uint64_t offset, uint16_t size, uint16_t count,
                                  struct sl_error *error)
{
    bool inside = true;
    struct sl_bytes table = sl_bytes_slice(image->bytes, offset, (uint64_t)size * count, &inside);
    if (!inside || (count && size < PROGRAM_HEADER))
        return sl_fail(error, SL_MALFORMED, "program headers at offset 0x%llx are outside of the file",
                       (unsigned long long)offset);
    image->segments = calloc((size_t)count + 1, sizeof *image->segments);
    if (!image->segments)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (uint16_t i = 0; i < count; i++) {
        struct sl_reader r = sl_reader((struct sl_bytes){table.data + (size_t)i * size, size}, false);
        struct image_segment s = {0};
        uint32_t type = sl_read_u32(&r), flags = sl_read_u32(&r);
        s.offset = sl_read_u64(&r);
        s.address = sl_read_u64(&r);
        sl_read_u64(&r);
        s.file_size = sl_read_u64(&r);
        s.memory_size = sl_read_u64(&r);
        s.executable = flags & PF_X;
        if (type == PT_LOAD && image->segment_count == MAX_SEGMENTS)
            return sl_fail(error, SL_UNSUPPORTED, "more than %d loadable segments", MAX_SEGMENTS);
        if (type == PT_LOAD && s.memory_size && s.memory_size <= UINT64_MAX - s.address)
            image->segments[image->segment_count++] = s;
    }
    if (image->segment_count)
        qsort(image->segments, image->segment_count, sizeof *image->segments, symbfile_image_by_address);
    const struct image_segment *before = NULL;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *s = &image->segments[i];
        if (!s->executable)
            continue;
        if (before && before->address + before->memory_size > s->address)
            return sl_fail(error, SL_MALFORMED, "executable segments overlap at 0x%llx",
                           (unsigned long long)s->address);
        before = s;
    }
    return SL_OK;
}

enum sl_code sl_symbfile_image_open(struct sl_bytes bytes, struct sl_symbfile_image **out, struct sl_error *error)
{
    static const uint8_t ident[] = {0x7F, 'E', 'L', 'F', 2 /* 64 bits */};
    *out = NULL;
    if (bytes.size < 64 || memcmp(bytes.data, ident, sizeof ident) != 0)
        return sl_fail(error, SL_UNSUPPORTED, "not an ELF file of 64 bits");
    if (bytes.data[5] != 1)
        return sl_fail(error, SL_UNSUPPORTED, "big endian files are not supported");
    struct sl_reader r = sl_reader(bytes, false);
    struct sl_symbfile_image *image = calloc(1, sizeof *image);
    if (!image)
        return sl_fail(error, SL_BUSY, "out of memory");
    image->bytes = bytes;
    sl_reader_seek(&r, 18);
    image->machine = sl_read_u16(&r);
    sl_reader_seek(&r, 32);
    uint64_t offset = sl_read_u64(&r);
    sl_reader_seek(&r, 54);
    uint16_t size = sl_read_u16(&r), count = sl_read_u16(&r);
    enum sl_code code = read_segments(image, offset, size, count, error);
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

static const struct image_segment *symbfile_image_find(const struct sl_symbfile_image *image, uint64_t address)
{
    for (size_t i = 0; i < image->segment_count; i++)
        if (address >= image->segments[i].address &&
            address - image->segments[i].address < image->segments[i].memory_size)
            return &image->segments[i];
    return NULL;
}

struct sl_bytes image_from(const struct sl_symbfile_image *image, uint64_t address)
{
    const struct image_segment *s = symbfile_image_find(image, address);
    uint64_t at = s ? address - s->address : 0;
    if (!s || at >= s->file_size || s->offset > image->bytes.size || at > image->bytes.size - s->offset)
        return (struct sl_bytes){NULL, 0};
    uint64_t left = image->bytes.size - s->offset - at;
    left = left < s->file_size - at ? left : s->file_size - at;
    return (struct sl_bytes){image->bytes.data + s->offset + at, (size_t)left};
}

struct sl_bytes image_code(const struct sl_symbfile_image *image, uint64_t address, uint64_t size)
{
    const struct image_segment *s = symbfile_image_find(image, address);
    if (!s || size > s->memory_size - (address - s->address))
        return (struct sl_bytes){NULL, 0};
    struct sl_bytes code = image_from(image, address);
    code.size = code.size < size ? code.size : (size_t)size;
    return code;
}
