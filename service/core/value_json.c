/* JSON into trees of values, and back. */
#include <stdlib.h>
#include <string.h>

#include "core/value.h"

enum { MAX_LEVELS = 128, MAX_VALUES = 8 << 20 };

struct child { /* of a container that is not complete yet */
    struct sl_str key;
    struct value value;
};

struct parser {
    struct sl_arena *arena;
    char *begin, *at, *end; /* a copy of the text, with a NUL behind it */
    char *line_start;
    uint32_t line;
    struct child *children; /* of all open containers, innermost last */
    size_t count, capacity, values;
    const char *why; /* what is wrong at `at` */
};

static bool fail(struct parser *p, const char *why)
{
    p->why = p->why ? p->why : why;
    return false;
}

static void skip_space(struct parser *p)
{
    for (;; p->at++) {
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return;
        }
    }
}

/* ---- strings ---- */
static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool read_hex4(const char *at, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

/* At the `u` of an escape. Half a surrogate pair becomes U+FFFD. */
static bool read_unicode(struct parser *p, char **to)
{
    uint32_t c, low;
    if (!read_hex4(p->at + 1, &c))
        return fail(p, "invalid escape");
    p->at += 5;
    if (c >= 0xD800 && c < 0xDC00 && p->at[0] == '\\' && p->at[1] == 'u' && read_hex4(p->at + 2, &low) &&
        low >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c & 0x3FF) << 10) + (low & 0x3FF);
        p->at += 6;
    } else if (c >= 0xD800 && c < 0xE000) {
        c = 0xFFFD;
    }
    *to = put_utf8(*to, c);
    return true;
}

static bool read_escape(struct parser *p, char **to)
{
    static const char plain[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    char c = *++p->at;
    if (c == 'u')
        return read_unicode(p, to);
    if (!plain[(uint8_t)c])
        return fail(p, "invalid escape");
    *(*to)++ = plain[(uint8_t)c];
    p->at++;
    return true;
}

/* Escapes only shrink a string: it is decoded where it stands. */
static bool read_string(struct parser *p, struct sl_str *out)
{
    static const bool special[256] = {['"'] = true, ['\\'] = true, [0 ... 0x1F] = true};
    char *start = ++p->at, *to = start;
    bool plain = true;
    uint8_t seen = 0; /* all bits of all bytes: ASCII needs no further look */
    for (;;) {
        char *from = p->at;
        for (; !special[(uint8_t)*p->at]; p->at++)
            seen |= (uint8_t)*p->at;
        if (plain)
            to = p->at;
        else
            to = (char *)memmove(to, from, (size_t)(p->at - from)) + (p->at - from);
        if (*p->at == '"')
            break;
        if (*p->at != '\\')
            return fail(p, p->at == p->end ? "the document ends too early" : "control character in a string");
        plain = false;
        if (!read_escape(p, &to))
            return false;
    }
    *out = (struct sl_str){start, (size_t)(to - start)};
    if ((seen & 0x80) && !sl_str_is_utf8(*out))
        return fail(p, "invalid UTF-8");
    p->at++;
    *to = '\0'; /* at most where the closing quote was */
    return true;
}

/* ---- numbers ---- */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct parser *p)
{
    if (!is_digit(*p->at))
        return fail(p, "invalid number");
    while (is_digit(*p->at))
        p->at++;
    return true;
}

static bool read_integer(struct parser *p, struct value *out, const char *digits)
{
    uint64_t v = 0;
    for (; is_digit(*digits); digits++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(*digits - '0'), &v))
            return fail(p, "number out of range");
    if (out->negative && v > UINT64_C(1) << 63)
        return fail(p, "number out of range");
    out->type = VALUE_INT;
    out->negative = out->negative && v > 0;
    out->integer = v;
    out->number = out->negative ? -(double)v : (double)v;
    return true;
}

static bool read_number(struct parser *p, struct value *out)
{
    char *start = p->at;
    out->negative = *p->at == '-';
    p->at += out->negative;
    char *digits = p->at;
    if (!skip_digits(p))
        return false;
    if (*digits == '0' && p->at > digits + 1)
        return fail(p, "invalid number");
    bool integer = *p->at != '.' && (*p->at | 32) != 'e';
    if (*p->at == '.') {
        p->at++;
        if (!skip_digits(p))
            return false;
    }
    if ((*p->at | 32) == 'e') {
        p->at += p->at[1] == '+' || p->at[1] == '-' ? 2 : 1;
        if (!skip_digits(p))
            return false;
    }
    out->string = (struct sl_str){start, (size_t)(p->at - start)};
    if (integer)
        return read_integer(p, out, digits);
    out->type = VALUE_DOUBLE;
    out->negative = false;
    out->number = strtod(start, NULL);
    return true;
}

/* ---- containers ---- */
static bool read_value(struct parser *p, struct value *out, unsigned level);

