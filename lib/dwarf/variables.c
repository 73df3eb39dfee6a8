/* Variables of a unit's functions and inlined calls: lists of names and types; equal texts and equal lists are stored once. */
#include "dwarf/impl.h"

#include <stdlib.h>

/* Looks up a number in a map. The map stores number + 1 as a pointer, because NULL means absent. False if absent. */
static bool find_number(const struct sl_map *map, struct sl_str key, uint32_t *number)
{
    uintptr_t value = (uintptr_t)sl_map_get(map, key);
    *number = (uint32_t)value - 1;
    return value != 0;
}

/* Stores `number` + 1 as a pointer under `key`, because NULL means absent. The key must live as long as the map. False when out of
 * memory. */
static bool store_number(struct dwarf_worker *w, struct sl_map *map, struct sl_str key, size_t number)
{
    void **slot = sl_map_find_or_add(map, key, NULL);
    if (slot)
        *slot = (void *)(uintptr_t)(number + 1);
    w->account.failed = w->account.failed || !slot;
    return slot != NULL;
}

/* ---- texts, identified by their address ---- */

static struct sl_str address_key(const char *const *address)
{
    return (struct sl_str){(const char *)address, sizeof *address};
}

/* Stores a text and returns its number, from 0; also 0 when out of memory, and then account.failed is set. A text is identified by its
 * address, so that each is read once. */
static uint32_t store_text(struct dwarf_worker *w, const char *address, struct sl_str text)
{
    struct variable_reader *v = &w->variable_reader;
    const char **key = SL_ARENA_NEW(v->arena, const char *);
    if (!key || !sl_account_grow(&w->account, &v->texts, &v->text_capacity, v->text_count + 1, sizeof *v->texts)) {
        w->account.failed = true;
        return 0;
    }
    *key = address;
    store_number(w, &v->text_map, address_key(key), v->text_count);
    v->texts[v->text_count] = text;
    return (uint32_t)v->text_count++;
}

/* Returns the number of a text, which is stored if it is new. */
static uint32_t text_number(struct dwarf_worker *w, struct sl_str text)
{
    uint32_t number;
    if (find_number(&w->variable_reader.text_map, address_key(&text.data), &number))
        return number;
    return store_text(w, text.data, text);
}

struct sl_str variables_text(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a)
{
    uint32_t number;
    const char *address = dwarf_text_address(unit, a);
    if (!address)
        return (struct sl_str){NULL, 0};
    if (find_number(&w->variable_reader.text_map, address_key(&address), &number))
        return w->variable_reader.texts[number];
    struct sl_str text = dwarf_text(&w->account, unit, a);
    store_text(w, address, text);
    return text;
}

/* ---- lists ---- */

/* A function or inlined call whose variables are being collected. */
struct dwarf_variable_list {
    size_t first;                   /* of its variables in variable_reader.open */
    size_t first_inlinee, inlinees; /* the worker's inlinees that are this call, one per range */
};

bool variables_open(struct dwarf_worker *w, size_t first_inlinee)
{
    struct variable_reader *v = &w->variable_reader;
    if (!sl_account_grow(&w->account, &v->gatherings, &v->gathering_capacity, v->gathering_count + 1,
                         sizeof *v->gatherings))
        return false;
    v->gatherings[v->gathering_count++] = (struct dwarf_variable_list){
        .first = v->open_count, .first_inlinee = first_inlinee, .inlinees = w->inlinee_count - first_inlinee};
    return true;
}

bool variables_add(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev,
                   struct sl_reader *r)
{
    struct variable_reader *v = &w->variable_reader;
    struct description is;
    if (!types_read(w, unit, abbrev, r, &is))
        return false;
    if (is.declaration) /* no variable of this function */
        return true;
    types_complete(w, unit, &is);
    if (!is.name.size) /* left out */
        return !w->account.failed;
    struct sl_variable variable = {text_number(w, is.name), text_number(w, types_name(w, unit, is.type, is.has_type))};
    if (w->account.failed ||
        !sl_account_grow(&w->account, &v->open, &v->open_capacity, v->open_count + 1, sizeof *v->open))
        return false;
    v->open[v->open_count++] = variable;
    return true;
}

