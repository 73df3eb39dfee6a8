/* Source Link rules: sorts and stores them, and finds the rule for a path. */
#include "ppdb/impl.h"
#include "base/search.h"

#include <stdlib.h>

/* RULE_SIZE: bytes of a stored rule. MAX_URL: limit of a URL in bytes, because a rule may repeat the path in it many times. MAX_CHAIN:
 * limit of the ever shorter prefixes that a lookup tries after the first. */
enum { RULE_SIZE = 20, MAX_URL = 64 << 10, MAX_CHAIN = 16 };

/* ---- building ---- */

struct ppdb_link_rule {
    struct sl_str pattern, original, url; /* the pattern is lower-cased, a prefix is without its `*` */
    size_t index;
    uint32_t shorter; /* the longest other prefix that this one begins with: index among the prefixes, + 1; 0 = none */
    uint8_t chain;    /* length of the chain: number of prefixes that are reached by following `shorter` to its end */
    bool prefix;
};

/* Orders the rules: exact ones first, then prefixes, each by lower-cased pattern. Of rules whose patterns are equal in lower case only the
 * first in this order is kept: the one with the greatest original pattern; if these are equal, too, the one that was listed last. */
static int compare_rules(const void *a, const void *b)
{
    const struct ppdb_link_rule *x = a, *y = b;
    if (x->prefix != y->prefix)
        return x->prefix ? 1 : -1;
    int order = sl_str_compare(x->pattern, y->pattern);
    if (!order)
        order = sl_str_compare(y->original, x->original);
    return order ? order : x->index < y->index ? 1 : -1;
}

static bool same_rule(const struct ppdb_link_rule *a, const struct ppdb_link_rule *b)
{
    return a->prefix == b->prefix && sl_str_equal(a->pattern, b->pattern);
}

/* Makes a rule: paths are compared without case, so the pattern is lower-cased, into the arena. Sets scratch->failed when out of memory. */
static void ppdb_links_prepare(struct ppdb_link_rule *rule, const struct sl_ppdb_link *link, size_t index,
                               struct sl_buf *scratch, struct sl_arena *arena)
{
    struct sl_str text = link->pattern;
    *rule = (struct ppdb_link_rule){.original = link->pattern, .url = link->url, .index = index};
    if (sl_str_ends(text, SL_STR("*"))) { /* matches all paths that begin with the text before it */
        rule->prefix = true;
        text.size--;
    }
    sl_buf_clear(scratch);
    for (size_t at = 0; at < text.size;)
        links_add_code_point(scratch, ppdb_next_lower(text, &at));
    char *copy = sl_arena_strndup(arena, (const char *)scratch->data, scratch->size);
    scratch->failed |= !copy;
    rule->pattern = (struct sl_str){copy, copy ? scratch->size : 0};
}

/* Removes all but the first of the rules with equal patterns; returns how many rules are left. */
static size_t drop_duplicates(struct ppdb_link_rule *rules, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || !same_rule(&rules[kept - 1], &rules[i]))
            rules[kept++] = rules[i];
    return kept;
}

/* Sets, for each prefix, `shorter`: the longest other prefix that it begins with (counted from 1; 0 = none), and `chain`: how many prefixes
 * follow from `shorter` to `shorter`. Sorted, a shorter prefix comes before those that begin with it, so the candidates are the
 * predecessor, its `shorter`, and so on. A lookup follows the chain, so it is cut after MAX_CHAIN links, more than directories are nested
 * in practice. */
static void link_prefixes(struct ppdb_link_rule *rules, size_t count)
{
    size_t first = 0;
    while (first < count && !rules[first].prefix)
        first++;
    for (size_t i = first; i < count; i++) {
        uint32_t shorter = i > first ? (uint32_t)(i - first) : 0;
        while (shorter && !sl_str_starts(rules[i].pattern, rules[first + shorter - 1].pattern))
            shorter = rules[first + shorter - 1].shorter;
        bool ends = !shorter || rules[first + shorter - 1].chain == MAX_CHAIN;
        rules[i].shorter = ends ? 0 : shorter;
        rules[i].chain = ends ? 0 : rules[first + shorter - 1].chain + 1;
    }
}

/* Appends the rules in their stored form (links.h): the numbers of exact rules, of prefixes and of bytes of text; a row of RULE_SIZE bytes
 * for each rule; and the text of the patterns and URLs, to which the rows have offsets. */
