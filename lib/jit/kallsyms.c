/* The kernel's symbols. */
#include "jit/impl.h"

#include "base/order.h"

#include <stdlib.h>

/* True for functions of the kernel and of modules, also weak ones (nm(1)). */
static bool is_function_type(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Orders functions by address; several names at one address stay in the order of the file. */
SL_ORDER_BY(kallsyms_by_address, struct sl_jit_function, address, name.data)

/* Sets the sizes of the functions from index `first` on: each ends at the next one, the last at the end of its page or of the address
 * space. Of several at one address the first one is kept. */
static void set_sizes(struct sl_jit_code *code, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < code->count; i++)
        if (kept == first || code->functions[kept - 1].address != code->functions[i].address)
            code->functions[kept++] = code->functions[i];
    code->count = kept;
    for (size_t i = first; i < kept; i++) {
        struct sl_jit_function *f = &code->functions[i];
        uint64_t page = 0x1000 - (f->address & 0xFFF), space = UINT64_MAX - f->address;
        f->size = i + 1 < kept ? code->functions[i + 1].address - f->address : page < space ? page : space;
    }
}

enum sl_code sl_jit_read_kallsyms(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error)
{
    struct sl_str rest = {(const char *)file.data, file.size}, line;
    size_t first = code->count;
    while (sl_str_next_line(&rest, &line)) {
        uint64_t address;
        if (!sl_budget_spend(budget, 1))
            return sl_budget_fail(budget, error);
        if (!jit_read_hex(&line, &address) || !address || line.size < 3 || !is_function_type(line.data[0]) ||
            line.data[1] != ' ')
            continue;
        /* 1 for now: sizes follow from the next function's address */
        if (!jit_add(code, address, 1, (struct sl_str){line.data + 2, line.size - 2}))
            return sl_budget_fail(budget, error);
    }
    if (code->count > first)
        qsort(code->functions + first, code->count - first, sizeof *code->functions, kallsyms_by_address);
    set_sizes(code, first);
    return SL_OK;
}
