/* Reads the look-up table of a source map in place. Every offset is checked when it is used. */
#include "js/smcache.h"

#include "js/smformat.h"
#include "base/search.h"

/* ---- opening ---- */

/* Opens a list of texts of different sizes, which are in the section `bytes`. The section `offsets` has one u32 more than there are texts:
 * the last one is where the last text ends. Sets `*count`; false if the sections do not fit together. */
static bool open_units(const struct sl_table *t, unsigned bytes, unsigned offsets, struct sl_table_units *units,
                       uint32_t *count)
{
    uint64_t there = t->sections[offsets].size / 4;
    *count = there ? (uint32_t)(there - 1) : 0;
    return there && there <= UINT32_MAX && sl_table_units(t->sections[offsets], t->sections[bytes], *count, units);
}

enum sl_code sl_smcache_open(struct sl_bytes bytes, struct sl_smcache *c, struct sl_error *error)
{
    const uint8_t *h = bytes.data;
    *c = (struct sl_smcache){.token_count = 0};
    enum sl_code code = sl_table_open(bytes, &smcache_format, &c->table, error);
    if (code != SL_OK)
        return code;
    const struct sl_bytes *s = c->table.sections;
    c->ranges = sl_table_u32(h + AT_FLAGS) & FLAG_RANGES; /* the map has tokens that are ranges (`rangeMappings`) */
    c->source_count = sl_table_u32(h + AT_SOURCES);
    c->block_count = sl_table_u32(h + AT_BLOCKS);
    c->token_count = sl_table_u64(h + AT_TOKENS);
    c->bad_scopes = sl_table_u32(h + AT_BAD_SCOPES);
    c->start_count = (uint32_t)(s[SECTION_STARTS].size / STARTS_ROW);
    c->boundary_count = (uint32_t)(s[SECTION_BOUNDARIES].size / STARTS_ROW);
    c->node_count = (uint32_t)(s[SECTION_NODES].size / NODE_SIZE);
    /* a row of eight bytes for each source; without them the map has no scopes of sources */
    c->has_source_starts = c->start_count && s[SECTION_SOURCE_STARTS].size == (uint64_t)c->source_count * 8;
    bool good = open_units(&c->table, SECTION_NAMES, SECTION_NAME_OFFSETS, &c->names, &c->name_count) &&
                open_units(&c->table, SECTION_FUNCTIONS, SECTION_FUNCTION_OFFSETS, &c->functions, &c->function_count) &&
                s[SECTION_SOURCES].size == (uint64_t)c->source_count * SOURCE_SIZE &&
                s[SECTION_KEYS].size == (uint64_t)c->block_count * 8 &&
                /* eight zero bytes end BLOCKS */
                s[SECTION_PLACES].size == (uint64_t)c->block_count * 4 && s[SECTION_BLOCKS].size >= 8 &&
                /* the numbers of rows fit 32 bits */
                (s[SECTION_STARTS].size | s[SECTION_BOUNDARIES].size) <= UINT32_MAX * (uint64_t)STARTS_ROW &&
                s[SECTION_NODES].size <= UINT32_MAX * (uint64_t)NODE_SIZE;
    return good ? SL_OK
                : sl_fail(error, SL_MALFORMED, "%s: the sections have other sizes than its header says",
                          smcache_format.name);
}

/* ---- sources ---- */

/* Returns a part of the section TEXT; data NULL if it is not inside. */
static struct sl_str text_at(const struct sl_smcache *c, uint32_t offset, uint32_t size)
{
    bool inside;
    struct sl_bytes text = sl_bytes_slice(c->table.sections[SECTION_TEXT], offset, size, &inside);
    return inside ? (struct sl_str){text.data ? (const char *)text.data : "", size} : (struct sl_str){NULL, 0};
}

/* Returns a word of a source's row: 0 offset and 1 size of its name, 2 offset and 3 size of its text, 4 its first row in LINES. */
static uint32_t source_word(const struct sl_smcache *c, uint32_t source, unsigned word)
{
    return sl_table_u32(c->table.sections[SECTION_SOURCES].data + (size_t)source * SOURCE_SIZE + word * 4);
}

struct sl_str sl_smcache_source(const struct sl_smcache *c, uint32_t source)
{
    if (source >= c->source_count)
        return (struct sl_str){NULL, 0};
    return text_at(c, source_word(c, source, 0), source_word(c, source, 1));
}

