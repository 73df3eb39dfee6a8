/* Code that already has symbols: a bit for each instruction unit of the executable segments (4 bytes on ARM64, else 1 byte). Private to
 * this folder. */
#pragma once

#include "symbfile/image.h"

struct coverage;

/* Numbers of ranges of one source of symbols (DWARF, Go line table, symbol tables): read, accepted, rejected; `unexpected` are the rejected
 * ones that are inlined calls and extend beyond their function. */
struct coverage_counts {
    uint64_t produced, accepted, rejected, unexpected;
};

/* Makes a bitmap of the code of each executable segment. SL_UNSUPPORTED if the segments exceed the size limit, SL_BUSY. The caller frees
 * `*coverage`, also after a failure. */
enum sl_code coverage_new(const struct sl_symbfile_image *image, struct sl_budget *budget, struct coverage **coverage,
                          struct sl_error *error);
void coverage_free(struct coverage *coverage);

/* Returns whether the range is accepted, and counts it. Call it with the ranges of a source in order. A function (depth 0) is
 * accepted if none of its code is covered, and then covers it. An inlined call is accepted if it lies inside of the last
 * function and that was accepted. If the budget is used up, no function is accepted. */
bool coverage_accept(struct coverage *coverage, uint64_t start, uint64_t end, uint32_t depth,
                     struct coverage_counts *counts);

/* Begins another source of symbols: inlined calls then no longer belong to the last function. */
void coverage_next_source(struct coverage *coverage);
