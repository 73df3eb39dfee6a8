/* Mach-O: linked images, dSYM companions, relocatable and hand-made files. */
#include "debug_file.h"

#include <zlib.h>

static const char source[] = "volatile int data;\n"
                             "struct counter {\n"
                             "    int n;\n"
                             "    __attribute__((always_inline)) int twice(int x)\n"
                             "    {\n"
                             "        data = x;\n" /* 6 */
                             "        return n * 2;\n"
                             "    }\n"
                             "};\n"
                             "extern \"C\" __attribute__((noinline)) int outer(int x)\n"
                             "{\n"
                             "    counter c{x};\n"
                             "    return c.twice(x) + 1;\n" /* 13 */
                             "}\n"
                             "extern \"C\" int entry(int x)\n" /* 15 */
                             "{\n"
                             "    return outer(x) * 3;\n"
                             "}\n";

#define CLANG "clang-14 -w -O1 -fno-exceptions -fdebug-prefix-map=$PWD=/src "
#define LLD   "ld64.lld-14 -platform_version macos 11 11 -undefined dynamic_lookup "

static int make_fixtures(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("a.cc", source, sizeof source - 1);
    fixture_run(CLANG "--target=x86_64-apple-macos11 -g -gdwarf-4 -c -o x86_64.o a.cc && " CLANG
                      "--target=arm64-apple-macos11 -g -gdwarf-4 -c -o arm64.o a.cc && " CLANG
                      "--target=x86_64-apple-macos11 -g -gdwarf-5 -c -o dwarf5.o a.cc && " CLANG
                      "--target=armv7-apple-ios9 -g -gdwarf-4 -c -o armv7.o a.cc && " LLD
                      "-arch x86_64 -dylib -install_name @rpath/libx.dylib -o x86_64.dylib x86_64.o && " LLD
                      "-arch arm64 -e _entry -o arm64 arm64.o && "
                      "dsymutil-14 --flat -o x86_64.dwarf x86_64.dylib && dsymutil-14 --flat -o arm64.dwarf arm64");
    return 0;
}

TEST(image_and_dsym_have_the_same_identity)
{
    struct sl_bytes image = fixture_read("x86_64.dylib"), dsym = fixture_read("x86_64.dwarf");
    struct sl_object *a = open_bytes(image), *b = open_bytes(dsym);
    const struct sl_object_info *i = sl_object_info(a), *j = sl_object_info(b);
    char hex[33];
    assert_int_equal(i->format, SL_FORMAT_MACHO);
    assert_int_equal(i->kind, SL_KIND_LIB);
    assert_int_equal(j->kind, SL_KIND_DBG);
    assert_int_equal(i->arch, SL_ARCH_X86_64);
    assert_false(sl_debug_id_is_nil(&i->debug_id));
    assert_true(sl_debug_id_equal(&i->debug_id, &j->debug_id));
    for (size_t k = 0; k < 16; k++)
        snprintf(hex + 2 * k, 3, "%02x", i->debug_id.uuid[k]);
    assert_true(sl_str_equal(i->code_id, sl_str(hex)));
    assert_true(sl_str_equal(j->code_id, i->code_id));
    assert_true(sl_str_equal(i->debug_file, SL_STR("@rpath/libx.dylib")));
    assert_true(i->features.has_symbols && i->features.has_unwind_info && !i->features.has_debug_info);
    assert_true(j->features.has_symbols && j->features.has_debug_info);
    assert_false(i->partial || j->partial);
    assert_true(i->is_64bit && !i->big_endian && i->image_size > 0);
    sl_object_close(a);
    sl_object_close(b);
    free((void *)image.data);
    free((void *)dsym.data);
}

TEST(addresses_are_relative_to_the_text_segment)
{
    struct sl_bytes bytes = fixture_read("arm64");
    struct sl_object *object = open_bytes(bytes);
    struct sl_bytes text;
    uint64_t address;
    assert_int_equal(sl_object_info(object)->kind, SL_KIND_EXE);
    assert_int_equal(sl_object_info(object)->arch, SL_ARCH_ARM64);
    assert_int_equal(sl_object_info(object)->load_address, 0x100000000);
    assert_true(sl_object_info(object)->image_size < 0x100000); /* without the page at zero */
    assert_true(sl_object_section(object, "text", &text, &address));
    assert_int_equal(symbol_address(object, "outer"), address); /* without the underscore */
    assert_false(sl_object_section(object, "debug_info", &text, NULL));
    sl_object_close(object);
    free((void *)bytes.data);
}

