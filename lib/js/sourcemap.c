/* Reads the JSON of a source map: finds and records its parts, the map itself or the maps of an index map. */
#include "js/sourcemap.h"

#include <stdlib.h>

#include "base/grow.h"
#include "function/order.h"
#include "js/read.h"

struct sourcemap_reading {
    struct sl_json j;
    struct sl_sourcemap *map;
    struct sl_sourcemap_contents *contents; /* NULL: not collected */
    size_t contents_begin;                  /* offset in their text */
    size_t capacity;                        /* capacity of `parts` */
};

/* A map object while it is read, before it is known whether it is a plain map or an index map. */
struct object {
    struct sl_sourcemap_part part;
    bool has_sections;
};

static bool malformed(struct sourcemap_reading *r, const char *problem)
{
    return sl_json_fail(&r->j, problem);
}

/* Returns the offset in the map's text of the next value. */
static uint32_t value_offset(struct sl_json *j)
{
    sl_json_peek(j); /* skips white space */
    return (uint32_t)j->at;
}

/* True if the next value is null, which counts as absent; it is skipped. */
static bool is_null(struct sourcemap_reading *r)
{
    if (sl_json_peek(&r->j) != SL_JSON_NULL)
        return false;
    sl_json_skip(&r->j);
    return true;
}

/* ---- the members of a map ---- */

/* Records the offset of a string in `*offset`, which stays 0 for null. False for any other value, and for a member that occurs twice. */
static bool record_text(struct sourcemap_reading *r, uint32_t *offset)
{
    struct sl_str raw;
    bool escaped;
    if (*offset)
        return malformed(r, "duplicate member");
    if (is_null(r))
        return true;
    *offset = value_offset(&r->j);
    return sl_json_raw_string(&r->j, &raw, &escaped);
}

/* Records offset and length of a list of strings and nulls; with `any`, of any values, as `names` may contain numbers. null instead of a
 * list counts as absent. A member that occurs twice is an error. False if it is malformed. */
static bool record_list(struct sourcemap_reading *r, uint32_t *offset, uint32_t *count, bool any)
{
    struct sl_str key, raw;
    bool escaped;
    if (*offset)
        return malformed(r, "duplicate member");
    if (is_null(r))
        return true;
    *offset = value_offset(&r->j);
    if (!sl_json_array(&r->j))
        return malformed(r, "expected a list");
    while (sl_json_next(&r->j, &key)) {
        enum sl_json_type type = sl_json_peek(&r->j);
        if (type == SL_JSON_STRING)
            sl_json_raw_string(&r->j, &raw, &escaped);
        else if (any || type == SL_JSON_NULL)
            sl_json_skip(&r->j);
        else
            return malformed(r, "expected a text or null");
        ++*count;
    }
    return !r->j.failed;
}

/* Appends an entry of `sourcesContent` to r->contents->text, and its offset and size to the places. A null has the size NO_CONTENT. False
 * if the entry is neither a string nor null, or when out of memory. */
static bool collect_content(struct sourcemap_reading *r)
{
    struct sl_buf *text = r->contents->text, *places = &r->contents->places;
    size_t begin = text->size;
    bool null = is_null(r);
    if (!null && !sl_json_append(&r->j, text))
        return false;
    sl_buf_u32(places, (uint32_t)(begin - r->contents_begin));
    sl_buf_u32(places, null ? (uint32_t)SL_SOURCEMAP_NO_CONTENT : (uint32_t)(text->size - begin));
    return !places->failed || sl_json_no_memory(&r->j); /* sl_json_no_memory() records the error and returns false */
}

/* Reads `sourcesContent`: its strings, unescaped, go into r->contents->text, their offsets and sizes there into r->contents->places. False
 * if it is malformed, or when out of memory. */
