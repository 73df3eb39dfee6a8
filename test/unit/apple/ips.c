/* JSON reports, with and without a header, and the texts around them. */
#include "crash.h"

#define HEADER                                                                                                         \
    "{\"app_name\":\"Demo\",\"timestamp\":\"2021-11-24 16:54:53.00 +0100\",\"bug_type\":\"309\","                      \
    "\"os_version\":\"macOS 12.0.1 (21A559)\",\"incident_id\":\"5C32DF84-31A0-43E7-87D0-239F7F594940\"}\n"

#define BODY                                                                                                           \
    "{\"captureTime\":\"2021-11-24 16:54:52.1234 +0100\",\"osVersion\":{\"train\":\"macOS 12.0.1\",\"build\":"         \
    "\"21A559\"},\"modelCode\":\"MacBookPro18,3\",\n"                                                                  \
    " \"cpuType\":\"ARM-64\",\"procName\":\"Demo\",\"exception\":{\"type\":\"EXC_BAD_ACCESS\",\"signal\":\"SIGSEGV\"," \
    "\"codes\":\"0x0000000000000001, 0x0000000000000000\",\n"                                                          \
    " \"subtype\":\"KERN_INVALID_ADDRESS at 0x0000000000000000\"},\"faultingThread\":0,\n"                             \
    " \"threads\":[{\"triggered\":true,\"id\":4711,\"queue\":\"com.apple.main-thread\",\"threadState\":{\"flavor\":"   \
    "\"ARM_THREAD_STATE64\",\n"                                                                                        \
    "   \"x\":[{\"value\":18446744073709551615}],\"pc\":{\"value\":4294983536},\"cpsr\":{\"value\":1610616832}},\n"    \
    "   \"frames\":[{\"imageOffset\":16240,\"imageIndex\":0,\"symbol\":\"main\",\"symbolLocation\":40},"               \
    "{\"imageOffset\":21480,\"imageIndex\":1,\"symbol\":\"start\"}]}],\n"                                              \
    " \"usedImages\":[{\"source\":\"P\",\"arch\":\"arm64\",\"base\":4294967296,\"size\":16384,"                        \
    "\"uuid\":\"2d903291-397d-3d14-bfca-52c7fb8c5e00\",\"path\":\"/Apps/Demo\",\"name\":\"Demo\"},\n"                  \
    "   {\"source\":\"A\",\"base\":0,\"size\":0,\"uuid\":\"00000000-0000-0000-0000-000000000000\"}]}\n"

static void expect_demo(void)
{
    assert_true(crash.has_timestamp);
    assert_int_equal(crash.timestamp, 1637769292);
    expect_text(crash.system.os_name, "macOS");
    expect_text(crash.system.os_version, "12.0.1");
    expect_text(crash.system.os_build, "21A559");
    assert_int_equal(crash.system.arch, SL_ARCH_ARM64);
    expect_text(crash.system.device_model, "MacBookPro18,3");
    expect_text(crash.reason, "EXC_BAD_ACCESS (SIGSEGV)");
    expect_text(crash.details, "KERN_INVALID_ADDRESS at 0x0000000000000000");
    assert_int_equal(crash.thread_count, 1);
    const struct sl_crash_thread *thread = crash.threads;
    assert_true(thread->has_id);
    assert_int_equal(thread->id, 0);
    expect_text(thread->name, "com.apple.main-thread");
    assert_int_equal(thread->requesting, SL_REQUESTING_THREAD_YES);
    expect_registers(thread, "cpsr=60001000 pc=100003f70 x0=ffffffffffffffff");
    expect_addresses(thread, "100003f70 53e8");
    expect_text(thread->frames[0].package, "/Apps/Demo");
    expect_text(thread->frames[0].function, "main");
    expect_text(thread->frames[1].package, NULL);
    expect_text(thread->frames[1].function, "start");
    assert_int_equal(crash.module_count, 1);
    assert_int_equal(crash.modules[0].address, 0x100000000);
    assert_int_equal(crash.modules[0].size, 16384);
    expect_text(crash.modules[0].code_id, "2d903291397d3d14bfca52c7fb8c5e00");
    expect_text(crash.modules[0].debug_file, "/Apps/Demo");
    assert_int_equal(crash.extra_count, 1);
    expect_text(crash.extras[0].name, "procName");
    expect_text(crash.extras[0].json, "\"Demo\"");
}

