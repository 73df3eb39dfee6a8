/* Stack walking on RISC-V with 32 and 64 bits (RISC-V ABIs Specification 1.0: "Register Convention", "Frame Pointer Convention"). */
#include "unwind/walk_impl.h"

enum { RISCV_RA = 1, RISCV_SP, RISCV_GP, RISCV_TP, RISCV_S0 = 8, RISCV_S1, RISCV_S2 = 18, RISCV_S11 = 27 };
enum { RISCV_PC = SL_WALK_RISCV_PC, RISCV_F0 = 32, RISCV_F31 = 63, SHORTEST_CALL = 2 };

#define BITS(first, last) ((UINT64_C(2) << (last)) - (UINT64_C(1) << (first)))
#define PRESERVED         (BITS(RISCV_SP, RISCV_TP) + BITS(RISCV_S0, RISCV_S1) + BITS(RISCV_S2, RISCV_S11))

/* Reads the frame record below `fp`, which is the caller's stack pointer: the return address and, below that, the caller's frame pointer.
 * False if `fp` is not aligned or the words are not in the dump. */
static bool riscv_record(const struct sl_walk_state *s, uint64_t fp, uint64_t *pc, uint64_t *saved)
{
    unsigned word = s->cpu->word;
    return fp >= 2 * word && fp % word == 0 && walk_read(s, fp - word, pc) && walk_read(s, fp - 2 * word, saved);
}

/* True if `fp` still belongs to a leaf that the callee has called: simulating the leaf's return (callee->is_return) does not change s0. In
 * its record a leaf stores no return address but, in that place, the callee's frame pointer. It was read as `pc` and is recognised by
 * pointing into the stack above `fp`. */
static bool is_record_of_leaf(const struct sl_walk_state *s, const struct walk_frame *callee, uint64_t fp, uint64_t pc)
{
    uint64_t value;
    return callee->is_return && pc > fp && walk_read_stack(s, pc - s->cpu->word, s->cpu->word, &value);
}

/* Finds the caller by the frame pointer s0. Code often uses that register for something else, so the return address must be plausible, or 0
 * like the saved frame pointer, as in the outermost frame. WALK_WAIT if CFI or symbols must be loaded first to judge the address. If s0
 * still belongs to a leaf that the callee has called, the leaf's record leads to that of the callee (is_record_of_leaf). */
static enum walk_result riscv_by_pointer(struct sl_walk_state *s, const struct walk_frame *callee,
                                         struct walk_frame *caller)
{
    uint64_t fp = callee->registers.value[RISCV_S0], pc, saved;
    if (!walk_known(&callee->registers, RISCV_S0) || !walk_known(&callee->registers, RISCV_SP) ||
        !riscv_record(s, fp, &pc, &saved))
        return WALK_NOTHING;
    if (is_record_of_leaf(s, callee, fp, pc)) {
        fp = pc; /* the callee's own frame pointer */
        if (!riscv_record(s, fp, &pc, &saved))
            return WALK_NOTHING;
    }
    bool is_last = !pc && !saved;
    enum walk_result result = is_last ? WALK_CALLER : walk_is_plausible_code(s, pc);
    if (result != WALK_CALLER)
        return result;
    sl_registers_set(&caller->registers, RISCV_PC, pc);
    sl_registers_set(&caller->registers, RISCV_S0, saved);
    sl_registers_set(&caller->registers, RISCV_SP, fp);
    return WALK_CALLER;
}

/* In call frame information the numbers from 32 on are the floating point registers, whose values the walker does not know; it stores pc
 * under 32. So rules for them are ignored (`untracked`). */
#define RISCV(bits, bytes)                                                                                             \
    {                                                                                                                  \
        .family = SL_CPU_RISCV##bits, .pc = RISCV_PC, .sp = RISCV_SP, .fp = RISCV_S0, .link = RISCV_RA, .word = bytes, \
        .record = -bytes, .call = SHORTEST_CALL, .preserved = PRESERVED, .untracked = BITS(RISCV_F0, RISCV_F31),       \
        .by_frame_pointer = riscv_by_pointer, .by_scan = walk_by_scan, .goes_on = walk_caller_is_possible,             \
    }

const struct walk_cpu walk_riscv = RISCV(, 4);
const struct walk_cpu walk_riscv64 = RISCV(64, 8);
