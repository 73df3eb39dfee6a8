/* Header, directory and streams: what is read of them, what is passed over, and what ends the reading. */
#include "writer.h"

enum { AMD64 = 9, ARM64 = 12, LINUX = 0x8201, MACOS = 0x8101, WINDOWS = 2 };

static void begin(uint16_t cpu, uint32_t platform, bool big_endian)
{
    sl_buf_free(&writer.b);
    writer_begin(&writer, big_endian);
    put_system(&writer, cpu, platform, 10, 0, 14393, "");
}

/* Registers of amd64: the number of each in its value. */
static uint32_t put_amd64_context(struct writer *w, uint64_t rsp)
{
    uint32_t at = here(w);
    sl_buf_fill(&w->b, 0, 1232);
    put_at(w, at + 48, 0x10000B, 4);
    for (unsigned i = 0; i < 17; i++)
        put_at(w, at + 120 + 8 * i, i == 4 ? rsp : 0x100 + i, 8);
    return at;
}

/* ---- header and directory ---- */

TEST(test_what_is_no_dump)
{
    const uint8_t zeros[32] = {0};
    expect_failure((struct sl_bytes){NULL, 0}, "Missing minidump header (empty minidump?)");
    expect_failure((struct sl_bytes){(const uint8_t *)"MDMP", 4}, "Missing minidump header (empty minidump?)");
    expect_failure((struct sl_bytes){zeros, 32}, "Header mismatch");
    begin(AMD64, LINUX, false);
    writer.version = 0xA794;
    expect_failure(writer_end(&writer), "Minidump version mismatch");
    begin(AMD64, LINUX, false);
    struct sl_bytes bytes = writer_end(&writer);
    expect_failure((struct sl_bytes){bytes.data, bytes.size - 1},
                   "Missing stream directory (heavily truncated minidump?)");
    sl_buf_free(&writer.b);
    writer_begin(&writer, false);
    expect_failure(writer_end(&writer), "The system information stream was not found");
    begin(AMD64, LINUX, false);
    expect_failure(writer_end(&writer), "The thread list stream was not found");
}

TEST(test_the_low_half_of_the_version_counts)
{
    begin(AMD64, LINUX, false);
    writer.version = 0xA0F1A793;
    put_threads(&writer, NULL, 0);
    expect_read(&writer);
    assert_int_equal(dump.crash.timestamp, 1521713273);
    assert_false(dump.crash.crashed);
    expect_text(dump.crash.reason, "");
    expect_text(dump.crash.assertion, "");
}

TEST(test_of_streams_of_one_type_the_last_counts)
{
    begin(AMD64, LINUX, false);
    put_threads(&writer, (struct wanted_thread[]){{.id = 1}, {.id = 2}}, 2);
    put_threads(&writer, (struct wanted_thread[]){{.id = 3}}, 1);
    expect_read(&writer);
    assert_int_equal(dump.crash.thread_count, 1);
    assert_int_equal(dump.crash.threads[0].id, 3);
    assert_string_equal(sl_minidump_stream_name(dump.streams[1].type), "ThreadListStream");
    assert_null(sl_minidump_stream_name(4711));
}

TEST(test_lists_may_have_padding_and_may_be_cut)
{
    begin(AMD64, LINUX, false);
    stream_begin(&writer, 3);
    put_u32(&writer, 2);
    put_u32(&writer, 0); /* padding */
    for (uint32_t id = 7; id < 9; id++) {
        put_u32(&writer, id);
        sl_buf_fill(&writer.b, 0, 44);
    }
    stream_end(&writer);
    expect_read(&writer);
    assert_int_equal(dump.crash.thread_count, 2);
    assert_int_equal(dump.crash.threads[1].id, 8);
    begin(AMD64, LINUX, false);
    put_threads(&writer, (struct wanted_thread[]){{.id = 1}, {.id = 2}}, 2);
    writer.streams[1].size -= 8;
    expect_read(&writer);
    assert_int_equal(dump.crash.thread_count, 1);
}

