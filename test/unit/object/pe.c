/* PE files: written by hand, one rule at a time, and those of MinGW with DWARF in them. */
#include "../fixture.h"

#include "base/buf.h"
#include "base/file.h"
#include "object/embedded.h"
#include "symcache/symcache.h"

#include <zlib.h>

/* ---- files written by hand ----
 *
 *     0     DOS header, 0x40 PE header, optional header, section headers
 *     0x400 .text at 0x1000; 0x600 .rdata at 0x2000; 0xA00 what the test adds (sections, COFF symbols) */

enum { TEXT = 0x1000, RDATA = 0x2000, RDATA_OFFSET = 0x600, END = 0xA00 };
enum { CODE = 0x60000020, DATA = 0x40000040 };

struct file {
    struct sl_buf bytes;
    bool wide;
    size_t optional, sections; /* offsets of the headers */
    uint16_t section_count;
};

static void set(struct file *f, size_t at, unsigned size, uint64_t value)
{
    assert_true(at + size <= f->bytes.size);
    memcpy(f->bytes.data + at, &value, size);
}

static void set_section(struct file *f, size_t index, const char *name, uint32_t address, uint32_t size,
                        uint32_t offset, uint32_t flags)
{
    size_t at = f->sections + index * 40;
    char padded[8] = {0};
    memcpy(padded, name, strnlen(name, 8));
    memcpy(f->bytes.data + at, padded, 8);
    set(f, at + 8, 4, size);
    set(f, at + 12, 4, address);
    set(f, at + 16, 4, offset ? (size + 511) / 512 * 512 : 0);
    set(f, at + 20, 4, offset);
    set(f, at + 36, 4, flags);
    if (index >= f->section_count)
        f->section_count = (uint16_t)(index + 1);
    set(f, 0x46, 2, f->section_count);
}

static void set_directory(struct file *f, unsigned index, uint32_t address, uint32_t size)
{
    size_t at = f->optional + (f->wide ? 112 : 96) + index * 8;
    set(f, at, 4, address);
    set(f, at + 4, 4, size);
}

/* Puts bytes into .rdata and returns their address. */
static uint32_t put(struct file *f, uint32_t offset, const void *data, size_t size)
{
    assert_true(offset + size <= END - RDATA_OFFSET);
    memcpy(f->bytes.data + RDATA_OFFSET + offset, data, size);
    return RDATA + offset;
}

static struct file new_file(bool wide)
{
    struct file f = {.wide = wide, .optional = 0x58};
    sl_buf_fill(&f.bytes, 0, END);
    f.sections = f.optional + (wide ? 240 : 224);
    memcpy(f.bytes.data, "MZ", 2);
    set(&f, 0x3C, 4, 0x40);
    memcpy(f.bytes.data + 0x40, "PE\0\0", 4);
    set(&f, 0x44, 2, wide ? 0x8664 : 0x14C);
    set(&f, 0x48, 4, 0x5AB38077);
    set(&f, 0x54, 2, wide ? 240 : 224);
    set(&f, f.optional, 2, wide ? 0x20B : 0x10B);
    set(&f, f.optional + (wide ? 24 : 28), wide ? 8 : 4, wide ? 0x140000000 : 0x400000);
    set(&f, f.optional + 56, 4, 0x9000);
    set(&f, f.optional + (wide ? 108 : 92), 4, 16);
    set_section(&f, 0, ".text", TEXT, 0x100, 0x400, CODE);
    set_section(&f, 1, ".rdata", RDATA, 0x400, RDATA_OFFSET, DATA);
    return f;
}

static struct sl_object *open_file(const struct file *f)
{
    struct sl_object *object;
    struct sl_error error = {0};
    enum sl_code code = sl_object_open(sl_buf_bytes(&f->bytes), NULL, &object, &error);
    if (code != SL_OK)
        fail_msg("%s", error.message);
    return object;
}

