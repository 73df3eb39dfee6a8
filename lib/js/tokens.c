/* Decodes `mappings` of a source map into tokens: segments of up to five base64 VLQ numbers, relative to those of the segment before. */
#include "js/sourcemap.h"

#include <inttypes.h>

#include "js/read.h"
#include "js/vlq.h"

enum { NONE = UINT32_MAX };

/* Short names for the table js_vlq_kinds, which has the value of each base64 digit. */
enum { F = VLQ_FOREIGN, C = VLQ_COMMA, S = VLQ_SEMICOLON, E = VLQ_END };

const uint8_t js_vlq_kinds[256] = {
    E,  F,  F,  F,  F,  F,  F,  F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
    F,  F,  F,  F,  F,  E,  F,  F, F, F, F,  F,  F,  F,  62, C,  F,  F,  63, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61,
    F,  S,  F,  F,  F,  F,  F,  0, 1, 2, 3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, F,  F,  F,  F, F, F, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
    45, 46, 47, 48, 49, 50, 51, F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
    F,  F,  F,  F,  F,  F,  F,  F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
    F,  F,  F,  F,  F,  F,  F,  F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
    F,  F,  F,  F,  F,  F,  F,  F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
    F,  F,  F,  F,  F,  F,  F,  F, F, F, F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,  F,
};

enum { M = VLQ_NOT_SINGLE };

const int8_t js_vlq_single[256] = {
    [0 ... '@'] = M, ['[' ... '`'] = M, ['g' ... 255] = M, ['A'] = 0,   ['B'] = M,   ['C'] = 1,   ['D'] = -1,
    ['E'] = 2,       ['F'] = -2,        ['G'] = 3,         ['H'] = -3,  ['I'] = 4,   ['J'] = -4,  ['K'] = 5,
    ['L'] = -5,      ['M'] = 6,         ['N'] = -6,        ['O'] = 7,   ['P'] = -7,  ['Q'] = 8,   ['R'] = -8,
    ['S'] = 9,       ['T'] = -9,        ['U'] = 10,        ['V'] = -10, ['W'] = 11,  ['X'] = -11, ['Y'] = 12,
    ['Z'] = -12,     ['a'] = 13,        ['b'] = -13,       ['c'] = 14,  ['d'] = -14, ['e'] = 15,  ['f'] = -15};

void sl_sourcemap_tokens(const struct sl_sourcemap *map, struct sl_sourcemap_tokens *tokens)
{
    *tokens = (struct sl_sourcemap_tokens){.map = map};
}

/* ---- ranges (TC39's proposal of 2026): for each line the indexes of its range tokens, the first relative to 0, each other to
 * the one before it ---- */

/* True if `rangeMappings` consists of digits and semicolons; otherwise the map counts as one without ranges. */
static bool has_only_numbers(const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++)
        if (!vlq_is_digit(js_vlq_kinds[*at]) && *at != ';')
            return false;
    return true;
}

/* Sets t->range to the index of the line's next token that is a range; NONE if there is none. In `rangeMappings` each index is relative to
 * the one before it, which is `from`. */
static void next_range(struct sl_sourcemap_tokens *t, uint32_t from)
{
    uint32_t number = from;
    /* less than `from`: the sum has wrapped at 32 bits */
    bool there = t->ranges_at < t->ranges_end && vlq_add_unsigned(&t->ranges_at, &number) && number >= from;
    t->range = there ? number : NONE;
}

/* Moves to the part of `rangeMappings` for the next line, and reads its first index. */
static void begin_line_of_ranges(struct sl_sourcemap_tokens *t)
{
    while (t->ranges_at < t->ranges_end && *t->ranges_at != ';')
        t->ranges_at++;
    t->ranges_at += t->ranges_at < t->ranges_end; /* the semicolon */
    t->line_tokens = 0;
    next_range(t, 0);
}

/* Counts a token of the line in t->line_tokens; true if it is a range. */
static bool is_range(struct sl_sourcemap_tokens *t)
{
    uint32_t number = t->line_tokens++;
    if (number != t->range)
        return false;
    do
        next_range(t, number);
    while (t->range == number); /* an index that is listed twice */
    return true;
}

