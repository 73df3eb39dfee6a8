/* Decompresses parts of an object, with limits for memory and work. */
#include "object/impl.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* Allocates memory that lives as long as the object, but can be freed alone, unlike memory of its arena. NULL when out of memory, which is
 * recorded in the object. */
uint8_t *object_block(struct sl_object *object, size_t size)
{
    struct object_block *block = NULL;
    if (sl_budget_charge(object->budget, size) && !(block = malloc(sizeof *block + size)))
        sl_budget_uncharge(object->budget, size);
    if (!block) {
        object_no_memory(object);
        return NULL;
    }
    *block = (struct object_block){.next = object->blocks, .link = &object->blocks, .size = size};
    if (block->next)
        block->next->link = &block->next;
    object->blocks = block;
    return block->data;
}

/* Frees memory that object_block() returned, after taking its block, whose header lies in front of `data`, out of the object's list. */
void object_block_free(struct sl_object *object, uint8_t *data)
{
    struct object_block *block = (struct object_block *)(data - offsetof(struct object_block, data));
    *block->link = block->next;
    if (block->next)
        block->next->link = block->link;
    sl_budget_uncharge(object->budget, block->size);
    free(block);
}

/* All decompressed sections of a file together, including those that fail, may have inflated_at_least + inflated_per_byte * file size
 * bytes. Without a limit, crafted sections could share their bytes, and a thousand zeros may be compressed to one byte. Real debug sections
 * become three to ten times larger. */
static const uint64_t inflated_at_least = UINT64_C(64) << 20, inflated_per_byte = 64;
enum { BYTES_PER_STEP = 16 };

/* Charges the work of inflating `in` bytes to `out` bytes. False if `out` is 0 or over the limit of a section; if `out` and all that the
 * object inflated before are together over a limit that grows with the size of the file; or if the budget is used up. */
bool object_may_inflate(struct sl_object *object, uint64_t in, uint64_t out)
{
    uint64_t most = inflated_at_least + inflated_per_byte * object->bytes.size;
    if (!out || out > object->max_section_size || out > most - object->inflated ||
        !sl_budget_spend(object->budget, (in + out) / BYTES_PER_STEP))
        return false;
    object->inflated += out;
    return true;
}

/* The work budget follows the size of the file. Decompressed data is more to read, so the budget grows by its size, all together at most by
 * the size of the file. */
void object_grow_budget(struct sl_object *object, uint64_t size)
{
    uint64_t left = object->bytes.size - object->granted;
    size = size < left ? size : left;
    object->granted += size;
    sl_budget_grow(object->budget, size);
}

/* Inflates a stream to at most `size` bytes. Returns the number of bytes; 0 if the stream is damaged or truncated before it filled `out`,
 * or when zlib has no memory. `*ended` is true if the stream ended; false if it goes on after its first `size` bytes, which are in
 * `out`. */
size_t object_inflate(struct sl_bytes in, uint8_t *out, size_t size, int window_bits, bool *ended)
{
    enum { STEP = 1 << 30 }; /* bytes per call: zlib counts with 32 bits */
    z_stream z = {0};
    uint8_t more;
    size_t given = 0, done = 0;
    int state = inflateInit2(&z, window_bits);
    *ended = false;
    if (state != Z_OK)
        return 0;
    while (state == Z_OK) {
        uInt in_step = (uInt)(in.size - given > STEP ? STEP : in.size - given);
        uInt out_step = (uInt)(size - done > STEP ? STEP : size - done);
        /* `out` is full: asks for one more byte. A stream that ends instead is complete; one that yields the byte is too long */
        bool full = !out_step;
        z.next_in = (Bytef *)in.data + given;
        z.avail_in = in_step;
        z.next_out = full ? &more : out + done;
        z.avail_out = full ? 1 : out_step;
        state = inflate(&z, Z_NO_FLUSH);
        given += in_step - z.avail_in;
        *ended = state == Z_STREAM_END && !(full && !z.avail_out);
        if (full)
            break;
        done += out_step - z.avail_out;
    }
    inflateEnd(&z);
    return *ended || done == size ? done : 0;
}

bool object_read_zdebug(struct sl_bytes raw, struct object_compressed *c)
{
    struct sl_reader r = sl_reader(raw, true);
    struct sl_bytes magic = sl_read_bytes(&r, 4);
    uint64_t size = sl_read_u64(&r);
    *c = (struct object_compressed){.stream = sl_read_bytes(&r, sl_reader_left(&r)), .size = size, .zstd = false};
    return !r.failed && memcmp(magic.data, "ZLIB", 4) == 0;
}

struct sl_bytes object_inflate_section(struct sl_object *object, const struct object_compressed *c)
{
    size_t size;
    bool ended;
    uint8_t *out = object_may_inflate(object, c->stream.size, c->size) ? object_block(object, (size_t)c->size) : NULL;
    if (!out)
        return (struct sl_bytes){NULL, 0};
    if (c->zstd) {
        size = ZSTD_decompress(out, (size_t)c->size, c->stream.data, c->stream.size);
        if (ZSTD_isError(size) || size != c->size)
            size = 0;
    } else {
        size = object_inflate(c->stream, out, (size_t)c->size, MAX_WBITS, &ended); /* a longer stream is cut */
    }
    if (size)
        object_grow_budget(object, size);
    else
        object_block_free(object, out);
    return size ? (struct sl_bytes){out, size} : (struct sl_bytes){NULL, 0};
}
