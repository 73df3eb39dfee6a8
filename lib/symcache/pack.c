/* Contents of sections, written by several threads: columns of numbers packed to the bits that the largest needs, and
 * units (blocks, groups of strings) of any size with the offsets where they begin. */
#include "symcache/build.h"

#include <stdlib.h>

/* Rows of a work item, and of a step within; a step starts at a byte boundary with any width. */
enum { CHUNK_ROWS = 8192, STEP_ROWS = 512 };

struct packing {
    const struct column_source *source;
    unsigned widths[MAX_COLUMNS];
    uint8_t *data[MAX_COLUMNS];
};

static void put_word(uint8_t *at, uint64_t word)
{
    word = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
    memcpy(at, &word, 8);
}

static void pack(uint8_t *at, const uint64_t *values, uint32_t count, unsigned width)
{
    unsigned filled = 0;
    uint64_t word = 0;
    for (uint32_t i = 0; width && i < count; i++) {
        word |= values[i] << filled;
        filled += width;
        if (filled >= 64) {
            put_word(at, word);
            at += 8;
            filled -= 64;
            word = filled ? values[i] >> (width - filled) : 0;
        }
    }
    for (; filled; filled = filled > 8 ? filled - 8 : 0, word >>= 8)
        *at++ = (uint8_t)word;
}

static void pack_chunk(void *arg, size_t chunk, unsigned worker)
{
    (void)worker;
    const struct packing *p = arg;
    uint64_t storage[MAX_COLUMNS][STEP_ROWS], *values[MAX_COLUMNS];
    uint32_t from = (uint32_t)(chunk * CHUNK_ROWS), rows = p->source->rows - from;
    for (unsigned c = 0; c < MAX_COLUMNS; c++)
        values[c] = storage[c];
    rows = rows < CHUNK_ROWS ? rows : CHUNK_ROWS;
    for (uint32_t done = 0; done < rows; done += STEP_ROWS) {
        uint32_t count = rows - done < STEP_ROWS ? rows - done : STEP_ROWS;
        p->source->fill(p->source->arg, from + done, count, values);
        for (unsigned c = 0; c < p->source->columns; c++)
            pack(p->data[c] + (size_t)(from + done) * p->widths[c] / 8, values[c], count, p->widths[c]);
    }
}

bool symcache_write_columns(struct sl_buf *out, const struct sl_parallel *parallel, const struct column_source *source)
{
    size_t chunks = ((size_t)source->rows + CHUNK_ROWS - 1) / CHUNK_ROWS, at[MAX_COLUMNS];
    struct packing p = {.source = source};
    uint8_t widths[8] = {0};
    for (unsigned c = 0; c < source->columns; c++) {
        p.widths[c] = source->max[c] ? 64 - (unsigned)__builtin_clzll(source->max[c]) : 0;
        widths[c] = (uint8_t)p.widths[c];
    }
    sl_buf_add(out, widths, sizeof widths);
    for (unsigned c = 0; c < source->columns; c++) {
        size_t size = ((size_t)source->rows * p.widths[c] + 7) / 8;
        sl_buf_align(out, 8);
        at[c] = out->size;
        if (!sl_buf_reserve(out, size + 8))
            return false;
        out->size += size;
        sl_buf_fill(out, 0, 8); /* room to read eight bytes at any value */
    }
    for (unsigned c = 0; c < source->columns; c++)
        p.data[c] = out->data + at[c];
    sl_parallel_run(parallel, chunks, pack_chunk, &p);
    return true;
}

struct chunking {
    const struct unit_source *source;
    struct sl_buf *chunks;
    uint64_t *offsets; /* of the units; while chunks are written, in their chunk */
};

static size_t units_end(const struct unit_source *s, size_t chunk)
{
    size_t end = (chunk + 1) * s->per_chunk;
    return end < s->count ? end : s->count;
}

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

static bool write_in_place(struct sl_buf *out, size_t start, struct sl_buf *offsets, const struct unit_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        sl_buf_u32(offsets, (uint32_t)(out->size - start));
        source->write(source->arg, i, out);
    }
    return !out->failed && !offsets->failed && out->size - start <= UINT32_MAX;
}

bool symcache_write_units(struct sl_buf *out, size_t start, struct sl_buf *offsets, const struct sl_parallel *parallel,
                          const struct unit_source *source)
{
    if (sl_parallel_workers(parallel) == 1)
        return write_in_place(out, start, offsets, source);
    size_t count = (source->count + source->per_chunk - 1) / source->per_chunk;
    struct sl_holding holding = {.budget = out->budget};
    struct chunking c = {
        source,
        calloc(count + 1, sizeof *c.chunks),
        sl_alloc_held(&holding, source->count + 1, sizeof *c.offsets),
    };
    bool ok = c.chunks && c.offsets;
    for (size_t i = 0; ok && i < count; i++)
        c.chunks[i].budget = out->budget;
    if (ok)
        sl_parallel_run(parallel, count, write_chunk, &c);
    for (size_t i = 0; ok && i < count; i++) {
        struct sl_buf *chunk = &c.chunks[i];
        for (size_t j = i * source->per_chunk; j < units_end(source, i); j++)
            sl_buf_u32(offsets, (uint32_t)(out->size - start + c.offsets[j]));
        sl_buf_add(out, chunk->data, chunk->size);
        ok = !chunk->failed && out->size - start <= UINT32_MAX;
    }
    for (size_t i = 0; c.chunks && i < count; i++)
        sl_buf_free(&c.chunks[i]);
    free(c.chunks);
    free(c.offsets);
    sl_holding_release(&holding);
    return ok && !out->failed && !offsets->failed;
}
