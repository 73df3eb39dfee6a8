#include "base/json.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

bool sl_json_fail(struct sl_json *j, const char *problem)
{
    if (!j->failed)
        j->problem = problem;
    j->failed = true;
    return false;
}

bool sl_json_no_memory(struct sl_json *j)
{
    j->busy = j->busy || !j->failed;
    return sl_json_fail(j, "out of memory");
}

enum sl_code sl_json_code(const struct sl_json *j)
{
    return !j->failed ? SL_OK : j->busy ? SL_BUSY : SL_MALFORMED;
}

struct sl_json sl_json(struct sl_str text, struct sl_arena *arena, bool relaxed)
{
    struct sl_json j = {.text = text, .arena = arena, .relaxed = relaxed, .fresh = true};
    if (sl_str_starts(text, SL_STR("\xEF\xBB\xBF")))
        j.at = 3;
    return j;
}

/* Returns the byte that is `ahead` bytes after the next one; -1 beyond the end. */
static inline int at(const struct sl_json *j, size_t ahead)
{
    return j->text.size - j->at > ahead ? (unsigned char)j->text.data[j->at + ahead] : -1;
}

/* Skips the comment that begins here. One with two slashes ends with the line or the document; one like this comment, with slash and star,
 * ends with star and slash, and the reader fails if these are missing. */
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

/* Skips blanks, line ends and tabs; `spaces` has a bit for each of these characters. */
static inline void skip_space(struct sl_json *j)
{
    const char *from = j->text.data + j->at, *end = j->text.data + j->text.size;
    const uint64_t spaces = UINT64_C(1) << ' ' | 1 << '\n' | 1 << '\r' | 1 << '\t';
    while (from < end && (unsigned char)*from <= ' ' && spaces >> *from & 1)
        from++;
    j->at = (size_t)(from - j->text.data);
}

/* Skips comments and the white space after them; returns the next byte, -1 at the end or after a failure. */
static int byte_after_comments(struct sl_json *j)
{
    while (!j->failed && at(j, 0) == '/' && (at(j, 1) == '/' || at(j, 1) == '*')) {
        skip_comment(j);
        skip_space(j);
    }
    return j->failed ? -1 : at(j, 0);
}

/* Skips white space (and comments if relaxed); returns the next byte, -1 at the end. */
static inline int next_byte(struct sl_json *j)
{
    if (j->failed)
        return -1;
    skip_space(j);
    return j->relaxed ? byte_after_comments(j) : at(j, 0);
}

/* Fails with `problem`, or, if the document has ended, with "the document ends early". Returns false. */
static bool unexpected(struct sl_json *j, const char *problem)
{
    return sl_json_fail(j, j->at < j->text.size ? problem : "the document ends early");
}

/* Fails because no value begins here. Returns false. */
static bool no_value(struct sl_json *j)
{
    return sl_json_fail(j, j->at < j->text.size ? "expected a value" : "expected a value but the document ends");
}

enum sl_json_type sl_json_peek(struct sl_json *j)
{
    static const uint8_t types[256] = {
        ['{'] = SL_JSON_OBJECT, ['['] = SL_JSON_ARRAY, ['"'] = SL_JSON_STRING, ['t'] = SL_JSON_BOOL,
        ['f'] = SL_JSON_BOOL,   ['n'] = SL_JSON_NULL,  ['-'] = SL_JSON_NUMBER, ['0' ... '9'] = SL_JSON_NUMBER};
    int c = next_byte(j);
    return c < 0 ? SL_JSON_NONE : (enum sl_json_type)types[c];
}

/* ---- strings ---- */

