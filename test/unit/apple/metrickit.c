/* Diagnostics of MetricKit. */
#include "crash.h"

#define FRAME(name, offset, address, more)                                                                             \
    "{\"binaryUUID\":\"2d903291-397d-3d14-bfca-52c7fb8c5e00\",\"offsetIntoBinaryTextSegment\":" offset                 \
    ",\"sampleCount\":1," more "\"binaryName\":\"" name "\",\"address\":" address "}"
#define STACK(attributed, frames) "{\"threadAttributed\":" attributed ",\"callStackRootFrames\":[" frames "]}"
#define TREE(stacks)              "{\"callStackPerThread\":true,\"callStacks\":[" stacks "]}"

static const char crash_tree[] = TREE(STACK("false", FRAME("app", "16", "4112", "")) "," STACK(
    "true", FRAME("app", "32", "4128", "\"subFrames\":[" FRAME("a\\/b", "48", "4144", "") "],")));

static void expect_tree(void)
{
    assert_int_equal(crash.thread_count, 2);
    expect_addresses(&crash.threads[0], "1010");
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_NO);
    expect_addresses(&crash.threads[1], "1020 1030");
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_YES);
    assert_int_equal(crash.threads[1].id, 1);
    expect_text(crash.threads[1].frames[0].package, "app");
    expect_text(crash.threads[1].frames[1].package, "a/b");
    assert_int_equal(crash.module_count, 1);
    assert_int_equal(crash.modules[0].address, 4096);
    expect_text(crash.modules[0].code_id, "2d903291397d3d14bfca52c7fb8c5e00");
}

TEST(call_stack_tree_alone_is_read)
{
    assert_true(sl_apple_is_metrickit(sl_str(crash_tree)));
    expect_read(crash_tree);
    expect_tree();
    expect_text(crash.reason, NULL);
    expect_text(crash.details, NULL);
}

TEST(payload_metadata_is_read)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"timeStampEnd\":\"2024-01-02 03:04:05 "
             "+0000\",\"crashDiagnostics\":[{\"version\":\"1.0.0\",\"callStackTree\":%s,"
             "\"diagnosticMetaData\":{\"osVersion\":\"iPhone OS 17.0 (21A329)\",\"deviceType\":\"iPhone14,2\","
             "\"platformArchitecture\":\"arm64e\",\"exceptionType\":1,\"signal\":11,\"terminationReason\":\"Namespace "
             "CODESIGNING, Code 2 "
             "x\",\"exceptionReason\":{\"exceptionName\":\"NSRangeException\",\"composedMessage\":\"index 3\"}}}]}",
             crash_tree);
    expect_read(text);
    expect_tree();
    expect_text(crash.reason, "EXC_BAD_ACCESS (SIGSEGV)");
    expect_text(crash.details, "NSRangeException: index 3\nCODESIGNING 2 x");
    expect_text(crash.system.os_name, "iOS");
    expect_text(crash.system.os_version, "17.0");
    expect_text(crash.system.os_build, "21A329");
    expect_text(crash.system.device_model, "iPhone14,2");
    assert_int_equal(crash.system.arch, sl_arch_parse(SL_STR("arm64e")));
    assert_int_equal(crash.timestamp, 1704164645);
    expect_read("{\"hangDiagnostics\":[{\"diagnosticMetaData\":{\"hangDuration\":\"5 "
                "sec\"},\"callStackTree\":{\"callStacks\":[{"
                "\"callStackRootFrames\":[{\"address\":1}]}]}}]}");
    expect_text(crash.reason, "Hang of 5 sec");
}

TEST(each_branch_is_a_thread)
{
    expect_read(TREE(
        STACK("true", "{\"address\":1,\"subFrames\":[{\"address\":2},{\"subFrames\":[{\"address\":4}],\"address\":3}]}"
                      ",{\"address\":5}")));
    assert_int_equal(crash.thread_count, 3);
    expect_addresses(&crash.threads[0], "1 2");
    expect_addresses(&crash.threads[1], "1 3 4");
    expect_addresses(&crash.threads[2], "5");
    assert_int_equal(crash.threads[0].requesting, SL_REQUESTING_THREAD_YES);
    assert_int_equal(crash.threads[1].requesting, SL_REQUESTING_THREAD_NO);
    assert_int_equal(crash.module_count, 0);
}