/* A debug directory of one entry, its data behind it. */
static void set_debug(struct file *f, uint32_t type, uint16_t minor, const void *data, uint32_t size)
{
    uint8_t entry[28] = {0};
    uint32_t words[] = {type, size, RDATA + 28, RDATA_OFFSET + 28}, stamp = 0x12345678;
    memcpy(entry + 4, &stamp, 4);
    memcpy(entry + 10, &minor, 2);
    memcpy(entry + 12, words, 16);
    set_directory(f, 6, put(f, 0, entry, 28), 28);
    put(f, 28, data, size);
}

static void expect_id(const struct file *f, const char *expected, const char *debug_file)
{
    struct sl_object *object = open_file(f);
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&sl_object_info(object)->debug_id, id);
    assert_string_equal(id, expected);
    assert_true(sl_str_equal(sl_object_info(object)->debug_file, sl_str(debug_file)));
    sl_object_close(object);
}

TEST(codeview_records_give_the_identity)
{
    static const char rsds[] =
        "RSDS\x9d\xd9\x49\x32\x40\x0c\x31\x49\x86\x10\xf4\xe4\xfb\x0b\x69\x36\1\0\0\0C:\\crash.pdb";
    static const char nb10[] = "NB10\0\0\0\0\xc3\x89\x8e\x41\2\0\0\0old.pdb";
    static const char nil[] = "00000000-0000-0000-0000-000000000000";
    for (unsigned wide = 0; wide < 2; wide++) {
        struct file f = new_file(wide);
        struct sl_object *object = open_file(&f);
        const struct sl_object_info *info = sl_object_info(object);
        assert_int_equal(info->format, SL_FORMAT_PE);
        assert_int_equal(info->kind, SL_KIND_EXE);
        assert_int_equal(info->arch, wide ? SL_ARCH_X86_64 : SL_ARCH_X86);
        assert_int_equal(info->load_address, wide ? 0x140000000 : 0x400000);
        assert_int_equal(info->image_size, 0x9000);
        assert_int_equal(info->is_64bit, wide);
        assert_true(sl_str_equal(info->code_id, SL_STR("5ab380779000")));
        assert_false(info->features.has_debug_info || info->features.has_symbols || info->features.has_unwind_info);
        sl_object_close(object);
        expect_id(&f, nil, "");
        set_debug(&f, 2, 0, rsds, sizeof rsds);
        expect_id(&f, "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "C:\\crash.pdb");
        set_debug(&f, 2, 0, rsds, sizeof rsds - 1); /* no NUL: no name */
        expect_id(&f, "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "");
        set_debug(&f, 2, 0x504D, rsds, sizeof rsds); /* Portable PDB: the time stamp takes the place of the age */
        expect_id(&f, "3249d99d-0c40-4931-8610-f4e4fb0b6936-12345678", "C:\\crash.pdb");
        set(&f, RDATA_OFFSET + 24, 4, 0x7FFFFFF0); /* a tool moved the section but not this offset */
        expect_id(&f, "3249d99d-0c40-4931-8610-f4e4fb0b6936-12345678", "C:\\crash.pdb");
        set_debug(&f, 2, 0, nb10, sizeof nb10);
        expect_id(&f, "418E89C3-2", "old.pdb");
        set_debug(&f, 2, 0, "RSDS", 4);
        expect_id(&f, nil, "");
        set_debug(&f, 3, 0, rsds, sizeof rsds);
        expect_id(&f, nil, "");
        sl_buf_free(&f.bytes);
    }
}

TEST(kinds_machines_and_features_are_recognised)
{
    static const struct {
        uint16_t machine;
        enum sl_arch arch;
    } rows[] = {{0x14C, SL_ARCH_X86},    {0x8664, SL_ARCH_X86_64}, {0x1C0, SL_ARCH_ARM}, {0x1C4, SL_ARCH_ARM},
                {0xAA64, SL_ARCH_ARM64}, {0xA641, SL_ARCH_ARM64},  {0x1F0, SL_ARCH_PPC}, {0x200, SL_ARCH_UNKNOWN}};
    struct file f = new_file(true);
    struct sl_object *object;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set(&f, 0x44, 2, rows[i].machine);
        object = open_file(&f);
        assert_int_equal(sl_object_info(object)->arch, rows[i].arch);
        sl_object_close(object);
    }
    set_directory(&f, 3, RDATA, 12);
    set_section(&f, 2, ".pdata", 0x3000, 0x100, 0x800, DATA);
    set_section(&f, 3, ".debug_i", 0x4000, 0x100, 0x800, DATA); /* cut off: could be .debug_info, or another */
    object = open_file(&f);
    assert_true(sl_object_info(object)->features.has_unwind_info);
    assert_false(sl_object_info(object)->features.has_debug_info);
    sl_object_close(object);
    set_section(&f, 3, ".stub", 0x4000, 0x100, 0x800, DATA);
    set_section(&f, 2, ".pdata", 0x3000, 0x100, 0, DATA);
    object = open_file(&f);
    assert_int_equal(sl_object_info(object)->kind, SL_KIND_OTHER);
    assert_false(sl_object_info(object)->features.has_unwind_info);
    sl_object_close(object);
    set(&f, 0x56, 2, 0x2000);
    object = open_file(&f);
    assert_int_equal(sl_object_info(object)->kind, SL_KIND_LIB);
    sl_object_close(object);
    sl_buf_free(&f.bytes);
}

/* Symbols as "name address+size" in hex. */
static void expect_symbols(const struct file *f, const char *text)
{
    struct sl_object *object = open_file(f);
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    struct sl_buf out = {0};
    size_t count;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_true(sl_object_info(object)->features.has_symbols || !count);
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(&out, SL_STR_FMT " %llx+%llx\n", SL_STR_ARG(symbols[i].name),
                      (unsigned long long)symbols[i].address, (unsigned long long)symbols[i].size);
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, text);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    sl_object_close(object);
}