static bool push(struct parser *p, const struct child *child)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 32;
        struct child *grown = realloc(p->children, capacity * sizeof *grown);
        if (!grown)
            return fail(p, "out of memory");
        p->children = grown;
        p->capacity = capacity;
    }
    p->children[p->count++] = *child;
    return true;
}

/* Moves the children from `base` on to where they stay. */
static bool close_container(struct parser *p, struct value *out, size_t base)
{
    size_t count = p->count - base;
    const struct child *children = count ? p->children + base : NULL;
    out->items = sl_arena_alloc(p->arena, count * sizeof *out->items, _Alignof(struct value));
    out->keys =
        out->type == VALUE_MAP ? sl_arena_alloc(p->arena, count * sizeof *out->keys, _Alignof(struct sl_str)) : NULL;
    if (!out->items || (out->type == VALUE_MAP && !out->keys))
        return fail(p, "out of memory");
    for (size_t i = 0; i < count; i++) {
        out->items[i] = children[i].value;
        if (out->keys)
            out->keys[i] = children[i].key;
    }
    out->count = count;
    p->count = base;
    return true;
}

static bool read_key(struct parser *p, struct sl_str *key)
{
    skip_space(p);
    if (*p->at != '"')
        return fail(p, "expected a key");
    if (!read_string(p, key))
        return false;
    skip_space(p);
    if (*p->at != ':')
        return fail(p, "expected a colon");
    p->at++;
    return true;
}

static bool read_container(struct parser *p, struct value *out, unsigned level)
{
    if (level >= MAX_LEVELS)
        return fail(p, "recursion limit exceeded");
    size_t base = p->count;
    char close = *p->at == '{' ? '}' : ']';
    out->type = close == '}' ? VALUE_MAP : VALUE_LIST;
    p->at++;
    skip_space(p);
    if (*p->at == close) {
        p->at++;
        return close_container(p, out, base);
    }
    for (;;) {
        struct child child = {0};
        if ((close == '}' && !read_key(p, &child.key)) || !read_value(p, &child.value, level + 1) || !push(p, &child))
            return false;
        skip_space(p);
        char c = *p->at;
        if (c != ',' && c != close)
            return fail(p, p->at == p->end ? "the document ends too early" : "expected a comma or the end of the list");
        p->at++;
        if (c == close)
            return close_container(p, out, base);
    }
}

static bool read_word(struct parser *p, const char *word)
{
    size_t size = strlen(word);
    if (strncmp(p->at, word, size) != 0)
        return fail(p, "expected a value");
    p->at += size;
    return true;
}

static bool read_value(struct parser *p, struct value *out, unsigned level)
{
    skip_space(p);
    *out = (struct value){.line = p->line, .column = (uint32_t)(p->at - p->line_start) + 1};
    if (++p->values > MAX_VALUES)
        return fail(p, "too many values");
    switch (*p->at) {
    case '{':
    case '[': return read_container(p, out, level);
    case '"': out->type = VALUE_STRING; return read_string(p, &out->string);
    case 'n': return read_word(p, "null");
    case 't':
        out->type = VALUE_BOOL;
        out->boolean = true;
        return read_word(p, "true");
    case 'f': out->type = VALUE_BOOL; return read_word(p, "false");
    default: break;
    }
    if (*p->at == '-' || is_digit(*p->at))
        return read_number(p, out);
    return fail(p, p->at == p->end ? "expected a value but the document ends" : "expected a value");
}

enum sl_code value_read_json(struct sl_arena *arena, struct sl_str text, struct value *root, struct sl_error *error)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    if (!copy)
        return sl_fail(error, SL_BUSY, "out of memory");
    struct parser p = {
        .arena = arena, .begin = copy, .at = copy, .end = copy + text.size, .line_start = copy, .line = 1};
    bool good = read_value(&p, root, 0);
    if (good) {
        skip_space(&p);
        good = p.at == p.end || fail(&p, "trailing characters");
    }
    free(p.children);
    if (good)
        return SL_OK;
    return sl_fail(error, SL_MALFORMED, "%s at line %u column %zu", p.why, p.line, (size_t)(p.at - p.line_start) + 1);
}

/* ---- out; as deep as value_read_json lets a tree be ---- */
void value_write(struct json_writer *w, const struct value *value)
{
    switch (value->type) {
    case VALUE_NULL: json_null(w); break;
    case VALUE_BOOL: json_boolean(w, value->boolean); break;
    case VALUE_INT:
    case VALUE_DOUBLE: json_raw(w, value->string); break;
    case VALUE_STRING: json_str(w, value->string); break;
    case VALUE_LIST:
        json_array_begin(w);
        for (size_t i = 0; i < value->count; i++)
            value_write(w, &value->items[i]);
        json_array_end(w);
        break;
    case VALUE_MAP:
        json_object_begin(w);
        for (size_t i = 0; i < value->count; i++) {
            json_key_str(w, value->keys[i]);
            value_write(w, &value->items[i]);
        }
        json_object_end(w);
        break;
    }
}
