/* The converter of the kind `symbfile_index` (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* The index of a set of parts. INPUT_FILE has their bytes as they were stored, one part behind the other, INPUT_LENGTHS tells where
 * one ends. INPUT_SCRATCH is an empty file, open for writing, for what does not fit in memory. */
extern const struct converter converter_symbfile_index;
struct symbfile_index_options {
    uint64_t max_bytes; /* of a part, inflated */
    bool is_split;      /* the parts are pieces that are a symbfile only together */
};
