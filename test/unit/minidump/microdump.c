/* Microdumps: where they are in logs, and what they become. */
#include "minidump/microdump.h"

#include "writer.h"

#define BEGIN "-----BEGIN BREAKPAD MICRODUMP-----\n"
#define END   "-----END BREAKPAD MICRODUMP-----\n"

static struct sl_buf text;

static int forget_text(void **state)
{
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return 0;
}

static void put_line(const char *line)
{
    sl_buf_cstr(&text, line);
}

/* Registers of ARM: flags, sp and pc. */
static void put_registers(uint32_t sp, uint32_t pc)
{
    uint8_t context[368] = {0};
    const uint32_t flags = 0x40000006;
    memcpy(context, &flags, 4);
    memcpy(context + 4 + 4 * 13, &sp, 4);
    memcpy(context + 4 + 4 * 15, &pc, 4);
    put_line("C ");
    sl_buf_hex(&text, context, sizeof context);
    put_line("\n");
}

static void expect_microdump(void)
{
    struct sl_error error = {0};
    sl_arena_free(&arena);
    assert_true(sl_microdump_is_in(sl_buf_bytes(&text)));
    if (sl_minidump_read(sl_buf_bytes(&text), &arena, &dump, &error) != SL_OK)
        fail_msg("%s", error.message);
    assert_true(dump.is_microdump);
}

TEST(stack_pieces_are_joined)
{
    put_line(BEGIN "O A arm 02 armv7l x\nS 0 00001010 00001000 00000030\nS 00001000 000102\nS 00001003 03\n");
    put_line("S 00001010 AABBC\nS zz 00\nS 00002000\n");
    put_registers(0x1010, 0x5);
    put_line(END);
    expect_microdump();
    assert_int_equal(dump.memory_count, 2);
    assert_int_equal(dump.memory[0].bytes.size, 4);
    assert_int_equal(dump.memory[0].bytes.data[3], 3);
    assert_int_equal(dump.memory[1].bytes.size, 2);
    assert_int_equal(dump.threads[0].stack.address, 0x1010);
    assert_int_equal(dump.cpu_count, 2);
    expect_text(dump.crash.reason, "unknown");
    assert_true(dump.crash.crashed);
    assert_false(dump.has_exception);
}

TEST(modules_are_read_and_sorted)
{
    put_line(BEGIN "O A arm 02 armv7l x\n");
    put_registers(0, 0);
    put_line("M 00003000 00000000 00001000 00112233445566778899AABBCCDDEEFF0 b.so\n"
             "M 00004000 00000000 00001000 000000000000000000000000000000000 c \xFF.so\n"
             "M 00001000 00000000 00001000 00112233445566778899AABBCCDDEEFF1A a.so\n"
             "M 00009000 00000000 00000000 00112233445566778899AABBCCDDEEFF0 empty.so\n"
             "M 0000A000 00000000 00001000 0011 id.so\n" END);
    expect_microdump();
    assert_int_equal(dump.crash.module_count, 3);
    const struct sl_crash_module *modules = dump.crash.modules;
    expect_text(modules[0].code_file, "a.so");
    assert_int_equal(modules[0].debug_id.age, 0x1A);
    assert_int_equal(modules[0].debug_id.uuid[0], 0);
    assert_int_equal(modules[0].debug_id.uuid[15], 0xFF);
    assert_int_equal(modules[1].size, 0x1000);
    expect_text(modules[2].code_file, "c \xEF\xBF\xBD.so");
    assert_false(modules[2].has_debug_id);
    assert_ptr_equal(dump.main_module, &modules[1]);
}

TEST(system_line_gives_version_and_build)
{
    static const struct {
        const char *line, *version, *build;
    } systems[] = {
        {"O A arm 02 armv7l a/b/c:11/R/1:user/k\n", "11.0.0", "a/b/c:11/R/1:user/k"},
        {"O A arm 02 armv7l a/b/c:8.1/R/1:user/k\n", "8.1.0", "a/b/c:8.1/R/1:user/k"},
        {"O A arm 02 armv7l a/b/c:T/R/1:user/k\n", "", "a/b/c:T/R/1:user/k"},
        {"O A arm 02 armv7l\n", "", ""},
        {"O L arm 02 armv7l 3.4.5-x #7 SMP Fri\n", "3.4.5-x", "#7 SMP Fri"},
    };
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        sl_buf_clear(&text);
        put_line(BEGIN);
        put_line(systems[i].line);
        put_registers(0, 0);
        expect_microdump();
        expect_text(dump.crash.system.os_version, systems[i].version);
        expect_text(dump.crash.system.os_build, systems[i].build);
    }
}

TEST(interleaved_microdumps_are_separated)
{
    put_line("x\na(1)google-breakpad(1): " BEGIN "google-breakpad(2): " BEGIN "google-breakpad(1): " END
             "google-breakpad(2): " END);
    put_line("google-breakpad(3): " BEGIN "google-breakpad(4): " BEGIN "google-breakpad(5): " BEGIN);
    struct sl_microdump_search search = {.rest = sl_buf_view(&text)};
    static const struct {
        size_t line;
        bool is_whole;
    } found[] = {{2, true}, {3, true}, {6, false}, {7, false}, {8, false}};
    struct sl_microdump one;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        assert_true(sl_microdump_next(&search, &one));
        assert_int_equal(one.line, found[i].line);
        assert_int_equal(one.is_whole, found[i].is_whole);
    }
    assert_false(sl_microdump_next(&search, &one));
}

TEST(binary_input_is_no_microdump)
{
    assert_false(sl_microdump_is_in((struct sl_bytes){NULL, 0}));
    put_line("MDMP" BEGIN);
    assert_false(sl_microdump_is_in(sl_buf_bytes(&text)));
    sl_buf_clear(&text);
    sl_buf_u8(&text, 0);
    put_line(BEGIN);
    assert_false(sl_microdump_is_in(sl_buf_bytes(&text)));
}

TEST_FILE(.teardown = forget_text);