static void ppdb_links_store(const struct ppdb_link_rule *rules, size_t count, struct sl_buf *out)
{
    uint64_t size = 0, exact = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        size += rules[i].pattern.size + rules[i].url.size;
        exact += !rules[i].prefix;
    }
    out->failed |= size > UINT32_MAX; /* offsets and sizes are stored as u32 */
    sl_buf_u32(out, (uint32_t)exact);
    sl_buf_u32(out, (uint32_t)(count - exact));
    sl_buf_u32(out, (uint32_t)size);
    for (size_t i = 0; i < count; i++) {
        const struct sl_str texts[] = {rules[i].pattern, rules[i].url};
        for (size_t t = 0; t < 2; t++) {
            sl_buf_u32(out, (uint32_t)at);
            sl_buf_u32(out, (uint32_t)texts[t].size);
            at += texts[t].size;
        }
        sl_buf_u32(out, rules[i].shorter);
    }
    for (size_t i = 0; i < count; i++) {
        sl_buf_str(out, rules[i].pattern);
        sl_buf_str(out, rules[i].url);
    }
}

enum sl_code sl_ppdb_links_build(const struct sl_ppdb_link *links, size_t count, struct sl_buf *out,
                                 struct sl_error *error)
{
    if (!count)
        return SL_OK;
    if (count > SL_PPDB_MAX_LINKS)
        return sl_fail(error, SL_MALFORMED, "too many source link rules");
    struct sl_arena arena = {.budget = out->budget};
    struct sl_buf scratch = {.budget = out->budget};
    struct ppdb_link_rule *rules = SL_ARENA_ARRAY(&arena, struct ppdb_link_rule, count);
    for (size_t i = 0; rules && i < count; i++)
        ppdb_links_prepare(&rules[i], &links[i], i, &scratch, &arena);
    bool ok = rules && !scratch.failed;
    if (ok) {
        qsort(rules, count, sizeof *rules, compare_rules);
        count = drop_duplicates(rules, count);
        link_prefixes(rules, count);
        ppdb_links_store(rules, count, out);
    }
    sl_buf_free(&scratch);
    sl_arena_free(&arena);
    return ok && !out->failed ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- using ---- */

bool sl_ppdb_links_open(struct sl_bytes bytes, struct sl_ppdb_links *links)
{
    *links = (struct sl_ppdb_links){0};
    if (!bytes.size)
        return true;
    struct sl_reader r = sl_reader(bytes, false);
    uint32_t exact = sl_read_u32(&r), prefixes = sl_read_u32(&r), size = sl_read_u32(&r);
    struct sl_bytes rules = sl_read_bytes(&r, ((uint64_t)exact + prefixes) * RULE_SIZE);
    struct sl_bytes text = sl_read_bytes(&r, size);
    if (r.failed || sl_reader_left(&r))
        return false;
    *links = (struct sl_ppdb_links){rules, text, exact, prefixes};
    return true;
}

struct stored_rule {
    struct sl_str pattern, url;
    uint32_t shorter; /* index, + 1, of the next shorter prefix among the prefixes; 0 = none */
};

/* Returns a stored rule. Texts of a damaged table are empty rather than out of bounds. */
static struct stored_rule rule_at(const struct sl_ppdb_links *links, uint64_t index)
{
    struct sl_reader r = sl_reader(links->rules, false);
    sl_reader_seek(&r, index * RULE_SIZE);
    uint32_t pattern = sl_read_u32(&r), pattern_size = sl_read_u32(&r);
    uint32_t url = sl_read_u32(&r), url_size = sl_read_u32(&r);
    struct sl_bytes p = sl_bytes_slice(links->text, pattern, pattern_size, NULL);
    struct sl_bytes u = sl_bytes_slice(links->text, url, url_size, NULL);
    return (struct stored_rule){{(const char *)p.data, p.size}, {(const char *)u.data, u.size}, sl_read_u32(&r)};
}

/* Returns the index of the first of the rules [low, high) whose pattern is greater than the text in byte order. */
static uint64_t upper_bound(const struct sl_ppdb_links *links, uint64_t low, uint64_t high, struct sl_str text)
{
    return SL_PARTITION_POINT(middle, low, high, sl_str_compare(rule_at(links, middle).pattern, text) <= 0);
}

/* Finds the exact rule (without `*`) whose pattern is equal to the text, a lower-cased path. */
static bool find_exact(const struct sl_ppdb_links *links, struct sl_str text, struct stored_rule *rule)
{
    uint64_t above = upper_bound(links, 0, links->exact_count, text); /* index of the first greater pattern */
    if (!above)
        return false;
    *rule = rule_at(links, above - 1);
    return sl_str_equal(rule->pattern, text);
}

static size_t common_prefix(struct sl_str a, struct sl_str b)
{
    size_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n])
        n++;
    return n;
}