TEST(whole_json_report_is_read)
{
    expect_read(HEADER BODY);
    expect_demo();
    expect_read("\xEF\xBB\xBF\n" HEADER "\n" BODY);
    expect_demo();
    expect_read(BODY);
    expect_demo();
    expect_read("-----\nTranslated Report (Full Report Below)\n-----\n\nThread 0:\n0 a 0x1 b\n\n"
                "-----------\nFull Report\n-----------\n\n" HEADER BODY "\nModel: x\n");
    expect_demo();
}

TEST(text_report_behind_a_json_header_is_read)
{
    expect_read(HEADER "Incident Identifier: x\nThread 0 Crashed:\n0 a 0x1 b\n");
    expect_addresses(&crash.threads[0], "1");
    assert_int_equal(crash.timestamp, 1637769293);
    expect_text(crash.system.os_name, "macOS 12.0.1 (21A559)");
    expect_read(HEADER "Date/Time: 2019-01-09 17:42:22 +0000\nOS Version: x\nThread 0 Crashed:\n");
    assert_int_equal(crash.timestamp, 1547055742);
    expect_text(crash.system.os_name, "x");
    expect_read("Thread 0:\nThread 1:\nFull Report\nnone\n{\"a\":1}\nmore");
    assert_int_equal(crash.thread_count, 2);
}

TEST(other_report_types_are_unsupported)
{
    expect_failure("{\"bug_type\":\"298\"}\n{\"memoryStatus\":{}}", SL_UNSUPPORTED,
                   "unsupported apple report type 298");
    expect_failure("{\"bug_type\":\"202\"}\n{\"threads\":[],\"usedImages\":7}", SL_UNSUPPORTED,
                   "unsupported apple report type 202");
    expect_failure("{\"bug_type\":7}{}", SL_UNSUPPORTED, "unsupported apple report type unknown");
    expect_failure("{\"bug_type\":\"309\"}\n{\"threads\":[", SL_MALFORMED,
                   "malformed JSON in the crash report: expected a value but the document ends at offset 12");
}

static void expect_body(const char *members)
{
    static char text[2048]; /* the crash refers to it */
    snprintf(text, sizeof text, "{\"threads\":[],\"usedImages\":[],%s}", members);
    expect_read(text);
}