/* Reads four hexadecimal digits; false if one of the characters is none. */
static bool hex4(const char *text, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = sl_hex_digit(text[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* Returns the character for the letter of a two-byte escape; 0 if there is no such escape. */
static inline char short_escape(char c)
{
    static const char escapes[128] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    return (unsigned char)c < sizeof escapes ? escapes[(unsigned char)c] : 0;
}

/* Returns the size of the escape at the beginning of `rest`; 0 if it is not valid. */
static size_t escape_size(struct sl_str rest)
{
    uint32_t code;
    if (rest.size >= 2 && short_escape(rest.data[1]))
        return 2;
    return rest.size >= 6 && rest.data[1] == 'u' && hex4(rest.data + 2, &code) ? 6 : 0;
}

/* Decodes the valid `\u` escape at `from`, with the next one if they are a surrogate pair; returns the position after it. */
static const char *unescape_unit(const char *from, const char *end, uint32_t *code)
{
    uint32_t low;
    hex4(from + 2, code);
    from += 6;
    if (*code >= 0xD800 && *code < 0xDC00 && end - from >= 6 && from[0] == '\\' && from[1] == 'u' &&
        hex4(from + 2, &low) && low >= 0xDC00 && low < 0xE000) {
        *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        return from + 6;
    }
    if (*code >= 0xD800 && *code < 0xE000) /* half of a pair alone: UTF-8 cannot express it */
        *code = 0xFFFD;
    return from;
}

/* Decodes the valid escape at `from` to `out`; returns how many bytes it wrote, at most four. `*behind` is the position after it. */
static inline size_t unescape_one(const char *from, const char *end, char *out, const char **behind)
{
    uint32_t code;
    if (from[1] == 'u') {
        *behind = unescape_unit(from, end, &code);
        return sl_utf8_encode(code, out);
    }
    *behind = from + 2;
    *out = short_escape(from[1]);
    return 1;
}

size_t sl_json_unescape(struct sl_str raw, char *out)
{
    const char *from = raw.data, *end = from + raw.size;
    size_t size = 0;
    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((escape ? escape : end) - from);
        memcpy(out + size, from, plain);
        size += plain;
        from += plain;
        if (escape)
            size += unescape_one(escape, end, out + size, &from);
    }
    return size;
}

/* ONES: each byte is 1. HIGHS: each byte has only its highest bit set. */
#define ONES  0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

#ifdef __SSE2__
/* Returns a bit mask of the bytes that are special: quote, backslash, control byte. Sets HIGHS in `*seen` if a byte is not ASCII. */
static inline unsigned special_mask(__m128i bytes, uint64_t *seen)
{
    __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes)); /* at most 0x1F */
    *seen |= _mm_movemask_epi8(bytes) ? HIGHS : 0;
    return (unsigned)_mm_movemask_epi8(stop);
}
#endif

/* Returns the offset of the first special byte from `i` on (quote, backslash, control byte), or the text's size. Bits of HIGHS are set in
 * `*seen` if bytes before it are not ASCII and so need a UTF-8 check; bytes after it may set them too. Looks at sixteen or eight bytes at a
 * time, since most of a document is strings. */
static inline size_t plain_end(struct sl_str text, size_t i, uint64_t *seen)
{
#ifdef __SSE2__
    for (; text.size - i >= 16; i += 16) {
        unsigned special = special_mask(_mm_loadu_si128((const __m128i *)(const void *)(text.data + i)), seen);
        if (special)
            return i + (size_t)__builtin_ctz(special);
    }
#endif
    for (; text.size - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, text.data + i, 8);
        word = le64toh(word);
        uint64_t quote = word ^ (ONES * '"'), slash = word ^ (ONES * '\\');
        /* the highest bit of a byte is set if it is below 0x20, a quote or a backslash: subtracting borrows from that bit */
        uint64_t stop = ((word - ONES * 0x20) & ~word) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash);
        *seen |= word;
        if (stop & HIGHS) /* the lowest such bit is right: a borrow only falsifies higher bytes */
            return i + (size_t)__builtin_ctzll(stop & HIGHS) / 8;
    }
    for (; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        *seen |= c;
        if (c < 0x20 || c == '"' || c == '\\')
            break;
    }
    return i;
}

/* Reads the string whose opening quote is the next byte and moves past the closing one. `*raw` is the text between them as it is written,
 * `*escaped` whether it has escapes. */
static bool scan_string(struct sl_json *j, struct sl_str *raw, bool *escaped)
{
    struct sl_str text = j->text;
    uint64_t seen = 0;
    size_t begin = j->at + 1, i = plain_end(text, begin, &seen);
    *escaped = false;
    while (i < text.size && text.data[i] == '\\') {
        size_t size = escape_size((struct sl_str){text.data + i, text.size - i});
        j->at = i;
        *escaped = true;
        if (!size)
            return sl_json_fail(j, "invalid escape");
        i = plain_end(text, i + size, &seen);
    }
    if (i == text.size || text.data[i] != '"') {
        j->at = i;
        return unexpected(j, "control character in a string"); /* or the document has ended */
    }
    *raw = (struct sl_str){text.data + begin, i - begin};
    if ((seen & HIGHS) && !j->relaxed && !sl_str_is_utf8(*raw)) /* ASCII needs no check */
        return sl_json_fail(j, "invalid UTF-8");
    j->at = i + 1;
    return true;
}