/* Finds the rule with the longest prefix of the text, a lower-cased path. The candidates are the text's predecessor in byte order and the
 * ever shorter prefixes of that predecessor, linked by `shorter`. All of them begin like the predecessor, so the first that is not longer
 * than what predecessor and text have in common matches. */
static bool find_prefix(const struct sl_ppdb_links *links, struct sl_str text, struct stored_rule *rule)
{
    uint64_t first = links->exact_count, end = first + links->prefix_count;
    uint64_t number = upper_bound(links, first, end, text) - first; /* of the predecessor, counted from 1; 0 = none */
    size_t common = number ? common_prefix(rule_at(links, first + number - 1).pattern, text) : 0;
    while (number) {
        *rule = rule_at(links, first + number - 1);
        if (rule->pattern.size <= common)
            return true;
        /* the table is damaged if the next one is not before this one: then the search ends, as the chain may be endless */
        number = rule->shorter < number ? rule->shorter : 0;
    }
    return false;
}

/* Sets `*at` to the offset in the path that corresponds to offset `lowered` in its lower-case form, where a character may have another
 * number of bytes. False if `lowered` is inside a character, or when out of memory. */
static bool find_original_offset(struct sl_str path, size_t lowered, struct sl_buf *scratch, size_t *at)
{
    sl_buf_clear(scratch);
    *at = 0;
    while (scratch->size < lowered && *at < path.size && !scratch->failed)
        links_add_code_point(scratch, ppdb_next_lower(path, at));
    return scratch->size == lowered;
}

/* True for characters that need no encoding in a URL's path, or in a value of its query (RFC 3986, 3.3 and 3.4). */
static bool is_plain(char c, bool in_query)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/')
        return true;
    return c && strchr(in_query ? "-._~!$'()*,;:@" : "-._~!$&'()*+,;=:@", c);
}

/* Appends `rest`, the part of the path after the rule's prefix, percent-encoded, with slashes for backslashes. `in_query`: it becomes part
 * of the URL's query, where more characters must be encoded. */
static void add_rest(struct sl_buf *url, struct sl_str rest, bool in_query)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < rest.size; i++) {
        char c = rest.data[i] == '\\' ? '/' : rest.data[i];
        if (is_plain(c, in_query)) {
            sl_buf_u8(url, (uint8_t)c);
        } else {
            sl_buf_u8(url, '%');
            sl_buf_u8(url, (uint8_t)hex[(uint8_t)c >> 4]);
            sl_buf_u8(url, (uint8_t)hex[(uint8_t)c & 15]);
        }
    }
}

/* Appends the template, a rule's URL, with each `*` replaced by `rest`, the part of the path after the rule's prefix. False, and nothing
 * appended, if the result is too long or memory runs out. */
static bool expand(struct sl_str template, struct sl_str rest, struct sl_buf *url)
{
    size_t start = url->size;
    bool in_query = false;
    for (size_t i = 0; i < template.size && url->size - start <= MAX_URL; i++) {
        in_query = in_query || template.data[i] == '?';
        if (template.data[i] == '*')
            add_rest(url, rest, in_query);
        else
            sl_buf_u8(url, (uint8_t) template.data[i]);
    }
    if (url->size - start <= MAX_URL && !url->failed)
        return true;
    url->size = start;
    return false;
}

/* Appends the URL of a path (`lower`: the path in lower case) to `url`; if that is NULL, only checks whether a rule matches. Exact rules
 * are preferred to prefixes, longer prefixes to shorter ones. False if no rule matches, if the URL is too long, or when out of memory. */
static bool resolve(const struct sl_ppdb_links *links, struct sl_str path, struct sl_str lower, struct sl_buf *url)
{
    struct stored_rule rule;
    if (find_exact(links, lower, &rule)) {
        if (url)
            sl_buf_str(url, rule.url); /* there is no rest of the path to put in place of a `*` */
        return true;
    }
    struct sl_buf scratch = {0};
    size_t at;
    bool matches = find_prefix(links, lower, &rule) && find_original_offset(path, rule.pattern.size, &scratch, &at);
    sl_buf_free(&scratch);
    return matches && (!url || expand(rule.url, (struct sl_str){path.data + at, path.size - at}, url));
}

bool sl_ppdb_links_resolve(const struct sl_ppdb_links *links, struct sl_str path, struct sl_buf *url)
{
    if (!links->exact_count && !links->prefix_count)
        return false;
    path.data = path.size ? path.data : ""; /* an empty path may have NULL, to which no offset may be added */
    struct sl_buf lower = {0};
    for (size_t at = 0; at < path.size;)
        links_add_code_point(&lower, ppdb_next_lower(path, &at));
    bool matches = !lower.failed && resolve(links, path, sl_buf_view(&lower), url);
    sl_buf_free(&lower);
    return matches;
}
