/* Decodes the messages of a symbfile that have the usual form, without allocating; others are left to protobuf-c. */
#include "symbfile/columns.h"

#include <stdlib.h>

/* Protocol Buffers, "Encoding": a tag is field number << 3 | wire type. All tags here have one byte.
 * Wire types: VARINT is an integer in 7-bit groups, BYTES a size and that many bytes (text, message or packed list). */
enum { VARINT = 0, BYTES = 2 };
#define TAG(field, kind) ((field) << 3 | (kind))

/* Memory for this many numbers is kept from message to message; a larger array is freed at the next message that fits into the kept
 * size. */
enum { KEEP_NUMBERS = 64 * 1024 };

struct cursor {
    const uint8_t *at, *end;
};

void columns_free(struct columns *c)
{
    free(c->numbers);
    *c = (struct columns){0};
}

/* Reserves memory for all numbers that a message of `size` bytes can have: each takes at least one byte. False when out of memory; then the
 * caller lets protobuf-c decode the message. */
static bool columns_reserve(struct columns *c, size_t size)
{
    /* an array of more than KEEP_NUMBERS is not kept for a smaller message, but replaced by one of KEEP_NUMBERS */
    if (size <= c->capacity && (c->capacity <= KEEP_NUMBERS || size > KEEP_NUMBERS))
        return true;
    size_t capacity = size > KEEP_NUMBERS ? size : KEEP_NUMBERS;
    free(c->numbers);
    c->numbers = malloc(capacity * sizeof *c->numbers);
    c->capacity = c->numbers ? capacity : 0;
    return c->numbers;
}

/* Reads a number of at most nine bytes, in its shortest encoding. False for other encodings, which the caller leaves to protobuf-c. */
static inline bool read_u64(struct cursor *c, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 63 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        sum |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = sum;
            /* a last byte of 0 only lengthens the number */
            return byte || !shift;
        }
    }
    return false;
}

/* Reads a number that fits into 32 bits; false for others. The first branch is for one byte, the most frequent case. */
static inline bool read_u32(struct cursor *c, uint32_t *value)
{
    if (c->at < c->end && *c->at < 0x80) {
        *value = *c->at++;
        return true;
    }
    uint64_t wide;
    if (!read_u64(c, &wide) || wide > UINT32_MAX)
        return false;
    *value = (uint32_t)wide;
    return true;
}

/* Reads a size and sets `*inner` to the bytes that follow; `*c` moves past them. False if there are fewer. */
static inline bool read_bytes(struct cursor *c, struct cursor *inner)
{
    uint32_t size;
    if (!read_u32(c, &size) || size > (size_t)(c->end - c->at))
        return false;
    *inner = (struct cursor){c->at, c->at + size};
    c->at += size;
    return true;
}

/* Reads a text field, as a view of the message. */
static inline bool read_text(struct cursor *c, ProtobufCBinaryData *text)
{
    struct cursor inner;
    if (!read_bytes(c, &inner))
        return false;
    *text = (ProtobufCBinaryData){(size_t)(inner.end - inner.at), (uint8_t *)(uintptr_t)inner.at};
    return true;
}

/* Reads a signed number. */
static inline bool read_delta(struct cursor *c, int64_t *delta)
{
    uint64_t value;
    if (!read_u64(c, &value))
        return false;
    *delta = (int64_t)(value >> 1 ^ -(value & 1)); /* zigzag */
    return true;
}

/* Reads a packed list: appends its numbers at `*next`, which moves, and sets `*list` to the first. columns_reserve() has made room.
 * False if it is malformed, or if the message had this list before: a list that comes in pieces is left to protobuf-c. */
static inline bool read_list(struct cursor *c, uint32_t **next, uint32_t **list, size_t *count)
{
    struct cursor inner;
    uint32_t *at = *next;
    if (*count || !read_bytes(c, &inner))
        return false;
    while (inner.at < inner.end)
        if (!read_u32(&inner, at++))
            return false;
    *list = *next;
    *count = (size_t)(at - *next);
    *next = at;
    return true;
}

/* Reads the line table, a message with two packed lists; their numbers are stored in c->numbers, one list after the other. False if it is
 * not in the usual form. */
