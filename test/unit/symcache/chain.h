/* Look-ups as text. */
#pragma once

#include "../check.h"

#include "symcache/symcache.h"

/* Appends the chain at an address as "inner:line@file outer:line"; nothing for none. */
static inline void chain_append(const struct sl_symcache *cache, uint64_t address, struct sl_buf *out)
{
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    size_t n = sl_symcache_lookup(cache, address, chain, SL_SYMCACHE_MAX_CHAIN);
    for (size_t i = 0; i < n; i++) {
        struct sl_symcache_function f;
        assert_true(sl_symcache_function(cache, chain[i].function, &f));
        if (i)
            sl_buf_u8(out, ' ');
        sl_symcache_string(cache, f.name, out);
        sl_buf_printf(out, ":%u", chain[i].line);
        if (chain[i].file != SL_SYMCACHE_NONE) {
            sl_buf_u8(out, '@');
            sl_symcache_file(cache, chain[i].file, out);
        }
    }
}