TEST(test_both_byte_orders_say_the_same)
{
    for (int big = 0; big < 2; big++) {
        begin(AMD64, WINDOWS, big);
        uint32_t context = put_amd64_context(&writer, 0x5000), stack = here(&writer);
        put_u64(&writer, 0x1122334455667788);
        put_threads(&writer, (struct wanted_thread[]){{9, 0x5000, 8, stack, 1232, context}}, 1);
        uint32_t name = put_string(&writer, "C:\\a.exe");
        put_modules(&writer, (struct wanted_module[]){{0x10000, 0x1000, 0xB1054D2A, name}}, 1);
        expect_read(&writer);
        assert_int_equal(dump.big_endian, big);
        expect_text(dump.crash.modules[0].code_file, "C:\\a.exe");
        expect_text(dump.crash.modules[0].code_id, "b1054d2a1000");
        struct sl_registers registers;
        struct sl_walk_stack region;
        uint64_t word;
        sl_minidump_start(&dump, 0, &registers, &region);
        assert_int_equal(registers.value[7], 0x5000); /* rsp */
        assert_int_equal(registers.value[16], 0x110); /* rip */
        assert_int_equal(registers.value[1], 0x102);  /* rdx */
        assert_int_equal(region.address, 0x5000);
        assert_int_equal(region.bytes.size, 8);
        assert_false(region.read(region.arg, 0x5000, 8, &word)); /* in no list of memory */
        assert_int_equal(sl_minidump_target(&dump, 0).big_endian, big);
        assert_true(sl_minidump_target(&dump, 0).is_windows);
    }
}

/* ---- system ---- */

static void expect_system(uint32_t platform, uint32_t major, const char *service_pack, const char *name,
                          const char *version, const char *build)
{
    sl_buf_free(&writer.b);
    writer_begin(&writer, false);
    put_system(&writer, AMD64, platform, major, 0, 0, service_pack);
    put_threads(&writer, NULL, 0);
    expect_read(&writer);
    expect_text(dump.crash.system.os_name, name);
    expect_text(dump.crash.system.os_version, version);
    expect_text(dump.crash.system.os_build, build);
    expect_text(dump.crash.system.device_model, "");
    assert_int_equal(dump.crash.system.arch, SL_ARCH_X86_64);
}

TEST(test_systems)
{
    const char *uname = "Linux 4.9.60-linuxkit-aufs #1 SMP Mon Nov 6 16:00:12 UTC 2017 x86_64";
    expect_system(LINUX, 0, uname, "Linux", "4.9.60-linuxkit-aufs", "#1 SMP Mon Nov 6 16:00:12 UTC 2017");
    expect_system(LINUX, 0, "Linux 6.1 #1 SMP x86_64 Linux/GNU", "Linux", "6.1", "#1 SMP");
    expect_system(LINUX, 0, "Linux 6.1 #1 SMP x86_64 GNU/Linux", "Linux", "6.1", "#1 SMP x86_64");
    expect_system(LINUX, 0, "Linux 0.0.0 x y", "Linux", "0.0.0", "Linux 0.0.0 x y");
    expect_system(LINUX, 0, "Linux", "Linux", "0.0.0", "Linux");
    expect_system(LINUX, 5, uname, "Linux", "5.0.0", uname);
    expect_system(0x8203, 0, "a b c d", "Android", "0.0.0", "a b c d");
    expect_system(WINDOWS, 6, "  Service Pack 1 ", "Windows", "6.0.0", "Service Pack 1");
    expect_system(4711, 1, "", "", "1.0.0", "");
}

/* ---- modules ---- */

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

TEST(test_ids_of_modules)
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

TEST(test_modules_are_in_order)
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

static void expect_module_at(uint64_t address, size_t place)
{
    const struct sl_crash_module *module = sl_minidump_module_at(&dump, address);
    assert_int_equal(module ? module->place : SIZE_MAX, place);
}

TEST(test_an_address_in_several_modules)
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
    assert_int_equal(dump.main_module->place, 0);
    assert_true(sl_minidump_drop_overlaps(&dump, &arena));
    assert_int_equal(dump.crash.module_count, 2);
    expect_module_at(0x28000, 2);
    expect_module_at(0x78000, 5);
    expect_module_at(0x80FFF, NONE);
    assert_null(dump.main_module);
}

TEST(test_unloaded_modules)
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

/* ---- threads ---- */

static void put_breakpad(uint32_t validity, uint32_t writer_id, uint32_t requesting)
{
    stream_begin(&writer, 0x47670001);
    put_u32(&writer, validity);
    put_u32(&writer, writer_id);
    put_u32(&writer, requesting);
    stream_end(&writer);
}

/* "yes no no": for each thread; an asterisk marks one that is walked. */
static void expect_requesting(const char *wanted)
{
    char text[64] = "";
    static const char *const words[] = {"unknown", "no", "yes"};
    for (size_t i = 0; i < dump.crash.thread_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s", i ? " " : "",
                 words[dump.crash.threads[i].requesting], dump.threads[i].is_walked ? "*" : "");
    assert_string_equal(text, wanted);
}

