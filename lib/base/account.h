/* One thread's account of work and memory with a file's budget: a field of whatever reads, sorts or writes for the file.
 *
 * Steps are bought from the budget by the thousand, so that spending some of them costs a subtraction. Memory of arrays is
 * charged as it is allocated; the account knows how much it has charged, and gives it back at once in the end. Zeros with a
 * budget are an empty account; without a budget (NULL) nothing is limited. Not thread safe; any number of accounts may share one
 * budget. */
#pragma once

#include "base/budget.h"

struct sl_account {
    struct sl_budget *budget;
    int64_t steps;  /* bought and not yet spent; lost when the account ends */
    uint64_t bytes; /* charged to the budget */
    bool failed;    /* spending, allocating or growing has failed; users may set it for
                     * failures of their own */
};

bool sl_account_refill(struct sl_account *account);

/* Spends `steps` of work, at most UINT32_MAX at once. False, now and ever after, when the budget is used up. */
static inline bool sl_account_spend(struct sl_account *account, uint64_t steps)
{
    account->steps -= (int64_t)(steps < UINT32_MAX ? steps : UINT32_MAX);
    return account->steps >= 0 || sl_account_refill(account);
}

/* `count` uninitialised items of `item` bytes; NULL when the budget or memory ran out. Freed with sl_account_free and the same
 * size, or with free() before sl_account_release. */
void *sl_account_alloc(struct sl_account *account, size_t count, size_t item);
void sl_account_free(struct sl_account *account, void *items, size_t count, size_t item);

bool sl_account_grow_array(struct sl_account *account, void *array, size_t *capacity, size_t need, size_t item);

/* As sl_grow, charged to the account; false also when the budget has no more memory. */
static inline bool sl_account_grow(struct sl_account *account, void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_account_grow_array(account, array, capacity, need, item);
}

/* Gives back all memory that is charged: its arrays were freed, or are about to be. */
void sl_account_release(struct sl_account *account);

/* Names of more bytes are ignored, whatever format has them. */
enum { SL_MAX_NAME = 64 << 10 };

/* The NUL-terminated name at `offset` of a string table. Names may share bytes, so each byte is a step. Empty when the offset
 * is outside, the NUL is missing or too far away, or the work budget is used up. */
struct sl_str sl_account_read_name(struct sl_account *account, struct sl_bytes table, uint64_t offset);