/* ---- mappings ---- */

/* Reads the fields of a segment after the column: source, source line, source column and perhaps name. Sets `*source` and `*name` to
 * numbers across all parts of an index map, NONE if invalid. False when a field is malformed, an index is outside of its list, or more
 * fields follow. Fields after an invalid source are still read, because later segments are relative to them. */
static inline bool read_fields(struct sl_sourcemap_tokens *t, const uint8_t **at, uint32_t *source, uint32_t *name)
{
    if (!vlq_add(at, &t->source) || !vlq_add(at, &t->source_line) || !vlq_add(at, &t->source_column))
        return false;
    bool good = (uint64_t)t->source < t->source_count;
    *source = good ? t->first_source + (uint32_t)t->source : NONE;
    if (!vlq_is_digit(js_vlq_kinds[**at]))
        return good;
    good = vlq_add(at, &t->name) && good && (uint64_t)t->name < t->name_count;
    *name = good ? t->first_name + (uint32_t)t->name : NONE;
    return good && !vlq_is_digit(js_vlq_kinds[**at]);
}

/* Undoes what read_fields() added to the sums in `t` for the fields at `at`, those after the column of a segment. A segment with a negative
 * column is ignored completely: later segments are not relative to it. */
static __attribute__((noinline)) void undo_fields(struct sl_sourcemap_tokens *t, const uint8_t *at)
{
    int64_t *const sums[] = {&t->source, &t->source_line, &t->source_column, &t->name};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        int64_t added = 0;
        if (!vlq_add(&at, &added))
            return;
        *sums[i] -= added;
    }
}

/* Returns the end of the segment, a comma, a semicolon or `end`. It gets no pointer to struct sl_sourcemap_tokens, so that the compiler can
 * keep its members in registers in the callers. */
static __attribute__((noinline)) const uint8_t *segment_end(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at != ',' && *at != ';')
        at++;
    return at;
}

/* Returns the end of a malformed segment, and records the position of the first one for the error message. */
static inline const uint8_t *skip_bad_segment(struct sl_sourcemap_tokens *t, const uint8_t *at)
{
    if (!t->bad) {
        t->bad_line = t->line;
        t->bad_column = t->column;
    }
    t->bad = true;
    return segment_end(at, t->end);
}

/* Reads a segment, whose numbers are relative to the last ones, and adds a token to the batch. A malformed segment (ECMA-426,
 * "DecodeMapping") without a valid column is ignored; with one it becomes a token without a source. */
static inline void read_segment(struct sl_sourcemap_tokens *t, const uint8_t **at, struct sl_sourcemap_batch *batch,
                                bool has_ranges)
{
    uint32_t n = batch->count, source = NONE, name = NONE;
    if (!vlq_add(at, &t->column)) {
        *at = skip_bad_segment(t, *at);
        return;
    }
    const uint8_t *fields = *at;
    /* positions or-ed; they have 31 bits, a higher bit means negative or too large */
    uint64_t seen = (uint64_t)t->column;
    if (vlq_is_digit(js_vlq_kinds[**at])) {
        bool good = read_fields(t, at, &source, &name);
        seen |= (uint64_t)(t->source_line | t->source_column);
        if (!good)
            *at = skip_bad_segment(t, *at);
    }
    if (seen >> 31) {
        *at = skip_bad_segment(t, *at);
        source = name = NONE;
        if (t->column < 0)
            undo_fields(t, fields);
        if ((uint64_t)t->column >> 31) /* the column itself is invalid, so there is no token */
            return;
    }
    batch->line[n] = t->line;
    batch->column[n] = (uint32_t)t->column;
    batch->source[n] = source;
    batch->source_line[n] = (uint32_t)t->source_line;
    batch->source_column[n] = (uint32_t)t->source_column;
    batch->name[n] = name;
    batch->range[n] = has_ranges && is_range(t);
    batch->count++;
}

/* Begins a line of the script, where columns count from 0 again. False if there are too many lines. */
static inline bool begin_line(struct sl_sourcemap_tokens *t, bool has_ranges)
{
    t->column = 0;
    if (has_ranges)
        begin_line_of_ranges(t);
    return ++t->line != 0;
}