/* Unescapes `raw` into the reader's arena. An escape is never shorter than its character, so `raw.size` bytes suffice. False if memory is
 * short or the reader has no arena. */
static bool unescape(struct sl_json *j, struct sl_str raw, struct sl_str *out)
{
    char *copy = j->arena ? sl_arena_alloc(j->arena, raw.size + 1, 1) : NULL;
    *out = (struct sl_str){NULL, 0};
    if (!copy)
        return sl_json_no_memory(j);
    size_t size = sl_json_unescape(raw, copy);
    copy[size] = '\0';
    sl_arena_trim(j->arena, copy + size + 1); /* gives back the bytes after the text */
    *out = (struct sl_str){copy, size};
    return true;
}

/* Returns the offset of the first quote, backslash or control byte from `i` on, or the text's size, and appends the bytes before it to
 * `out`. These bytes are often few, as in source lines: so 32 bytes are copied at once, and out->size grows only by those that count. Sets
 * bits of HIGHS in `*seen` if bytes are not ASCII. */
static inline size_t append_plain(struct sl_str text, size_t i, struct sl_buf *out, uint64_t *seen)
{
#ifdef __SSE2__
    for (; text.size - i >= 32 && sl_buf_reserve(out, 32); i += 32, out->size += 32) {
        const __m128i *from = (const __m128i *)(const void *)(text.data + i);
        __m128i *to = (__m128i *)(void *)(out->data + out->size), low = _mm_loadu_si128(from),
                high = _mm_loadu_si128(from + 1);
        unsigned special = special_mask(low, seen) | special_mask(high, seen) << 16;
        _mm_storeu_si128(to, low);
        _mm_storeu_si128(to + 1, high);
        if (special) {
            out->size += (size_t)__builtin_ctz(special);
            return i + (size_t)__builtin_ctz(special);
        }
    }
#endif
    size_t end = plain_end(text, i, seen);
    sl_buf_add(out, text.data + i, end - i);
    return end;
}

/* Appends the character that the escape at `i` stands for; returns the size of the escape, 0 if it is not valid. */
static inline size_t append_escape(struct sl_str text, size_t i, struct sl_buf *out)
{
    const char *from = text.data + i, *behind;
    char stands_for[4], short_form = text.size - i >= 2 ? short_escape(from[1]) : 0;
    if (short_form) {
        sl_buf_u8(out, (uint8_t)short_form);
        return 2;
    }
    if (!escape_size((struct sl_str){from, text.size - i}))
        return 0;
    sl_buf_add(out, stands_for, unescape_one(from, text.data + text.size, stands_for, &behind));
    return (size_t)(behind - from);
}

bool sl_json_append(struct sl_json *j, struct sl_buf *out)
{
    struct sl_str text = j->text;
    uint64_t seen = 0;
    if (next_byte(j) != '"')
        return unexpected(j, "expected a string");
    size_t begin = j->at + 1, i = append_plain(text, begin, out, &seen);
    while (i < text.size && text.data[i] == '\\') {
        size_t size = append_escape(text, i, out);
        j->at = i;
        if (!size)
            return sl_json_fail(j, "invalid escape");
        i = append_plain(text, i + size, out, &seen);
    }
    j->at = i;
    if (i == text.size || text.data[i] != '"')
        return unexpected(j, "control character in a string"); /* or the document has ended */
    if ((seen & HIGHS) && !j->relaxed && !sl_str_is_utf8((struct sl_str){text.data + begin, i - begin}))
        return sl_json_fail(j, "invalid UTF-8");
    j->at = i + 1;
    return !out->failed || sl_json_no_memory(j);
}

bool sl_json_raw_string(struct sl_json *j, struct sl_str *raw, bool *escaped)
{
    *raw = (struct sl_str){NULL, 0};
    *escaped = false;
    return next_byte(j) == '"' ? scan_string(j, raw, escaped) : unexpected(j, "expected a string");
}

bool sl_json_string(struct sl_json *j, struct sl_str *out)
{
    bool escaped;
    return sl_json_raw_string(j, out, &escaped) && (!escaped || unescape(j, *out, out));
}

/* ---- objects and arrays ---- */

/* True if the innermost open container is an object, false for an array: `objects` has one bit for each open container. */
static inline bool in_object(const struct sl_json *j)
{
    return j->objects[(j->depth - 1) / 64] >> (j->depth - 1) % 64 & 1;
}

/* Moves past an opening bracket, and records that of an object in `objects`; false, and the reader fails, if SL_JSON_MAX_DEPTH containers
 * are open already. */
