/* Sorts the texts of a symcache: multikey quicksort by words of eight bytes. The items are cut into ranges, which workers sort in
 * parallel. */
#include "symcache/build.h"

#include <stdlib.h>

/* MAX_SPLITS: nested splits after which a range is sorted by another algorithm. MAX_RANGES: ranges for workers; MIN_RANGE: items of a range
 * that is not worth splitting for them. */
enum { MAX_SPLITS = 200, MAX_RANGES = 256, MIN_RANGE = 256 };

struct symcache_string_item { /* a text: its index, and eight bytes of it at the depth that is being sorted */
    uint64_t word;
    uint32_t index;
};

/* Returns eight bytes of the text at offset `depth` as a number that compares like the bytes. A text that ends there is padded with NULs,
 * so it sorts before longer ones that begin with it. (A text that contains NUL may get the same number as a shorter one.) */
static uint64_t word_at(const struct symcache_text *text, size_t depth)
{
    uint64_t word = 0;
    size_t left = text->str.size > depth ? text->str.size - depth : 0;
    if (left >= 8) {
        memcpy(&word, text->str.data + depth, 8);
        /* the first byte becomes the highest one */
        return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? word : __builtin_bswap64(word);
    }
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)(uint8_t)text->str.data[depth + i] << (56 - 8 * i);
    return word;
}

/* True if text `a` sorts before text `b`. They are equal up to offset `depth`; their words are the eight bytes there. */
static bool before(const struct symcache_text *texts, const struct symcache_string_item *a,
                   const struct symcache_string_item *b, size_t depth)
{
    if (a->word != b->word)
        return a->word < b->word;
    struct sl_str x = texts[a->index].str, y = texts[b->index].str;
    /* a text may end before `depth`: words are padded with NULs */
    depth = depth < x.size ? depth : x.size;
    depth = depth < y.size ? depth : y.size;
    return sl_str_compare((struct sl_str){x.data + depth, x.size - depth},
                          (struct sl_str){y.data + depth, y.size - depth}) < 0;
}

/* Sorts a few items whose texts are equal up to offset `depth`; faster than splitting them further. */
static void insertion_sort(const struct symcache_text *texts, struct symcache_string_item *items, size_t count,
                           size_t depth)
{
    for (size_t i = 1; i < count; i++) {
        struct symcache_string_item item = items[i];
        size_t at = i;
        for (; at && before(texts, &item, &items[at - 1], depth); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void swap(struct symcache_string_item *a, struct symcache_string_item *b)
{
    struct symcache_string_item t = *a;
    *a = *b;
    *b = t;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
    return a < b ? b < c ? b : a < c ? c : a : a < c ? a : b < c ? c : b;
}

/* Compares two items by their whole texts, for qsort_r. */
static int by_text(const void *left, const void *right, void *arg)
{
    const struct symcache_string_item *a = left, *b = right;
    const struct symcache_text *texts = arg;
    return sl_str_compare(texts[a->index].str, texts[b->index].str);
}

/* A range of items whose texts are equal up to offset `depth`; `splits`: how many splits it went through without getting a larger depth. */
struct string_range {
    struct symcache_string_item *items;
    size_t count, depth;
    unsigned splits;
};

/* One step of multikey quicksort: moves items below, at and above a pivot word into three `parts`, which are still to be sorted. The middle
 * part goes on with the next word, so long common prefixes, usual in mangled names, are compared once. */
static void strings_split(const struct symcache_text *texts, const struct string_range *s, struct string_range parts[3])
{
    struct symcache_string_item *items = s->items;
    uint64_t pivot = median(items[0].word, items[s->count / 2].word, items[s->count - 1].word);
    size_t low = 0, at = 0, high = s->count;
    while (at < high) {
        if (items[at].word < pivot)
            swap(&items[low++], &items[at++]);
        else if (items[at].word > pivot)
            swap(&items[at], &items[--high]);
        else
            at++;
    }
    bool ended = true; /* texts with equal words that end here are equal, except for NULs */
    for (size_t i = low; i < high; i++) {
        ended = ended && texts[items[i].index].str.size <= s->depth + 8;
        items[i].word = word_at(&texts[items[i].index], s->depth + 8);
    }
    parts[0] = (struct string_range){items, low, s->depth, s->splits + 1};
    parts[1] = (struct string_range){items + low, ended ? 0 : high - low, s->depth + 8, s->splits};
    parts[2] = (struct string_range){items + high, s->count - high, s->depth, s->splits + 1};
}

/* Sorts a range by splitting it; the middle part, usually the largest, is handled by the loop, the others by recursion. More than
 * MAX_SPLITS nested splits do not shrink the range well, so qsort_r, which has no bad case, does the rest. */
static void sort_range(const struct symcache_text *texts, struct string_range s)
{
    while (s.count > 16) {
        struct string_range parts[3];
        if (s.splits > MAX_SPLITS) { /* only for crafted texts */
            qsort_r(s.items, s.count, sizeof *s.items, by_text, (void *)texts);
            return;
        }
        strings_split(texts, &s, parts);
        sort_range(texts, parts[0]);
        sort_range(texts, parts[2]);
        s = parts[1];
    }
    insertion_sort(texts, s.items, s.count, s.depth);
}

struct symcache_sorting {
    const struct symcache_text *texts;
    struct string_range ranges[MAX_RANGES];
    size_t count;
};

/* Runs on a worker: sorts one range. */
static void sort_one(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    struct symcache_sorting *s = arg;
    sort_range(s->texts, s->ranges[index]);
}

/* Splits large ranges until there are some four per worker, then sorts them in parallel. With one worker the whole is one range. */
static void sort_items(const struct sl_parallel *parallel, const struct symcache_text *texts,
                       struct symcache_string_item *items, size_t count)
{
    struct symcache_sorting s = {.texts = texts, .ranges = {{items, count, 0, 0}}, .count = 1};
    unsigned workers = sl_parallel_workers(parallel);
    size_t small = workers > 1 ? count / (4 * workers) + MIN_RANGE : SIZE_MAX;
    for (size_t i = 0; i < s.count && s.count + 2 <= MAX_RANGES;) {
        struct string_range parts[3];
        if (s.ranges[i].count <= small || s.ranges[i].splits > MAX_SPLITS) {
            i++;
            continue;
        }
        strings_split(texts, &s.ranges[i], parts);
        s.ranges[i] = parts[1];
        s.ranges[s.count++] = parts[0];
        s.ranges[s.count++] = parts[2];
    }
    sl_parallel_run(parallel, s.count, sort_one, &s);
}

size_t symcache_sort_texts(struct sl_symcache_writer *w, const uint8_t *used, uint32_t *order, uint32_t *rank)
{
    const struct symcache_text *texts = w->texts;
    size_t count = w->text_count, n = 0;
    struct symcache_string_item *items = sl_account_alloc(&w->account, count, sizeof *items);
    if (!items)
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (used[i])
            items[n++] = (struct symcache_string_item){word_at(&texts[i], 0), (uint32_t)i};
    sort_items(w->parallel, texts, items, n);
    for (size_t i = 0; i < n; i++) {
        order[i] = items[i].index;
        rank[items[i].index] = (uint32_t)i;
    }
    sl_account_free(&w->account, items, count, sizeof *items);
    return n;
}
