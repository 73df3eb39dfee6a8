/* Stack walker: from the registers of a thread and the bytes of its stack to its call chain.
 *
 * A walk reads no files: it returns when it needs information on a module. Each frame's caller is found by the first of four
 * methods that succeeds: call frame information of the frame's module; for the innermost frame a simulated return (to the link
 * register, or on x86 to the word at the stack pointer); the chain of frame pointers; scanning the stack for words that may be
 * return addresses. On 64-bit Windows, where code rarely has frame pointers, scanning precedes them unless the walk is to be
 * compatible with Symbolicator. The caller fetches the module information that the walk needs:
 *
 *     walk = sl_walk_new(arena, &target, modules, map, &registers, &stack);
 *     while ((need = sl_walk_run(walk, &module)) != SL_WALK_DONE)      on the pool
 *         fetch what is needed of modules[module], and                 in the fiber
 *         sl_walk_set_cfi(&modules[module], cfi)  or  sl_walk_set_symbols(&modules[module], symbols)
 *
 * All walks of a dump share the modules and may run concurrently: information fetched for one is available to all. A module is
 * only needed when a frame or a scanned address lies in it.
 *
 * Registers have their DWARF numbers (psABI of each architecture): x86 esp 4, ebp 5, eip 8; amd64 rbp 6, rsp 7, rip 16; arm r0
 * to r15; arm64 x0 to x30, sp 31, pc 32; MIPS r0 to r31, pc 34; RISC-V x0 to x31. RISC-V's pc has no number and takes that of
 * f0, which no callee preserves. */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/ranges.h"
#include "unwind/cfi.h"

enum {
    SL_WALK_REGISTERS = 64,
    SL_WALK_COMPAT_FRAMES = 1024, /* limit of frames of a walk with sl_walk_target.compat */
    SL_WALK_MAX_FRAMES = 1 << 20, /* limit of frames of any other walk */
};

struct sl_registers {
    uint64_t value[SL_WALK_REGISTERS]; /* 32-bit processors: the upper half is 0 */
    uint64_t valid;                    /* bit N: value[N] is known */
    uint64_t assumed; /* bit N: a STACK WIN record did not give the register, so the callee's value is assumed */
};

static inline void sl_registers_set(struct sl_registers *registers, unsigned number, uint64_t value)
{
    registers->value[number] = value;
    registers->valid |= UINT64_C(1) << number;
    registers->assumed &= ~(UINT64_C(1) << number);
}

/* Numbers for pc where DWARF has none: on processors whose stacks cannot be walked (SL_WALK_ONLY_PC), and on RISC-V. */
enum { SL_WALK_ONLY_PC = 63, SL_WALK_RISCV_PC = 32 };
/* Returns the DWARF numbers of the processor's registers. False, and all of them SL_WALK_ONLY_PC, when stacks of the family cannot be
 * walked: a walk then returns one frame, the innermost. */
struct sl_walk_numbers {
    uint8_t pc, sp, fp;
    uint8_t call; /* a return address minus this is inside the calling instruction */
};
bool sl_walk_numbers(enum sl_cpu_family family, struct sl_walk_numbers *numbers);

enum sl_trust {
    SL_TRUST_NONE,
    /* by which method a frame was found, from the least to the most reliable; CFI_SCAN: never set here, a value of Breakpad's; PREWALKED:
     * the crashed program itself has walked the stack; CONTEXT: the innermost frame, from the registers of the thread */
    SL_TRUST_SCAN,
    SL_TRUST_CFI_SCAN,
    SL_TRUST_FP,
    SL_TRUST_CFI,
    SL_TRUST_PREWALKED,
    SL_TRUST_CONTEXT
};

struct sl_walk_symbols { /* debug information of a module; addresses are relative to the module */
    bool (*covers)(const struct sl_walk_symbols *symbols, uint64_t address);
    bool (*same_function)(const struct sl_walk_symbols *symbols, uint64_t a, uint64_t b);
};

/* A module and the information on it that walks use. `cfi` and `symbols` are NULL until sl_walk_set_cfi() and sl_walk_set_symbols() set
 * them, to a special value if there is none. Set by one thread, read by others. */
struct sl_walk_module {
    uint64_t base, size; /* size > 0, no overflow */
    uint64_t cfi_offset; /* add this to an address relative to `base` to look it up in `cfi`; set before `cfi` */
    _Atomic(const struct sl_cfi *) cfi;
    _Atomic(const struct sl_walk_symbols *) symbols;
    atomic_bool uses_cfi, uses_symbols; /* set by walks that have needed `cfi` or `symbols` */
};

/* Set the information on a module, which must live as long as walks run; NULL if there is none or it could not be fetched. May be called
 * before any walk needs it. */
