/* Stack walking on x86 and amd64. */
#include "unwind/walk_impl.h"

enum {
    EBX = 3,
    ESP,
    EBP,
    ESI,
    EDI,
    EIP,
    RBX = 3,
    RSI,
    RDI,
    RBP,
    RSP,
    R12 = 12,
    RIP = 16,
    MAX_FRAME_GAP = 128 << 10, /* a saved frame pointer found by scanning points at most so many bytes upwards */
    MAX_FRAME_OFFSET = 240,    /* on Windows rbp may point so many bytes below the frame record (UWOP_SET_FPREG) */
};

#define BIT(n) (UINT64_C(1) << (n))

/* walk_cpu.goes_on: true if the caller's stack pointer is above the callee's. It always is, since each call pushes a return address. */
static bool grows(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller)
{
    unsigned sp = s->cpu->sp;
    return caller->registers.value[sp] > callee->registers.value[sp];
}

static bool is_readable(const struct sl_walk_state *s, uint64_t address)
{
    uint64_t ignored;
    return walk_read(s, address, &ignored);
}

/* ---- x86 ---- */

/* Finds the caller by ebp, which points to the saved ebp of the caller; the return address is above that. */
static enum walk_result x86_by_pointer(struct sl_walk_state *s, const struct walk_frame *callee,
                                       struct walk_frame *caller)
{
    uint64_t ebp = callee->registers.value[EBP], value;
    if (!walk_known(&callee->registers, EBP) || ebp >= UINT32_MAX - 8 || !walk_read(s, ebp + 4, &value))
        return WALK_NOTHING;
    sl_registers_set(&caller->registers, EIP, value);
    if (!walk_read(s, ebp, &value))
        return WALK_NOTHING;
    sl_registers_set(&caller->registers, EBP, value);
    sl_registers_set(&caller->registers, ESP, ebp + 8);
    return WALK_CALLER;
}

/* Sets ebp of a caller found by scanning; `at` is where the stack has the return address. The word below `at` is taken as the saved ebp if
 * it points upwards by at most MAX_FRAME_GAP. Otherwise the callee may not have changed ebp: its value is kept if it points above the
 * return address. The stack must be readable where ebp points. */
static void x86_saved_pointer(struct sl_walk_state *s, uint64_t at, const struct walk_frame *callee,
                              struct walk_frame *caller)
{
    uint64_t value, ebp = callee->registers.value[EBP];
    if (!walk_read_stack(s, at - 4, 4, &value))
        return;
    if (value > at && value - (at - 4) <= MAX_FRAME_GAP) {
        if (is_readable(s, value))
            sl_registers_set(&caller->registers, EBP, value);
    } else if (walk_known(&callee->registers, EBP) && ebp >= at + 4 && is_readable(s, ebp)) {
        sl_registers_set(&caller->registers, EBP, ebp);
    }
}

const struct walk_cpu walk_x86 = {
    .family = SL_CPU_X86,
    .pc = EIP,
    .sp = ESP,
    .fp = EBP,
    .word = 4,
    .call = 1,
    .preserved = BIT(EBP) | BIT(EBX) | BIT(EDI) | BIT(ESI),
    .by_frame_pointer = x86_by_pointer,
    .by_scan = walk_by_scan,
    .saved_pointer = x86_saved_pointer,
    .goes_on = grows,
};

/* ---- amd64 ---- */

static bool is_canonical(uint64_t address)
{
    return address < UINT64_C(0x800000000000) || address >= UINT64_C(0xffff800000000000);
}

/* Tries to read a frame record `offset` bytes above rbp. WALK_NOTHING if there is none; WALK_END if larger offsets need not be tried
 * either, because the record, or what the saved rbp points to, is not in the dump. */
static enum walk_result amd64_pointer_at(const struct sl_walk_state *s, const struct walk_frame *callee,
                                         uint64_t offset, struct walk_frame *caller)
{
    uint64_t rbp = callee->registers.value[RBP], ip, bp, sp = rbp + offset + 16;
    if (!walk_read(s, rbp + offset + 8, &ip) || !walk_read(s, rbp + offset, &bp))
        return WALK_END;
    if (sp <= rbp || bp < sp) /* overflow; or the saved rbp does not point to an outer frame */
        return WALK_NOTHING;
    if (!is_readable(s, bp))
        return WALK_END;
    if (!is_canonical(ip) || sp <= callee->registers.value[RSP] || !is_readable(s, sp))
        return WALK_NOTHING;
    sl_registers_set(&caller->registers, RIP, ip);
    sl_registers_set(&caller->registers, RSP, sp);
    sl_registers_set(&caller->registers, RBP, bp);
    return WALK_CALLER;
}

/* Finds the caller by the frame record at rbp or, on Windows, up to 240 bytes above rbp, in steps of 16 (UWOP_SET_FPREG). */
static enum walk_result amd64_by_pointer(struct sl_walk_state *s, const struct walk_frame *callee,
                                         struct walk_frame *caller)
{
    enum walk_result result = WALK_NOTHING;
    uint64_t last = s->target.is_windows ? MAX_FRAME_OFFSET : 0;
    if (!walk_known(&callee->registers, RBP) || !walk_known(&callee->registers, RSP) ||
        callee->registers.value[RBP] >= UINT64_MAX - 16)
        return WALK_NOTHING;
    for (uint64_t offset = 0; offset <= last && result == WALK_NOTHING; offset += 16)
        result = amd64_pointer_at(s, callee, offset, caller);
    return result == WALK_CALLER ? result : WALK_NOTHING;
}

/* Sets rbp of a caller found by scanning; `at` is where the stack has the return address. If the callee's rbp points to the word below
 * `at`, that word is the saved rbp. Otherwise the callee's rbp is kept if it points above the return address. */
static void amd64_saved_pointer(struct sl_walk_state *s, uint64_t at, const struct walk_frame *callee,
                                struct walk_frame *caller)
{
    uint64_t rbp = callee->registers.value[RBP], value;
    if (!walk_known(&callee->registers, RBP) || !walk_read_stack(s, at - 8, 8, &value))
        return;
    if (rbp == at - 8 && value > at && value - (at - 8) <= MAX_FRAME_GAP) {
        if (is_readable(s, value))
            sl_registers_set(&caller->registers, RBP, value);
    } else if (rbp >= at + 8) {
        sl_registers_set(&caller->registers, RBP, rbp);
    }
}

const struct walk_cpu walk_amd64 = {
    .family = SL_CPU_X86_64,
    .pc = RIP,
    .sp = RSP,
    .fp = RBP,
    .word = 8,
    .call = 1,
    .preserved = BIT(RBX) | BIT(RBP) | BIT(R12) | BIT(13) | BIT(14) | BIT(15),
    .by_frame_pointer = amd64_by_pointer,
    .is_code = is_canonical,
    .by_scan = walk_by_scan,
    .saved_pointer = amd64_saved_pointer,
    .goes_on = grows,
};
