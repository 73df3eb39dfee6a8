/* The account through which one thread spends a file's budget of work and memory (base/budget.h). It is a member of every struct that
 * reads, sorts or writes for the file.
 *
 * Steps are bought from the budget by the thousand, so spending some is a subtraction. Memory of arrays is charged when it is
 * allocated; the account counts what it has charged and sl_account_release() uncharges all of it. Zero-initialise, then set
 * `budget` (NULL = unlimited). Not thread safe; any number of accounts may share one budget. */
#pragma once

#include "base/budget.h"

struct sl_account {
    struct sl_budget *budget;
    int64_t steps;  /* bought and not yet spent; lost when the account ends */
    uint64_t bytes; /* charged to the budget */
    bool failed;    /* spending or allocating has failed; users may set it for other failures, too */
};

/* The slow path of sl_account_spend(): moves steps from the budget to the account; they also cover what the account has overspent. False,
 * with `failed` set, when the budget has too few. */
bool sl_account_refill(struct sl_account *account);

/* Spends `steps` of work; more than UINT32_MAX count as UINT32_MAX. Returns false, with `failed` set, when the budget is used up, and from
 * then on. */
static inline bool sl_account_spend(struct sl_account *account, uint64_t steps)
{
    account->steps -= (int64_t)(steps < UINT32_MAX ? steps : UINT32_MAX);
    return account->steps >= 0 || sl_account_refill(account);
}

/* Returns `count` uninitialised items of `item` bytes; NULL, with `failed` set, when the budget or memory is exhausted. Free with
 * sl_account_free() and the same size, or with free() before sl_account_release(). */
void *sl_account_alloc(struct sl_account *account, size_t count, size_t item);
/* Frees an array of sl_account_alloc() or sl_account_grow() and uncharges it; `items` may be NULL. */
void sl_account_free(struct sl_account *account, void *items, size_t count, size_t item);

/* The slow path of sl_account_grow(). False, with `failed` set, when the budget or memory is exhausted; the array is unchanged then. */
bool sl_account_grow_array(struct sl_account *account, void *array, size_t *capacity, size_t need, size_t item);

/* Enlarges an array as sl_grow() does and charges the growth to the account. False, with `failed` set and the array unchanged, when the
 * budget or memory is exhausted. */
static inline bool sl_account_grow(struct sl_account *account, void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_account_grow_array(account, array, capacity, need, item);
}

/* Uncharges all memory of the account. Its arrays have been freed, or the caller frees them next. */
void sl_account_release(struct sl_account *account);

/* Names of more bytes are ignored, in every file format. */
enum { SL_MAX_NAME = 64 << 10 };

/* Returns the NUL-terminated name at `offset` of a string table. Costs a step per byte, since names may share bytes. Empty when
 * `offset` is outside, the NUL is missing or further than SL_MAX_NAME, or the work budget is used up. */
struct sl_str sl_account_read_name(struct sl_account *account, struct sl_bytes table, uint64_t offset);
