/* Packs the tokens of a source map into blocks. They come in the order of the map. In nearly all maps that is the order of the generated
 * script; otherwise they are sorted in memory first. A token that is a "range" maps all characters up to the next token. */
#include <stdlib.h>

#include "function/order.h"
#include "js/smwrite.h"

/* ---- blocks ---- */

/* The values of one block of tokens. A key is line and column of a token in the script. If `one_line`, all tokens are on one line: then the
 * columns alone are the keys, and are packed directly from the batch. */
struct block_values {
    const uint32_t *columns[BLOCK_COLUMNS]; /* values of each column; [COLUMN_KEY] is used if one_line */
    uint64_t keys[BLOCK_TOKENS];   /* line << column_width | column, relative to the first line and the least column */
    uint32_t least[BLOCK_COLUMNS]; /* least value of each column, which is subtracted */
    uint8_t widths[BLOCK_COLUMNS], column_width; /* bits of a value of each column; of the script's column in a key */
    bool one_line;
};

struct least_greatest {
    uint32_t least, greatest;
};

/* Returns the least and the greatest of at least one value. */
static struct least_greatest find_bounds(const uint32_t *values, uint32_t count)
{
    struct least_greatest b = {values[0], values[0]};
    for (uint32_t i = 1; i < count; i++) {
        b.least = values[i] < b.least ? values[i] : b.least;
        b.greatest = values[i] > b.greatest ? values[i] : b.greatest;
    }
    return b;
}

static uint8_t bits_needed(uint32_t greatest)
{
    return greatest ? (uint8_t)(32 - __builtin_clz(greatest)) : 0;
}

/* Stores a column relative to its least value, in as few bits as the greatest one needs. */
static void set_column(struct block_values *v, enum block_column column, const uint32_t *values, uint32_t count)
{
    struct least_greatest bounds = find_bounds(values, count);
    v->least[column] = bounds.least;
    v->widths[column] = bits_needed(bounds.greatest - bounds.least);
    v->columns[column] = values;
}

/* Packs line and column of each token, which are in order, into a key, relative to the least ones; on a single line a key is the column
 * alone. False when they are too far apart for KEY_WIDTH bits: the caller splits the block. */
static bool set_keys(struct block_values *v, const uint32_t *lines, const uint32_t *columns, uint32_t count)
{
    v->columns[COLUMN_KEY] = columns;
    v->one_line = lines[count - 1] == lines[0];
    struct least_greatest bounds = /* on one line the columns are in order */
        v->one_line ? (struct least_greatest){columns[0], columns[count - 1]} : find_bounds(columns, count);
    uint8_t width = bits_needed(bounds.greatest - bounds.least);
    v->least[COLUMN_KEY] = bounds.least;
    v->column_width = v->widths[COLUMN_KEY] = width;
    if (v->one_line)
        return true;
    v->widths[COLUMN_KEY] = (uint8_t)(width + bits_needed(lines[count - 1] - lines[0]));
    for (uint32_t i = 0; i < count; i++)
        v->keys[i] = (uint64_t)(lines[i] - lines[0]) << width | (columns[i] - v->least[COLUMN_KEY]);
    return v->widths[COLUMN_KEY] <= KEY_WIDTH;
}

/* Writes a block of tokens: their number, the widths and least values of the columns, then the columns, each packed to its width and padded
 * to a byte. When out of memory, w->table.file.failed is set. */
static void put_block(struct smcache_writer *w, const struct block_values *v, uint32_t count)
{
    struct sl_buf *out = &w->table.file;
    size_t size = BLOCK_HEAD;
    for (unsigned c = 0; c < BLOCK_COLUMNS; c++)
        size += (count * v->widths[c] + 7) / 8;
    if (!sl_buf_reserve(out, size + 8)) /* 8: for sl_buf_align() at the end */
        return;
    uint8_t *at = out->data + out->size;
    *at++ = (uint8_t)count;
    memcpy(at, v->widths, BLOCK_COLUMNS);
    at[BLOCK_COLUMNS] = v->column_width;
    out->size += 1 + BLOCK_COLUMNS + 1;
    for (unsigned c = 0; c < BLOCK_COLUMNS; c++)
        sl_buf_u32(out, v->least[c]);
    at = out->data + out->size;
    for (unsigned c = 0; c < BLOCK_COLUMNS; at += (count * v->widths[c] + 7) / 8, c++)
        if (c == COLUMN_KEY && !v->one_line)
            sl_column_pack(at, v->keys, count, v->widths[c]);
        else
            sl_column_pack_relative(at, v->columns[c], v->least[c], count, v->widths[c]);
    out->size = (size_t)(at - out->data);
    sl_buf_align(out, 8);
}

