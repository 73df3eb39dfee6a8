#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sl_buf_free(struct sl_buf *buf)
{
    sl_budget_uncharge(buf->budget, buf->capacity);
    free(buf->data);
    *buf = (struct sl_buf){.budget = buf->budget};
}

void sl_buf_detach_budget(struct sl_buf *buf)
{
    sl_budget_uncharge(buf->budget, buf->capacity);
    buf->budget = NULL;
}

bool sl_buf_grow(struct sl_buf *buf, size_t size)
{
    if (buf->failed)
        return false;
    size_t need, capacity = buf->capacity ? buf->capacity + buf->capacity / 2 : 256;
    if (__builtin_add_overflow(buf->size, size, &need)) {
        buf->failed = true;
        return false;
    }
    if (capacity < need)
        capacity = need;
    uint8_t *data = NULL;
    if (sl_budget_charge(buf->budget, capacity - buf->capacity) && !(data = realloc(buf->data, capacity)))
        sl_budget_uncharge(buf->budget, capacity - buf->capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void sl_buf_cstr(struct sl_buf *buf, const char *text)
{
    sl_buf_add(buf, text, strlen(text));
}

void sl_buf_printf(struct sl_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && sl_buf_reserve(buf, (size_t)length + 1)) { /* + 1: vsnprintf() adds a NUL */
        vsnprintf((char *)buf->data + buf->size, (size_t)length + 1, format, again);
        buf->size += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void sl_buf_fill(struct sl_buf *buf, uint8_t byte, size_t count)
{
    if (count && sl_buf_reserve(buf, count)) {
        memset(buf->data + buf->size, byte, count);
        buf->size += count;
    }
}

/* Appends the lowest `size` bytes of `v`, lowest first. */
static void add_little(struct sl_buf *buf, uint64_t v, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    sl_buf_add(buf, bytes, size);
}

void sl_buf_u16(struct sl_buf *buf, uint16_t v)
{
    add_little(buf, v, 2);
}
void sl_buf_u32(struct sl_buf *buf, uint32_t v)
{
    add_little(buf, v, 4);
}
void sl_buf_u64(struct sl_buf *buf, uint64_t v)
{
    add_little(buf, v, 8);
}

/* Appends an unsigned LEB128 number: 7 bits in each byte, the lowest first; 0x80 marks that more follow. */
void sl_buf_uleb(struct sl_buf *buf, uint64_t v)
{
    while (v >= 0x80) {
        sl_buf_u8(buf, (uint8_t)v | 0x80);
        v >>= 7;
    }
    sl_buf_u8(buf, (uint8_t)v);
}

/* Appends a signed LEB128 number. */
void sl_buf_sleb(struct sl_buf *buf, int64_t v)
{
    for (;;) {
        uint8_t byte = (uint8_t)v & 0x7F;
        v >>= 7;
        /* this byte is the last one if all bits above it are copies of its sign bit (0x40) */
        bool last = (v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40));
        sl_buf_u8(buf, last ? byte : byte | 0x80);
        if (last)
            return;
    }
}

void sl_buf_align(struct sl_buf *buf, size_t align)
{
    sl_buf_fill(buf, 0, (size_t)-buf->size & (align - 1));
}

void sl_buf_hex(struct sl_buf *buf, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    if (size > SIZE_MAX / 2 || !sl_buf_reserve(buf, size * 2))
        return;
    for (size_t i = 0; i < size; i++) {
        buf->data[buf->size++] = (uint8_t)digits[bytes[i] >> 4];
        buf->data[buf->size++] = (uint8_t)digits[bytes[i] & 15];
    }
}

struct sl_str sl_buf_move_to_arena(struct sl_buf *buf, struct sl_arena *arena)
{
    struct sl_str kept = {NULL, 0};
    char *copy = buf->failed ? NULL : sl_arena_strndup(arena, buf->size ? (const char *)buf->data : "", buf->size);
    if (copy)
        kept = (struct sl_str){copy, buf->size};
    sl_buf_wipe(buf);
    return kept;
}

void sl_buf_wipe(struct sl_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->capacity);
    sl_buf_free(buf);
}

void sl_buf_decimal(struct sl_buf *buf, uint64_t value)
{
    char digits[20]; /* filled from its end: the last digit is computed first */
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    sl_buf_add(buf, digits + at, sizeof digits - at);
}

void sl_buf_number(struct sl_buf *buf, uint64_t value, char end)
{
    char digits[21]; /* filled from its end: `end`, then the last digit first */
    size_t at = sizeof digits;
    digits[--at] = end;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    sl_buf_add(buf, digits + at, sizeof digits - at);
}

/* Appends a number in lower-case hex digits, then the character `end`. */
void sl_buf_number_hex(struct sl_buf *buf, uint64_t value, char end)
{
    char digits[17]; /* filled from its end: `end`, then the last digit first */
    size_t at = sizeof digits;
    digits[--at] = end;
    do
        digits[--at] = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    sl_buf_add(buf, digits + at, sizeof digits - at);
}