/* Reads segments up to the end of the mappings or until the batch is full. False if the map has more lines than 32 bits count. `has_ranges`
 * is a constant in each caller: without ranges, as most maps are, the compiler keeps the local copy `t` in registers. */
static inline __attribute__((always_inline)) bool read_part(struct sl_sourcemap_tokens *tokens,
                                                            struct sl_sourcemap_batch *batch, bool has_ranges)
{
    struct sl_sourcemap_tokens t = *tokens;
    const uint8_t *at = t.at;
    bool good = true;
    while (good && at < t.end && batch->count < SL_SOURCEMAP_BATCH) {
        uint8_t kind = js_vlq_kinds[*at];
        if (vlq_is_digit(kind)) {
            read_segment(&t, &at, batch, has_ranges);
        } else if (kind == VLQ_COMMA) {
            at++;
        } else if (kind == VLQ_SEMICOLON) {
            good = begin_line(&t, has_ranges);
            at++;
        } else { /* not a digit, or text after the fields of a segment */
            at = skip_bad_segment(&t, at);
        }
    }
    t.at = at;
    *tokens = t;
    return good;
}

/* Opens the next part: the map itself, or the next map of an index map. Resets `t`, except for members that concern all parts. Malformed
 * `rangeMappings` are ignored. SL_BUSY when out of memory. */
static enum sl_code open_part(struct sl_sourcemap_tokens *t, struct sl_error *error)
{
    const struct sl_sourcemap_part *part = &t->map->parts[t->next_part++];
    struct sl_str mappings, ranges;
    if (!js_read_text(t->map, part->mappings, &mappings) || !js_read_text(t->map, part->ranges, &ranges))
        return sl_fail(error, SL_BUSY, "out of memory");
    *t = (struct sl_sourcemap_tokens){
        .map = t->map,
        .at = (const uint8_t *)mappings.data,
        .end = (const uint8_t *)mappings.data + mappings.size,
        .ranges_at = (const uint8_t *)ranges.data,
        .ranges_end = (const uint8_t *)ranges.data + ranges.size,
        .has_ranges =
            ranges.size && has_only_numbers((const uint8_t *)ranges.data, (const uint8_t *)ranges.data + ranges.size),
        .next_part = t->next_part,
        .bad = t->bad,
        .bad_line = t->bad_line,
        .bad_column = t->bad_column,
        .has_source = t->has_source,
        .first_source = t->next_source,
        .first_name = t->next_name,
        .source_count = part->counts[SL_SOURCEMAP_SOURCES],
        .name_count = part->counts[SL_SOURCEMAP_NAMES],
        .next_source = t->next_source + part->counts[SL_SOURCEMAP_SOURCES],
        .next_name = t->next_name + part->counts[SL_SOURCEMAP_NAMES],
        .line = part->line,
        .column = part->column};
    if (t->has_ranges)
        next_range(t, 0); /* reads which token of the first line is the first range */
    return SL_OK;
}

static bool has_source(const struct sl_sourcemap_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->source[i] != NONE)
            return true;
    return false;
}

enum sl_code sl_sourcemap_batch(struct sl_sourcemap_tokens *t, struct sl_sourcemap_batch *batch, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    batch->count = 0;
    while (code == SL_OK && batch->count < SL_SOURCEMAP_BATCH) {
        if (t->at == t->end && t->next_part == t->map->part_count) {
            if (t->bad && !t->has_source && !batch->count)
                code = sl_fail(error, SL_MALFORMED,
                               "source map: no segment of `mappings` is valid; the first invalid one is after "
                               "generated line %" PRIu32 ", column %" PRId64,
                               t->bad_line, t->bad_column);
            break;
        }
        if (t->at == t->end)
            code = open_part(t, error);
        else if (!(t->has_ranges ? read_part(t, batch, true) : read_part(t, batch, false)))
            code = sl_fail(error, SL_MALFORMED, "source map: `mappings` goes beyond line 2^32 - 1");
    }
    t->has_source = t->has_source || has_source(batch);
    return code;
}
