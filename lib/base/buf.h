/* Growing byte buffer, for output files and for building text.
 *
 * Owns its memory (malloc), which may be charged to a budget. When memory or the budget is exhausted `failed` is set and later
 * appends do nothing, so a writer checks once at the end. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

struct sl_buf {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
    struct sl_budget *budget; /* memory is charged to it; NULL = unlimited. May be set only while the buffer is empty */
};

void sl_buf_free(struct sl_buf *buf);

/* Uncharges the buffer's memory and sets `budget` to NULL; the contents stay. For a buffer that outlives its budget. */
void sl_buf_detach_budget(struct sl_buf *buf);

static inline void sl_buf_clear(struct sl_buf *buf)
{
    buf->size = 0;
}

/* The slow path of sl_buf_reserve(): false, with `failed` set, when memory or the budget is exhausted. */
bool sl_buf_grow(struct sl_buf *buf, size_t size);

/* Reserves space for `size` more bytes; false, with `failed` set, when memory or the budget is exhausted, and from then on. */
static inline bool sl_buf_reserve(struct sl_buf *buf, size_t size)
{
    return (size <= buf->capacity - buf->size && !buf->failed) || sl_buf_grow(buf, size);
}

static inline void sl_buf_add(struct sl_buf *buf, const void *data, size_t size)
{
    if (size && sl_buf_reserve(buf, size)) {
        memcpy(buf->data + buf->size, data, size);
        buf->size += size;
    }
}

static inline void sl_buf_str(struct sl_buf *buf, struct sl_str s)
{
    sl_buf_add(buf, s.data, s.size);
}

/* Appends text as UTF-8; ill-formed bytes become U+FFFD. */
void sl_buf_utf8(struct sl_buf *buf, struct sl_str text);
void sl_buf_cstr(struct sl_buf *buf, const char *text);
/* Appends as printf does, without a NUL. */
void sl_buf_printf(struct sl_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_buf_fill(struct sl_buf *buf, uint8_t byte, size_t count);

static inline void sl_buf_u8(struct sl_buf *buf, uint8_t v)
{
    if (buf->size < buf->capacity || sl_buf_reserve(buf, 1))
        buf->data[buf->size++] = v;
}

/* Append an integer: little-endian with a fixed size, or LEB128, unsigned or signed. */
void sl_buf_u16(struct sl_buf *buf, uint16_t v);
void sl_buf_u32(struct sl_buf *buf, uint32_t v);
void sl_buf_u64(struct sl_buf *buf, uint64_t v);
void sl_buf_uleb(struct sl_buf *buf, uint64_t v);
void sl_buf_sleb(struct sl_buf *buf, int64_t v);

/* Appends zero bytes up to a multiple of `align` (a power of two). */
void sl_buf_align(struct sl_buf *buf, size_t align);

/* Appends `size` bytes in lower-case hex. */
void sl_buf_hex(struct sl_buf *buf, const void *data, size_t size);

/* Copies the contents into the arena with a NUL after them; data is NULL when out of memory or if the buffer has failed, and not NULL for
 * an empty buffer. Overwrites the buffer's memory, which may hold secrets, and frees it. */
struct sl_str sl_buf_move_to_arena(struct sl_buf *buf, struct sl_arena *arena);

/* Overwrites the contents, for secrets, and frees the buffer. */
void sl_buf_wipe(struct sl_buf *buf);

/* Appends a number in decimal digits. */
void sl_buf_decimal(struct sl_buf *buf, uint64_t value);

/* Append a number in decimal digits, or (hex) in lower-case hex digits, then the character `end`. */
void sl_buf_number(struct sl_buf *buf, uint64_t value, char end);
void sl_buf_number_hex(struct sl_buf *buf, uint64_t value, char end);

static inline struct sl_bytes sl_buf_bytes(const struct sl_buf *buf)
{
    return (struct sl_bytes){buf->data, buf->size};
}
static inline struct sl_str sl_buf_view(const struct sl_buf *buf)
{
    return (struct sl_str){(const char *)buf->data, buf->size};
}