static bool enter(struct sl_json *j, bool object)
{
    if (j->depth == SL_JSON_MAX_DEPTH)
        return sl_json_fail(j, "nested too deeply");
    uint64_t *word = &j->objects[j->depth / 64], bit = UINT64_C(1) << j->depth % 64;
    *word = object ? *word | bit : *word & ~bit;
    j->at++;
    j->depth++;
    j->fresh = true; /* its first member has no comma before it */
    return true;
}

bool sl_json_enter(struct sl_json *j)
{
    int c = next_byte(j);
    return c == '{' || c == '[' ? enter(j, c == '{') : unexpected(j, "expected an object or an array");
}

/* Moves past the bracket that closes the innermost container. Returns false, for json_next(): there are no more members. */
static bool json_leave(struct sl_json *j)
{
    j->at++;
    j->depth--;
    j->fresh = false;
    return false;
}

/* Reads a member's key and the colon after it; false, and the reader fails, if either is missing. `*key` is the key as it is written;
 * `*escaped`: it has escapes. */
static bool json_read_key(struct sl_json *j, struct sl_str *key, bool *escaped)
{
    if (next_byte(j) != '"')
        return unexpected(j, "expected a key");
    if (!scan_string(j, key, escaped))
        return false;
    if (next_byte(j) != ':')
        return unexpected(j, "expected a colon");
    j->at++;
    return true;
}

/* Moves to the next member or element of the innermost container. `*key` is its key as it is written (data NULL in arrays); `*escaped`: it
 * has escapes. Returns false, and closes the container, after the last one; false also on failure. */
static bool json_next(struct sl_json *j, struct sl_str *key, bool *escaped)
{
    int c = next_byte(j);
    *key = (struct sl_str){NULL, 0};
    *escaped = false;
    if (j->failed || !j->depth)
        return sl_json_fail(j, "no object or array is open"); /* an earlier failure keeps its problem */
    bool object = in_object(j);
    char closing = object ? '}' : ']';
    if (c == closing)
        return json_leave(j);
    if (!j->fresh) {
        if (c != ',')
            return unexpected(j, "expected a comma or the end of the list");
        j->at++;
        if (j->relaxed && next_byte(j) == closing) /* a trailing comma */
            return json_leave(j);
    }
    j->fresh = false;
    return !object || json_read_key(j, key, escaped);
}

bool sl_json_next(struct sl_json *j, struct sl_str *key)
{
    bool escaped;
    return json_next(j, key, &escaped) && (!escaped || unescape(j, *key, key));
}

/* ---- numbers ---- */

/* Skips digits; false if there are none. */
static bool digits(struct sl_json *j)
{
    size_t begin = j->at;
    while (j->at < j->text.size && sl_is_digit(j->text.data[j->at]))
        j->at++;
    return j->at > begin;
}

/* Skips a number; false, and the reader fails, unless it follows the grammar of RFC 8259: no leading zeros, digits on both sides of a dot
 * and in the exponent. */
static bool skip_number(struct sl_json *j)
{
    j->at += at(j, 0) == '-';
    size_t begin = j->at;
    bool good = digits(j) && (j->text.data[begin] != '0' || j->at == begin + 1);
    if (good && at(j, 0) == '.') {
        j->at++;
        good = digits(j);
    }
    if (good && (at(j, 0) == 'e' || at(j, 0) == 'E')) {
        j->at++;
        j->at += at(j, 0) == '+' || at(j, 0) == '-';
        good = digits(j);
    }
    return good || sl_json_fail(j, "invalid number");
}

bool sl_json_number(struct sl_json *j, struct sl_str *out)
{
    *out = (struct sl_str){NULL, 0};
    if (sl_json_peek(j) != SL_JSON_NUMBER)
        return unexpected(j, "expected a number");
    size_t begin = j->at;
    if (!skip_number(j))
        return false;
    *out = (struct sl_str){j->text.data + begin, j->at - begin};
    return true;
}

