/* Analyses the instruction that crashed and the likely cause. */
#include "minidump/analysis.h"

#include "base/search.h"
#include "minidump/regions.h"

enum {
    LOW = 0x2000,             /* addresses up to here are a null pointer and the offset of a member */
    NEARBY = 0x1000,          /* distance within which a register confirms that an address is meant */
    MAX_GUARD = 32 << 10,     /* regions without access of at least this size are no guard pages */
    MAX_STACK_GAP = 64 << 10, /* an access farther from the stack pointer or the stack is no stack overflow */
    MAX_FLIPS = 64 * (SL_DISASM_BASES + 1) /* each bit of the accessed address, and of each register used for it */
};
enum { STACK_OVERFLOW = 0xC00000FD, ACCESS_VIOLATION = 0xC0000005 };
enum operation { ANY, READ, WRITE, EXECUTE }; /* what was not permitted; ANY: the dump does not say */

/* x86-64: from the first to the last address are those whose upper 17 bits are not all equal, where no memory can be */
static const uint64_t non_canonical_first = UINT64_C(0x0000800000000000),
                      non_canonical_last = UINT64_C(0xFFFF7FFFFFFFFFFF);

struct analyser {
    const struct sl_minidump *dump;
    struct dump_regions regions;
    struct sl_minidump_analysis *out;
    struct dump_exception exception;
    const struct sl_minidump_thread *thread; /* NULL: unknown */
    enum sl_cpu_family family;
    struct sl_registers registers;
    struct sl_walk_numbers numbers;
    enum operation operation;
};

static bool is_apple(const struct sl_minidump *dump)
{
    return dump->os == SL_MINIDUMP_MACOS || dump->os == SL_MINIDUMP_IOS;
}

static bool is_linux(const struct sl_minidump *dump)
{
    return dump->os == SL_MINIDUMP_LINUX || dump->os == SL_MINIDUMP_ANDROID;
}

static bool is_x86(const struct analyser *r)
{
    return r->family == SL_CPU_X86 || r->family == SL_CPU_X86_64;
}

/* ---- the instruction ---- */

/* Returns the value of a register; false if it is unknown. */
static bool get_register(const void *arg, unsigned number, uint64_t *value)
{
    const struct sl_registers *registers = arg;
    *value = number < SL_WALK_REGISTERS ? registers->value[number] : 0;
    return number < SL_WALK_REGISTERS && (registers->valid >> number & 1);
}

/* Returns the architecture whose instructions can be analysed; SL_ARCH_UNKNOWN for all others. */
static enum sl_arch arch_of_family(enum sl_cpu_family family)
{
    switch (family) {
    case SL_CPU_X86: return SL_ARCH_X86;
    case SL_CPU_X86_64: return SL_ARCH_X86_64;
    case SL_CPU_ARM64: return SL_ARCH_ARM64;
    default: return SL_ARCH_UNKNOWN;
    }
}

/* Reads a pointer at an address of the process: from the memory in the dump, else from the thread's stack, which the dump's memory list may
 * leave out. False if the dump has neither. */
static bool memory_word(const struct analyser *r, uint64_t address, uint64_t *value)
{
    const struct sl_minidump_memory *stack = &r->thread->stack;
    unsigned size = sl_cpu_pointer_size(r->family);
    if (dump_memory_read(r->dump, address, size, value))
        return true;
    if (address < stack->address || address - stack->address >= stack->bytes.size)
        return false;
    struct sl_reader words = dump_make_reader(r->dump, stack->bytes);
    sl_reader_seek(&words, address - stack->address);
    *value = sl_read_uint(&words, size);
    return !words.failed;
}

/* Decodes the instruction at the program counter, and sets out->next if it jumps. If the dump does not have it, or it cannot be decoded,
 * SL_OK and out->has_instruction stays false; the only failure is SL_BUSY. */
