#include "js/comment.h"

#include "base/base64.h"

/* ---- comments ---- */

struct js_comment_marker {
    struct sl_str text;
    size_t pivot; /* index of a byte in `text` that is rare in scripts */
};

/* Returns the first word of the text, which ends at white space. */
static struct sl_str first_word(struct sl_str text)
{
    size_t begin = 0;
    while (begin < text.size && sl_is_blank(text.data[begin]))
        begin++;
    size_t end = begin;
    while (end < text.size && !sl_is_blank(text.data[end]))
        end++;
    return (struct sl_str){text.data + begin, end - begin};
}

/* True if `comment` begins with `//# ` (with `old` also `//@ `) and the marker; `*value` is the word after the marker. */
static bool is_marked(const char *comment, const char *end, const struct js_comment_marker *marker, bool old,
                      struct sl_str *value)
{
    const char *text = comment + 4;
    if ((size_t)(end - comment) < 4 + marker->text.size || comment[0] != '/' || comment[1] != '/' ||
        (comment[2] != '#' && !(old && comment[2] == '@')) || comment[3] != ' ' ||
        memcmp(text, marker->text.data, marker->text.size) != 0)
        return false;
    text += marker->text.size;
    *value = first_word((struct sl_str){text, (size_t)(end - text)});
    return true;
}

/* ---- scripts, parsed only as far as needed to tell comments from strings ---- */

enum { MAX_TEMPLATES = 64 }; /* nested templates; an expression in a deeper one counts as text */

struct js_reader {
    const char *at, *end;
    char last;                          /* the token before: a punctuator, 'a' for a word or value, 0 for none */
    bool before_regexp;                 /* if `last` is a word: a regular expression may follow it */
    size_t braces;                      /* open braces in the expression of the innermost template */
    size_t outer[MAX_TEMPLATES], depth; /* `braces` of the templates around it, and their number */
    size_t scan_allowance; /* bytes that may still be scanned without finding the end of a regular expression */
};

static bool is_word_byte(char c)
{
    return sl_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static void skip_line(struct js_reader *r)
{
    while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
        r->at++;
}

/* Skips a word. A slash after one of these keywords begins a regular expression, as after an operator; after any other word it is a
 * division. */
static void skip_word(struct js_reader *r)
{
    static const char *const words[] = {"return", "typeof", "case", "in",         "of",    "delete", "void",
                                        "throw",  "new",    "else", "instanceof", "yield", "await",  "do"};
    const char *begin = r->at;
    while (r->at < r->end && is_word_byte(*r->at))
        r->at++;
    struct sl_str word = {begin, (size_t)(r->at - begin)};
    r->last = 'a'; /* stands for any word or value */
    r->before_regexp = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !r->before_regexp; i++)
        r->before_regexp = sl_str_equal(word, sl_str(words[i]));
}

/* Skips a string, which ends at the end of its line at the latest. */
static void skip_text(struct js_reader *r)
{
    char quote = *r->at++;
    for (; r->at < r->end && *r->at != quote && *r->at != '\n'; r->at++) {
        if (*r->at != '\\' || r->at + 1 == r->end)
            continue;
        r->at++; /* also a line end, behind which the string goes on */
        r->at += *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n';
    }
    r->at += r->at < r->end;
    r->last = 'a'; /* a value */
    r->before_regexp = false;
}

/* Skips template text up to its end or the next expression in it. Expressions nested deeper than MAX_TEMPLATES count as text. */
static void skip_template(struct js_reader *r)
{
    for (; r->at < r->end && *r->at != '`'; r->at++) {
        if (*r->at == '\\' && r->at + 1 < r->end) {
            r->at++;
        } else if (*r->at == '$' && r->at + 1 < r->end && r->at[1] == '{' && r->depth < MAX_TEMPLATES) {
            r->outer[r->depth++] = r->braces; /* until the brace that ends the expression (skip_brace) */
            r->braces = 0;
            r->at += 2;
            r->last = 0; /* no token yet: a slash begins a regular expression */
            return;
        }
    }
    r->at += r->at < r->end;
    r->last = 'a';
    r->before_regexp = false;
}

/* Skips a brace. One that closes the expression of a template continues the template's text. */
static void skip_brace(struct js_reader *r)
{
    bool opens = *r->at++ == '{';
    r->last = opens ? '{' : '}';
    if (!opens && !r->braces && r->depth) {
        r->braces = r->outer[--r->depth];
        skip_template(r);
    } else if (opens) {
        r->braces++;
    } else {
        r->braces -= r->braces > 0;
    }
}

