/* Function maps: for each source, Metro lists which function begins where, for programs that run as Hermes bytecode.
 *
 *     "x_facebook_sources": [[{"names": ["<global>", "f"], "mappings": "AAA;ACC"}], null, ...]
 *
 * A segment consists of the column (absolute again after each semicolon), the number of the name, and the line, which starts at
 * 1. Here <global> begins at 1:0 and f at 2:0. A map that cannot be read is ignored. */
#include "function/order.h"
#include "js/read.h"
#include "js/smwrite.h"
#include "js/vlq.h"
#include "base/search.h"

/* Function map of one source. Its names are [first_name, first_name + name_count) of the table's functions. */
struct function_mapping {
    struct sl_str mappings;
    uint32_t first_name, name_count;
};

/* ---- reading ---- */

/* Appends the names of a function map to those of the table. An entry that is no text becomes an empty name, because mappings refer to
 * names by their position in the list. */
static void read_function_names(struct smcache_writer *w, struct sl_json *j, struct function_mapping *m)
{
    struct sl_str key;
    if (!sl_json_array(j))
        return;
    while (sl_json_next(j, &key)) {
        if (sl_json_peek(j) == SL_JSON_STRING)
            sl_json_append(j, &w->functions);
        else
            sl_json_skip(j);
        smcache_end_function(w);
        m->name_count++;
    }
}

/* Reads the function map of a source: the first element of its list, an object with names and mappings; other elements are not used.
 * Anything else gives an empty map. */
static void read_mapping(struct smcache_writer *w, struct sl_json *j, struct function_mapping *m)
{
    struct sl_str key;
    *m = (struct function_mapping){.first_name = w->function_count};
    if (!sl_json_array(j))
        return;
    for (bool first = true; sl_json_next(j, &key); first = false) {
        if (!first || !sl_json_object(j)) {
            sl_json_skip(j);
            continue;
        }
        while (sl_json_next(j, &key))
            if (sl_str_equal(key, SL_STR("names")))
                read_function_names(w, j, m);
            else if (sl_str_equal(key, SL_STR("mappings")))
                sl_json_text(j, &m->mappings);
            else
                sl_json_skip(j);
    }
}

/* Records that a function begins at the position `key` (line << 32 | column) of the source. `name` is 1 + the number of its name, 0 = none.
 * False when out of memory. */
static bool add_start(struct smcache_writer *w, uint64_t key, uint32_t name)
{
    struct function_map *map = &w->function_map;
    if (!sl_account_grow(&w->account, &map->starts, &map->start_capacity, map->start_count + 1, sizeof *map->starts))
        return false;
    map->starts[map->start_count++] = (struct function_start){key, name};
    return true;
}

/* Reads a segment: adds its numbers to those of the segment before; numbers after the third are ignored. False when they are malformed or
 * no valid position. */
static bool read_start(const uint8_t **at, int64_t *column, int64_t *name, int64_t *line)
{
    int64_t *const numbers[] = {column, name, line};
    for (size_t i = 0; vlq_is_digit(js_vlq_kinds[**at]); i++) {
        int64_t ignored = 0;
        if (!vlq_add(at, i < 3 ? numbers[i] : &ignored))
            return false;
    }
    return (uint64_t)(*column | *line) >> 32 == 0;
}

