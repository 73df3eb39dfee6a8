/* Shared by the files of the frame walkers. Private to this folder.
 *
 *     walk.c        the loop, modules, memory, plausibility of scanned addresses
 *     walk_saved.c  walks that go on in another process
 *     walk_*.c      the processors: frame pointers, scanning, the end of a stack
 *     return.c      simulated returns from the innermost frame
 *     evaluate.c    applies call frame information to a frame ─▶ postfix.c, windows.c, dwarf_stack.c */
#pragma once

#include "unwind/walk.h"

struct walk_frame { /* a frame, with the state needed to find its caller */
    struct sl_registers registers;
    /* resume: the pc; for callers the return address. instruction: the address for look-ups; for callers an address in the call instruction
     * (0: not set yet) */
    uint64_t resume, instruction;
    uint32_t module;
    enum sl_trust trust;
    bool is_return; /* found by simulating a return: all preserved registers are known */
};

enum walk_result {
    WALK_NOTHING, /* the method did not find a caller; from functions that only test something: no */
    WALK_CALLER,  /* the method found a caller; from functions that only test something: yes */
    WALK_END,     /* there is no caller */
    WALK_WAIT,    /* a module must be loaded first; sl_walk_state.need says what of it */
};

struct walk_cpu { /* a processor: its registers, and its methods to find a caller */
    enum sl_cpu_family family;
    uint8_t pc, sp, fp; /* DWARF numbers */
    uint8_t link;       /* DWARF number of the link register; 0: calls push the return address */
    uint8_t word;       /* size of a register in bytes */
    int8_t record;      /* offset of the return address in the frame record at `fp`; 0: no frame records */
    uint8_t call;       /* a return address minus this is inside the calling instruction */
    uint64_t preserved; /* bit N: callees preserve register N */
    uint64_t untracked; /* bit N: the walker has no values of DWARF register N, so its rules are ignored */
    bool (*is_code)(uint64_t address); /* true if a word may be a code address; NULL: any may */
    enum walk_result (*by_frame_pointer)(struct sl_walk_state *s, const struct walk_frame *callee,
                                         struct walk_frame *caller); /* NULL: no such method */
    enum walk_result (*by_scan)(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);
    /* Sets the frame pointer of a caller whose return address was found by scanning. `at` is where the stack has that address; the word
     * below `at` is on the stack, too. NULL: the frame pointer stays unknown. */
    void (*saved_pointer)(struct sl_walk_state *s, uint64_t at, const struct walk_frame *callee,
                          struct walk_frame *caller);
    /* True if the caller's stack pointer is possible: mostly above the callee's. */
    bool (*goes_on)(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller);
};

extern const struct walk_cpu walk_x86, walk_amd64, walk_arm, walk_arm64, walk_mips, walk_mips64, walk_riscv,
    walk_riscv64;

struct sl_walk_state {
    struct sl_walk walk;
    struct sl_arena *arena;
    const struct walk_cpu *cpu; /* NULL: no walker for this processor */
    struct sl_walk_target target;
    struct sl_walk_stack stack;
    struct sl_walk_module *modules;
    const struct sl_range_map *module_map;
    struct walk_frame frame; /* the last frame found */
    uint32_t inner_params;   /* bytes of parameters of the frame that `frame` called, from STACK WIN */
    uint64_t address_mask;   /* arm64: mask of the address bits in pointers; the others may have a signature */
    enum sl_walk_need need;
    size_t needs; /* index of the module that `need` is about */
    bool over;
    size_t capacity;         /* of walk.frames and walk.registers */
    size_t earlier;          /* frames found before the walk was saved and resumed */
    struct sl_account *work; /* takes steps from the budget target.work; NULL: unlimited */
};

/* Work charged to the budget, in steps. */
enum {
    WALK_COST_FRAME = 8,
    WALK_COST_NAME = 16, /* of looking up a register by name: there are many names */
    WALK_COST_WORD = 4,  /* of checking a word of a scanned stack */
};

/* Charges work to the budget. False when it is used up: then what was to be computed counts as absent, and the walk ends. */
static inline bool walk_spend(const struct sl_walk_state *s, uint32_t steps)
{
    return !s->work || sl_account_spend(s->work, steps);
}

static inline bool walk_known(const struct sl_registers *registers, unsigned number)
{
    return number < SL_WALK_REGISTERS && (registers->valid >> number & 1);
}

/* Truncates a value to the width of a register. */
static inline uint64_t walk_truncate(const struct walk_cpu *cpu, uint64_t value)
{
    return cpu->word == 4 ? (uint32_t)value : value;
}

/* ---- walk.c ---- */

/* Reads a word of register size from the stack or any other memory of the dump; false if it is not in the dump. */
bool walk_read(const struct sl_walk_state *s, uint64_t address, uint64_t *value);

/* Reads a number of `size` bytes from the memory region of the stack; false if it is outside. */
bool walk_read_stack(const struct sl_walk_state *s, uint64_t address, unsigned size, uint64_t *value);

/* Makes a walk without frames, to which the caller adds the first; NULL when out of memory. */
struct sl_walk_state *walk_make(struct sl_arena *arena, const struct sl_walk_target *target,
                                struct sl_walk_module *modules, const struct sl_range_map *map,
                                const struct sl_walk_stack *stack);

