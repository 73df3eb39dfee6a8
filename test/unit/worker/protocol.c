/* Messages between the service and its workers: read back as written, and refused when anything is wrong. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/protocol.h"

static struct worker_request some_request(void)
{
    struct worker_request request = {.function = 3, .serial = 77, .has_out = true, .input_count = 2};
    request.limits =
        (struct worker_limits){.max_memory = 1 << 20, .max_time_ns = 5, .input_size = UINT64_MAX, .threads = 2};
    request.inputs[0].role = 4;
    request.inputs[0].access = ACCESS_READ;
    request.inputs[0].size = UINT64_C(1) << 40;
    request.inputs[0].offset = 5;
    request.options = (struct sl_bytes){(const uint8_t *)"option", 6};
    return request;
}

static struct worker_answer some_answer(void)
{
    return (struct worker_answer){.serial = 9,
                                  .code = SL_MALFORMED,
                                  .end = SL_BUDGET_WORK,
                                  .is_trial = true,
                                  .duration_ns = 10,
                                  .peak = 11,
                                  .heap = 12,
                                  .message = SL_STR("b\xC3\xA4"),
                                  .result = {(const uint8_t *)"12345678", 8}};
}

TEST(a_request_is_read_as_it_was_written)
{
    struct worker_request request = some_request(), got;
    struct sl_buf out = {0};
    assert_true(worker_request_encode(&request, &out));
    assert_true(worker_request_decode(sl_buf_bytes(&out), &got));
    assert_int_equal(got.function, 3);
    assert_int_equal(got.serial, 77);
    assert_true(got.has_out);
    assert_int_equal(got.limits.max_memory, 1 << 20);
    assert_int_equal(got.limits.max_time_ns, 5);
    assert_true(got.limits.input_size == UINT64_MAX);
    assert_int_equal(got.limits.threads, 2);
    assert_int_equal(got.input_count, 2);
    assert_int_equal(got.inputs[0].role, 4);
    assert_true(got.inputs[0].size == UINT64_C(1) << 40 && got.inputs[0].offset == 5);
    assert_true(got.inputs[0].access == ACCESS_READ && got.inputs[1].access == ACCESS_NONE);
    assert_int_equal(got.options.size, 6);
    assert_memory_equal(got.options.data, "option", 6);
    assert_int_equal(worker_request_descriptors(&got), 2);
    sl_buf_free(&out);
}

TEST(only_files_have_offsets_and_none_is_too_large)
{
    static const struct {
        enum worker_access access;
        uint64_t size, offset;
        bool is_valid;
    } rows[] = {{ACCESS_READ, 1, INT64_MAX - 1, true}, {ACCESS_READ, 1, INT64_MAX, false},
                {ACCESS_READ, 0, UINT64_MAX, false},   {ACCESS_NONE, 0, 1, false},
                {ACCESS_WRITE, 0, 1, false},           {ACCESS_READ, UINT64_MAX, 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worker_request request = some_request(), got;
        struct sl_buf out = {0};
        request.inputs[0].access = rows[i].access;
        request.inputs[0].size = rows[i].size;
        request.inputs[0].offset = rows[i].offset;
        assert_true(worker_request_encode(&request, &out));
        assert_int_equal(worker_request_decode(sl_buf_bytes(&out), &got), rows[i].is_valid);
        sl_buf_free(&out);
    }
}

TEST(an_answer_is_read_as_it_was_written)
{
    struct worker_answer answer = some_answer(), got;
    struct sl_buf out = {0};
    assert_true(worker_answer_encode(&answer, &out));
    assert_true(worker_answer_decode(sl_buf_bytes(&out), &got));
    assert_int_equal(got.serial, 9);
    assert_int_equal(got.code, SL_MALFORMED);
    assert_int_equal(got.end, SL_BUDGET_WORK);
    assert_true(got.is_trial);
    assert_int_equal(got.duration_ns, 10);
    assert_int_equal(got.peak, 11);
    assert_int_equal(got.heap, 12);
    assert_true(sl_str_equal(got.message, answer.message));
    assert_int_equal(got.result.size, 8);
    assert_memory_equal(got.result.data, "12345678", 8);
    sl_buf_free(&out);
}

TEST(messages_of_another_length_are_refused)
{
    struct worker_request request = some_request(), request_got;
    struct worker_answer answer = some_answer(), answer_got;
    struct sl_buf requests = {0}, answers = {0}, hellos = {0};
    uint32_t measures;
    assert_true(worker_request_encode(&request, &requests) && worker_answer_encode(&answer, &answers));
    worker_hello_encode(5, &hellos);
    assert_true(worker_hello_decode(sl_buf_bytes(&hellos), &measures));
    assert_int_equal(measures, 5);
    for (size_t size = 0; size < requests.size; size++)
        assert_false(worker_request_decode((struct sl_bytes){requests.data, size}, &request_got));
    for (size_t size = 0; size < answers.size; size++)
        assert_false(worker_answer_decode((struct sl_bytes){answers.data, size}, &answer_got));
    for (size_t size = 0; size < hellos.size; size++)
        assert_false(worker_hello_decode((struct sl_bytes){hellos.data, size}, &measures));
    sl_buf_u8(&requests, 0);
    sl_buf_u8(&answers, 0);
    sl_buf_u8(&hellos, 0);
    assert_false(worker_request_decode(sl_buf_bytes(&requests), &request_got));
    assert_false(worker_answer_decode(sl_buf_bytes(&answers), &answer_got));
    assert_false(worker_hello_decode(sl_buf_bytes(&hellos), &measures));
    sl_buf_free(&requests);
    sl_buf_free(&answers);
    sl_buf_free(&hellos);
}

static bool is_accepted(const struct worker_answer *answer)
{
    struct sl_buf out = {0};
    struct worker_answer got;
    assert_true(worker_answer_encode(answer, &out));
    bool good = worker_answer_decode(sl_buf_bytes(&out), &got);
    sl_buf_free(&out);
    return good;
}

TEST(answers_that_no_function_gives_are_refused)
{
    static char large[WORKER_MAX_RESULT + 1], text[sizeof((struct sl_error *)0)->message];
    struct worker_answer answer = some_answer();
    assert_true(is_accepted(&answer));
    static const int codes[] = {SL_CANCELLED, SL_TIMEOUT, SL_PERMISSION_DENIED, SL_DOWNLOAD_ERROR, SL_CODES, -1};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        answer.code = (enum sl_code)codes[i];
        assert_false(is_accepted(&answer));
    }
    answer = some_answer();
    answer.code = SL_OK; /* with a message */
    assert_false(is_accepted(&answer));
    answer = some_answer();
    answer.message = SL_STR("");
    assert_false(is_accepted(&answer));
    answer.message = SL_STR("a\xFF");
    assert_false(is_accepted(&answer));
    answer.message = SL_STR("a\0b");
    assert_false(is_accepted(&answer));
    memset(text, 'x', sizeof text);
    answer.message = (struct sl_str){text, sizeof text};
    assert_false(is_accepted(&answer));
    answer.message.size--;
    assert_true(is_accepted(&answer));
    answer.end = (enum sl_budget_end)(SL_BUDGET_TIME + 1);
    assert_false(is_accepted(&answer));
    answer = some_answer();
    answer.result = (struct sl_bytes){(const uint8_t *)large, sizeof large};
    assert_false(is_accepted(&answer));
    answer.result.size--;
    assert_true(is_accepted(&answer));
}

