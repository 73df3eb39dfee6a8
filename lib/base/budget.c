#include "base/budget.h"

#include "base/cancel.h"

/* Converting a well-made file takes 1 to 4 steps per byte, so no such file uses its budget up. */
enum { STEPS_PER_BYTE = 48, MIN_STEPS = 1 << 20 };

void sl_budget_init(struct sl_budget *budget, uint64_t file_size)
{
    atomic_init(&budget->steps, MIN_STEPS);
    atomic_init(&budget->memory, INT64_MAX);
    atomic_init(&budget->lowest, INT64_MAX);
    atomic_init(&budget->end, SL_BUDGET_LEFT);
    atomic_init(&budget->file_size, 0);
    budget->memory_limit = 0;
    budget->expired = NULL;
    budget->arg = NULL;
    sl_budget_grow(budget, file_size);
}

void sl_budget_grow(struct sl_budget *budget, uint64_t size)
{
    const uint64_t most = INT64_MAX / 4 / STEPS_PER_BYTE; /* keeps sums far from overflow */
    if (!budget)
        return;
    size = size < most ? size : most;
    atomic_fetch_add_explicit(&budget->file_size, size, memory_order_relaxed);
    /* a budget with so many steps already needs no more, and the sum must not overflow */
    if (atomic_load_explicit(&budget->steps, memory_order_relaxed) < INT64_MAX / 2)
        atomic_fetch_add_explicit(&budget->steps, (int64_t)(size * STEPS_PER_BYTE), memory_order_relaxed);
}

/* Returns the bytes of memory that a budget begins with: its limit, or INT64_MAX if it has none. */
static int64_t memory_at_first(const struct sl_budget *budget)
{
    return budget->memory_limit && budget->memory_limit < INT64_MAX ? (int64_t)budget->memory_limit : INT64_MAX;
}

void sl_budget_limit(struct sl_budget *budget, uint64_t memory, bool (*expired)(void *arg), void *arg)
{
    budget->memory_limit = memory;
    atomic_store(&budget->memory, memory_at_first(budget));
    atomic_store(&budget->lowest, memory_at_first(budget)); /* the least that was ever left */
    budget->expired = expired;
    budget->arg = arg;
}

/* Records why the budget ended; only the first reason counts. Returns false, for the caller to return. */
static bool budget_end(struct sl_budget *budget, enum sl_budget_end what)
{
    int left = SL_BUDGET_LEFT;
    atomic_compare_exchange_strong(&budget->end, &left, what);
    return false;
}

bool sl_budget_exhausted(const struct sl_budget *budget)
{
    return budget && (atomic_load_explicit(&budget->end, memory_order_relaxed) != SL_BUDGET_LEFT || sl_is_cancelled());
}

/* Fails through budget_end(), which records the reason: from then on sl_budget_exhausted() is true. A cancelled thread records nothing. */
bool sl_budget_spend(struct sl_budget *budget, uint64_t steps)
{
    if (sl_is_cancelled())
        return false;
    if (!budget)
        return true;
    if (sl_budget_exhausted(budget))
        return false;
    if (budget->expired && budget->expired(budget->arg))
        return budget_end(budget, SL_BUDGET_TIME);
    /* takes the steps before looking whether there were so many: another thread may do so at the same time */
    if (steps > INT64_MAX / 4 || /* so large a number could overflow the counter */
        atomic_fetch_sub_explicit(&budget->steps, (int64_t)steps, memory_order_relaxed) < (int64_t)steps)
        return budget_end(budget, SL_BUDGET_WORK);
    return true;
}

/* Lowers `lowest`, the least memory that was ever left, to `left`, for sl_budget_peak(). Other threads may change it at the same time, so
 * the change is tried again until it succeeds or is not needed. */
static void note_lowest(struct sl_budget *budget, int64_t left)
{
    int64_t lowest = atomic_load_explicit(&budget->lowest, memory_order_relaxed);
    while (left < lowest && !atomic_compare_exchange_weak_explicit(&budget->lowest, &lowest, left, memory_order_relaxed,
                                                                   memory_order_relaxed))
        ;
}

bool sl_budget_charge(struct sl_budget *budget, uint64_t bytes)
{
    if (sl_is_cancelled())
        return false;
    if (!budget)
        return true;
    if (bytes > INT64_MAX / 4) /* so large a number could overflow the counter */
        return budget_end(budget, SL_BUDGET_MEMORY);
    /* takes the bytes before looking whether there were so many, as another thread may do so at the same time; gives them back if not */
    int64_t left = atomic_fetch_sub_explicit(&budget->memory, (int64_t)bytes, memory_order_relaxed) - (int64_t)bytes;
    if (left >= 0) {
        note_lowest(budget, left);
        return true;
    }
    sl_budget_uncharge(budget, bytes);
    return budget_end(budget, SL_BUDGET_MEMORY);
}

uint64_t sl_budget_peak(const struct sl_budget *budget)
{
    return (uint64_t)(memory_at_first(budget) - atomic_load_explicit(&budget->lowest, memory_order_relaxed));
}

void sl_budget_uncharge(struct sl_budget *budget, uint64_t bytes)
{
    if (budget)
        atomic_fetch_add_explicit(&budget->memory, (int64_t)bytes, memory_order_relaxed);
}

enum sl_code sl_budget_fail(const struct sl_budget *budget, struct sl_error *error)
{
    switch (budget ? atomic_load(&budget->end) : SL_BUDGET_LEFT) {
    case SL_BUDGET_WORK:
        return sl_fail(error, SL_MALFORMED,
                       "reading the file needs more work than allowed for a file of %llu bytes; it may be damaged",
                       (unsigned long long)atomic_load(&budget->file_size));
    case SL_BUDGET_MEMORY:
        return sl_fail(error, SL_UNSUPPORTED, "reading the file needs more than %llu MiB of memory",
                       (unsigned long long)(budget->memory_limit >> 20));
    case SL_BUDGET_TIME:
        return sl_fail(error, SL_UNSUPPORTED,
                       "reading the file needs more time than allowed (setting conversion.max_time)");
    default:
        return sl_is_cancelled() ? sl_fail(error, SL_CANCELLED, "cancelled") : sl_fail(error, SL_BUSY, "out of memory");
    }
}
