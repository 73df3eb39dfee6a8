/* What processes and the kernel say of their code: read in every way, ordered, written as a symbol file. The first byte says how. */
#include "jit/jit.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    typedef enum sl_code reader(struct sl_bytes file, struct sl_jit_code * code, struct sl_budget * budget,
                                struct sl_error * error);
    static reader *const readers[] = {sl_jit_read_perf_map, sl_jit_read_dump, sl_jit_read_kallsyms};
    const struct sl_breakpad_options options = {.os = SL_STR("Linux"), .arch = SL_STR("x86_64"), .id = SL_STR("0")};
    struct sl_jit_code code = {0};
    struct sl_budget budget;
    struct sl_buf out = {0};
    size_t count = 0;
    if (!size)
        return 0;
    sl_budget_init(&budget, size);
    if (readers[data[0] % 3]((struct sl_bytes){data + 1, size - 1}, &code, &budget, NULL) == SL_OK) {
        must(sl_jit_finish(&code, NULL) == SL_OK);
        for (size_t i = 1; i < code.count; i++) /* ordered, and nothing lies over another */
            must(code.functions[i - 1].address + code.functions[i - 1].size <= code.functions[i].address);
        must(sl_jit_write(&code, 0, UINT64_MAX, &options, &out, &count, NULL) == SL_OK && count <= code.count);
    }
    sl_jit_free(&code);
    sl_buf_free(&out);
    return 0;
}