TEST(a_request_with_a_wrong_byte_is_refused_or_within_its_bounds)
{
    struct worker_request request = some_request(), got;
    struct sl_buf out = {0};
    assert_true(worker_request_encode(&request, &out));
    for (size_t i = 0; i < out.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            out.data[i] ^= (uint8_t)(1 << bit);
            if (worker_request_decode(sl_buf_bytes(&out), &got)) {
                assert_true(got.input_count == 2 && got.options.size == 6 && i >= 4);
                assert_true(worker_request_descriptors(&got) <= WORKER_MAX_DESCRIPTORS);
            }
            out.data[i] ^= (uint8_t)(1 << bit);
        }
    sl_buf_free(&out);
}

/* ---- sockets ---- */
static unsigned count_few_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(descriptors_come_only_where_they_are_expected)
{
    int pair[2], fds[WORKER_MAX_DESCRIPTORS];
    size_t count;
    char space[8];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    unsigned before = count_few_descriptors();
    struct sl_bytes message = {(const uint8_t *)"message", 7};
    assert_true(worker_send(pair[0], message, (int[]){0, 1, 2}, 3));
    assert_int_equal(worker_receive(pair[1], space, sizeof space, fds, &count), 7);
    assert_int_equal(count, 3);
    assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    assert_true(worker_send(pair[0], message, (int[]){0}, 1));
    assert_int_equal(worker_receive(pair[1], space, sizeof space, NULL, NULL), -1);
    assert_int_equal(errno, EPROTO);
    assert_true(worker_send(pair[0], message, (int[]){0}, 1));
    assert_int_equal(worker_receive(pair[1], space, 6, fds, &count), -1); /* cut */
    assert_int_equal(errno, EPROTO);
    assert_int_equal(count_few_descriptors(), before);
    close(pair[0]);
    assert_int_equal(worker_receive(pair[1], space, sizeof space, NULL, NULL), 0);
    close(pair[1]);
}
