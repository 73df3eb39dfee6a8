/* Modules: their ids, their order, and which of several has an address. */
#include "writer.h"

static void expect_module(uint32_t platform, bool big_endian, struct sl_bytes codeview, const char *code_id,
                          const char *debug_id, const char *debug_file)
{
    char text[SL_DEBUG_ID_TEXT] = "";
    sl_buf_free(&writer.b);
    writer_begin(&writer, big_endian);
    put_system(&writer, AMD64, platform, 1, 0, 0, "");
    put_threads(&writer, NULL, 0);
    uint32_t at = here(&writer);
    sl_buf_add(&writer.b, codeview.data, codeview.size);
    uint32_t name = put_string(&writer, "/lib/m");
    put_modules(&writer, (struct wanted_module[]){{0x10000, 0x4000, 0xB1054D2A, name, (uint32_t)codeview.size, at}}, 1);
    expect_read(&writer);
    assert_int_equal(dump.crash.module_count, 1);
    const struct sl_crash_module *module = &dump.crash.modules[0];
    if (module->has_debug_id)
        sl_debug_id_format(&module->debug_id, text);
    assert_string_equal(text, debug_id);
    expect_text(module->code_id, code_id);
    expect_text(module->debug_file, debug_file);
}

static struct sl_bytes codeview_of(const char *signature, const uint8_t *rest, size_t size)
{
    static uint8_t bytes[128];
    memcpy(bytes, signature, 4);
    memcpy(bytes + 4, rest, size);
    return (struct sl_bytes){bytes, size + 4};
}

TEST(codeview_records_give_module_ids)
{
    uint8_t counting[64], zeros[16] = {0};
    for (uint8_t i = 0; i < sizeof counting; i++)
        counting[i] = i;
    struct sl_bytes elf = codeview_of("LEpB", counting, 24);
    expect_module(LINUX, false, elf, "000102030405060708090a0b0c0d0e0f1011121314151617",
                  "03020100-0504-0706-0809-0a0b0c0d0e0f", "/lib/m");
    elf.size = 12;
    expect_module(LINUX, false, elf, "0001020304050607", "03020100-0504-0706-0000-000000000000", "/lib/m");
    elf = codeview_of("BpEL", counting, 16);
    expect_module(LINUX, true, elf, "000102030405060708090a0b0c0d0e0f", "00010203-0405-0607-0809-0a0b0c0d0e0f",
                  "/lib/m");
    expect_module(LINUX, false, codeview_of("LEpB", zeros, 16), NULL, "", "/lib/m");
    memcpy(counting + 16, "\1\0\0\0a.pdb\0junk", 15);
    struct sl_bytes pdb70 = codeview_of("RSDS", counting, 31);
    expect_module(WINDOWS, false, pdb70, "b1054d2a4000", "03020100-0504-0706-0809-0a0b0c0d0e0f-1", "a.pdb");
    expect_module(MACOS, false, pdb70,
                  "03020100050407060809"
                  "0a0b0c0d0e0f",
                  "03020100-0504-0706-0809-0a0b0c0d0e0f-1", "a.pdb");
    expect_module(LINUX, false, pdb70, NULL, "03020100-0504-0706-0809-0a0b0c0d0e0f-1", "a.pdb");
    memset(counting, 0, 16);
    expect_module(WINDOWS, false, codeview_of("RSDS", counting, 31), "b1054d2a4000", "", "a.pdb");
    const uint8_t pdb20[] = {0, 0, 0, 0, 0xC3, 0x89, 0x8E, 0x41, 1, 0, 0, 0, 'b', '.', 'p', 'd', 'b', 0};
    expect_module(WINDOWS, false, codeview_of("NB10", pdb20, sizeof pdb20), "b1054d2a4000", "418E89C3-1", "b.pdb");
    expect_module(WINDOWS, false, (struct sl_bytes){NULL, 0}, "b1054d2a4000", "", NULL);
    expect_module(LINUX, false, (struct sl_bytes){NULL, 0}, NULL, "", NULL);
    expect_module(WINDOWS, false, codeview_of("WHAT", counting, 16), NULL, "", NULL);
}

