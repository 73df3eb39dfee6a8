/* Disassembles a function of a program, with the names of the functions that it calls or jumps to, if the program has symbols. */
#include "conversion/disassembly.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "demangle/demangle.h"
#include "disasm/disasm.h"

struct disassembling {
    const struct disassembly_options *options;
    struct disassembly_result *result;
    struct sl_object *object;
    struct sl_arena arena;
    struct sl_symbol *symbols; /* sorted by address */
    size_t symbol_count;
    struct sl_mapping_symbol *mapping_symbols; /* ARM: where code of another instruction set, or data, begins */
    size_t mapping_symbol_count;
    struct sl_buf out; /* the lines, as disassembly.h describes them */
};

/* ---- names ---- */

SL_ORDER_BY(symbol_by_address, struct sl_symbol, address)

/* Returns the symbol that contains the address, or NULL. A symbol without a size extends to the next one. */
static const struct sl_symbol *symbol_at(const struct disassembling *d, uint64_t address)
{
    size_t before = SL_COUNT_UP_TO(d->symbols, d->symbol_count, address, address);
    const struct sl_symbol *symbol = before ? &d->symbols[before - 1] : NULL;
    return symbol && (!symbol->size || address - symbol->address < symbol->size) ? symbol : NULL;
}

/* Appends the name of the target of a jump or call, "name+0x10"; nothing if it is unknown (sl_disasm_reader). */
static void name_target(void *arg, uint64_t address, struct sl_buf *out)
{
    const struct disassembling *d = arg;
    const struct sl_symbol *symbol = symbol_at(d, address);
    if (!symbol || !symbol->name.size)
        return;
    if (!sl_demangle(symbol->name, SL_LANG_UNKNOWN, out))
        sl_buf_str(out, symbol->name);
    if (address != symbol->address)
        sl_buf_printf(out, "+0x%llx", (unsigned long long)(address - symbol->address));
}

/* ---- lines ---- */

/* Appends a line of the disassembly to d->out (sl_disasm_reader). False, which ends the disassembly, when memory or the budget of the
 * conversion is used up. */
static bool put_line(void *arg, uint64_t offset, struct sl_str text)
{
    struct disassembling *d = arg;
    sl_buf_u64(&d->out, offset);
    sl_buf_u32(&d->out, (uint32_t)text.size);
    sl_buf_str(&d->out, text);
    return !d->out.failed && sl_budget_spend(d->out.budget, 1);
}

bool disassembly_read(struct sl_bytes lines, bool (*line)(void *arg, uint64_t offset, struct sl_str text), void *arg)
{
    struct sl_reader r = sl_reader(lines, false);
    while (sl_reader_left(&r)) {
        uint64_t offset = sl_read_u64(&r);
        uint32_t size = sl_read_u32(&r);
        struct sl_bytes text = sl_read_bytes(&r, size);
        struct sl_str view = {(const char *)text.data, text.size};
        if (r.failed || !sl_str_is_utf8(view))
            return false;
        if (!line(arg, offset, view))
            return true;
    }
    return true;
}

/* ---- the function ---- */

/* Returns the number of bytes to disassemble from `start` on: to the end of the requested range; with to_function_end, at least to the end
 * of the function. */
static uint64_t size_wanted(const struct disassembling *d, uint64_t start)
{
    uint64_t size = d->options->size + (d->options->address - start); /* `start` may be before the requested address */
    const struct sl_symbol *symbol = d->options->to_function_end ? symbol_at(d, start) : NULL;
    if (symbol && symbol->size && symbol->address + symbol->size - start > size)
        size = symbol->address + symbol->size - start;
    return size < DISASSEMBLY_MAX_CODE ? size : DISASSEMBLY_MAX_CODE;
}

/* Disassembles the function that starts at result->start: lines are appended to d->out; sets result->size to the bytes that they cover. */
static enum sl_code disassemble(struct disassembling *d, struct sl_bytes bytes, struct sl_error *error)
{
    struct sl_disasm_code code = {.arch = d->result->arch,
                                  .bytes = bytes,
                                  .address = d->result->start,
                                  .size = size_wanted(d, d->result->start),
                                  .mapping_symbols = d->mapping_symbols,
                                  .mapping_symbol_count = d->mapping_symbol_count};
    const struct sl_disasm_reader reader = {put_line, name_target, d};
    return sl_disasm(&code, &reader, &d->result->size, error);
}

/* Disassembles from the requested address on, rounded down to the alignment of instructions. If the program has no code for it, sets
 * result->problem and returns SL_OK. */
static enum sl_code read_function(struct disassembling *d, struct sl_error *error)
{
    struct disassembly_result *result = d->result;
    struct sl_error ignored;
    result->arch = sl_object_info(d->object)->arch;
    if (!sl_disasm_arch(result->arch)) {
        result->problem = DISASSEMBLY_NO_ARCH;
        return SL_OK;
    }
    enum sl_code code =
        sl_object_mapping_symbols(d->object, &d->arena, &d->mapping_symbols, &d->mapping_symbol_count, error);
    if (code != SL_OK)
        return code;
    uint64_t address = d->options->address;
    enum sl_code_isa isa = sl_disasm_isa_at(d->mapping_symbols, d->mapping_symbol_count, address);
    result->start = address - address % sl_disasm_step(result->arch, isa);
    struct sl_bytes bytes = sl_object_at(d->object, result->start);
    if (!bytes.size) {
        result->problem = DISASSEMBLY_NO_BYTES;
        return SL_OK;
    }
    if (sl_object_symbols(d->object, &d->arena, &d->symbols, &d->symbol_count, &ignored) != SL_OK)
        d->symbol_count = 0; /* without symbols, only the names are missing */
    if (d->symbol_count)
        qsort(d->symbols, d->symbol_count, sizeof *d->symbols, symbol_by_address);
    return disassemble(d, bytes, error);
}

/* Implements converter_disassembly. An address that cannot be disassembled (unsupported CPU, no code there) is no error of the file: SL_OK,
 * with result->problem. */
static enum sl_code disassemble_file(struct conversion *conversion, const struct converter_call *call, void *result,
                                     struct sl_error *error)
{
    struct disassembling d = {.options = converter_options(call),
                              .result = result,
                              .arena = {.budget = &conversion->budget},
                              .out = {.budget = &conversion->budget}};
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    enum sl_code code = conversion_open(conversion, file, &d.options->limits, &d.object, error);
    if (code != SL_OK)
        return code;
    code = read_function(&d, error);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &d.out, error);
    sl_object_close(d.object);
    sl_arena_free(&d.arena);
    sl_buf_free(&d.out);
    return code;
}

/* True if the result, which came from a worker, has no invalid value (converter.check_result). Copies `problem` as an integer first: to
 * load an enum that has none of its values would be undefined. */
static bool check_result(const void *result)
{
    const struct disassembly_result *found = result;
    uint32_t problem;
    _Static_assert(sizeof problem == sizeof found->problem, "an enum is an int");
    memcpy(&problem, &found->problem, sizeof problem);
    return problem < DISASSEMBLY_PROBLEMS && converter_arch_is_valid(&found->arch);
}

const struct converter converter_disassembly = {"disassembly", sizeof(struct disassembly_options),
                                                sizeof(struct disassembly_result), disassemble_file, check_result};