static bool collect_contents(struct sourcemap_reading *r, struct sl_sourcemap_part *part)
{
    uint32_t *offset = &part->lists[SL_SOURCEMAP_CONTENTS];
    struct sl_str key;
    if (*offset)
        return malformed(r, "duplicate member");
    if (is_null(r))
        return true;
    *offset = value_offset(&r->j);
    part->first_content = (uint32_t)(r->contents->places.size / 8);
    if (!sl_json_array(&r->j))
        return malformed(r, "expected a list");
    while (sl_json_next(&r->j, &key)) {
        if (!collect_content(r))
            return false;
        part->counts[SL_SOURCEMAP_CONTENTS]++;
    }
    return !r->j.failed;
}

/* Records the offset of a list in `*offset`, which stays 0 for null; its elements are checked when they are used. False for any other
 * value, and for a member that occurs twice. */
static bool record_array(struct sourcemap_reading *r, uint32_t *offset)
{
    if (*offset)
        return malformed(r, "duplicate member");
    if (is_null(r))
        return true;
    if (sl_json_peek(&r->j) != SL_JSON_ARRAY)
        return malformed(r, "expected a list");
    *offset = value_offset(&r->j);
    sl_json_skip(&r->j);
    return !r->j.failed;
}

/* Reads a debug id; an invalid one is ignored. Of the two members a map may have for it, `debug_id` (`preferred`) wins over `debugId`. */
static void read_debug_id(struct sourcemap_reading *r, bool preferred)
{
    struct sl_debug_id *id = &r->map->debug_id, read;
    struct sl_str text;
    if (sl_json_text(&r->j, &text) && sl_debug_id_parse(text, &read) && (preferred || sl_debug_id_is_nil(id)))
        *id = read;
}

/* Records the offset of `scopes`. If it is neither a string nor null, only sets has_bad_scopes: the rest of the map is still useful. */
static void record_scopes(struct sourcemap_reading *r, struct sl_sourcemap_part *part)
{
    enum sl_json_type type = sl_json_peek(&r->j);
    part->scopes = type == SL_JSON_STRING ? value_offset(&r->j) : 0;
    part->has_bad_scopes = type != SL_JSON_STRING && type != SL_JSON_NULL;
    sl_json_skip(&r->j);
}

/* Records where the list of ignored sources is; a value that is no list is skipped. */
static void record_ignored(struct sourcemap_reading *r)
{
    if (sl_json_peek(&r->j) == SL_JSON_ARRAY)
        r->map->ignored = value_offset(&r->j);
    sl_json_skip(&r->j);
}

static bool read_sections(struct sourcemap_reading *r);

/* Reads the member `key` of a map object. Unknown members are skipped, and so are malformed ids, ignore lists and `scopes`, without which
 * the map is still of use. False if the map is malformed, or when out of memory. */
static bool read_map_member(struct sourcemap_reading *r, struct sl_str key, struct object *object)
{
    struct sl_sourcemap_part *p = &object->part;
    static const struct sl_str lists[] = {SL_STR("sources"), SL_STR("sourcesContent"), SL_STR("names")};
    /* the caller wants the texts, not only the list */
    if (r->contents && sl_str_equal(key, lists[SL_SOURCEMAP_CONTENTS]))
        return collect_contents(r, p);
    for (unsigned i = 0; i < SL_SOURCEMAP_LISTS; i++)
        if (sl_str_equal(key, lists[i]))
            return record_list(r, &p->lists[i], &p->counts[i], i == SL_SOURCEMAP_NAMES);
    if (sl_str_equal(key, SL_STR("sourceRoot")))
        return record_text(r, &p->root);
    if (sl_str_equal(key, SL_STR("mappings")))
        return record_text(r, &p->mappings);
    if (sl_str_equal(key, SL_STR("rangeMappings")))
        return record_text(r, &p->ranges);
    if (sl_str_equal(key, SL_STR("x_facebook_sources")))
        return record_array(r, &p->functions);
    if (sl_str_equal(key, SL_STR("sections"))) {
        if (object->has_sections)
            return malformed(r, "duplicate member");
        object->has_sections = !is_null(r);
        return !object->has_sections || read_sections(r);
    }
    if (sl_str_equal(key, SL_STR("debug_id")) || sl_str_equal(key, SL_STR("debugId")))
        read_debug_id(r, sl_str_equal(key, SL_STR("debug_id"))); /* true: `debug_id` wins if the map has both */
    else if (sl_str_equal(key, SL_STR("ignoreList")) || sl_str_equal(key, SL_STR("x_google_ignoreList")))
        record_ignored(r);
    else if (sl_str_equal(key, SL_STR("scopes")))
        record_scopes(r, p);
    else
        sl_json_skip(&r->j);
    return !r->j.failed;
}