static void put_three_threads(void)
{
    begin(AMD64, LINUX, false);
    uint32_t context = put_amd64_context(&writer, 0x5000), other = put_amd64_context(&writer, 0x5000);
    put_threads(&writer, (struct wanted_thread[]){{1, 0, 0, 0, 1232, context}, {2, 0, 0, 0, 1232, other}, {3}}, 3);
}

TEST(test_which_thread_crashed)
{
    put_three_threads();
    expect_read(&writer);
    expect_requesting("unknown* unknown* unknown");
    put_three_threads();
    put_breakpad(2, 1, 2);
    expect_read(&writer);
    expect_requesting("no* yes* no");
    put_three_threads();
    put_breakpad(3, 1, 2);
    expect_read(&writer);
    expect_requesting("no yes* no");
    assert_int_equal(dump.crash.threads[0].register_count, 0);
    put_three_threads();
    put_breakpad(3, 2, 2);
    expect_read(&writer);
    expect_requesting("unknown* unknown unknown");
    put_three_threads();
    put_breakpad(2, 1, 2);
    uint32_t context = put_amd64_context(&writer, 0x7000);
    put_exception(&writer, &(struct wanted_exception){3, 11, .context_size = 1232, .context_rva = context});
    expect_read(&writer);
    expect_requesting("no* no* yes*");
    put_three_threads();
    put_exception(&writer, &(struct wanted_exception){4711, 11});
    expect_read(&writer);
    expect_requesting("unknown* unknown* unknown");
    assert_true(dump.crash.crashed);
}

TEST(test_registers_have_their_names)
{
    begin(AMD64, LINUX, false);
    uint32_t context = put_amd64_context(&writer, 0x5000);
    put_threads(&writer, (struct wanted_thread[]){{1, 0, 0, 0, 1232, context}}, 1);
    expect_read(&writer);
    const struct sl_crash_thread *thread = &dump.crash.threads[0];
    assert_int_equal(thread->register_count, 17);
    expect_text(thread->registers[0].name, "r10");
    assert_int_equal(thread->registers[0].value, 0x10A);
    expect_text(thread->registers[16].name, "rsp");
    assert_int_equal(thread->registers[16].value, 0x5000);
    expect_text(thread->registers[14].name, "rip");
    assert_int_equal(thread->registers[14].value, 0x110);
}

TEST(test_a_context_of_another_processor_is_none)
{
    begin(ARM64, LINUX, false);
    uint32_t context = put_amd64_context(&writer, 0x5000);
    put_threads(&writer, (struct wanted_thread[]){{1, 0, 0, 0, 1232, context}}, 1);
    expect_read(&writer);
    expect_requesting("unknown");
    begin(AMD64, LINUX, false);
    context = put_amd64_context(&writer, 0x5000);
    put_threads(&writer, (struct wanted_thread[]){{1, 0, 0, 0, 1231, context}}, 1);
    expect_read(&writer);
    expect_requesting("unknown");
}

TEST(test_each_processor_has_its_context)
{
    static const struct {
        uint16_t cpu, size, flags_size;
        uint64_t bit;
        unsigned pc_at, pc_size, pc_number, registers;
    } cpus[] = {
        {0, 716, 4, 0x10000, 184, 4, 8, 10},          {10, 716, 4, 0x10000, 184, 4, 8, 10},
        {5, 368, 4, 0x40000000, 64, 4, 15, 16},       {12, 912, 4, 0x400000, 264, 8, 32, 33},
        {0x8003, 796, 8, 0x80000000, 264, 8, 32, 33}, {1, 600, 4, 0x40000, 312, 8, 34, 13},
        {0x8004, 600, 4, 0x80000, 312, 8, 34, 13},    {3, 1004, 4, 0x20000000, 4, 4, 63, 40},
        {0x8002, 1160, 8, 0x1000000, 8, 8, 63, 39},   {0x8001, 584, 4, 0x10000000, 272, 8, 63, 38},
        {0x8005, 136, 4, 0x800000, 8, 4, 32, 32},     {0x8006, 264, 4, 0x8000000, 8, 8, 32, 32},
    };
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        begin(cpus[i].cpu, LINUX, false);
        uint32_t context = here(&writer);
        sl_buf_fill(&writer.b, 0, cpus[i].size);
        put_at(&writer, context, cpus[i].bit, cpus[i].flags_size);
        put_at(&writer, context + cpus[i].pc_at, 0x1234, cpus[i].pc_size);
        put_threads(&writer, (struct wanted_thread[]){{1, 0, 0, 0, cpus[i].size, context}}, 1);
        expect_read(&writer);
        struct sl_registers registers;
        struct sl_walk_stack stack;
        assert_true(dump.threads[0].is_walked);
        assert_int_equal(dump.crash.threads[0].register_count, cpus[i].registers);
        sl_minidump_start(&dump, 0, &registers, &stack);
        assert_int_equal(registers.value[cpus[i].pc_number], 0x1234);
    }
}

