/* Stackshots. */
#include "crash.h"

#define UUID(n) "\"2d903291-397d-3d14-bfca-52c7fb8c5e0" n "\""
#define IMAGES                                                                                                         \
    "\"binaryImages\":[[" UUID("0") ",4096,\"P\"],[" UUID("1") ",65536,\"C\"],[\"0\",0,\"A\"],[" UUID(                 \
        "2") ",1048576,\"T\"]]"
#define THREAD(id, more, frames) "\"" id "\":{\"id\":" id "," more "\"userFrames\":" frames "}"
#define PROCESS(pid, name, threads)                                                                                    \
    "\"" pid "\":{\"pid\":" pid ",\"procname\":\"" name "\",\"threadById\":{" threads "}}"

static const char shot[] =
    "{\"bug_type\":\"288\",\"timestamp\":\"2021-07-01 10:00:00.00 +0000\"}\n"
    "{\"build\":\"iPhone OS 15.0 (19A341)\",\"product\":\"iPhone12,1\",\"frontmostPids\":[7],"
    "\"processByPid\":{" PROCESS("0", "kernel_task", THREAD("1", "", "[[3,1]]")) "," PROCESS(
        "5", "other",
        THREAD("2", "",
               "[[0,2]]")) "," PROCESS("7", "app",
                                       THREAD("8",
                                              "\"name\":\"n\",\"dispatch_queue_label\":\"q\",\"kernelFrames\":[[3,8]],",
                                              "[[0,16],[1,32,9],[2,40],[99,5],7]") "," THREAD("9",
                                                                                              "\"dispatch_queue_"
                                                                                              "label\":\"q\",",
                                                                                              "[]")) "}," IMAGES "}";

TEST(stacks_of_the_frontmost_process_are_read)
{
    expect_read(shot);
    assert_false(crash.crashed);
    assert_int_equal(crash.timestamp, 1625133600);
    expect_text(crash.reason, "stackshot");
    expect_text(crash.details, "These are the stacks of app [7], one of 3 processes of the report.");
    expect_text(crash.system.os_name, "iOS");
    expect_text(crash.system.os_build, "19A341");
    expect_text(crash.system.device_model, "iPhone12,1");
    assert_int_equal(crash.thread_count, 2);
    expect_addresses(&crash.threads[0], "100008 1010 10020 28 5");
    assert_false(crash.threads[0].frames[0].is_exact);
    assert_true(crash.threads[0].frames[1].is_exact);
    assert_false(crash.threads[0].frames[2].is_exact);
    expect_text(crash.threads[0].name, "n");
    expect_text(crash.threads[1].name, "q");
    assert_int_equal(crash.threads[1].id, 9);
    assert_int_equal(crash.module_count, 3);
    assert_int_equal(crash.modules[0].address, 4096);
    assert_int_equal(crash.modules[0].size, 17);
    expect_text(crash.modules[1].code_id, "2d903291397d3d14bfca52c7fb8c5e01");
    assert_int_equal(crash.modules[2].size, 9);
}

TEST(first_user_process_is_used_without_a_frontmost_one)
{
    expect_read("{\"processByPid\":{" PROCESS("0", "kernel_task", THREAD("1", "", "[[3,1]]")) "," PROCESS(
        "5", "other", THREAD("2", "", "[[0,2]]")) "}," IMAGES ",\"reason\":\"hang\"}");
    expect_text(crash.reason, "hang");
    expect_addresses(&crash.threads[0], "1002");
}

TEST(other_reports_are_unsupported)
{
    expect_failure("{\"bug_type\":\"210\"}\n{\"panicString\":\"x\",\"processByPid\":{},\"binaryImages\":[]}",
                   SL_UNSUPPORTED, "unsupported apple report type 210");
    expect_failure("{\"bug_type\":\"288\"}\n{\"processByPid\":[],\"binaryImages\":[]}", SL_UNSUPPORTED,
                   "unsupported apple report type 288");
    expect_read("{\"processByPid\":{\"7\":5,\"8\":{\"pid\":8,\"threadById\":{\"1\":[],\"2\":{\"userFrames\":[[],[\"a\"]"
                "]}}}},\"binaryImages\":[7,[]]}");
    assert_int_equal(crash.thread_count, 1);
    assert_int_equal(crash.module_count, 0);
}

TEST_FILE(.teardown = forget);
