/* Walking a stack: from the registers of a thread and the bytes of its stack to the addresses that called each other.
 *
 * Pure: a walk reads what it is given and asks for the rest by returning. Each frame's caller is found by the first of four
 * methods that finds one: call frame information of the frame's module, for the innermost frame a simulated return (to the
 * link register, or on x86 to the word at the stack pointer), the chain of frame pointers, and scanning the stack for what
 * looks like an address to return to. On 64-bit Windows, whose code hardly has frame pointers, scanning comes before them unless
 * the walk is to be compatible. What the walk needs to know of a module is fetched by whoever runs it:
 *
 *     walk = sl_walk_new(arena, &target, modules, map, &registers, &stack);
 *     while ((need = sl_walk_run(walk, &module)) != SL_WALK_DONE)      on the pool
 *         fetch what is needed of modules[module], and                 in the fiber
 *         sl_walk_set_cfi(&modules[module], cfi)  or  sl_walk_set_symbols(&modules[module], symbols)
 *
 * The modules are shared by all walks of a dump, which may run side by side: what was fetched for one is there for all. A
 * module is asked for only when a frame or a scanned address lies in it.
 *
 * Registers have their DWARF numbers (psABI of each architecture), x86 esp 4, ebp 5, eip 8; amd64 rbp 6, rsp 7, rip 16; arm
 * r0 to r15; arm64 x0 to x30, sp 31, pc 32; MIPS r0 to r31, pc 34; RISC-V x0 to
 * x31, whose pc has no number and takes that of f0, which nobody preserves. */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/ranges.h"
#include "unwind/cfi.h"

enum {
    SL_WALK_REGISTERS = 64,
    SL_WALK_COMPAT_FRAMES = 1024, /* walking stops there when it is to be compatible */
    SL_WALK_MAX_FRAMES = 1 << 20, /* and there else */
};

struct sl_registers {
    uint64_t value[SL_WALK_REGISTERS]; /* of 32-bit processors: the upper half is 0 */
    uint64_t valid;                    /* bit N: value[N] is known */
    uint64_t assumed; /* of these: a STACK WIN record left it out, and the callee's value is taken for the caller's */
};

static inline void sl_registers_set(struct sl_registers *registers, unsigned number, uint64_t value)
{
    registers->value[number] = value;
    registers->valid |= UINT64_C(1) << number;
    registers->assumed &= ~(UINT64_C(1) << number);
}

/* DWARF numbers of the processor's registers. False, and all of them SL_WALK_ONLY_PC, when there is no walker for the family:
 * only the context's frame comes out then. */
enum { SL_WALK_ONLY_PC = 63, SL_WALK_RISCV_PC = 32 };
struct sl_walk_numbers {
    uint8_t pc, sp, fp;
    uint8_t call; /* an address to return to, less this, is in the calling instruction */
};
bool sl_walk_numbers(enum sl_cpu_family family, struct sl_walk_numbers *numbers);

enum sl_trust {
    SL_TRUST_NONE,
    SL_TRUST_SCAN,
    SL_TRUST_CFI_SCAN,
    SL_TRUST_FP,
    SL_TRUST_CFI,
    SL_TRUST_PREWALKED,
    SL_TRUST_CONTEXT
};

struct sl_walk_symbols { /* what a module's debug information has at addresses, which are relative to the module */
    bool (*covers)(const struct sl_walk_symbols *symbols, uint64_t address);
    bool (*same_function)(const struct sl_walk_symbols *symbols, uint64_t a, uint64_t b);
};

/* What is known of a module: NULL as long as nobody asked, SL_WALK_NO_CFI or SL_WALK_NO_SYMBOLS when there is none. Set by
 * one thread, read by others. */
struct sl_walk_module {
    uint64_t base, size;   /* size > 0, no overflow */
    uint64_t ahead_of_cfi; /* what addresses of `cfi` have beyond those relative to `base`; set before it */
    _Atomic(const struct sl_cfi *) cfi;
    _Atomic(const struct sl_walk_symbols *) symbols;
};

/* What is given must live as long as walks run. NULL = there is none, or it could not be had. */
void sl_walk_set_cfi(struct sl_walk_module *module, const struct sl_cfi *cfi);
void sl_walk_set_symbols(struct sl_walk_module *module, const struct sl_walk_symbols *symbols);

struct sl_walk_target {
    enum sl_cpu_family family;
    bool is_windows, is_ios;
    bool big_endian;          /* the order of the bytes in memory */
    bool frame_pointer_first; /* before call frame information */
    bool keeps_registers;     /* those of every frame are told */
    /* As Symbolicator walks: no return is simulated, a caller whose address or stack pointer is impossible ends the walk
     * whichever method found it, and there are at most SL_WALK_COMPAT_FRAMES frames. */
    bool compat;
    /* Shared by the walks of one dump, from any thread: rules, expressions and words of stacks that are looked at spend it, and when it
     * is used up the walks end where they are. NULL = without end. */
    struct sl_budget *work;
    uint64_t
        address_mask; /* arm64: bits of pointers that are address; 0 = as the modules' addresses let one conclude */
};

/* The region of memory in which the stack is; no bytes: there is none. `read` (may be NULL) finds words outside of it, of
 * `size` bytes; scanning stays inside. Called from the thread that runs the walk. */
struct sl_walk_stack {
    uint64_t address;
    struct sl_bytes bytes;
    bool (*read)(const void *arg, uint64_t address, unsigned size, uint64_t *value);
    const void *arg;
};

struct sl_walk_frame {
    uint64_t resume; /* the program counter, of callers the address to return to */
    uint64_t
        instruction; /* that of the call, or one inside it: for look-ups. `resume` in a context's frame and in one that
                             a signal interrupted */
    uint32_t module; /* SL_WALK_NO_MODULE: in none */
    enum sl_trust trust;
};
#define SL_WALK_NO_MODULE UINT32_MAX

struct sl_walk {
    struct sl_walk_frame *frames;   /* the innermost first; at least the context's when the walk is done */
    struct sl_registers *registers; /* of each frame, if the target keeps them */
    size_t frame_count;
    bool out_of_memory; /* the walk ended for it */
    bool out_of_work;   /* the walk ended as the target's `work` was used up */
    /* what follows is private */
    struct sl_walk_state *state;
};

/* `map` says which of the modules an address belongs to. All that is given must outlive the walk, which lives in the arena; the
 * registers are copied. NULL when out of memory. */
struct sl_walk *sl_walk_new(struct sl_arena *arena, const struct sl_walk_target *target, struct sl_walk_module *modules,
                            const struct sl_range_map *map, const struct sl_registers *registers,
                            const struct sl_walk_stack *stack);

enum sl_walk_need { SL_WALK_DONE, SL_WALK_NEED_CFI, SL_WALK_NEED_SYMBOLS };

/* Goes on until something of modules[*module] is needed that is not there, or the walk is over. */
enum sl_walk_need sl_walk_run(struct sl_walk *walk, size_t *module);
