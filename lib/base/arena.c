#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct sl_arena_chunk {
    struct sl_arena_chunk *older;
    size_t size; /* of the whole chunk, this header included */
};

enum { FIRST_CHUNK = 4096, MAX_CHUNK = 1 << 20 };

static _Atomic size_t all_bytes; /* size of all chunks in the process */

/* Updates the sum that sl_arena_all_bytes() returns after a chunk has changed from `before` to `now` bytes; 0 bytes mean that there is no
 * chunk. */
static void note_bytes(size_t before, size_t now)
{
    atomic_fetch_add_explicit(&all_bytes, now - before, memory_order_relaxed);
}

size_t sl_arena_all_bytes(void)
{
    return atomic_load_explicit(&all_bytes, memory_order_relaxed);
}

void sl_arena_init(struct sl_arena *arena, size_t limit)
{
    *arena = (struct sl_arena){.limit = limit};
}

/* Frees the chunk and all older ones. */
static void free_chunks(const struct sl_arena *arena, struct sl_arena_chunk *chunk)
{
    while (chunk) {
        struct sl_arena_chunk *older = chunk->older;
        sl_budget_uncharge(arena->budget, chunk->size);
        note_bytes(chunk->size, 0);
        free(chunk);
        chunk = older;
    }
}

void sl_arena_each_chunk(const struct sl_arena *arena, void (*visit)(void *chunk, size_t size))
{
    for (struct sl_arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->older)
        visit(chunk, chunk->size);
}

struct sl_arena_destructor {
    struct sl_arena_destructor *earlier;
    void (*call)(void *arg);
    void *arg;
};

bool sl_arena_on_free(struct sl_arena *arena, void (*end)(void *arg), void *arg)
{
    struct sl_arena_destructor *entry = SL_ARENA_NEW(arena, struct sl_arena_destructor);
    if (!entry)
        return false;
    *entry = (struct sl_arena_destructor){arena->ends, end, arg};
    arena->ends = entry;
    return true;
}

/* Calls the registered destructors, the latest first, and forgets them. */
static void run_destructors(struct sl_arena *arena)
{
    for (; arena->ends; arena->ends = arena->ends->earlier)
        arena->ends->call(arena->ends->arg);
}

void sl_arena_free(struct sl_arena *arena)
{
    run_destructors(arena);
    free_chunks(arena, arena->chunks);
    *arena = (struct sl_arena){.limit = arena->limit, .budget = arena->budget};
}

void sl_arena_detach_budget(struct sl_arena *arena)
{
    sl_budget_uncharge(arena->budget, arena->used);
    arena->budget = NULL;
}

void sl_arena_reset(struct sl_arena *arena)
{
    struct sl_arena_chunk *newest = arena->chunks;
    run_destructors(arena);
    if (!newest)
        return;
    free_chunks(arena, newest->older);
    newest->older = NULL;
    arena->used = newest->size;
    arena->at = (uint8_t *)(newest + 1);
    arena->end = (uint8_t *)newest + newest->size;
}

/* True if `size` more bytes would exceed the arena's limit; then sets arena->over_limit. */
static bool over_limit(struct sl_arena *arena, size_t size)
{
    bool over = arena->limit && (size > arena->limit || arena->used > arena->limit - size);
    arena->over_limit |= over;
    return over;
}

/* Chunks double in size up to MAX_CHUNK; a chunk for a larger allocation is as large as that allocation needs. */
void *sl_arena_grow(struct sl_arena *arena, size_t size, size_t align)
{
    size_t need; /* with the chunk's header and the bytes that alignment may skip */
    if (__builtin_add_overflow(size, sizeof(struct sl_arena_chunk) + align, &need))
        return NULL;
    size_t chunk_size = arena->next_chunk ? arena->next_chunk : FIRST_CHUNK;
    if (chunk_size < need)
        chunk_size = need;
    if (over_limit(arena, chunk_size) || !sl_budget_charge(arena->budget, chunk_size))
        return NULL;
    struct sl_arena_chunk *chunk = malloc(chunk_size);
    if (!chunk) {
        sl_budget_uncharge(arena->budget, chunk_size);
        return NULL;
    }
    *chunk = (struct sl_arena_chunk){.older = arena->chunks, .size = chunk_size};
    note_bytes(0, chunk_size);
    arena->chunks = chunk;
    arena->used += chunk_size;
    arena->next_chunk = chunk_size >= MAX_CHUNK / 2 ? MAX_CHUNK : chunk_size * 2;
    uintptr_t at = ((uintptr_t)(chunk + 1) + (align - 1)) & ~(uintptr_t)(align - 1);
    arena->at = (uint8_t *)at + size;
    arena->end = (uint8_t *)chunk + chunk_size;
    return (void *)at;
}

