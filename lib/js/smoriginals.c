/* Reads the scopes that a map has of its sources and of the generated script (ECMA-426, proposal "Scopes", stage 3), and writes
 * their sections.
 *
 *     "scopes": "BCAAA,BHCKAC,CGB,CIA,A,ECAA,EGBC,ICCA,FK,FK"
 *
 * Items are separated by commas and begin with a tag; numbers are base64 VLQ, most of them relative to the item before:
 *
 *     (empty), A    a source without scopes
 *     B             begin of an original scope: flags, line, column [, name] [, kind]
 *     C             its end: line, column
 *     E             begin of a generated range: flags [, line], column [, definition: the number of a B]
 *     I             the range is an inlined call: source, line and column of the call
 *     F             its end: [line,] column
 *     others        variables, their bindings, and additions of later versions; not used
 *
 * Trees of B and C come first, one for each source, then those of E and F. An error discards the scopes of its part of the map,
 * and nothing else. */
#include <stdlib.h>

#include "js/read.h"
#include "js/smwrite.h"
#include "js/vlq.h"

enum item_tag {
    TAG_EMPTY = 0,
    TAG_SCOPE_START = 1,
    TAG_SCOPE_END = 2,
    TAG_RANGE_START = 4,
    TAG_RANGE_END = 5,
    TAG_CALL_SITE = 8,
};
enum { MAX_CALLS = 256 }; /* of inlined calls nested deeper, those in the middle are left out */
enum { SCOPE_HAS_NAME = 1, SCOPE_IS_STACK_FRAME = 4 };
enum { RANGE_HAS_LINE = 1, RANGE_HAS_DEFINITION = 2, RANGE_IS_STACK_FRAME = 4, RANGE_IS_HIDDEN = 8 };

struct js_position {
    uint32_t line, column;
};

struct smoriginals_reader {
    struct smcache_writer *w;
    struct original_scopes *out;
    const struct sl_sourcemap_part *part; /* the map, or one of those in an index map */
    uint32_t first_source, first_name;    /* numbers of the part's first source and name among those of all parts */
    uint64_t end_key;                     /* where the next part begins in the script: line << 32 | column */
    const uint8_t *at, *end;
    uint32_t item;            /* number of the current item, from 1 */
    uint32_t source;          /* number of the current source in the part */
    struct js_position scope; /* position in the source of the last scope item */
    struct js_position range; /* position in the script of the last range item */
    int64_t name, definition; /* numbers of the last name and definition, to which the next are relative */
    uint32_t *definitions;    /* function of each original scope of the part, in order of their begins */
    size_t definition_count, definition_capacity;
    uint32_t *open_scopes, *open_ranges; /* stacks: the function of each open scope; 1 + the node of each open range */
    size_t scope_depth, scope_capacity, range_depth, range_capacity;
    bool no_memory;
};

static bool fail_memory(struct smoriginals_reader *r)
{
    r->no_memory = true;
    return false;
}

/* Appends an item to an array; false, with r->no_memory set, when out of memory. */
#define PUSH(r, array, count, capacity, ...)                                                                           \
    (sl_account_grow(&(r)->w->account, &(array), &(capacity), (count) + 1, sizeof *(array))                            \
         ? ((array)[(count)++] = __VA_ARGS__, true)                                                                    \
         : fail_memory(r))

/* ---- numbers ---- */

static bool has_number(const struct smoriginals_reader *r)
{
    return r->at < r->end && vlq_is_digit(js_vlq_kinds[*r->at]);
}

static bool read_unsigned(struct smoriginals_reader *r, uint32_t *number)
{
    *number = 0;
    return has_number(r) && vlq_add_unsigned(&r->at, number);
}

/* Adds a signed number to `*sum`. False if there is none or it is malformed. */
static bool read_signed(struct smoriginals_reader *r, int64_t *sum)
{
    return has_number(r) && vlq_add(&r->at, sum);
}

/* Moves the position by so many lines; on the same line the column is relative, on another one absolute. False if line or column then need
 * more than 31 bits. */