/* Skips a division operator, or a regular expression, which ends on its line. A slash without a second one on its line is a division. Each
 * such attempt scans the line, so once these scans add up to the script's size every slash counts as a division: a crafted script would
 * else take quadratic time. */
static void skip_slash(struct js_reader *r)
{
    /* 'a' stands for a word or value */
    bool may_be = r->last == 'a' ? r->before_regexp : r->last != ')' && r->last != ']' && r->last != '}';
    const char *at = ++r->at;
    r->last = '/';
    if (!may_be || !r->scan_allowance)
        return;
    for (bool in_class = false; at < r->end && *at != '\n' && (in_class || *at != '/'); at++) {
        if (*at == '\\' && at + 1 < r->end)
            at++;
        else if (*at == '[' || *at == ']')
            in_class = *at == '[';
    }
    if (at >= r->end || *at != '/') {
        size_t read = (size_t)(at - r->at);
        r->scan_allowance -= read < r->scan_allowance ? read : r->scan_allowance;
        return;
    }
    r->at = at + 1;
    r->last = 'a';
    r->before_regexp = false;
}

/* Skips a punctuator or white space. `++` and `--`, two signs without space between them, count as the end of a value, which no regular
 * expression follows. */
static void skip_punctuator(struct js_reader *r)
{
    char c = *r->at++;
    if (sl_is_blank(c) || c == '\n' || c == '\r')
        return;
    bool is_step = (c == '+' || c == '-') && r->last == c && r->at[-2] == c;
    r->last = is_step ? 'a' : c;
    r->before_regexp = false;
}

/* Skips a comment in slashes and asterisks; one without an end extends to the end of the script. */
static void skip_block(struct js_reader *r)
{
    const char *end = r->end - r->at > 2 ? memmem(r->at + 2, (size_t)(r->end - r->at - 2), "*/", 2) : NULL;
    r->at = end ? end + 2 : r->end;
}

/* Finds the last comment with the marker by reading the script from its beginning, which tells comments from strings. False if there is
 * none; `*value` is the word after the marker. */
static bool find_last_by_parsing(struct sl_str script, const struct js_comment_marker *marker, bool old,
                                 struct sl_str *value)
{
    struct js_reader r = {.at = script.data, .end = script.data + script.size, .scan_allowance = script.size};
    bool found = false;
    while (r.at < r.end) {
        char c = *r.at, next = r.at + 1 < r.end ? r.at[1] : 0;
        if (c == '/' && next == '/') {
            found = is_marked(r.at, r.end, marker, old, value) || found;
            skip_line(&r);
        } else if (c == '/' && next == '*') {
            skip_block(&r);
        } else if (c == '/') {
            skip_slash(&r);
        } else if (c == '"' || c == '\'') {
            skip_text(&r);
        } else if (c == '`') {
            r.at++;
            skip_template(&r);
        } else if (c == '{' || c == '}') {
            skip_brace(&r);
        } else if (is_word_byte(c)) {
            skip_word(&r);
        } else {
            skip_punctuator(&r);
        }
    }
    return found;
}

/* ---- the last comment ---- */

/* True if the text at `comment` cannot be inside a string or another comment: nothing after it could end one, and the line is
 * not continued on the next one. */
static bool stands_alone(const char *comment, const char *end)
{
    const char *newline = memchr(comment, '\n', (size_t)(end - comment));
    size_t rest = (size_t)(end - comment), line = newline ? (size_t)(newline - comment) : rest;
    return !memchr(comment, '`', rest) && !memmem(comment, rest, "*/", 2) && !memchr(comment, '"', line) &&
           !memchr(comment, '\'', line) && !memchr(comment, '\\', line);
}

/* Finds the last comment `//# ` (with `old` also `//@ `) with the marker; `*value` is the word after it. False if there is none. Searches
 * backwards from the end; only if a match could be inside a string, the script is read from its beginning, once. */
static bool find_last_comment(struct sl_str script, const struct js_comment_marker *marker, bool old,
                              struct sl_str *value)
{
    /* memrchr searches for the byte at `pivot`, which is rare in scripts; 4: the bytes of `//# ` before the marker */
    size_t head = 4 + marker->pivot, tail = marker->text.size - marker->pivot;
    const char *begin = script.data, *end = begin + script.size, *at = end;
    while (begin && (at = memrchr(begin, marker->text.data[marker->pivot], (size_t)(at - begin)))) {
        if ((size_t)(at - begin) < head || (size_t)(end - at) < tail)
            continue;
        if (!is_marked(at - head, end, marker, old, value))
            continue;
        return stands_alone(at - head, end) || find_last_by_parsing(script, marker, old, value);
    }
    return false;
}

/* Returns the text before the first `c`, else all of it. */
static struct sl_str cut_at(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (struct sl_str){text.data, (size_t)(found - text.data)} : text;
}