static void set_exports(struct file *f)
{
    /* four addresses: code, data, a forwarder, code without a name; three names, of which the last comes first */
    static const uint32_t addresses[] = {TEXT + 0x40, RDATA + 0x100, RDATA + 0x60, TEXT + 0x60};
    static const uint16_t ordinals[] = {2, 1, 0};
    uint32_t names[3], directory[10] = {[5] = 4, [6] = 3};
    names[0] = put(f, 0x80, "forwarded", 10);
    names[1] = put(f, 0x90, "data", 5);
    names[2] = put(f, 0xA0, "exported", 9);
    directory[7] = put(f, 0x28, addresses, sizeof addresses);
    directory[8] = put(f, 0x38, names, sizeof names);
    directory[9] = put(f, 0x44, ordinals, sizeof ordinals);
    put(f, 0x60, "other.dll.name", 15);
    set_directory(f, 0, put(f, 0, directory, sizeof directory), 0x100);
}

static void coff_symbol(struct sl_buf *out, const char *name, uint32_t long_name, uint32_t value, uint16_t section,
                        uint16_t type, uint8_t class, uint8_t auxiliary)
{
    char raw[8] = {0};
    if (name)
        memcpy(raw, name, strnlen(name, 8));
    else
        memcpy(raw + 4, &long_name, 4);
    sl_buf_add(out, raw, 8);
    sl_buf_u32(out, value);
    sl_buf_u16(out, section);
    sl_buf_u16(out, type);
    sl_buf_u8(out, class);
    sl_buf_u8(out, auxiliary);
    sl_buf_fill(out, 0xFF, 18u * auxiliary);
}

