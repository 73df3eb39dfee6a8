/* Work and memory budget of one input file, shared by all code that reads, sorts or writes for it.
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
 * of threads may share one budget; each spends through an account of its own (base/account.h) where steps are frequent.
 * NULL is a budget without end. */
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

/* Spends `steps` of work. False, now and ever after, when fewer are left or the time is up. */
bool sl_budget_spend(struct sl_budget *budget, uint64_t steps);

/* Charges `bytes` of memory until they are uncharged. False when fewer are left: nothing is charged then. */
bool sl_budget_charge(struct sl_budget *budget, uint64_t bytes);
void sl_budget_uncharge(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_peak(const struct sl_budget *budget); /* the most bytes that were charged at once */

bool sl_budget_exhausted(const struct sl_budget *budget);

/* The error of a used-up budget: SL_MALFORMED or SL_UNSUPPORTED with a sentence; when it is not used up, SL_CANCELLED if the
 * calling thread's work is cancelled, else SL_BUSY "out of memory": for callers that only know that an allocation failed. */
enum sl_code sl_budget_fail(const struct sl_budget *budget, struct sl_error *error);
