/* The segments of an executable. Private to this folder. */
#pragma once

#include "object/object.h"
#include "symbfile/extract.h"

struct image_segment {
    uint64_t address, memory_size;
    struct sl_bytes bytes; /* what the file has of it */
    bool executable;
};

struct sl_symbfile_image {
    struct sl_bytes file;
    enum sl_cpu_family family;
    struct image_segment *segments; /* loaded ones, by address */
    size_t segment_count;
};

/* The bytes of [address, address + size): empty unless one segment has all of it in memory; shorter when the file does
 * not have them. */
struct sl_bytes image_code(const struct sl_symbfile_image *image, uint64_t address, uint64_t size);
