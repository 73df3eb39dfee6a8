/* Finds functions by name: the ids of the names in the string table are looked up once, then one pass over the functions compares ids. */
#include "symcache/symcache.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

SL_ORDER_BY(named_by_string, struct sl_symcache_named, string)

/* Sets named->string to the id of the name in the string table; SL_SYMCACHE_NONE if it is not there. `text` is scratch memory. */
static void find_string(const struct sl_symcache *c, struct sl_symcache_named *named, struct sl_buf *text)
{
    uint32_t id = sl_table_strings_before(&c->strings, named->name);
    sl_buf_clear(text);
    sl_table_string(&c->strings, id, text);
    named->string = sl_str_equal(sl_buf_view(text), named->name) ? id : SL_SYMCACHE_NONE;
}

/* Returns the index of the first of the sorted names with this string id; `count` if there is none. */
static size_t first_named(const struct sl_symcache_named *named, size_t count, uint32_t string)
{
    size_t at = SL_PARTITION_POINT(i, 0, count, named[i].string < string);
    return at < count && named[at].string == string ? at : count;
}

/* Sorts the names by their ids in the string table, then goes over all functions once. */
bool sl_symcache_find_named(const struct sl_symcache *c, struct sl_symcache_named *named, size_t count)
{
    struct sl_buf text = {0};
    struct sl_symcache_function function;
    for (size_t i = 0; i < count; i++) {
        find_string(c, &named[i], &text); /* sets named[i].string to its id, or SL_SYMCACHE_NONE */
        named[i].found = 0;
    }
    bool good = !text.failed;
    sl_buf_free(&text);
    if (count > 1)
        qsort(named, count, sizeof *named, named_by_string);
    for (uint32_t id = 0; good && id < c->function_count && sl_symcache_function(c, id, &function); id++) {
        /* functions without an entry point are only inlined: they have no address to return */
        size_t first = function.entry == UINT64_MAX ? count : first_named(named, count, function.name);
        if (first == count || (named[first].found && named[first].entry == function.entry))
            continue;
        named[first].entry = function.entry;
        /* a function with this name and another address: `found` becomes 1, then 2, which means "several" */
        named[first].found += named[first].found < 2;
    }
    for (size_t i = 1; i < count; i++) /* names that were asked for more than once */
        if (named[i].string != SL_SYMCACHE_NONE && named[i].string == named[i - 1].string) {
            named[i].entry = named[i - 1].entry;
            named[i].found = named[i - 1].found;
        }
    return good;
}
