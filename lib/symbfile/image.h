/* The segments of an executable (System V ABI, "Program Header"). Private to this folder. */
#pragma once

#include "symbfile/extract.h"

enum { IMAGE_X86_64 = 62, IMAGE_AARCH64 = 183 }; /* e_machine */

struct image_segment {
    uint64_t address, offset, file_size, memory_size;
    bool executable;
};

struct sl_symbfile_image {
    struct sl_bytes bytes;
    uint16_t machine;
    struct image_segment *segments; /* loaded ones, by address */
    size_t segment_count;
};

/* The bytes of [address, address + size): empty unless one segment has all of it in memory; shorter when the file does
 * not have them. */
struct sl_bytes image_code(const struct sl_symbfile_image *image, uint64_t address, uint64_t size);

/* Bytes from an address to the end of what the file has of its segment. */
struct sl_bytes image_from(const struct sl_symbfile_image *image, uint64_t address);
