/* Bytes as machine code: the first says of which processor, and whether the next are marks of its forms. Every instruction is text,
 * they follow each other without a gap, and what is no instruction does not end it. What the first one does is told, too. */
#include <stdlib.h>

#include "disasm/effects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t next, lines;
    unsigned step;
};

static bool line(void *arg, uint64_t offset, struct sl_str text)
{
    struct seen *seen = arg;
    if (!text.size || !sl_str_is_utf8(text) || offset < seen->next || (seen->lines && offset > seen->next + 15))
        abort();
    seen->next = offset + 1;
    seen->lines++;
    return true;
}

static void name(void *arg, uint64_t address, struct sl_buf *out)
{
    (void)arg;
    if (address & 1)
        sl_buf_printf(out, "f%llx", (unsigned long long)address);
}

static bool get_register(const void *arg, unsigned number, uint64_t *value)
{
    (void)arg;
    *value = UINT64_MAX / 7 * number;
    return number % 5 != 4;
}

static void look_at_effects(const struct sl_disasm_code *code)
{
    const struct sl_disasm_registers registers = {.get = get_register, .has_segment = true, .segment = UINT64_MAX};
    struct sl_disasm_effects effects;
    struct sl_error error;
    enum sl_code result = sl_disasm_effects(code, &registers, &effects, &error);
    if (result != SL_OK && result != SL_MALFORMED && (result != SL_UNSUPPORTED || code->arch != SL_ARCH_ARMV7))
        abort();
    if (result == SL_OK && (!effects.size || effects.size > code->bytes.size || !effects.text[0]))
        abort();
    if (effects.access_count > SL_DISASM_ACCESSES || effects.base_count > SL_DISASM_BASES ||
        !sl_str_is_utf8(sl_str(effects.text)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum sl_arch archs[] = {SL_ARCH_X86, SL_ARCH_X86_64, SL_ARCH_ARMV7, SL_ARCH_ARM64};
    enum { MARKS = 4 };
    struct sl_mapping_symbol mapping_symbols[MARKS];
    struct seen seen = {0};
    struct sl_disasm_reader reader = {line, name, &seen};
    struct sl_error error;
    uint64_t decoded;
    if (size < 2)
        return 0;
    struct sl_disasm_code code = {.arch = archs[data[0] & 3],
                                  .bytes = {data + 1, size - 1},
                                  .address = (uint64_t)data[0] << 12,
                                  .size = data[0] & 4 ? size : size / 2};
    if (data[0] & 8 && size > 1 + MARKS) {
        uint64_t at = code.address;
        for (int i = 0; i < MARKS; i++) {
            at += data[1 + i] >> 2;
            mapping_symbols[i] = (struct sl_mapping_symbol){at, (enum sl_code_isa)(data[1 + i] & 3), 0};
        }
        code.mapping_symbols = mapping_symbols;
        code.mapping_symbol_count = MARKS;
        code.bytes = (struct sl_bytes){data + 1 + MARKS, size - 1 - MARKS};
    }
    if (sl_disasm(&code, &reader, &decoded, &error) != SL_OK || decoded > code.bytes.size || seen.next > decoded)
        abort();
    look_at_effects(&code);
    return 0;
}