struct sl_str sl_smcache_text(const struct sl_smcache *c, uint32_t source)
{
    if (source >= c->source_count || source_word(c, source, 3) == NO_CONTENT)
        return (struct sl_str){NULL, 0};
    return text_at(c, source_word(c, source, 2), source_word(c, source, 3));
}

/* Sets `*lines` to the number of line feeds in the first `step` * LINES_STEP bytes of a source's text; false when the table, damaged, has
 * no such number. */
static bool lines_before(const struct sl_smcache *c, uint32_t source, uint32_t step, uint32_t *lines)
{
    struct sl_bytes rows = c->table.sections[SECTION_LINES];
    uint64_t row = (uint64_t)source_word(c, source, 4) + step - 1; /* word 4: the source's first row */
    *lines = 0;
    if (step == 0) /* no bytes, so no lines, and no row in the table */
        return true;
    if (row >= rows.size / 4)
        return false;
    *lines = sl_table_u32(rows.data + row * 4);
    return true;
}

struct sl_context_cursor sl_smcache_cursor(const struct sl_smcache *c, uint32_t source, uint32_t line)
{
    struct sl_str text = sl_smcache_text(c, source);
    struct sl_context_cursor cursor = {.text = text, .line = 1, .newline = '\n'}; /* lines end with LF, as in LINES */
    uint32_t first = line > SL_CONTEXT_LINES ? line - SL_CONTEXT_LINES : 1, before;
    uint32_t low = 0, high = text.size ? (uint32_t)((text.size - 1) / LINES_STEP) : 0;
    /* Finds the last multiple of LINES_STEP bytes after which the first complete line is at or before the first wanted line. That complete
     * line has the number `before` + 2, as it follows the line in which the multiple is. */
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (lines_before(c, source, middle, &before) && (uint64_t)before + 2 <= first)
            low = middle;
        else
            high = middle - 1;
    }
    if (!low || !lines_before(c, source, low, &before))
        return cursor;
    size_t begin = (size_t)low * LINES_STEP;
    const char *newline = memchr(text.data + begin, '\n', text.size - begin);
    if (newline) {
        cursor.at = (size_t)(newline + 1 - text.data);
        cursor.line = (uint64_t)before + 2;
    }
    return cursor;
}

/* ---- tokens ---- */

/* A block of tokens of the table, opened for reading. Keys are positions in the script: line << 32 | column. */
struct smcache_block {
    uint64_t first; /* key of the first token */
    struct sl_column columns[BLOCK_COLUMNS];
    uint32_t least[BLOCK_COLUMNS]; /* least value of each column, to which the packed ones are relative */
    uint8_t count;                 /* tokens */
    uint8_t column_width;          /* bits of the script's column in a packed key; the bits above are the line */
};

static uint64_t block_key(const struct sl_smcache *c, uint32_t block)
{
    return sl_table_u64(c->table.sections[SECTION_KEYS].data + (size_t)block * 8);
}

/* Opens a block of tokens; `index` is below the number of blocks. False if the block is damaged. Tokens are stored as columns: all keys
 * (line and column in the script), all sources, and so on. The block's head: the number of tokens, the bits that a value of each column
 * takes, the bits that the script's column takes within a key, then the minimum of each column. Eight bytes behind the columns must be
 * readable, since packed values are read in words of eight bytes. */
static bool open_block(const struct sl_smcache *c, uint32_t index, struct smcache_block *b)
{
    struct sl_bytes blocks = c->table.sections[SECTION_BLOCKS];
    uint64_t begin = (uint64_t)sl_table_u32(c->table.sections[SECTION_PLACES].data + (size_t)index * 4) * 8;
    if (begin > blocks.size || blocks.size - begin < BLOCK_HEAD + 8)
        return false;
    const uint8_t *head = blocks.data + begin, *at = head + BLOCK_HEAD;
    for (unsigned ahead = 64; ahead <= 320; ahead += 64) /* the search jumps about in these cache lines */
        __builtin_prefetch(head + ahead);
    size_t left = blocks.size - (size_t)begin - BLOCK_HEAD - 8;
    b->first = block_key(c, index);
    b->count = head[0];
    b->column_width = head[1 + BLOCK_COLUMNS];
    for (unsigned i = 0; i < BLOCK_COLUMNS; i++) {
        uint8_t width = head[1 + i];
        size_t size = ((size_t)b->count * width + 7) / 8;
        if (width > SL_TABLE_MAX_WIDTH || size > left)
            return false;
        b->columns[i] = (struct sl_column){at, width};
        b->least[i] = sl_table_u32(head + 2 + BLOCK_COLUMNS + i * 4);
        at += size;
        left -= size;
    }
    return b->count > 0 && b->column_width <= 32;
}