static bool move_position(struct js_position *position, uint32_t lines, uint32_t columns)
{
    position->line += lines;
    position->column = lines ? columns : position->column + columns;
    return !((position->line | position->column) >> 31);
}

static bool read_position(struct smoriginals_reader *r, struct js_position *position)
{
    uint32_t lines, columns;
    return read_unsigned(r, &lines) && read_unsigned(r, &columns) && move_position(position, lines, columns);
}

/* ---- original scopes ---- */

/* Records that `function` is the innermost one from the current position of the source on. Sources beyond the map's list are not recorded.
 * False when out of memory. */
static bool add_start(struct smoriginals_reader *r, uint32_t function)
{
    struct original_scopes *o = r->out;
    if (r->source >= r->part->counts[SL_SOURCEMAP_SOURCES])
        return true;
    return PUSH(r, o->starts, o->start_count, o->start_capacity,
                (struct original_start){(uint64_t)r->scope.line << 32 | r->scope.column, function});
}

/* Ends the scopes of a source; positions of the next one count from line 0 again. Nothing is recorded for sources beyond the map's list. */
static void end_source(struct smoriginals_reader *r)
{
    if (r->source >= r->part->counts[SL_SOURCEMAP_SOURCES])
        return;
    r->out->firsts[r->first_source + ++r->source] = (uint32_t)r->out->start_count;
    r->scope = (struct js_position){0, 0};
}

/* Reads the begin of an original scope. Only scopes that are stack frames are functions; others belong to the function around them. The
 * function, the index of its name plus 1 or an ORIGINAL_* constant, is also kept in r->definitions, for the generated ranges that were made
 * from this scope. False if the scope is invalid, or when
 * out of memory, with r->no_memory set. */
static bool start_scope(struct smoriginals_reader *r)
{
    uint32_t flags, function = r->scope_depth ? r->open_scopes[r->scope_depth - 1] : ORIGINAL_TOP_LEVEL;
    bool good = read_unsigned(r, &flags) && read_position(r, &r->scope);
    if (good && flags & SCOPE_HAS_NAME)
        good = read_signed(r, &r->name) && (uint64_t)r->name < r->part->counts[SL_SOURCEMAP_NAMES];
    if (!good)
        return false;
    if (flags & SCOPE_IS_STACK_FRAME)
        function = flags & SCOPE_HAS_NAME ? r->first_name + (uint32_t)r->name + 1 : ORIGINAL_ANONYMOUS;
    return PUSH(r, r->definitions, r->definition_count, r->definition_capacity, function) &&
           PUSH(r, r->open_scopes, r->scope_depth, r->scope_capacity, function) && add_start(r, function);
}

/* Reads the end of an original scope: the function around it continues. The end of the outermost scope ends the source. False if no scope
 * is open or the position is invalid, or when out of memory, with r->no_memory set. */
static bool end_scope(struct smoriginals_reader *r)
{
    if (!r->scope_depth || !read_position(r, &r->scope))
        return false;
    r->scope_depth--;
    if (!add_start(r, r->scope_depth ? r->open_scopes[r->scope_depth - 1] : ORIGINAL_UNKNOWN))
        return false;
    if (!r->scope_depth)
        end_source(r);
    return true;
}

/* ---- generated ranges ---- */

/* Records that the generated range `node` (1 + its number, 0 = none) is the innermost one from the position `key` of the script on. Of
 * several with the same position the last one counts. False when out of memory. */
static bool add_boundary_at(struct smoriginals_reader *r, uint64_t key, uint32_t node)
{
    struct original_scopes *o = r->out;
    if (key >= r->end_key) /* the next part of an index map describes the script from there on */
        return true;
    if (o->boundary_count && o->boundaries[o->boundary_count - 1].key == key) {
        o->boundaries[o->boundary_count - 1].node = node;
        return true;
    }
    return PUSH(r, o->boundaries, o->boundary_count, o->boundary_capacity, (struct range_boundary){key, node});
}

/* Records that the last range on r->open_ranges is the innermost one from the current position on. False when out of memory. */
static bool add_boundary(struct smoriginals_reader *r)
{
    uint32_t node = r->range_depth ? r->open_ranges[r->range_depth - 1] : 0;
    return add_boundary_at(r, (uint64_t)r->range.line << 32 | r->range.column, node);
}

