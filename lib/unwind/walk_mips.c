/* Stack walking on MIPS with 32 and 64 bits, which has no conventional frame pointer. */
#include "unwind/walk_impl.h"

enum { MIPS_S0 = 16, MIPS_S7 = 23, MIPS_GP = 28, MIPS_SP, MIPS_FP, MIPS_RA, MIPS_PC = 34, FIRST_CODE = 0x1000 };

#define PRESERVED                                                                                                      \
    ((UINT64_C(2) << MIPS_S7) - (UINT64_C(1) << MIPS_S0) + (UINT64_C(1) << MIPS_GP) + (UINT64_C(1) << MIPS_SP) +       \
     (UINT64_C(1) << MIPS_FP))

/* Finds the caller by scanning 1024 bytes of the stack for a return address. In 32-bit code the first four words are skipped, except for
 * the innermost frame: a function that makes calls reserves them for the arguments in registers. WALK_WAIT if CFI or symbols must be
 * loaded first to judge a word. */
static enum walk_result mips_by_scan(struct sl_walk_state *s, const struct walk_frame *callee,
                                     struct walk_frame *caller)
{
    enum { BYTES = 1024, ARGUMENTS = 16 };
    unsigned word = s->cpu->word, skip = word == 4 && callee->trust != SL_TRUST_CONTEXT ? ARGUMENTS : 0;
    uint64_t sp = callee->registers.value[MIPS_SP], value;
    if (!walk_known(&callee->registers, MIPS_SP))
        return WALK_NOTHING;
    for (unsigned offset = skip; offset < BYTES; offset += word) {
        if (sp + offset < sp || !walk_read_stack(s, sp + offset, word, &value))
            return WALK_NOTHING;
        enum walk_result result = value >= FIRST_CODE ? walk_is_plausible_code(s, value) : WALK_NOTHING;
        if (result == WALK_NOTHING)
            continue;
        sl_registers_set(&caller->registers, MIPS_PC, value);
        sl_registers_set(&caller->registers, MIPS_SP, walk_truncate(s->cpu, sp + offset + word));
        return result;
    }
    return WALK_NOTHING;
}

#define MIPS(bytes)                                                                                                    \
    {                                                                                                                  \
        .family = bytes == 8 ? SL_CPU_MIPS64 : SL_CPU_MIPS, .pc = MIPS_PC, .sp = MIPS_SP, .fp = MIPS_FP,               \
        .link = MIPS_RA, .word = bytes, .call = 8, .preserved = PRESERVED, .by_scan = mips_by_scan,                    \
        .goes_on = walk_leaf_goes_on,                                                                                  \
    }

const struct walk_cpu walk_mips = MIPS(4), walk_mips64 = MIPS(8);
