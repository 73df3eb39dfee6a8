/* Collects and writes the lists of variables of functions: equal lists are stored once, sorted by name. */
#include "symcache/encoder.h"

#include <stdlib.h>

/* ---- lists of batches, in file order ---- */

/* Grows the list to `count` ids and marks all as not known yet (UINT32_MAX), because a new batch has other texts. False when out of
 * memory. */
static bool clear_ids(struct sl_symcache_writer *w, struct id_list *list, size_t count)
{
    if (!sl_account_grow(&w->account, &list->ids, &list->capacity, count, sizeof *list->ids))
        return false;
    memset(list->ids, 0xFF, count * sizeof *list->ids);
    return true;
}

bool symcache_begin_variables(struct sl_symcache_writer *w, const struct sl_function_batch *batch)
{
    w->variable_map.budget = w->options.budget;
    return !batch->variables_count || (clear_ids(w, &w->batch_texts, batch->variable_text_count) &&
                                       clear_ids(w, &w->batch_variables, batch->variables_count));
}

/* Returns the writer's id of text number `text` of the batch, which is interned at its first use. */
static uint32_t variable_text(struct sl_symcache_writer *w, const struct sl_function_batch *batch, uint32_t text)
{
    uint32_t *id = &w->batch_texts.ids[text];
    if (*id == UINT32_MAX)
        *id = symcache_intern(w, batch->variable_texts[text]);
    return *id;
}

/* Returns the number, from 1, of the list of variables that w->list has; adds a copy if it is new. 0 when out of memory
 * (account.failed). */
static uint32_t store_list(struct sl_symcache_writer *w, size_t count)
{
    size_t size = count * sizeof *w->list;
    uintptr_t known = (uintptr_t)sl_map_get(&w->variable_map, (struct sl_str){(const char *)w->list, size});
    if (known)
        return (uint32_t)known;
    struct sl_variable *items = sl_arena_alloc(&w->arena, size, _Alignof(struct sl_variable));
    void **slot = NULL;
    if (items) {
        memcpy(items, w->list, size);
        slot = sl_map_find_or_add(&w->variable_map, (struct sl_str){(const char *)items, size}, NULL);
    }
    if (!slot || w->variables_count == UINT32_MAX ||
        !sl_account_grow(&w->account, &w->variables, &w->variables_capacity, w->variables_count + 1,
                         sizeof *w->variables)) {
        w->account.failed = true;
        return 0;
    }
    w->variables[w->variables_count++] = (struct sl_variables){items, (uint32_t)count};
    *slot = (void *)(uintptr_t)w->variables_count;
    return (uint32_t)w->variables_count;
}

/* Texts and lists of the batch are converted once; batch_texts and batch_variables keep the result (UINT32_MAX = not yet). */
uint32_t symcache_encode_variables(struct sl_symcache_writer *w, const struct sl_function_batch *batch,
                                   uint32_t variables)
{
    uint32_t *id = &w->batch_variables.ids[variables - 1];
    const struct sl_variables *from = &batch->variables[variables - 1];
    if (*id != UINT32_MAX)
        return *id;
    if (!sl_account_grow(&w->account, &w->list, &w->list_capacity, from->count, sizeof *w->list) ||
        !sl_account_spend(&w->account, from->count))
        return 0;
    for (uint32_t i = 0; i < from->count; i++)
        w->list[i] = (struct sl_variable){variable_text(w, batch, from->items[i].name),
                                          variable_text(w, batch, from->items[i].type)};
    return *id = store_list(w, from->count);
}

void symcache_free_variables(struct sl_symcache_writer *w)
{
    sl_map_free(&w->variable_map);
    free(w->variables);
    free(w->list);
    free(w->batch_texts.ids);
    free(w->batch_variables.ids);
}

/* ---- the section ---- */

bool symcache_use_variables(struct encoder *e, uint8_t *used_texts)
{
    struct sl_symcache_writer *w = e->w;
    if (!w->variables_count)
        return true;
    e->variable_rows = sl_account_alloc(&w->account, w->variables_count, sizeof *e->variable_rows);
    e->used_variables = sl_account_alloc(&w->account, w->variables_count, sizeof *e->used_variables);
    if (!e->variable_rows || !e->used_variables)
        return false;
    memset(e->variable_rows, 0, w->variables_count * sizeof *e->variable_rows);
    for (uint32_t i = 0; i < e->functions.count; i++) {
        uint32_t list = w->functions[e->functions.order[i]].variables;
        if (!list || e->variable_rows[list - 1].used)
            continue;
        e->variable_rows[list - 1].used = true;
        e->used_variables[e->used_variables_count++] = list - 1;
        for (uint32_t v = 0; v < w->variables[list - 1].count; v++) {
            used_texts[w->variables[list - 1].items[v].name] = 1;
            used_texts[w->variables[list - 1].items[v].type] = 1;
        }
    }
    e->flags |= e->used_variables_count ? FLAG_VARIABLES : 0;
    return true;
}

/* A variable with its place in the list, because of several variables with one name the last in the list is stored. Its name and type are
 * given by their positions among the sorted texts. */
struct named_variable {
    struct sl_variable variable;
    uint32_t position;
};

/* Orders variables by name; of one name the last in the list comes first. */
static int by_name(const void *left, const void *right)
{
    const struct named_variable *a = left, *b = right;
    if (a->variable.name != b->variable.name)
        return a->variable.name < b->variable.name ? -1 : 1;
    return (a->position < b->position) - (a->position > b->position);
}

/* Writes the rows of a list, sorted by the rank of the name; of several variables with one name the last in the list is written. False when
 * out of memory, or if there are more than 2^32 - 1 rows. */
static bool write_list(struct encoder *e, uint32_t index)
{
    struct sl_symcache_writer *w = e->w;
    const struct sl_variables *list = &w->variables[index];
    struct variable_rows *rows = &e->variable_rows[index];
    struct named_variable *sorted = NULL;
    if (sl_account_grow(&w->account, &e->variables, &e->variable_capacity, e->variable_count + list->count,
                        sizeof *e->variables))
        sorted = sl_account_alloc(&w->account, list->count, sizeof *sorted);
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < list->count; i++)
        sorted[i] = (struct named_variable){
            {e->text_rank[list->items[i].name], e->text_rank[list->items[i].type]},
            i,
        };
    qsort(sorted, list->count, sizeof *sorted, by_name);
    rows->first = (uint32_t)e->variable_count;
    for (uint32_t i = 0; i < list->count; i++)
        if (!i || sorted[i].variable.name != sorted[i - 1].variable.name) /* of one name the last comes first */
            e->variables[e->variable_count++] = sorted[i].variable;
    rows->count = (uint32_t)(e->variable_count - rows->first);
    e->max_variables = rows->count > e->max_variables ? rows->count : e->max_variables;
    sl_account_free(&w->account, sorted, list->count, sizeof *sorted);
    e->table.too_large = e->table.too_large || e->variable_count > UINT32_MAX;
    return !e->table.too_large;
}

bool symcache_write_variables(struct encoder *e)
{
    for (size_t i = 0; i < e->used_variables_count; i++)
        if (!write_list(e, e->used_variables[i]))
            return false;
    return true;
}
