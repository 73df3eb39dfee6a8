
#include "../check.h"

#include "core/lru.h"

struct word {
    struct lru_entry lru;
    bool held;
};

static int released;

static void release_word(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    released++;
    free(LRU_ITEM(entry, struct word, lru));
}

static bool is_held(const struct lru_entry *entry)
{
    return LRU_ITEM(entry, struct word, lru)->held;
}

static struct word *put(struct lru *lru, const char *key, uint64_t size, uint64_t expires_ms, bool held)
{
    struct word *word = malloc(sizeof *word);
    *word = (struct word){.lru = {.key = sl_str(key), .size = size, .expires_ms = expires_ms}, .held = held};
    assert_true(lru_put(lru, &word->lru));
    return word;
}

static bool has(const struct lru *lru, const char *key)
{
    return lru_find(lru, sl_str(key)) != NULL;
}

static struct lru lru_of(uint64_t max_size, size_t max_count)
{
    released = 0;
    return (struct lru){.max_size = max_size, .max_count = max_count, .release = release_word, .in_use = is_held};
}

TEST(least_recently_used_entries_are_evicted_first)
{
    struct lru lru = lru_of(30, SIZE_MAX);
    put(&lru, "a", 10, 0, false);
    put(&lru, "b", 10, 0, false);
    put(&lru, "c", 10, 0, false);
    assert_non_null(lru_get(&lru, SL_STR("a"), 1));
    put(&lru, "d", 10, 0, false);
    assert_true(has(&lru, "a") && !has(&lru, "b") && has(&lru, "c") && has(&lru, "d"));
    put(&lru, "c", 20, 0, false); /* another one of this key */
    assert_true(!has(&lru, "a") && has(&lru, "c") && has(&lru, "d"));
    assert_int_equal(lru.size, 30);
    put(&lru, "e", 31, 0, false); /* alone too large */
    assert_int_equal(lru.size, 0);
    assert_int_equal(lru.map.count, 0);
    lru_clear(&lru);
    assert_int_equal(released, 6);
}

TEST(number_of_entries_is_limited)
{
    struct lru lru = lru_of(UINT64_MAX, 2);
    put(&lru, "a", 1, 0, false);
    put(&lru, "b", 1, 0, false);
    put(&lru, "c", 1, 0, false);
    assert_true(!has(&lru, "a") && has(&lru, "b") && has(&lru, "c"));
    lru.max_count = 0;
    lru_shrink(&lru);
    assert_int_equal(lru.map.count, 0);
    lru_clear(&lru);
}

TEST(entries_in_use_are_not_evicted)
{
    struct lru lru = lru_of(UINT64_MAX, 1);
    struct word *a = put(&lru, "a", 1, 5, true);
    put(&lru, "b", 1, 5, true);
    put(&lru, "c", 1, 5, false); /* the only one that may go */
    assert_true(has(&lru, "a") && has(&lru, "b") && !has(&lru, "c"));
    lru_expire(&lru, 10);
    assert_int_equal(lru.map.count, 2);
    a->held = false;
    lru_expire(&lru, 4);
    assert_true(has(&lru, "a"));
    lru_expire(&lru, 5);
    assert_true(!has(&lru, "a") && has(&lru, "b"));
    lru_clear(&lru); /* all of them */
    assert_int_equal(released, 3);
}

TEST(entries_expire)
{
    struct lru lru = lru_of(UINT64_MAX, SIZE_MAX);
    put(&lru, "a", 1, 10, false);
    put(&lru, "b", 1, 0, false);
    assert_non_null(lru_get(&lru, SL_STR("a"), 9));
    assert_null(lru_get(&lru, SL_STR("a"), 10));
    assert_false(has(&lru, "a"));
    assert_non_null(lru_get(&lru, SL_STR("b"), UINT64_MAX));
    lru_clear(&lru);
    assert_int_equal(released, 2);
}

TEST(entries_can_be_walked_in_both_directions)
{
    struct lru lru = lru_of(UINT64_MAX, SIZE_MAX);
    char forth[4] = "", back[4] = "";
    size_t i = 0;
    put(&lru, "a", 1, 0, false);
    put(&lru, "b", 1, 0, false);
    put(&lru, "c", 1, 0, false);
    for (struct word *w = LRU_NEWEST(&lru, struct word, lru); w; w = LRU_OLDER(w, lru))
        forth[i++] = w->lru.key.data[0];
    for (struct word *w = LRU_OLDEST(&lru, struct word, lru); w; w = LRU_NEWER(w, lru))
        back[--i] = w->lru.key.data[0];
    assert_string_equal(forth, "cba");
    assert_string_equal(back, "cba");
    lru_clear(&lru);
}