/* Returns how many variables fit before their texts exceed SL_MAX_NAME bytes together; the rest is dropped. */
static size_t count_that_fits(const struct variable_reader *v, const struct sl_variable *items, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += v->texts[items[i].name].size + v->texts[items[i].type].size;
        if (size > SL_MAX_NAME)
            return i;
    }
    return count;
}

/* Returns the number of the list, from 1; adds it if it is new. 0 when out of memory. */
static uint32_t list_number(struct dwarf_worker *w, const struct sl_variable *variables, size_t count)
{
    struct variable_reader *v = &w->variable_reader;
    size_t size = count * sizeof *variables;
    struct sl_str contents = {(const char *)variables, size};
    uint32_t number;
    if (find_number(&v->list_map, contents, &number))
        return number + 1;
    struct sl_variable *items = sl_arena_alloc(v->arena, size, _Alignof(struct sl_variable));
    if (!items || !sl_account_grow(&w->account, &v->lists, &v->list_capacity, v->list_count + 1, sizeof *v->lists)) {
        w->account.failed = true;
        return 0;
    }
    memcpy(items, variables, size);
    store_number(w, &v->list_map, (struct sl_str){(const char *)items, size}, v->list_count);
    v->lists[v->list_count++] = (struct sl_variables){items, (uint32_t)count};
    return (uint32_t)v->list_count;
}

uint32_t variables_close(struct dwarf_worker *w)
{
    struct variable_reader *v = &w->variable_reader;
    const struct dwarf_variable_list *g = &v->gatherings[--v->gathering_count];
    size_t open = v->open_count - g->first;
    v->open_count = g->first;
    if (!open || !sl_account_spend(&w->account, open + g->inlinees))
        return 0;
    size_t count = count_that_fits(v, v->open + g->first, open);
    uint32_t number = count ? list_number(w, v->open + g->first, count) : 0;
    for (size_t i = 0; i < g->inlinees; i++)
        w->inlinees[g->first_inlinee + i].variables = number;
    return number;
}

/* ---- units ---- */

void variables_begin(struct dwarf_worker *w, struct sl_arena *arena)
{
    struct variable_reader *v = &w->variable_reader;
    v->list_map.budget = v->text_map.budget = v->types.budget = w->account.budget;
    v->gathering_count = v->open_count = v->list_count = v->text_count = v->parameter_count = 0;
    v->arena = arena;
}

void variables_end(struct dwarf_worker *w)
{
    struct variable_reader *v = &w->variable_reader;
    sl_map_free(&v->list_map);
    sl_map_free(&v->text_map);
    sl_map_free(&v->types);
}

/* Frees the arrays; the maps were freed by variables_end(), and what they point to is in the batch's arena. */
void variables_free(struct variable_reader *v)
{
    free(v->open);
    free(v->gatherings);
    free(v->lists);
    free(v->texts);
    free(v->parameters);
}

bool variables_copy_to_batch(const struct dwarf_worker *w, struct sl_function_batch *batch, struct sl_arena *arena)
{
    const struct variable_reader *v = &w->variable_reader;
    /* + 1: NULL only when out of memory */
    struct sl_variables *lists = SL_ARENA_ARRAY(arena, struct sl_variables, v->list_count + 1);
    struct sl_str *texts = SL_ARENA_ARRAY(arena, struct sl_str, v->text_count + 1);
    if (!lists || !texts)
        return false;
    if (v->list_count)
        memcpy(lists, v->lists, v->list_count * sizeof *lists);
    if (v->text_count)
        memcpy(texts, v->texts, v->text_count * sizeof *texts);
    batch->variables = lists;
    batch->variables_count = v->list_count;
    batch->variable_texts = texts;
    batch->variable_text_count = v->text_count;
    return true;
}