/* Adds a map to the parts of the document; false when out of memory, with r->j.busy set. */
static bool add_part(struct sourcemap_reading *r, const struct sl_sourcemap_part *part)
{
    struct sl_sourcemap *map = r->map;
    if (!sl_grow_in_arena(map->arena, &map->parts, &r->capacity, map->part_count + 1, sizeof *part))
        return sl_json_no_memory(&r->j);
    map->parts[map->part_count++] = *part;
    return true;
}

/* Reads a map object. A plain map adds itself to the parts; an index map has added those in its sections. False if it is malformed, or when
 * out of memory. */
static bool read_map(struct sourcemap_reading *r)
{
    struct object object = {.has_sections = false};
    struct sl_str key;
    if (!sl_json_object(&r->j))
        return malformed(r, "expected a map object");
    while (sl_json_next(&r->j, &key))
        if (!read_map_member(r, key, &object))
            return false;
    return !r->j.failed && (object.has_sections || add_part(r, &object.part));
}

/* ---- index maps ---- */

/* Reads {"line": 1, "column": 2}; both are required. False if it is malformed. */
static bool read_offset(struct sourcemap_reading *r, uint32_t *line, uint32_t *column)
{
    struct sl_str key;
    uint64_t value;
    unsigned seen = 0;
    if (!sl_json_object(&r->j))
        return malformed(r, "expected an offset object");
    while (sl_json_next(&r->j, &key)) {
        bool is_line = sl_str_equal(key, SL_STR("line"));
        if (!is_line && !sl_str_equal(key, SL_STR("column"))) {
            sl_json_skip(&r->j);
            continue;
        }
        if (!sl_json_u64(&r->j, &value) || value > UINT32_MAX)
            return malformed(r, "expected a 32-bit line or column");
        *(is_line ? line : column) = (uint32_t)value;
        seen |= is_line ? 1 : 2;
    }
    return !r->j.failed && (seen == 3 || malformed(r, "offset without line or column"));
}

/* Moves the parts from `first` on, which are the maps of one section, by the section's offset in the script. False if a line does not fit
 * 32 bits. */
static bool move_parts(struct sourcemap_reading *r, size_t first, uint32_t line, uint32_t column)
{
    for (size_t i = first; i < r->map->part_count; i++) {
        struct sl_sourcemap_part *part = &r->map->parts[i];
        if (!part->line) /* columns only move on the line where the section begins */
            part->column += column;
        if (__builtin_add_overflow(part->line, line, &part->line))
            return malformed(r, "the line at which a section begins does not fit 32 bits");
    }
    return true;
}

/* Reads a section of an index map. Its offset and its map may come in any order, so the offset is added to the map's parts at the end.
 * False if it is malformed, or when out of memory. */
static bool read_map_section(struct sourcemap_reading *r)
{
    uint32_t line = 0, column = 0;
    size_t first = r->map->part_count;
    bool has_map = false, has_offset = false;
    struct sl_str key;
    if (!sl_json_object(&r->j))
        return malformed(r, "expected a section object");
    while (sl_json_next(&r->j, &key)) {
        bool good = true;
        if (sl_str_equal(key, SL_STR("offset"))) {
            good = !has_offset ? read_offset(r, &line, &column) : malformed(r, "duplicate member");
            has_offset = true;
        } else if (sl_str_equal(key, SL_STR("map"))) {
            good = !has_map ? read_map(r) : malformed(r, "duplicate member");
            has_map = true;
        } else {
            sl_json_skip(&r->j);
        }
        if (!good)
            return false;
    }
    if (!r->j.failed && (!has_map || !has_offset))
        return malformed(r, "section without map or offset");
    return !r->j.failed && move_parts(r, first, line, column);
}

