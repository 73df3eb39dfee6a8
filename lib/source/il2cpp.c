/* Reads the line mappings of Unity builds (il2cpp): from lines of generated C++ to lines of C#. */
#include "source/il2cpp.h"

#include "base/grow.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/json.h"
#include "base/search.h"

#include <stdlib.h>

enum { MAX_DISTANCE = 50 }; /* an entry holds for its line of C++ and at most this many lines after it */

struct il2cpp_entry {                              /* a line of a C++ file, and its line of C# */
    uint32_t file, line, csharp_file, csharp_line; /* `file`, `csharp_file`: indexes into `names` */
};

struct il2cpp_range { /* entries of one C++ file */
    size_t first, count;
};

struct sl_il2cpp {
    struct sl_arena arena;
    struct sl_map numbers;        /* name of a C++ or C# file -> index in `names`, + 1 */
    struct sl_str *names;         /* in the order in which they were read */
    uint32_t *ranks;              /* per name: its position among the sorted names */
    struct il2cpp_range *ranges;  /* per name */
    struct il2cpp_entry *entries; /* sorted by file, line, and the C# file's name */
    size_t name_count, name_capacity, entry_count, entry_capacity;
};

/* Returns the index of a file name in m->names; adds it if it is new. UINT32_MAX if out of memory. */
static uint32_t intern_name(struct sl_il2cpp *m, struct sl_str name)
{
    void **slot = sl_map_find_or_add(&m->numbers, name, NULL);
    if (!slot)
        return UINT32_MAX;
    if (!*slot) {
        if (m->name_count >= UINT32_MAX - 1 ||
            !sl_grow_in_arena(&m->arena, &m->names, &m->name_capacity, m->name_count + 1, sizeof *m->names))
            return UINT32_MAX;
        m->names[m->name_count++] = name;
        *slot = (void *)(uintptr_t)m->name_count; /* index plus 1, as NULL is a new slot */
    }
    return (uint32_t)((uintptr_t)*slot - 1);
}

/* Parses a decimal number; false, with `*out` 0, if it is none or does not fit into 32 bits. */
static bool parse_u32(struct sl_str text, uint32_t *out)
{
    uint64_t value;
    bool good = sl_parse_u64(text, &value) && value <= UINT32_MAX;
    *out = good ? (uint32_t)value : 0;
    return good;
}

/* Reads {"12": 3, ...}: lines of the C++ file, and their lines of the C# file. Sets the reader to failed if they are not numbers, or when
 * out of memory. */
static void read_lines(struct sl_il2cpp *m, struct sl_json *j, uint32_t file, uint32_t csharp_file)
{
    struct sl_str key;
    uint64_t value;
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        struct il2cpp_entry entry = {.file = file, .csharp_file = csharp_file};
        if (!parse_u32(key, &entry.line) || !sl_json_u64(j, &value) || value > UINT32_MAX) {
            sl_json_fail(j, "a line of C++ or C# is not a 32-bit number");
            return;
        }
        entry.csharp_line = (uint32_t)value;
        if (!sl_grow_in_arena(&m->arena, &m->entries, &m->entry_capacity, m->entry_count + 1, sizeof *m->entries)) {
            sl_json_no_memory(j);
            return;
        }
        m->entries[m->entry_count++] = entry;
    }
}

/* Reads {"a.cs": {"12": 3, ...}, ...}: the C# files of one C++ file. Skips values that are not objects. */
static void read_csharp_files(struct sl_il2cpp *m, struct sl_json *j, uint32_t file)
{
    struct sl_str key;
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        uint32_t csharp_file = intern_name(m, key);
        if (csharp_file == UINT32_MAX)
            sl_json_no_memory(j);
        else if (sl_json_peek(j) == SL_JSON_OBJECT)
            read_lines(m, j, file, csharp_file);
        else
            sl_json_skip(j);
    }
}

/* Reads {"a.cpp": {"a.cs": {"12": 3, ...}, ...}, "__debug-id__": ..., ...}. Skips values that are not objects; of a mapping that is not an
 * object nothing is read. */
static void il2cpp_read_all(struct sl_il2cpp *m, struct sl_json *j)
{
    struct sl_str key;
    if (sl_json_peek(j) != SL_JSON_OBJECT) {
        sl_json_skip(j);
        return;
    }
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        bool wanted = sl_json_peek(j) == SL_JSON_OBJECT && !sl_str_equal(key, SL_STR("__debug-id__"));
        uint32_t file = wanted ? intern_name(m, key) : 0;
        if (file == UINT32_MAX)
            sl_json_no_memory(j);
        else if (wanted)
            read_csharp_files(m, j, file);
        else
            sl_json_skip(j);
    }
}

static int il2cpp_by_name(const void *left, const void *right, void *arg)
{
    const struct sl_il2cpp *m = arg;
    return sl_str_compare(m->names[*(const uint32_t *)left], m->names[*(const uint32_t *)right]);
}

/* Sorts the names and sets m->ranks, so that entries, which are many and have two long names each, can be compared by the positions of the
 * names instead of their texts. False when out of memory. */