TEST(modules_are_sorted_by_address)
{
    begin(AMD64, WINDOWS, false);
    put_threads(&writer, NULL, 0);
    uint32_t a = put_string(&writer, "a"), b = put_string(&writer, "b"), bad = here(&writer);
    put_u32(&writer, 3); /* an odd number of bytes */
    const struct wanted_module modules[] = {
        {0x30000, 0x1000, 0, b},
        {0x10000, 0x1000, 0, a},
        {0x10FFF, 0x1000, 0, b},
        {0x11000, 0x1000, 0, a},
        {0x50000, 0, 0, a},
        {UINT64_MAX - 5, 0x1000, 0, a},
        {0x60000, 0x1000, 0, bad},
        {0x70000, 0x1000, 0, 0x7FFFFFFF},
        {0x80000, 0x1000, 0, a, 8, 0x7FFFFFFF},
        {0x90000, 0x1000, 0, a, 0, 0x7FFFFFFF},
    };
    put_modules(&writer, modules, 10);
    expect_read(&writer);
    assert_int_equal(dump.crash.module_count, 5);
    const uint64_t wanted[] = {0x10000, 0x10FFF, 0x11000, 0x30000, 0x90000};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(dump.crash.modules[i].address, wanted[i]);
    assert_int_equal(dump.main_module->address, 0x30000);
    assert_true(sl_minidump_drop_overlaps(&dump, &arena));
    assert_int_equal(dump.crash.module_count, 4);
    assert_int_equal(dump.crash.modules[1].address, 0x11000);
    assert_int_equal(dump.main_module->address, 0x30000);
}

static void expect_module_at(uint64_t address, size_t list_index)
{
    const struct sl_crash_module *module = sl_minidump_module_at(&dump, address);
    assert_int_equal(module ? module->list_index : SIZE_MAX, list_index);
}

TEST(address_in_several_modules_goes_to_the_smallest_with_an_id)
{
    enum { NONE = SIZE_MAX };
    begin(AMD64, LINUX, false);
    put_threads(&writer, NULL, 0);
    uint32_t name = put_string(&writer, "a"), zeros = here(&writer);
    sl_buf_str(&writer.b, SL_STR("LEpB"));
    sl_buf_fill(&writer.b, 0, 20);
    uint32_t id = here(&writer);
    sl_buf_str(&writer.b, SL_STR("LEpBthe twenty bytes of."));
    const struct wanted_module modules[] = {
        {0x30000, 0x1000, 0, name},             /* 0: in the next two, without an id */
        {0x20000, 0x20000, 0, name, 24, id},    /* 1 */
        {0x10000, 0x50000, 0, name, 24, id},    /* 2 */
        {0x28000, 0x1000, 0, name, 24, id},     /* 3: in 1 */
        {0x28000, 0x1000, 0, name, 24, id},     /* 4: the same again */
        {0x70000, 0x10000, 0, name, 24, zeros}, /* 5: has no id */
        {0x78000, 0x1000, 0, name},             /* 6: neither, in 5 */
        {0x7F000, 0x2000, 0, name, 24, id},     /* 7: over the end of 5 */
    };
    put_modules(&writer, modules, 8);
    expect_read(&writer);
    assert_int_equal(dump.crash.module_count, 8);
    expect_module_at(0xFFFF, NONE);
    expect_module_at(0x10000, 2);
    expect_module_at(0x1FFFF, 2);
    expect_module_at(0x20000, 1);
    expect_module_at(0x27FFF, 1);
    expect_module_at(0x28000, 3);
    expect_module_at(0x28FFF, 3);
    expect_module_at(0x29000, 1);
    expect_module_at(0x30800, 1);
    expect_module_at(0x3FFFF, 1);
    expect_module_at(0x40000, 2);
    expect_module_at(0x60000, NONE);
    expect_module_at(0x77FFF, 5);
    expect_module_at(0x78000, 6);
    expect_module_at(0x79000, 5);
    expect_module_at(0x7F000, 7);
    expect_module_at(0x80FFF, 7);
    expect_module_at(0x81000, NONE);
    assert_int_equal(dump.main_module->list_index, 0);
    assert_true(sl_minidump_drop_overlaps(&dump, &arena));
    assert_int_equal(dump.crash.module_count, 2);
    expect_module_at(0x28000, 2);
    expect_module_at(0x78000, 5);
    expect_module_at(0x80FFF, NONE);
    assert_null(dump.main_module);
}

TEST(unloaded_modules_are_read)
{
    begin(AMD64, WINDOWS, false);
    put_threads(&writer, NULL, 0);
    uint32_t name = put_string(&writer, "gone.dll");
    stream_begin(&writer, 14);
    put_u32(&writer, 12);
    put_u32(&writer, 32); /* larger than it must be */
    put_u32(&writer, 1);
    put_u64(&writer, 0x10000);
    put_u32(&writer, 0x2000);
    put_u64(&writer, 0);
    put_u32(&writer, name);
    put_u64(&writer, 0);
    stream_end(&writer);
    expect_read(&writer);
    assert_int_equal(dump.unloaded_count, 1);
    assert_int_equal(dump.unloaded[0].address, 0x10000);
    assert_int_equal(dump.unloaded[0].size, 0x2000);
    expect_text(dump.unloaded[0].name, "gone.dll");
}

TEST_FILE(.teardown = forget);