static enum sl_code read_instruction(struct analyser *r, struct sl_error *error)
{
    /* bytes to decode: an instruction of x86 has at most 15, one of ARM 4 */
    enum { LONGEST = 16 };
    struct sl_minidump_analysis *out = r->out;
    uint64_t pc;
    const struct sl_minidump_memory *memory =
        r->thread && get_register(&r->registers, r->numbers.pc, &pc) ? sl_minidump_memory_at(r->dump, pc) : NULL;
    if (!memory || arch_of_family(r->family) == SL_ARCH_UNKNOWN)
        return SL_OK;
    size_t at = (size_t)(pc - memory->address), left = memory->bytes.size - at;
    const struct sl_disasm_code code = {.arch = arch_of_family(r->family),
                                        .bytes = {memory->bytes.data + at, left < LONGEST ? left : LONGEST},
                                        .address = pc,
                                        .size = 1}; /* decode a single instruction */
    /* on Windows the segment register of a thread points to its environment block */
    bool has_segment = r->dump->os == SL_MINIDUMP_WINDOWS && r->thread->environment;
    const struct sl_disasm_registers registers = {
        .get = get_register, .arg = &r->registers, .has_segment = has_segment, .segment = r->thread->environment};
    enum sl_code result = sl_disasm_effects(&code, &registers, &out->effects, error);
    out->has_instruction = result == SL_OK;
    if (out->has_instruction && out->effects.flow == SL_DISASM_DIRECT) {
        out->has_next = true;
        out->next = out->effects.target;
    } else if (out->has_instruction && out->effects.flow == SL_DISASM_INDIRECT) {
        out->has_next = memory_word(r, out->effects.target, &out->next);
    }
    return result == SL_BUSY ? result : SL_OK;
}

/* ---- the address ---- */

/* True for an x86-64 address whose upper 17 bits are not all equal: no memory can be there. */
static bool is_non_canonical(uint64_t address)
{
    return address >= non_canonical_first && address <= non_canonical_last;
}

/* True for a general protection fault of x86-64. For it, systems do not report the accessed address: Windows writes -1, others write 0. */
static bool is_general_protection_fault(const struct analyser *r)
{
    const struct dump_exception *e = &r->exception;
    uint64_t address = r->dump->crash_address;
    if (r->family != SL_CPU_X86_64)
        return false;
    if (r->dump->os == SL_MINIDUMP_WINDOWS)
        return r->operation == READ && address == UINT64_MAX;
    if (is_apple(r->dump))
        return e->code == 1 && e->flags == 13 && !address; /* EXC_BAD_ACCESS, EXC_I386_GPFLT */
    /* SIGSEGV or SIGBUS, SI_KERNEL */
    return is_linux(r->dump) && (e->code == 11 || e->code == 7) && e->flags == 0x80 && !address;
}

/* Sets the address that was accessed in fact, and why it differs from the reported one. Always true. */
static bool set_adjustment(struct analyser *r, enum sl_minidump_adjustment adjustment, uint64_t address)
{
    r->out->adjustment = adjustment;
    r->out->adjusted = address;
    return true;
}

/* Finds the address that was accessed in fact, if it is not the reported one. It may be relative to a null pointer in a register; 0 itself,
 * after a jump or call to NULL; or, after a general protection fault, a non-canonical address, which the system does not report. */
static void adjust_address(struct analyser *r)
{
    const struct sl_disasm_effects *effects = &r->out->effects;
    if (!r->out->has_instruction || !effects->has_accesses)
        return;
    for (size_t i = 0; i < effects->access_count; i++)
        if (effects->accesses[i].base_is_null) {
            set_adjustment(r, SL_MINIDUMP_NULL_POINTER, effects->accesses[i].address);
            return;
        }
    if (r->out->has_next && !r->out->next) {
        set_adjustment(r, SL_MINIDUMP_NULL_POINTER, 0);
        return;
    }
    if (!is_general_protection_fault(r))
        return;
    for (size_t i = 0; i < effects->access_count; i++)
        if (is_non_canonical(effects->accesses[i].address)) {
            set_adjustment(r, SL_MINIDUMP_NON_CANONICAL, effects->accesses[i].address);
            return;
        }
    if (r->out->has_next && is_non_canonical(r->out->next))
        set_adjustment(r, SL_MINIDUMP_NON_CANONICAL, r->out->next);
}

