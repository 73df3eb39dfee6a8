/* Tokens of scripts: white space, comments, names, keywords, strings, numbers, regular expressions, templates. */
#include "js/scope_impl.h"

/* Bytes above 0x7F belong to names, except in Unicode white space. */
const uint8_t js_bytes[256] = {
    ['a' ... 'z'] = B_NAME,
    ['A' ... 'Z'] = B_NAME,
    ['$'] = B_NAME,
    ['_'] = B_NAME,
    ['0' ... '9'] = B_NAME | B_DIGIT,
    [' '] = B_BLANK,
    ['\t' ... '\r'] = B_BLANK,
    ['/'] = B_COMMENT,
    [0x80 ... 0xFF] = B_HIGH,
};

/* Records the first error with its line and byte. Returns FAILED, for the caller to return. */
enum js_state js_fail(struct js_parser *p, const char *what)
{
    size_t at = js_offset(p), line = 1, begin = 0;
    for (size_t i = 0; i < at; i++)
        if (p->begin[i] == '\n') {
            line++;
            begin = i + 1;
        }
    if (p->code == SL_OK)
        p->code = sl_fail(p->error, SL_MALFORMED, "line %zu, byte %zu: %s", line, at - begin + 1, what);
    return FAILED;
}

/* Returns the size of the Unicode white space (UTF-8) at `at`; 0 if there is none. Sets `*newline` if it ends a line, else leaves it. */
static size_t high_blank(const struct js_parser *p, const uint8_t *at, bool *newline)
{
    size_t left = (size_t)(p->end - at);
    if (left >= 2 && at[0] == 0xC2 && at[1] == 0xA0) /* U+00A0 */
        return 2;
    if (left < 3)
        return 0;
    uint32_t code = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    if (code == 0xE280A8 || code == 0xE280A9) { /* U+2028, U+2029 */
        *newline = true;
        return 3;
    }
    /* U+FEFF, U+1680, U+2000 to U+200A, U+202F, U+205F, U+3000 */
    bool blank = code == 0xEFBBBF || code == 0xE19A80 || (code >= 0xE28080 && code <= 0xE2808A) || code == 0xE280AF ||
                 code == 0xE2819F || code == 0xE38080;
    return blank ? 3 : 0;
}

/* Returns the position after the comment that begins at the slash `at`; NULL if none begins there, or it has no end. Sets p->newline if a
 * line ends in the comment. */
static const uint8_t *comment_end(struct js_parser *p, const uint8_t *at)
{
    if (p->end - at < 2 || (at[1] != '/' && at[1] != '*'))
        return NULL;
    if (at[1] == '/') { /* the line end is not part of the comment */
        for (at += 2; at < p->end; at++) {
            bool ends = *at == '\n' || *at == '\r';
            if (*at == 0xE2) /* first byte of U+2028 and U+2029 */
                high_blank(p, at, &ends);
            if (ends)
                break;
        }
        return at;
    }
    for (at += 2; at < p->end; at++) {
        if (*at == '*' && p->end - at > 1 && at[1] == '/')
            return at + 2;
        if (*at == '\n' || *at == '\r')
            p->newline = true;
        else if (*at == 0xE2)
            high_blank(p, at, &p->newline);
    }
    return NULL;
}

/* Skips white space and comments. Sets p->newline if a line end is among them. Stops at a slash that begins no comment, or an unterminated
 * one, which is then read as a token. */
void js_skip_slowly(struct js_parser *p)
{
    while (p->at < p->end) {
        uint8_t c = *p->at, what = js_bytes[c];
        if (what & B_BLANK) {
            p->newline |= c == '\n' || c == '\r';
            p->at++;
        } else if (what & B_COMMENT) {
            const uint8_t *end = comment_end(p, p->at);
            if (!end)
                return;
            p->at = end;
        } else if (what & B_HIGH) {
            size_t size = high_blank(p, p->at, &p->newline);
            if (!size)
                return;
            p->at += size;
        } else {
            return;
        }
    }
}

