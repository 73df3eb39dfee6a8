/* Code of a process: drops overwritten functions, and writes the symbol file. */
#include "jit/impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

bool jit_add(struct sl_jit_code *code, uint64_t address, uint64_t size, struct sl_str name)
{
    if (!size || !name.size || name.size > SL_MAX_NAME || size > UINT64_MAX - address)
        return true;
    if (!sl_grow(&code->functions, &code->capacity, code->count + 1, sizeof *code->functions))
        return false;
    code->functions[code->count++] = (struct sl_jit_function){address, size, name};
    return true;
}

void sl_jit_free(struct sl_jit_code *code)
{
    free(code->functions);
    *code = (struct sl_jit_code){0};
}

bool jit_read_hex(struct sl_str *text, uint64_t *value)
{
    size_t at = text->size > 2 && text->data[0] == '0' && (text->data[1] | 0x20) == 'x' ? 2 : 0, start = at;
    *value = 0;
    for (int digit; at < text->size && at - start < 16 && (digit = sl_hex_digit(text->data[at])) >= 0; at++)
        *value = *value << 4 | (unsigned)digit;
    if (at == start || at == text->size || (text->data[at] != ' ' && text->data[at] != '\t'))
        return false;
    while (at < text->size && (text->data[at] == ' ' || text->data[at] == '\t'))
        at++;
    *text = (struct sl_str){text->data + at, text->size - at};
    return true;
}

/* ---- overwritten functions ---- */

SL_ORDER_BY(code_by_address, struct sl_jit_function, address)

/* Returns the index of `value` in the sorted bounds; it must be one of them. */
static size_t find_bound(const uint64_t *bounds, size_t count, uint64_t value)
{
    return SL_PARTITION_POINT(middle, 0, count, bounds[middle] <= value) - 1;
}

/* Returns the first free cell at or after `cell` (union-find with path halving): next[i] is i for a free cell. */
static size_t next_free(size_t *next, size_t cell)
{
    while (next[cell] != cell) {
        next[cell] = next[next[cell]];
        cell = next[cell];
    }
    return cell;
}

/* Divides the addresses into cells at all starts and ends of functions. From the last function to the first, each occupies its
 * cells; a function that finds one of them occupied was overwritten by a later one. */
static void drop_overwritten(struct sl_jit_code *code, uint64_t *bounds, size_t *next)
{
    size_t count = 0, kept = code->count;
    for (size_t i = 0; i < code->count; i++) {
        bounds[count++] = code->functions[i].address;
        bounds[count++] = code->functions[i].address + code->functions[i].size;
    }
    qsort(bounds, count, sizeof *bounds, sl_order_u64);
    size_t cells = 0;
    for (size_t i = 0; i < count; i++)
        if (!cells || bounds[cells - 1] != bounds[i])
            bounds[cells++] = bounds[i];
    for (size_t i = 0; i <= cells; i++)
        next[i] = i;
    for (size_t i = code->count; i--;) {
        struct sl_jit_function f = code->functions[i];
        size_t begin = find_bound(bounds, cells, f.address), end = find_bound(bounds, cells, f.address + f.size),
               taken = 0;
        for (size_t cell = next_free(next, begin); cell < end; cell = next_free(next, cell)) {
            next[cell] = cell + 1;
            taken++;
        }
        if (taken == end - begin) /* kept: moved to the end of the array, from where the result is moved back below */
            code->functions[--kept] = f;
    }
    code->count -= kept;
    memmove(code->functions, code->functions + kept, code->count * sizeof *code->functions);
}

enum sl_code sl_jit_finish(struct sl_jit_code *code, struct sl_error *error)
{
    uint64_t *bounds = malloc((2 * code->count + 1) * sizeof *bounds); /* + 1: NULL only when out of memory */
    size_t *next = malloc((2 * code->count + 1) * sizeof *next);       /* of cells, and behind the last one */
    bool good = bounds && next;
    if (good && code->count) {
        drop_overwritten(code, bounds, next);
        qsort(code->functions, code->count, sizeof *code->functions, code_by_address);
    }
    free(bounds);
    free(next);
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- the symbol file ---- */

static bool write_out(void *arg, struct sl_str text)
{
    sl_buf_str(arg, text);
    return !((struct sl_buf *)arg)->failed;
}

/* Writes the functions that begin in [begin, end) as a Breakpad symbol file; one that extends beyond `end` is cut there. */
enum sl_code sl_jit_write(const struct sl_jit_code *code, uint64_t begin, uint64_t end,
                          const struct sl_breakpad_options *options, struct sl_buf *out, size_t *count,
                          struct sl_error *error)
{
    struct sl_breakpad_writer *writer = sl_breakpad_writer_new(options);
    struct sl_function *functions = calloc(code->count + 1, sizeof *functions); /* + 1: NULL only when out of memory */
    struct sl_function_batch batch = {.functions = functions};
    for (size_t i = 0; functions && i < code->count; i++) {
        const struct sl_jit_function *f = &code->functions[i];
        if (f->address >= begin && f->address < end)
            functions[batch.function_count++] = (struct sl_function){
                .address = f->address - begin,
                .size = f->size < end - f->address ? f->size : end - f->address,
                .name = f->name,
            };
    }
    struct sl_breakpad_output output = {write_out, out};
    struct sl_function_sink *sink = writer ? sl_breakpad_writer_sink(writer) : NULL;
    struct sl_arena arena = {0};
    enum sl_code result = writer && functions ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (result == SL_OK && sink->prepare)
        sink->prepare(sink, &batch, &arena, 0); /* 0: worker number of the only thread */
    if (result == SL_OK)
        result = sink->consume(sink, &batch, error);
    if (result == SL_OK)
        result = sl_breakpad_writer_finish(writer, &output, error);
    sl_arena_free(&arena);
    *count = batch.function_count;
    sl_breakpad_writer_free(writer);
    free(functions);
    return result;
}
