/* WebAssembly modules: linked by wasm-ld, and made by hand. */
#include "debug_file.h"

#include "object/archive.h"

static struct sl_bytes linked;

static int make_fixtures(void **state)
{
    static const char source[] = "extern void imported(int);\n"
                                 "static __attribute__((always_inline)) int twice(int x)\n"
                                 "{\n"
                                 "    imported(x);\n" /* 4 */
                                 "    return x * 2;\n"
                                 "}\n"
                                 "__attribute__((noinline)) int outer(int x)\n"
                                 "{\n"
                                 "    return twice(x) + 1;\n" /* 9 */
                                 "}\n"
                                 "int entry(int x)\n" /* 11 */
                                 "{\n"
                                 "    return outer(x) * 3;\n"
                                 "}\n";
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("a.c", source, sizeof source - 1);
    fixture_run("clang-14 --target=wasm32 -g -gdwarf-4 -O1 -fdebug-prefix-map=$PWD=/src -c -o a.o a.c && "
                "wasm-ld-14 --no-entry --export-all --allow-undefined -o a.wasm a.o");
    linked = fixture_read("a.wasm");
    return 0;
}

static int drop_fixtures(void **state)
{
    free((void *)linked.data);
    return fixture_end(state);
}

/* ---- building ---- */

static struct sl_buf module;

static void begin_module(void)
{
    sl_buf_clear(&module);
    sl_buf_add(&module, "\0asm\1\0\0\0", 8);
}

static void add_section(uint8_t id, const void *data, size_t size)
{
    sl_buf_u8(&module, id);
    sl_buf_uleb(&module, size);
    sl_buf_add(&module, data, size);
}

static void add_custom(const char *name, const void *data, size_t size)
{
    struct sl_buf section = {0};
    sl_buf_uleb(&section, strlen(name));
    sl_buf_cstr(&section, name);
    sl_buf_add(&section, data, size);
    add_section(0, section.data, section.size);
    sl_buf_free(&section);
}

static const uint8_t id16[16] = {0xBD, 0xA1, 0x8F, 0xD8, 0x5D, 0x4A, 0x4E, 0xB8,
                                 0x93, 0x02, 0x2D, 0x6B, 0xFA, 0xD8, 0x46, 0xB1};
/* One function of type () -> (), whose body is no local declarations and `end`. */
static const uint8_t function_section[] = {1, 0}, code_section[] = {1, 2, 0, 0x0B};

/* ---- linked ---- */

TEST(linked_module_is_read)
{
    struct sl_object *object = open_bytes(linked);
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_section_info section;
    uint64_t code = 0;
    assert_int_equal(info->format, SL_FORMAT_WASM);
    assert_int_equal(info->kind, SL_KIND_LIB);
    assert_int_equal(info->arch, SL_ARCH_WASM32);
    assert_int_equal(info->load_address, 0);
    assert_true(info->features.has_symbols && info->features.has_debug_info && !info->features.has_unwind_info);
    assert_false(info->partial || info->is_64bit || info->big_endian);
    assert_true(sl_debug_id_is_nil(&info->debug_id));
    assert_int_equal(info->code_id.size, 0);
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (sl_str_equal(section.name, SL_STR("code")))
            code = section.offset;
    assert_true(code > 8);
    assert_int_equal(info->dwarf_bias, code);
    assert_true(symbol_address(object, "outer") > code);
    sl_object_close(object);
}

/* Functions begin behind the sizes of their bodies, and end where the next one begins. */
TEST(symbols_are_file_offsets)
{
    struct sl_object *object = open_bytes(linked);
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 3); /* the imported function is none, __wasm_call_ctors is one */
    assert_true(sl_str_equal(symbols[0].name, SL_STR("__wasm_call_ctors")));
    assert_true(sl_str_equal(symbols[1].name, SL_STR("outer")));
    assert_true(sl_str_equal(symbols[2].name, SL_STR("entry")));
    for (size_t i = 0; i + 1 < count; i++)
        assert_int_equal(symbols[i].address + symbols[i].size, symbols[i + 1].address);
    assert_int_equal(linked.data[symbols[1].address - 1], symbols[1].size - 1); /* the body's size, in one byte */
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(functions_and_lines_are_read)
{
    struct sl_object *object = open_bytes(linked);
    struct converted c;
    bool inlined = false;
    uint64_t outer = symbol_address(object, "outer"), entry = symbol_address(object, "entry");
    convert(&c, object);
    assert_string_equal(chain_at(&c.cache, entry), "entry:12@/src/a.c");
    for (uint64_t at = outer; at < entry; at++)
        inlined = inlined || strcmp(chain_at(&c.cache, at), "twice:4@/src/a.c outer:9@/src/a.c") == 0;
    assert_true(inlined);
    sl_buf_free(&c.file);
    sl_object_close(object);
}

/* ---- made by hand ---- */

TEST(build_id_section_gives_the_ids)
{
    char id[SL_DEBUG_ID_TEXT];
    begin_module();
    add_section(3, function_section, sizeof function_section);
    add_section(10, code_section, sizeof code_section);
    add_custom("build_id", id16, sizeof id16);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    sl_debug_id_format(&sl_object_info(object)->debug_id, id);
    assert_string_equal(id, "bda18fd8-5d4a-4eb8-9302-2d6bfad846b1");
    assert_true(sl_str_equal(sl_object_info(object)->code_id, SL_STR("bda18fd85d4a4eb893022d6bfad846b1")));
    assert_int_equal(sl_object_info(object)->raw_code_id.size, 0);
    sl_object_close(object);
}

