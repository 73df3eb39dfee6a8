/* Arrays that grow, in memory of malloc: by half of what they have, so that adding items one by one is linear. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_arena;
struct sl_budget;

bool sl_grow_array(void *array, size_t *capacity, size_t need, size_t item);

/* Makes room for `need` items of `item` bytes. `array` is the address of the pointer to them (NULL at first), `*capacity` the
 * number there is room for (0 at first); new items are not initialised. False when out of memory; the array is then as it
 * was. */
static inline bool sl_grow(void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_grow_array(array, capacity, need, item);
}

/* The same, with new items all zero. */
bool sl_grow_zeroed(void *array, size_t *capacity, size_t need, size_t item);

/* The same in the arena, which keeps what the array leaves behind: at most twice as much as it holds. */
bool sl_grow_in_arena(struct sl_arena *arena, void *array, size_t *capacity, size_t need, size_t item);

/* What arrays hold of a budget's memory, all together. Zeros with a budget (NULL = none) are an empty one. */
struct sl_holding {
    struct sl_budget *budget;
    uint64_t bytes;
};

/* `count` items of `item` bytes, uninitialised, out of the holding's budget; NULL when that or memory ran out. To be given back
 * before the rest with sl_free_held and the same size, or freed when the holding is released. */
void *sl_alloc_held(struct sl_holding *holding, size_t count, size_t item);
void sl_free_held(struct sl_holding *holding, void *items, size_t count, size_t item);

bool sl_grow_held_array(struct sl_holding *holding, void *array, size_t *capacity, size_t need, size_t item);

/* As sl_grow, taken from the holding's budget; false also when that has no more. */
static inline bool sl_grow_held(struct sl_holding *holding, void *array, size_t *capacity, size_t need, size_t item)
{
    return __builtin_expect(need <= *capacity, 1) || sl_grow_held_array(holding, array, capacity, need, item);
}

/* Gives back what is held, when the arrays were freed. */
void sl_holding_release(struct sl_holding *holding);