TEST(exports_and_coff_symbols_are_read)
{
    struct file f = new_file(true);
    expect_symbols(&f, "");
    set_exports(&f);
    expect_symbols(&f, "exported 1040+c0\n");
    uint32_t at = (uint32_t)f.bytes.size;
    coff_symbol(&f.bytes, "external", 0, 0x10, 1, 0x20, 2, 0);
    coff_symbol(&f.bytes, NULL, 4, 0x20, 1, 0x20, 3, 2);
    coff_symbol(&f.bytes, "label", 0, 0x30, 1, 0, 3, 0);
    coff_symbol(&f.bytes, "in_data", 0, 0x30, 2, 0x20, 2, 0);
    coff_symbol(&f.bytes, "absolute", 0, 0x30, 0xFFFF, 0x20, 2, 0);
    coff_symbol(&f.bytes, "nowhere", 0, 0x30, 9, 0x20, 2, 0);
    coff_symbol(&f.bytes, "untyped", 0, 0x50, 1, 0, 2, 0); /* as the code that calls other libraries */
    coff_symbol(&f.bytes, "etext", 0, 0x100, 1, 0, 2, 0);
    sl_buf_u32(&f.bytes, 4 + 20);
    sl_buf_add(&f.bytes, "_long_static_symbol", 20);
    set(&f, 0x4C, 4, at);
    set(&f, 0x50, 4, 10);
    expect_symbols(&f, "exported 1040+10\nexternal 1010+10\n_long_static_symbol 1020+20\nuntyped 1050+b0\n");
    sl_buf_free(&f.bytes);
}

static uint32_t add(struct file *f, const void *data, size_t size)
{
    uint32_t at = (uint32_t)f->bytes.size;
    sl_buf_add(&f->bytes, data, size);
    sl_buf_align(&f->bytes, 512);
    return at;
}

TEST(sections_are_found_by_name_and_inflated)
{
    struct file f = new_file(true);
    struct sl_bytes bytes;
    uint64_t address;
    uint8_t compressed[256] = "ZLIB\0\0\0\0\0\0\0\x0a";
    uLongf size = sizeof compressed - 12;
    assert_int_equal(compress(compressed + 12, &size, (const Bytef *)"0123456789", 10), Z_OK);
    uint32_t plain = add(&f, "abcdef", 6), zlib = add(&f, compressed, size + 12);
    uint32_t strings = (uint32_t)f.bytes.size;
    sl_buf_u32(&f.bytes, 64);
    sl_buf_add(&f.bytes, ".debug_info", 12);  /* at 4 */
    sl_buf_add(&f.bytes, ".zdebug_line", 13); /* at 16 */
    sl_buf_fill(&f.bytes, 0, 64);
    set(&f, 0x4C, 4, strings);
    set_section(&f, 2, "/4", 0x3000, 6, plain, DATA);
    set_section(&f, 3, "//AAAAAQ", 0x4000, (uint32_t)size + 12, zlib, DATA);
    set_section(&f, 4, ".eh_frame", 0x5000, 3, plain, DATA); /* cut after eight bytes */
    set_section(&f, 5, ".debug_r", 0x6000, 3, plain, DATA);
    set_section(&f, 6, ".bss", 0x7000, 3, 0, DATA);
    set_section(&f, 7, "/999", 0x8000, 3, plain, DATA);
    struct sl_object *object = open_file(&f);
    assert_true(sl_object_section(object, "debug_info", &bytes, &address));
    assert_int_equal(address, 0x3000);
    assert_int_equal(bytes.size, 6);
    assert_true(sl_object_section(object, "debug_line", &bytes, NULL));
    assert_int_equal(bytes.size, 10);
    assert_memory_equal(bytes.data, "0123456789", 10);
    assert_true(sl_object_section(object, "eh_frame", &bytes, &address));
    assert_int_equal(address, 0x5000);
    assert_false(sl_object_section(object, "debug_ranges", &bytes, NULL));
    assert_false(sl_object_section(object, "bss", &bytes, NULL));
    assert_false(sl_object_section(object, "nothing", &bytes, NULL));
    assert_int_equal(bytes.size, 0);
    assert_true(sl_object_info(object)->features.has_debug_info);
    struct sl_section_info info;
    assert_true(sl_object_section_info(object, 3, &info));
    assert_true(sl_str_equal(info.name, SL_STR(".zdebug_line")));
    assert_string_equal(info.compression, "zlib");
    assert_false(sl_object_section_info(object, 8, &info));
    sl_object_close(object);

    struct sl_object_limits limits = {.max_section_size = 9};
    assert_int_equal(sl_object_open(sl_buf_bytes(&f.bytes), &limits, &object, NULL), SL_OK);
    assert_false(sl_object_section(object, "debug_line", &bytes, NULL));
    sl_object_close(object);
    sl_buf_free(&f.bytes);
}