TEST(test_names_of_threads)
{
    put_three_threads();
    uint32_t a = put_string(&writer, "main"), b = put_string(&writer, "worker");
    stream_begin(&writer, 24);
    put_u32(&writer, 4);
    const struct {
        uint32_t id, rva;
    } names[] = {{3, a}, {1, a}, {1, b}, {2, 0x7FFFFFF0}};
    for (size_t i = 0; i < 4; i++) {
        put_u32(&writer, names[i].id);
        put_u64(&writer, names[i].rva);
    }
    stream_end(&writer);
    expect_read(&writer);
    expect_text(dump.crash.threads[0].name, "worker");
    expect_text(dump.crash.threads[1].name, NULL);
    expect_text(dump.crash.threads[2].name, "main");
}

/* ---- memory ---- */

static void expect_stack(uint64_t address, size_t size)
{
    struct sl_registers registers;
    struct sl_walk_stack stack;
    sl_minidump_start(&dump, 0, &registers, &stack);
    assert_int_equal(stack.bytes.size, size);
    if (size)
        assert_int_equal(stack.address, address);
}

static void put_one_thread(uint64_t sp, uint64_t stack, uint32_t size, uint32_t rva)
{
    uint32_t context = put_amd64_context(&writer, sp);
    put_threads(&writer, (struct wanted_thread[]){{1, stack, size, rva, 1232, context}}, 1);
}

static void put_memory_list(const uint64_t *addresses, uint32_t count, uint32_t size, uint32_t rva)
{
    stream_begin(&writer, 5);
    put_u32(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        put_u64(&writer, addresses[i]);
        put_location(&writer, size, rva);
    }
    stream_end(&writer);
}

TEST(test_where_a_stack_is)
{
    const uint64_t regions[] = {0x9000, 0x5000};
    begin(AMD64, LINUX, false);
    put_one_thread(0x5008, 0x5000, 0, 0); /* none of its own */
    put_memory_list(regions, 2, 32, 8);
    expect_read(&writer);
    expect_stack(0x5000, 32);
    begin(AMD64, LINUX, false);
    put_one_thread(0x9008, 0x5000, 16, 16); /* the stack pointer is in another region */
    put_memory_list(regions, 2, 32, 8);
    expect_read(&writer);
    expect_stack(0x9000, 32);
    begin(AMD64, LINUX, false);
    put_one_thread(0xA000, 0x5000, 16, 16); /* and in none */
    put_memory_list(regions, 2, 32, 8);
    expect_read(&writer);
    expect_stack(0x5000, 16);
    uint64_t word;
    struct sl_registers registers;
    struct sl_walk_stack stack;
    sl_minidump_start(&dump, 0, &registers, &stack);
    assert_true(stack.read(stack.arg, 0x9018, 8, &word));
    assert_false(stack.read(stack.arg, 0x9019, 8, &word));
    begin(AMD64, LINUX, false);
    put_one_thread(0xA000, 0x4000, 0, 0);
    expect_read(&writer);
    expect_stack(0, 0);
}

TEST(test_long_lists_of_memory_are_taken_whole_or_not)
{
    const uint64_t regions[] = {0x7000};
    for (int bad = 0; bad < 2; bad++) {
        begin(AMD64, LINUX, false);
        put_threads(&writer, NULL, 0);
        put_memory_list(regions, 1, 32, 8);
        stream_begin(&writer, 9);
        put_u64(&writer, 2);
        put_u64(&writer, 8);
        put_u64(&writer, 0x6000);
        put_u64(&writer, 16);
        put_u64(&writer, 0x5000);
        put_u64(&writer, bad ? 0x7FFFFFFFFFFFFFFF : 8);
        stream_end(&writer);
        expect_read(&writer);
        assert_int_equal(dump.memory_count, bad ? 1 : 2);
        assert_int_equal(dump.memory[0].address, bad ? 0x7000 : 0x5000);
        if (!bad)
            assert_ptr_equal(dump.memory[0].bytes.data, dump.bytes.data + 24); /* behind the first */
    }
}

