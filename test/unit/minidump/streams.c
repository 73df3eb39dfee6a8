/* Header, directory and streams: what is read of them, what is passed over, and what ends the reading. */
#include "writer.h"

/* ---- header and directory ---- */

TEST(invalid_headers_report_the_fault)
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

TEST(only_the_low_half_of_the_version_counts)
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

TEST(last_stream_of_a_type_wins)
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

TEST(padded_and_truncated_lists_are_read)
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

TEST(both_byte_orders_are_read)
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

TEST(system_name_version_and_build_are_read)
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

/* ---- beside the crash ---- */

static void put_fixed_text(const char *text)
{
    for (size_t i = 0; i < 128; i++)
        put(&writer, i < strlen(text) ? (uint8_t)text[i] : 0, 2);
}

TEST(assertion_stream_is_read)
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

TEST(crashpad_annotations_are_read)
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

TEST(process_and_mappings_are_read)
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

TEST(macos_crash_messages_are_read)
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

TEST(stacks_sent_by_the_client_are_read)
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
    assert_string_equal(error.message, "stream of client stacks: the header is cut off; is the dump truncated?");
    assert_int_equal(read_client(version, 4, "", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "stream of client stacks: version 2 is not supported, only 1");
    assert_int_equal(read_client(good, 12, "honks", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "stream of client stacks: its size differs from what its header says; is the dump truncated?");
    assert_int_equal(read_client(too_many, 12, "honk", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message, "stream of client stacks: the frames of thread 1234 are out of bounds");
    assert_int_equal(read_client(beyond, 12, "honk", &client, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "stream of client stacks: the symbol of instruction address 17 is out of bounds");
    assert_int_equal(client.count, 0);
}

/* ---- what is shared ---- */

TEST(shared_data_is_read_within_the_work_budget)
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
