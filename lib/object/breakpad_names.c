/* Breakpad: tables of the names of files (FILE records) and inlined functions (INLINE_ORIGIN records) by their numbers. */
#include "object/breakpad_reader.h"

#include <stdlib.h>

/* A name whose number is too large for the array of names; it is in a map. */
struct sparse_name {
    uint64_t number;
    struct sl_str name;
    size_t index; /* 0 for the first name that was added to the map, 1 for the second ... */
};

/* Returns the bytes of the number as a key of the map. */
static struct sl_str breakpad_names_make_key(const uint64_t *number)
{
    return (struct sl_str){(const char *)number, sizeof *number};
}

/* Stores a name in the array. A second definition of a number replaces the first and sets `redefined`, because the number then does not
 * identify one name in the whole file. False when out of memory. */
static bool set_dense(struct breakpad_names *names, size_t number, struct sl_str name)
{
    size_t old = names->capacity;
    if (!sl_account_grow(&names->account, &names->items, &names->capacity, number + 1, sizeof *names->items))
        return false;
    if (names->capacity > old)
        memset(names->items + old, 0, (names->capacity - old) * sizeof *names->items);
    names->redefined = names->redefined || names->items[number].data;
    names->items[number] = name;
    names->count = number >= names->count ? number + 1 : names->count;
    return true;
}

/* Stores a name with a large number in a map, because an array up to that number could be larger than the file. A second definition of a
 * number replaces the first. False when out of memory. */
static bool set_sparse(struct breakpad_names *names, uint64_t number, struct sl_str name)
{
    struct sparse_name *sparse = sl_map_get(&names->sparse, breakpad_names_make_key(&number));
    if (!sparse) {
        sparse = SL_ARENA_NEW(&names->arena, struct sparse_name);
        if (!sparse)
            return false;
        *sparse = (struct sparse_name){.number = number, .index = names->sparse.count};
        void **slot = sl_map_find_or_add(&names->sparse, breakpad_names_make_key(&sparse->number), NULL);
        if (!slot)
            return false;
        *slot = sparse;
    }
    sparse->name = name;
    return true;
}

bool breakpad_names_define(struct breakpad_names *names, struct breakpad_fields f)
{
    uint64_t number;
    if (!breakpad_decimal(&f, &number))
        return false;
    struct sl_str name = breakpad_rest(&f);
    if (!name.size || !sl_str_is_utf8(name))
        return false;
    bool ok = number < names->dense_limit ? set_dense(names, (size_t)number, name) : set_sparse(names, number, name);
    names->failed = names->failed || !ok; /* out of memory; the record itself is good */
    return true;
}

void breakpad_names_init(struct breakpad_names *names, size_t dense_limit, struct sl_budget *budget)
{
    *names = (struct breakpad_names){
        .dense_limit = dense_limit, .sparse.budget = budget, .arena.budget = budget, .account.budget = budget};
}

/* `*index` is the number itself for a name in the array; the names in the map have the indexes after these. */
struct sl_str breakpad_names_get(const struct breakpad_names *names, uint64_t number, size_t *index)
{
    const struct sparse_name *sparse = NULL;
    if (index)
        *index = (size_t)number;
    if (number < names->count)
        return names->items[number];
    if (names->sparse.count)
        sparse = sl_map_get(&names->sparse, breakpad_names_make_key(&number));
    if (sparse && index)
        *index = names->count + sparse->index;
    return sparse ? sparse->name : (struct sl_str){NULL, 0};
}

size_t breakpad_names_count(const struct breakpad_names *names)
{
    return names->count + names->sparse.count;
}

void breakpad_names_free(struct breakpad_names *names)
{
    free(names->items);
    sl_account_release(&names->account);
    sl_map_free(&names->sparse);
    sl_arena_free(&names->arena);
}