/* ---- regions ---- */

static bool is_accessible(const struct dump_region *region)
{
    return !region->is_guard && (region->readable || region->writable || region->executable);
}

/* True if the region permits this operation; always for ANY. */
static bool is_allowed(const struct dump_region *region, enum operation operation)
{
    switch (operation) {
    case READ: return region->readable;
    case WRITE: return region->writable;
    case EXECUTE: return region->executable;
    default: return true;
    }
}

/* True if the address is in a region without access, smaller than MAX_GUARD, that is marked as a guard or adjoins an accessible region. */
static bool is_guard_page(const struct dump_regions *regions, uint64_t address)
{
    const struct dump_region *region = dump_region_at(regions, address);
    if (!region || is_accessible(region) || region->last - region->first >= MAX_GUARD)
        return false;
    size_t index = (size_t)(region - regions->items);
    bool is_behind = index && region[-1].last + 1 == region->first && is_accessible(&region[-1]);
    bool is_before = index + 1 < regions->count && region->last + 1 == region[1].first && is_accessible(&region[1]);
    return region->is_guard || is_behind || is_before;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t distance)
{
    return (a > b ? a - b : b - a) <= distance;
}

/* True for an overflow of the stack. Windows may report it as an exception of its own. Otherwise it is one if the accessed address is near
 * the stack pointer and not accessible, and the next accessible region above the address is near, readable and writable: that can be the
 * stack. */
static bool is_stack_overflow(const struct analyser *r)
{
    const struct dump_regions *regions = &r->regions;
    uint64_t address = r->dump->crash_address, sp;
    if (r->dump->os == SL_MINIDUMP_WINDOWS && r->exception.code == STACK_OVERFLOW)
        return true;
    if (!r->thread || !get_register(&r->registers, r->numbers.sp, &sp) || !is_near(address, sp, MAX_STACK_GAP))
        return false;
    const struct dump_region *at = dump_region_at(regions, address);
    if (at && is_accessible(at))
        return false;
    /* from the first region above the address on */
    for (size_t i = SL_COUNT_UP_TO(regions->items, regions->count, first, address); i < regions->count; i++)
        if (is_accessible(&regions->items[i]))
            return regions->items[i].readable && regions->items[i].writable &&
                   regions->items[i].first - address <= MAX_STACK_GAP;
    return false;
}

/* ---- flipped bits ---- */

/* True for a word of equal bytes with which allocators and debuggers fill memory that is not in use. */
static bool is_poison(uint64_t value)
{
    static const uint8_t fillers[] = {0x2B, 0x2D, 0x2F, 0x49, 0x4B, 0x4D, 0x4F, 0x6B, 0x8B,
                                      0x9B, 0x9F, 0xA5, 0xBB, 0xCC, 0xCD, 0xCE, 0xDB, 0xE5};
    return value == (value & 0xFF) * UINT64_C(0x0101010101010101) &&
           memchr(fillers, (int)(value & 0xFF), sizeof fillers);
}

/* Returns how likely a flipped bit is the cause, from 0 to 1, with rust-minidump's numbers. Doubt is less if the address was non-canonical,
 * if the corrected one is null, or if registers point near it. Poison in a register, a filler of freed memory, halves the result: the
 * memory may have been used after it was freed. */
static double flip_confidence(const struct sl_minidump_flip *flip)
{
    static const double of_nearby[] = {1, 0.5, 0.45, 0.4, 0.35}; /* by number of registers that point nearby */
    double doubt = 0.75;
    doubt *= flip->was_non_canonical ? 0.1 : 1;
    doubt *= !flip->is_null ? 1 : flip->was_low ? 0.75 : 0.5; /* corrected to null: from a small number, from another */
    doubt *= of_nearby[flip->nearby < 4 ? flip->nearby : 4];
    return (1 - doubt) * (flip->has_poison ? 0.5 : 1);
}