/* Returns a token's value in a column. The value of COLUMN_KEY stays packed; get_line() and get_column() take it apart. */
static inline uint64_t get_value(const struct smcache_block *b, enum block_column column, unsigned token)
{
    return sl_column_get(&b->columns[column], token) + (column == COLUMN_KEY ? 0 : b->least[column]);
}

static uint32_t get_line(const struct smcache_block *b, unsigned token)
{
    return (uint32_t)((b->first >> 32) + (get_value(b, COLUMN_KEY, token) >> b->column_width));
}

static uint32_t get_column(const struct smcache_block *b, unsigned token)
{
    uint64_t mask = (UINT64_C(1) << b->column_width) - 1;
    return b->least[COLUMN_KEY] + (uint32_t)(get_value(b, COLUMN_KEY, token) & mask);
}

static uint64_t token_key(const struct smcache_block *b, unsigned token)
{
    return (uint64_t)get_line(b, token) << 32 | get_column(b, token);
}

/* Returns how many blocks begin before the key (line << 32 | column). The binary search has no branches, because a processor could not
 * predict them: the result of each comparison becomes a mask, 0 or all ones, that is and-ed with the step. */
static uint32_t blocks_before(const struct sl_smcache *c, uint64_t key)
{
    const uint8_t *keys = c->table.sections[SECTION_KEYS].data;
    size_t begin = 0, count = c->block_count;
    if (!count)
        return 0;
    for (; count > 1; count -= count / 2)
        begin += -(size_t)(sl_table_u64(keys + (begin + count / 2 - 1) * 8) < key) & (count / 2);
    return (uint32_t)(begin + (sl_table_u64(keys + begin * 8) < key));
}

/* Packs the key (line << 32 | column) like the keys of the block, so that packed keys can be compared without unpacking. A key that does
 * not fit becomes one that compares alike with all keys of the block. `key` must not be below the block's first key. */
static uint64_t packed_key(const struct smcache_block *b, uint64_t key)
{
    uint64_t lines = (key >> 32) - (b->first >> 32);
    uint32_t column = (uint32_t)key, least = b->least[COLUMN_KEY];
    uint64_t behind = UINT64_C(1) << b->column_width; /* greater than all columns of a line */
    if (lines >> (SL_TABLE_MAX_WIDTH - b->column_width))
        return UINT64_MAX; /* after all tokens */
    if (column < least)
        return lines << b->column_width; /* not after any token of its line */
    return (lines << b->column_width) + (column - least < behind ? column - least : behind);
}

/* Returns how many tokens of the block are before the key. A binary search without branches: the result of each comparison becomes a mask,
 * 0 or all ones, that is and-ed with the step. */
static unsigned tokens_before(const struct smcache_block *b, uint64_t key)
{
    uint64_t packed = packed_key(b, key);
    const struct sl_column keys = b->columns[COLUMN_KEY];
    unsigned begin = 0;
    for (unsigned count = b->count; count > 1; count -= count / 2)
        begin += -(unsigned)(sl_column_get(&keys, begin + count / 2 - 1) < packed) & (count / 2);
    return begin + (sl_column_get(&keys, begin) < packed);
}

struct smcache_found {
    struct smcache_block block;
    unsigned index;
};

/* Finds the first token at the key (line << 32 | column), or else the last one before it; false if there is none or the block is damaged.
 * Tokens with the first key of a block may also end the block before, which is therefore searched first. Inlined into both callers, since
 * this is most of a look-up. */
static inline __attribute__((always_inline)) bool search_before(const struct sl_smcache *c, uint64_t key,
                                                                struct smcache_found *token)
{
    uint32_t blocks = blocks_before(c, key);
    struct smcache_block *b = &token->block;
    token->index = 0;
    if (blocks > 0) {
        if (!open_block(c, blocks - 1, b))
            return false;
        unsigned before = tokens_before(b, key);
        if (before < b->count && token_key(b, before) == key) {
            token->index = before;
            return true;
        }
        /* no token of this block is at the key: unless the next block begins with it, the last token before the key is the result */
        if (before < b->count || blocks == c->block_count || block_key(c, blocks) != key) {
            token->index = before ? before - 1 : 0;
            return before > 0;
        }
    }
    /* the result is the first token (index 0) of the next block, if that is at the key */
    return blocks < c->block_count && block_key(c, blocks) == key && open_block(c, blocks, b);
}

