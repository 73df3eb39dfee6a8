#include "source/links.h"

#include "source/text.h"

#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

struct sl_link_rule {
    struct sl_str folded;   /* the pattern in lower case, without its star */
    struct sl_str original; /* as written, with its star */
    struct sl_str url;
    bool prefix;
};

/* ---- case ---- */

/* Beyond ASCII the C library knows, in any locale that has Unicode. */
static uint32_t lower(locale_t unicode, uint32_t code)
{
    if (code < 0x80)
        return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return unicode ? (uint32_t)towlower_l((wint_t)code, unicode) : code;
}

static bool is_ascii(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] >= 0x80)
            return false;
    return true;
}

static locale_t unicode_locale(struct sl_str text)
{
    return is_ascii(text) ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static void drop_locale(locale_t locale)
{
    if (locale)
        freelocale(locale);
}

static struct sl_str fold(struct sl_str text, struct sl_arena *arena)
{
    /* The lower case of a code point may be longer, a replacement character too. */
    char *out = sl_arena_alloc(arena, text.size * 4 + 1, 1);
    locale_t unicode = unicode_locale(text);
    size_t size = 0;
    for (size_t at = 0; out && at < text.size;)
        size += sl_utf8_encode(lower(unicode, sl_utf8_next(text, &at)), out + size);
    drop_locale(unicode);
    return (struct sl_str){out, out ? size : 0};
}

/* ---- reading ---- */

static int rule_order(const struct sl_link_rule *a, const struct sl_link_rule *b)
{
    if (a->prefix != b->prefix)
        return a->prefix ? 1 : -1;
    if (a->prefix && a->folded.size != b->folded.size)
        return a->folded.size > b->folded.size ? -1 : 1;
    return sl_str_compare(a->folded, b->folded);
}

static int by_order(const void *left, const void *right)
{
    const struct sl_link_rule *a = left, *b = right;
    int order = rule_order(a, b);
    return order ? order : sl_str_compare(a->original, b->original);
}

/* Of patterns that differ by case only, the last in the order of their spelling counts. */
static void drop_equal(struct sl_links *links)
{
    size_t kept = 0;
    for (size_t i = 0; i < links->count; i++) {
        kept -= kept && rule_order(&links->rules[kept - 1], &links->rules[i]) == 0;
        links->rules[kept++] = links->rules[i];
    }
    links->count = kept;
}

static struct sl_str slashes(struct sl_str text, struct sl_arena *arena)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    for (size_t i = 0; copy && i < text.size; i++)
        copy[i] = copy[i] == '\\' ? '/' : copy[i];
    return (struct sl_str){copy, copy ? text.size : 0};
}

static bool make_rule(struct sl_str pattern, struct sl_str url, bool normalise, struct sl_arena *arena,
                      struct sl_link_rule *rule)
{
    *rule = (struct sl_link_rule){.original = pattern, .url = url};
    rule->prefix = pattern.size && pattern.data[pattern.size - 1] == '*';
    if (normalise)
        pattern = slashes(pattern, arena);
    if (pattern.data)
        rule->folded = fold((struct sl_str){pattern.data, pattern.size - rule->prefix}, arena);
    return rule->folded.data;
}

static struct sl_link_rule *add_rule(struct sl_links *links, size_t *capacity, struct sl_arena *arena)
{
    if (links->count == *capacity) {
        struct sl_link_rule *grown = SL_ARENA_ARRAY(arena, struct sl_link_rule, *capacity * 2 + 8);
        if (!grown)
            return NULL;
        if (*capacity)
            memcpy(grown, links->rules, *capacity * sizeof *grown);
        links->rules = grown;
        *capacity = *capacity * 2 + 8;
    }
    return &links->rules[links->count++];
}

