/* perf maps: code that a process generated, as perf(1) reads them. */
#include "jit/impl.h"

enum sl_code sl_jit_read_perf_map(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error)
{
    struct sl_str rest = {(const char *)file.data, file.size}, line;
    while (sl_str_next_line(&rest, &line)) {
        uint64_t address, size;
        if (!sl_budget_spend(budget, 1))
            return sl_budget_fail(budget, error);
        /* the rest of the line is the name */
        if (jit_read_hex(&line, &address) && jit_read_hex(&line, &size) && !jit_add(code, address, size, line))
            return sl_budget_fail(budget, error);
    }
    return SL_OK;
}
