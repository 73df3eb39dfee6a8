/* Arena: memory that is allocated in parts and freed all at once.
 *
 * A request, a conversion or a parsed file owns one; everything built for it lives there and is freed with it. Not thread safe.
 * An allocation returns NULL when memory is exhausted, above `limit`, or when the budget has no memory left; the `sl_arena_*`
 * helpers below return NULL or false in turn. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"

struct sl_arena_chunk;
struct sl_arena_destructor;

struct sl_arena {
    struct sl_arena_chunk *chunks; /* newest first */
    uint8_t *at, *end;             /* free space of the newest chunk */
    size_t next_chunk;             /* size of the next chunk, doubling up to 1 MiB */
    size_t used;                   /* bytes allocated with malloc */
    size_t limit;                  /* the maximum of `used`; 0 = none */
    bool over_limit;               /* an allocation was refused because of `limit` */
    struct sl_budget *budget; /* chunks are charged to it; NULL = unlimited. May be set only while the arena is empty */
    struct sl_arena_destructor *ends; /* destructors, the latest first */
};

/* Initialises an arena with a limit (bytes, 0 = none). An arena of all zeros is valid, empty and has no limit. */
void sl_arena_init(struct sl_arena *arena, size_t limit);

/* Calls the destructors and frees all memory; the arena is empty and usable afterwards. */
void sl_arena_free(struct sl_arena *arena);
size_t sl_arena_all_bytes(void); /* bytes that all arenas of the process have allocated; may be called by any thread */

/* Uncharges the arena's memory and sets `budget` to NULL; the memory stays allocated. For an arena that outlives its budget. */
void sl_arena_detach_budget(struct sl_arena *arena);

/* Calls the destructors and frees everything but the newest chunk, which is reused. */
void sl_arena_reset(struct sl_arena *arena);

/* Registers a destructor: sl_arena_free() and sl_arena_reset() call end(arg), the latest first, before they release memory. Use
 * it for resources that objects in the arena refer to. False when out of memory. */
bool sl_arena_on_free(struct sl_arena *arena, void (*end)(void *arg), void *arg);

/* Calls visit(chunk, size) for every chunk of memory that the arena has from malloc, its header included. */
void sl_arena_each_chunk(const struct sl_arena *arena, void (*visit)(void *chunk, size_t size));

/* The slow path of sl_arena_alloc(): takes the bytes from a new chunk. What is left of the previous chunk is lost. */
void *sl_arena_grow(struct sl_arena *arena, size_t size, size_t align);

/* Returns `size` uninitialised bytes, aligned to `align` (a power of two). NULL when out of memory or over the limit. */
static inline void *sl_arena_alloc(struct sl_arena *arena, size_t size, size_t align)
{
    uintptr_t at = ((uintptr_t)arena->at + (align - 1)) & ~(uintptr_t)(align - 1);
    if (arena->at && at <= (uintptr_t)arena->end && size <= (uintptr_t)arena->end - at) {
        arena->at = (uint8_t *)at + size;
        return (void *)at;
    }
    return sl_arena_grow(arena, size, align);
}

/* Shortens the latest allocation so that it ends at `end`; the bytes after it are free again. */
static inline void sl_arena_trim(struct sl_arena *arena, void *end)
{
    arena->at = end;
}

/* Returns `count` zeroed items of `size` bytes each; NULL when out of memory, over the limit, or if the product overflows. */
void *sl_arena_zalloc(struct sl_arena *arena, size_t count, size_t size);

/* Return one zeroed item, or `count`, of a type; NULL when out of memory or over the limit. */
#define SL_ARENA_NEW(arena, type)          ((type *)sl_arena_zalloc((arena), 1, sizeof(type)))
#define SL_ARENA_ARRAY(arena, type, count) ((type *)sl_arena_zalloc((arena), (count), sizeof(type)))

/* Returns a copy of `size` bytes with a NUL after them; NULL when out of memory or over the limit. */
char *sl_arena_strndup(struct sl_arena *arena, const char *data, size_t size);

/* An array whose length is not known in advance. While it grows it has a chunk of its own, so other allocations from the arena
 * are possible meanwhile; sl_arena_array_finish() moves the items into the arena at their exact size. The memory counts as `used`
 * all the time; while the array grows its capacity is up to 1.5 times its count.
 *
 *     struct sl_arena_array array = {.arena = arena, .item = sizeof *item};
 *     while (...)
 *         if (!(item = sl_arena_array_add(&array))) ... sl_arena_array_discard(&array) ...
 *     items = sl_arena_array_finish(&array) */
struct sl_arena_array {
    struct sl_arena *arena;
    size_t item; /* size of an item in bytes */
    size_t count;
    /* private */
    struct sl_arena_chunk *chunk; /* NULL while the items fit into `first` */
    size_t capacity;
    _Alignas(max_align_t) uint8_t first[448];
};

/* Appends a zeroed item, which may move when the next one is added. NULL when out of memory or over the limit. */
void *sl_arena_array_add(struct sl_arena_array *array);

/* Returns the items, now in the arena, and empties the array. NULL when out of memory or over the limit; not NULL for zero
 * items. */
void *sl_arena_array_finish(struct sl_arena_array *array);

/* Frees the items of an array that is not finished, and empties it. */
void sl_arena_array_discard(struct sl_arena_array *array);