/* Continues a name at a byte that is not ASCII or begins an escape, \u0061 or \u{61}. A malformed escape ends the name. */
const uint8_t *js_name_end_slowly(const struct js_parser *p, const uint8_t *at)
{
    bool newline; /* not used: high_blank() sets it */
    for (; at < p->end; at++) {
        if (*at == '\\') {
            if (p->end - at < 3 || at[1] != 'u')
                return at;
            at++;
            /* \u0061: `at` stays on the `u`, as that and the digits are bytes of names. \u{61}: `at` moves to the closing brace.
             * The longest sensible one, u{10FFFF}, has 9 bytes, so the search for the brace ends after 16. */
            const uint8_t *close =
                at[1] == '{' ? memchr(at, '}', (size_t)(p->end - at) < 16 ? (size_t)(p->end - at) : 16) : at;
            if (!close)
                return at;
            at = close;
        } else if (!(js_bytes[*at] & B_NAME) && (*at < 0x80 || high_blank(p, at, &newline))) {
            return at;
        }
    }
    return at;
}

static const struct {
    char text[11];
    uint8_t size, word;
} words[] = {
    {"async", 5, W_ASYNC},
    {"await", 5, W_AWAIT},
    {"break", 5, W_BREAK},
    {"case", 4, W_CASE},
    {"catch", 5, W_CATCH},
    {"class", 5, W_CLASS},
    {"const", 5, W_CONST},
    {"continue", 8, W_CONTINUE},
    {"debugger", 8, W_DEBUGGER},
    {"default", 7, W_DEFAULT},
    {"delete", 6, W_UNARY},
    {"do", 2, W_DO},
    {"else", 4, W_ELSE},
    {"enum", 4, W_RESERVED},
    {"export", 6, W_EXPORT},
    {"extends", 7, W_EXTENDS},
    {"false", 5, W_LITERAL},
    {"finally", 7, W_FINALLY},
    {"for", 3, W_FOR},
    {"function", 8, W_FUNCTION},
    {"if", 2, W_IF},
    {"import", 6, W_IMPORT},
    {"in", 2, W_IN},
    {"instanceof", 10, W_INSTANCEOF},
    {"let", 3, W_LET},
    {"new", 3, W_NEW},
    {"null", 4, W_LITERAL},
    {"of", 2, W_OF},
    {"return", 6, W_RETURN},
    {"super", 5, W_SUPER},
    {"switch", 6, W_SWITCH},
    {"this", 4, W_THIS},
    {"throw", 5, W_THROW},
    {"true", 4, W_LITERAL},
    {"try", 3, W_TRY},
    {"typeof", 6, W_UNARY},
    {"using", 5, W_USING},
    {"var", 3, W_VAR},
    {"void", 4, W_UNARY},
    {"while", 5, W_WHILE},
    {"with", 4, W_WITH},
    {"yield", 5, W_YIELD},
};
enum { WORDS = sizeof words / sizeof words[0] };

/* For each letter, the index in `words` (sorted) of the first word that begins with it. A letter without words has an index at which
 * js_word() stops at once: that of a word with another letter, or WORDS. */
static const uint8_t first_words[26] = {
    ['a' - 'a'] = 0,  ['b' - 'a'] = 2,     ['c' - 'a'] = 3,  ['d' - 'a'] = 8,  ['e' - 'a'] = 12, ['f' - 'a'] = 16,
    ['g' - 'a'] = 19, ['h' - 'a'] = 19,    ['i' - 'a'] = 20, ['j' - 'a'] = 24, ['k' - 'a'] = 24, ['l' - 'a'] = 24,
    ['m' - 'a'] = 25, ['n' - 'a'] = 25,    ['o' - 'a'] = 27, ['p' - 'a'] = 28, ['q' - 'a'] = 28, ['r' - 'a'] = 28,
    ['s' - 'a'] = 29, ['t' - 'a'] = 31,    ['u' - 'a'] = 36, ['v' - 'a'] = 37, ['w' - 'a'] = 39, ['x' - 'a'] = 41,
    ['y' - 'a'] = 41, ['z' - 'a'] = WORDS,
};

