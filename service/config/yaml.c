/* Builds a tree of values from libyaml's events. Aliases are copied, so that every node has one parent. Ten nested levels of ten aliases
 * would be 10^10 nodes, so each copied node counts against CONFIG_MAX_NODES. */
#include <yaml.h>

#include "base/map.h"
#include "config/impl.h"

/* Stored in the arena before the text of a key, so that struct value needs no field for it. */
struct key_position {
    uint32_t line, column;
};

struct yaml_builder {
    yaml_parser_t parser;
    yaml_event_t event;
    bool have_event;
    struct sl_str text;
    struct sl_arena *arena;
    struct value_problems *problems;
    struct config_path path;
    struct sl_map anchors; /* name -> struct value *, complete nodes only: a node cannot contain itself */
    size_t nodes;          /* number of nodes so far, for CONFIG_MAX_NODES */
};

struct items { /* a growing array; the keys of a map are parallel to its values */
    struct value *values;
    struct sl_str *keys;
    size_t count, capacity;
};

/* Sets the value's line and column, counted from 1. */
static void set_position(struct value *value, yaml_mark_t mark)
{
    value->line = (uint32_t)mark.line + 1;
    value->column = (uint32_t)mark.column + 1;
}

struct value yaml_key_position(struct sl_str key)
{
    struct key_position position;
    memcpy(&position, key.data - sizeof position, sizeof position);
    return (struct value){.line = position.line, .column = position.column};
}

/* ---- problems ---- */

/* Reports an error at a position of the file, for the current path. Always false. */
static bool fail_at(struct yaml_builder *b, yaml_mark_t mark, const char *what)
{
    struct value at = {0};
    set_position(&at, mark);
    value_problem(b->problems, &at, false, path_shown(&b->path), "%s", what);
    return false;
}

static bool out_of_memory(struct yaml_builder *b)
{
    value_problem(b->problems, NULL, false, "", "out of memory");
    return false;
}

/* Sets the line and column of a byte offset in the file. libyaml gives only an offset for invalid UTF-8 and control characters. */
static void position_of_offset(struct yaml_builder *b, size_t offset, struct value *at)
{
    at->line = at->column = 1;
    for (size_t i = 0; i < offset && i < b->text.size; i++) {
        bool pair = b->text.data[i] == '\r' && i + 1 < b->text.size && b->text.data[i + 1] == '\n';
        bool newline = b->text.data[i] == '\n' || (b->text.data[i] == '\r' && !pair); /* "\r\n" is one line end */
        at->line += newline;
        /* a column is a character: the later bytes of a UTF-8 sequence (10xxxxxx) do not count */
        at->column = newline ? 1 : at->column + (((uint8_t)b->text.data[i] & 0xC0) != 0x80);
    }
}

/* Reports libyaml's error. If libyaml tells a context ("while parsing a block mapping"), adds it, and the line where it begins unless the
 * error is on that line. Always false. */
static bool syntax_error(struct yaml_builder *b)
{
    const yaml_parser_t *p = &b->parser;
    struct value at = {0};
    if (p->error == YAML_MEMORY_ERROR)
        return out_of_memory(b);
    const char *problem = p->problem ? p->problem : "unreadable";
    if (p->error == YAML_READER_ERROR) {
        position_of_offset(b, p->problem_offset, &at);
        value_problem(b->problems, &at, false, "", "not valid YAML: %s", problem);
        return false;
    }
    set_position(&at, p->problem_mark);
    if (p->context && p->context_mark.line != p->problem_mark.line)
        value_problem(b->problems, &at, false, "", "not valid YAML: %s (%s that begins on line %zu)", problem,
                      p->context, p->context_mark.line + 1);
    else
        value_problem(b->problems, &at, false, "", "not valid YAML: %s%s%s%s", problem, p->context ? " (" : "",
                      p->context ? p->context : "", p->context ? ")" : "");
    return false;
}

/* Replaces b->event by the next event. False after a report of a syntax error. */
static bool yaml_next(struct yaml_builder *b)
{
    if (b->have_event)
        yaml_event_delete(&b->event);
    b->have_event = yaml_parser_parse(&b->parser, &b->event) != 0;
    return b->have_event || syntax_error(b);
}

/* ---- nodes ---- */

/* Counts a node of the tree. False after a report if it is nested too deeply or there are too many. */
static bool count_node(struct yaml_builder *b, unsigned depth)
{
    if (depth > CONFIG_MAX_DEPTH)
        return fail_at(b, b->event.start_mark, "values are nested too deeply");
    if (++b->nodes > CONFIG_MAX_NODES)
        return fail_at(b, b->event.start_mark, "too many values (aliases count each time)");
    return true;
}

