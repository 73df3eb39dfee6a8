/* What a minidump's crash is taken apart into, for people. */
#include "cli/symbolicate/print_analysis.h"

#include "cli/cli.h"

static void put_adjusted(const struct answer_analysis *analysis, struct sl_buf *out)
{
    if (analysis->offset.set)
        sl_buf_printf(out, "Address:    a null pointer + 0x%llx\n", (unsigned long long)analysis->offset.value);
    if (analysis->adjusted.set)
        sl_buf_printf(out, "Address:    0x%llx, which is not canonical\n",
                      (unsigned long long)analysis->adjusted.value);
}

static void put_accesses(const struct answer_analysis *analysis, struct sl_buf *out)
{
    for (size_t i = 0; i < analysis->access_count; i++) {
        const struct answer_access *access = &analysis->accesses[i];
        sl_buf_cstr(out, "Accesses:   ");
        output_put_safe(out, access->type.size ? access->type : SL_STR("access"));
        if (access->size.set)
            sl_buf_printf(out, " of %llu bytes", (unsigned long long)access->size.value);
        sl_buf_printf(out, " at 0x%llx%s\n", (unsigned long long)access->address.value,
                      access->is_guard ? ", likely in a guard page" : "");
    }
}

static void put_flips(const struct answer_analysis *analysis, struct sl_buf *out)
{
    enum { SHOWN = 8 };
    for (size_t i = 0; i < analysis->flip_count && i < SHOWN; i++) {
        const struct answer_flip *flip = &analysis->flips[i];
        sl_buf_printf(out, "Bit flip:   perhaps 0x%llx was meant", (unsigned long long)flip->address.value);
        if (flip->source.size) {
            sl_buf_cstr(out, " by ");
            output_put_safe(out, flip->source);
        }
        sl_buf_cstr(out, ", confidence ");
        output_put_safe(out, flip->confidence);
        sl_buf_u8(out, '\n');
    }
    if (analysis->flip_count > SHOWN)
        sl_buf_printf(out, "Bit flip:   %zu more; -f json has them\n", analysis->flip_count - SHOWN);
}

static void put_inconsistencies(const struct answer_analysis *analysis, struct sl_buf *out)
{
    static const struct {
        struct sl_str name;
        const char *text;
    } rows[] = {
        {SL_STR("int_div_by_zero_not_possible"), "it is told to divide by zero, and does not divide"},
        {SL_STR("priv_instruction_crash_without_priv_instruction"), "it is told to be privileged, and is not"},
        {SL_STR("non_canonical_address_falsely_reported"), "no address that it accesses is not canonical"},
        {SL_STR("crashing_access_not_found_in_memory_accesses"), "it does not access that address"},
        {SL_STR("access_violation_when_access_allowed"), "memory is there that may be accessed so"},
    };
    for (size_t i = 0; i < analysis->inconsistency_count; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (sl_str_equal(rows[k].name, analysis->inconsistencies[i]))
                sl_buf_printf(out, "Doubt:      %s\n", rows[k].text);
}

void answer_put_analysis(const struct answer_analysis *analysis, struct sl_buf *out)
{
    if (analysis->instruction.size) {
        sl_buf_cstr(out, "Code:       ");
        output_put_safe(out, analysis->instruction);
        sl_buf_u8(out, '\n');
    }
    put_accesses(analysis, out);
    if (analysis->next.set)
        sl_buf_printf(out, "Goes on at: 0x%llx\n", (unsigned long long)analysis->next.value);
    put_adjusted(analysis, out);
    if (analysis->is_stack_overflow)
        sl_buf_cstr(out, "Stack:      it likely overflowed\n");
    put_flips(analysis, out);
    put_inconsistencies(analysis, out);
}
