#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct sl_arena_chunk {
    struct sl_arena_chunk *older;
    size_t size; /* of the whole chunk, this header included */
};

enum { FIRST_CHUNK = 4096, MAX_CHUNK = 1 << 20 };

void sl_arena_init(struct sl_arena *arena, size_t limit)
{
    *arena = (struct sl_arena){.limit = limit};
}

static void free_chunks(const struct sl_arena *arena, struct sl_arena_chunk *chunk)
{
    while (chunk) {
        struct sl_arena_chunk *older = chunk->older;
        sl_budget_return(arena->budget, chunk->size);
        free(chunk);
        chunk = older;
    }
}

void sl_arena_free(struct sl_arena *arena)
{
    free_chunks(arena, arena->chunks);
    *arena = (struct sl_arena){.limit = arena->limit, .budget = arena->budget};
}

void sl_arena_reset(struct sl_arena *arena)
{
    struct sl_arena_chunk *newest = arena->chunks;
    if (!newest)
        return;
    free_chunks(arena, newest->older);
    newest->older = NULL;
    arena->used = newest->size;
    arena->at = (uint8_t *)(newest + 1);
    arena->end = (uint8_t *)newest + newest->size;
}

void *sl_arena_grow(struct sl_arena *arena, size_t size, size_t align)
{
    size_t need;
    if (__builtin_add_overflow(size, sizeof(struct sl_arena_chunk) + align, &need))
        return NULL;
    size_t chunk_size = arena->next_chunk ? arena->next_chunk : FIRST_CHUNK;
    if (chunk_size < need)
        chunk_size = need;
    if (arena->limit && (chunk_size > arena->limit || arena->used > arena->limit - chunk_size))
        return NULL;
    if (!sl_budget_take(arena->budget, chunk_size))
        return NULL;
    struct sl_arena_chunk *chunk = malloc(chunk_size);
    if (!chunk) {
        sl_budget_return(arena->budget, chunk_size);
        return NULL;
    }
    *chunk = (struct sl_arena_chunk){.older = arena->chunks, .size = chunk_size};
    arena->chunks = chunk;
    arena->used += chunk_size;
    arena->next_chunk = chunk_size >= MAX_CHUNK / 2 ? MAX_CHUNK : chunk_size * 2;
    uintptr_t at = ((uintptr_t)(chunk + 1) + (align - 1)) & ~(uintptr_t)(align - 1);
    arena->at = (uint8_t *)at + size;
    arena->end = (uint8_t *)chunk + chunk_size;
    return (void *)at;
}

void *sl_arena_zalloc(struct sl_arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    void *memory = sl_arena_alloc(arena, total, _Alignof(max_align_t));
    if (memory)
        memset(memory, 0, total);
    return memory;
}

char *sl_arena_strndup(struct sl_arena *arena, const char *data, size_t size)
{
    if (size == SIZE_MAX)
        return NULL;
    char *copy = sl_arena_alloc(arena, size + 1, 1);
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}