TEST(deep_stacks_are_read)
{
    enum { DEPTH = 500, ROOM = 64 * DEPTH };
    static char text[ROOM];
    size_t size = (size_t)snprintf(text, ROOM, "{\"callStacks\":[{\"callStackRootFrames\":[");
    for (int i = 0; i < DEPTH; i++)
        size += (size_t)snprintf(text + size, ROOM - size, "{\"address\":%d,\"subFrames\":[", 4096 + i);
    for (int i = 0; i < DEPTH; i++)
        size += (size_t)snprintf(text + size, ROOM - size, "]}");
    snprintf(text + size, ROOM - size, "]}]}");
    expect_read(text);
    assert_int_equal(crash.threads[0].frame_count, DEPTH);
    assert_int_equal(crash.threads[0].frames[DEPTH - 1].address, 4096 + DEPTH - 1);
}

TEST(malformed_diagnostics_report_the_offset)
{
    expect_failure("{\"callStackRootFrames\":[}", SL_MALFORMED, "malformed MetricKit payload at offset 25");
    expect_failure("{\"callStackRootFrames\":[", SL_MALFORMED, "malformed MetricKit payload at offset 24");
    expect_failure("{\"callStackRootFrames\":[]} \"x", SL_MALFORMED, "malformed MetricKit payload at offset 27");
    assert_false(sl_apple_is_metrickit(SL_STR("{\"a\":1}")));
    assert_false(sl_apple_is_metrickit(SL_STR("")));
}

/* A tree in a frame of another one is none: its frames would take the place of those that are open. */
TEST(nested_tree_is_ignored)
{
    expect_read("{\"callStacks\":[{\"callStackRootFrames\":[{\"address\":4096,\"subFrames\":[{\"address\":4097,"
                "\"callStacks\":[{\"callStackRootFrames\":[{\"address\":1}]}],"
                "\"subFrames\":[{\"address\":4098},{\"address\":4099}]}]}]}]}");
    assert_int_equal(crash.thread_count, 2);
    expect_addresses(&crash.threads[0], "1000 1001 1002");
    expect_addresses(&crash.threads[1], "1000 1001 1003");
}

/* Many branches at the end of a long stem would make far more than the text says. */
TEST(wide_trees_are_limited)
{
    enum { COUNT = 20000, ROOM = 40 * COUNT };
    static char text[ROOM];
    struct sl_error error = {0};
    size_t size = (size_t)snprintf(text, ROOM, "{\"callStacks\":[{\"callStackRootFrames\":[");
    for (int i = 0; i < COUNT; i++)
        size += (size_t)snprintf(text + size, ROOM - size, "{\"subFrames\":[");
    for (int i = 0; i < COUNT; i++)
        size += (size_t)snprintf(text + size, ROOM - size, "%s{}", i ? "," : "");
    for (int i = 0; i < COUNT; i++)
        size += (size_t)snprintf(text + size, ROOM - size, "]}");
    size += (size_t)snprintf(text + size, ROOM - size, "]}]}");
    assert_int_equal(read_report(text, size, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "the report has more threads, images or registers than a file of its size can contain");
}

TEST(exhausted_memory_is_an_error)
{
    enum { COUNT = 500 };
    char text[64 + 3 * COUNT] = "{\"callStacks\":[{\"callStackRootFrames\":[{}";
    struct sl_arena small;
    struct sl_budget budget;
    struct sl_error error = {0};
    size_t size = strlen(text);
    for (int i = 0; i < COUNT; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, ",{}");
    size += (size_t)snprintf(text + size, sizeof text - size, "]}]}");
    sl_budget_init(&budget, 0);
    sl_budget_limit(&budget, 1, NULL, NULL);
    small = (struct sl_arena){.budget = &budget};
    assert_int_equal(sl_apple_read((struct sl_bytes){(const uint8_t *)text, size}, &options, &small, &crash, &error),
                     SL_UNSUPPORTED);
    sl_arena_free(&small);
}

TEST_FILE(.teardown = forget);