bool sl_js_map_comment(struct sl_str script, struct sl_str *reference)
{
    static const struct js_comment_marker marker = {.text = SL_STR("sourceMappingURL="), .pivot = 13}; /* the U */
    struct sl_str value;
    *reference = (struct sl_str){NULL, 0};
    if (!find_last_comment(script, &marker, true, &value))
        return false;
    *reference = sl_js_is_data_url(value) ? value : cut_at(cut_at(value, '?'), '#');
    return true;
}

bool sl_js_debug_id_comment(struct sl_str script, struct sl_debug_id *id)
{
    static const struct js_comment_marker marker = {.text = SL_STR("debugId="), .pivot = 5}; /* the I */
    struct sl_str value;
    *id = (struct sl_debug_id){0};
    return find_last_comment(script, &marker, false, &value) && sl_debug_id_parse(value, id);
}

/* ---- data URLs ---- */

bool sl_js_is_bytecode(struct sl_str script)
{
    return sl_str_starts(script, SL_STR("\xC6\x1F\xBC\x03"));
}

bool sl_js_is_data_url(struct sl_str reference)
{
    return sl_str_starts(reference, SL_STR("data:"));
}

/* Appends the text with `%41` decoded; a percent sign without two hex digits is copied. */
static void percent_decode(struct sl_str text, struct sl_buf *out)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte;
        size_t size;
        if (text.data[i] == '%' && text.size - i > 2 &&
            sl_hex_decode((struct sl_str){text.data + i + 1, 2}, &byte, 1, &size)) {
            sl_buf_u8(out, byte);
            i += 2;
        } else {
            sl_buf_u8(out, (uint8_t)text.data[i]);
        }
    }
}

/* Replaces the base64 text after `start` of `out`, which may contain white space, by its decoded bytes. False if it is not base64, and then
 * the text is removed; lack of memory sets out->failed, too. */
static bool decode_in_place(struct sl_buf *out, size_t start)
{
    struct sl_str text = {(const char *)out->data + start, 0};
    struct sl_buf decoded = {.budget = out->budget};
    for (size_t i = start; i < out->size; i++)
        if (!sl_is_blank((char)out->data[i]))
            out->data[start + text.size++] = out->data[i];
    bool good = sl_buf_reserve(&decoded, text.size + 1) &&
                sl_base64_decode(text, decoded.data, decoded.capacity, &decoded.size);
    out->failed |= decoded.failed;
    out->size = start;
    if (good)
        sl_buf_str(out, sl_buf_view(&decoded));
    sl_buf_free(&decoded);
    return good;
}

/* True if the media type of a data URL ends with ";base64", with blanks allowed after the semicolon. */
static bool is_base64(struct sl_str type)
{
    struct sl_str word = SL_STR("base64");
    if (type.size <= word.size || !sl_str_equal_nocase((struct sl_str){type.data + type.size - 6, 6}, word))
        return false;
    for (size_t i = type.size - word.size; i-- > 0;)
        if (type.data[i] != ' ')
            return type.data[i] == ';';
    return false;
}

bool sl_js_data_url(struct sl_str url, struct sl_buf *out)
{
    size_t start = out->size;
    url = cut_at(url, '#');
    struct sl_str type = cut_at(url, ',');
    if (!sl_js_is_data_url(url) || type.size == url.size)
        return false;
    percent_decode((struct sl_str){url.data + type.size + 1, url.size - type.size - 1}, out);
    bool good = !out->failed && (!is_base64(type) || decode_in_place(out, start));
    good = good && !out->failed && sl_str_is_utf8((struct sl_str){(const char *)out->data + start, out->size - start});
    if (!good)
        out->size = start;
    return good;
}

/* ---- references ---- */

static struct sl_str behind(struct sl_str text, size_t offset)
{
    return (struct sl_str){text.data + offset, text.size - offset};
}

/* Removes the text up to the next slash from `*rest` and returns it in `*segment`; false when nothing is left. */
static bool next_segment(struct sl_str *rest, struct sl_str *segment)
{
    if (!rest->data) /* the last segment was returned before; an empty one has data */
        return false;
    *segment = cut_at(*rest, '/');
    *rest = segment->size < rest->size ? behind(*rest, segment->size + 1) : (struct sl_str){NULL, 0};
    return true;
}

struct js_url_path {
    struct sl_buf *out;
    size_t begin; /* offset of the path in `out`; every segment has a slash in front, empty ones too */
    size_t count; /* number of segments */
};

static void path_push(struct js_url_path *path, struct sl_str segment)
{
    sl_buf_u8(path->out, '/');
    sl_buf_str(path->out, segment);
    path->count++;
}