TEST(exception_and_termination_give_reason_and_details)
{
    static const struct {
        const char *members, *reason, *details;
    } cases[] = {
        {"\"a\":1", NULL, NULL},
        {"\"exception\":{\"type\":\"T\",\"codes\":\"c\"}", "T", "c"},
        {"\"exception\":{\"type\":7,\"codes\":\"c\"}", NULL, "c"},
        {"\"exception\":[],\"termination\":{\"namespace\":\"SIGNAL\",\"code\":6}", "SIGNAL 6", NULL},
        {"\"termination\":{\"code\":6,\"indicator\":\"Abort trap: 6\",\"namespace\":\"SIGNAL\"}",
         "SIGNAL 6 Abort trap: 6", NULL},
        {"\"termination\":{\"namespace\":\"DYLD\",\"code\":\"0x1\",\"details\":[\"a\",7,\"b\"]}", "DYLD 0x1", "a\nb"},
        {"\"termination\":{\"reasons\":[\"r\"]},\"exception\":{\"type\":\"T\",\"codes\":\"c\"}", "T", "r"},
        {"\"exception\":{\"message\":\"m\",\"subtype\":\"s\",\"codes\":\"c\"}", NULL, "m"},
        {"\"asi\":{\"lib.dylib\":[\"abort() called\",\"more\"],\"x\":[\"e\\u0301\"]},\"exception\":{\"message\":\"m\"}",
         NULL, "abort() called\nmore\ne\xCC\x81"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_body(cases[i].members);
        expect_text(crash.reason, cases[i].reason);
        expect_text(crash.details, cases[i].details);
    }
}

TEST(os_version_gives_name_version_and_build)
{
    static const struct {
        const char *members, *name, *version, *build;
    } cases[] = {
        {"\"osVersion\":{\"train\":\"iPhone OS 15.1\",\"build\":\"19B74\"}", "iOS", "15.1", "19B74"},
        {"\"osVersion\":{\"train\":\"Watch OS 8.1\"}", "watchOS", "8.1", ""},
        {"\"osVersion\":{\"train\":7,\"build\":\"x\"}", NULL, NULL, "x"},
        {"\"osVersion\":\"x\"", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_body(cases[i].members);
        expect_text(crash.system.os_name, cases[i].name);
        expect_text(crash.system.os_version, cases[i].version);
        expect_text(crash.system.os_build, cases[i].build);
    }
    expect_read(HEADER "{\"threads\":[],\"usedImages\":[{\"arch\":\"?\"},{\"arch\":\"arm64e\"}]}");
    expect_text(crash.system.os_name, "macOS");
    expect_text(crash.system.os_version, "12.0.1");
    expect_text(crash.system.os_build, "21A559");
    assert_int_equal(crash.timestamp, 1637769293);
    assert_int_equal(crash.system.arch, SL_ARCH_ARM64E);
    assert_int_equal(crash.module_count, 0);
}

TEST(frames_are_read_with_their_images)
{
    expect_read("{\"usedImages\":[{\"base\":18446744073709551615,\"name\":\"n\",\"uuid\":\"x\"},{\"base\":16}],"
                "\"threads\":[{\"frames\":[{\"imageOffset\":1,\"imageIndex\":0},"
                "{\"imageOffset\":2,\"imageIndex\":1,\"symbol\":\"f\",\"sourceFile\":\"a.c\",\"sourceLine\":7},"
                "{\"imageOffset\":3,\"imageIndex\":1,\"inline\":true},{\"imageOffset\":4,\"imageIndex\":2},"
                "{\"imageOffset\":5,\"imageIndex\":-1,\"sourceLine\":4294967296},{\"imageOffset\":1.5},{},7]},7,"
                "{\"name\":\"b\",\"queue\":\"q\",\"frames\":{}}],\"faultingThread\":2,"
                "\"lastExceptionBacktrace\":[{\"imageOffset\":6,\"imageIndex\":1}]}");
    assert_int_equal(crash.thread_count, 4);
    expect_addresses(&crash.threads[0], "1 12 4 5");
    expect_text(crash.threads[0].frames[0].package, "n");
    expect_text(crash.threads[0].frames[1].function, "f");
    expect_text(crash.threads[0].frames[1].filename, "a.c");
    assert_int_equal(crash.threads[0].frames[1].line, 7);
    assert_int_equal(crash.threads[0].frames[3].line, 0);
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_NO);
    assert_int_equal(crash.threads[2].requesting, SL_REQUESTING_THREAD_YES);
    assert_int_equal(crash.threads[2].id, 2);
    expect_text(crash.threads[2].name, "b");
    assert_false(crash.threads[3].has_id);
    expect_text(crash.threads[3].name, "Last Exception Backtrace");
    expect_addresses(&crash.threads[3], "16");
    assert_int_equal(crash.module_count, 0);
}

TEST(all_causes_are_listed)
{
    static const struct {
        const char *members, *wanted;
    } cases[] = {
        {"\"exception\":{\"type\":\"EXC_CRASH\",\"codes\":\"0x0, 0x0\"},\"asi\":{\"libsystem_c.dylib\":[\"abort() "
         "called\"]},"
         "\"exceptionReason\":{\"name\":\"NSRangeException\",\"composed_message\":\"index 3\"}",
         "NSRangeException: index 3\nabort() called"},
        {"\"exception\":{\"codes\":\"0x0, 0x0\"},\"termination\":{\"namespace\":\"CODESIGNING\",\"code\":2,"
         "\"indicator\":\"Invalid Page\"}",
         "CODESIGNING 2 Invalid Page"},
        {"\"termination\":{\"namespace\":\"FRONTBOARD\",\"code\":2343432205,\"details\":[\"<RBSTerminateContext|>\"]}",
         "FRONTBOARD 2343432205 (0x8BADF00D): <RBSTerminateContext|>"},
        {"\"exception\":{\"subtype\":\"KERN_INVALID_ADDRESS at "
         "0x0\"},\"termination\":{\"namespace\":\"SIGNAL\",\"code\":11,"
         "\"indicator\":\"Segmentation fault: 11\"}",
         "KERN_INVALID_ADDRESS at 0x0"},
        {"\"exceptionReason\":{\"type\":\"objc-exception\"}", "objc-exception"},
        {"\"exceptionReason\":7", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char text[1024];
        snprintf(text, sizeof text, "{\"usedImages\":[],\"threads\":[{}],%s}", cases[i].members);
        options.all_causes = true;
        expect_read(text);
        expect_text(crash.details, cases[i].wanted);
    }
}

TEST(symbol_addresses_are_derived_from_locations)
{
    options.names_from_report = true;
    expect_read("{\"usedImages\":[{\"base\":4096}],\"threads\":[{\"frames\":["
                "{\"imageIndex\":0,\"imageOffset\":16,\"symbol\":\"f\",\"symbolLocation\":6},"
                "{\"imageIndex\":0,\"imageOffset\":16,\"symbolLocation\":6},"
                "{\"imageIndex\":0,\"imageOffset\":16,\"symbol\":\"f\",\"symbolLocation\":99999}]}]}");
    const struct sl_crash_frame *frames = crash.threads[0].frames;
    assert_int_equal(sl_crash_symbol_address(&frames[0]), 4096 + 10);
    assert_int_equal(sl_crash_symbol_address(&frames[1]), 0);
    assert_int_equal(sl_crash_symbol_address(&frames[2]), 0);
}

TEST(crashed_thread_is_found)
{
    expect_read("{\"usedImages\":[],\"threads\":[{},{\"triggered\":true},{}]}");
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_NO);
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_YES);
    expect_read("{\"usedImages\":[],\"threads\":[{},{}],\"faultingThread\":0}");
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_YES);
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_NO);
}

TEST(registers_are_read_with_their_names)
{
    expect_read(
        "{\"usedImages\":[],\"threads\":[{\"threadState\":{\"r\":[{\"value\":1},{\"value\":\"2\"},{\"value\":3}],"
        "\"flavor\":\"ARM_THREAD_STATE\",\"cpsr\":{\"value\":-1},\"\\u0070c\":{\"a\":{},\"value\":4},\"sp\":5,"
        "\"lr\":{\"value\":6},\"lr\":{\"value\":7},\"far\":{}}}]}");
    expect_registers(&crash.threads[0], "lr=7 pc=4 r0=1 r2=3");
}

TEST(exhausted_memory_is_not_reported_as_malformed)
{
    static const char text[] = HEADER BODY;
    for (size_t limit = 1; limit < 4096; limit += 128) {
        struct sl_arena small;
        struct sl_error error = {0};
        sl_arena_init(&small, limit);
        enum sl_code code =
            sl_apple_read((struct sl_bytes){(const uint8_t *)text, sizeof text - 1}, &options, &small, &crash, &error);
        assert_int_equal(code, SL_BUSY);
        sl_arena_free(&small);
    }
}

TEST_FILE(.teardown = forget);