static void expect_ppdb(const struct file *f, enum sl_code code, const char *text)
{
    struct sl_object *object = open_file(f);
    struct sl_arena arena = {0};
    struct sl_bytes bytes;
    struct sl_error error = {0};
    assert_int_equal(sl_object_embedded_ppdb(object, &arena, &bytes, &error), code);
    if (code == SL_OK)
        assert_true(sl_str_equal((struct sl_str){(const char *)bytes.data, bytes.size}, sl_str(text)));
    else
        assert_string_equal(error.message, text);
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(embedded_portable_pdb_is_inflated)
{
    struct file f = new_file(false);
    uint8_t blob[256] = "MPDB\x0c\0\0\0";
    z_stream z = {.next_in = (Bytef *)"BSJB is here", .avail_in = 12, .next_out = blob + 8, .avail_out = 200};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    uint32_t size = 8 + (uint32_t)z.total_out;
    deflateEnd(&z);
    expect_ppdb(&f, SL_NOT_FOUND, "the PE file has no Portable PDB inside");
    set_debug(&f, 17, 0x100, blob, size);
    expect_ppdb(&f, SL_OK, "BSJB is here");
    set_debug(&f, 17, 0x100, blob, 7);
    expect_ppdb(&f, SL_MALFORMED, "invalid length");
    set_debug(&f, 17, 0x100, "MPDC\x0c\0\0\0", 8);
    expect_ppdb(&f, SL_MALFORMED, "invalid signature");
    for (unsigned claim = 0; claim < 20; claim++) {
        blob[4] = (uint8_t)claim;
        set_debug(&f, 17, 0x100, blob, size);
        if (claim != 12)
            expect_ppdb(&f, SL_MALFORMED, "invalid blob data");
    }
    blob[4] = 12;
    set_debug(&f, 17, 0x100, blob, size - 3);
    expect_ppdb(&f, SL_MALFORMED, "invalid blob data");
    memcpy(blob + 4, "\xff\xff\xff\xff", 4);
    set_debug(&f, 17, 0x100, blob, size);
    expect_ppdb(&f, SL_MALFORMED, "invalid blob data");
    set(&f, RDATA_OFFSET + 24, 4, 0x7FFFFFF0);
    expect_ppdb(&f, SL_MALFORMED, "invalid blob offset");
    sl_buf_free(&f.bytes);
}

TEST(malformed_headers_report_the_offset)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *message;
    } rows[] = {
        {0x3C, 0x7FFFFFFF, "invalid PE file: bad file header at 0x7fffffff"},
        {0x3C, 0x44, "invalid PE file: bad file header at 0x44"},
        {0x58, 0x107, "invalid PE file: bad optional header at 0x58"},
        {0x54, 0x10, "invalid PE file: bad optional header at 0x58"},
        {0x54, 0xFFFF, "invalid PE file: bad optional header at 0x58"},
        {0x46, 0xFFFF, "invalid PE file: section headers extend beyond the file at 0x148"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct file f = new_file(true);
        struct sl_object *object;
        struct sl_error error;
        set(&f, rows[i].at, rows[i].at == 0x3C ? 4 : 2, rows[i].value);
        assert_int_equal(sl_object_open(sl_buf_bytes(&f.bytes), NULL, &object, &error), SL_MALFORMED);
        assert_string_equal(error.message, rows[i].message);
        sl_buf_free(&f.bytes);
    }
}

