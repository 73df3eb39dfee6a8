/* Out of memory at every single allocation of what reads and writes the messages of Pyroscope's API: the whole message or a failure that
 * says so, never a message that counts as malformed, nor texts that are missing. */
#include "../check.h"

#include "api/pyroscope/pyroscope.h"

static size_t allocations, failing; /* since the count began; the one that fails, 0 = none */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    return ++allocations == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* The message of a request with a file (field 1), or of one with a build id alone: fields 1 to 4 of both are texts. */
static const uint8_t with_file[] = "\x0A\x0A\x0A\x02"
                                   "ab"
                                   "\x12\x02"
                                   "go"
                                   "\x22\x00",
                     with_id[] = "\x0A\x04"
                                 "abcd";

static size_t read_with_failures(struct sl_bytes body, bool has_file)
{
    for (size_t fail_at = 1;; fail_at++) {
        struct sl_arena arena = {0};
        struct debuginfo_file file;
        struct sl_error error;
        allocations = 0;
        failing = fail_at;
        enum sl_code code = debuginfo_read(body, false, has_file, &arena, &file, &error);
        failing = 0;
        bool was_complete = allocations < fail_at;
        if (was_complete) {
            assert_int_equal(code, SL_OK);
            assert_true(sl_str_equal(file.gnu_build_id, has_file ? SL_STR("ab") : SL_STR("abcd")));
        } else {
            assert_int_equal(code, SL_BUSY);
        }
        sl_arena_free(&arena);
        if (was_complete)
            return fail_at - 1;
    }
}

TEST(protobuf_requests_are_busy_and_not_malformed)
{
    assert_true(read_with_failures((struct sl_bytes){with_file, sizeof with_file - 1}, true) >= 4);
    assert_true(read_with_failures((struct sl_bytes){with_id, sizeof with_id - 1}, false) >= 2);
}

TEST(protobuf_lists_fail_and_lack_no_texts)
{
    static const struct debuginfo_object object = {
        .file = {SL_STR("abcd"), SL_STR("go"), SL_STR("otel"), SL_STR("name"), 1}, .state = DEBUGINFO_FINISHED};
    struct sl_buf whole = {0};
    size_t fail_at = 0;
    debuginfo_write_list(false, &object, 1, &whole);
    assert_true(whole.size && !whole.failed);
    do {
        struct sl_buf out = {0};
        allocations = 0;
        failing = ++fail_at;
        debuginfo_write_list(false, &object, 1, &out);
        failing = 0;
        if (!out.failed)
            assert_true(sl_str_equal(sl_buf_view(&out), sl_buf_view(&whole)));
        assert_int_equal(out.failed, allocations >= fail_at);
        sl_buf_free(&out);
    } while (allocations >= fail_at);
    assert_true(fail_at > 2);
    sl_buf_free(&whole);
}
