/* Dumps as bytes, for a process that does not trust the reader. */
#include "writer.h"

#include "minidump/pack.h"

static void make_dump(void)
{
    begin(AMD64, LINUX, false);
    uint32_t context = put_amd64_context(&writer, 0x5008), stack = here(&writer), name;
    for (int i = 0; i < 8; i++)
        put_u64(&writer, 0x400010);
    name = put_string(&writer, "/bin/a");
    put_threads(&writer, (struct wanted_thread[]){{1, 0x5000, 64, stack, 1232, context}, {3}}, 2);
    put_modules(&writer, (struct wanted_module[]){{0x400000, 0x1000, 1, name}}, 1);
    put_exception(&writer, &(struct wanted_exception){1, 11, .context_size = 1232, .context_rva = context});
}

static struct sl_minidump_client no_client;

static struct sl_buf pack_dump(void)
{
    struct sl_buf out = {0};
    assert_true(sl_minidump_pack(&dump, &no_client, &arena, &out));
    return out;
}

TEST(packed_dump_is_the_same_dump)
{
    struct sl_minidump again;
    struct sl_registers first, then;
    struct sl_walk_stack stack, other;
    struct sl_error failure;
    uint64_t count;
    make_dump();
    expect_read(&writer);
    struct sl_buf out = pack_dump();
    assert_int_equal(sl_minidump_unpack(sl_buf_bytes(&out), dump.bytes, &arena, &again, &count, &failure), SL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(again.crash.thread_count, 2);
    assert_true(sl_str_equal(again.crash.reason, dump.crash.reason));
    assert_true(sl_str_equal(again.crash.modules[0].code_file, SL_STR("/bin/a")));
    assert_int_equal(again.crash.threads[0].register_count, dump.crash.threads[0].register_count);
    assert_true(again.threads[0].is_walked && !again.threads[1].is_walked);
    sl_minidump_start(&dump, 0, &first, &stack);
    sl_minidump_start(&again, 0, &then, &other);
    assert_memory_equal(&first, &then, sizeof first);
    assert_true(stack.address == other.address && stack.bytes.data == other.bytes.data);
    assert_ptr_equal(sl_minidump_module_at(&again, 0x400fff), again.crash.modules);
    sl_buf_free(&out);
}

/* Whatever the bytes are, nothing outside of them and of the file is used. */
TEST(damaged_packed_dumps_are_refused_or_valid)
{
    struct sl_error failure;
    make_dump();
    expect_read(&writer);
    struct sl_buf out = pack_dump();
    for (size_t cut = 0; cut < out.size; cut++) {
        struct sl_arena mine = {0};
        struct sl_minidump again;
        uint64_t count;
        assert_int_equal(
            sl_minidump_unpack((struct sl_bytes){out.data, cut}, dump.bytes, &mine, &again, &count, &failure),
            SL_MALFORMED);
        sl_arena_free(&mine);
    }
    for (size_t at = 0; at < out.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct sl_arena mine = {0};
            struct sl_minidump again;
            struct sl_registers registers;
            struct sl_walk_stack stack;
            uint64_t count;
            out.data[at] ^= (uint8_t)(1u << bit);
            enum sl_code code = sl_minidump_unpack(sl_buf_bytes(&out), dump.bytes, &mine, &again, &count, &failure);
            assert_true(code == SL_OK || code == SL_MALFORMED);
            for (size_t i = 0; code == SL_OK && i < again.crash.thread_count; i++)
                sl_minidump_start(&again, i, &registers, &stack);
            out.data[at] ^= (uint8_t)(1u << bit);
            sl_arena_free(&mine);
        }
    sl_buf_free(&out);
}

/* A report has one name of an image, of which all frames there are views. */
TEST(long_text_that_frames_share_is_packed_once)
{
    enum { FRAMES = 100, NAME = 10000, FRAME_BYTES = 65 };
    static char name[NAME];
    static struct sl_crash_frame frames[FRAMES];
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < FRAMES; i++)
        frames[i] = (struct sl_crash_frame){.address = i, .package = {name, i % 2 ? NAME : NAME / 2}};
    struct sl_crash_thread thread = {.frames = frames, .frame_count = FRAMES};
    struct sl_crash crash = {.threads = &thread, .thread_count = 1}, again;
    struct sl_buf out = {0};
    struct sl_arena mine = {0};
    struct sl_error failure;
    struct sl_packer packer = {.out = &out};
    sl_crash_pack(&crash, &packer);
    sl_packer_free(&packer);
    assert_true(out.size < 2 * NAME + FRAMES * FRAME_BYTES + 1000);
    struct sl_unpacker u = {.r = sl_reader(sl_buf_bytes(&out), false), .arena = &mine};
    assert_int_equal(sl_crash_unpack(&u, &again, &failure), SL_OK);
    for (size_t i = 0; i < FRAMES; i++)
        assert_true(sl_str_equal(again.threads[0].frames[i].package, frames[i].package));
    assert_ptr_equal(again.threads[0].frames[1].package.data, again.threads[0].frames[99].package.data);
    uint8_t *last = memrchr(out.data, 0xfe, out.size); /* UINT64_MAX - 1, the number 1 */
    last[8] = 2;
    struct sl_unpacker damaged = {.r = sl_reader(sl_buf_bytes(&out), false), .arena = &mine};
    assert_int_equal(sl_crash_unpack(&damaged, &again, &failure), SL_MALFORMED);
    sl_arena_free(&mine);
    sl_buf_free(&out);
}