/* Finds the first token at the key (line << 32 | column), or else the last one before it on any line; false if there is none. For maps with
 * ranges, which may extend over lines. */
static bool find_before(const struct sl_smcache *c, uint64_t key, struct smcache_found *token)
{
    return search_before(c, key, token);
}

/* Finds the first token at the key (line << 32 | column), or else the last one before it on the same line; false if there is none. For maps
 * without ranges, where a token ends with its line. */
static bool find_token(const struct sl_smcache *c, uint64_t key, struct smcache_found *token)
{
    return search_before(c, key, token) && get_line(&token->block, token->index) == key >> 32;
}

/* Returns the text with this number, which counts from 1; data NULL for 0 or an invalid one. */
static struct sl_str name_at(const struct sl_table_units *units, uint32_t count, uint64_t number)
{
    if (number == 0 || number > count)
        return (struct sl_str){NULL, 0};
    struct sl_bytes name = sl_table_unit(units, number - 1);
    return (struct sl_str){(const char *)name.data, name.size};
}

/* Sets place->function and place->kind by the function of the script. `scope` is the token's value for it: 1 + its row in SCOPES, or 0 =
 * outside of all functions. */
static void set_function(const struct sl_smcache *c, uint64_t scope, struct sl_smcache_position *place)
{
    struct sl_bytes scopes = c->table.sections[SECTION_SCOPES];
    place->kind = SL_JS_FUNCTION_UNKNOWN;
    if (scope == 0 || scope > scopes.size / 4)
        return;
    uint32_t function = sl_table_u32(scopes.data + (scope - 1) * 4); /* 1 + the number of its name, 0 = anonymous */
    place->function = name_at(&c->functions, c->function_count, function);
    place->kind = place->function.size ? SL_JS_FUNCTION_NAMED : SL_JS_FUNCTION_ANONYMOUS;
}

/* ---- scopes of the map ---- */

/* Returns the value of the last key at or before this one, 0 if there is none. `rows` is the section STARTS or BOUNDARIES, with `count` u64
 * keys, then as many u32 values; those from `begin` to before `end` are searched. */
static uint32_t value_before(struct sl_bytes rows, uint32_t count, uint32_t begin, uint32_t end, uint64_t key)
{
    uint32_t low = SL_PARTITION_POINT(middle, begin, end, sl_table_u64(rows.data + (size_t)middle * 8) <= key);
    return low > begin ? sl_table_u32(rows.data + (size_t)count * 8 + (size_t)(low - 1) * 4) : 0;
}

/* Returns the innermost function at the source position, by the scopes of the source that the map lists; ORIGINAL_UNKNOWN if it lists
 * none. */
static uint32_t function_of_source(const struct sl_smcache *c, const struct sl_smcache_position *place)
{
    if (!c->has_source_starts || place->source >= c->source_count)
        return ORIGINAL_UNKNOWN;
    const uint8_t *row = c->table.sections[SECTION_SOURCE_STARTS].data + (size_t)place->source * 8;
    uint32_t begin = sl_table_u32(row), end = sl_table_u32(row + 4); /* the source's own rows of STARTS */
    if (begin > end || end > c->start_count)                         /* damaged */
        return ORIGINAL_UNKNOWN;
    return value_before(c->table.sections[SECTION_STARTS], c->start_count, begin, end,
                        (uint64_t)place->line << 32 | place->column);
}

/* Returns a word of the row of a node, a generated range of the map's `scopes`; `node` counts from 1. */
static uint32_t node_word(const struct sl_smcache *c, uint32_t node, unsigned word)
{
    return sl_table_u32(c->table.sections[SECTION_NODES].data + (size_t)(node - 1) * NODE_SIZE + word * 4);
}

/* Sets the function around the position, from the first of these that has one: the generated range `node` (1 + its number, 0 = none), the
 * innermost of the map's `scopes` there; the scopes of the source; the script as parsed, unless the call is inlined. Words of a node: 0
 * function, 1 source of an inlined call, 2 and 3 line and column of the call, 4 next outer call, 5 whether it is hidden. */
