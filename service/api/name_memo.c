#include "api/name_memo.h"

#include <stdlib.h>

#include "base/map.h"

enum { MEMO_BYTES = 4 << 20 };

/* Two of them; what the older one holds lives on only if it is asked for. */
struct generation {
    struct sl_map names; /* language and mangled name to struct sl_str */
    struct sl_arena arena;
};

struct name_memo {
    struct generation young, old;
};

struct name_memo *name_memo_new(void)
{
    return calloc(1, sizeof(struct name_memo));
}

static void generation_free(struct generation *generation)
{
    sl_map_free(&generation->names);
    sl_arena_free(&generation->arena);
    *generation = (struct generation){0};
}

void name_memo_free(struct name_memo *memo)
{
    if (!memo)
        return;
    generation_free(&memo->young);
    generation_free(&memo->old);
    free(memo);
}

void name_memo_put(struct name_memo *memo, struct sl_str key, struct sl_str readable)
{
    if (memo->young.arena.used > MEMO_BYTES) {
        generation_free(&memo->old);
        memo->old = memo->young;
        memo->young = (struct generation){0};
    }
    struct sl_arena *arena = &memo->young.arena;
    char *key_copy = sl_arena_strndup(arena, key.data, key.size);
    struct sl_str *value = SL_ARENA_NEW(arena, struct sl_str);
    char *copy = sl_arena_strndup(arena, readable.data, readable.size);
    void **slot =
        key_copy && value && copy ? sl_map_slot(&memo->young.names, (struct sl_str){key_copy, key.size}, NULL) : NULL;
    if (!slot)
        return;
    *value = (struct sl_str){copy, readable.size};
    *slot = value;
}

const struct sl_str *name_memo_get(struct name_memo *memo, struct sl_str key)
{
    const struct sl_str *found = sl_map_get(&memo->young.names, key);
    if (found)
        return found;
    found = sl_map_get(&memo->old.names, key);
    if (found)
        name_memo_put(memo, key, *found);
    return found ? sl_map_get(&memo->young.names, key) : NULL;
}
