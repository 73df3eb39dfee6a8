#include "base/json.h"

bool sl_json_fail(struct sl_json *j, const char *problem)
{
    if (!j->failed)
        j->problem = problem;
    j->failed = true;
    return false;
}

struct sl_json sl_json(struct sl_str text, struct sl_arena *arena, bool relaxed)
{
    struct sl_json j = {.text = text, .arena = arena, .relaxed = relaxed, .fresh = true};
    if (sl_str_starts(text, SL_STR("\xEF\xBB\xBF")))
        j.at = 3;
    return j;
}

static int at(const struct sl_json *j, size_t ahead)
{
    return j->text.size - j->at > ahead ? (unsigned char)j->text.data[j->at + ahead] : -1;
}

static void skip_comment(struct sl_json *j)
{
    bool line = at(j, 1) == '/';
    for (j->at += 2; at(j, 0) >= 0; j->at++)
        if (line ? at(j, 0) == '\n' : at(j, 0) == '*' && at(j, 1) == '/') {
            j->at += line ? 1 : 2;
            return;
        }
    if (!line)
        sl_json_fail(j, "unterminated comment");
}

/* The next byte that is not white space, -1 at the end. */
static int token(struct sl_json *j)
{
    while (!j->failed) {
        int c = at(j, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            j->at++;
        else if (j->relaxed && c == '/' && (at(j, 1) == '/' || at(j, 1) == '*'))
            skip_comment(j);
        else
            return c;
    }
    return -1;
}

enum sl_json_type sl_json_peek(struct sl_json *j)
{
    switch (token(j)) {
    case '{': return SL_JSON_OBJECT;
    case '[': return SL_JSON_ARRAY;
    case '"': return SL_JSON_STRING;
    case 't':
    case 'f': return SL_JSON_BOOL;
    case 'n': return SL_JSON_NULL;
    case '-':
    case '0' ... '9': return SL_JSON_NUMBER;
    default: return SL_JSON_NONE;
    }
}

bool sl_json_enter(struct sl_json *j)
{
    enum sl_json_type type = sl_json_peek(j);
    if (type != SL_JSON_OBJECT && type != SL_JSON_ARRAY)
        return sl_json_fail(j, "expected an object or an array");
    if (j->depth == SL_JSON_MAX_DEPTH)
        return sl_json_fail(j, "nested too deeply");
    j->at++;
    j->closing[j->depth++] = type == SL_JSON_OBJECT ? '}' : ']';
    j->fresh = true;
    return true;
}

static bool leave(struct sl_json *j)
{
    j->at++;
    j->depth--;
    j->fresh = false;
    return false;
}

bool sl_json_next(struct sl_json *j, struct sl_str *key)
{
    int c = token(j);
    *key = (struct sl_str){NULL, 0};
    if (j->failed || !j->depth)
        return sl_json_fail(j, "no object or array is open");
    char closing = j->closing[j->depth - 1];
    if (c == closing)
        return leave(j);
    if (!j->fresh) {
        if (c != ',')
            return sl_json_fail(j, "expected a comma or the end of the list");
        j->at++;
        c = token(j);
        if (j->relaxed && c == closing)
            return leave(j);
    }
    j->fresh = false;
    if (closing == ']')
        return true;
    if (!sl_json_string(j, key))
        return sl_json_fail(j, "expected a key");
    if (token(j) != ':')
        return sl_json_fail(j, "expected a colon");
    j->at++;
    return true;
}

/* ---- text ---- */

static bool hex4(struct sl_json *j, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int c = at(j, 0), low = c | 0x20;
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            *out = *out << 4 | (uint32_t)(low - 'a' + 10);
        else
            return sl_json_fail(j, "invalid escape");
    }
    return true;
}

/* Behind `\u`. */
static bool unicode_escape(struct sl_json *j, uint32_t *out)
{
    uint32_t low;
    if (!hex4(j, out))
        return false;
    if (*out >= 0xD800 && *out < 0xDC00 && at(j, 0) == '\\' && at(j, 1) == 'u') {
        size_t back = j->at;
        j->at += 2;
        if (!hex4(j, &low))
            return false;
        if (low >= 0xDC00 && low < 0xE000)
            *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
        else
            j->at = back;
    }
    if (*out >= 0xD800 && *out < 0xE000)
        *out = 0xFFFD;
    return true;
}

