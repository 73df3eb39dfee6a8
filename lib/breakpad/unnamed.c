/* Code that unwind information shows, but that has neither a function nor a symbol. */
#include "breakpad/impl.h"

#include "base/order.h"

#include <stdlib.h>

bool sl_breakpad_writer_unnamed(struct sl_breakpad_writer *w, uint64_t address, uint64_t size)
{
    if (!size || size > UINT64_MAX - address) /* empty, or beyond the address space: ignored */
        return true;
    if (!sl_account_grow(&w->account, &w->unnamed, &w->unnamed_capacity, w->unnamed_count + 1, sizeof *w->unnamed))
        return false;
    w->unnamed[w->unnamed_count++] = (struct code_range){address, address + size};
    return true;
}

SL_ORDER_BY(unnamed_by_start, struct code_range, start, end)

/* Indexes of the first record (function) and symbol that do not begin before the current range; both lists are sorted by address. */
struct breakpad_coverage {
    size_t record, symbol;
    uint64_t end; /* the highest end of a function that begins before the range */
};

/* True if one of the first `record_count` functions has code in the range, or a symbol begins in it. Call it with ascending ranges: `c`,
 * the positions in both lists and the highest end of the functions before them, only moves forward. */
static bool is_covered(const struct sl_breakpad_writer *w, size_t record_count, struct breakpad_coverage *c,
                       struct code_range range)
{
    for (; c->record < record_count && w->records[c->record].address < range.start; c->record++) {
        uint64_t end = w->records[c->record].address + w->records[c->record].size;
        c->end = end > c->end ? end : c->end;
    }
    while (c->symbol < w->symbol_count && w->symbols[c->symbol].address < range.start)
        c->symbol++;
    return c->end > range.start || (c->record < record_count && w->records[c->record].address < range.end) ||
           (c->symbol < w->symbol_count && w->symbols[c->symbol].address < range.end);
}

void breakpad_add_unnamed(struct sl_breakpad_writer *w)
{
    static const uint8_t nothing[2] = {0, 0}; /* the encoding of 0 lines and 0 inlined calls */
    struct breakpad_coverage covered = {0};
    size_t record_count = w->record_count;
    /* fails if there are too many records or memory is short; without unnamed code there is nothing to do */
    if (!w->unnamed_count || w->unnamed_count > UINT32_MAX - record_count ||
        !sl_account_grow(&w->account, &w->records, &w->record_capacity, record_count + w->unnamed_count,
                         sizeof *w->records)) {
        w->failed = w->failed || w->unnamed_count;
        return;
    }
    uint32_t name = breakpad_text_number(&w->names, &w->arena, w->options->unnamed, &w->failed);
    qsort(w->unnamed, w->unnamed_count, sizeof *w->unnamed, unnamed_by_start);
    for (size_t i = 0; i < w->unnamed_count; i++) {
        struct code_range range = w->unnamed[i];
        if (is_covered(w, record_count, &covered, range))
            continue;
        covered.end = range.end; /* a range that overlaps this one is left out: unwind tables may repeat code */
        w->records[w->record_count] = (struct breakpad_record){.address = range.start,
                                                               .size = range.end - range.start,
                                                               .data = nothing,
                                                               .data_size = sizeof nothing,
                                                               .name = name,
                                                               .order = (uint32_t)w->record_count};
        w->record_count++;
    }
}