/* Returns the index of the module that contains the address, SL_WALK_NO_MODULE if none does. */
uint32_t walk_module_at(const struct sl_walk_state *s, uint64_t address);

/* Returns WALK_CALLER if `address` may be a return address: the byte before it is in a module and, if that has both CFI and symbols, one of
 * them covers the byte. Else WALK_NOTHING, or WALK_WAIT if CFI or symbols must be loaded first. */
enum walk_result walk_is_plausible_code(struct sl_walk_state *s, uint64_t address);

/* Gets the module's CFI and returns WALK_CALLER; `*cfi` is NULL if it has none. WALK_WAIT if it must be loaded first. */
enum walk_result walk_cfi(struct sl_walk_state *s, uint32_t module, const struct sl_cfi **cfi);

/* Gets the module's symbols and returns WALK_CALLER; `*symbols` is NULL if it has none. WALK_WAIT if they must be loaded first. */
enum walk_result walk_symbols(struct sl_walk_state *s, uint32_t module, const struct sl_walk_symbols **symbols);

/* Returns how many words of the stack are scanned for a return address: more if the callee's stack pointer is certain, because it comes
 * from the thread's registers, call frame information or a simulated return. */
unsigned walk_scan_words(const struct walk_frame *callee);

/* walk_cpu.by_scan of most processors: scans the stack for a word that may be a return address. The caller's pc is that word, its stack
 * pointer is above it; its frame pointer is set by walk_cpu.saved_pointer, all other registers are unknown. */
enum walk_result walk_by_scan(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);
/* walk_cpu.goes_on of processors with a link register: the caller's stack pointer must be above the callee's, or equal if the callee is the
 * innermost frame or the caller was found by call frame information; with an equal one the pc must differ. */
bool walk_caller_is_possible(const struct sl_walk_state *s, const struct walk_frame *callee,
                             const struct walk_frame *caller);
/* walk_cpu.goes_on of 32-bit ARM and MIPS: the caller's stack pointer must be above the callee's, or equal if the callee is the innermost
 * frame, which may be a leaf without a stack frame. */
bool walk_leaf_goes_on(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller);

/* ---- evaluate.c ---- */

/* Finds the caller by the CFI of the callee's module. WALK_NOTHING if that has none for the address, or if it cannot be evaluated; WALK_END
 * if it says that there is no caller; WALK_WAIT if it must be loaded first. */
enum walk_result walk_by_cfi(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);

/* Returns WALK_CALLER if call frame information covers the frame's instruction, else WALK_NOTHING; WALK_WAIT if it must be loaded first. */
enum walk_result walk_has_cfi(struct sl_walk_state *s, const struct walk_frame *frame);

/* Gives the caller those of the callee's known registers that functions must preserve; all others become unknown. */
void walk_keep_preserved(const struct walk_cpu *cpu, const struct sl_registers *callee, struct sl_registers *caller);

/* Returns the size of the frame's parameters in bytes if a STACK WIN record has it; else 0. */
uint32_t walk_params(const struct sl_walk_state *s, const struct walk_frame *frame);

/* What an expression can read: memory, the registers of the callee, and the CFA if it is known. */
struct walk_scope {
    const struct sl_walk_state *s;
    const struct sl_registers *registers; /* the callee's registers */
    bool has_cfa;
    uint64_t cfa;
};

/* Reads a register of the callee for a rule or an expression; false if it is unknown. */
bool walk_callee_register(const struct walk_scope *scope, uint64_t number, uint64_t *value);

/* Returns the DWARF number of a register by any of its names in symbol files, with or without `$`; SL_WALK_REGISTERS for an
 * unknown name. */
unsigned walk_register(enum sl_cpu_family family, struct sl_str name);

/* ---- return.c ---- */

/* Finds the caller of the innermost frame as if that frame returned now: if its pc is in no module (a call to a bad address), and on
 * processors with a link register also if its function has no CFI and may be a leaf. WALK_NOTHING for other frames; WALK_WAIT if CFI or
 * symbols must be loaded first. */
enum walk_result walk_by_return(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);

/* ---- postfix.c, dwarf_stack.c, windows.c ---- */

/* Parses a decimal with an optional sign into 64 bits; false for anything else. */
bool postfix_number(struct sl_str token, uint64_t *value);

/* Applies `+ - * / % @` to two numbers; false for any other token, a division by zero and an alignment that is not a power of
 * two. */
bool postfix_operate(struct sl_str token, uint64_t a, uint64_t b, uint64_t *value);

/* Evaluates a postfix program of a STACK CFI record. False if it is malformed or does not leave exactly one value, if it reads a register
 * or memory that is not known, or if the work budget is used up. */
bool postfix_evaluate(const struct walk_scope *scope, struct sl_str program, uint64_t *value);

/* Evaluates a DWARF expression (DWARF 5, 2.5.1); with `pushes_cfa` the CFA is on its stack initially. False if it is malformed, reads a
 * register or memory that is not known, or takes too many steps. */
bool dwarf_stack_evaluate(const struct walk_scope *scope, struct sl_str expression, bool big_endian, bool pushes_cfa,
                          uint64_t *value);

/* Computes the caller's registers from a STACK WIN record. False if esp or ebp of the callee is unknown, or if the record cannot be
 * evaluated. */
bool windows_evaluate(const struct sl_walk_state *s, const struct sl_unwind_win *win, const struct walk_frame *callee,
                      struct sl_registers *caller);
