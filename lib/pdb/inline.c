/* Binary annotations: the line program of one inlined call (CVInlineeBinaryAnnotations of cvinfo.h).
 *
 * Numbers are compressed: 0xxxxxxx one byte, 10xxxxxx two, 110xxxxx four, big-endian; signed ones keep the sign in bit 0. */
#include "pdb/impl.h"

enum annotation {
    END,
    CODE_OFFSET,
    CODE_BASE,
    CODE_DELTA,
    CODE_LENGTH,
    CHANGE_FILE,
    LINE_DELTA,
    LINE_END_DELTA,
    RANGE_KIND,
    COLUMN_START,
    COLUMN_END_DELTA,
    CODE_AND_LINE_DELTA,
    CODE_LENGTH_AND_DELTA,
    COLUMN_END,
};

/* Registers of the line program. */
struct pdb_inline_state {
    uint32_t offset, base, file, line; /* the code offset of a line is offset + base */
    uint32_t length, kind;             /* of the next line; kind: 0 expression, 1 statement */
    bool has_length;                   /* `length` is set */
    uint32_t last_kind;                /* kind of the last line */
};

/* Reads a compressed number of 7, 14 or 29 bits, big-endian: 0xxxxxxx; 10xxxxxx and 1 byte; 110xxxxx and 3 bytes. Sets r->failed if its
 * first bits are 111. */
static uint32_t inline_number(struct sl_reader *r)
{
    uint8_t first = sl_read_u8(r);
    if (!(first & 0x80))
        return first;
    if (!(first & 0x40))
        return (uint32_t)(first & 0x3F) << 8 | sl_read_u8(r);
    if (first & 0x20)
        r->failed = true;
    uint32_t value = (uint32_t)(first & 0x1F) << 24;
    value |= (uint32_t)sl_read_u8(r) << 16;
    value |= (uint32_t)sl_read_u8(r) << 8;
    return value | sl_read_u8(r);
}

/* Decodes a signed number: bit 0 is the sign. */
static uint32_t sign(uint32_t value)
{
    return value & 1 ? 0 - (value >> 1) : value >> 1;
}

/* Appends a line with the values of the registers to t->raw. The line before it, if it has no length yet, ends where this one begins,
 * unless one is a statement and the other an expression. False when out of memory. */
static bool inline_emit(struct pdb_line_table *t, struct pdb_inline_state *s)
{
    uint32_t at = s->offset + s->base;
    struct raw_line *last = t->raw_count ? &t->raw[t->raw_count - 1] : NULL;
    if (last && !last->size && s->last_kind == s->kind && at > last->offset)
        last->size = at - last->offset;
    struct raw_line line = {.offset = at, .size = s->has_length ? s->length : 0, .file = s->file, .line = s->line};
    s->has_length = false;
    s->last_kind = s->kind;
    return raw_lines_add(t, line);
}

/* Executes an operation of the line program. False when out of memory, and for an unknown operation: the number of its operands is unknown,
 * so reading cannot go on. */
static bool inline_apply(struct pdb_line_table *t, struct pdb_inline_state *s, uint32_t op, struct sl_reader *r)
{
    uint32_t value = inline_number(r);
    switch (op) {
    case CODE_OFFSET: s->offset = value; return true;
    case CODE_BASE: s->base = value; return true;
    case CODE_DELTA: s->offset += value; return inline_emit(t, s);
    case CODE_LENGTH:
        if (t->raw_count && !t->raw[t->raw_count - 1].size) /* of the last line */
            t->raw[t->raw_count - 1].size = value;
        s->offset += value;
        return true;
    case CHANGE_FILE: s->file = value; return true;
    case LINE_DELTA: s->line += sign(value); return true; /* sign(): the lowest bit is the sign */
    case RANGE_KIND: s->kind = value; return true;
    case LINE_END_DELTA: /* ends of lines, and columns, are not used */
    case COLUMN_START:
    case COLUMN_END_DELTA:
    case COLUMN_END: return true;
    case CODE_AND_LINE_DELTA:
        /* The low four bits are the code offset, the others the change of the line. */
        s->offset += value & 15;
        s->line += sign(value >> 4);
        return inline_emit(t, s);
    case CODE_LENGTH_AND_DELTA:
        s->length = value;
        s->has_length = true;
        s->offset += inline_number(r);
        return inline_emit(t, s);
    default: return false;
    }
}

/* Runs the line program of an inlined call, which begins at the code offset `start` of its procedure and in the first line of the inlined
 * function. A line whose length is unknown at the end gets 1 byte. False when the program is malformed, or when out of memory. */
bool inline_lines(struct pdb_line_table *t, const struct inlinee *inlinee, uint32_t start, struct sl_bytes annotations)
{
    struct sl_reader r = sl_reader(annotations, false);
    /* kind 1: lines are statements until the program changes that */
    struct pdb_inline_state s = {
        .offset = start, .file = inlinee->file, .line = inlinee->line, .kind = 1, .last_kind = 1};
    t->raw_count = 0;
    while (sl_reader_left(&r)) {
        uint32_t op = inline_number(&r);
        if (op == END && !r.failed)
            break;
        if (r.failed || !inline_apply(t, &s, op, &r) || r.failed)
            return false;
    }
    for (size_t i = 0; i < t->raw_count; i++)
        if (!t->raw[i].size)
            t->raw[i].size = 1;
    return true;
}
