/* What the files of the frame walkers share. Private to this folder.
 *
 *     walk.c        the loop, modules, memory, plausibility of scanned addresses
 *     walk_*.c      the processors: frame pointers, scanning, where a stack ends
 *     return.c      simulated returns from the innermost frame
 *     evaluate.c    call frame information applied to a frame ─▶ postfix.c, windows.c, dwarf_stack.c */
#pragma once

#include "unwind/walk.h"

struct walk_frame { /* as far as callers are found with it */
    struct sl_registers registers;
    uint64_t resume, instruction;
    uint32_t module;
    enum sl_trust trust;
    bool is_return; /* found by simulating a return: all that the callee preserves is known */
};

enum walk_result {
    WALK_NOTHING, /* found by this method */
    WALK_CALLER,
    WALK_END,  /* there is no caller */
    WALK_WAIT, /* for what sl_walk_state.need says */
};

struct walk_cpu {
    enum sl_cpu_family family;
    uint8_t pc, sp, fp; /* DWARF numbers */
    uint8_t link;       /* that of the register with the address to return to; 0: calls push it on the stack */
    uint8_t word;       /* bytes of a register */
    int8_t record;      /* where the frame record that `fp` leads to has the address to return to; 0: there is none */
    uint8_t call;       /* an address to return to, less this, is in the calling instruction */
    uint64_t preserved; /* bit N: callees preserve register N */
    uint64_t untracked; /* bit N: number N means another register in call frame information, whose rules are ignored */
    bool (*is_code)(uint64_t address); /* whether a word may be an address of code; NULL: any may */
    enum walk_result (*by_frame_pointer)(struct sl_walk_state *s, const struct walk_frame *callee,
                                         struct walk_frame *caller); /* NULL: there is no such method */
    enum walk_result (*by_scan)(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);
    /* The frame pointer of a caller whose address to return to scanning has found at `at`, not at once; NULL: it is not known. */
    void (*saved_pointer)(struct sl_walk_state *s, uint64_t at, const struct walk_frame *callee,
                          struct walk_frame *caller);
    bool (*goes_on)(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller);
};

extern const struct walk_cpu walk_x86, walk_amd64, walk_arm, walk_arm64, walk_mips, walk_mips64, walk_riscv,
    walk_riscv64;

struct sl_walk_state {
    struct sl_walk walk;
    struct sl_arena *arena;
    const struct walk_cpu *cpu; /* NULL: no walker */
    struct sl_walk_target target;
    struct sl_walk_stack stack;
    struct sl_walk_module *modules;
    const struct sl_range_map *module_map;
    struct walk_frame frame; /* the last one found */
    uint32_t inner_params;   /* bytes that the frame within it was given, as STACK WIN has it */
    uint64_t address_mask;   /* arm64: the bits of code addresses and frame pointers */
    enum sl_walk_need need;
    size_t needs; /* which module's */
    bool over;
    size_t capacity;
    struct sl_account *work; /* of the target's */
};

/* What looking at things costs, in steps of the budget. */
enum {
    WALK_COST_FRAME = 8,
    WALK_COST_NAME = 16, /* of a register: there are many names */
    WALK_COST_WORD = 4,  /* of a stack that is scanned: is it an address of code? */
};

/* False when no work is left: whatever is being looked at counts as not there, and the walk ends. */
static inline bool walk_spend(const struct sl_walk_state *s, uint32_t steps)
{
    return !s->work || sl_account_spend(s->work, steps);
}

static inline bool walk_known(const struct sl_registers *registers, unsigned number)
{
    return number < SL_WALK_REGISTERS && (registers->valid >> number & 1);
}

/* Cut to the width of a register. */
static inline uint64_t walk_truncate(const struct walk_cpu *cpu, uint64_t value)
{
    return cpu->word == 4 ? (uint32_t)value : value;
}

/* ---- walk.c ---- */

/* A word of the processor's size; false when the dump does not have it. */
bool walk_read(const struct sl_walk_state *s, uint64_t address, uint64_t *value);