/* The values of a batch as they are stored in blocks. */
struct stored_values {
    uint32_t source[BLOCK_TOKENS], name[BLOCK_TOKENS], scope[BLOCK_TOKENS];
    bool has_scopes;
};

/* Computes the values that blocks store for the tokens of a batch. Numbers of source, name and function are stored plus 1, so that 0 means
 * none; UINT32_MAX, which means none in a batch, becomes 0. In maps with ranges the lowest bit of a source says whether the token is a
 * range. */
static void make_stored_values(struct smcache_writer *w, const struct sl_sourcemap_batch *b,
                               struct stored_values *stored)
{
    stored->has_scopes = w->function_map.firsts || w->script_scopes.there;
    if (w->function_map.firsts)
        smcache_find_functions(w, b, stored->scope);
    else if (stored->has_scopes)
        smcache_walk_scopes(w, b, stored->scope);
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t source = b->source[i];
        if (w->numbers && source != UINT32_MAX) /* an index map: equal sources share a number */
            source = w->numbers[source];
        stored->source[i] = w->ranges ? (source + 1) << 1 | b->range[i] : source + 1;
        stored->name[i] = b->name[i] + 1;
    }
}

/* Writes `count` tokens of a batch, from `from` on, as one block. If their positions need too many bits for one block, writes each half of
 * them in the same way; a single token always fits. */
static void put_tokens(struct smcache_writer *w, const struct sl_sourcemap_batch *b, const struct stored_values *stored,
                       uint32_t from, uint32_t count)
{
    struct block_values v;
    if (!set_keys(&v, b->line + from, b->column + from, count)) {
        put_tokens(w, b, stored, from, count / 2);
        put_tokens(w, b, stored, from + count / 2, count - count / 2);
        return;
    }
    set_column(&v, COLUMN_SOURCE, stored->source + from, count);
    set_column(&v, COLUMN_LINE, b->source_line + from, count);
    set_column(&v, COLUMN_COLUMN, b->source_column + from, count);
    set_column(&v, COLUMN_NAME, stored->name + from, count);
    if (stored->has_scopes)
        set_column(&v, COLUMN_SCOPE, stored->scope + from, count);
    else
        v.columns[COLUMN_SCOPE] = NULL, v.least[COLUMN_SCOPE] = v.widths[COLUMN_SCOPE] = 0;
    sl_buf_u64(&w->keys, (uint64_t)b->line[from] << 32 | b->column[from]);
    /* of the block in the section BLOCKS, which is the last one while tokens are written */
    size_t offset = w->table.file.size - w->table.sections[w->table.section_count - 1].offset;
    w->table.too_large |= offset / 8 > UINT32_MAX || w->block_count == UINT32_MAX;
    sl_buf_u32(&w->places, (uint32_t)(offset / 8));
    w->block_count++;
    put_block(w, &v, count);
}

/* Writes the tokens of a batch. False when out of memory or budget. */
static bool write_batch(struct smcache_writer *w, const struct sl_sourcemap_batch *b)
{
    struct stored_values stored;
    if (!b->count)
        return true;
    make_stored_values(w, b, &stored);
    put_tokens(w, b, &stored, 0, b->count);
    w->token_count += b->count;
    return sl_account_spend(&w->account, b->count) && !w->table.file.failed && !w->keys.failed && !w->places.failed;
}

static uint64_t key_at(const struct sl_sourcemap_batch *b, uint32_t i)
{
    return (uint64_t)b->line[i] << 32 | b->column[i];
}

/* ---- ranges ---- */

/* If the batch of split tokens, w->splitter.out, is full, writes and empties it. False when out of memory or budget. */
static bool flush_full(struct smcache_writer *w)
{
    struct sl_sourcemap_batch *out = &w->splitter.out;
    if (out->count < SL_SOURCEMAP_BATCH)
        return true;
    bool good = write_batch(w, out);
    out->count = 0;
    return good;
}

/* If the last token is a range: adds a copy of it at each position before `end` where a function of the script begins or ends, so that each
 * token is in one function. Stops before a copy whose position in the source would be too large. False when out of memory or budget. */
