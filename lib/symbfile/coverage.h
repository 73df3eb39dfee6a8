/* Which code is described already: a bit for every granule of the executable segments. Private to this folder. */
#pragma once

#include "symbfile/image.h"

struct coverage;

struct coverage_counts {
    uint64_t produced, accepted, rejected, unexpected;
};

/* SL_UNSUPPORTED when the segments are larger than any program. */
enum sl_code coverage_new(const struct sl_symbfile_image *image, struct sl_budget *budget, struct coverage **coverage,
                          struct sl_error *error);
void coverage_free(struct coverage *coverage);

/* Ranges in the order of their source. A function is accepted when nothing of it is covered, and covers then; what is
 * inlined when it lies inside the last function and that was accepted. When the budget is used up, nothing is. */
bool coverage_accept(struct coverage *coverage, uint64_t start, uint64_t end, uint32_t depth,
                     struct coverage_counts *counts);

/* Another source begins: there is no last function. */
void coverage_next_source(struct coverage *coverage);
