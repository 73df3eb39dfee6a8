/* Sorting texts, and the decoration of Windows names. */
#include "symcache/build.h"

#include <stdlib.h>

enum { MAX_LEVEL = 200 };

struct item {
    uint64_t word;
    uint32_t index;
};

/* Eight bytes at `depth` as a number that orders like the bytes; a text that ends sorts before its extensions, because
 * NUL cannot occur inside (texts with NUL are ordered by their bytes all the same, only not strictly). */
static uint64_t word_at(const struct text *text, size_t depth)
{
    uint64_t word = 0;
    size_t left = text->str.size > depth ? text->str.size - depth : 0;
    if (left >= 8) {
        memcpy(&word, text->str.data + depth, 8);
        return __builtin_bswap64(word);
    }
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)(uint8_t)text->str.data[depth + i] << (56 - 8 * i);
    return word;
}

static bool before(const struct text *texts, const struct item *a, const struct item *b, size_t depth)
{
    if (a->word != b->word)
        return a->word < b->word;
    struct sl_str x = texts[a->index].str, y = texts[b->index].str;
    depth = depth < x.size ? depth : x.size;
    depth = depth < y.size ? depth : y.size;
    return sl_str_compare((struct sl_str){x.data + depth, x.size - depth},
                          (struct sl_str){y.data + depth, y.size - depth}) < 0;
}

static void insertion_sort(const struct text *texts, struct item *items, size_t count, size_t depth)
{
    for (size_t i = 1; i < count; i++) {
        struct item item = items[i];
        size_t at = i;
        for (; at && before(texts, &item, &items[at - 1], depth); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void swap(struct item *a, struct item *b)
{
    struct item t = *a;
    *a = *b;
    *b = t;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    return a < b ? b < c ? b : a < c ? c : a : a < c ? a : b < c ? c : b;
}

static int by_text(const void *left, const void *right, void *arg)
{
    const struct item *a = left, *b = right;
    const struct text *texts = arg;
    return sl_str_compare(texts[a->index].str, texts[b->index].str);
}

/* Multikey quicksort by words of eight bytes: long common prefixes, the rule with mangled names, are looked at once. */
static void sort_items(const struct text *texts, struct item *items, size_t count, size_t depth, unsigned level)
{
    if (level > MAX_LEVEL) { /* only texts made for it get here */
        qsort_r(items, count, sizeof *items, by_text, (void *)texts);
        return;
    }
    while (count > 16) {
        uint64_t pivot = median(items[0].word, items[count / 2].word, items[count - 1].word);
        size_t low = 0, at = 0, high = count;
        while (at < high) {
            if (items[at].word < pivot)
                swap(&items[low++], &items[at++]);
            else if (items[at].word > pivot)
                swap(&items[at], &items[--high]);
            else
                at++;
        }
        sort_items(texts, items, low, depth, level + 1);
        sort_items(texts, items + high, count - high, depth, level + 1);
        items += low;
        count = high - low;
        depth += 8;
        bool ended = true; /* all equal words that end here are equal texts, up to NULs */
        for (size_t i = 0; i < count; i++) {
            ended = ended && texts[items[i].index].str.size <= depth;
            items[i].word = word_at(&texts[items[i].index], depth);
        }
        if (ended)
            break;
    }
    insertion_sort(texts, items, count > 16 ? 0 : count, depth);
}

size_t symcache_sort_texts(const struct sl_parallel *parallel, const struct text *texts, size_t count,
                           const uint8_t *used, uint32_t *order, uint32_t *rank)
{
    (void)parallel;
    struct sl_arena arena = {0};
    struct item *items = SL_ARENA_ARRAY(&arena, struct item, count + 1);
    size_t n = 0;
    if (!items)
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (used[i])
            items[n++] = (struct item){word_at(&texts[i], 0), (uint32_t)i};
    sort_items(texts, items, n, 0, 0);
    for (size_t i = 0; i < n; i++) {
        order[i] = items[i].index;
        rank[items[i].index] = (uint32_t)i;
    }
    sl_arena_free(&arena);
    return n;
}

/* `text` behind position `at` is a decimal number that fits 32 bits. */
static bool is_number(struct sl_str text, size_t at)
{
    uint64_t value = 0;
    if (at >= text.size || text.size - at > 10)
        return false;
    for (; at < text.size; at++) {
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[at] - '0');
    }
    return value <= UINT32_MAX;
}

struct sl_str symcache_undecorate(struct sl_str name)
{
    if (!name.size || name.data[0] == '?')
        return name;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == ':' || name.data[i] == '(' || name.data[i] == '<')
            return name;
    const char *at = memrchr(name.data, '@', name.size);
    size_t position = at ? (size_t)(at - name.data) : 0;
    if (position && name.data[position - 1] == '@' && is_number(name, position + 1))
        return (struct sl_str){name.data, position - 1};
    if (name.data[0] == '@' || name.data[0] == '_') {
        struct sl_str rest = {name.data + 1, name.size - 1};
        if (at && position && is_number(name, position + 1))
            return (struct sl_str){rest.data, position - 1};
    }
    return name.data[0] == '_' ? (struct sl_str){name.data + 1, name.size - 1} : name;
}
