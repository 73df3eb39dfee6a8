#include "object/bcsymbolmap.h"

#include "object/impl.h"

#include <stdlib.h>

struct sl_bcsymbolmap {
    struct sl_budget *budget; /* `charged` bytes were charged to it for this map */
    size_t charged;
    const char *text;
    size_t count;
    size_t ends[]; /* ends[0]: end of the header line; ends[i + 1]: end of name i. Offsets in `text` */
};

static const char hidden[] = "__hidden#";

/* Returns the position of the next newline, or `end`. */
static const char *line_end(const char *at, const char *end)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline ? newline : end;
}

/* Returns the line between `at` and its newline at `end`, without a carriage return at its end. */
static struct sl_str bcsymbolmap_line_at(const char *at, const char *end)
{
    size_t size = (size_t)(end - at);
    return (struct sl_str){at, size && at[size - 1] == '\r' ? size - 1 : size};
}

enum sl_code sl_bcsymbolmap_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bcsymbolmap **out,
                                 struct sl_error *error)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    const char *end = text.data + text.size, *first = line_end(text.data, end);
    size_t count = 0;
    *out = NULL;
    if (!text.size || !sl_str_equal(bcsymbolmap_line_at(text.data, first), SL_STR("BCSymbolMap Version: 2.0")))
        return sl_fail(error, SL_MALFORMED, "no valid BCSymbolMap header was found");
    if (!sl_str_is_utf8(text))
        return sl_fail(error, SL_MALFORMED, "BCSymbolmap is not valid UTF-8");
    for (const char *at = first; at + 1 < end; at = line_end(at + 1, end)) /* `at`: the newline before a name */
        count++;
    size_t size = sizeof(struct sl_bcsymbolmap) + (count + 1) * sizeof(size_t);
    if (!sl_budget_spend(budget, count) || !sl_budget_charge(budget, size))
        return sl_budget_fail(budget, error);
    struct sl_bcsymbolmap *map = malloc(size);
    if (!map) {
        sl_budget_uncharge(budget, size);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    map->budget = budget;
    map->charged = size;
    map->text = text.data;
    map->count = count;
    map->ends[0] = (size_t)(first - text.data); /* ends[i]: offset of the newline in front of name `i` */
    for (size_t i = 0; i < count; i++)
        map->ends[i + 1] = (size_t)(line_end(text.data + map->ends[i] + 1, end) - text.data);
    *out = map;
    return SL_OK;
}

void sl_bcsymbolmap_close(struct sl_bcsymbolmap *map)
{
    if (map)
        sl_budget_uncharge(map->budget, map->charged);
    free(map);
}

/* Returns name 12 of the map for `__hidden#12_`; returns other names, and numbers beyond the map, as they are. */
struct sl_str sl_bcsymbolmap_resolve(const struct sl_bcsymbolmap *map, struct sl_str name)
{
    size_t at = sizeof hidden - 1;
    uint64_t number;
    /* `sizeof hidden` counts the NUL, so a name has at least a digit and the `_` behind the prefix */
    if (name.size < sizeof hidden + 1 || memcmp(name.data, hidden, at) != 0 || name.data[name.size - 1] != '_' ||
        !sl_parse_u64((struct sl_str){name.data + at, name.size - 1 - at}, &number))
        return name;
    return number < map->count
               ? bcsymbolmap_line_at(map->text + map->ends[number] + 1, map->text + map->ends[number + 1])
               : name;
}

bool sl_bcsymbolmap_map_line(void *map, const struct sl_file *file, uint32_t line, struct sl_file *new_file,
                             uint32_t *new_line)
{
    *new_file = *file;
    *new_line = line;
    new_file->name = sl_bcsymbolmap_resolve(map, file->name);
    new_file->directory = sl_bcsymbolmap_resolve(map, file->directory);
    new_file->comp_dir = sl_bcsymbolmap_resolve(map, file->comp_dir);
    /* a resolved text points into the map */
    return new_file->name.data != file->name.data || new_file->directory.data != file->directory.data ||
           new_file->comp_dir.data != file->comp_dir.data;
}
