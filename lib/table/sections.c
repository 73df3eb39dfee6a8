/* Writes the contents of sections, by several threads: bit-packed columns, units (byte sequences of any size) with their offsets, and
 * strings. */
#include "table/writer.h"

#include <stdlib.h>

/* CHUNK_ROWS: rows that a thread packs at once. STEP_ROWS: rows per call of source->fill; as a multiple of eight it ends at a byte boundary
 * for any width. CHUNK_GROUPS: groups of strings that a thread writes at once. */
enum { CHUNK_ROWS = 8192, STEP_ROWS = 512, CHUNK_GROUPS = 128 };

struct column_packing { /* `data`: where each column is in the file */
    const struct sl_table_column_source *source;
    unsigned widths[SL_TABLE_MAX_COLUMNS];
    uint8_t *data[SL_TABLE_MAX_COLUMNS];
};

/* Stores eight bytes, little-endian. */
static void put_word(uint8_t *at, uint64_t word)
{
    word = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
    memcpy(at, &word, 8);
}

/* The bits of a column that are not stored yet. */
struct packed_column {
    uint8_t *at;
    uint64_t word;
    unsigned filled; /* bits used in `word` */
};

/* Appends a value, which has at most `width` bits. If the word is full, it is stored, and the bits that did not fit begin the next one. */
static inline void pack_value(struct packed_column *p, uint64_t value, unsigned width)
{
    p->word |= value << p->filled;
    p->filled += width;
    if (p->filled >= 64) {
        put_word(p->at, p->word);
        p->at += 8;
        p->filled -= 64;
        p->word = p->filled ? value >> (width - p->filled) : 0;
    }
}

/* Stores the last, incomplete word, only as many bytes as are used: the bytes behind them belong to the next rows, which another thread
 * may be writing. */
static void pack_rest(struct packed_column *p)
{
    for (; p->filled; p->filled = p->filled > 8 ? p->filled - 8 : 0, p->word >>= 8)
        *p->at++ = (uint8_t)p->word;
}

void sl_column_pack(uint8_t *at, const uint64_t *values, uint32_t count, unsigned width)
{
    struct packed_column p = {.at = at};
    for (uint32_t i = 0; width && i < count; i++)
        pack_value(&p, values[i], width);
    pack_rest(&p);
}

void sl_column_pack_relative(uint8_t *at, const uint32_t *values, uint32_t least, uint32_t count, unsigned width)
{
    struct packed_column p = {.at = at};
    for (uint32_t i = 0; width && i < count; i++)
        pack_value(&p, values[i] - least, width);
    pack_rest(&p);
}

/* Runs on a worker: packs chunk number `chunk` of CHUNK_ROWS rows. Chunks can be packed in parallel, because each begins at a byte boundary
 * of each column: the number of rows before it is a multiple of eight. */
static void pack_chunk(void *arg, size_t chunk, unsigned worker)
{
    (void)worker;
    const struct column_packing *p = arg;
    uint64_t storage[SL_TABLE_MAX_COLUMNS][STEP_ROWS], *values[SL_TABLE_MAX_COLUMNS];
    uint32_t from = (uint32_t)(chunk * CHUNK_ROWS), rows = p->source->rows - from;
    for (unsigned c = 0; c < SL_TABLE_MAX_COLUMNS; c++)
        values[c] = storage[c];
    rows = rows < CHUNK_ROWS ? rows : CHUNK_ROWS;
    for (uint32_t done = 0; done < rows; done += STEP_ROWS) {
        uint32_t count = rows - done < STEP_ROWS ? rows - done : STEP_ROWS;
        p->source->fill(p->source->arg, from + done, count, values);
        for (unsigned c = 0; c < p->source->columns; c++)
            sl_column_pack(p->data[c] + (size_t)(from + done) * p->widths[c] / 8, values[c], count, p->widths[c]);
    }
}