static bool repeat_range(struct smcache_writer *w, uint64_t end)
{
    struct range_splitter *s = &w->splitter;
    struct sl_sourcemap_batch *out = &s->out;
    if (!s->is_open)
        return true;
    uint64_t key = (uint64_t)s->line << 32 | s->column;
    while ((key = smcache_next_boundary(w, key)) < end) {
        if (!flush_full(w))
            return false;
        uint32_t n = out->count, line = (uint32_t)(key >> 32), column = (uint32_t)key;
        out->source_line[n] = s->source_line;
        out->source_column[n] = s->source_column;
        if (!js_move_range(s->line, s->column, line, column, &out->source_line[n], &out->source_column[n]))
            return true;
        out->line[n] = line;
        out->column[n] = column;
        out->source[n] = s->source;
        out->name[n] = UINT32_MAX; /* none */
        out->range[n] = true;
        out->count++;
    }
    return true;
}

/* Copies the tokens of `b` to w->splitter.out, which is written whenever it is full. A token that is a range is repeated where a function
 * of the script begins or ends inside it. False when out of memory or budget. */
static bool split_ranges(struct smcache_writer *w, const struct sl_sourcemap_batch *b)
{
    struct range_splitter *s = &w->splitter;
    struct sl_sourcemap_batch *out = &s->out;
    for (uint32_t i = 0; i < b->count; i++) {
        if (!repeat_range(w, key_at(b, i)) || !flush_full(w)) /* the range before this token ends here */
            return false;
        uint32_t n = out->count++;
        s->line = out->line[n] = b->line[i];
        s->column = out->column[n] = b->column[i];
        s->source = out->source[n] = b->source[i];
        s->source_line = out->source_line[n] = b->source_line[i];
        s->source_column = out->source_column[n] = b->source_column[i];
        out->name[n] = b->name[i];
        out->range[n] = b->range[i];
        s->is_open = b->range[i] && b->source[i] != UINT32_MAX;
    }
    return true;
}

/* True if the map has ranges, and functions of the script at whose boundaries they are split. */
static bool splits_ranges(const struct smcache_writer *w)
{
    return w->ranges && w->script_scopes.there;
}

/* Writes the tokens of a batch. If ranges are split, some of them may only be kept in w->splitter.out; put_last_range() writes them. False
 * when out of memory or budget. */
static bool put_batch(struct smcache_writer *w, const struct sl_sourcemap_batch *b)
{
    return splits_ranges(w) ? split_ranges(w, b) : write_batch(w, b);
}

/* Called after the last batch: if ranges are split, repeats the last range up to the end of the script and writes the tokens that are still
 * in w->splitter.out. False when out of memory or budget. */
static bool put_last_range(struct smcache_writer *w)
{
    return !splits_ranges(w) || (repeat_range(w, UINT64_MAX) && write_batch(w, &w->splitter.out));
}

/* ---- order ---- */

/* True if the positions of the batch ascend and none is before `*last`, which becomes the position of its last token. */
static bool is_ordered(const struct sl_sourcemap_batch *b, uint64_t *last)
{
    bool ordered = true;
    for (uint32_t i = 0; i < b->count; i++) {
        uint64_t key = key_at(b, i);
        ordered &= *last <= key;
        *last = key;
    }
    return ordered;
}

/* A token to be sorted, without its position in the script, which is the sort key. */
struct token {
    uint32_t source, source_line, source_column, name : 31, range : 1;
};

enum { NO_NAME = INT32_MAX /* in token.name */ };

struct js_sorting {
    struct sl_ordered *order, *scratch;
    struct token *tokens;
    size_t count, order_capacity, token_capacity;
};

/* Appends a batch to the tokens to be sorted. False when out of memory or budget, or if there are more tokens than 32 bits count. */
static bool collect_batch(struct smcache_writer *w, struct js_sorting *s, const struct sl_sourcemap_batch *b)
{
    size_t need = s->count + b->count;
    if (!sl_account_grow(&w->account, &s->order, &s->order_capacity, need, sizeof *s->order) ||
        !sl_account_grow(&w->account, &s->tokens, &s->token_capacity, need, sizeof *s->tokens))
        return false;
    for (uint32_t i = 0; i < b->count; i++, s->count++) {
        uint32_t name = b->name[i] == UINT32_MAX ? NO_NAME : b->name[i];
        s->order[s->count] = (struct sl_ordered){.key = key_at(b, i), .index = (uint32_t)s->count};
        s->tokens[s->count] =
            (struct token){b->source[i], b->source_line[i], b->source_column[i], name & NO_NAME, b->range[i]};
    }
    return sl_account_spend(&w->account, b->count) && s->count <= UINT32_MAX;
}