bool sl_json_integer(struct sl_str number, bool *negative, uint64_t *magnitude)
{
    uint64_t v = 0;
    size_t i = *negative = number.size && number.data[0] == '-'; /* digits begin after the sign, if there is one */
    for (; i < number.size; i++) {
        unsigned digit = (unsigned)(number.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    /* -0 is 0 */
    *negative = *negative && v > 0;
    *magnitude = v;
    return !*negative || v <= UINT64_C(1) << 63;
}

/* Reads an integer of at most 64 bits. False for any other value, which is skipped, and if the reader fails. */
static bool integer(struct sl_json *j, bool *negative, uint64_t *magnitude)
{
    struct sl_str text;
    if (sl_json_peek(j) == SL_JSON_NUMBER)
        return sl_json_number(j, &text) && sl_json_integer(text, negative, magnitude);
    sl_json_skip(j);
    return false;
}

bool sl_json_u64(struct sl_json *j, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    bool good = integer(j, &negative, &magnitude) && !negative;
    *out = good ? magnitude : 0;
    return good;
}

/* Reads an integer of the range of int64_t. False, with `*out` 0, for any other value, which is skipped, and if the reader fails. */
bool sl_json_i64(struct sl_json *j, int64_t *out)
{
    bool negative;
    uint64_t magnitude;
    bool good = integer(j, &negative, &magnitude) && (negative || magnitude <= INT64_MAX);
    /* The magnitude of INT64_MIN, 2^63, is no int64_t: negate while it is unsigned. integer() fails for a larger negative one. */
    *out = !good ? 0 : negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return good;
}

/* ---- other values ---- */

/* Skips `true`, `false` or `null`; fails for any other word. */
static bool skip_word(struct sl_json *j)
{
    static const struct sl_str words[] = {SL_STR("true"), SL_STR("false"), SL_STR("null")};
    struct sl_str rest = {j->text.data + j->at, j->text.size - j->at};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sl_str_starts(rest, words[i])) {
            j->at += words[i].size;
            return true;
        }
    return no_value(j);
}

bool sl_json_bool(struct sl_json *j, bool *out)
{
    bool is = sl_json_peek(j) == SL_JSON_BOOL;
    *out = is && at(j, 0) == 't';
    sl_json_skip(j);
    return is && !j->failed;
}

/* Reads a string. Skips a value of another type: false, with data NULL. */
bool sl_json_text(struct sl_json *j, struct sl_str *out)
{
    if (sl_json_peek(j) == SL_JSON_STRING)
        return sl_json_string(j, out);
    *out = (struct sl_str){NULL, 0};
    sl_json_skip(j);
    return false;
}

/* Opens the next value if it is a container of this type; otherwise skips it and returns false. */
static bool open_or_skip(struct sl_json *j, enum sl_json_type type)
{
    if (sl_json_peek(j) == type)
        return enter(j, type == SL_JSON_OBJECT);
    sl_json_skip(j);
    return false;
}

bool sl_json_object(struct sl_json *j)
{
    return open_or_skip(j, SL_JSON_OBJECT);
}

bool sl_json_array(struct sl_json *j)
{
    return open_or_skip(j, SL_JSON_ARRAY);
}

/* Skips the next value, or, if it is an object or array, only its opening bracket: so sl_json_skip() needs no recursion. */
static void json_step(struct sl_json *j)
{
    struct sl_str raw;
    bool escaped;
    switch (sl_json_peek(j)) {
    case SL_JSON_OBJECT: enter(j, true); break;
    case SL_JSON_ARRAY: enter(j, false); break;
    case SL_JSON_STRING: scan_string(j, &raw, &escaped); break;
    case SL_JSON_NUMBER: skip_number(j); break;
    case SL_JSON_BOOL:
    case SL_JSON_NULL: skip_word(j); break;
    case SL_JSON_NONE: no_value(j); break;
    }
}

void sl_json_skip(struct sl_json *j)
{
    unsigned outside = j->depth;
    struct sl_str key;
    bool escaped;
    do {
        json_step(j);
        /* moves to the next value inside; json_next() returns false when it has closed a container */
        while (!j->failed && j->depth > outside && !json_next(j, &key, &escaped))
            continue;
    } while (!j->failed && j->depth > outside);
}

bool sl_json_value(struct sl_json *j, struct sl_str *out)
{
    next_byte(j);
    size_t begin = j->at;
    sl_json_skip(j);
    *out = j->failed ? (struct sl_str){NULL, 0} : (struct sl_str){j->text.data + begin, j->at - begin};
    return !j->failed;
}

bool sl_json_end(struct sl_json *j)
{
    int c = next_byte(j);
    if (!j->failed && (c >= 0 || j->depth))
        unexpected(j, "trailing characters");
    return !j->failed;
}

/* Returns line and column of offset `at`, both counted from 1. The column counts bytes, not characters. */
struct sl_json_position sl_json_position(struct sl_str text, size_t at)
{
    struct sl_json_position position = {1, 1};
    const char *line = text.data, *end = line + (at < text.size ? at : text.size);
    for (const char *newline; line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
        position.line++;
    position.column += (size_t)(end - line);
    return position;
}
