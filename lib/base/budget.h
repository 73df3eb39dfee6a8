/* What one file may cost: the work and the memory that everybody together spends who reads, sorts or writes for it.
 *
 * A budget is made with the file and grows with its size, so that a file which refers to its own parts again and again
 * (overlapping tables, shared lists, one long string named a million times) ends where an honest file of its size never
 * comes. Steps are small pieces of work: an entry looked at, a comparison while sorting, some 64 bytes copied. Code that
 * is linear by construction need not count; whatever can be led to look at the same bytes again does.
 *
 * Nothing is left for a thread whose work is cancelled (base/cancel.h), which is no fact about the file: SL_CANCELLED.
 *
 * A used-up budget is a fact about the file: SL_MALFORMED, or it costs the unit, the table or the name that wanted more,
 * where the reader can go on without. A limit of the caller's (memory, time of the processor) is SL_UNSUPPORTED. Any number
 * of threads may share one budget; each spends through a purse of its own where steps are frequent. NULL is a budget
 * without end. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

enum sl_budget_end {
    SL_BUDGET_LEFT,   /* not used up */
    SL_BUDGET_WORK,   /* out of proportion to the file's size */
    SL_BUDGET_MEMORY, /* over `memory_limit` */
    SL_BUDGET_TIME,   /* `expired` said so */
};

struct sl_budget {
    _Atomic int64_t steps;  /* left */
    _Atomic int64_t memory; /* bytes left */
    _Atomic int64_t lowest; /* the fewest that were left */
    _Atomic int end;        /* enum sl_budget_end: what was first used up */
    _Atomic uint64_t file_size;
    uint64_t memory_limit;
    /* Asked now and then, from any of the threads, whether the caller's time is up; NULL = never. */
    bool (*expired)(void *arg);
    void *arg;
};

/* Steps in proportion to `file_size` (bytes), memory without limit, no time limit. */
void sl_budget_init(struct sl_budget *budget, uint64_t file_size);

/* The file holds more than was known: a section inflated, a companion file. Any thread. */
void sl_budget_grow(struct sl_budget *budget, uint64_t size);

/* Limits of the caller's; before anything is spent. `memory` in bytes, 0 = none; `expired` may be NULL. */
void sl_budget_limit(struct sl_budget *budget, uint64_t memory, bool (*expired)(void *arg), void *arg);

/* Takes `steps`; false, now and ever after, when they are not there or the time is up. */
bool sl_budget_spend(struct sl_budget *budget, uint64_t steps);

/* Takes `bytes` of memory, for as long as it is held; false when they are not there: nothing is taken then. */
bool sl_budget_take(struct sl_budget *budget, uint64_t bytes);
void sl_budget_return(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_peak(const struct sl_budget *budget); /* the most bytes that were held at once */

bool sl_budget_used_up(const struct sl_budget *budget);

/* The error of a used-up budget: SL_MALFORMED or SL_UNSUPPORTED with a sentence; when it is not used up, SL_CANCELLED if the
 * calling thread's work is cancelled, else SL_BUSY "out of memory": for callers that only know that an allocation failed. */
enum sl_code sl_budget_fail(const struct sl_budget *budget, struct sl_error *error);

/* A thread's share, so that frequent small steps cost a subtraction. Zeros with a budget are an empty purse; what is left in
 * it in the end need not be given back. */
struct sl_purse {
    struct sl_budget *budget;
    int64_t left;
};
bool sl_purse_refill(struct sl_purse *purse);
static inline bool sl_purse_spend(struct sl_purse *purse, uint32_t steps)
{
    return (purse->left -= steps) >= 0 || sl_purse_refill(purse);
}

/* Names end here (bytes): longer ones are none, whatever format has them. */
enum { SL_MAX_NAME = 64 << 10 };

/* The NUL-terminated name at `offset` of a string table. Names may share bytes, so each byte is a step. Empty when the offset
 * is outside, the NUL is missing or too far away, or the purse is empty. */
struct sl_str sl_purse_name(struct sl_purse *purse, struct sl_bytes table, uint64_t offset);