/* Adds to the results `address`, which differs in one bit from `original`, the value of the register `source` (NULL: the accessed address),
 * and how likely it is the intended one. */
static void add_flip(const struct analyser *r, uint64_t original, uint64_t address, const char *source)
{
    struct sl_minidump_flip *flip = &r->out->flips[r->out->flip_count++];
    *flip = (struct sl_minidump_flip){
        .address = address,
        .source = source,
        .was_non_canonical = r->out->adjustment == SL_MINIDUMP_NON_CANONICAL,
        .is_null = !address,
        .was_low = !address && original <= LOW,
    };
    for (unsigned i = 0; i < SL_WALK_REGISTERS; i++) {
        uint64_t value;
        if (!get_register(&r->registers, i, &value))
            continue;
        flip->nearby += address > LOW && is_near(address, value, NEARBY); /* small numbers do not count as pointers */
        flip->has_poison |= is_poison(value);
    }
    flip->confidence = flip_confidence(flip);
}

/* Returns the distance to the closest region that permits the operation; UINT64_MAX if there is none. */
static uint64_t distance_to_memory(const struct analyser *r, uint64_t address)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < r->regions.count; i++) {
        const struct dump_region *region = &r->regions.items[i];
        uint64_t distance = address < region->first  ? region->first - address
                            : address > region->last ? address - region->last
                                                     : 0;
        if (is_allowed(region, r->operation) && distance < least)
            least = distance;
    }
    return least;
}

/* Adds the addresses that differ from `address` in one bit and are 0 or in memory that permits the operation. None if the access may touch
 * such memory already: `address` lies there, or less than the size of the access before or behind it. Only bits that can have been the
 * cause are tried: the upper 16 of a non-canonical address; else, on x86-64, the lower 48. */
static void flip_bits(const struct analyser *r, uint64_t address, const char *source, uint32_t access_size)
{
    bool high = r->out->adjustment == SL_MINIDUMP_NON_CANONICAL;
    unsigned end = high || r->family != SL_CPU_X86_64 ? 64 : 48;
    const struct dump_region *region = dump_region_at(&r->regions, address);
    if ((region && is_allowed(region, r->operation)) || distance_to_memory(r, address) < access_size)
        return;
    for (unsigned bit = high ? 48 : 0; bit < end; bit++) {
        uint64_t other = address ^ UINT64_C(1) << bit;
        region = dump_region_at(&r->regions, other);
        if (!other || (region && is_allowed(region, r->operation)))
            add_flip(r, address, other, source);
    }
}

/* Returns the memory access of the instruction that includes the address, in this direction (SL_DISASM_READS or SL_DISASM_WRITES, 0 = any);
 * NULL if there is none. */
static const struct sl_disasm_access *access_at(const struct sl_disasm_effects *effects, uint64_t address,
                                                unsigned direction)
{
    for (size_t i = 0; i < effects->access_count; i++) {
        const struct sl_disasm_access *access = &effects->accesses[i];
        if (address - access->address < access->size &&
            (!direction || access->direction == direction || access->direction == (SL_DISASM_READS | SL_DISASM_WRITES)))
            return access;
    }
    return NULL;
}

/* Adds what flipped bits in the registers that the instruction uses as addresses would explain, in order of the register names. Each turn
 * of the loop takes the next name after the last one. */
static void flip_registers(const struct analyser *r, uint32_t access_size)
{
    const struct sl_disasm_effects *effects = &r->out->effects;
    const struct sl_disasm_base *last = NULL;
    for (size_t n = 0; n < effects->base_count; n++) {
        const struct sl_disasm_base *next = NULL;
        for (size_t i = 0; i < effects->base_count; i++) {
            const struct sl_disasm_base *base = &effects->bases[i];
            if ((!last || strcmp(base->name, last->name) > 0) && (!next || strcmp(base->name, next->name) < 0))
                next = base;
        }
        if (!next)
            return;
        flip_bits(r, next->value, next->name, access_size);
        last = next;
    }
}