/* Reads the begin of a generated range, and adds a node for it. The number of its definition (the original scope it was made from) is
 * relative to that of the range before. False if it is invalid, or when out of memory, with r->no_memory set. */
static bool start_range(struct smoriginals_reader *r)
{
    struct original_scopes *o = r->out;
    uint32_t flags, lines = 0, columns;
    struct range_node node = {.outer = r->range_depth ? r->open_ranges[r->range_depth - 1] : 0};
    bool good = read_unsigned(r, &flags) && (!(flags & RANGE_HAS_LINE) || read_unsigned(r, &lines)) &&
                read_unsigned(r, &columns) && move_position(&r->range, lines, columns);
    if (good && flags & RANGE_HAS_DEFINITION) {
        good = read_signed(r, &r->definition) && (uint64_t)r->definition < r->definition_count;
        node.function = good ? r->definitions[r->definition] : 0;
    }
    if (!good)
        return false;
    node.is_stack_frame = flags & RANGE_IS_STACK_FRAME;
    node.is_hidden = flags & RANGE_IS_HIDDEN;
    return PUSH(r, o->nodes, o->node_count, o->node_capacity, node) &&
           PUSH(r, r->open_ranges, r->range_depth, r->range_capacity, (uint32_t)o->node_count) && add_boundary(r);
}

/* Reads the end of a generated range: a column, or line and column. False if no range is open or the position is invalid, or when out of
 * memory, with r->no_memory set. */
static bool end_range(struct smoriginals_reader *r)
{
    uint32_t lines = 0, columns;
    if (!r->range_depth || !read_unsigned(r, &columns))
        return false;
    if (has_number(r)) {
        lines = columns;
        if (!read_unsigned(r, &columns))
            return false;
    }
    r->range_depth--;
    return move_position(&r->range, lines, columns) && add_boundary(r);
}

/* Reads the position of the call whose inlined code is the innermost open range. False if it is invalid. */
static bool read_call_site(struct smoriginals_reader *r)
{
    uint32_t source, line, column;
    if (!r->range_depth || !read_unsigned(r, &source) || !read_unsigned(r, &line) || !read_unsigned(r, &column) ||
        source >= r->part->counts[SL_SOURCEMAP_SOURCES])
        return false;
    struct range_node *node = &r->out->nodes[r->open_ranges[r->range_depth - 1] - 1];
    source += r->first_source;
    /* in index maps equal sources share a number */
    node->call_source = (r->w->numbers ? r->w->numbers[source] : source) + 1;
    node->call_line = line;
    node->call_column = column;
    return true;
}

/* ---- items ---- */

/* Reads the numbers of an item with this tag; false if they are invalid, or when out of memory. Items with other tags are ignored. */
static bool read_tagged(struct smoriginals_reader *r, uint32_t tag)
{
    switch (tag) {
    case TAG_EMPTY: /* a source without scopes; invalid inside a scope */
        if (!r->scope_depth)
            end_source(r);
        return !r->scope_depth;
    case TAG_SCOPE_START: return start_scope(r);
    case TAG_SCOPE_END: return end_scope(r);
    case TAG_RANGE_START: return start_range(r);
    case TAG_RANGE_END: return end_range(r);
    case TAG_CALL_SITE: return read_call_site(r);
    default: return true;
    }
}

/* Reads an item up to the comma after it. Extra numbers belong to later versions of the proposal and are skipped. False if the item is
 * invalid, or when out of memory. */
static bool read_item(struct smoriginals_reader *r)
{
    uint32_t tag = TAG_EMPTY;
    if (has_number(r) && !read_unsigned(r, &tag))
        return false;
    if (!read_tagged(r, tag))
        return false;
    while (has_number(r))
        r->at++;
    return r->at == r->end || *r->at == ',';
}

/* Reads all items of `scopes`. False if one is invalid or a scope or range has no end; or, with r->no_memory set, when out of memory or
 * budget. */
