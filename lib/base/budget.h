/* Work and memory budget of one input file, shared by all code that reads, sorts or writes for it.
 *
 * A budget grows with the size of its file. A file that refers to its own parts again and again (overlapping tables, shared
 * lists, one long string named a million times) therefore uses it up, and a well-made file of the same size stays far below it.
 * A step is a small piece of work: an entry read, a comparison while sorting, about 64 bytes copied. Code that is linear by
 * construction need not count steps; code that a file can cause to read the same bytes again must.
 *
 * A file that needs more steps than its budget has is SL_MALFORMED. If the reader can go on without the unit, table or name that needed
 * them, it leaves that out instead. Exceeding a limit of the caller (memory, processor time) is SL_UNSUPPORTED. A thread whose work is
 * cancelled (base/cancel.h) gets nothing more from any budget; that is SL_CANCELLED and says nothing about the file.
 *
 * Any number of threads may share one budget; where steps are frequent each spends through an account of its own
 * (base/account.h). A NULL budget is unlimited. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

enum sl_budget_end {
    SL_BUDGET_LEFT,   /* not used up */
    SL_BUDGET_WORK,   /* the file needs more steps than one of its size should */
    SL_BUDGET_MEMORY, /* over `memory_limit` */
    SL_BUDGET_TIME,   /* `expired` returned true */
};

struct sl_budget {
    _Atomic int64_t steps;  /* steps left */
    _Atomic int64_t memory; /* bytes left */
    _Atomic int64_t lowest; /* the minimum of `memory` so far */
    _Atomic int end;        /* enum sl_budget_end: what was used up first */
    _Atomic uint64_t file_size;
    uint64_t memory_limit; /* bytes; 0 = none */
    /* Called now and then, from any thread: returns whether the caller's time is up. NULL = no time limit. */
    bool (*expired)(void *arg);
    void *arg;
};

/* Sets steps in proportion to `file_size` (bytes); no memory limit, no time limit. */
void sl_budget_init(struct sl_budget *budget, uint64_t file_size);

/* Adds `size` bytes to the file's size, and steps for them: for an inflated section or a companion file. Any thread; NULL is allowed. */
void sl_budget_grow(struct sl_budget *budget, uint64_t size);

/* Sets the caller's limits; call it before anything is spent. `memory` in bytes, 0 = none; `expired` may be NULL. */
void sl_budget_limit(struct sl_budget *budget, uint64_t memory, bool (*expired)(void *arg), void *arg);

/* Spends `steps` of work. Returns false when fewer are left or the time is up, and from then on; also if the calling thread's work is
 * cancelled. */
bool sl_budget_spend(struct sl_budget *budget, uint64_t steps);

/* Charges `bytes` of memory until they are uncharged. Returns false and charges nothing when fewer are left, which marks the budget as used
 * up, or if the calling thread's work is cancelled. */
bool sl_budget_charge(struct sl_budget *budget, uint64_t bytes);
void sl_budget_uncharge(struct sl_budget *budget, uint64_t bytes);
uint64_t sl_budget_peak(const struct sl_budget *budget); /* the maximum of bytes charged at once */

/* True if the budget was used up or the calling thread's work is cancelled; always false for NULL. */
bool sl_budget_exhausted(const struct sl_budget *budget);

/* Sets and returns the error of a used-up budget: SL_MALFORMED or SL_UNSUPPORTED with a sentence. If it is not used up:
 * SL_CANCELLED when the calling thread's work is cancelled, else SL_BUSY "out of memory", for callers that only know that an
 * allocation failed. */
enum sl_code sl_budget_fail(const struct sl_budget *budget, struct sl_error *error);
