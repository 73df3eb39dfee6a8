/* Tables of source maps that tests write. */
#pragma once

#include "../check.h"

#include "js/smcache.h"

struct made {
    struct sl_buf file;
    struct sl_smcache cache;
};

static inline void make(const char *script, const char *map, struct made *made)
{
    struct sl_error error = {0};
    struct sl_budget budget;
    sl_budget_init(&budget, strlen(map));
    *made = (struct made){.file = {.data = NULL}};
    if (sl_smcache_write(sl_str(script), sl_str(map), &(struct sl_smcache_options){0}, &budget, &made->file, &error) !=
            SL_OK ||
        sl_smcache_open(sl_buf_bytes(&made->file), &made->cache, &error) != SL_OK)
        fail_msg("%s", error.message);
    assert_true(sl_table_is_intact(&made->cache.table));
}
