/* Symbols within symbols: of those whose range holds an address the innermost answers, which is the one that begins last.
 *
 *     outer |----------------------------------------|      answers:
 *     inner         |--------|                              outer  inner  outer  label  outer
 *     label                        x                        a label to where the next symbol begins or ends
 *
 * For those who go through symbols in address order: what is open where one of them ends. Of several that begin at one
 * address, those that come later in the file are to be opened first. */
#pragma once

#include "base/account.h"
#include "function/order.h"
#include "object/object.h"

/* Where the symbol ends; at most the end of the address space. */
static inline uint64_t sl_symbol_end(const struct sl_symbol *s)
{
    return s->size < UINT64_MAX - s->address ? s->address + s->size : UINT64_MAX;
}

/* Whether one of the symbols, which `order` has by address, begins within another one. Where none does, nobody need look. */
static inline bool sl_symbols_are_nested(const struct sl_symbol *symbols, const struct sl_ordered *order, size_t count)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sl_symbol *s = &symbols[order[i].index];
        if (s->address < end && order[i - 1].key != s->address)
            return true;
        end = sl_symbol_end(s) > end ? sl_symbol_end(s) : end;
    }
    return false;
}

struct sl_nesting {
    struct sl_nested {
        uint64_t end;
        uint32_t tag; /* of the caller */
    } * open;
    size_t count, capacity;
    struct sl_account account;
};

/* Closes what ends at or before the address; the innermost that is open then, NULL when there is none. */
static inline const struct sl_nested *sl_nesting_at(struct sl_nesting *n, uint64_t address)
{
    while (n->count && n->open[n->count - 1].end <= address)
        n->count--;
    return n->count ? &n->open[n->count - 1] : NULL;
}

/* False when out of memory. */
static inline bool sl_nesting_open(struct sl_nesting *n, uint64_t end, uint32_t tag)
{
    if (n->count == n->capacity && !sl_account_grow(&n->account, &n->open, &n->capacity, n->count + 1, sizeof *n->open))
        return false;
    n->open[n->count++] = (struct sl_nested){end, tag};
    return true;
}

static inline void sl_nesting_free(struct sl_nesting *n)
{
    sl_account_free(&n->account, n->open, n->capacity, sizeof *n->open);
    *n = (struct sl_nesting){.account = n->account};
}
