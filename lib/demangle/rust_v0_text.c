/* Lexer and output for the reader of Rust's v0 names. */
#include "demangle/rust_v0.h"

#include <stdio.h>

enum { MAX_DEPTH = 160 }; /* limit of the recursion, and so of the stack */

void v0_fail(struct rust_v0_printer *v)
{
    v->failed = true;
}

/* ---- lexer ---- */

char v0_peek(const struct rust_v0_printer *v)
{
    return !v->failed && v->at < v->text.size ? v->text.data[v->at] : '\0';
}

/* Takes the next character. Returns NUL, with v->failed set, at the end or after MAX_STEPS characters: back references are read again each
 * time they are followed. */
char v0_next(struct rust_v0_printer *v)
{
    char c = v0_peek(v);
    if (!c || ++v->steps > MAX_STEPS)
        v0_fail(v);
    else
        v->at++;
    return v->failed ? '\0' : c;
}

bool v0_eat(struct rust_v0_printer *v, char c)
{
    if (v0_peek(v) != c)
        return false;
    v0_next(v);
    return !v->failed;
}

bool v0_enter(struct rust_v0_printer *v)
{
    if (++v->depth > MAX_DEPTH)
        v0_fail(v);
    return !v->failed;
}

void v0_leave(struct rust_v0_printer *v)
{
    v->depth--;
}

/* Returns the value of a digit in base 62; 62 for other characters. */
static unsigned base62_digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
                                  : 62;
}

uint64_t v0_base62(struct rust_v0_printer *v)
{
    const char *digits = v->text.data + v->at, *end = v->text.data + v->text.size, *c = digits;
    uint64_t value = 0;
    bool over = false;
    for (; !v->failed && c < end && *c != '_' && !over; c++) {
        unsigned digit = base62_digit(*c);
        over = digit == 62 || __builtin_mul_overflow(value, 62, &value) || __builtin_add_overflow(value, digit, &value);
    }
    bool none = c == digits; /* `_` alone is 0; other numbers are one more than their digits say */
    v->steps += (unsigned)(c - digits) + 1;
    if (v->failed || over || c == end || (!none && value == UINT64_MAX) || v->steps > MAX_STEPS) {
        v0_fail(v);
        return 0;
    }
    v->at += (size_t)(c - digits) + 1;
    return none ? 0 : value + 1;
}

uint64_t v0_optional62(struct rust_v0_printer *v, char tag)
{
    if (!v0_eat(v, tag))
        return 0;
    uint64_t value = v0_base62(v);
    if (value == UINT64_MAX)
        v0_fail(v);
    return value + 1;
}

struct sl_str v0_hex_digits(struct rust_v0_printer *v)
{
    size_t start = v->at;
    for (char c = v0_next(v); !v->failed && c != '_'; c = v0_next(v))
        if (sl_hex_digit(c) < 0 || (c >= 'A' && c <= 'F'))
            v0_fail(v);
    return v->failed ? (struct sl_str){"", 0} : (struct sl_str){v->text.data + start, v->at - 1 - start};
}

/* ---- output ---- */

/* Appends the text, or fails if the output would exceed its limit; does nothing if there is no output (v->out NULL). */
void v0_put(struct rust_v0_printer *v, struct sl_str text)
{
    if (!v->out || v->failed)
        return;
    if (text.size > v->end - v->out->size)
        v0_fail(v);
    else
        sl_buf_str(v->out, text);
}

void v0_write(struct rust_v0_printer *v, const char *text)
{
    if (*text)
        v0_put(v, sl_str(text));
}

void v0_put_number(struct rust_v0_printer *v, uint64_t value)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    v0_put(v, (struct sl_str){text, (size_t)size});
}

void v0_put_char(struct rust_v0_printer *v, uint32_t c)
{
    char text[4];
    v0_put(v, (struct sl_str){text, sl_utf8_encode(c, text)});
}

void v0_put_escaped(struct rust_v0_printer *v, uint32_t c, char quote)
{
    static const struct {
        uint32_t c;
        const char *text;
    } escapes[] = {{0, "\\0"}, {'\t', "\\t"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\\', "\\\\"}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (escapes[i].c == c) {
            v0_write(v, escapes[i].text);
            return;
        }
    if (c < 0x20 || c == 0x7F) {
        char text[16];
        snprintf(text, sizeof text, "\\u{%x}", c);
        v0_write(v, text);
        return;
    }
    if (c == (uint32_t)quote)
        v0_write(v, "\\");
    v0_put_char(v, c);
}