/* Some address of `outer` is in the inlinee, `entry` begins in itself. */
static void expect_functions(const char *file, bool at_zero)
{
    struct sl_bytes bytes = fixture_read(file);
    struct sl_object *object = open_bytes(bytes);
    struct converted c;
    bool inlined = false;
    uint64_t outer = symbol_address(object, "outer"), entry = symbol_address(object, "entry");
    assert_int_equal(outer == 0, at_zero);
    convert(&c, object);
    assert_string_equal(chain_at(&c.cache, entry), "entry:16@/src/a.cc");
    for (uint64_t at = outer; at < entry; at++)
        inlined = inlined || strcmp(chain_at(&c.cache, at), "_ZN7counter5twiceEi:6@/src/a.cc outer:13@/src/a.cc") == 0;
    assert_true(inlined);
    sl_buf_free(&c.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

TEST(functions_of_a_dsym_are_read)
{
    expect_functions("x86_64.dwarf", false);
    expect_functions("arm64.dwarf", false);
}

/* Their DWARF needs relocations, functions at 0 are alive, and ltmp0 names none. DWARF 5 cuts a section's name short. */
TEST(functions_of_relocatable_files_are_read)
{
    expect_functions("x86_64.o", true);
    expect_functions("arm64.o", true);
    expect_functions("armv7.o", true);
    expect_functions("dwarf5.o", true);
    struct sl_bytes bytes = fixture_read("dwarf5.o"), offsets;
    struct sl_object *object = open_bytes(bytes);
    assert_int_equal(sl_object_info(object)->kind, SL_KIND_REL);
    assert_true(sl_object_section(object, "debug_str_offsets", &offsets, NULL) && offsets.size);
    sl_object_close(object);
    free((void *)bytes.data);
}

TEST(data_and_other_sections_have_no_function_symbols)
{
    struct sl_bytes bytes = fixture_read("x86_64.dylib");
    struct sl_object *object = open_bytes(bytes);
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 2);
    assert_int_equal(symbols[0].address + symbols[0].size, symbols[1].address);
    sl_arena_free(&arena);
    sl_object_close(object);
    free((void *)bytes.data);
}

static uint32_t load_32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* A copy of the file whose __debug_ sections are compressed in the older form, under names that say so; the contents lie behind
 * all else. Go's linker makes such files. */
static struct sl_bytes compressed_copy(struct sl_bytes bytes)
{
    struct sl_buf out = {0};
    uint32_t commands = load_32(bytes.data + 16);
    sl_buf_add(&out, bytes.data, bytes.size);
    for (size_t at = 32; commands--; at += load_32(bytes.data + at + 4)) {
        size_t sections = load_32(bytes.data + at) == 0x19 ? load_32(bytes.data + at + 64) : 0;
        for (size_t i = 0; i < sections; i++) {
            size_t header = at + 72 + 80 * i;
            uint32_t size = load_32(bytes.data + header + 40), offset = load_32(bytes.data + header + 48);
            if (memcmp(bytes.data + header, "__debug_", 8) != 0 || !offset)
                continue;
            uLongf packed = compressBound(size);
            uint8_t *stream = malloc(packed), field[16] = "__zdebug_";
            assert_non_null(stream);
            assert_int_equal(compress(stream, &packed, bytes.data + offset, size), Z_OK);
            memcpy(field + 9, bytes.data + header + 8, 7);
            uint32_t sizes[2] = {(uint32_t)packed + 12, 0}, place = (uint32_t)out.size;
            memcpy(out.data + header, field, sizeof field);
            memcpy(out.data + header + 40, sizes, sizeof sizes);
            memcpy(out.data + header + 48, &place, sizeof place);
            sl_buf_add(&out, "ZLIB\0\0\0\0", 8);
            sl_buf_u32(&out, __builtin_bswap32(size));
            sl_buf_add(&out, stream, packed);
            free(stream);
        }
    }
    return sl_buf_bytes(&out);
}

TEST(compressed_sections_are_inflated)
{
    struct sl_bytes bytes = fixture_read("x86_64.dwarf"), packed = compressed_copy(bytes), abbrevs, same;
    struct sl_object *plain = open_bytes(bytes), *object = open_bytes(packed);
    struct sl_section_info section;
    size_t compressed = 0;
    assert_true(sl_object_info(object)->features.has_debug_info);
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        compressed += section.compression != NULL;
    assert_true(compressed > 3);
    assert_true(sl_object_section(plain, "debug_abbrev", &abbrevs, NULL));
    assert_true(sl_object_section(object, "debug_abbrev", &same, NULL));
    assert_int_equal(abbrevs.size, same.size);
    assert_memory_equal(abbrevs.data, same.data, same.size);
    struct converted a, b;
    convert(&a, plain);
    convert(&b, object);
    assert_int_equal(a.file.size, b.file.size);
    assert_memory_equal(a.file.data, b.file.data, a.file.size);
    sl_buf_free(&a.file);
    sl_buf_free(&b.file);
    sl_object_close(object);
    sl_object_close(plain);
    damage(packed, 4096 < packed.size ? 4096 : packed.size, 200);
    free((void *)packed.data);
    free((void *)bytes.data);
}

/* ---- hand-made files ---- */

static struct sl_buf image;
static bool image_big_endian;

static void put32(uint32_t value)
{
    sl_buf_u32(&image, image_big_endian ? __builtin_bswap32(value) : value);
}

static void put_name(const char *name)
{
    char field[16] = {0};
    memcpy(field, name, strlen(name));
    sl_buf_add(&image, field, sizeof field);
}

/* A 32-bit header of the given processor, with as many bytes of load commands as follow. */
static void begin_image(bool big_endian, uint32_t cpu, uint32_t subtype, uint32_t type, uint32_t commands,
                        uint32_t size)
{
    sl_buf_clear(&image);
    image_big_endian = big_endian;
    put32(0xFEEDFACE);
    put32(cpu);
    put32(subtype);
    put32(type);
    put32(commands);
    put32(size);
    put32(0);
}

TEST(architectures_and_kinds_are_recognised)
{
    static const struct {
        uint32_t cpu, subtype, type;
        enum sl_arch arch;
        enum sl_object_kind kind;
    } rows[] = {
        {7, 3, 1, SL_ARCH_X86, SL_KIND_REL},
        {7, 4, 2, SL_ARCH_X86_UNKNOWN, SL_KIND_EXE},
        {0x01000007, 8, 6, SL_ARCH_X86_64H, SL_KIND_LIB},
        {0x01000007, 0x80000003, 8, SL_ARCH_X86_64, SL_KIND_LIB}, /* with a capability bit */
        {0x01000007, 9, 7, SL_ARCH_X86_64_UNKNOWN, SL_KIND_EXE},
        {0x0100000C, 0, 10, SL_ARCH_ARM64, SL_KIND_DBG},
        {0x0100000C, 1, 11, SL_ARCH_ARM64V8, SL_KIND_LIB},
        {0x0100000C, 0x80000002, 5, SL_ARCH_ARM64E, SL_KIND_EXE},
        {0x0100000C, 3, 4, SL_ARCH_ARM64_UNKNOWN, SL_KIND_DUMP},
        {0x0200000C, 1, 3, SL_ARCH_ARM64_32_V8, SL_KIND_LIB},
        {12, 9, 9, SL_ARCH_ARMV7, SL_KIND_OTHER},
        {12, 11, 12, SL_ARCH_ARMV7S, SL_KIND_OTHER},
        {12, 99, 0, SL_ARCH_ARM_UNKNOWN, SL_KIND_OTHER},
        {18, 0, 2, SL_ARCH_PPC, SL_KIND_EXE},
        {0x01000012, 0, 2, SL_ARCH_PPC64, SL_KIND_EXE},
        {18, 100, 2, SL_ARCH_UNKNOWN, SL_KIND_EXE},
        {1, 0, 2, SL_ARCH_UNKNOWN, SL_KIND_EXE},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        size_t row = i / 2;
        begin_image(i & 1, rows[row].cpu, rows[row].subtype, rows[row].type, 0, 0);
        struct sl_object *object = open_bytes(sl_buf_bytes(&image));
        assert_int_equal(sl_object_info(object)->arch, rows[row].arch);
        assert_int_equal(sl_object_info(object)->kind, rows[row].kind);
        assert_int_equal(sl_object_info(object)->big_endian, i & 1);
        assert_true(sl_debug_id_is_nil(&sl_object_info(object)->debug_id));
        assert_int_equal(sl_object_info(object)->code_id.size, 0);
        sl_object_close(object);
    }
}

/* Big-endian: __TEXT at 0x1000 with __text, __stubs and __const, and a symbol in each; a stab, an absolute and an
 * undefined symbol, one below the segment, one hidden by bitcode and one of a section that is not there. */
TEST(big_endian_symbols_are_read)
{
    static const char *const sections[] = {"__text", "__stubs", "__const"};
    static const struct {
        uint8_t type, section;
        uint32_t value, name;
    } symbols[] = {
        {0x0F, 1, 0x1000, 1},  /* _mh_execute_header */
        {0x0F, 2, 0x1100, 20}, /* __two */
        {0x0F, 3, 0x1200, 20}, {0x24, 1, 0x1010, 20}, {0x02, 0, 0x1010, 20}, {0x01, 0, 0, 20},
        {0x0E, 1, 0x0FFF, 20}, {0x0E, 1, 0x1020, 26}, {0x0E, 4, 0x1030, 20}, {0x0E, 1, 0x1040, 9999},
    };
    static const char strings[] = "\0_mh_execute_header\0__two\0__hidden#3_";
    const uint32_t segment_size = 56 + 3 * 68, symbol_offset = 28 + segment_size + 24;
    begin_image(true, 18, 0, 2, 2, segment_size + 24);
    put32(1); /* LC_SEGMENT */
    put32(segment_size);
    put_name("__TEXT");
    const uint32_t segment[] = {0x1000, 0x1000, 0, 0x1000, 7, 5, 3, 0};
    for (size_t i = 0; i < 8; i++)
        put32(segment[i]);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t section[] = {0x1000 + 0x100 * i, 0x100, 0x10, 0, 0, 0, 0, 0, 0};
        put_name(sections[i]);
        put_name("__TEXT");
        for (size_t k = 0; k < 9; k++)
            put32(section[k]);
    }
    const uint32_t symtab[] = {2, 24, symbol_offset, 10, symbol_offset + 10 * 12, sizeof strings};
    for (size_t i = 0; i < 6; i++)
        put32(symtab[i]);
    for (size_t i = 0; i < 10; i++) {
        put32(symbols[i].name);
        sl_buf_u8(&image, symbols[i].type);
        sl_buf_u8(&image, symbols[i].section);
        sl_buf_u16(&image, 0);
        put32(symbols[i].value);
    }
    sl_buf_add(&image, strings, sizeof strings);

    struct sl_object *object = open_bytes(sl_buf_bytes(&image));
    struct sl_arena arena = {0};
    struct sl_symbol *found;
    size_t count;
    assert_int_equal(sl_object_info(object)->load_address, 0x1000);
    assert_int_equal(sl_object_info(object)->image_size, 0x1000);
    assert_int_equal(sl_object_symbols(object, &arena, &found, &count, NULL), SL_OK);
    assert_int_equal(count, 4);
    assert_true(sl_str_equal(found[0].name, SL_STR("mh_execute_header")) && found[0].address == 0);
    assert_true(sl_str_equal(found[1].name, SL_STR("_two")) && found[1].address == 0x100);
    assert_true(sl_str_equal(found[2].name, SL_STR("__hidden#3_")) && found[2].address == 0x20);
    assert_true(found[3].name.size == 0 && found[3].address == 0x40);
    sl_arena_free(&arena);
    sl_object_close(object);
}