/* Reserves the columns in the file and sets p->data. Eight zero bytes follow each column, so that readers may read its last bytes as a
 * whole word. False when out of memory. */
static bool begin_columns(struct sl_buf *out, struct column_packing *p)
{
    const struct sl_table_column_source *source = p->source;
    size_t at[SL_TABLE_MAX_COLUMNS];
    for (unsigned c = 0; c < source->columns; c++) {
        size_t size = ((size_t)source->rows * p->widths[c] + 7) / 8;
        sl_buf_align(out, 8);
        at[c] = out->size;
        if (!sl_buf_reserve(out, size + 8))
            return false;
        out->size += size;
        sl_buf_fill(out, 0, 8);
    }
    for (unsigned c = 0; c < source->columns; c++) /* only now, as out->data may move while it grows */
        p->data[c] = out->data + at[c];
    return true;
}

bool sl_table_add_columns(struct sl_table_writer *w, uint32_t id, const struct sl_table_column_source *source)
{
    struct column_packing p = {.source = source};
    uint8_t widths[SL_TABLE_MAX_COLUMNS] = {0};
    for (unsigned c = 0; c < source->columns; c++) {
        p.widths[c] = source->max[c] ? 64 - (unsigned)__builtin_clzll(source->max[c]) : 0;
        widths[c] = (uint8_t)p.widths[c];
        w->too_large |= p.widths[c] > SL_TABLE_MAX_WIDTH;
    }
    sl_table_section(w, id);
    sl_buf_add(&w->file, widths, sizeof widths);
    if (w->too_large || !begin_columns(&w->file, &p))
        return false;
    sl_parallel_run(w->parallel, ((size_t)source->rows + CHUNK_ROWS - 1) / CHUNK_ROWS, pack_chunk, &p);
    return true;
}

struct chunking { /* units are written in chunks of source->per_chunk, each into a buffer of its own */
    const struct sl_table_unit_source *source;
    struct sl_buf *chunks;
    uint64_t *offsets; /* of the units in their chunk */
};

/* Returns the index after the last unit of a chunk. */
static size_t units_end(const struct sl_table_unit_source *s, size_t chunk)
{
    size_t end = (chunk + 1) * s->per_chunk;
    return end < s->count ? end : s->count;
}

/* Runs on a worker: writes the units of a chunk to the chunk's buffer, and stores their offsets in it. */
static void write_chunk(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    struct chunking *c = arg;
    struct sl_buf *out = &c->chunks[index];
    for (size_t i = index * c->source->per_chunk; i < units_end(c->source, index); i++) {
        c->offsets[i] = out->size;
        c->source->write(c->source->arg, i, out);
    }
}

/* Writes the units one after the other into the file, and their offsets. */
static void write_in_place(struct sl_buf *out, struct sl_buf *offsets, const struct sl_table_unit_source *source)
{
    size_t start = out->size;
    for (size_t i = 0; i < source->count; i++) {
        sl_buf_u32(offsets, (uint32_t)(out->size - start));
        source->write(source->arg, i, out);
    }
}

/* Writes chunks of units in parallel, each into its own buffer, then appends them to `out` in order: the bytes do not depend on the number
 * of workers. Appends the position of each unit, relative to the first unit, to `offsets`. */
static void write_in_chunks(struct sl_buf *out, struct sl_buf *offsets, const struct sl_parallel *parallel,
                            const struct sl_table_unit_source *source)
{
    size_t start = out->size, count = (source->count + source->per_chunk - 1) / source->per_chunk;
    struct chunking c = {.source = source,
                         .chunks = calloc(count + 1, sizeof *c.chunks),
                         .offsets = malloc((source->count + 1) * sizeof *c.offsets)};
    for (size_t i = 0; c.chunks && i < count; i++)
        c.chunks[i].budget = out->budget;
    if (c.chunks && c.offsets)
        sl_parallel_run(parallel, count, write_chunk, &c);
    else
        out->failed = true;
    for (size_t i = 0; !out->failed && i < count; i++) {
        struct sl_buf *chunk = &c.chunks[i];
        for (size_t j = i * source->per_chunk; j < units_end(source, i); j++)
            sl_buf_u32(offsets, (uint32_t)(out->size - start + c.offsets[j]));
        sl_buf_add(out, chunk->data, chunk->size);
        out->failed |= chunk->failed;
    }
    for (size_t i = 0; c.chunks && i < count; i++)
        sl_buf_free(&c.chunks[i]);
    free(c.chunks);
    free(c.offsets);
}

