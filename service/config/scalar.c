/* Types of plain (unquoted) YAML scalars, and the description of values in messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/impl.h"

/* True if the text is one of the words, a NULL-terminated list. */
static bool among(struct sl_str text, const char *const *words)
{
    for (; *words; words++)
        if (sl_str_equal(text, sl_str(*words)))
            return true;
    return false;
}

/* Parses a decimal integer with an optional sign, or an unsigned hexadecimal or octal one after 0x or 0o. False if the text is no integer
 * or exceeds 64 bits. */
static bool resolve_int(struct sl_str text, struct value *value)
{
    size_t at = 0;
    int base = 10;
    bool negative = false;
    if (text.size > 2 && text.data[0] == '0' && (text.data[1] == 'x' || text.data[1] == 'o')) {
        base = text.data[1] == 'x' ? 16 : 8;
        at = 2;
    } else if (text.size > 1 && (text.data[0] == '-' || text.data[0] == '+')) {
        negative = text.data[0] == '-';
        at = 1;
    }
    uint64_t number = 0;
    if (at == text.size)
        return false;
    for (; at < text.size; at++) {
        int digit = sl_hex_digit(text.data[at]);
        if (digit < 0 || digit >= base || __builtin_mul_overflow(number, (uint64_t)base, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number))
            return false;
    }
    value->type = VALUE_INT;
    value->negative = negative && number != 0;
    value->integer = number;
    value->number = value->negative ? -(double)number : (double)number;
    return true;
}

/* Returns the position of the first character from `at` on that is no digit. */
static size_t skip_digits(struct sl_str text, size_t at)
{
    while (at < text.size && sl_is_digit(text.data[at]))
        at++;
    return at;
}

/* True if the text matches [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool looks_like_float(struct sl_str text)
{
    size_t at = text.size && (text.data[0] == '-' || text.data[0] == '+');
    size_t whole = skip_digits(text, at) - at, fraction = 0;
    at += whole;
    if (at < text.size && text.data[at] == '.') {
        at++;
        fraction = skip_digits(text, at) - at;
        at += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (at < text.size && (text.data[at] | 0x20) == 'e') {
        at++;
        at += at < text.size && (text.data[at] == '-' || text.data[at] == '+');
        size_t end = skip_digits(text, at);
        if (end == at)
            return false;
        at = end;
    }
    return at == text.size;
}

/* Parses a decimal number, infinity (.inf) or not-a-number (.nan). False if the text is none of these. strtod() alone would accept more,
 * such as hexadecimal numbers. */
static bool resolve_float(struct sl_str text, struct value *value)
{
    static const char *const infinite[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", NULL};
    static const char *const minus_infinite[] = {"-.inf", "-.Inf", "-.INF", NULL};
    static const char *const no_number[] = {".nan", ".NaN", ".NAN", NULL};
    if (looks_like_float(text))
        value->number = strtod(text.data, NULL); /* scalar_resolve() requires a NUL after the text */
    else if (among(text, infinite))
        value->number = INFINITY;
    else if (among(text, minus_infinite))
        value->number = -INFINITY;
    else if (among(text, no_number))
        value->number = NAN;
    else
        return false;
    value->type = VALUE_DOUBLE;
    return true;
}

/* Implements the core schema of YAML 1.2, in which "yes" and "no" are strings, unlike in YAML 1.1. */
void scalar_resolve(struct value *value)
{
    static const char *const null_words[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const true_words[] = {"true", "True", "TRUE", NULL};
    static const char *const false_words[] = {"false", "False", "FALSE", NULL};
    struct sl_str text = value->string;
    value->type = VALUE_STRING;
    if (among(text, null_words)) {
        value->type = VALUE_NULL;
    } else if (among(text, true_words) || among(text, false_words)) {
        value->type = VALUE_BOOL;
        value->boolean = among(text, true_words);
    } else if (!resolve_int(text, value)) {
        resolve_float(text, value);
    }
}

const char *scalar_describe(const struct value *value, char out[120])
{
    enum { MAX_SHOWN = 80 };
    switch (value->type) {
    case VALUE_LIST: return "a list";
    case VALUE_MAP: return "a map";
    case VALUE_NULL: return "null";
    case VALUE_STRING:
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_DOUBLE: break;
    }
    struct sl_str scheme, rest;
    text_hide_user(value->string, &scheme, &rest);
    bool cut = scheme.size + rest.size > MAX_SHOWN;
    size_t first = scheme.size < MAX_SHOWN ? scheme.size : MAX_SHOWN, second = cut ? MAX_SHOWN - first : rest.size;
    while (cut && second > 0 && ((uint8_t)rest.data[second] & 0xC0) == 0x80) /* do not cut inside of a UTF-8 sequence */
        second--;
    const char *quote = value->type == VALUE_STRING ? "\"" : "";
    snprintf(out, 120, "%s%.*s%.*s%s%s", quote, (int)first, scheme.data, (int)second, rest.data, cut ? "..." : "",
             quote);
    return out;
}