static void read_everything(struct sl_bytes bytes)
{
    static const char *const names[] = {"debug_info", "debug_line", "eh_frame", "text"};
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *list;
    struct sl_bytes section;
    size_t count;
    if (sl_object_open(bytes, NULL, &object, NULL) != SL_OK)
        return;
    sl_object_symbols(object, &arena, &list, &count, NULL);
    for (size_t i = 0; i < 4; i++)
        sl_object_section(object, names[i], &section, NULL);
    sl_object_embedded_ppdb(object, &arena, &section, NULL);
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(damaged_files_never_crash)
{
    static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFF};
    struct file f = new_file(true);
    set_exports(&f);
    uint32_t at = (uint32_t)f.bytes.size;
    coff_symbol(&f.bytes, NULL, 4, 0x20, 1, 0x20, 3, 1);
    sl_buf_u32(&f.bytes, 8);
    sl_buf_add(&f.bytes, "abc", 4);
    set(&f, 0x4C, 4, at);
    set(&f, 0x50, 4, 2);
    set_directory(&f, 6, RDATA + 0x200, 28);
    for (size_t i = 0; i < f.bytes.size; i++) {
        if (i > 0x300 && i < 0x600)
            continue; /* zeros and code */
        for (size_t j = 0; j < sizeof values; j++) {
            uint8_t *copy = malloc(f.bytes.size);
            memcpy(copy, f.bytes.data, f.bytes.size);
            copy[i] = values[j];
            read_everything((struct sl_bytes){copy, f.bytes.size});
            free(copy);
        }
        uint8_t *cut = malloc(i + 1);
        memcpy(cut, f.bytes.data, i + 1);
        read_everything((struct sl_bytes){cut, i + 1});
        free(cut);
    }
    sl_buf_free(&f.bytes);
}

/* ---- files of MinGW ---- */

static const char source[] = "volatile int sink;\n"
                             "static inline __attribute__((always_inline)) void inlined(int n)\n"
                             "{\n"
                             "    sink += n;\n"
                             "}\n"
                             "__attribute__((noinline)) static int hidden(int n) { sink = n; return sink; }\n"
                             "__declspec(dllexport) int exported(int n)\n"
                             "{\n"
                             "    sink = 1;\n"
                             "    inlined(n);\n"
                             "    return hidden(sink);\n"
                             "}\n";

static int build(void **state)
{
    static const char *const targets[] = {"x86_64", "i686"};
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("lib.c", source, sizeof source - 1);
    /* --preserve-dates: else the headers of what is made later get a time stamp, and with it a code id, of their own */
    for (size_t i = 0; i < 2; i++) {
        const char *t = targets[i];
        fixture_runf("%s-w64-mingw32-gcc -g -O1 -shared -nostdlib -Wl,-e,0 -Wl,--build-id lib.c -o %s.dll", t, t);
        fixture_runf("%s-w64-mingw32-objcopy --preserve-dates --only-keep-debug %s.dll %s.debug", t, t, t);
        fixture_runf("%s-w64-mingw32-strip --preserve-dates --strip-debug %s.dll -o %s.stripped", t, t, t);
    }
    return 0;
}

static struct sl_object *open_built(const char *name, struct sl_mapping *mapping)
{
    char path[160];
    struct sl_object *object;
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    assert_int_equal(sl_map_file(path, mapping, NULL), SL_OK);
    assert_int_equal(sl_object_open(mapping->bytes, NULL, &object, NULL), SL_OK);
    return object;
}

static bool has_symbol(struct sl_object *object, const char *name, uint64_t *address)
{
    struct sl_arena arena = {0};
    struct sl_symbol *list;
    size_t count;
    bool found = false;
    assert_int_equal(sl_object_symbols(object, &arena, &list, &count, NULL), SL_OK);
    for (size_t i = 0; i < count && !found; i++) {
        found = sl_str_equal(list[i].name, sl_str(name));
        *address = list[i].address;
        assert_true(list[i].size > 0);
    }
    sl_arena_free(&arena);
    return found;
}

