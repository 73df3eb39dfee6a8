/* The segments of an executable. Private to this folder. */
#pragma once

#include "object/object.h"
#include "symbfile/extract.h"

struct image_segment {
    uint64_t address, memory_size;
    struct sl_bytes bytes; /* the part that is in the file */
    bool executable;
};

struct sl_symbfile_image {
    struct sl_bytes file;
    enum sl_cpu_family family;
    struct image_segment *segments; /* loaded segments, sorted by address */
    size_t segment_count;
};

/* Returns the bytes of [address, address + size): empty unless one segment contains all of it in memory; fewer than `size` if the
 * file does not have all bytes of the segment. */
struct sl_bytes image_code(const struct sl_symbfile_image *image, uint64_t address, uint64_t size);
