/* Stack walking on 32-bit ARM and ARM64. */
#include "unwind/walk_impl.h"

enum {
    ARM_R4 = 4,
    ARM_IOS_FP = 7,
    ARM_FP = 11,
    ARM_SP = 13,
    ARM_LR,
    ARM_PC = 15,
    ARM64_X19 = 19,
    ARM64_FP = 29,
    ARM64_LR,
    ARM64_SP,
    ARM64_PC,
};

#define BITS(first, last) ((UINT64_C(2) << (last)) - (UINT64_C(1) << (first)))

/* ---- arm ---- */

/* Finds the caller by r7, the frame pointer of iOS; WALK_NOTHING on other systems. A frame pointer 0 is that of the outermost frame: then
 * the caller's pc becomes 0, which ends the walk. */
static enum walk_result arm_by_pointer(struct sl_walk_state *s, const struct walk_frame *callee,
                                       struct walk_frame *caller)
{
    unsigned number = ARM_IOS_FP;
    uint64_t fp = callee->registers.value[number], pc = 0, saved = 0;
    if (!s->target.is_ios || !walk_known(&callee->registers, number) || !walk_known(&callee->registers, ARM_SP) ||
        fp >= UINT32_MAX - 8)
        return WALK_NOTHING;
    if (fp && (!walk_read(s, fp + 4, &pc) || !walk_read(s, fp, &saved)))
        return WALK_NOTHING;
    sl_registers_set(&caller->registers, ARM_PC, pc);
    sl_registers_set(&caller->registers, number, saved);
    sl_registers_set(&caller->registers, ARM_SP, fp ? fp + 8 : callee->registers.value[ARM_SP]);
    return WALK_CALLER;
}

const struct walk_cpu walk_arm = {
    .family = SL_CPU_ARM,
    .pc = ARM_PC,
    .sp = ARM_SP,
    .fp = ARM_FP,
    .link = ARM_LR,
    .word = 4,
    .call = 2,
    .preserved = BITS(ARM_R4, ARM_FP),
    .by_frame_pointer = arm_by_pointer,
    .by_scan = walk_by_scan,
    .goes_on = walk_leaf_goes_on,
};

/* ---- arm64 ---- */

/* True if a word may be a code address: it is not in the first page and has at most 52 bits. */
static bool is_arm64_code(uint64_t address)
{
    return address >= 0x1000 && address <= UINT64_C(0x000fffffffffffff);
}

/* Finds the caller by the frame record at x29: the caller's x29, then the return address; both may be signed. The caller's link register is
 * read from the caller's own record, to which the saved x29 points, if there is one. */
static enum walk_result arm64_by_pointer(struct sl_walk_state *s, const struct walk_frame *callee,
                                         struct walk_frame *caller)
{
    const struct sl_registers *from = &callee->registers;
    uint64_t fp = from->value[ARM64_FP], saved, pc, lr;
    /* no frame record: leave the caller to scanning */
    if (!walk_known(from, ARM64_FP) || !walk_known(from, ARM64_SP) || fp >= UINT64_MAX - 16 || !fp ||
        !walk_read(s, fp, &saved) || !walk_read(s, fp + 8, &pc))
        return WALK_NOTHING;
    saved &= s->address_mask;
    pc &= s->address_mask;
    if (!is_arm64_code(pc))
        return WALK_NOTHING;
    if (saved && walk_read(s, saved + 8, &lr))
        sl_registers_set(&caller->registers, ARM64_LR, lr & s->address_mask);
    sl_registers_set(&caller->registers, ARM64_PC, pc);
    sl_registers_set(&caller->registers, ARM64_FP, saved);
    sl_registers_set(&caller->registers, ARM64_SP, fp + 16);
    return WALK_CALLER;
}

const struct walk_cpu walk_arm64 = {
    .family = SL_CPU_ARM64,
    .pc = ARM64_PC,
    .sp = ARM64_SP,
    .fp = ARM64_FP,
    .link = ARM64_LR,
    .word = 8,
    .record = 8,
    .call = 4,
    .preserved = BITS(ARM64_X19, ARM64_FP),
    .by_frame_pointer = arm64_by_pointer,
    .is_code = is_arm64_code,
    .by_scan = walk_by_scan,
    .goes_on = walk_caller_is_possible,
};