/* The same, of any size, of the stack's own region. */
bool walk_read_stack(const struct sl_walk_state *s, uint64_t address, unsigned size, uint64_t *value);

uint32_t walk_module_at(const struct sl_walk_state *s, uint64_t address);

/* Whether code at `address` may have been what called: WALK_CALLER if so, WALK_NOTHING or WALK_WAIT. */
enum walk_result walk_plausible(struct sl_walk_state *s, uint64_t address);

/* The module's CFI; WALK_CALLER with NULL in it when there is none, or WALK_WAIT. */
enum walk_result walk_cfi(struct sl_walk_state *s, uint32_t module, const struct sl_cfi **cfi);

/* The module's symbols; WALK_CALLER with NULL in it when there are none, or WALK_WAIT. */
enum walk_result walk_symbols(struct sl_walk_state *s, uint32_t module, const struct sl_walk_symbols **symbols);

/* Words of a stack that are looked at: more behind frames whose size is known. */
unsigned walk_scan_words(const struct walk_frame *callee);

/* Methods of processors with a link register: a scanned word gives the program counter and the stack pointer alone; and a
 * caller may have the stack pointer of a leaf, or what call frame information says, but is another address then. */
enum walk_result walk_by_scan(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);
bool walk_goes_on(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller);
/* The same where a leaf may have put nothing on the stack. */
bool walk_leaf_goes_on(const struct sl_walk_state *s, const struct walk_frame *callee, const struct walk_frame *caller);

/* ---- evaluate.c ---- */

enum walk_result walk_by_cfi(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);

/* Whether call frame information has something of the frame's instruction: WALK_CALLER if so, WALK_NOTHING or WALK_WAIT. */
enum walk_result walk_has_cfi(struct sl_walk_state *s, const struct walk_frame *frame);

/* What callees preserve, as far as it is known. */
void walk_keep_preserved(const struct walk_cpu *cpu, const struct sl_registers *callee, struct sl_registers *caller);

/* Bytes of the frame's parameters, if a STACK WIN record says so; else 0. */
uint32_t walk_params(const struct sl_walk_state *s, const struct walk_frame *frame);

/* What expressions may look at. */
struct walk_scope {
    const struct sl_walk_state *s;
    const struct sl_registers *registers; /* of the callee */
    bool has_cfa;
    uint64_t cfa;
};

/* The callee's register that a rule or an expression reads; false when it is not known. */
bool walk_callee_register(const struct walk_scope *scope, uint64_t number, uint64_t *value);

/* DWARF number of a register as symbol files name it, with or without `$`, under any of its names; SL_WALK_REGISTERS if there
 * is none. */
unsigned walk_register(enum sl_cpu_family family, struct sl_str name);

/* ---- return.c ---- */

/* The caller of the innermost frame as if that returned at once: when it is in no module (a call went to a bad address), and
 * where there is a link register also when nothing is known of its function, which may be a leaf. */
enum walk_result walk_by_return(struct sl_walk_state *s, const struct walk_frame *callee, struct walk_frame *caller);

/* ---- postfix.c, dwarf_stack.c, windows.c ---- */

/* A signed decimal. */
bool postfix_number(struct sl_str token, uint64_t *value);

/* `+ - * / % @` of two numbers; false for others, and for what cannot be divided or rounded. */
bool postfix_operate(struct sl_str token, uint64_t a, uint64_t b, uint64_t *value);

/* The one value that a program leaves. False when it leaves none or more, or reads what is not there. */
bool postfix_evaluate(const struct walk_scope *scope, struct sl_str program, uint64_t *value);

/* A DWARF expression (DWARF 5, 2.5.1), which finds the CFA on its stack if `pushes_cfa`. */
bool dwarf_stack_evaluate(const struct walk_scope *scope, struct sl_str expression, bool big_endian, bool pushes_cfa,
                          uint64_t *value);

/* The caller's registers as a STACK WIN record has them. */
bool windows_evaluate(const struct sl_walk_state *s, const struct sl_unwind_win *win, const struct walk_frame *callee,
                      struct sl_registers *caller);
