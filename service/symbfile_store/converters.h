/* The converter (conversion/converter.h) of the cache kind `symbfile_index`. */
#pragma once

#include "conversion/converter.h"

/* Makes the index of a symbfile that was uploaded in parts. INPUT_FILE is the concatenation of the stored parts, INPUT_LENGTHS has their
 * lengths (uint64_t each).
 * INPUT_SCRATCH is an empty file, open for writing, for data that does not fit in memory.
 *
 * Example, two parts of 3 and 5 bytes:  INPUT_FILE  aaabbbbb   INPUT_LENGTHS  03 00 00 00 00 00 00 00  05 00 00 00 00 00 00 00 */
extern const struct converter converter_symbfile_index;
struct symbfile_index_options {
    uint64_t max_bytes; /* limit of a symbfile after decompression */
    bool is_split;      /* the parts are pieces of one symbfile; false = each is a symbfile */
};