/* Writes sorted tokens in batches; order[i].key is line and column, order[i].index the token. NO_NAME becomes UINT32_MAX, which batches
 * use. False when out of memory or budget. */
static bool put_sorted(struct smcache_writer *w, const struct js_sorting *s)
{
    struct sl_sourcemap_batch b;
    for (size_t at = 0; at < s->count; at += b.count) {
        for (b.count = 0; b.count < SL_SOURCEMAP_BATCH && at + b.count < s->count; b.count++) {
            const struct sl_ordered *o = &s->order[at + b.count];
            const struct token *t = &s->tokens[o->index];
            b.line[b.count] = (uint32_t)(o->key >> 32);
            b.column[b.count] = (uint32_t)o->key;
            b.source[b.count] = t->source;
            b.source_line[b.count] = t->source_line;
            b.source_column[b.count] = t->source_column;
            b.name[b.count] = t->name == NO_NAME ? UINT32_MAX : t->name;
            b.range[b.count] = t->range;
        }
        if (!put_batch(w, &b))
            return false;
    }
    return true;
}

/* Reads all tokens again, sorts them by their position in the script, and writes them. */
static enum sl_code sort_tokens(struct smcache_writer *w, struct js_sorting *s, struct sl_error *error)
{
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    enum sl_code code;
    sl_sourcemap_tokens(w->map, &tokens);
    while ((code = sl_sourcemap_batch(&tokens, &batch, error)) == SL_OK && batch.count)
        if (!collect_batch(w, s, &batch))
            return smcache_writer_fail(w, error);
    if (code != SL_OK)
        return code;
    s->scratch = sl_account_alloc(&w->account, s->count, sizeof *s->scratch);
    if (!s->scratch)
        return smcache_writer_fail(w, error);
    sl_order(s->order, s->scratch, s->count);
    sl_account_free(&w->account, s->scratch, s->count, sizeof *s->scratch);
    return put_sorted(w, s) ? SL_OK : smcache_writer_fail(w, error);
}

/* ---- all ---- */

/* Writes the tokens in the order of the map. Stops with SL_OK and `*ordered` false if they turn out not to be sorted: the caller then
 * discards what was written and sorts them. */
static enum sl_code put_as_they_come(struct smcache_writer *w, bool *ordered, struct sl_error *error)
{
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    enum sl_code code;
    uint64_t last = 0;
    sl_sourcemap_tokens(w->map, &tokens);
    *ordered = true;
    while ((code = sl_sourcemap_batch(&tokens, &batch, error)) == SL_OK && batch.count) {
        *ordered = is_ordered(&batch, &last);
        if (!*ordered)
            return SL_OK;
        if (!put_batch(w, &batch))
            return smcache_writer_fail(w, error);
    }
    return code;
}

enum sl_code smcache_put_tokens(struct smcache_writer *w, struct sl_error *error)
{
    struct sl_table_writer *t = &w->table;
    bool ordered;
    sl_table_section(t, SECTION_BLOCKS);
    size_t begin = t->file.size;
    enum sl_code code = put_as_they_come(w, &ordered, error);
    if (code == SL_OK && !ordered) {
        struct js_sorting sorting = {.count = 0};
        t->file.size = begin; /* discard what was written, and start again */
        sl_buf_clear(&w->keys);
        sl_buf_clear(&w->places);
        w->block_count = 0;
        w->token_count = 0;
        w->splitter = (struct range_splitter){.is_open = false};
        smcache_rewind_scopes(w);
        code = sort_tokens(w, &sorting, error);
        sl_account_free(&w->account, sorting.order, sorting.order_capacity, sizeof *sorting.order);
        sl_account_free(&w->account, sorting.tokens, sorting.token_capacity, sizeof *sorting.tokens);
    }
    if (code == SL_OK && !put_last_range(w)) /* writes the tokens of split ranges that are not written yet */
        code = smcache_writer_fail(w, error);
    sl_buf_fill(&t->file, 0, 8); /* the last block is read in words, too (open_block) */
    sl_table_section(t, SECTION_KEYS);
    sl_buf_str(&t->file, sl_buf_view(&w->keys));
    sl_table_section(t, SECTION_PLACES);
    sl_buf_str(&t->file, sl_buf_view(&w->places));
    return code;
}
