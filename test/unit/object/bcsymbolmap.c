/* BCSymbolMaps, UUID maps, and Mach-O files whose names are hidden. */
#include "debug_file.h"

#include "object/bcsymbolmap.h"

static struct sl_bcsymbolmap *open_map(const char *text)
{
    struct sl_bcsymbolmap *map;
    struct sl_error error = {0};
    if (sl_bcsymbolmap_open((struct sl_bytes){(const uint8_t *)text, strlen(text)}, NULL, &map, &error) != SL_OK)
        fail_msg("%s", error.message);
    return map;
}

static void expect_name(const struct sl_bcsymbolmap *map, const char *name, const char *resolved)
{
    struct sl_str result = sl_bcsymbolmap_resolve(map, sl_str(name));
    assert_true(sl_str_equal(result, sl_str(resolved)));
}

TEST(hidden_names_are_resolved_by_line)
{
    struct sl_bcsymbolmap *map = open_map("BCSymbolMap Version: 2.0\r\n-[A b:]\r\n_c\n\nlast");
    expect_name(map, "__hidden#0_", "-[A b:]");
    expect_name(map, "__hidden#1_", "_c");
    expect_name(map, "__hidden#2_", "");
    expect_name(map, "__hidden#3_", "last");
    expect_name(map, "__hidden#03_", "last");
    expect_name(map, "__hidden#4_", "__hidden#4_");
    sl_bcsymbolmap_close(map);
}

TEST(other_names_are_unchanged)
{
    static const char *const names[] = {"",
                                        "normal_name",
                                        "_addJSONData",
                                        "__hidden#",
                                        "__hidden#_",
                                        "__hidden#1_",
                                        "__hidden#0",
                                        "__hidden#x_",
                                        "__hidden#-0_",
                                        "__hidden#0_x",
                                        "__hidden#18446744073709551615_",
                                        "__hidden#18446744073709551616_"};
    struct sl_bcsymbolmap *map = open_map("BCSymbolMap Version: 2.0\nzero\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_name(map, names[i], names[i]);
    sl_bcsymbolmap_close(map);
    map = open_map("BCSymbolMap Version: 2.0");
    expect_name(map, "__hidden#0_", "__hidden#0_");
    sl_bcsymbolmap_close(map);
}

TEST(input_that_is_no_map_is_malformed)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "no valid BCSymbolMap header was found"},
        {"BCSymbolMap Vers", "no valid BCSymbolMap header was found"},
        {"BCSymbolMap Version: 2.1\nx\n", "no valid BCSymbolMap header was found"},
        {"BCSymbolMap Version: 2.0 \nx\n", "no valid BCSymbolMap header was found"},
        {"BCSymbolMap Version: 2.0\n\xFF\n", "BCSymbolmap is not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_bcsymbolmap *map;
        struct sl_error error;
        struct sl_bytes bytes = {(const uint8_t *)rows[i].text, strlen(rows[i].text)};
        assert_int_equal(sl_bcsymbolmap_open(bytes, NULL, &map, &error), SL_MALFORMED);
        assert_string_equal(error.message, rows[i].message);
        assert_null(map);
    }
}

TEST(memory_is_charged_to_the_budget)
{
    const char *text = "BCSymbolMap Version: 2.0\na\nb\nc\n";
    struct sl_bytes bytes = {(const uint8_t *)text, strlen(text)};
    struct sl_budget budget;
    struct sl_bcsymbolmap *map;
    struct sl_error error;
    sl_budget_init(&budget, bytes.size);
    sl_budget_limit(&budget, 1 << 20, NULL, NULL);
    int64_t before = budget.memory;
    assert_int_equal(sl_bcsymbolmap_open(bytes, &budget, &map, &error), SL_OK);
    assert_true(budget.memory < before);
    sl_bcsymbolmap_close(map);
    assert_true(budget.memory == before);
    sl_budget_limit(&budget, 16, NULL, NULL);
    assert_int_equal(sl_bcsymbolmap_open(bytes, &budget, &map, &error), SL_UNSUPPORTED);
    assert_null(map);
}

TEST(directory_and_name_are_resolved_separately)
{
    struct sl_bcsymbolmap *map = open_map("BCSymbolMap Version: 2.0\n/src\nlib/a.m\n");
    struct sl_file file = {SL_STR("__hidden#0_"), SL_STR("__hidden#0_"), SL_STR("__hidden#1_")}, mapped;
    uint32_t line;
    assert_true(sl_bcsymbolmap_map_line(map, &file, 7, &mapped, &line));
    assert_true(sl_str_equal(mapped.comp_dir, SL_STR("/src")));
    assert_true(sl_str_equal(mapped.directory, SL_STR("/src")));
    assert_true(sl_str_equal(mapped.name, SL_STR("lib/a.m")));
    assert_int_equal(line, 7);
    file = (struct sl_file){.name = SL_STR("a.c")};
    assert_false(sl_bcsymbolmap_map_line(map, &file, 7, &mapped, &line));
    sl_bcsymbolmap_close(map);
}

