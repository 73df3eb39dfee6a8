/* Lists of sources are read once, whoever sends them. */
#include "../check.h"

#include "api/source_lists.h"
#include "api/sources.h"

static struct config config = {.sources_number = 1000};
static struct source_list kept;

static bool read_list(struct sl_fields *s)
{
    struct request_sources sources = {.config = &config};
    bool good = request_sources_read(s, NULL, &sources);
    kept = (struct source_list){sources.items, sources.count, sources.number};
    return good;
}

/* Reads the document, which is a list. */
static bool reads(struct sl_arena *arena, const char *text)
{
    struct json_failure failure = {0};
    return json_document(sl_str(text), arena, read_list, NULL, &failure);
}

#define LIST(id) "[{\"id\":\"" id "\",\"type\":\"http\",\"url\":\"http://example.com/\"}]"

TEST(equal_text_reuses_the_source_list)
{
    struct sl_arena one = {0}, other = {0};
    assert_true(reads(&one, LIST("a")));
    struct source_list first = kept;
    assert_int_equal(first.count, 1);
    assert_true(first.number > 0);
    assert_true(sl_str_equal(first.items->id, SL_STR("a")));
    assert_true(reads(&other, " " LIST("a") " "));
    assert_ptr_equal(kept.items, first.items);
    assert_int_equal(kept.number, first.number);
    assert_true(reads(&other, LIST("b")));
    assert_true(kept.number != first.number);
    assert_true(sl_str_equal(kept.items->id, SL_STR("b")));
    sl_arena_free(&other);
    config.sources_number++; /* another policy */
    assert_true(reads(&other, LIST("a")));
    assert_true(kept.number != first.number);
    config.sources_number--;
    sl_arena_free(&other);
    source_lists_clear();
    assert_true(sl_str_equal(first.items->id, SL_STR("a"))); /* its arena holds it */
    sl_arena_free(&one);
}

TEST(malformed_lists_are_not_cached)
{
    struct sl_arena arena = {0};
    for (int i = 0; i < 2; i++) {
        assert_false(reads(&arena, "[{\"id\":\"a\",\"type\":\"other\"}]"));
        assert_false(reads(&arena, LIST("a") "]"));
        assert_false(reads(&arena, "{}"));
        assert_false(reads(&arena, "[{\"id\":"));
    }
    sl_arena_free(&arena);
    source_lists_clear();
}

TEST(number_of_cached_lists_is_limited)
{
    struct sl_arena arena = {0};
    char text[200];
    uint64_t first = 0, last = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, LIST("%d"), i);
        assert_true(reads(&arena, text));
        first = i == 0 ? kept.number : first;
        last = kept.number;
        sl_arena_reset(&arena);
    }
    assert_true(reads(&arena, LIST("99")));
    assert_int_equal(kept.number, last);
    assert_true(reads(&arena, LIST("0")));
    assert_true(kept.number != first);
    sl_arena_free(&arena);
    source_lists_clear();
}