void sl_walk_set_cfi(struct sl_walk_module *module, const struct sl_cfi *cfi);
void sl_walk_set_symbols(struct sl_walk_module *module, const struct sl_walk_symbols *symbols);

struct sl_walk_target {
    enum sl_cpu_family family;
    bool is_windows, is_ios;
    bool big_endian;          /* byte order of the memory */
    bool frame_pointer_first; /* use the frame pointer before call frame information */
    bool keeps_registers;     /* keep the registers of every frame */
    /* Give the frames that Symbolicator gives: no simulated return; a caller with an impossible address or stack pointer ends the walk,
     * whichever method found it; at most SL_WALK_COMPAT_FRAMES frames. */
    bool compat;
    /* Budget shared by the walks of one dump, on any thread. Rules, expressions and stack words cost steps; when they are used
     * up, walks end where they are. NULL = unlimited. */
    struct sl_budget *work;
    uint64_t address_mask; /* arm64: mask of the address bits in pointers; 0 = derive it from the modules */
};

/* The memory region that contains the stack; without bytes only the innermost frame is found. `read` (may be NULL) reads a word of `size`
 * bytes at any other address of the dump, on the thread that runs the walk; scanning stays inside the region. */
struct sl_walk_stack {
    uint64_t address;
    struct sl_bytes bytes;
    bool (*read)(const void *arg, uint64_t address, unsigned size, uint64_t *value);
    const void *arg;
};

struct sl_walk_frame {
    uint64_t resume;      /* the program counter; for callers the return address */
    uint64_t instruction; /* inside the call, for look-ups; `resume` if the frame was interrupted, not called */
    uint32_t module;      /* SL_WALK_NO_MODULE: none */
    enum sl_trust trust;
};
#define SL_WALK_NO_MODULE UINT32_MAX

struct sl_walk {
    struct sl_walk_frame *frames;   /* the innermost, made from the thread's registers, first; so at least one */
    struct sl_registers *registers; /* of each frame, if the target keeps registers */
    size_t frame_count;
    bool out_of_memory; /* the walk ended because memory was exhausted */
    bool out_of_work;   /* the walk ended because the target's `work` was used up */
    /* private from here on */
    struct sl_walk_state *state;
};

/* Makes a walk in the arena; its first frame is that of `registers`. `map` finds the index in `modules` of an address. All arguments must
 * outlive the walk, except the registers, `target` and `stack`, which are copied. NULL when out of memory. */
struct sl_walk *sl_walk_new(struct sl_arena *arena, const struct sl_walk_target *target, struct sl_walk_module *modules,
                            const struct sl_range_map *map, const struct sl_registers *registers,
                            const struct sl_walk_stack *stack);

/* What a walk has to remember while it waits, so that another process can go on with it. */
struct sl_walk_saved {
    struct sl_registers registers; /* of the last frame; before the first run: of the thread */
    uint64_t resume, instruction;  /* of the last frame */
    uint32_t frame_count;          /* frames found so far; 0 = the walk has not begun, and only `registers` counts */
    uint32_t inner_params;         /* bytes of parameters of the frame that the last frame called, from STACK WIN */
    enum sl_trust trust;           /* of the last frame */
    bool is_return;                /* it was found by simulating a return */
};

/* Makes a walk that goes on where a saved one stopped; it has only the frames that are found from now on. With the same arguments as the
 * first walk, both together have the frames of one uninterrupted walk. NULL when out of memory. */
struct sl_walk *sl_walk_resume(struct sl_arena *arena, const struct sl_walk_target *target,
                               struct sl_walk_module *modules, const struct sl_range_map *map,
                               const struct sl_walk_saved *saved, const struct sl_walk_stack *stack);

/* Saves a walk, which must not be run after that. Work that it has taken from the target's budget and not used is given back. */
void sl_walk_save(const struct sl_walk *walk, struct sl_walk_saved *saved);

/* Pack: append registers, or a saved walk, as bytes. Unpack: read them again; invalid bytes set r->failed. */
void sl_registers_pack(const struct sl_registers *registers, struct sl_buf *out);
void sl_registers_unpack(struct sl_reader *r, struct sl_registers *registers);
void sl_walk_pack(const struct sl_walk_saved *saved, struct sl_buf *out);
void sl_walk_unpack(struct sl_reader *r, struct sl_walk_saved *saved);

enum sl_walk_need { SL_WALK_DONE, SL_WALK_NEED_CFI, SL_WALK_NEED_SYMBOLS };

/* Finds frames until the walk is over (SL_WALK_DONE) or needs information on modules[*module]. Call it again after that was set. */
enum sl_walk_need sl_walk_run(struct sl_walk *walk, size_t *module);