/* The chain at some address of `name`, as "inlined:4 exported:10". */
static bool has_chain(const struct sl_symcache *cache, const char *text)
{
    struct sl_symcache_cursor cursor;
    struct sl_buf out = {0};
    bool found = false;
    sl_symcache_first(cache, &cursor);
    while (!found && sl_symcache_next(cache, &cursor)) {
        struct sl_location chain[8];
        size_t n = sl_symcache_lookup(cache, cursor.address, chain, 8);
        sl_buf_clear(&out);
        for (size_t i = 0; i < n; i++) {
            struct sl_symcache_function f;
            assert_true(sl_symcache_function(cache, chain[i].function, &f));
            sl_buf_cstr(&out, i ? " " : "");
            sl_symcache_string(cache, f.name, &out);
            sl_buf_printf(&out, ":%u", chain[i].line);
        }
        found = sl_str_equal(sl_buf_view(&out), sl_str(text));
    }
    sl_buf_free(&out);
    return found;
}

TEST(dwarf_of_mingw_is_read)
{
    static const char *const chains[] = {"exported:9", "inlined:4 exported:10", "exported:11", "hidden:6"};
    static const char *const files[] = {"x86_64.dll", "i686.dll", "x86_64.debug", "i686.debug"};
    for (size_t i = 0; i < 4; i++) {
        struct sl_mapping mapping;
        struct sl_object *object = open_built(files[i], &mapping);
        const struct sl_object_info *info = sl_object_info(object);
        struct sl_symcache_options options = {.arch = info->arch};
        struct sl_buf out = {0};
        struct sl_symcache cache;
        assert_int_equal(info->kind, SL_KIND_LIB);
        assert_int_equal(info->arch, i % 2 ? SL_ARCH_X86 : SL_ARCH_X86_64);
        assert_true(info->features.has_debug_info && info->features.has_symbols);
        assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
        assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
        for (size_t j = 0; j < 4; j++)
            if (!has_chain(&cache, chains[j]))
                fail_msg("%s: no %s", files[i], chains[j]);
        sl_buf_free(&out);
        sl_object_close(object);
        sl_unmap(&mapping);
    }
}

TEST(debug_companions_of_mingw_match)
{
    for (size_t i = 0; i < 2; i++) {
        struct sl_mapping a, b;
        struct sl_object *image = open_built(i ? "i686.dll" : "x86_64.dll", &a);
        struct sl_object *companion = open_built(i ? "i686.debug" : "x86_64.debug", &b);
        const struct sl_object_info *x = sl_object_info(image), *y = sl_object_info(companion);
        assert_false(sl_debug_id_is_nil(&x->debug_id));
        assert_true(sl_debug_id_equal(&x->debug_id, &y->debug_id));
        assert_true(sl_str_equal(x->code_id, y->code_id));
        assert_int_equal(x->debug_file.size + y->debug_file.size, 0);
        assert_int_equal(x->features.has_unwind_info, i == 0);
        assert_false(y->features.has_unwind_info);
        sl_object_close(image);
        sl_object_close(companion);
        sl_unmap(&a);
        sl_unmap(&b);
    }
}

TEST(symbols_of_stripped_mingw_files_are_read)
{
    for (size_t i = 0; i < 2; i++) {
        struct sl_mapping mapping;
        struct sl_object *object = open_built(i ? "i686.stripped" : "x86_64.stripped", &mapping);
        const struct sl_object_info *info = sl_object_info(object);
        uint64_t by_export, by_symbol;
        assert_true(info->features.has_symbols && !info->features.has_debug_info);
        assert_int_equal(info->features.has_unwind_info, i == 0);
        assert_true(has_symbol(object, "exported", &by_export));
        assert_true(has_symbol(object, i ? "_exported" : "exported", &by_symbol));
        assert_int_equal(by_export, by_symbol);
        assert_true(has_symbol(object, i ? "_hidden" : "hidden", &by_symbol));
        assert_false(has_symbol(object, i ? "_sink" : "sink", &by_symbol));
        sl_object_close(object);
        sl_unmap(&mapping);
    }
}

TEST_FILE(.begin = build, .end = fixture_end);