static bool rank_names(struct sl_il2cpp *m)
{
    uint32_t *order = sl_arena_alloc(&m->arena, (m->name_count + 1) * sizeof *order, _Alignof(uint32_t));
    m->ranks = sl_arena_alloc(&m->arena, (m->name_count + 1) * sizeof *order, _Alignof(uint32_t));
    if (!order || !m->ranks)
        return false;
    for (size_t i = 0; i < m->name_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, m->name_count, sizeof *order, il2cpp_by_name, m);
    for (size_t i = 0; i < m->name_count; i++)
        m->ranks[order[i]] = (uint32_t)i;
    return true;
}

/* Orders entries by C++ file (in the order in which files were read) and line, then by C# file (in the order of names) and line. */
static int by_line(const void *left, const void *right, void *arg)
{
    const struct il2cpp_entry *a = left, *b = right;
    const uint32_t *ranks = ((const struct sl_il2cpp *)arg)->ranks;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->csharp_file != b->csharp_file)
        return ranks[a->csharp_file] < ranks[b->csharp_file] ? -1 : 1;
    return (a->csharp_line > b->csharp_line) - (a->csharp_line < b->csharp_line);
}

/* Sorts the entries and finds the range of each C++ file. False when out of memory. */
static bool sort_entries(struct sl_il2cpp *m)
{
    m->ranges = SL_ARENA_ARRAY(&m->arena, struct il2cpp_range, m->name_count + 1);
    if (!m->ranges || !rank_names(m))
        return false;
    if (m->entry_count)
        qsort_r(m->entries, m->entry_count, sizeof *m->entries, by_line, m);
    for (size_t i = 0; i < m->entry_count; i++) {
        struct il2cpp_range *range = &m->ranges[m->entries[i].file];
        if (!range->count++)
            range->first = i;
    }
    return true;
}

enum sl_code sl_il2cpp_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_il2cpp **map,
                            struct sl_error *error)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    struct sl_il2cpp *m = calloc(1, sizeof *m);
    *map = NULL;
    if (!m)
        return sl_fail(error, SL_BUSY, "out of memory");
    m->arena.budget = budget;
    m->numbers.budget = budget;
    struct sl_json j = sl_json(text, &m->arena, false);
    if (sl_budget_spend(budget, bytes.size))
        il2cpp_read_all(m, &j);
    enum sl_code code = SL_OK;
    if (sl_budget_exhausted(budget))
        code = sl_budget_fail(budget, error);
    else if (!sl_json_end(&j))
        code = sl_fail(error, sl_json_code(&j), "Failed to parse il2cpp: %s at offset %zu", j.problem, j.at);
    else if (!sort_entries(m))
        code = sl_budget_fail(budget, error);
    if (code == SL_OK)
        *map = m;
    else
        sl_il2cpp_close(m);
    return code;
}

void sl_il2cpp_close(struct sl_il2cpp *map)
{
    if (!map)
        return;
    sl_map_free(&map->numbers);
    sl_arena_free(&map->arena);
    free(map);
}

bool sl_il2cpp_lookup(const struct sl_il2cpp *map, struct sl_str path, uint32_t line, struct sl_str *csharp_path,
                      uint32_t *csharp_line)
{
    uintptr_t number =
        (uintptr_t)sl_map_get(&map->numbers, path); /* index of the name plus 1; 0 = not in the mapping */
    if (!number)
        return false;
    const struct il2cpp_range *range = &map->ranges[number - 1];
    size_t low =
        SL_PARTITION_POINT(middle, range->first, range->first + range->count, map->entries[middle].line <= line);
    if (low == range->first || line - map->entries[low - 1].line > MAX_DISTANCE)
        return false;
    *csharp_path = map->names[map->entries[low - 1].csharp_file];
    *csharp_line = map->entries[low - 1].csharp_line;
    return true;
}

/* ---- source_info comments ---- */

bool sl_il2cpp_mark(struct sl_str line, struct sl_str *file, uint32_t *number)
{
    static const char begin[] = "//<source_info:";
    line = sl_str_trimmed(line);
    if (!sl_str_starts(line, sl_str(begin)) || line.data[line.size - 1] != '>')
        return false;
    struct sl_str inside = {line.data + sizeof begin - 1, line.size - sizeof begin}; /* without the final `>` */
    const char *colon = inside.size ? memrchr(inside.data, ':', inside.size) : NULL;
    if (!colon)
        return false;
    *file = (struct sl_str){inside.data, (size_t)(colon - inside.data)};
    return parse_u32((struct sl_str){colon + 1, inside.size - file->size - 1}, number);
}

void sl_il2cpp_scan(struct sl_str text, void (*found)(void *arg, uint32_t line, struct sl_str file, uint32_t number),
                    void *arg)
{
    struct sl_str file = {NULL, 0}, new_file;
    uint32_t line = 0, number = 0, new_number;
    bool pending = false;
    for (struct sl_str row; line < UINT32_MAX && sl_str_next_line(&text, &row);) {
        line++;
        if (sl_il2cpp_mark(row, &new_file, &new_number)) {
            if (pending)
                found(arg, line - 1, file, number);
            file = new_file;
            number = new_number;
            pending = true;
        } else if (pending && !sl_str_starts(sl_str_trimmed(row), SL_STR("//"))) {
            found(arg, line, file, number);
            pending = false;
        }
    }
}