/* Finds valid addresses that differ in one bit, flipped by a defect of the hardware, from the accessed one or from a register. None for
 * null pointers, on processors other than x86-64 and AArch64, or on AArch64 if the accesses are unknown. False when out of memory. */
static bool find_flips(struct analyser *r, struct sl_arena *arena)
{
    const struct sl_minidump_analysis *out = r->out;
    const struct sl_disasm_effects *effects = &out->effects;
    bool is_known = r->family == SL_CPU_X86_64 || (r->family == SL_CPU_ARM64 && effects->has_accesses);
    if (!is_known || out->adjustment == SL_MINIDUMP_NULL_POINTER)
        return true;
    if (!(r->out->flips = SL_ARENA_ARRAY(arena, struct sl_minidump_flip, MAX_FLIPS)))
        return false;
    uint64_t address = out->adjustment == SL_MINIDUMP_NON_CANONICAL ? out->adjusted : r->dump->crash_address;
    const struct sl_disasm_access *access =
        effects->has_accesses ? access_at(effects, r->dump->crash_address, 0) : NULL;
    /* an access that includes the reported address began at the address in `access` */
    flip_bits(r, access ? access->address : address, NULL, access ? access->size : 0);
    if (out->has_instruction)
        flip_registers(r, access ? access->size : 0);
    return true;
}

/* ---- inconsistencies, x86 only: its instructions are decoded best ---- */

/* True if the exception is a division by zero: STATUS_INTEGER_DIVIDE_BY_ZERO on Windows, EXC_ARITHMETIC with EXC_I386_DIV on Apple's
 * systems, on Linux SIGFPE with FPE_INTDIV. */
static bool is_division_by_zero(const struct analyser *r)
{
    const struct dump_exception *e = &r->exception;
    if (r->dump->os == SL_MINIDUMP_WINDOWS)
        return e->code == 0xC0000094;
    if (is_apple(r->dump))
        return e->code == 3 && e->flags == 1; /* EXC_ARITHMETIC, EXC_I386_DIV */
    return is_linux(r->dump) && e->code == 8 && e->flags == 1;
}

/* True if the instruction certainly does not access the reported address. After a stack overflow any access may be the cause. */
static bool is_not_accessed(const struct analyser *r, bool is_overflow)
{
    const struct sl_disasm_effects *effects = &r->out->effects;
    uint64_t address = r->dump->crash_address;
    if (!effects->has_accesses)
        return false;
    if (is_overflow)
        return !effects->access_count;
    if (r->operation == EXECUTE) /* what could not be executed is at the program counter */
        return r->registers.value[r->numbers.pc] != address;
    for (size_t i = 0; i < effects->access_count; i++)
        if (!effects->accesses[i].size) /* size of the access is unknown */
            return false;
    return !access_at(effects, address, r->operation == READ ? SL_DISASM_READS : SL_DISASM_WRITES);
}

/* True if all addresses that the instruction accesses or jumps to are known and canonical: then they do not explain a general protection
 * fault. */
static bool is_canonical(const struct analyser *r)
{
    const struct sl_disasm_effects *effects = &r->out->effects;
    bool is_next_known = effects->flow == SL_DISASM_NEXT || r->out->has_next;
    if (!effects->has_accesses || !is_next_known || (r->out->has_next && is_non_canonical(r->out->next)))
        return false;
    for (size_t i = 0; i < effects->access_count; i++)
        if (is_non_canonical(effects->accesses[i].address))
            return false;
    return true;
}