/* Makes room for one more item. Memory of an arena cannot grow, so a full array is copied to one of twice the size. False after a
 * report. */
static bool yaml_grow(struct yaml_builder *b, struct items *items)
{
    if (items->count < items->capacity)
        return true;
    size_t capacity = items->capacity ? items->capacity * 2 : 8;
    struct value *values = SL_ARENA_ARRAY(b->arena, struct value, capacity);
    struct sl_str *keys = SL_ARENA_ARRAY(b->arena, struct sl_str, capacity);
    if (!values || !keys)
        return out_of_memory(b);
    if (items->count) {
        memcpy(values, items->values, items->count * sizeof *values);
        memcpy(keys, items->keys, items->count * sizeof *keys);
    }
    items->values = values;
    items->keys = keys;
    items->capacity = capacity;
    return true;
}

/* Copies the node `from`, which an alias refers to, with all nodes below it; each counts against the limits. False after a report. */
static bool copy_tree(struct yaml_builder *b, const struct value *from, struct value *to, unsigned depth)
{
    if (!count_node(b, depth))
        return false;
    *to = *from;
    if (from->type != VALUE_LIST && from->type != VALUE_MAP)
        return true;
    to->items = SL_ARENA_ARRAY(b->arena, struct value, from->count);
    if (from->count && !to->items)
        return out_of_memory(b);
    if (from->type == VALUE_MAP) {
        to->keys = SL_ARENA_ARRAY(b->arena, struct sl_str, from->count);
        if (from->count && !to->keys)
            return out_of_memory(b);
        if (from->count)
            memcpy(to->keys, from->keys, from->count * sizeof *to->keys);
    }
    for (size_t i = 0; i < from->count; i++)
        if (!copy_tree(b, &from->items[i], &to->items[i], depth + 1))
            return false;
    return true;
}

/* Stores a complete node under its anchor (NULL: it has none), for aliases that follow. */
static bool keep_anchor(struct yaml_builder *b, const char *anchor, const struct value *value)
{
    if (!anchor)
        return true;
    struct value *node = SL_ARENA_NEW(b->arena, struct value);
    if (!node || !sl_map_put(&b->anchors, sl_str(anchor), node))
        return out_of_memory(b);
    *node = *value;
    return true;
}

/* Builds a node from an alias: copies the anchor's node. The copy has the position of the alias; nodes below it keep the positions that
 * they have at the anchor. */
static bool build_alias(struct yaml_builder *b, struct value *out, unsigned depth)
{
    yaml_mark_t mark = b->event.start_mark;
    const struct value *node = sl_map_get(&b->anchors, sl_str((const char *)b->event.data.alias.anchor));
    if (!node)
        return fail_at(b, mark, "the alias refers to an anchor that is not complete before it");
    if (!copy_tree(b, node, out, depth))
        return false;
    set_position(out, mark);
    return true;
}

/* Builds a scalar. Without quotes, or with a tag such as !!int, a text that is a number, boolean or null becomes that. In quotes, or with
 * the tag !!str or !, it stays a string. */