/* Removes the last segment; false if there is none. */
static bool path_pop(struct js_url_path *path)
{
    if (!path->count || path->out->failed)
        return false;
    const uint8_t *begin = path->out->data + path->begin;
    const uint8_t *slash = memrchr(begin, '/', path->out->size - path->begin);
    path->out->size = (size_t)(slash - path->out->data);
    path->count--;
    return true;
}

/* Appends the segments of a reference. `..` removes a segment; if there is none, it is dropped in URLs of the web and kept in other paths.
 * `.` is dropped, in other paths only at the beginning. */
static void path_push_reference(struct js_url_path *path, struct sl_str reference, bool web)
{
    struct sl_str segment;
    bool first = true;
    while (next_segment(&reference, &segment)) {
        if (sl_str_equal(segment, SL_STR("..")) && (path_pop(path) || web))
            continue;
        if (sl_str_equal(segment, SL_STR(".")) && (web || first))
            continue;
        first = false;
        path_push(path, segment);
    }
}

/* Removes empty segments: slashes that another slash or the end follows. */
static void path_collapse(struct js_url_path *path)
{
    struct sl_buf *out = path->out;
    size_t kept = path->begin;
    for (size_t i = path->begin; i < out->size; i++)
        if (out->data[i] != '/' || (i + 1 < out->size && out->data[i + 1] != '/'))
            out->data[kept++] = out->data[i];
    out->size = kept;
}

/* True for an absolute URL; bundlers write their scheme with or without slashes. */
static bool has_scheme(struct sl_str text)
{
    return memmem(text.data, text.size, "://", 3) || sl_str_starts(text, SL_STR("webpack:")) ||
           sl_str_starts(text, SL_STR("turbopack:"));
}

/* A base URL in parts. `file`: a path, or a URL with the scheme file. */
struct js_base_url {
    struct sl_str scheme, rest;
    bool file;
};

/* Splits a base URL at `://`; a text without it is a path. */
static struct js_base_url split_base(struct sl_str text)
{
    const char *colon = memmem(text.data, text.size, "://", 3);
    if (!colon)
        return (struct js_base_url){SL_STR("file"), text, true};
    struct sl_str scheme = {text.data, (size_t)(colon - text.data)};
    return (struct js_base_url){scheme, behind(text, scheme.size + 3), sl_str_equal(scheme, SL_STR("file"))};
}

/* Appends a reference that begins with a slash. If the base is a file, the reference stands alone. Otherwise it follows scheme and host of
 * the base; one that begins with `//` has a host itself and follows only the scheme. */
static void join_absolute(const struct js_base_url *base, struct sl_str reference, struct sl_buf *out)
{
    if (!base->file) {
        sl_buf_str(out, base->scheme);
        sl_buf_u8(out, ':');
        if (!sl_str_starts(reference, SL_STR("//"))) {
            sl_buf_cstr(out, "//");
            sl_buf_str(out, cut_at(base->rest, '/'));
        }
    }
    sl_buf_str(out, reference);
}

/* Appends a relative reference resolved against the base: it replaces the last segment of the base's path. */
static void join_relative(const struct js_base_url *base, struct sl_str reference, struct sl_buf *out)
{
    struct sl_str rest = base->rest, segment;
    bool web = sl_str_equal(base->scheme, SL_STR("http")) || sl_str_equal(base->scheme, SL_STR("https"));
    if (!base->file) {
        next_segment(&rest, &segment); /* the host */
        sl_buf_str(out, base->scheme);
        sl_buf_cstr(out, "://");
        sl_buf_str(out, segment);
    } else if (sl_str_starts(rest, SL_STR("/"))) {
        next_segment(&rest, &segment); /* the empty one before the first slash */
    }
    struct js_url_path path = {.out = out, .begin = out->size};
    while (next_segment(&rest, &segment) && rest.data) /* all but the last segment of the base */
        path_push(&path, segment);
    path_push_reference(&path, reference, web);
    if (!out->failed)
        path_collapse(&path);
}

void sl_js_join(struct sl_str base, struct sl_str reference, struct sl_buf *out)
{
    if (!base.data)
        base = SL_STR("");
    if (!reference.data)
        reference = SL_STR("");
    if (has_scheme(reference)) {
        sl_buf_str(out, reference);
        return;
    }
    struct js_base_url split = split_base(base);
    if (sl_str_starts(reference, SL_STR("~"))) /* stands for any host, as Sentry's artifacts are named */
        reference = behind(reference, 1);
    if (sl_str_starts(reference, SL_STR("/")))
        join_absolute(&split, reference, out);
    else
        join_relative(&split, reference, out);
}
