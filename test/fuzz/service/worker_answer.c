/* What a worker that is in the hands of a file says to the service. */
#include <stdlib.h>

#include "worker/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_bytes message = {data, size};
    struct sl_buf again = {0};
    struct worker_answer answer;
    uint32_t measures;
    if (worker_answer_decode(message, &answer)) { /* has one form */
        struct sl_error error = {.code = SL_OK};
        sl_fail(&error, answer.code, SL_STR_FMT, SL_STR_ARG(answer.message));
        check(sl_str_equal(sl_str(error.message), answer.message) && answer.result.size <= WORKER_MAX_RESULT);
        check(worker_answer_encode(&answer, &again));
        check(sl_str_equal(sl_buf_view(&again), (struct sl_str){(const char *)data, size}));
    } else if (worker_hello_decode(message, &measures)) {
        worker_hello_encode(measures, &again);
        check(sl_str_equal(sl_buf_view(&again), (struct sl_str){(const char *)data, size}));
    }
    sl_buf_free(&again);
    struct worker_request request;
    if (worker_request_decode(message, &request))
        check(request.input_count <= WORKER_MAX_INPUTS &&
              worker_request_descriptors(&request) <= WORKER_MAX_DESCRIPTORS);
    return 0;
}