TEST(packed_threads_and_modules_may_be_empty)
{
    enum { COUNT = 1000 };
    static struct sl_crash_thread threads[COUNT];
    static struct sl_crash_module modules[COUNT];
    static struct sl_crash_frame frames[COUNT];
    struct sl_crash_thread full = {.frames = frames, .frame_count = COUNT};
    const struct sl_crash crashes[] = {{.threads = threads, .thread_count = COUNT},
                                       {.modules = modules, .module_count = COUNT},
                                       {.threads = &full, .thread_count = 1}};
    for (size_t i = 0; i < 3; i++) {
        struct sl_crash again;
        struct sl_buf out = {0};
        struct sl_arena mine = {0};
        struct sl_error failure;
        struct sl_packer packer = {.out = &out};
        sl_crash_pack(&crashes[i], &packer);
        sl_packer_free(&packer);
        struct sl_unpacker u = {.r = sl_reader(sl_buf_bytes(&out), false), .arena = &mine};
        assert_int_equal(sl_crash_unpack(&u, &again, &failure), SL_OK);
        assert_int_equal(again.thread_count, crashes[i].thread_count);
        assert_int_equal(again.module_count, crashes[i].module_count);
        sl_arena_free(&mine);
        sl_buf_free(&out);
    }
}

/* Extras go into answers as they are. */
TEST(extras_of_packed_crashes_must_be_json)
{
    static const char *const good[] = {"1", "{\"a\":[]}"}, *const bad[] = {"", "{", "1,2", "1}"};
    for (size_t i = 0; i < 6; i++) {
        struct sl_crash_extra extra = {SL_STR("a"), sl_str(i < 2 ? good[i] : bad[i - 2])};
        struct sl_crash crash = {.extras = &extra, .extra_count = 1}, again;
        if (i % 2) /* members of the answer are extras, too */
            crash = (struct sl_crash){.members = &extra, .member_count = 1};
        struct sl_buf out = {0};
        struct sl_arena mine = {0};
        struct sl_error failure;
        struct sl_packer packer = {.out = &out};
        sl_crash_pack(&crash, &packer);
        sl_packer_free(&packer);
        struct sl_unpacker u = {.r = sl_reader(sl_buf_bytes(&out), false), .arena = &mine};
        assert_int_equal(sl_crash_unpack(&u, &again, &failure), i < 2 ? SL_OK : SL_MALFORMED);
        sl_arena_free(&mine);
        sl_buf_free(&out);
    }
}