/* wasm-ld puts the length before the id: both forms name the file. */
TEST(length_prefixed_id_is_read)
{
    uint8_t prefixed[17] = {16};
    memcpy(prefixed + 1, id16, 16);
    begin_module();
    add_custom("build_id", prefixed, sizeof prefixed);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    const struct sl_object_info *info = sl_object_info(object);
    assert_memory_equal(info->debug_id.uuid, id16, 16);
    assert_true(sl_str_equal(info->code_id, SL_STR("bda18fd85d4a4eb893022d6bfad846b1")));
    assert_true(sl_str_equal(info->raw_code_id, SL_STR("10bda18fd85d4a4eb893022d6bfad846b1")));
    struct sl_debug_id id = {0};
    struct sl_object_wanted wanted = {.debug_id = &id};
    memcpy(id.uuid, id16, 16);
    assert_true(sl_object_matches(info, &wanted));
    memcpy(id.uuid, prefixed, 16);
    assert_true(sl_object_matches(info, &wanted));
    id.uuid[15] ^= 1;
    assert_false(sl_object_matches(info, &wanted));
    wanted = (struct sl_object_wanted){.code_id = info->raw_code_id};
    assert_true(sl_object_matches(info, &wanted));
    sl_object_close(object);
}

TEST(short_id_is_only_a_code_id)
{
    begin_module();
    add_custom("build_id", "\xAB\xCD", 2);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    assert_true(sl_debug_id_is_nil(&sl_object_info(object)->debug_id));
    assert_true(sl_str_equal(sl_object_info(object)->code_id, SL_STR("abcd")));
    sl_object_close(object);
}

/* Names before the code; an imported function, a table of a reference type, a memory, a global and a tag before it. */
TEST(names_before_code_and_all_imports_are_read)
{
    static const uint8_t imports[] = {
        5,                                            /* imports */
        1, 'm', 1, 'f', 0, 0,                         /* function of type 0 */
        1, 'm', 1, 't', 1, 0x63, 0x70, 1, 1, 0x80, 1, /* table of (ref null func), 1..128 */
        1, 'm', 1, 'm', 2, 0,    1,                   /* memory, from 1 */
        1, 'm', 1, 'g', 3, 0x7F, 0,                   /* global i32 */
        1, 'm', 1, 'e', 4, 0,    0,                   /* tag */
    };
    static const uint8_t names[] = {
        0, 2,  1, 'x',                                         /* of the module */
        1, 12, 3, 0,   1, 'f', 1, 3, 'o', 'n', 'e', 9, 1, 'z', /* of functions 0, 1 and 9 */
    };
    begin_module();
    add_custom("name", names, sizeof names);
    add_section(2, imports, sizeof imports);
    add_section(3, function_section, sizeof function_section);
    add_section(10, code_section, sizeof code_section);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    assert_false(sl_object_info(object)->partial);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 1);
    assert_true(sl_str_equal(symbols[0].name, SL_STR("one")));
    assert_int_equal(symbols[0].address, module.size - 2);
    assert_int_equal(symbols[0].size, 2);
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(companion_without_functions_is_a_debug_file)
{
    begin_module();
    add_custom(".debug_info", "x", 1);
    add_custom(".debug_frame", "y", 1);
    add_custom("external_debug_info", "\5a.dwp", 6);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    struct sl_bytes bytes;
    uint64_t address;
    assert_int_equal(sl_object_info(object)->kind, SL_KIND_DBG);
    assert_true(sl_object_info(object)->features.has_debug_info && sl_object_info(object)->features.has_unwind_info);
    assert_true(sl_str_equal(sl_object_info(object)->debug_link, SL_STR("a.dwp")));
    assert_true(sl_object_section(object, "debug_frame", &bytes, &address));
    assert_int_equal(bytes.size, 1);
    assert_int_equal(module.data[address], 'y');
    assert_false(sl_object_section(object, "external_debug_info", &bytes, NULL)); /* no dot */
    sl_object_close(object);
}

TEST(malformed_sections_are_refused)
{
    struct sl_object *object;
    struct sl_error error;
    uint8_t padded[32] = "\0asm\1\0\0\0\x0A\x64"; /* a code section of 100 bytes */
    assert_int_equal(sl_object_open((struct sl_bytes){padded, sizeof padded}, NULL, &object, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid wasm file: section outside of the file at 0x8");
    memcpy(padded, "\0asm\x0d\0\1\0", 8); /* a component */
    assert_int_equal(sl_object_open((struct sl_bytes){padded, sizeof padded}, NULL, &object, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid wasm file: not a module of version 1 at 0x4");
}

/* More bodies than the section can hold, and a body that is longer than it: what is there counts. */
TEST(counts_beyond_the_section_are_clipped)
{
    static const uint8_t code[] = {0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 2, 0, 0x0B, 100, 0, 0};
    begin_module();
    add_section(10, code, sizeof code);
    struct sl_object *object = open_bytes(sl_buf_bytes(&module));
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(symbols[0].size, 2);
    sl_arena_free(&arena);
    sl_object_close(object);
    sl_buf_free(&module);
}

TEST(damaged_files_never_crash)
{
    damage(linked, linked.size, 600);
    damage(linked, 200, 600);
}

TEST_FILE(.begin = make_fixtures, .end = drop_fixtures);