static bool escape(struct sl_json *j, char *out, size_t *size)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    int c = at(j, 1);
    const char *found = c > 0 ? strchr(letters, c) : NULL;
    uint32_t code;
    j->at += 2;
    if (found) {
        out[(*size)++] = bytes[found - letters];
        return true;
    }
    if (c != 'u')
        return sl_json_fail(j, "invalid escape");
    if (!unicode_escape(j, &code))
        return false;
    *size += sl_utf8_encode(code, out + *size);
    return true;
}

/* What an escape stands for is never longer than the escape. */
static bool unescape(struct sl_json *j, size_t end, struct sl_str *out)
{
    char *copy = sl_arena_alloc(j->arena, end - j->at + 1, 1);
    size_t size = 0;
    if (!copy)
        return sl_json_fail(j, "out of memory");
    while (j->at < end)
        if (at(j, 0) != '\\')
            copy[size++] = j->text.data[j->at++];
        else if (!escape(j, copy, &size))
            return false;
    copy[size] = '\0';
    *out = (struct sl_str){copy, size};
    return true;
}

/* The offset of the closing quote, SIZE_MAX without one. */
static size_t find_quote(struct sl_json *j, bool *escaped)
{
    *escaped = false;
    for (size_t i = j->at; i < j->text.size; i++) {
        unsigned char c = (unsigned char)j->text.data[i];
        if (c == '"')
            return i;
        if (c < 0x20)
            break;
        *escaped = *escaped || c == '\\';
        i += c == '\\';
    }
    return SIZE_MAX;
}

bool sl_json_string(struct sl_json *j, struct sl_str *out)
{
    bool escaped;
    *out = (struct sl_str){NULL, 0};
    if (token(j) != '"')
        return sl_json_fail(j, "expected a string");
    j->at++;
    size_t end = find_quote(j, &escaped);
    if (end == SIZE_MAX)
        return sl_json_fail(j, "unterminated string or control character in it");
    *out = (struct sl_str){j->text.data + j->at, end - j->at};
    if (escaped && !unescape(j, end, out))
        return false;
    j->at = end + 1;
    return true;
}

/* ---- other values ---- */

static size_t digits(struct sl_json *j)
{
    size_t count = 0;
    for (; at(j, 0) >= '0' && at(j, 0) <= '9'; j->at++)
        count++;
    return count;
}

static bool skip_number(struct sl_json *j)
{
    j->at += at(j, 0) == '-';
    bool zero = at(j, 0) == '0';
    size_t count = digits(j);
    bool good = count && (!zero || count == 1);
    if (at(j, 0) == '.') {
        j->at++;
        good = digits(j) && good;
    }
    if (at(j, 0) == 'e' || at(j, 0) == 'E') {
        j->at++;
        j->at += at(j, 0) == '+' || at(j, 0) == '-';
        good = digits(j) && good;
    }
    return good || sl_json_fail(j, "invalid number");
}

bool sl_json_u64(struct sl_json *j, uint64_t *out)
{
    bool number = sl_json_peek(j) == SL_JSON_NUMBER;
    size_t begin = j->at;
    *out = 0;
    sl_json_skip(j);
    if (!number || j->failed)
        return false;
    for (size_t i = begin; i < j->at; i++) {
        unsigned digit = (unsigned)(j->text.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(*out, 10u, out) || __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return true;
}

static void skip_scalar(struct sl_json *j, enum sl_json_type type)
{
    static const struct sl_str words[] = {SL_STR("true"), SL_STR("false"), SL_STR("null")};
    struct sl_str text, rest = {j->text.data + j->at, j->text.size - j->at};
    if (type == SL_JSON_STRING) {
        sl_json_string(j, &text);
        return;
    }
    if (type == SL_JSON_NUMBER) {
        skip_number(j);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sl_str_starts(rest, words[i])) {
            j->at += words[i].size;
            return;
        }
    sl_json_fail(j, "expected a value");
}

void sl_json_skip(struct sl_json *j)
{
    unsigned outside = j->depth;
    struct sl_str key;
    do {
        enum sl_json_type type = sl_json_peek(j);
        if (type == SL_JSON_OBJECT || type == SL_JSON_ARRAY)
            sl_json_enter(j);
        else
            skip_scalar(j, type);
        while (!j->failed && j->depth > outside && !sl_json_next(j, &key))
            continue;
    } while (!j->failed && j->depth > outside);
}

bool sl_json_end(struct sl_json *j)
{
    int c = token(j);
    if (!j->failed && (c >= 0 || j->depth))
        sl_json_fail(j, "something follows the document");
    return !j->failed;
}