/* Adds a section of `size` zero bytes, to be filled later; returns its position in the file. */
static size_t reserve_section(struct sl_table_writer *w, uint32_t id, size_t size)
{
    sl_table_section(w, id);
    sl_buf_fill(&w->file, 0, size);
    return w->file.size - size;
}

bool sl_table_add_units(struct sl_table_writer *w, uint32_t id, uint32_t offsets_id,
                        const struct sl_table_unit_source *source)
{
    struct sl_buf offsets = {.budget = w->file.budget}, *out = &w->file;
    size_t at = 0, offsets_size = (source->count + 1) * sizeof(uint32_t);
    /* sections are in the order of their ids; offsets are known last, so their section is reserved and filled at the end */
    if (offsets_id < id)
        at = reserve_section(w, offsets_id, offsets_size);
    sl_table_section(w, id);
    size_t start = out->size;
    if (sl_parallel_workers(w->parallel) == 1)
        write_in_place(out, &offsets, source);
    else
        write_in_chunks(out, &offsets, w->parallel, source);
    sl_buf_u32(&offsets, (uint32_t)(out->size - start));
    w->too_large |= out->size - start > UINT32_MAX;
    if (offsets_id > id)
        at = reserve_section(w, offsets_id, offsets_size);
    out->failed |= offsets.failed;
    if (!out->failed)
        memcpy(out->data + at, offsets.data, offsets_size);
    sl_buf_free(&offsets);
    return !out->failed && !w->too_large;
}

/* Returns the length of the prefix that both texts have in common; compares words of eight bytes first. */
static size_t shared_prefix(struct sl_str a, struct sl_str b)
{
    size_t max = a.size < b.size ? a.size : b.size, n = 0;
    for (uint64_t x, y; n + 8 <= max; n += 8) {
        memcpy(&x, a.data + n, 8);
        memcpy(&y, b.data + n, 8);
        if (x != y)
            break;
    }
    while (n < max && a.data[n] == b.data[n])
        n++;
    return n;
}

/* Writes a group of SL_TABLE_GROUP strings (the last may have fewer): the first whole, the others without the prefix that they share with
 * the one before. */
static void write_group(const void *arg, size_t group, struct sl_buf *out)
{
    const struct sl_table_string_source *s = arg;
    size_t first = group * SL_TABLE_GROUP;
    struct sl_str previous = {NULL, 0};
    for (size_t i = first; i < first + SL_TABLE_GROUP && i < s->count; i++) {
        struct sl_str text = s->get(s->arg, i);
        size_t shared = shared_prefix(previous, text);
        if (i > first)
            sl_buf_uleb(out, shared);
        sl_buf_uleb(out, text.size - shared);
        sl_buf_add(out, text.data + shared, text.size - shared);
        previous = text;
    }
}

bool sl_table_add_strings(struct sl_table_writer *w, uint32_t id, uint32_t offsets_id,
                          const struct sl_table_string_source *source)
{
    size_t groups = (source->count + SL_TABLE_GROUP - 1) / SL_TABLE_GROUP;
    struct sl_table_unit_source units = {
        .write = write_group, .arg = source, .count = groups, .per_chunk = CHUNK_GROUPS};
    return sl_table_add_units(w, id, offsets_id, &units);
}