static bool read_items(struct smoriginals_reader *r, struct sl_str text)
{
    r->at = (const uint8_t *)text.data;
    r->end = r->at + text.size;
    for (r->item = 1; r->at < r->end; r->item++, r->at++) {
        if (!sl_account_spend(&r->w->account, 1))
            return fail_memory(r);
        if (!read_item(r))
            return false;
        if (r->at == r->end) /* behind the last item there is no comma to skip */
            break;
    }
    return !r->scope_depth && !r->range_depth;
}

/* ---- parts ---- */

/* Reads the `scopes` of one part: the map, or one of those in an index map. If an item is invalid all scopes of the part are dropped, and
 * out->bad_item, if still 0, becomes the number of the item. False only when out of memory. */
static bool read_part(struct smoriginals_reader *r)
{
    struct original_scopes *o = r->out;
    const struct sl_sourcemap_part *part = r->part;
    size_t starts = o->start_count, nodes = o->node_count, boundaries;
    struct sl_str text;
    uint64_t begin = (uint64_t)part->line << 32 | part->column;
    /* a range that is still open at the end of the part before ends where this part begins */
    if (o->boundary_count && o->boundaries[o->boundary_count - 1].node && !add_boundary_at(r, begin, 0))
        return false;
    boundaries = o->boundary_count;
    r->scope = (struct js_position){0, 0};
    r->range = (struct js_position){part->line, part->column};
    r->name = r->definition = 0;
    r->source = 0;
    r->definition_count = r->scope_depth = r->range_depth = 0;
    o->firsts[r->first_source] = (uint32_t)starts;
    if (!js_read_text(r->w->map, part->scopes, &text))
        return false;
    bool good = !part->has_bad_scopes && (!part->scopes || read_items(r, text));
    if (r->no_memory)
        return false;
    if (!good) {
        if (!o->bad_item)
            o->bad_item = r->item ? r->item : 1; /* no item was read if `scopes` is not a string */
        o->start_count = starts;
        o->node_count = nodes;
        o->boundary_count = boundaries;
        r->source = 0;
    }
    /* sources without scopes have no rows */
    while (r->source < part->counts[SL_SOURCEMAP_SOURCES])
        o->firsts[r->first_source + ++r->source] = (uint32_t)o->start_count;
    return true;
}

/* Reads the `scopes` of all parts: one for a plain map, else one for each map in the index map, in order of position; each ends where the
 * next begins. False when out of memory, or if there are more generated ranges than 31 bits can number. */
static bool read_scopes_of_parts(struct smoriginals_reader *r)
{
    const struct sl_sourcemap *map = r->w->map;
    for (size_t i = 0; i < map->part_count; i++) {
        const struct sl_sourcemap_part *next = i + 1 < map->part_count ? &map->parts[i + 1] : NULL;
        r->part = &map->parts[i];
        r->end_key = next ? (uint64_t)next->line << 32 | next->column : UINT64_MAX;
        r->item = 0;
        if (!read_part(r))
            return false;
        r->first_source += r->part->counts[SL_SOURCEMAP_SOURCES];
        r->first_name += r->part->counts[SL_SOURCEMAP_NAMES];
    }
    return r->out->node_count < INT32_MAX;
}

/* Makes the nodes (generated ranges) self-contained, so that look-ups only follow links from an inlined call to the one around it. A range
 * that is neither a stack frame nor an inlined call, such as a block, becomes a copy of the range around it, which was resolved before it,
 * but keeps its own function if it has one. Of calls nested deeper than MAX_CALLS those in the middle are left out: the innermost ones link
 * to an outer one directly. */
static void resolve_nodes(struct original_scopes *o)
{
    for (size_t i = 0; i < o->node_count; i++) {
        struct range_node *node = &o->nodes[i];
        const struct range_node *outer = node->outer ? &o->nodes[node->outer - 1] : NULL;
        if (node->call_source) {
            bool too_deep = outer && outer->calls == MAX_CALLS;
            node->calls = outer ? outer->calls + !too_deep : 1;
            node->outer = too_deep ? outer->outer : node->outer;
            continue;
        }
        if (node->is_stack_frame || !outer) { /* a function of the script: no call around it */
            node->outer = 0;
            continue;
        }
        struct range_node own = *node;
        *node = *outer;
        node->function = own.function ? own.function : outer->function;
    }
}

