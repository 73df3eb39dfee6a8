#include "js/comment.h"

#include "base/base64.h"

/* ---- comments ---- */

struct marker {
    struct sl_str text;
    size_t pivot; /* of a byte in it that scripts seldom have */
};

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

/* The word behind the last marker that follows `//# ` (or `//@ `, if `old`). */
static bool last_comment(struct sl_str script, const struct marker *marker, bool old, struct sl_str *value)
{
    size_t head = 4 + marker->pivot, tail = marker->text.size - marker->pivot;
    const char *begin = script.data, *end = begin + script.size, *at = end;
    while (begin && (at = memrchr(begin, marker->text.data[marker->pivot], (size_t)(at - begin)))) {
        if ((size_t)(at - begin) < head || (size_t)(end - at) < tail)
            continue;
        const char *comment = at - head, *text = comment + 4;
        bool is = memcmp(text, marker->text.data, marker->text.size) == 0 && comment[0] == '/' && comment[1] == '/' &&
                  (comment[2] == '#' || (old && comment[2] == '@')) && comment[3] == ' ';
        if (!is)
            continue;
        text += marker->text.size;
        *value = first_word((struct sl_str){text, (size_t)(end - text)});
        return true;
    }
    return false;
}

static struct sl_str cut_at(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (struct sl_str){text.data, (size_t)(found - text.data)} : text;
}

bool sl_js_map_comment(struct sl_str script, struct sl_str *reference)
{
    static const struct marker marker = {SL_STR("sourceMappingURL="), 13};
    *reference = (struct sl_str){NULL, 0};
    if (!last_comment(script, &marker, true, reference))
        return false;
    if (!sl_js_is_data_url(*reference))
        *reference = cut_at(cut_at(*reference, '?'), '#');
    return true;
}

bool sl_js_debug_id_comment(struct sl_str script, struct sl_debug_id *id)
{
    static const struct marker marker = {SL_STR("debugId="), 5};
    struct sl_str value;
    *id = (struct sl_debug_id){0};
    return last_comment(script, &marker, false, &value) && sl_debug_id_parse(value, id);
}

/* ---- data URLs ---- */

bool sl_js_is_data_url(struct sl_str reference)
{
    return sl_str_starts(reference, SL_STR("data:"));
}

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

/* What is behind `start` of `out` is base64, white space in it or not, and becomes what that stands for. */
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

/* Takes the text up to the next slash off `*rest`; false when nothing is left. */
static bool next_piece(struct sl_str *rest, struct sl_str *piece)
{
    if (!rest->data)
        return false;
    *piece = cut_at(*rest, '/');
    *rest = piece->size < rest->size ? behind(*rest, piece->size + 1) : (struct sl_str){NULL, 0};
    return true;
}

struct path {
    struct sl_buf *out;
    size_t begin; /* in `out`: every segment with a slash in front, empty ones too */
    size_t count; /* segments */
};

static void path_push(struct path *path, struct sl_str segment)
{
    sl_buf_u8(path->out, '/');
    sl_buf_str(path->out, segment);
    path->count++;
}

static bool path_pop(struct path *path)
{
    if (!path->count || path->out->failed)
        return false;
    const uint8_t *begin = path->out->data + path->begin;
    const uint8_t *slash = memrchr(begin, '/', path->out->size - path->begin);
    path->out->size = (size_t)(slash - path->out->data);
    path->count--;
    return true;
}

static void path_push_reference(struct path *path, struct sl_str reference, bool web)
{
    struct sl_str piece;
    bool first = true;
    while (next_piece(&reference, &piece)) {
        if (sl_str_equal(piece, SL_STR("..")) && (path_pop(path) || web))
            continue;
        if (sl_str_equal(piece, SL_STR(".")) && (web || first))
            continue;
        first = false;
        path_push(path, piece);
    }
}

/* Segments that are empty go. */
static void path_collapse(struct path *path)
{
    struct sl_buf *out = path->out;
    size_t kept = path->begin;
    for (size_t i = path->begin; i < out->size; i++)
        if (out->data[i] != '/' || (i + 1 < out->size && out->data[i + 1] != '/'))
            out->data[kept++] = out->data[i];
    out->size = kept;
}

static bool has_scheme(struct sl_str text)
{
    return memmem(text.data, text.size, "://", 3) || sl_str_starts(text, SL_STR("webpack:")) ||
           sl_str_starts(text, SL_STR("turbopack:"));
}

struct base {
    struct sl_str scheme, rest;
    bool file;
};

static struct base split_base(struct sl_str text)
{
    const char *colon = memmem(text.data, text.size, "://", 3);
    if (!colon)
        return (struct base){SL_STR("file"), text, true};
    struct sl_str scheme = {text.data, (size_t)(colon - text.data)};
    return (struct base){scheme, behind(text, scheme.size + 3), sl_str_equal(scheme, SL_STR("file"))};
}

/* The reference begins with a slash: it is absolute on the base's host. */
static void join_absolute(const struct base *base, struct sl_str reference, struct sl_buf *out)
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

static void join_relative(const struct base *base, struct sl_str reference, struct sl_buf *out)
{
    struct sl_str rest = base->rest, piece;
    bool web = sl_str_equal(base->scheme, SL_STR("http")) || sl_str_equal(base->scheme, SL_STR("https"));
    if (!base->file) {
        next_piece(&rest, &piece);
        sl_buf_str(out, base->scheme);
        sl_buf_cstr(out, "://");
        sl_buf_str(out, piece);
    } else if (sl_str_starts(rest, SL_STR("/"))) {
        next_piece(&rest, &piece);
    }
    struct path path = {.out = out, .begin = out->size};
    while (next_piece(&rest, &piece) && rest.data)
        path_push(&path, piece);
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
    struct base split = split_base(base);
    if (sl_str_starts(reference, SL_STR("~")))
        reference = behind(reference, 1);
    if (sl_str_starts(reference, SL_STR("/")))
        join_absolute(&split, reference, out);
    else
        join_relative(&split, reference, out);
}