/* ---- arrays ---- */

/* OWN_CHUNK: a finished array of at least this many bytes keeps the chunk in which it grew; a smaller one is copied into the arena's
 * current chunk. */
enum { OWN_CHUNK = 64 * 1024 };

/* Changes the size of the array's own chunk; 0 frees it. False, with the chunk unchanged, when out of memory or over the arena's limit. */
static bool resize_chunk(struct sl_arena_array *array, size_t size)
{
    struct sl_arena *arena = array->arena;
    size_t before = array->chunk ? array->chunk->size : 0;
    if (size > before && (over_limit(arena, size - before) || !sl_budget_charge(arena->budget, size - before)))
        return false;
    struct sl_arena_chunk *chunk = size ? realloc(array->chunk, size) : NULL;
    if (size && !chunk) {
        if (size > before)
            sl_budget_uncharge(arena->budget, size - before);
        return size < before; /* shrinking failed: the chunk keeps its size */
    }
    if (!size)
        free(array->chunk);
    else
        chunk->size = size;
    if (size < before)
        sl_budget_uncharge(arena->budget, before - size);
    note_bytes(before, size);
    arena->used += size - before; /* unsigned: also subtracts */
    array->chunk = chunk;
    return true;
}

/* Computes the size of a chunk that holds `items` items of the array; false on overflow. */
static bool chunk_size(const struct sl_arena_array *array, size_t items, size_t *size)
{
    return !__builtin_mul_overflow(items, array->item, size) &&
           !__builtin_add_overflow(*size, sizeof(struct sl_arena_chunk), size);
}

/* Returns the first item of the array: in its chunk, or in `first` while it has no chunk. */
static uint8_t *get_items(struct sl_arena_array *array)
{
    return array->chunk ? (uint8_t *)(array->chunk + 1) : array->first;
}

/* Makes space for more items. Items that are small enough lie in array->first until that is full; then they move to a chunk of malloc,
 * which grows by half each time. False when out of memory or over the arena's limit. */
static bool enlarge_array(struct sl_arena_array *array)
{
    size_t size, capacity = array->capacity + array->capacity / 2 + 1;
    bool is_small = !array->chunk && array->item <= sizeof array->first;
    if (is_small && !array->capacity) {
        array->capacity = sizeof array->first / array->item;
        return true;
    }
    if (!chunk_size(array, capacity, &size) || !resize_chunk(array, size))
        return false;
    if (is_small) /* the chunk is new: the items are still in `first` */
        memcpy(array->chunk + 1, array->first, array->count * array->item);
    array->capacity = capacity;
    return true;
}

void *sl_arena_array_add(struct sl_arena_array *array)
{
    if (array->count == array->capacity && !enlarge_array(array))
        return NULL;
    void *item = get_items(array) + array->count++ * array->item;
    memset(item, 0, array->item);
    return item;
}

/* Links an array's chunk into the arena. It goes after the first chunk of the list, from which the arena still allocates. */
static void arena_join(struct sl_arena *arena, struct sl_arena_chunk *chunk)
{
    struct sl_arena_chunk **link = arena->chunks ? &arena->chunks->older : &arena->chunks;
    chunk->older = *link;
    *link = chunk;
}

/* Returns the items, now in the arena; NULL when out of memory, not NULL for zero items. */
void *sl_arena_array_finish(struct sl_arena_array *array)
{
    size_t size = array->count * array->item;
    void *items;
    /* a large array keeps its chunk, cut to its size; a small one is copied */
    if (array->chunk && size >= OWN_CHUNK && resize_chunk(array, size + sizeof(struct sl_arena_chunk))) {
        items = array->chunk + 1;
        arena_join(array->arena, array->chunk);
        array->chunk = NULL;
    } else {
        items = sl_arena_alloc(array->arena, size, _Alignof(max_align_t));
        if (items && size)
            memcpy(items, get_items(array), size);
    }
    sl_arena_array_discard(array); /* frees the chunk, unless the arena has it now */
    return items;
}

void sl_arena_array_discard(struct sl_arena_array *array)
{
    resize_chunk(array, 0);
    array->count = array->capacity = 0;
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
