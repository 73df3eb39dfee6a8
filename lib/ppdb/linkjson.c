/* The JSON of Source Link (RFC 8259), read as forgivingly as the tools that write it by hand need: byte order mark,
 * comments, trailing commas. Only `documents` matters; everything else is walked over. */
#include "ppdb/impl.h"

enum { MAX_DEPTH = 64 };

struct parser {
    const char *at, *end;
    struct sl_arena *arena;
    struct sl_ppdb_link *links;
    size_t count, capacity;
    bool failed;
};

static bool fail(struct parser *p)
{
    p->failed = true;
    p->at = p->end;
    return false;
}

static bool starts(const struct parser *p, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(p->end - p->at) >= size && memcmp(p->at, text, size) == 0;
}

static void skip_comment(struct parser *p, const char *closing)
{
    while (p->at < p->end && !starts(p, closing))
        p->at++;
    if (p->at < p->end)
        p->at += strlen(closing);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end) {
        if (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
            p->at++;
        else if (starts(p, "//"))
            skip_comment(p, "\n");
        else if (starts(p, "/*"))
            skip_comment(p, "*/");
        else
            return;
    }
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---- strings ---- */

static bool hex4(struct parser *p, uint32_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < 4; i++, p->at++) {
        char c = p->at < p->end ? *p->at : 0;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16)
            return fail(p);
        *value = *value << 4 | digit;
    }
    return true;
}

static void unescape_code_point(struct parser *p, struct sl_buf *out)
{
    uint32_t c, low;
    if (!hex4(p, &c))
        return;
    if (c >= 0xD800 && c < 0xDC00 && starts(p, "\\u")) {
        p->at += 2;
        if (!hex4(p, &low))
            return;
        c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
    } else if (c >= 0xD800 && c < 0xE000) {
        c = 0xFFFD;
    }
    links_add_code_point(out, c);
}

static void unescape(struct parser *p, struct sl_buf *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at++ : 0;
    const char *name = c ? strchr(names, c) : NULL;
    if (c == 'u')
        unescape_code_point(p, out);
    else if (name)
        sl_buf_u8(out, (uint8_t)values[name - names]);
    else
        fail(p);
}

/* The text behind its opening quote, appended to `out`. */
static bool read_string(struct parser *p, struct sl_buf *out)
{
    while (p->at < p->end) {
        char c = *p->at++;
        if (c == '"')
            return true;
        if (c == '\\')
            unescape(p, out);
        else if ((unsigned char)c < 0x20)
            return fail(p);
        else
            sl_buf_u8(out, (uint8_t)c);
    }
    return fail(p);
}

static bool keep_string(struct parser *p, struct sl_str *text)
{
    struct sl_buf buf = {0};
    char *copy = take(p, '"') && read_string(p, &buf) && !buf.failed
                     ? sl_arena_strndup(p->arena, (const char *)buf.data, buf.size)
                     : NULL;
    *text = (struct sl_str){copy, copy ? buf.size : 0};
    sl_buf_free(&buf);
    return copy || fail(p);
}

/* ---- values ---- */

static bool skip_value(struct parser *p, unsigned depth);

/* What stands between the brackets, one member after the other; a comma before the closing one is forgiven. */
static bool skip_members(struct parser *p, char closing, unsigned depth)
{
    for (;;) {
        struct sl_str key;
        if (take(p, closing))
            return true;
        if (closing == '}' && (!keep_string(p, &key) || !take(p, ':')))
            return fail(p);
        if (!skip_value(p, depth + 1))
            return false;
        if (!take(p, ','))
            return take(p, closing) || fail(p);
    }
}

static bool skip_scalar(struct parser *p)
{
    const char *start = p->at;
    while (p->at < p->end && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *p->at) && *p->at)
        p->at++;
    return p->at > start || fail(p);
}

static bool skip_value(struct parser *p, unsigned depth)
{
    struct sl_str text;
    if (depth > MAX_DEPTH)
        return fail(p);
    skip_space(p);
    if (p->at < p->end && *p->at == '"')
        return keep_string(p, &text);
    if (take(p, '{'))
        return skip_members(p, '}', depth);
    if (take(p, '['))
        return skip_members(p, ']', depth);
    return skip_scalar(p);
}

/* ---- documents ---- */

static bool add(struct parser *p, struct sl_ppdb_link link)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 16;
        struct sl_ppdb_link *grown = SL_ARENA_ARRAY(p->arena, struct sl_ppdb_link, capacity);
        if (!grown || p->count >= SL_PPDB_MAX_LINKS)
            return fail(p);
        if (p->count)
            memcpy(grown, p->links, p->count * sizeof *grown);
        p->links = grown;
        p->capacity = capacity;
    }
    p->links[p->count++] = link;
    return true;
}

static bool read_document(struct parser *p)
{
    struct sl_ppdb_link link;
    if (!keep_string(p, &link.pattern) || !take(p, ':'))
        return fail(p);
    skip_space(p);
    if (p->at < p->end && *p->at != '"')
        return skip_value(p, 2); /* no URL: one bad rule does not spoil the others */
    return keep_string(p, &link.url) && add(p, link);
}

static bool read_documents(struct parser *p)
{
    skip_space(p);
    if (!take(p, '{'))
        return fail(p);
    for (;;) {
        if (take(p, '}'))
            return true;
        if (!read_document(p))
            return false;
        if (!take(p, ','))
            return take(p, '}') || fail(p);
    }
}

static bool read_root(struct parser *p)
{
    bool found = false;
    if (!take(p, '{'))
        return fail(p);
    while (!take(p, '}')) {
        struct sl_str key;
        if (!keep_string(p, &key) || !take(p, ':'))
            return fail(p);
        bool documents = sl_str_equal(key, SL_STR("documents"));
        found = found || documents;
        if (!(documents ? read_documents(p) : skip_value(p, 1)))
            return false;
        if (!take(p, ','))
            return (take(p, '}') && found) || fail(p);
    }
    return found || fail(p);
}

enum sl_code sl_ppdb_links_parse(struct sl_str json, struct sl_arena *arena, struct sl_ppdb_link **rules, size_t *count,
                                 struct sl_error *error)
{
    *rules = NULL;
    *count = 0;
    if (!json.size)
        return sl_fail(error, SL_MALFORMED, "invalid source link JSON");
    struct parser p = {.at = json.data, .end = json.data + json.size, .arena = arena};
    if (starts(&p, "\xEF\xBB\xBF"))
        p.at += 3;
    bool ok = read_root(&p);
    skip_space(&p);
    if (!ok || p.failed || p.at != p.end)
        return sl_fail(error, SL_MALFORMED, "invalid source link JSON");
    *rules = p.links;
    *count = p.count;
    return SL_OK;
}
