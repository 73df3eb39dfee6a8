/* Writes the frames that replace one line of a JVM stack trace. An alternative is one of several call chains the line may stand for. */
#include "jvm/alternatives.h"

#include "base/grow.h"

/* ---- lines ---- */

/* Inserts "<OR> ", R8's mark of a further alternative, into the line of `out` that begins at `begin`: before "at ", or before the first
 * word if the line has no "at ". When out of memory, out->failed is set. */
static void mark_line(struct sl_buf *out, size_t begin)
{
    static const char mark[] = "<OR> ";
    enum { MARK = sizeof mark - 1 };
    size_t size = out->size - begin;
    const char *line = (const char *)out->data + begin, *at = size ? memmem(line, size, "at ", 3) : NULL;
    size_t offset = 0;
    if (at)
        offset = (size_t)(at - line);
    else
        while (offset < size && sl_is_blank(line[offset]))
            offset++;
    if (!sl_buf_reserve(out, MARK))
        return;
    memmove(out->data + begin + offset + MARK, out->data + begin + offset, size - offset);
    memcpy(out->data + begin + offset, mark, MARK);
    out->size += MARK;
}

static bool is_same_frame(const struct sl_jvm_frame *a, const struct sl_jvm_frame *b)
{
    return a->has_line == b->has_line && a->line == b->line && sl_str_equal(a->method, b->method) &&
           sl_str_equal(a->class, b->class) && sl_str_equal(a->type, b->type) &&
           sl_str_equal(a->parameters, b->parameters) && sl_str_equal(a->file, b->file) &&
           sl_str_equal(a->suffix, b->suffix);
}

/* The frames of one alternative: a call chain that the obfuscated line may stand for. */
struct jvm_alternative_chain {
    const struct sl_jvm_frame *frames;
    size_t count;
};

/* Splits the frames into alternatives: adjacent frames with the same number `alternative`. Returns NULL, with `*count` 0 and frames->busy
 * set, when out of memory. */
static struct jvm_alternative_chain *find_chains(struct sl_jvm_frames *frames, size_t *count)
{
    struct jvm_alternative_chain *chains = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i < frames->count; i++) {
        const struct sl_jvm_frame *f = &frames->items[i];
        if (i && f->alternative == f[-1].alternative) {
            chains[*count - 1].count++;
            continue;
        }
        if (!sl_grow_in_arena(frames->arena, &chains, &capacity, *count + 1, sizeof *chains)) {
            frames->busy = true;
            *count = 0;
            return NULL;
        }
        chains[(*count)++] = (struct jvm_alternative_chain){f, 1};
    }
    return chains;
}

/* True if an earlier alternative has the same frame at this depth: it was written already. */
static bool was_before(const struct jvm_alternative_chain *chains, size_t chain, size_t depth)
{
    for (size_t i = 0; i < chain; i++)
        if (depth < chains[i].count && is_same_frame(&chains[i].frames[depth], &chains[chain].frames[depth]))
            return true;
    return false;
}

void sl_jvm_alternatives_put(struct sl_jvm_frames *frames, sl_jvm_put_frame *put, void *arg, struct sl_str end,
                             struct sl_buf *out)
{
    size_t count = frames->count;
    /* no frame, or those of a single alternative */
    if (!count || frames->items[0].alternative == frames->items[count - 1].alternative) {
        for (size_t i = 0; i < count; i++) {
            put(arg, &frames->items[i], out);
            sl_buf_str(out, end);
        }
        return;
    }
    const struct jvm_alternative_chain *chains = find_chains(frames, &count);
    /* the first frames of all alternatives, then their second ones, and so on, as retrace prints them */
    bool any = count > 0;
    for (size_t depth = 0; any; depth++) {
        any = false;
        for (size_t i = 0; i < count; i++) {
            if (depth >= chains[i].count)
                continue;
            any = true;
            frames->steps += i; /* comparisons in was_before() */
            if (was_before(chains, i, depth))
                continue;
            size_t begin = out->size;
            put(arg, &chains[i].frames[depth], out);
            if (i)
                mark_line(out, begin);
            sl_buf_str(out, end);
        }
    }
}

/* ---- limits ---- */

enum {
    PER_STEP = 16,           /* a step of a look-up counts as so many bytes of output */
    MAX_BYTES = 1024 * 1024, /* of the output for one line */
};

bool sl_jvm_output_limit_end(struct sl_jvm_output_limit *a, const struct sl_jvm_frames *frames, size_t bytes)
{
    bool good = !frames->limited && bytes <= MAX_BYTES;
    a->spent += bytes + frames->steps * PER_STEP;
    a->refused += !good;
    return good;
}