/* Reads where the functions of a source begin; nothing is recorded if its mappings are malformed. False only when out of memory. */
static bool add_starts(struct smcache_writer *w, const struct function_mapping *m)
{
    struct sl_str mappings = m->mappings.size ? m->mappings : SL_STR(""); /* never NULL */
    const uint8_t *at = (const uint8_t *)mappings.data, *end = at + mappings.size;
    size_t first = w->function_map.start_count;
    int64_t column = 0, name = 0, line = 1; /* lines of function maps count from 1 */
    while (at < end) {
        uint8_t kind = js_vlq_kinds[*at];
        if (vlq_is_digit(kind)) {
            if (!read_start(&at, &column, &name, &line)) {
                w->function_map.start_count = first;
                return true;
            }
            bool named = (uint64_t)name < m->name_count;
            if (!add_start(w, (uint64_t)line << 32 | (uint64_t)column, named ? m->first_name + (uint32_t)name + 1 : 0))
                return false;
        } else if (kind == VLQ_COMMA || kind == VLQ_SEMICOLON) {
            column = kind == VLQ_SEMICOLON ? 0 : column; /* columns are absolute again after a semicolon */
            at++;
        } else { /* malformed */
            w->function_map.start_count = first;
            return true;
        }
    }
    return true;
}

/* Sorts the function starts from `first` on, those of one source, by position. Most are in order already; equal ones keep their order.
 * False when out of memory. */
static bool sort_starts(struct smcache_writer *w, size_t first)
{
    size_t count = w->function_map.start_count - first, sorted = 1;
    if (count < 2)
        return true;
    struct function_start *starts = w->function_map.starts + first;
    while (sorted < count && starts[sorted - 1].key <= starts[sorted].key)
        sorted++;
    if (sorted >= count)
        return true;
    struct sl_ordered *items = sl_account_alloc(&w->account, count * 2, sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct sl_ordered){.key = starts[i].key, .index = starts[i].name};
    sl_order(items, items + count, count); /* the second half is scratch */
    for (size_t i = 0; i < count; i++)
        starts[i] = (struct function_start){items[i].key, items[i].index};
    sl_account_free(&w->account, items, count * 2, sizeof *items);
    return true;
}

enum sl_code smcache_read_functions(struct smcache_writer *w, struct sl_error *error)
{
    struct function_map *map = &w->function_map;
    const struct sl_sourcemap_part *part = &w->map->parts[0]; /* the only one: the caller reads no index maps here */
    struct sl_json j = js_read_at(w->map, part->functions);
    struct function_mapping m;
    struct sl_str key;
    uint32_t sources = part->counts[SL_SOURCEMAP_SOURCES], source = 0;
    map->firsts = sl_account_alloc(&w->account, (size_t)sources + 1, sizeof *map->firsts);
    bool good = map->firsts != NULL;
    sl_json_enter(&j);
    for (; good && source < sources && sl_json_next(&j, &key); source++) {
        size_t first = map->start_count;
        map->firsts[source] = (uint32_t)first;
        read_mapping(w, &j, &m);
        good = !j.failed && add_starts(w, &m) && sort_starts(w, first) && !w->functions.failed &&
               !w->function_offsets.failed && sl_account_spend(&w->account, 1);
    }
    /* sources that the list does not reach have no functions; firsts[sources] is the end of the last source's */
    for (; good && source <= sources; source++)
        map->firsts[source] = (uint32_t)map->start_count;
    return good ? SL_OK : smcache_writer_fail(w, error);
}

/* ---- look-up ---- */

/* Returns 1 + the number of the function that contains the position `key` (line from 1 << 32 | column) of a source; 0 if there is none. */
static uint32_t function_at(const struct function_map *map, uint32_t source, uint64_t key)
{
    uint32_t first = map->firsts[source];
    uint32_t low = SL_PARTITION_POINT(middle, first, map->firsts[source + 1], map->starts[middle].key <= key);
    return low > first ? map->starts[low - 1].name : 0;
}

void smcache_find_functions(const struct smcache_writer *w, const struct sl_sourcemap_batch *b, uint32_t *functions)
{
    for (uint32_t i = 0; i < b->count; i++) {
        /* lines of tokens count from 0, those of function maps from 1 */
        uint64_t key = ((uint64_t)b->source_line[i] + 1) << 32 | b->source_column[i];
        functions[i] = b->source[i] == UINT32_MAX ? 0 : function_at(&w->function_map, b->source[i], key);
    }
}
