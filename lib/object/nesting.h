/* Nested symbols: if several contain an address, the innermost one, which begins last, names it.
 *
 *     outer |----------------------------------------|      answers:
 *     inner         |--------|                              outer  inner  outer  label  outer
 *     label                        x                        a label to where the next symbol begins or ends
 *
 * struct sl_nesting is a stack of the symbols around an address. The caller goes through the symbols by ascending address, asks
 * sl_nesting_at() for the innermost one, and pushes each symbol with sl_nesting_open(). Of several that begin at one address, those
 * that come later in the file are pushed first, so that the first one in the file names the address. */
#pragma once

#include "base/account.h"
#include "function/order.h"
#include "object/object.h"

/* Returns the end of the symbol, at most the end of the address space. */
static inline uint64_t sl_symbol_end(const struct sl_symbol *s)
{
    return s->size < UINT64_MAX - s->address ? s->address + s->size : UINT64_MAX;
}

/* True if a symbol begins within another one, behind its start. `order` sorts the symbols by address (`key`). If none does, no sl_nesting
 * is needed. */
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
        uint32_t tag; /* a number that means something to the caller only */
    } * open;
    size_t count, capacity;
    struct sl_account account;
};

/* Pops the symbols at the top of the stack that end at or before the address. Returns the innermost symbol that contains it, or NULL. */
static inline const struct sl_nested *sl_nesting_at(struct sl_nesting *n, uint64_t address)
{
    while (n->count && n->open[n->count - 1].end <= address)
        n->count--;
    return n->count ? &n->open[n->count - 1] : NULL;
}

/* Pushes a symbol. False when out of memory. */
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
