/* Finds the caller of the innermost frame by simulating its return: the return address is in the link register or, on x86, on top of the
 * stack.
 *
 * That is so if the program has called a bad address, where nothing has been executed, and in leaf functions of processors with a link
 * register. In a function that has called others that register has an old value. */
#include "unwind/walk_impl.h"

enum { FIRST_CODE = 4096 }; /* addresses in the first page are no code */

/* True if an x86 call instruction ends at `end`, before which 8 bytes can be read: `ff /2` with each possible length, or `e8` with 4 bytes
 * of distance (Intel 64 and IA-32 Architectures Software Developer's Manual, CALL). */
static bool is_call(const uint8_t *end)
{
    static const uint8_t lengths[] = {2, 3, 4, 6, 7};
    for (size_t i = 0; i < sizeof lengths; i++)
        if (end[-lengths[i]] == 0xFF && (end[1 - lengths[i]] >> 3 & 7) == 2)
            return true;
    return end[-5] == 0xE8;
}

/* x86: true if a call instruction ends at the address, or if the code there is not in the dump. Otherwise a word of the stack with this
 * value is no return address. */
static bool may_follow_call(const struct sl_walk_state *s, uint64_t address)
{
    uint8_t code[8];
    uint64_t byte;
    for (size_t i = 0; i < sizeof code; i++) {
        if (!s->stack.read || !s->stack.read(s->stack.arg, address - sizeof code + i, 1, &byte))
            return true;
        code[i] = (uint8_t)byte;
    }
    return is_call(code + sizeof code);
}

/* Gets what would be the return address if the innermost frame had just been called: the word on top of the stack or, on processors that
 * have one, the link register. False if that is unknown, or if no call instruction precedes the address on the stack. */
static bool return_address(const struct sl_walk_state *s, const struct walk_frame *callee, uint64_t *address)
{
    const struct walk_cpu *cpu = s->cpu;
    const struct sl_registers *from = &callee->registers;
    if (!cpu->link)
        return walk_read(s, from->value[cpu->sp], address) && may_follow_call(s, *address);
    /* on ARM64 the upper bits may have a signature (pointer authentication) */
    *address = from->value[cpu->link] & (cpu->family == SL_CPU_ARM64 ? s->address_mask : UINT64_MAX);
    return walk_known(from, cpu->link);
}

/* Returns WALK_CALLER if the innermost function, which is in a module, may be a leaf whose return address is `address`. WALK_NOTHING on
 * x86; if CFI covers the function, which is better; if the innermost frame record contains the same address (the prologue has stored it);
 * or if the address is in the function itself, which has called others then. WALK_WAIT if CFI or symbols must be loaded first. */
static enum walk_result may_be_leaf(struct sl_walk_state *s, const struct walk_frame *callee, uint64_t address)
{
    const struct sl_walk_symbols *symbols = NULL;
    uint64_t saved, base = s->modules[callee->module].base;
    enum walk_result result = s->cpu->link ? walk_has_cfi(s, callee) : WALK_CALLER; /* x86: as if it had CFI */
    if (result != WALK_NOTHING)
        return result == WALK_WAIT ? WALK_WAIT : WALK_NOTHING;
    /* cpu->record: offset of the return address in a frame record, 0 if the processor has none */
    bool has_record = s->cpu->record && walk_known(&callee->registers, s->cpu->fp) &&
                      walk_read(s, callee->registers.value[s->cpu->fp] + (uint64_t)s->cpu->record, &saved);
    if (has_record && (saved & s->address_mask) == address)
        return WALK_NOTHING;
    if (walk_module_at(s, address - s->cpu->call) != callee->module) /* minus cpu->call: in the call instruction */
        return WALK_CALLER;
    if (walk_symbols(s, callee->module, &symbols) == WALK_WAIT)
        return WALK_WAIT;
    bool is_own = symbols && symbols->same_function(symbols, callee->instruction - base, address - s->cpu->call - base);
    return is_own ? WALK_NOTHING : WALK_CALLER;
}

enum walk_result walk_by_return(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller)
{
    const struct walk_cpu *cpu = s->cpu;
    uint64_t address;
    if (callee->trust != SL_TRUST_CONTEXT || /* only the innermost frame has this trust */
        !walk_known(&callee->registers, cpu->sp) || !return_address(s, callee, &address) ||
        address < FIRST_CODE) /* the first page is no code */
        return WALK_NOTHING;
    enum walk_result result = callee->module == SL_WALK_NO_MODULE ? WALK_CALLER : may_be_leaf(s, callee, address);
    if (result == WALK_CALLER)
        result = walk_is_plausible_code(s, address);
    if (result != WALK_CALLER)
        return result;
    walk_keep_preserved(cpu, &callee->registers, &caller->registers);
    uint64_t sp = callee->registers.value[cpu->sp] + (cpu->link ? 0 : cpu->word); /* x86 pops the return address */
    sl_registers_set(&caller->registers, cpu->sp, walk_truncate(cpu, sp));
    sl_registers_set(&caller->registers, cpu->pc, address);
    return WALK_CALLER;
}