/* A reader that was taken over cannot have one long text parsed again and again. */
TEST(extras_of_packed_crashes_are_few)
{
    enum { MOST = 64 };
    static const char text[] = "\"a text that is long enough to be written only once\"";
    struct sl_crash_extra extras[MOST + 1];
    for (size_t i = 0; i <= MOST; i++)
        extras[i] = (struct sl_crash_extra){SL_STR("a"), sl_str(text)};
    for (size_t count = MOST; count <= MOST + 1; count++) {
        struct sl_crash crash = {.extras = extras, .extra_count = count}, again;
        struct sl_buf out = {0};
        struct sl_arena mine = {0};
        struct sl_error failure;
        struct sl_packer packer = {.out = &out};
        sl_crash_pack(&crash, &packer);
        sl_packer_free(&packer);
        struct sl_unpacker u = {.r = sl_reader(sl_buf_bytes(&out), false), .arena = &mine};
        assert_int_equal(sl_crash_unpack(&u, &again, &failure), count == MOST ? SL_OK : SL_MALFORMED);
        sl_arena_free(&mine);
        sl_buf_free(&out);
    }
}

TEST_FILE(.teardown = forget);

static struct sl_buf pack_stacks(void)
{
    struct sl_buf out = {0};
    assert_true(sl_minidump_pack_stacks(&dump, &out));
    return out;
}

TEST(packed_stacks_are_those_of_the_dump)
{
    struct sl_minidump again;
    struct sl_registers first, then;
    struct sl_walk_stack stack, other;
    struct sl_error failure;
    make_dump();
    expect_read(&writer);
    struct sl_buf out = pack_stacks();
    assert_int_equal(sl_minidump_unpack_stacks(sl_buf_bytes(&out), dump.bytes, &arena, &again, &failure), SL_OK);
    assert_int_equal(again.crash.thread_count, 2);
    assert_true(again.threads[0].is_walked && !again.threads[1].is_walked);
    sl_minidump_start(&dump, 0, &first, &stack);
    sl_minidump_start(&again, 0, &then, &other);
    assert_memory_equal(&first, &then, sizeof first);
    assert_true(stack.address == other.address && stack.bytes.data == other.bytes.data);
    assert_ptr_equal(sl_minidump_module_at(&again, 0x400fff), again.crash.modules);
    assert_int_equal(sl_crash_has_id(again.crash.modules), sl_crash_has_id(dump.crash.modules));
    sl_buf_free(&out);
}

/* Whatever the bytes are, nothing outside of them and of the file is used. */
TEST(damaged_packed_stacks_are_refused_or_valid)
{
    struct sl_error failure;
    make_dump();
    expect_read(&writer);
    struct sl_buf out = pack_stacks();
    for (size_t at = 0; at < out.size; at++) {
        struct sl_arena mine = {0};
        struct sl_minidump again;
        struct sl_bytes cut = {out.data, at};
        assert_int_equal(sl_minidump_unpack_stacks(cut, dump.bytes, &mine, &again, &failure), SL_MALFORMED);
        out.data[at] ^= 0xFF;
        if (sl_minidump_unpack_stacks(sl_buf_bytes(&out), dump.bytes, &mine, &again, &failure) == SL_OK)
            for (size_t i = 0; i < again.crash.thread_count; i++) {
                struct sl_registers registers;
                struct sl_walk_stack stack;
                sl_minidump_start(&again, i, &registers, &stack);
                assert_true(!stack.bytes.size ||
                            (stack.bytes.data >= dump.bytes.data &&
                             stack.bytes.size <= dump.bytes.size - (size_t)(stack.bytes.data - dump.bytes.data)));
            }
        out.data[at] ^= 0xFF;
        sl_arena_free(&mine);
    }
    sl_buf_free(&out);
}