static void set_original_function(const struct sl_smcache *c, uint32_t node, struct sl_smcache_position *place)
{
    bool there = node > 0 && node <= c->node_count;
    uint32_t function = there ? node_word(c, node, 0) : ORIGINAL_UNKNOWN;
    place->inlined = there && node_word(c, node, 1) ? node : 0;
    place->is_hidden = there && node_word(c, node, 5);
    place->function = (struct sl_str){NULL, 0};
    if (function == ORIGINAL_UNKNOWN)
        function = function_of_source(c, place);
    if (function == ORIGINAL_UNKNOWN) {
        /* an inlined call is no function of the script of its own: its name is unknown */
        set_function(c, place->inlined ? 0 : place->script_scope, place);
        return;
    }
    place->kind = SL_JS_FUNCTION_UNKNOWN;
    if (function == ORIGINAL_TOP_LEVEL) /* outside of all functions, so there is no name */
        return;
    place->function = name_at(&c->names, c->name_count, function);
    place->kind = place->function.size ? SL_JS_FUNCTION_NAMED : SL_JS_FUNCTION_ANONYMOUS;
}

/* Returns 1 + the number of the innermost generated range at this position (line << 32 | column) of the script; 0 = none. */
static uint32_t node_at(const struct sl_smcache *c, uint64_t key)
{
    return value_before(c->table.sections[SECTION_BOUNDARIES], c->boundary_count, 0, c->boundary_count, key);
}

bool sl_smcache_caller(const struct sl_smcache *c, struct sl_smcache_position *place)
{
    uint32_t call = place->inlined, source = call ? node_word(c, call, 1) : 0, outer = call ? node_word(c, call, 4) : 0;
    /* words of a node: 1 is 1 + source of the call, 2 its line, 3 its column, 4 the node around the call. That node has a smaller number;
     * in a damaged table it may not, and following it could then loop forever. */
    if (!source || source > c->source_count || outer >= call)
        return false;
    place->source = source - 1;
    place->line = node_word(c, call, 2);
    place->column = node_word(c, call, 3);
    place->name = (struct sl_str){NULL, 0};
    set_original_function(c, outer, place);
    return true;
}

bool smcache_find(const struct sl_smcache *c, uint32_t line, uint32_t column, struct smcache_token *token)
{
    struct smcache_found t;
    if (!find_token(c, (uint64_t)line << 32 | column, &t))
        return false;
    *token =
        (struct smcache_token){.line = line,
                               .column = get_column(&t.block, t.index),
                               /* 1 + number of the source; in maps with ranges the lowest bit says if it is a range */
                               .source = get_value(&t.block, COLUMN_SOURCE, t.index) >> c->ranges,
                               .source_line = (uint32_t)get_value(&t.block, COLUMN_LINE, t.index),
                               .source_column = (uint32_t)get_value(&t.block, COLUMN_COLUMN, t.index),
                               .name = name_at(&c->names, c->name_count, get_value(&t.block, COLUMN_NAME, t.index))};
    return true;
}

/* Moves the source position, which is that of the range's token, as far as (line, column) in the script is from the token's place there.
 * False when the result is no valid position. */
static __attribute__((noinline)) bool move_in_range(const struct smcache_found *t, uint32_t line, uint32_t column,
                                                    struct sl_smcache_position *place)
{
    return js_move_range(get_line(&t->block, t->index), get_column(&t->block, t->index), line, column, &place->line,
                         &place->column);
}

bool sl_smcache_lookup(const struct sl_smcache *c, uint32_t line, uint32_t column, struct sl_smcache_position *place)
{
    uint64_t key = (uint64_t)line << 32 | column;
    struct smcache_found t;
    *place = (struct sl_smcache_position){.source = 0};
    /* a token that is a range may begin on a line before this one */
    if (c->ranges ? !find_before(c, key, &t) : !find_token(c, key, &t))
        return false;
    uint64_t source = get_value(&t.block, COLUMN_SOURCE, t.index);
    bool range = c->ranges && source & 1; /* in maps with ranges the lowest bit says whether the token is a range */
    source >>= c->ranges;                 /* 1 + the number of the source, 0 = none */
    /* a token that is no range ends with its line */
    if (source == 0 || source > c->source_count || (c->ranges && !range && get_line(&t.block, t.index) != line))
        return false;
    place->source = (uint32_t)(source - 1);
    place->line = (uint32_t)get_value(&t.block, COLUMN_LINE, t.index);
    place->column = (uint32_t)get_value(&t.block, COLUMN_COLUMN, t.index);
    if (range && !move_in_range(&t, line, column, place))
        return false;
    place->name = name_at(&c->names, c->name_count, get_value(&t.block, COLUMN_NAME, t.index));
    place->script_scope = (uint32_t)get_value(&t.block, COLUMN_SCOPE, t.index);
    if (c->start_count | c->boundary_count)
        set_original_function(c, node_at(c, key), place);
    else
        set_function(c, place->script_scope, place);
    return true;
}
