/* Threads, their registers, and the memory that their stacks are in. */
#include "writer.h"

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

TEST(crashed_thread_is_found)
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

TEST(registers_have_their_names)
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

TEST(context_of_another_processor_is_ignored)
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

TEST(contexts_of_every_processor_are_read)
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

TEST(thread_names_are_read)
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

TEST(stack_memory_is_found)
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

TEST(malformed_memory64_list_is_ignored)
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

TEST(memory_regions_do_not_overlap)
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

TEST_FILE(.teardown = forget);
