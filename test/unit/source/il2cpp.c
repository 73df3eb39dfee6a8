/* Line mappings of C# compiled to C++. */
#include "../check.h"

#include "source/il2cpp.h"

static struct sl_il2cpp *opened(const char *json)
{
    struct sl_il2cpp *map;
    struct sl_error error = {0};
    if (sl_il2cpp_open((struct sl_bytes){(const uint8_t *)json, strlen(json)}, NULL, &map, &error) != SL_OK)
        fail_msg("%s", error.message);
    return map;
}

static void expect(const struct sl_il2cpp *map, const char *path, uint32_t line, const char *file, uint32_t wanted)
{
    struct sl_str found;
    uint32_t number = 0;
    assert_int_equal(sl_il2cpp_lookup(map, sl_str(path), line, &found, &number), file != NULL);
    if (file) {
        assert_true(sl_str_equal(found, sl_str(file)));
        assert_int_equal(number, wanted);
    }
}

TEST(nearest_line_before_is_used)
{
    struct sl_il2cpp *map = opened("{\"a.cpp\":{\"main.cs\":{\"15\":29,\"5\":17}},\"__debug-id__\":{\"x\":{}}}");
    for (uint32_t line = 0; line < 5; line++)
        expect(map, "a.cpp", line, NULL, 0);
    for (uint32_t line = 5; line < 15; line++)
        expect(map, "a.cpp", line, "main.cs", 17);
    expect(map, "a.cpp", 15, "main.cs", 29);
    expect(map, "a.cpp", 65, "main.cs", 29);
    expect(map, "a.cpp", 66, NULL, 0);
    expect(map, "A.cpp", 15, NULL, 0);
    expect(map, "__debug-id__", 15, NULL, 0);
    sl_il2cpp_close(map);
}

TEST(lines_of_several_files_are_resolved)
{
    struct sl_il2cpp *map =
        opened("{\"a.cpp\":{\"b.cs\":{\"7\":1},\"c.cs\":{\"7\":2,\"9\":3},\"a.cs\":{\"7\":4,\"8\":5},"
               "\"x\":[1]},\"b.cpp\":{\"b\\u0062.cs\":{\"1\":8}},\"c.cpp\":null}");
    expect(map, "a.cpp", 7, "c.cs", 2);
    expect(map, "a.cpp", 8, "a.cs", 5);
    expect(map, "a.cpp", 9, "c.cs", 3);
    expect(map, "b.cpp", 1, "bb.cs", 8);
    expect(map, "c.cpp", 1, NULL, 0);
    expect(map, "b.cs", 7, NULL, 0);
    sl_il2cpp_close(map);
}

TEST(valid_mappings_are_told_from_invalid)
{
    static const char *const good[] = {"[]", "7", "{}", "{\"a\":7}", "{\"a\":{\"b\":\"c\"}}"};
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"a\":{\"b\":{\"x\":1}}}",
                                      "{\"a\":{\"b\":{\"4294967296\":1}}}",
                                      "{\"a\":{\"b\":{\"1\":4294967296}}}",
                                      "{\"a\":{\"b\":{\"1\":-1}}}",
                                      "{\"a\":{\"b\":{\"1\":\"1\"}}}",
                                      "{\"a\":{\"b\":{\"\":1}}}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        sl_il2cpp_close(opened(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sl_il2cpp *map;
        struct sl_error error = {0};
        struct sl_bytes bytes = {(const uint8_t *)bad[i], strlen(bad[i])};
        assert_int_equal(sl_il2cpp_open(bytes, NULL, &map, &error), SL_MALFORMED);
        assert_non_null(strstr(error.message, "Failed to parse il2cpp"));
        assert_null(map);
    }
}

TEST(memory_is_charged_to_the_budget)
{
    const char *text = "{\"a\":{\"b\":{\"1\":2}}}";
    struct sl_bytes bytes = {(const uint8_t *)text, strlen(text)};
    struct sl_budget budget;
    struct sl_il2cpp *map;
    struct sl_error error;
    sl_budget_init(&budget, bytes.size);
    sl_budget_limit(&budget, 1 << 20, NULL, NULL);
    int64_t before = budget.memory;
    assert_int_equal(sl_il2cpp_open(bytes, &budget, &map, &error), SL_OK);
    assert_true(budget.memory < before);
    sl_il2cpp_close(map);
    assert_true(budget.memory == before);
    sl_budget_limit(&budget, 16, NULL, NULL);
    assert_int_equal(sl_il2cpp_open(bytes, &budget, &map, &error), SL_UNSUPPORTED);
    assert_null(map);
}

static char scanned[256];

static void note(void *arg, uint32_t line, struct sl_str file, uint32_t number)
{
    size_t size = strlen(scanned);
    snprintf(scanned + size, sizeof scanned - size, "%u:" SL_STR_FMT ":%u ", line, SL_STR_ARG(file), number);
}

static void expect_scan(const char *text, const char *wanted)
{
    scanned[0] = '\0';
    sl_il2cpp_scan(sl_str(text), note, NULL);
    assert_string_equal(scanned, wanted);
}

#define MARK(line) "  //<source_info:main.cs:" #line ">\r\n"

TEST(source_info_marks_are_found)
{
    expect_scan("\ntext\n" MARK(17) "// a\n// b\n// c\ncode\n", "7:main.cs:17 ");
    expect_scan("\n\n" MARK(17) "// a\n// b\ncode\ncode\n\n" MARK(29) "code\n\n" MARK(46) "// a\n// b\ncode\n",
                "6:main.cs:17 10:main.cs:29 15:main.cs:46 ");
    expect_scan("\n\n" MARK(17) "// a\n// b\n" MARK(29) "code", "5:main.cs:17 7:main.cs:29 ");
    expect_scan(MARK(17) "// a\n// b\n", "");
    expect_scan(MARK(17) "\n", "2:main.cs:17 ");
    expect_scan("//<source_info:C:\\a.cs:3>\nx", "2:C:\\a.cs:3 ");
    expect_scan("//<source_info:a.cs:3\nx\n//<source_info:a.cs>\nx\n//<source_info:a.cs:b>\nx\n//<source_info:>\nx",
                "");
}