/* ---- in a Mach-O file ---- */

static int make_fixtures(void **state)
{
    static const char source[] = "int method(int) __asm__(\"__hidden#0_\");\n"
                                 "int function(int) __asm__(\"__hidden#1_\");\n"
                                 "int kept(int) __asm__(\"__hidden#9_\");\n"
                                 "int method(int x)\n{\n    return x + 1;\n}\n"
                                 "int function(int x)\n{\n    return x + 2;\n}\n"
                                 "int kept(int x)\n{\n    return x + 3;\n}\n";
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("a.c", source, sizeof source - 1);
    fixture_run("clang-14 --target=arm64-apple-macos11 -g -gdwarf-4 -O1 -fdebug-prefix-map=$PWD=/src -c -o a.o a.c && "
                "ld64.lld-14 -platform_version macos 11 11 -arch arm64 -dylib -undefined dynamic_lookup -o a.dylib a.o "
                "&& dsymutil-14 --flat -o a.dwarf a.dylib");
    return 0;
}

static struct sl_str map_name(void *map, struct sl_str name)
{
    return sl_bcsymbolmap_resolve(map, name);
}

/* Names of the symbol table lose their underscore after they were resolved. */
TEST(hidden_symbols_are_resolved_before_underscores_are_removed)
{
    struct sl_bcsymbolmap *map = open_map("BCSymbolMap Version: 2.0\n-[Message init]\n_addJSONData\n");
    struct sl_bytes bytes = fixture_read("a.dwarf");
    struct sl_object *object = open_bytes(bytes);
    struct sl_symcache_options options = {
        .arch = SL_ARCH_ARM64, .map_name = map_name, .map_line = sl_bcsymbolmap_map_line, .map_arg = map};
    struct converted c;
    uint64_t method = symbol_address(object, "__hidden#0_"), function = symbol_address(object, "__hidden#1_");
    uint64_t kept = symbol_address(object, "__hidden#9_");
    sl_object_set_bcsymbolmap(object, map);
    assert_int_equal(symbol_address(object, "-[Message init]"), method);
    assert_int_equal(symbol_address(object, "addJSONData"), function);
    assert_int_equal(symbol_address(object, "__hidden#9_"), kept);
    convert_with(&c, object, &options, NULL);
    assert_string_equal(chain_at(&c.cache, method), "-[Message init]:6@/src/a.c");
    assert_string_equal(chain_at(&c.cache, function), "addJSONData:10@/src/a.c");
    assert_string_equal(chain_at(&c.cache, kept), "__hidden#9_:14@/src/a.c");
    sl_buf_free(&c.file);
    sl_object_set_bcsymbolmap(object, NULL);
    assert_int_equal(symbol_address(object, "__hidden#1_"), function);
    sl_object_close(object);
    free((void *)bytes.data);
    sl_bcsymbolmap_close(map);
}

/* ---- UUID maps ---- */

#define DOCTYPE                                                                                                        \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "                \
    "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
#define UUID "C8374B6D-6E96-34D8-AE38-EFAA5FEC424F"

static enum sl_code parse(const char *text, size_t size, struct sl_error *error)
{
    struct sl_debug_id id;
    char formatted[SL_DEBUG_ID_TEXT];
    enum sl_code code = sl_uuidmap_parse((struct sl_bytes){(const uint8_t *)text, size}, &id, error);
    sl_debug_id_format(&id, formatted);
    if (code == SL_OK)
        assert_string_equal(formatted, "c8374b6d-6e96-34d8-ae38-efaa5fec424f");
    return code;
}

TEST(xml_property_lists_give_the_original_uuid)
{
    static const char *const good[] = {
        DOCTYPE "<plist version=\"1.0\">\n<dict>\n <key>DBGOriginalUUID</key>\n <string>" UUID
                "</string>\n</dict>\n</plist>",
        "<plist version='1.0'><!-- c --><array><key>DBGOriginalUUID</key><string>x</string></array><dict>"
        "<key>Other</key><dict><key>DBGOriginalUUID</key><string>y</string></dict><key>DBGOriginalUUID</key>"
        "<data> c8374b6d6e9634d8ae38efaa5fec424f </data><key>DBGOriginalUUID</key><string>z</string></dict></plist>",
        "<plist version='1.0'><dict><key>DBG<!-- c -->OriginalUUID</key><string><![CDATA[" UUID
        "]]></string></dict></plist>",
    };
    struct sl_error error;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(parse(good[i], strlen(good[i]), &error), SL_OK);
}