static bool read_line_table(struct columns *c, struct cursor *outer, Symbfile__RangeV1 *m)
{
    struct cursor inner;
    uint32_t *next = c->numbers;
    if (m->linetable || !read_bytes(outer, &inner))
        return false;
    Symbfile__LineTable *table = m->linetable = &c->line_table;
    *table = (Symbfile__LineTable)SYMBFILE__LINE_TABLE__INIT;
    while (inner.at < inner.end) {
        bool good = false;
        switch (*inner.at++) {
        case TAG(1, BYTES): good = read_list(&inner, &next, &table->offset, &table->n_offset); break;
        case TAG(2, BYTES): good = read_list(&inner, &next, &table->linenumber, &table->n_linenumber); break;
        }
        if (!good)
            return false;
    }
    return true;
}

/* Reads the next field; field numbers as in proto/symbfile.proto. Members `..._case` tell which member of a oneof is set. False if the
 * field is not known or not in its usual form. */
static inline bool read_range_field(struct columns *columns, struct cursor *c, Symbfile__RangeV1 *m)
{
    switch (*c->at++) {
    case TAG(1, VARINT): m->elf_va_case = SYMBFILE__RANGE_V1__ELF_VA_DELTA_ELF_VA; return read_delta(c, &m->deltaelfva);
    case TAG(12, VARINT): m->elf_va_case = SYMBFILE__RANGE_V1__ELF_VA_SET_ELF_VA; return read_u64(c, &m->setelfva);
    case TAG(2, VARINT): return read_u64(c, &m->length);
    case TAG(3, BYTES): m->func_case = SYMBFILE__RANGE_V1__FUNC_FUNC_STR; return read_text(c, &m->funcstr);
    case TAG(9, VARINT): m->func_case = SYMBFILE__RANGE_V1__FUNC_FUNC_REF; return read_u32(c, &m->funcref);
    case TAG(4, BYTES): m->file_case = SYMBFILE__RANGE_V1__FILE_FILE_STR; return read_text(c, &m->filestr);
    case TAG(10, VARINT): m->file_case = SYMBFILE__RANGE_V1__FILE_FILE_REF; return read_u32(c, &m->fileref);
    case TAG(5, VARINT): return read_u32(c, &m->callline);
    case TAG(6, BYTES):
        m->call_file_case = SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_STR;
        return read_text(c, &m->callfilestr);
    case TAG(11, VARINT):
        m->call_file_case = SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_REF;
        return read_u32(c, &m->callfileref);
    case TAG(7, VARINT): return read_u32(c, &m->depth);
    case TAG(8, BYTES): return read_line_table(columns, c, m);
    default: return false;
    }
}

bool columns_read_range(struct columns *columns, struct sl_bytes body, Symbfile__RangeV1 *m)
{
    struct cursor c = {body.data, body.data + body.size};
    symbfile__range_v1__init(m);
    if (!columns_reserve(columns, body.size))
        return false;
    while (c.at < c.end)
        if (!read_range_field(columns, &c, m))
            return false;
    return true;
}

/* True if `*m` is filled, its lists in `columns`; false if the message must be decoded by protobuf-c. */
bool columns_read_pad(struct columns *columns, struct sl_bytes body, Symbfile__ReturnPadV1 *m)
{
    struct cursor c = {body.data, body.data + body.size};
    symbfile__return_pad_v1__init(m);
    if (!columns_reserve(columns, body.size))
        return false;
    uint32_t *next = columns->numbers;
    /* fields 1 and 5 are the address (as difference or absolute), 2 to 4 the lists of frames */
    while (c.at < c.end) {
        bool good = false;
        switch (*c.at++) {
        case TAG(1, VARINT):
            m->elf_va_case = SYMBFILE__RETURN_PAD_V1__ELF_VA_DELTA_ELF_VA;
            good = read_delta(&c, &m->deltaelfva);
            break;
        case TAG(5, VARINT):
            m->elf_va_case = SYMBFILE__RETURN_PAD_V1__ELF_VA_SET_ELF_VA;
            good = read_u64(&c, &m->setelfva);
            break;
        case TAG(2, BYTES): good = read_list(&c, &next, &m->func, &m->n_func); break;
        case TAG(3, BYTES): good = read_list(&c, &next, &m->file, &m->n_file); break;
        case TAG(4, BYTES): good = read_list(&c, &next, &m->line, &m->n_line); break;
        }
        if (!good)
            return false;
    }
    return true;
}
