#include "base/account.h"

#include "base/grow.h"

#include <stdlib.h>

enum { STEPS_AT_ONCE = 4096 };

/* Buys steps for many calls at once, because the budget's counter is shared by all threads of a conversion. Without a budget the account
 * gets as many as it can hold. */
bool sl_account_refill(struct sl_account *account)
{
    if (!account->budget) {
        account->steps = INT64_MAX;
        return true;
    }
    /* a negative `steps` is what the last call spent beyond the steps it had: these are bought too */
    uint64_t wanted = STEPS_AT_ONCE + (uint64_t)(account->steps < 0 ? -account->steps : 0);
    if (!sl_budget_spend(account->budget, wanted)) {
        account->steps = 0;
        account->failed = true;
        return false;
    }
    account->steps += (int64_t)wanted;
    return true;
}

void *sl_account_alloc(struct sl_account *account, size_t count, size_t item)
{
    size_t size;
    void *items = NULL;
    if (!__builtin_mul_overflow(count, item, &size) && sl_budget_charge(account->budget, size)) {
        if ((items = malloc(size ? size : 1)))
            account->bytes += size;
        else
            sl_budget_uncharge(account->budget, size);
    }
    account->failed |= !items;
    return items;
}

/* Frees an array of `count` items of `item` bytes, and uncharges it from the budget. */
void sl_account_free(struct sl_account *account, void *items, size_t count, size_t item)
{
    if (!items)
        return;
    free(items);
    account->bytes -= count * item;
    sl_budget_uncharge(account->budget, count * item);
}

bool sl_account_grow_array(struct sl_account *account, void *array, size_t *capacity, size_t need, size_t item)
{
    size_t count, size, before = *capacity * item;
    if (sl_grow_capacity(*capacity, need, item, &count, &size) && sl_budget_charge(account->budget, size - before)) {
        /* computes the same new size again */
        if (sl_grow_array(array, capacity, need, item)) {
            account->bytes += size - before;
            return true;
        }
        sl_budget_uncharge(account->budget, size - before);
    }
    account->failed = true;
    return false;
}

void sl_account_release(struct sl_account *account)
{
    sl_budget_uncharge(account->budget, account->bytes);
    account->bytes = 0;
}

struct sl_str sl_account_read_name(struct sl_account *account, struct sl_bytes table, uint64_t offset)
{
    if (offset >= table.size)
        return (struct sl_str){NULL, 0};
    size_t left = table.size - (size_t)offset, window = left < SL_MAX_NAME ? left : SL_MAX_NAME;
    const char *text = (const char *)table.data + offset;
    size_t size = strnlen(text, window); /* `window` if there is no NUL in it */
    if (!sl_account_spend(account, size + 1) || size == window)
        return (struct sl_str){NULL, 0};
    return (struct sl_str){text, size};
}