/* Returns which keyword this is; W_NONE for any other name. */
enum js_word js_word(const uint8_t *name, size_t size)
{
    /* no keyword is shorter than `in` or longer than `instanceof` */
    if (size < 2 || size > 10 || name[0] < 'a' || name[0] > 'z')
        return W_NONE;
    for (unsigned i = first_words[name[0] - 'a']; i < WORDS && words[i].text[0] == (char)name[0]; i++)
        if (words[i].size == size && memcmp(words[i].text, name, size) == 0)
            return (enum js_word)words[i].word;
    return W_NONE;
}

enum js_word js_next_word(const struct js_parser *p)
{
    return js_name_begins(js_peek(p, 0)) ? js_word(p->at, (size_t)(js_name_end(p) - p->at)) : W_NONE;
}

bool js_take_word(struct js_parser *p, enum js_word word)
{
    if (js_next_word(p) != word)
        return false;
    p->at = js_name_end(p);
    js_skip(p);
    return true;
}

bool js_string(struct js_parser *p)
{
    uint8_t quote = *p->at;
    for (const uint8_t *at = p->at + 1; at < p->end; at++) {
        if (*at == quote) {
            p->at = at + 1;
            return true;
        }
        if (*at == '\\') /* the byte after it is text: a quote, a line end (CR LF is one), or any other */
            at += p->end - at > 2 && at[1] == '\r' && at[2] == '\n' ? 2 : 1;
        else if (*at == '\n' || *at == '\r')
            return false;
    }
    return false;
}

/* Returns the end of the ASCII letters, digits, `$` and `_` at `at`. */
static const uint8_t *letters_end(const struct js_parser *p, const uint8_t *at)
{
    while (at < p->end && js_bytes[*at] & B_NAME)
        at++;
    return at;
}

/* Moves past a number: digits, a fraction, an exponent. Letters are accepted as digits: those of other bases (0x1F), of BigInts (1n) and of
 * exponents (1e5). Always true: unlike a string, a number cannot be unterminated. */
bool js_number(struct js_parser *p)
{
    const uint8_t *at = p->at;
    /* not 0x, 0o, 0b: may have a point and an exponent */
    bool decimal = *at != '0' || p->end - at < 2 || (at[1] | 0x20) < 'a';
    at = letters_end(p, at);
    if (decimal && at < p->end && *at == '.')
        at = letters_end(p, at + 1);
    if (decimal && at < p->end && (*at == '+' || *at == '-') && (at[-1] | 0x20) == 'e')
        at = letters_end(p, at + 1);
    p->at = at;
    return true;
}

/* Moves behind the regular expression at p->at and its flags; false if it does not end on its line. A slash within [...] is part of it. */
bool js_regex(struct js_parser *p)
{
    bool in_class = false;
    for (const uint8_t *at = p->at + 1; at < p->end && *at != '\n' && *at != '\r'; at++) {
        if (*at == '\\')
            at++;
        else if (*at == '[')
            in_class = true;
        else if (*at == ']')
            in_class = false;
        else if (*at == '/' && !in_class) {
            p->at = letters_end(p, at + 1); /* the flags */
            return true;
        }
    }
    return false;
}

enum js_state js_template(struct js_parser *p)
{
    for (const uint8_t *at = p->at; at < p->end; at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '`') {
            p->at = at + 1;
            js_skip(p);
            p->operand = O_OTHER;
            return OPERATOR;
        } else if (*at == '$' && p->end - at > 1 && at[1] == '{') {
            p->at = at + 2;
            js_skip(p);
            return js_push(p, L_TEMPLATE, 0) ? OPERAND : FAILED;
        }
    }
    return js_fail(p, "unterminated template");
}