enum sl_code smcache_read_originals(struct smcache_writer *w, struct sl_error *error)
{
    struct smoriginals_reader r = {.w = w, .out = &w->originals};
    size_t sources = 0;
    for (size_t i = 0; i < w->map->part_count; i++) {
        sources += w->map->parts[i].counts[SL_SOURCEMAP_SOURCES];
        r.out->there |= w->map->parts[i].scopes || w->map->parts[i].has_bad_scopes;
    }
    if (!r.out->there)
        return SL_OK;
    r.out->firsts = sl_account_alloc(&w->account, sources + 1, sizeof *r.out->firsts);
    r.out->source_count = sources;
    bool good = r.out->firsts && read_scopes_of_parts(&r);
    if (good)
        resolve_nodes(r.out);
    sl_account_free(&w->account, r.definitions, r.definition_capacity, sizeof *r.definitions);
    sl_account_free(&w->account, r.open_scopes, r.scope_capacity, sizeof *r.open_scopes);
    sl_account_free(&w->account, r.open_ranges, r.range_capacity, sizeof *r.open_ranges);
    return good ? SL_OK : smcache_writer_fail(w, error);
}

void smcache_free_originals(struct smcache_writer *w)
{
    free(w->originals.firsts);
    free(w->originals.starts);
    free(w->originals.boundaries);
    free(w->originals.nodes);
}

/* ---- the sections ---- */

/* Writes for each source which rows of STARTS are its own: the first and the end. Of equal sources in an index map, which share a number,
 * the first one with scopes is used. False when out of memory. */
static bool put_source_starts(struct smcache_writer *w)
{
    const struct original_scopes *o = &w->originals;
    /* + 1, so that the size is not 0 if there are no sources */
    uint32_t *rows = sl_account_alloc(&w->account, w->source_count * 2 + 1, sizeof *rows);
    if (!rows)
        return false;
    memset(rows, 0, w->source_count * 2 * sizeof *rows);
    for (size_t i = 0; i < o->source_count; i++) {
        uint32_t *row = &rows[2 * (w->numbers ? w->numbers[i] : i)];
        if (row[0] == row[1]) { /* still empty */
            row[0] = o->firsts[i];
            row[1] = o->firsts[i + 1];
        }
    }
    for (size_t i = 0; i < w->source_count * 2; i++)
        sl_buf_u32(&w->table.file, rows[i]);
    sl_account_free(&w->account, rows, w->source_count * 2 + 1, sizeof *rows);
    return true;
}

bool smcache_put_originals(struct smcache_writer *w)
{
    const struct original_scopes *o = &w->originals;
    struct sl_buf *file = &w->table.file;
    w->table.too_large |= o->start_count > UINT32_MAX || o->boundary_count > UINT32_MAX;
    sl_table_section(&w->table, SECTION_SOURCE_STARTS);
    if (o->start_count && !put_source_starts(w))
        return false;
    sl_table_section(&w->table, SECTION_STARTS);
    for (size_t i = 0; i < o->start_count; i++)
        sl_buf_u64(file, o->starts[i].key);
    for (size_t i = 0; i < o->start_count; i++)
        sl_buf_u32(file, o->starts[i].function);
    sl_table_section(&w->table, SECTION_BOUNDARIES);
    for (size_t i = 0; i < o->boundary_count; i++)
        sl_buf_u64(file, o->boundaries[i].key);
    for (size_t i = 0; i < o->boundary_count; i++)
        sl_buf_u32(file, o->boundaries[i].node);
    sl_table_section(&w->table, SECTION_NODES);
    for (size_t i = 0; i < o->node_count; i++) {
        const struct range_node *n = &o->nodes[i];
        const uint32_t words[] = {n->function, n->call_source, n->call_line, n->call_column, n->outer, n->is_hidden};
        for (size_t k = 0; k < NODE_SIZE / 4; k++)
            sl_buf_u32(file, words[k]);
    }
    return sl_account_spend(&w->account, (uint32_t)(o->start_count + o->boundary_count));
}
