/* Contents of sections, written by several threads: columns of numbers packed to the bits that the largest needs, and
 * units (blocks, groups of strings) of any size with the offsets where they begin. */
#include "symcache/build.h"

#include <stdlib.h>

/* Starts at a byte boundary with any width, as a multiple of eight values. */
enum { CHUNK = 8192 };

struct packing {
    column_fill *fill;
    const void *arg;
    uint64_t *values;
    uint8_t *data;
    uint64_t *bits; /* by chunk: all its values or-ed */
    uint32_t count;
    unsigned width;
};

static uint32_t chunk_end(const struct packing *p, size_t chunk)
{
    size_t end = (chunk + 1) * CHUNK;
    return end < p->count ? (uint32_t)end : p->count;
}

static void fill_chunk(void *arg, size_t chunk, unsigned worker)
{
    (void)worker;
    struct packing *p = arg;
    uint32_t from = (uint32_t)(chunk * CHUNK), to = chunk_end(p, chunk);
    uint64_t all = 0;
    p->fill(p->arg, from, to, p->values + from);
    for (uint32_t i = from; i < to; i++)
        all |= p->values[i];
    p->bits[chunk] = all;
}

static void put_word(uint8_t *at, uint64_t word)
{
    word = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
    memcpy(at, &word, 8);
}

static void pack_chunk(void *arg, size_t chunk, unsigned worker)
{
    (void)worker;
    struct packing *p = arg;
    uint32_t from = (uint32_t)(chunk * CHUNK), to = chunk_end(p, chunk);
    unsigned width = p->width, filled = 0;
    uint8_t *at = p->data + (size_t)from * width / 8;
    uint64_t word = 0;
    for (uint32_t i = from; width && i < to; i++) {
        uint64_t value = p->values[i];
        word |= value << filled;
        filled += width;
        if (filled >= 64) {
            put_word(at, word);
            at += 8;
            filled -= 64;
            word = filled ? value >> (width - filled) : 0;
        }
    }
    for (; filled; filled = filled > 8 ? filled - 8 : 0, word >>= 8)
        *at++ = (uint8_t)word;
}

bool symcache_write_columns(struct sl_buf *out, const struct sl_parallel *parallel, uint32_t count,
                            column_fill *const *columns, unsigned column_count, const void *arg)
{
    size_t chunks = ((size_t)count + CHUNK - 1) / CHUNK, widths = out->size;
    struct packing p = {.arg = arg, .count = count};
    p.values = malloc(((size_t)count + 1) * sizeof *p.values);
    p.bits = malloc((chunks + 1) * sizeof *p.bits);
    bool ok = p.values && p.bits;
    sl_buf_fill(out, 0, 8);
    for (unsigned i = 0; i < column_count && ok; i++) {
        p.fill = columns[i];
        sl_parallel_run(parallel, chunks, fill_chunk, &p);
        uint64_t all = 0;
        for (size_t chunk = 0; chunk < chunks; chunk++)
            all |= p.bits[chunk];
        p.width = all ? 64 - (unsigned)__builtin_clzll(all) : 0;
        /* Room to read eight bytes at any value. */
        size_t size = ((size_t)count * p.width + 7) / 8;
        sl_buf_align(out, 8);
        ok = sl_buf_reserve(out, size + 8);
        if (!ok)
            break;
        p.data = out->data + out->size;
        sl_parallel_run(parallel, chunks, pack_chunk, &p);
        out->size += size;
        sl_buf_fill(out, 0, 8);
        out->data[widths + i] = (uint8_t)p.width;
    }
    free(p.values);
    free(p.bits);
    return ok;
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

bool symcache_write_units(struct sl_buf *out, struct sl_buf *offsets, const struct sl_parallel *parallel,
                          const struct unit_source *source)
{
    size_t count = (source->count + source->per_chunk - 1) / source->per_chunk;
    struct chunking c = {source, calloc(count + 1, sizeof *c.chunks), malloc((source->count + 1) * sizeof *c.offsets)};
    bool ok = c.chunks && c.offsets;
    uint64_t base = 0;
    if (ok)
        sl_parallel_run(parallel, count, write_chunk, &c);
    for (size_t i = 0; ok && i < count; i++) {
        struct sl_buf *chunk = &c.chunks[i];
        for (size_t j = i * source->per_chunk; j < units_end(source, i); j++)
            sl_buf_u32(offsets, (uint32_t)(base + c.offsets[j]));
        sl_buf_add(out, chunk->data, chunk->size);
        base += chunk->size;
        ok = !chunk->failed && base <= UINT32_MAX;
    }
    sl_buf_u32(offsets, (uint32_t)base);
    for (size_t i = 0; c.chunks && i < count; i++)
        sl_buf_free(&c.chunks[i]);
    free(c.chunks);
    free(c.offsets);
    return ok && !offsets->failed;
}