void sl_links_read(struct sl_json *json, struct sl_arena *arena, bool normalise, struct sl_links *links)
{
    struct sl_str pattern, url;
    size_t capacity = 0;
    *links = (struct sl_links){0};
    if (!sl_json_enter(json))
        return;
    while (sl_json_next(json, &pattern)) {
        if (sl_json_peek(json) != SL_JSON_STRING) {
            sl_json_skip(json);
            continue;
        }
        struct sl_link_rule *rule = NULL;
        if (!sl_json_string(json, &url))
            break;
        if (links->count == SL_LINKS_MAX_RULES)
            sl_json_fail(json, "too many source links");
        else if (!(rule = add_rule(links, &capacity, arena)) || !make_rule(pattern, url, normalise, arena, rule))
            sl_json_fail(json, "out of memory");
    }
    if (json->failed)
        links->count = 0;
    if (links->count)
        qsort(links->rules, links->count, sizeof *links->rules, by_order);
    drop_equal(links);
}

enum sl_code sl_links_parse(struct sl_str text, struct sl_arena *arena, struct sl_links *links, struct sl_error *error)
{
    struct sl_json json = sl_json(text, arena, true);
    struct sl_str key;
    *links = (struct sl_links){0};
    bool found = false;
    if (sl_json_enter(&json))
        while (sl_json_next(&json, &key)) {
            bool documents = sl_str_equal(key, SL_STR("documents")) && sl_json_peek(&json) == SL_JSON_OBJECT;
            found = found || documents;
            if (documents)
                sl_links_read(&json, arena, false, links);
            else
                sl_json_skip(&json);
        }
    if (sl_json_end(&json) && found)
        return SL_OK;
    *links = (struct sl_links){0};
    return sl_fail(error, SL_MALFORMED, "invalid source link JSON: %s at offset %zu",
                   json.failed ? json.problem : "no object of documents", json.at);
}

/* ---- resolving ---- */

/* Whether `folded` is what `path` begins with, code point by code point; `*rest` is where the path goes on. */
static bool begins_with(struct sl_str path, struct sl_str folded, locale_t unicode, size_t *rest)
{
    size_t at = 0, in = 0;
    while (in < folded.size) {
        char code[4];
        if (at == path.size)
            return false;
        size_t size = sl_utf8_encode(lower(unicode, sl_utf8_next(path, &at)), code);
        if (size > folded.size - in || memcmp(code, folded.data + in, size) != 0)
            return false;
        in += size;
    }
    *rest = at;
    return true;
}

/* pchar of RFC 3986, and what separates. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~!$&'()*+,;=:@/", c));
}

static void add_rest(struct sl_buf *url, struct sl_str rest)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < rest.size; i++) {
        char c = rest.data[i] == '\\' ? '/' : rest.data[i];
        if (is_plain(c)) {
            sl_buf_u8(url, (uint8_t)c);
        } else {
            sl_buf_u8(url, '%');
            sl_buf_u8(url, (uint8_t)digits[(uint8_t)c >> 4]);
            sl_buf_u8(url, (uint8_t)digits[(uint8_t)c & 15]);
        }
    }
}

static void add_url(struct sl_buf *out, const struct sl_link_rule *rule, struct sl_str rest)
{
    for (size_t i = 0; i < rule->url.size; i++)
        if (rule->prefix && rule->url.data[i] == '*')
            add_rest(out, rest);
        else
            sl_buf_u8(out, (uint8_t)rule->url.data[i]);
}

bool sl_links_resolve(const struct sl_links *links, struct sl_str path, struct sl_buf *url)
{
    const struct sl_link_rule *found = NULL;
    size_t rest = 0;
    locale_t unicode = unicode_locale(path);
    for (size_t i = 0; i < links->count && !found; i++) {
        const struct sl_link_rule *rule = &links->rules[i];
        if (begins_with(path, rule->folded, unicode, &rest) && (rule->prefix || rest == path.size))
            found = rule;
    }
    drop_locale(unicode);
    if (!found)
        return false;
    add_url(url, found, (struct sl_str){path.data + rest, path.size - rest});
    return !url->failed;
}
