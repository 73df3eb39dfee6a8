/* Arena: memory that is taken piece by piece and given back all at once.
 *
 * A request, a conversion or a parsed file owns one; everything built for it lives there and dies with it. Not thread
 * safe: one thread at a time. Running out of memory, over `limit`, or of the budget's memory makes allocations return NULL;
 * the `sl_arena_*` helpers below pass that on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"

struct sl_arena_chunk;
struct sl_arena_end;

struct sl_arena {
    struct sl_arena_chunk *chunks; /* newest first */
    uint8_t *at, *end;             /* free space of the newest chunk */
    size_t next_chunk;             /* size of the next chunk, doubling up to 1 MiB */
    size_t used;                   /* bytes taken from malloc */
    size_t limit;                  /* of `used`; 0 = none */
    bool over_limit;               /* an allocation was refused for it */
    struct sl_budget *budget;      /* what chunks are taken from and given back to; NULL = none. Set while empty */
    struct sl_arena_end *ends;     /* what is to be called when everything is given back */
};

/* An arena of all zeros is valid and empty; this sets a limit as well (bytes, 0 = none). */
void sl_arena_init(struct sl_arena *arena, size_t limit);

/* Gives everything back; the arena is empty and usable afterwards. */
void sl_arena_free(struct sl_arena *arena);
size_t sl_arena_all_bytes(void); /* that all arenas of the process hold; any thread */

/* Gives the memory back to the budget but keeps it: the arena will outlive the budget. */
void sl_arena_leave_budget(struct sl_arena *arena);

/* Forgets everything but keeps the newest chunk for reuse. */
void sl_arena_reset(struct sl_arena *arena);

/* `end(arg)` is called when everything is given back, before that: for what things in the arena refer to. False when out of
 * memory. */
bool sl_arena_at_end(struct sl_arena *arena, void (*end)(void *arg), void *arg);

/* Tells of each piece of memory that it holds. */
void sl_arena_tell(const struct sl_arena *arena, void (*tell)(void *piece, size_t size));

void *sl_arena_grow(struct sl_arena *arena, size_t size, size_t align);

/* `size` bytes, uninitialised, aligned to `align` (a power of two). NULL when out of memory or over the limit. */
static inline void *sl_arena_alloc(struct sl_arena *arena, size_t size, size_t align)
{
    uintptr_t at = ((uintptr_t)arena->at + (align - 1)) & ~(uintptr_t)(align - 1);
    if (arena->at && at <= (uintptr_t)arena->end && size <= (uintptr_t)arena->end - at) {
        arena->at = (uint8_t *)at + size;
        return (void *)at;
    }
    return sl_arena_grow(arena, size, align);
}

/* Gives back what lies behind `end` in the latest allocation. */
static inline void sl_arena_trim(struct sl_arena *arena, void *end)
{
    arena->at = end;
}

/* `count` zeroed items of `size` bytes; NULL also when the product overflows. */
void *sl_arena_zalloc(struct sl_arena *arena, size_t count, size_t size);

/* Typed forms: one item, `count` items; zeroed. */
#define SL_ARENA_NEW(arena, type)          ((type *)sl_arena_zalloc((arena), 1, sizeof(type)))
#define SL_ARENA_ARRAY(arena, type, count) ((type *)sl_arena_zalloc((arena), (count), sizeof(type)))

/* A terminated copy of `size` bytes. */
char *sl_arena_strndup(struct sl_arena *arena, const char *data, size_t size);

/* An array whose length is not known before it is complete. While it grows it has memory of its own, so that other things
 * can be taken from the arena meanwhile; in the end it lies there and takes what it holds and no more. It counts as `used`
 * all the time; while it grows it has room for half as much again.
 *
 *     struct sl_arena_array array = {.arena = arena, .item = sizeof *item};
 *     while (...)
 *         if (!(item = sl_arena_array_add(&array))) ... sl_arena_array_drop(&array) ...
 *     items = sl_arena_array_keep(&array) */
struct sl_arena_array {
    struct sl_arena *arena;
    size_t item; /* bytes of each */
    size_t count;
    /* private */
    struct sl_arena_chunk *chunk; /* NULL as long as `first` has room */
    size_t capacity;
    _Alignas(max_align_t) uint8_t first[448];
};

/* Another item, zeroed; it moves when the next one is added. NULL when out of memory or over the limit. */
void *sl_arena_array_add(struct sl_arena_array *array);

/* The items, in the arena; NULL when out of memory or over the limit, not when there are none. The array is empty then. */
void *sl_arena_array_keep(struct sl_arena_array *array);

void sl_arena_array_drop(struct sl_arena_array *array);
