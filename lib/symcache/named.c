/* Functions by name. */
#include "symcache/symcache.h"

#include <stdlib.h>

static int compare_named(const void *a, const void *b)
{
    const struct sl_symcache_named *x = a, *y = b;
    return (x->string > y->string) - (x->string < y->string);
}

/* Sets the id of the name; SL_SYMCACHE_NONE if the file does not have it. */
static void find_string(const struct sl_symcache *c, struct sl_symcache_named *named, struct sl_buf *text)
{
    uint32_t id = sl_table_strings_before(&c->strings, named->name);
    sl_buf_clear(text);
    sl_table_string(&c->strings, id, text);
    named->string = sl_str_equal(sl_buf_view(text), named->name) ? id : SL_SYMCACHE_NONE;
}

/* Returns the first of the sorted names with this id; `count` if there is none. */
static size_t first_named(const struct sl_symcache_named *named, size_t count, uint32_t string)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (named[middle].string < string)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && named[low].string == string ? low : count;
}

bool sl_symcache_find_named(const struct sl_symcache *c, struct sl_symcache_named *named, size_t count)
{
    struct sl_buf text = {0};
    struct sl_symcache_function function;
    for (size_t i = 0; i < count; i++) {
        find_string(c, &named[i], &text);
        named[i].found = 0;
    }
    bool good = !text.failed;
    sl_buf_free(&text);
    if (count > 1)
        qsort(named, count, sizeof *named, compare_named);
    for (uint32_t id = 0; good && id < c->function_count && sl_symcache_function(c, id, &function); id++) {
        size_t first = function.entry == UINT64_MAX ? count : first_named(named, count, function.name);
        if (first == count || (named[first].found && named[first].entry == function.entry))
            continue;
        named[first].entry = function.entry;
        named[first].found += named[first].found < 2;
    }
    for (size_t i = 1; i < count; i++) /* names that were asked for more than once */
        if (named[i].string != SL_SYMCACHE_NONE && named[i].string == named[i - 1].string) {
            named[i].entry = named[i - 1].entry;
            named[i].found = named[i - 1].found;
        }
    return good;
}