static void expect_malformed(const char *message)
{
    struct sl_object *object;
    struct sl_error error;
    assert_int_equal(sl_object_open(sl_buf_bytes(&image), NULL, &object, &error), SL_MALFORMED);
    assert_string_equal(error.message, message);
}

TEST(malformed_load_commands_report_the_offset)
{
    begin_image(false, 7, 3, 2, 1, 8); /* none of them is there */
    expect_malformed("invalid MachO file: load commands extend beyond the file at 0x1c");
    begin_image(false, 7, 3, 2, 2, 8);
    put32(0x1B);
    put32(4); /* shorter than its own head */
    expect_malformed("invalid MachO file: bad load command at 0x1c");
    begin_image(false, 7, 3, 2, 1, 8);
    put32(0x1B);
    put32(16);
    sl_buf_fill(&image, 0, 8);
    expect_malformed("invalid MachO file: load command extends beyond the list at 0x1c");
    begin_image(false, 7, 3, 2, 0xFFFFFFFF, 8);
    put32(0x1B);
    put32(8);
    expect_malformed("invalid MachO file: bad load command at 0x24");
    begin_image(false, 7, 3, 2, 0, 0);
    image.size = 20;
    expect_malformed("invalid MachO file: bad file header at 0x0");
}

/* More sections than the command has room for: those that are there count. */
TEST(sections_beyond_the_command_make_the_object_partial)
{
    begin_image(false, 7, 3, 2, 1, 56);
    put32(1);
    put32(56);
    put_name("__TEXT");
    const uint32_t segment[] = {0x1000, 0x1000, 0, 0x1000, 7, 5, 0xFFFFFFFF, 0};
    for (size_t i = 0; i < 8; i++)
        put32(segment[i]);
    struct sl_object *object = open_bytes(sl_buf_bytes(&image));
    struct sl_section_info section;
    assert_true(sl_object_info(object)->partial);
    assert_int_equal(sl_object_info(object)->load_address, 0x1000);
    assert_false(sl_object_section_info(object, 0, &section));
    sl_object_close(object);
}

TEST(damaged_files_never_crash)
{
    static const char *const files[] = {"x86_64.dwarf", "arm64", "arm64.o", "armv7.o"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct sl_bytes bytes = fixture_read(files[i]);
        damage(bytes, bytes.size < 1024 ? bytes.size : 1024, 300);
        damage(bytes, bytes.size, 100);
        free((void *)bytes.data);
    }
}

static int drop_fixtures(void **state)
{
    sl_buf_free(&image);
    return fixture_end(state);
}

TEST_FILE(.begin = make_fixtures, .end = drop_fixtures);