/* Finds contradictions between exception and instruction, on x86 only: sets bits of enum sl_minidump_inconsistency in the result. */
static void find_inconsistencies(struct analyser *r)
{
    const struct sl_disasm_effects *effects = &r->out->effects;
    const struct dump_region *region = dump_region_at(&r->regions, r->dump->crash_address);
    bool is_windows = r->dump->os == SL_MINIDUMP_WINDOWS;
    bool is_overflow = is_windows && r->exception.code == STACK_OVERFLOW;
    unsigned *found = &r->out->inconsistencies;
    if (!r->out->has_instruction || !is_x86(r))
        return;
    if (is_division_by_zero(r) && !effects->is_division)
        *found |= SL_MINIDUMP_NO_DIVISION;
    if (is_windows && r->exception.code == 0xC0000096 /* EXCEPTION_PRIV_INSTRUCTION */ && !effects->is_privileged)
        *found |= SL_MINIDUMP_NOT_PRIVILEGED;
    if (r->operation == ANY && !is_overflow) /* the dump does not say what was not permitted */
        return;
    bool is_elsewhere = is_not_accessed(r, is_overflow);
    /* with this fault the system reports a fixed address, so a different one is no contradiction */
    if (is_elsewhere && is_general_protection_fault(r)) {
        *found |= effects->faults_only_non_canonical && is_canonical(r) ? SL_MINIDUMP_IS_CANONICAL : 0;
        return;
    }
    *found |= is_elsewhere ? SL_MINIDUMP_NOT_ACCESSED : 0;
    if (r->operation != ANY && region && !region->is_guard && is_allowed(region, r->operation))
        *found |= SL_MINIDUMP_ACCESS_ALLOWED;
}

/* ---- entry point ---- */

/* Returns what was not permitted; only Windows reports it, in the first parameter of an access violation. */
static enum operation decode_operation(const struct analyser *r)
{
    const struct dump_exception *e = &r->exception;
    /* an access violation has two parameters: the operation and the address */
    if (r->dump->os != SL_MINIDUMP_WINDOWS || e->code != ACCESS_VIOLATION || e->parameter_count < 2)
        return ANY;
    switch (e->parameters[0]) {
    case 0: return READ;
    case 1: return WRITE;
    case 8: return EXECUTE;
    default: return ANY;
    }
}

/* Finds the crashed thread (r->thread) and reads its registers. r->thread stays NULL if there is none, or its processor is not
 * supported. */
static void read_thread(struct analyser *r)
{
    for (size_t i = 0; i < r->dump->crash.thread_count && !r->thread; i++)
        if (r->dump->crash.threads[i].requesting == SL_REQUESTING_THREAD_YES && r->dump->threads[i].is_walked)
            r->thread = &r->dump->threads[i];
    if (r->thread && r->thread->initial) /* of a core dump, or read by another process */
        r->registers = *r->thread->initial;
    else if (r->thread)
        dump_context_read(r->dump, r->thread, &r->registers);
    r->family = r->thread ? r->thread->family : r->dump->family;
    if (!sl_walk_numbers(r->family, &r->numbers))
        r->thread = NULL;
}

enum sl_code sl_minidump_analyse(const struct sl_minidump *dump, struct sl_arena *arena,
                                 struct sl_minidump_analysis *analysis, struct sl_error *error)
{
    struct analyser r = {.dump = dump, .out = analysis};
    *analysis = (struct sl_minidump_analysis){.has_instruction = false};
    if (!dump_read_exception(dump, &r.exception))
        return SL_OK;
    if (!dump_read_regions(dump, arena, &r.regions))
        return sl_budget_fail(arena->budget, error);
    analysis->has_exception = true;
    r.operation = decode_operation(&r);
    read_thread(&r);
    enum sl_code code = read_instruction(&r, error);
    if (code != SL_OK)
        return code;
    for (size_t i = 0; i < analysis->effects.access_count; i++)
        analysis->is_guard[i] = is_guard_page(&r.regions, analysis->effects.accesses[i].address);
    adjust_address(&r);
    analysis->is_stack_overflow = is_stack_overflow(&r);
    find_inconsistencies(&r);
    return find_flips(&r, arena) ? SL_OK : sl_budget_fail(arena->budget, error);
}
