/* ELF: this test's own binary, and hand-damaged copies of it. */
#include "../check.h"

#include "base/file.h"
#include "object/object.h"

static struct sl_mapping self;

int unit_test_marker(int x);
__attribute__((noinline)) int unit_test_marker(int x)
{
    return x + 1;
}

static int open_self(void **state)
{
    return sl_map_file("/proc/self/exe", &self, NULL) == SL_OK ? 0 : -1;
}

static int close_self(void **state)
{
    sl_unmap(&self);
    return 0;
}

TEST(identity_and_features_of_the_test_program_are_read)
{
    struct sl_object *object;
    struct sl_error error;
    assert_int_equal(sl_object_open(self.bytes, NULL, &object, &error), SL_OK);
    const struct sl_object_info *info = sl_object_info(object);
    assert_int_equal(info->format, SL_FORMAT_ELF);
    assert_int_equal(info->kind,
                     SL_KIND_EXE); /* position independent: ET_DYN with code, and says that it is a program */
    assert_int_equal(info->code_id.size, 40);
    assert_false(sl_debug_id_is_nil(&info->debug_id));
    assert_true(info->features.has_debug_info && info->features.has_symbols && info->features.has_unwind_info);
    assert_false(info->features.has_sources || info->partial);
    assert_true(info->image_size > 0);
    sl_object_close(object);
}

TEST(symbols_are_those_of_functions)
{
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count, found = 0;
    assert_int_equal(sl_object_open(self.bytes, NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++) {
        assert_false(sl_str_equal(symbols[i].name, SL_STR("self"))); /* data */
        if (sl_str_equal(symbols[i].name, SL_STR("unit_test_marker"))) {
            assert_true(symbols[i].size > 0);
            found++;
        }
    }
    assert_int_equal(found, 1);
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(sections_are_found_by_name)
{
    struct sl_object *object;
    struct sl_bytes bytes;
    uint64_t address;
    assert_int_equal(sl_object_open(self.bytes, NULL, &object, NULL), SL_OK);
    assert_true(sl_object_section(object, "debug_info", &bytes, NULL) && bytes.size > 0);
    assert_true(sl_object_section(object, "text", &bytes, &address) && address > 0);
    assert_false(sl_object_section(object, "no_such_section", &bytes, NULL));
    assert_int_equal(bytes.size, 0);
    sl_object_close(object);
}

/* Everything an ELF reader touches: no damage may do more than an error or a poorer object. */
TEST(damaged_files_never_crash)
{
    size_t size = self.bytes.size < 4096 ? self.bytes.size : 4096;
    uint32_t seed = 1;
    uint8_t *copy = malloc(self.bytes.size);
    assert_non_null(copy);
    for (unsigned round = 0; round < 400; round++) {
        struct sl_object *object;
        struct sl_arena arena = {0};
        struct sl_symbol *symbols;
        struct sl_bytes bytes;
        size_t count, length = round % 4 == 0 ? round * 37 % self.bytes.size : self.bytes.size;
        memcpy(copy, self.bytes.data, self.bytes.size);
        for (unsigned i = 0; i < 4; i++) {
            seed = seed * 1664525 + 1013904223;
            /* the header and, at the end, the section headers */
            size_t at = i & 1 ? self.bytes.size - 1 - (seed >> 8) % size : 16 + (seed >> 8) % 1000;
            copy[at] = (uint8_t)(seed >> 24);
        }
        if (sl_object_open((struct sl_bytes){copy, length}, NULL, &object, NULL) != SL_OK)
            continue;
        sl_object_symbols(object, &arena, &symbols, &count, NULL);
        sl_object_section(object, "debug_info", &bytes, NULL);
        sl_arena_free(&arena);
        sl_object_close(object);
    }
    free(copy);
}

TEST(formats_are_detected)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum sl_format format;
    } rows[] = {
        {"\x7f"
         "ELF............",
         16, SL_FORMAT_ELF},
        {"\x7f"
         "ELF...........",
         15, SL_FORMAT_UNKNOWN},
        {"MZ..............", 16, SL_FORMAT_PE},
        {"Microsoft C/C++ MSF 7.00\r\n\x1a"
         "DS\0\0\0",
         32, SL_FORMAT_PDB},
        {"SYSB............", 16, SL_FORMAT_SOURCEBUNDLE},
        {"MODULE Linux x86", 16, SL_FORMAT_BREAKPAD},
        {"MODULES.........", 16, SL_FORMAT_UNKNOWN},
        {"\r\n\nMODULE a b c", 16, SL_FORMAT_BREAKPAD},
        {"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nMODULE Linux x86", 33, SL_FORMAT_UNKNOWN},
        {"\0asm............", 16, SL_FORMAT_WASM},
        {"BSJB............", 16, SL_FORMAT_PORTABLEPDB},
        {"\xcf\xfa\xed\xfe............", 16, SL_FORMAT_MACHO},
        {"\xca\xfe\xba\xbe\0\0\0\2........", 16, SL_FORMAT_MACHO},
        {"\xca\xfe\xba\xbe\0\0\0\x37........", 16, SL_FORMAT_UNKNOWN}, /* a Java class file */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sl_format_detect((struct sl_bytes){(const uint8_t *)rows[i].bytes, rows[i].size}),
                         rows[i].format);
    struct sl_object *object;
    struct sl_error error;
    assert_int_equal(sl_object_open((struct sl_bytes){(const uint8_t *)"nothing", 7}, NULL, &object, &error),
                     SL_MALFORMED);
    assert_string_equal(error.message, "unsupported object file format");
}

TEST(architecture_names_are_parsed)
{
    assert_int_equal(sl_arch_parse(SL_STR("AMD64")), SL_ARCH_X86_64);
    assert_int_equal(sl_arch_parse(SL_STR("arm-64")), SL_ARCH_ARM64);
    assert_int_equal(sl_arch_parse(SL_STR("vax")), SL_ARCH_UNKNOWN);
    assert_string_equal(sl_arch_name(SL_ARCH_ARM64_32_V8), "arm64_32_v8");
    assert_int_equal(sl_cpu_instruction_alignment(sl_arch_family(SL_ARCH_ARMV7S)), 2);
    assert_string_equal(sl_cpu_ip_register(SL_CPU_X86_64), "rip");
}

TEST_FILE(.begin = open_self, .end = close_self);
