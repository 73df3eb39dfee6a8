#include "base/bytes.h"

int sl_str_compare(struct sl_str a, struct sl_str b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

int sl_str_order(const void *left, const void *right)
{
    return sl_str_compare(*(const struct sl_str *)left, *(const struct sl_str *)right);
}

static unsigned char bytes_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool sl_str_equal_nocase(struct sl_str a, struct sl_str b)
{
    if (a.size != b.size)
        return false;
    if (!a.size || memcmp(a.data, b.data, a.size) == 0) /* fast, and mostly true */
        return true;
    for (size_t i = 0; i < a.size; i++)
        if (bytes_lower(a.data[i]) != bytes_lower(b.data[i]))
            return false;
    return true;
}

struct sl_str sl_str_trimmed(struct sl_str text)
{
    while (text.size && sl_is_blank(text.data[0]))
        text = (struct sl_str){text.data + 1, text.size - 1};
    while (text.size && sl_is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

bool sl_parse_u64(struct sl_str digits, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < digits.size; i++) {
        unsigned digit = (unsigned)digits.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *value = v;
    return digits.size != 0;
}

/* Parses hex digits and nothing else, without a prefix; false for any other text and above 64 bits. */
bool sl_parse_hex_u64(struct sl_str digits, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < digits.size; i++) {
        int digit = sl_hex_digit(digits.data[i]);
        /* another digit would push bits out at the top */
        if (digit < 0 || v >> 60)
            return false;
        v = v << 4 | (uint64_t)digit;
    }
    *value = v;
    return digits.size != 0;
}

bool sl_str_take_u64(struct sl_str *rest, uint64_t *value)
{
    struct sl_str digits = {rest->data, 0};
    while (digits.size < rest->size && sl_is_digit(rest->data[digits.size]))
        digits.size++;
    *rest = (struct sl_str){rest->data + digits.size, rest->size - digits.size};
    return sl_parse_u64(digits, value);
}

bool sl_str_next_line(struct sl_str *rest, struct sl_str *line)
{
    if (!rest->size)
        return false;
    const char *newline = memchr(rest->data, '\n', rest->size);
    size_t size = newline ? (size_t)(newline - rest->data) : rest->size, taken = size + (newline != NULL);
    *line = (struct sl_str){rest->data, size - (size && rest->data[size - 1] == '\r')};
    *rest = (struct sl_str){rest->data + taken, rest->size - taken};
    return true;
}

bool sl_str_starts(struct sl_str text, struct sl_str prefix)
{
    return text.size >= prefix.size && (prefix.size == 0 || memcmp(text.data, prefix.data, prefix.size) == 0);
}

bool sl_str_ends(struct sl_str text, struct sl_str suffix)
{
    return text.size >= suffix.size &&
           (suffix.size == 0 || memcmp(text.data + (text.size - suffix.size), suffix.data, suffix.size) == 0);
}

struct sl_bytes sl_bytes_slice(struct sl_bytes bytes, uint64_t offset, uint64_t size, bool *ok)
{
    bool inside = offset <= bytes.size && size <= bytes.size - offset;
    if (ok)
        *ok = inside;
    if (!inside)
        return (struct sl_bytes){NULL, 0};
    return (struct sl_bytes){bytes.data ? bytes.data + offset : NULL, (size_t)size};
}

void sl_reader_seek(struct sl_reader *r, uint64_t offset)
{
    if (offset <= (uint64_t)(r->end - r->begin) && !r->failed) {
        r->at = r->begin ? r->begin + offset : NULL;
    } else {
        r->failed = true;
        r->at = r->end;
    }
}

void sl_reader_skip(struct sl_reader *r, uint64_t count)
{
    if (count > SIZE_MAX)
        count = SIZE_MAX;
    if (sl_reader_need(r, (size_t)count) && count) /* r->at is NULL if there are no bytes at all */
        r->at += count;
}

uint64_t sl_read_uint(struct sl_reader *r, unsigned size)
{
    switch (size) {
    case 1: return sl_read_u8(r);
    case 2: return sl_read_u16(r);
    case 4: return sl_read_u32(r);
    case 8: return sl_read_u64(r);
    case 3: {
        if (!sl_reader_need(r, 3))
            return 0;
        const uint8_t *p = r->at;
        r->at += 3;
        return r->big_endian ? (uint32_t)p[0] << 16 | p[1] << 8 | p[2] : (uint32_t)p[2] << 16 | p[1] << 8 | p[0];
    }
    default:
        r->failed = true;
        r->at = r->end;
        return 0;
    }
}

/* Reads an unsigned LEB128 number; fails if it has more than ten bytes or does not fit into 64 bits. */
uint64_t sl_read_uleb_slow(struct sl_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (!sl_reader_need(r, 1))
            return 0;
        uint8_t byte = *r->at++;
        if (shift == 63 && (byte & 0x7E)) /* only bit 63 is left for the tenth byte */
            break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->failed = true;
    r->at = r->end;
    return 0;
}

/* Reads a signed LEB128 number (DWARF 5, section 7.6); fails if it has more than ten bytes or does not fit into 64 bits. */
int64_t sl_read_sleb(struct sl_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (!sl_reader_need(r, 1))
            return 0;
        uint8_t byte = *r->at++;
        /* the tenth byte has bit 63 only; its other bits must repeat the sign */
        if (shift == 63 && (byte & 0x7F) != 0 && (byte & 0x7F) != 0x7F)
            break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            if (shift + 7 < 64 && (byte & 0x40)) /* extends the sign */
                value |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)value;
        }
    }
    r->failed = true;
    r->at = r->end;
    return 0;
}

struct sl_bytes sl_read_bytes(struct sl_reader *r, uint64_t size)
{
    if (size > SIZE_MAX || !sl_reader_need(r, (size_t)size)) {
        r->failed = true;
        r->at = r->end;
        return (struct sl_bytes){NULL, 0};
    }
    struct sl_bytes bytes = {r->at, (size_t)size};
    if (size) /* r->at is NULL if there are no bytes at all */
        r->at += size;
    return bytes;
}

struct sl_str sl_read_cstr(struct sl_reader *r)
{
    size_t left = r->failed ? 0 : sl_reader_left(r);
    const uint8_t *nul = left ? memchr(r->at, 0, left) : NULL;
    if (!nul) {
        r->failed = true;
        r->at = r->end;
        return (struct sl_str){NULL, 0};
    }
    struct sl_str text = {(const char *)r->at, (size_t)(nul - r->at)};
    r->at = nul + 1;
    return text;
}

struct sl_str sl_cstr_at(struct sl_bytes table, uint64_t offset)
{
    if (offset >= table.size)
        return (struct sl_str){NULL, 0};
    const uint8_t *start = table.data + offset;
    const uint8_t *nul = memchr(start, 0, table.size - (size_t)offset);
    return nul ? (struct sl_str){(const char *)start, (size_t)(nul - start)} : (struct sl_str){NULL, 0};
}