TEST(test_regions_do_not_overlap)
{
    const uint64_t regions[] = {0x5010, 0x5000, 0x5020, UINT64_MAX - 3};
    begin(AMD64, LINUX, false);
    put_threads(&writer, NULL, 0);
    put_memory_list(regions, 4, 32, 8);
    expect_read(&writer);
    assert_int_equal(dump.memory_count, 2);
    assert_int_equal(dump.memory[0].address, 0x5000);
    assert_int_equal(dump.memory[1].address, 0x5020);
}

/* ---- beside the crash ---- */

static void put_fixed_text(const char *text)
{
    for (size_t i = 0; i < 128; i++)
        put(&writer, i < strlen(text) ? (uint8_t)text[i] : 0, 2);
}

TEST(test_assertions)
{
    begin(AMD64, WINDOWS, false);
    put_threads(&writer, NULL, 0);
    stream_begin(&writer, 0x47670002);
    put_fixed_text("size < capacity");
    put_fixed_text("append");
    put_fixed_text("list.cpp");
    put_u32(&writer, 17);
    put_u32(&writer, 1);
    stream_end(&writer);
    expect_read(&writer);
    expect_text(dump.crash.assertion, "size < capacity (append at list.cpp:17)");
}

TEST(test_crashpad)
{
    begin(ARM64, MACOS, false);
    put_threads(&writer, NULL, 0);
    uint32_t module = put_string(&writer, "/lib/m");
    put_modules(&writer, (struct wanted_module[]){{0x10000, 0x1000, 0, module}}, 1);
    uint32_t key = put_string8(&writer, "channel"), value = put_string8(&writer, "stable"), simple = here(&writer);
    put_u32(&writer, 1);
    put_u32(&writer, key);
    put_u32(&writer, value);
    uint32_t objects = here(&writer);
    put_u32(&writer, 2);
    for (uint32_t type = 1; type < 3; type++) { /* the second is no string */
        put_u32(&writer, key);
        put_u32(&writer, type);
        put_u32(&writer, value);
    }
    uint32_t info = here(&writer);
    put_u32(&writer, 1);
    put_location(&writer, 0, 0);
    put_location(&writer, 0, 0);
    put_location(&writer, 28, objects);
    uint32_t modules = here(&writer);
    put_u32(&writer, 1);
    put_u32(&writer, 0);
    put_location(&writer, 28, info);
    stream_begin(&writer, 0x43500001);
    put_u32(&writer, 1);
    sl_buf_fill(&writer.b, 0, 32);
    put_location(&writer, 12, simple);
    put_location(&writer, 16, modules);
    put_u32(&writer, 0);
    put_u64(&writer, 0xFFFF800000000000);
    stream_end(&writer);
    expect_read(&writer);
    assert_int_equal(dump.address_mask, 0x7FFFFFFFFFFF);
    assert_int_equal(sl_minidump_target(&dump, 0).address_mask, 0x7FFFFFFFFFFF);
    assert_int_equal(dump.annotation_count, 2);
    expect_text(dump.annotations[0].module, NULL);
    expect_text(dump.annotations[0].name, "channel");
    expect_text(dump.annotations[0].value, "stable");
    expect_text(dump.annotations[1].module, "/lib/m");
    expect_text(dump.annotations[1].value, "stable");
}

TEST(test_process_and_mappings)
{
    const char *maps = "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/with blank\n"
                       "7fff0000-7fff1000 rw-p 00000000 00:00 0 \n"
                       "nonsense\n"
                       "2000-1000 r--p 00000000 00:00 0";
    begin(AMD64, LINUX, false);
    put_threads(&writer, NULL, 0);
    stream_begin(&writer, 0x47670009);
    sl_buf_cstr(&writer.b, maps);
    stream_end(&writer);
    stream_begin(&writer, 15);
    put_u32(&writer, 24);
    put_u32(&writer, 1);
    put_u32(&writer, 4711);
    sl_buf_fill(&writer.b, 0, 12);
    stream_end(&writer);
    stream_begin(&writer, 12);
    put_u32(&writer, 16);
    put_u32(&writer, 32);
    put_u32(&writer, 2);
    sl_buf_fill(&writer.b, 0, 4 + 64);
    stream_end(&writer);
    expect_read(&writer);
    assert_int_equal(dump.mapping_count, 2);
    assert_int_equal(dump.mappings[0].begin, 0x400000);
    assert_int_equal(dump.mappings[0].end, 0x452000);
    expect_text(dump.mappings[0].access, "r-xp");
    expect_text(dump.mappings[0].path, "/usr/bin/with blank");
    expect_text(dump.mappings[1].path, "");
    assert_true(dump.has_process_id);
    assert_int_equal(dump.process_id, 4711);
    assert_false(dump.has_create_time);
    assert_true(dump.handles.known);
    assert_int_equal(dump.handles.count, 2);
    assert_false(dump.memory_info.known);
}