TEST(malformed_xml_property_lists_report_the_fault)
{
#define LIST(version, contents) "<plist version=\"" version "\"><dict>" contents "</dict></plist>"
    static const char schema[] = "XML structure did not match expected schema";
    static const char value[] = "Failed to parse a value into the right type";
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "Invalid XML"},
        {"<plist version=\"1.0\"><dict>", "Invalid XML"},
        {"<!DOCTYPE plist [<!ENTITY u \"" UUID "\">]>" LIST("1.0", "<key>DBGOriginalUUID</key><string>&u;</string>"),
         "Invalid XML"},
        {LIST("1.0", "<key>DBGOriginalUUID</key><string>&u;</string>"), "Invalid XML"},
        {LIST("2.0", "<key>DBGOriginalUUID</key><string>" UUID "</string>"), schema},
        {LIST("1.0", "<key>Other</key><string>" UUID "</string>"), schema},
        {LIST("1.0", "<key>DBGOriginalUUID</key>"), schema},
        {LIST("1.0", "<string>DBGOriginalUUID</string><string>" UUID "</string>"), schema},
        {"<plist version=\"1.0\"/>", schema},
        {"<plist><dict/></plist>", schema},
        {LIST("1.0", "<key>DBGOriginalUUID</key><string>nothing</string>"), value},
        {LIST("1.0", "<key>DBGOriginalUUID</key><string>" UUID UUID UUID "</string>"), value},
    };
    struct sl_error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(parse(rows[i].text, strlen(rows[i].text), &error), SL_MALFORMED);
        assert_string_equal(error.message, rows[i].message);
    }
    char deep[65 * 3 + 1];
    for (size_t i = 0; i < 65; i++)
        memcpy(deep + 3 * i, "<a>", 3);
    assert_int_equal(parse(deep, sizeof deep - 1, &error), SL_MALFORMED);
    assert_string_equal(error.message, "Invalid XML");
}

/* {Other: [], DBGOriginalUUID: UUID}, with lengths in an integer object where they need one. */
static struct sl_buf binary_list(void)
{
    struct sl_buf out = {0};
    static const uint8_t offsets[] = {8, 13, 19, 37, 38};
    sl_buf_add(&out, "bplist00", 8);
    sl_buf_add(&out, "\xD2\1\2\3\4", 5); /* 8: two keys and two values */
    sl_buf_add(&out, "\x55Other", 6);    /* 13 */
    sl_buf_add(&out,
               "\x5F\x10\x0F"
               "DBGOriginalUUID",
               18);                            /* 19 */
    sl_buf_add(&out, "\xA0", 1);               /* 37 */
    sl_buf_add(&out, "\x5F\x10\x24" UUID, 39); /* 38 */
    size_t table = out.size;
    sl_buf_add(&out, offsets, sizeof offsets);
    sl_buf_fill(&out, 0, 6);
    sl_buf_add(&out, "\1\1", 2);
    sl_buf_fill(&out, 0, 7);
    sl_buf_u8(&out, sizeof offsets);
    sl_buf_fill(&out, 0, 8 + 7);
    sl_buf_u8(&out, (uint8_t)table);
    return out;
}

TEST(binary_property_lists_are_read)
{
    struct sl_buf file = binary_list();
    struct sl_error error;
    assert_int_equal(parse((char *)file.data, file.size, &error), SL_OK);
    file.data[40] = 0xFF; /* the value is longer than the file */
    assert_int_equal(parse((char *)file.data, file.size, &error), SL_MALFORMED);
    assert_string_equal(error.message, "Failed to parse a value into the right type");
    sl_buf_free(&file);
}

/* Any byte replaced, any length: an answer or an error. */
TEST(damaged_binary_property_lists_never_crash)
{
    static const uint8_t values[] = {0x00, 0x01, 0x0F, 0x13, 0x5F, 0x7F, 0xD2, 0xDF, 0xFF};
    struct sl_buf file = binary_list();
    struct sl_debug_id id;
    for (size_t at = 0; at < file.size; at++) {
        for (size_t i = 0; i < sizeof values; i++) {
            uint8_t old = file.data[at];
            file.data[at] = values[i];
            sl_uuidmap_parse(sl_buf_bytes(&file), &id, NULL);
            file.data[at] = old;
        }
        uint8_t *cut = malloc(at + 1);
        assert_non_null(cut);
        memcpy(cut, file.data, at);
        sl_uuidmap_parse((struct sl_bytes){cut, at}, &id, NULL);
        free(cut);
    }
    sl_buf_free(&file);
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