/* Reads the `sections` of an index map, which add their maps to r->map->parts. False if one is malformed, or when out of memory. */
static bool read_sections(struct sourcemap_reading *r)
{
    struct sl_str key;
    r->map->indexed = true;
    if (!sl_json_array(&r->j))
        return malformed(r, "expected a list");
    while (sl_json_next(&r->j, &key))
        if (!read_map_section(r))
            return false;
    return !r->j.failed;
}

/* ---- the document ---- */

/* Skips a first line like `)]}'`, which servers put in front so that browsers cannot run the file as a script. False if it ends with a
 * carriage return without a line feed. A text without line end is skipped as a whole. */
static bool skip_junk(struct sl_str *text)
{
    if (!text->size || !memchr(")]}'", text->data[0], 4))
        return true;
    const char *end = memchr(text->data, '\n', text->size), *cr = memchr(text->data, '\r', text->size);
    if (cr && (!end || cr + 1 < end))
        return false;
    size_t junk = end ? (size_t)(end + 1 - text->data) : text->size;
    *text = (struct sl_str){text->data + junk, text->size - junk};
    return true;
}

static uint64_t part_key(const struct sl_sourcemap_part *part)
{
    return (uint64_t)part->line << 32 | part->column;
}

/* Sorts the maps of an index map, the parts, by their positions in the script. False when out of memory. */
static bool sort_parts(struct sl_sourcemap *map)
{
    size_t count = map->part_count, sorted = 1;
    while (sorted < count && part_key(&map->parts[sorted - 1]) <= part_key(&map->parts[sorted]))
        sorted++;
    if (sorted >= count)
        return true;
    struct sl_ordered *items = SL_ARENA_ARRAY(map->arena, struct sl_ordered, count * 2);
    struct sl_sourcemap_part *parts = SL_ARENA_ARRAY(map->arena, struct sl_sourcemap_part, count);
    if (!items || !parts)
        return false;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct sl_ordered){.key = part_key(&map->parts[i]), .index = (uint32_t)i};
    sl_order(items, items + count, count); /* the second half is scratch */
    for (size_t i = 0; i < count; i++)
        parts[i] = map->parts[items[i].index];
    map->parts = parts;
    return true;
}

/* True if 31 bits suffice to number the sources, and the names, of all parts. */
static bool can_be_numbered(const struct sl_sourcemap *map)
{
    uint64_t counts[SL_SOURCEMAP_LISTS] = {0};
    for (size_t i = 0; i < map->part_count; i++)
        for (unsigned list = 0; list < SL_SOURCEMAP_LISTS; list++)
            counts[list] += map->parts[i].counts[list];
    return counts[SL_SOURCEMAP_SOURCES] < INT32_MAX && counts[SL_SOURCEMAP_NAMES] < INT32_MAX;
}

