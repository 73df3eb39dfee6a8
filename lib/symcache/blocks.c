/* The blocks of the address map: their entries, delta-coded. */
#include "symcache/encoder.h"

/* Four numbers of up to ten, five, five and five bytes, and the control byte. */
enum { MAX_ENTRY = 26 };

struct state { /* of one block; format.h */
    uint64_t address;
    uint32_t context, highest;
    bool any; /* a context was seen: `highest` counts */
    uint32_t lines[LINE_SLOTS];
};

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static uint8_t *put_uleb(uint8_t *at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)v | 0x80;
    *at++ = (uint8_t)v;
    return at;
}

/* The number, if it is `wanted`. A small one is written anyhow, which takes no branch. */
static inline uint8_t *put_uleb_if(uint8_t *at, uint64_t v, bool wanted)
{
    if ((v >= 0x80) & wanted)
        return put_uleb(at, v);
    *at = (uint8_t)v;
    return at + wanted;
}

static uint8_t *put_location(uint8_t *at, const struct encoder *e, struct state *s, const struct op *op)
{
    uint32_t context = e->contexts.id[op->context], *slot = &s->lines[context % LINE_SLOTS];
    int64_t line_delta = (int64_t)op->line - *slot, context_delta = (int64_t)context - s->context;
    bool fresh = s->any & (context == s->highest + 1);
    bool other_file = op->file != e->w->contexts[op->context].file;
    bool small = line_delta >= -LINE_BIAS && line_delta < LINE_ESCAPE - LINE_BIAS;
    bool same = s->any & (context_delta == 0), delta = !(fresh | same);
    unsigned control = CONTEXT_DELTA + fresh - same; /* which it is cannot be guessed: no branches */
    control |= other_file ? CONTROL_FILE : 0;
    control |= (unsigned)(small ? line_delta + LINE_BIAS : LINE_ESCAPE) << LINE_SHIFT;
    *at++ = (uint8_t)control;
    at = put_uleb_if(at, zigzag(context_delta), delta);
    if (other_file)
        at = put_uleb(at, file_plus_one(e, op->file));
    if (!small)
        at = put_uleb(at, zigzag(line_delta));
    *slot = op->line;
    s->context = context;
    s->highest = !s->any || context > s->highest ? context : s->highest;
    s->any = true;
    return at;
}

void symcache_write_block(const void *arg, size_t block, struct sl_buf *out)
{
    const struct encoder *e = arg;
    size_t first = block * BLOCK_ENTRIES,
           end = first + BLOCK_ENTRIES < e->op_count ? first + BLOCK_ENTRIES : e->op_count;
    struct state state = {0};
    if (!sl_buf_reserve(out, BLOCK_ENTRIES * MAX_ENTRY))
        return;
    uint8_t *at = out->data + out->size;
    for (size_t i = first; i < end; i++) {
        const struct op *op = &e->ops[i];
        if (i > first)
            at = put_uleb(at, op->address - state.address);
        state.address = op->address;
        if (op->kind == OP_HOLE)
            *at++ = CONTEXT_HOLE;
        else
            at = put_location(at, e, &state, op);
    }
    out->size = (size_t)(at - out->data);
}
