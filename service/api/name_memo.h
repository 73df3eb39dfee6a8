/* LRU cache of demangled names of former requests, a few MiB. Loop thread only. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

struct name_memo;
struct name_memo *name_memo_new(void); /* NULL when out of memory */
void name_memo_free(struct name_memo *memo);

/* Copies key and name. */
void name_memo_put(struct name_memo *memo, struct sl_str key, struct sl_str readable);

/* NULL if not cached. Valid until the next name_memo_put. */
const struct sl_str *name_memo_get(struct name_memo *memo, struct sl_str key);