static bool build_scalar(struct yaml_builder *b, struct value *out)
{
    const char *tag = (const char *)b->event.data.scalar.tag;
    const char *text = (const char *)b->event.data.scalar.value;
    size_t size = b->event.data.scalar.length;
    if (memchr(text, '\0', size))
        return fail_at(b, b->event.start_mark, "the text contains a NUL character");
    char *copy = sl_arena_strndup(b->arena, text, size);
    if (!copy)
        return out_of_memory(b);
    out->type = VALUE_STRING;
    out->string = (struct sl_str){copy, size};
    if (tag ? strcmp(tag, "!") != 0 && strcmp(tag, YAML_STR_TAG) != 0
            : b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        scalar_resolve(out);
    return true;
}

static bool yaml_build(struct yaml_builder *b, struct value *out, unsigned depth);

/* Builds a list from the events up to its end. False after a report. */
static bool build_list(struct yaml_builder *b, struct value *out, unsigned depth)
{
    struct items items = {0};
    while (yaml_next(b) && b->event.type != YAML_SEQUENCE_END_EVENT) {
        if (!yaml_grow(b, &items))
            return false;
        struct path_mark up = path_index(&b->path, items.count);
        if (!yaml_build(b, &items.values[items.count], depth + 1))
            return false;
        path_up(&b->path, up);
        items.count++;
    }
    if (!b->have_event) /* yaml_next() has failed */
        return false;
    out->type = VALUE_LIST;
    out->items = items.values;
    out->count = items.count;
    return true;
}

/* ---- maps ---- */
struct map_builder {
    struct items items;
    struct sl_map seen; /* set of keys */
    struct value merge; /* value of `<<` */
    bool has_merge;
};

/* Copies a key to the arena, with its position before the text (yaml_key_position). `*merge`: it is the merge key `<<`, which has no
 * quotes. False after a report. */
static bool take_key(struct yaml_builder *b, struct sl_str *key, bool *merge)
{
    if (b->event.type != YAML_SCALAR_EVENT)
        return fail_at(b, b->event.start_mark, "a key must be plain text");
    const char *text = (const char *)b->event.data.scalar.value;
    size_t size = b->event.data.scalar.length;
    if (size > CONFIG_MAX_KEY)
        return fail_at(b, b->event.start_mark, "the key is too long");
    if (memchr(text, '\0', size))
        return fail_at(b, b->event.start_mark, "the text contains a NUL character");
    struct key_position position = {(uint32_t)b->event.start_mark.line + 1, (uint32_t)b->event.start_mark.column + 1};
    char *memory = sl_arena_alloc(b->arena, sizeof position + size + 1, _Alignof(struct key_position));
    if (!memory)
        return out_of_memory(b);
    memcpy(memory, &position, sizeof position);
    memcpy(memory + sizeof position, text, size + 1);
    *key = (struct sl_str){memory + sizeof position, size};
    *merge = b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && sl_str_equal(*key, SL_STR("<<"));
    return true;
}

/* Adds a key and its value to the map. A duplicate key is reported and dropped with its value. False after a report if reading cannot
 * continue. */
static bool build_member(struct yaml_builder *b, struct map_builder *map, unsigned depth)
{
    struct sl_str key;
    bool merge, fresh;
    if (!take_key(b, &key, &merge) || !yaml_grow(b, &map->items))
        return false;
    struct path_mark up = path_key(&b->path, key);
    void **slot = sl_map_find_or_add(&map->seen, key, &fresh);
    if (!slot)
        return out_of_memory(b);
    *slot = map; /* any value but NULL: `seen` is a set */
    if (!fresh) {
        struct value at = yaml_key_position(key);
        value_problem(b->problems, &at, false, path_shown(&b->path), "the key occurs twice");
        if (config_has_enough_problems(b->problems))
            return false;
    }
    struct value value = {0};
    if (!yaml_next(b) || !yaml_build(b, &value, depth + 1))
        return false;
    path_up(&b->path, up);
    if (merge) {
        map->merge = value;
        map->has_merge = true;
    } else if (fresh) {
        map->items.values[map->items.count] = value;
        map->items.keys[map->items.count++] = key;
    }
    return true;
}

/* Adds those keys of `from`, a value of `<<`, that the map does not have yet. Of several merged maps, the first one that has a key wins. A
 * value that is no map is reported. */
static bool merge_one(struct yaml_builder *b, struct map_builder *map, const struct value *from)
{
    if (from->type != VALUE_MAP) {
        value_problem(b->problems, from, false, path_shown(&b->path), "only maps can be merged with <<");
        return true;
    }
    for (size_t i = 0; i < from->count; i++) {
        bool fresh;
        void **slot = sl_map_find_or_add(&map->seen, from->keys[i], &fresh);
        if (!slot)
            return out_of_memory(b);
        *slot = map;
        if (!fresh)
            continue;
        if (!yaml_grow(b, &map->items))
            return false;
        map->items.values[map->items.count] = from->items[i];
        map->items.keys[map->items.count++] = from->keys[i];
    }
    return true;
}

/* Adds the keys of the merge key `<<`, whose value is a map or a list of maps, if the map has it. */
static bool merge(struct yaml_builder *b, struct map_builder *map)
{
    if (!map->has_merge)
        return true;
    if (map->merge.type != VALUE_LIST)
        return merge_one(b, map, &map->merge);
    for (size_t i = 0; i < map->merge.count; i++)
        if (!merge_one(b, map, &map->merge.items[i]))
            return false;
    return true;
}

/* Builds a map from the events up to its end. Merges after reading all its members, as these take precedence over merged ones. */
static bool build_map(struct yaml_builder *b, struct value *out, unsigned depth)
{
    struct map_builder map = {0};
    bool ok = true;
    while (ok && (ok = yaml_next(b)) && b->event.type != YAML_MAPPING_END_EVENT)
        ok = build_member(b, &map, depth);
    ok = ok && merge(b, &map);
    sl_map_free(&map.seen);
    out->type = VALUE_MAP;
    out->items = map.items.values;
    out->keys = map.items.keys;
    out->count = map.items.count;
    return ok;
}

/* True if the current event has no tag, or one that YAML itself defines, such as !!str. Others would need types that symloom does not
 * have. */
static bool known_tag(const struct yaml_builder *b)
{
    const char *tag = b->event.type == YAML_SCALAR_EVENT           ? (char *)b->event.data.scalar.tag
                      : b->event.type == YAML_SEQUENCE_START_EVENT ? (char *)b->event.data.sequence_start.tag
                                                                   : (char *)b->event.data.mapping_start.tag;
    return !tag || strcmp(tag, "!") == 0 || strncmp(tag, "tag:yaml.org,2002:", 18) == 0;
}

/* Builds the node that the current event begins, with all nodes below it. False after a report. */
static bool yaml_build(struct yaml_builder *b, struct value *out, unsigned depth)
{
    if (b->event.type == YAML_ALIAS_EVENT)
        return build_alias(b, out, depth);
    if (!count_node(b, depth))
        return false;
    set_position(out, b->event.start_mark);
    const char *name = b->event.type == YAML_SCALAR_EVENT           ? (char *)b->event.data.scalar.anchor
                       : b->event.type == YAML_SEQUENCE_START_EVENT ? (char *)b->event.data.sequence_start.anchor
                                                                    : (char *)b->event.data.mapping_start.anchor;
    char *anchor = name ? sl_arena_strndup(b->arena, name, strlen(name)) : NULL;
    if (name && !anchor)
        return out_of_memory(b);
    if (!known_tag(b))
        return fail_at(b, b->event.start_mark, "YAML tags are not supported");
    bool ok = b->event.type == YAML_SCALAR_EVENT           ? build_scalar(b, out)
              : b->event.type == YAML_SEQUENCE_START_EVENT ? build_list(b, out, depth)
                                                           : build_map(b, out, depth);
    return ok && keep_anchor(b, anchor, out);
}

/* Builds the only document of the file. `*empty`: the file has no document, or one whose value is null. False after a report. */
static bool build_document(struct yaml_builder *b, struct value *root, bool *empty)
{
    if (!yaml_next(b) || !yaml_next(b)) /* start of the stream, and of the document */
        return false;
    *empty = b->event.type == YAML_STREAM_END_EVENT;
    if (*empty)
        return true;
    if (!yaml_next(b) || !yaml_build(b, root, 0) || !yaml_next(b) ||
        !yaml_next(b)) /* end of the document, and the event after it */
        return false;
    if (b->event.type != YAML_STREAM_END_EVENT)
        return fail_at(b, b->event.start_mark, "the file has a second YAML document; only one is allowed");
    *empty = root->type == VALUE_NULL;
    if (!*empty && root->type != VALUE_MAP) {
        value_problem(b->problems, root, false, "", "the file must contain `key: value` lines");
        return false;
    }
    return true;
}

/* Removes a UTF-8 byte order mark, which libyaml would count as a column, so that the first key would seem indented. False after a report
 * if the text is UTF-16. */
static bool check_encoding(struct sl_str *text, struct value_problems *problems)
{
    static const struct value start = {.line = 1, .column = 1};
    if (sl_str_starts(*text, SL_STR("\xFF\xFE")) || sl_str_starts(*text, SL_STR("\xFE\xFF"))) {
        value_problem(problems, &start, false, "", "the file is UTF-16; convert it to UTF-8");
        return false;
    }
    if (sl_str_starts(*text, SL_STR("\xEF\xBB\xBF")))
        *text = (struct sl_str){text->data + 3, text->size - 3};
    return true;
}

bool yaml_read(struct sl_arena *arena, struct sl_str text, struct value *root, bool *empty,
               struct value_problems *problems)
{
    *root = (struct value){0};
    *empty = false;
    if (!text.data) /* libyaml asserts that it is not NULL */
        text = SL_STR("");
    if (!check_encoding(&text, problems))
        return false;
    struct yaml_builder b = {.text = text, .arena = arena, .problems = problems};
    if (!yaml_parser_initialize(&b.parser))
        return out_of_memory(&b);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.data, text.size);
    bool ok = build_document(&b, root, empty);
    if (b.have_event)
        yaml_event_delete(&b.event);
    yaml_parser_delete(&b.parser);
    sl_map_free(&b.anchors);
    path_free(&b.path);
    return ok;
}