enum sl_code sl_sourcemap_read(struct sl_str text, struct sl_arena *arena, struct sl_sourcemap *map,
                               struct sl_sourcemap_contents *contents, struct sl_error *error)
{
    *map = (struct sl_sourcemap){.arena = arena};
    if (!skip_junk(&text))
        return sl_fail(error, SL_MALFORMED,
                       "source map: the first line, which is skipped as it begins with one of )]}', ends with a "
                       "carriage return without a line feed");
    if (text.size > UINT32_MAX)
        return sl_fail(error, SL_UNSUPPORTED, "source map: larger than 4 GiB, which is the most that can be read");
    map->text = text;
    struct sourcemap_reading r = {.j = sl_json(text, arena, false), .map = map, .contents = contents};
    r.contents_begin = contents ? contents->text->size : 0;
    if (!read_map(&r) || !sl_json_end(&r.j)) {
        if (sl_json_code(&r.j) == SL_BUSY)
            return sl_budget_fail(arena->budget, error);
        struct sl_json_position position = sl_json_position(text, r.j.at);
        return sl_fail(error, SL_MALFORMED, "source map: %s at line %zu, column %zu", r.j.problem, position.line,
                       position.column);
    }
    if (!sort_parts(map))
        return sl_budget_fail(arena->budget, error);
    return can_be_numbered(map) ? SL_OK
                                : sl_fail(error, SL_UNSUPPORTED, "source map: more than 2^31 - 2 sources or names");
}

/* ---- lists ---- */

bool sl_sourcemap_texts(const struct sl_sourcemap *map, const struct sl_sourcemap_part *part,
                        enum sl_sourcemap_list list, struct sl_sourcemap_texts *texts)
{
    *texts = (struct sl_sourcemap_texts){.there = part->lists[list] != 0, .json = js_read_at(map, part->lists[list])};
    if (list == SL_SOURCEMAP_SOURCES && !js_read_text(map, part->root, &texts->root))
        return false;
    if (sl_str_ends(texts->root, SL_STR("/"))) /* the slash is added to each name; the root "/" becomes "", not NULL */
        texts->root.size--;
    else if (!texts->root.size)
        texts->root.data = NULL; /* no root */
    return !texts->there || sl_json_enter(&texts->json);
}

/* True for an absolute path or URL, to which sourceRoot does not apply. `raw` still has JSON escapes, so "\/" may be its slash. */
static bool is_rooted(struct sl_str raw)
{
    return sl_str_starts(raw, SL_STR("/")) || sl_str_starts(raw, SL_STR("\\/")) ||
           sl_str_starts(raw, SL_STR("http:")) || sl_str_starts(raw, SL_STR("https:"));
}

/* True if the next value is an absolute path or URL, to which sourceRoot does not apply. Gets a copy of the reader, so nothing is read. */
static bool is_absolute(struct sl_json json)
{
    struct sl_str raw;
    bool escaped;
    return sl_json_peek(&json) == SL_JSON_STRING && sl_json_raw_string(&json, &raw, &escaped) && is_rooted(raw);
}

bool sl_sourcemap_text(struct sl_sourcemap_texts *texts, struct sl_buf *out, bool *null)
{
    struct sl_json *j = &texts->json;
    struct sl_str key, number;
    if (!texts->there || !sl_json_next(j, &key))
        return false;
    if (texts->root.data && !is_absolute(*j)) { /* looks at the entry in a copy of the reader */
        sl_buf_str(out, texts->root);
        sl_buf_u8(out, '/');
    }
    enum sl_json_type type = sl_json_peek(j);
    *null = type != SL_JSON_STRING && type != SL_JSON_NUMBER;
    if (type == SL_JSON_STRING)
        sl_json_append(j, out);
    else if (type == SL_JSON_NUMBER && sl_json_number(j, &number))
        sl_buf_str(out, number);
    else
        sl_json_skip(j);
    return !j->failed || j->busy; /* true when out of memory: out->failed tells the caller */
}

bool sl_sourcemap_ignored(const struct sl_sourcemap *map, uint32_t *at, uint64_t *source)
{
    struct sl_str key;
    if (!map->ignored)
        return false;
    struct sl_json json = js_read_at(map, *at ? *at : map->ignored);
    if (*at) { /* continue after an item: the reader is inside of one list, in which a comma or its end follows */
        json.depth = 1;
        json.fresh = false;
    } else {
        sl_json_enter(&json);
    }
    bool more = sl_json_next(&json, &key) && sl_json_u64(&json, source); /* an entry that is no number ends the list */
    *at = (uint32_t)json.at;
    return more;
}
