#include "disasm/effects_impl.h"

#include <stdio.h>

bool effects_base(struct effects_reading *r, unsigned number, const char *name, uint64_t *value)
{
    struct sl_disasm_effects *out = r->out;
    if (!r->registers->get(r->registers->arg, number, value)) {
        *value = 0;
        r->is_complete = false;
        return false;
    }
    for (size_t i = 0; i < out->base_count && !r->is_implied; i++)
        if (strcmp(out->bases[i].name, name) == 0)
            return true; /* already recorded */
    if (out->base_count < SL_DISASM_BASES && !r->is_implied) {
        snprintf(out->bases[out->base_count].name, sizeof out->bases->name, "%s", name);
        out->bases[out->base_count++].value = *value;
    }
    return true;
}

void effects_access(struct effects_reading *r, const struct sl_disasm_access *access)
{
    if (r->out->access_count < SL_DISASM_ACCESSES)
        r->out->accesses[r->out->access_count++] = *access;
    else
        r->is_complete = false;
}

/* Disassembles the instruction with LLVM and derives the effects from its text. False if the instruction is invalid or when out of memory;
 * `*out_of_memory` tells which. */
static bool read_arm64(struct effects_reading *r, const struct sl_disasm_code *code, bool *out_of_memory)
{
    struct disasm_engine engine;
    struct disasm_line line = {.why = NULL};
    if (!disasm_llvm_open(true, &engine)) { /* true: AArch64, not ARM */
        *out_of_memory = true;
        return false;
    }
    r->out->size = engine.read(engine.state, SL_ISA_DEFAULT, code->bytes, code->address, &line);
    engine.close(engine.state);
    *out_of_memory = line.text.failed;
    struct sl_str text = sl_buf_view(&line.text);
    snprintf(r->out->text, sizeof r->out->text, SL_STR_FMT, SL_STR_ARG(text));
    if (r->out->size && !line.text.failed)
        effects_arm64(r, text, code->address);
    sl_buf_free(&line.text);
    return r->out->size && !*out_of_memory;
}

enum sl_code sl_disasm_effects(const struct sl_disasm_code *code, const struct sl_disasm_registers *registers,
                               struct sl_disasm_effects *effects, struct sl_error *error)
{
    enum sl_cpu_family family = sl_arch_family(code->arch);
    struct effects_reading r = {.registers = registers, .out = effects, .is_complete = true};
    bool is_x86 = family == SL_CPU_X86 || family == SL_CPU_X86_64, out_of_memory = false;
    *effects = (struct sl_disasm_effects){.flow = SL_DISASM_NEXT};
    if (!is_x86 && family != SL_CPU_ARM64)
        return sl_fail(error, SL_UNSUPPORTED, "effects of %s instructions are not known", sl_arch_name(code->arch));
    bool good = is_x86 ? effects_x86(&r, family == SL_CPU_X86_64, code->bytes, code->address)
                       : read_arm64(&r, code, &out_of_memory);
    if (out_of_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!good)
        return sl_fail(error, SL_MALFORMED, "the bytes are not a valid instruction");
    effects->has_accesses = r.is_complete;
    return SL_OK;
}