TEST(test_messages_of_macos)
{
    static const char texts[] = "/usr/lib/libc\0abort() called\0sig\0trace\0more";
    begin(AMD64, MACOS, false);
    put_threads(&writer, NULL, 0);
    uint32_t record = here(&writer);
    put_u64(&writer, 0);
    put_u64(&writer, 5);
    sl_buf_fill(&writer.b, 0, 24);
    sl_buf_add(&writer.b, texts, sizeof texts);
    uint32_t size = here(&writer) - record;
    stream_begin(&writer, 0x4D7A0001);
    put_u32(&writer, 0);
    put_u32(&writer, 1);
    put_u32(&writer, 40);
    put_location(&writer, size, record);
    stream_end(&writer);
    expect_read(&writer);
    assert_int_equal(dump.crash_info_count, 2);
    expect_text(dump.crash_info[0], "abort() called");
    expect_text(dump.crash_info[1], "more");
}

/* ---- stacks that the client walked ---- */

static enum sl_code read_client(const uint32_t *words, size_t count, const char *symbols,
                                struct sl_minidump_client *client, struct sl_error *error)
{
    begin(AMD64, LINUX, false);
    put_threads(&writer, NULL, 0);
    stream_begin(&writer, 0x53790001);
    for (size_t i = 0; i < count; i++)
        put_u32(&writer, words[i]);
    sl_buf_cstr(&writer.b, symbols);
    stream_end(&writer);
    expect_read(&writer);
    return sl_minidump_client_stacks(&dump, &arena, client, error);
}

TEST(test_stacks_of_the_client)
{
    const uint32_t good[] = {1, 1, 1, 4, /**/ 1234, 0, 1, 0, /**/ 0xFFFF7001, 0xF, 0, 4};
    const uint32_t too_many[] = {1, 1, 1, 4, /**/ 1234, 0, 2, 0, /**/ 1, 0, 0, 4};
    const uint32_t beyond[] = {1, 1, 1, 4, /**/ 1234, 0, 1, 0, /**/ 17, 0, 1, 4};
    const uint32_t version[] = {2, 0, 0, 0};
    struct sl_minidump_client client;
    struct sl_error error;
    struct sl_crash_frame *frames;
    size_t count;
    assert_int_equal(read_client(good, 12, "honk", &client, &error), SL_OK);
    assert_true(sl_minidump_client_frames(&client, 1234, &arena, &frames, &count));
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].address, 0xFFFFF7001);
    expect_text(frames[0].function, "honk");
    assert_false(sl_minidump_client_frames(&client, 1235, &arena, &frames, &count));
    assert_int_equal(count, 0);
    assert_int_equal(read_client(good, 3, "", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "header is too small");
    assert_int_equal(read_client(version, 4, "", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "wrong or outdated version");
    assert_int_equal(read_client(good, 12, "honks", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "incorrect extension length");
    assert_int_equal(read_client(too_many, 12, "honk", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "frame index out of bounds for thread 1234");
    assert_int_equal(read_client(beyond, 12, "honk", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "symbol index out of bounds for instruction address 17");
    assert_int_equal(client.count, 0);
}

/* ---- what is shared ---- */

TEST(test_what_all_share_is_read_as_often_as_the_file_is_worth)
{
    enum { MODULES = 2000, NAME = 20000 };
    static struct wanted_module modules[MODULES];
    begin(AMD64, WINDOWS, false);
    put_threads(&writer, NULL, 0);
    uint32_t name = here(&writer);
    put_u32(&writer, 2 * NAME);
    for (size_t i = 0; i < NAME; i++)
        put(&writer, 'n', 2);
    for (size_t i = 0; i < MODULES; i++)
        modules[i] = (struct wanted_module){0x10000 * (i + 1), 0x1000, 0, name};
    put_modules(&writer, modules, MODULES);
    expect_read(&writer);
    assert_in_range(dump.crash.module_count, 1, 20);
    assert_in_range(arena.used, 1, 64 * writer.b.size);
}

TEST_FILE(.teardown = forget);
