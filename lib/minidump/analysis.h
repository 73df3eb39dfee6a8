/* Analysis of the instruction that a thread of a minidump or core file crashed at, and of its likely cause: the accessed address if
 * the system does not report it, guard pages, stack overflows, addresses with a flipped bit, and exception data that
 * contradicts the instruction. Supports x86, x86-64 and AArch64. Results and confidences are those of rust-minidump. */
#pragma once

#include "disasm/effects.h"
#include "minidump/minidump.h"

enum sl_minidump_adjustment {
    SL_MINIDUMP_AS_REPORTED,   /* the system reported the address */
    SL_MINIDUMP_NULL_POINTER,  /* null pointer dereference; `adjusted` is the offset from it */
    SL_MINIDUMP_NON_CANONICAL, /* `adjusted` is the accessed address, which x86-64 does not report */
};

struct sl_minidump_flip { /* a valid address that differs in one bit from an invalid one */
    uint64_t address;
    const char *source; /* the register that holds the invalid address; NULL: it is the accessed address */
    bool was_non_canonical, is_null;
    bool was_low;      /* a small number became null: often not a flipped bit */
    bool has_poison;   /* a register holds a pattern that allocators fill freed memory with */
    unsigned nearby;   /* number of registers that point near `address` */
    double confidence; /* 0 to 1 */
};

enum sl_minidump_inconsistency {
    SL_MINIDUMP_NO_DIVISION = 1,    /* a division by zero, but the instruction does not divide */
    SL_MINIDUMP_NOT_PRIVILEGED = 2, /* a privileged instruction was reported, but it is not privileged */
    SL_MINIDUMP_IS_CANONICAL = 4, /* a fault that a non-canonical address causes, but all accessed ones are canonical */
    SL_MINIDUMP_ACCESS_ALLOWED = 8, /* an access violation, but the region of the address permits the access */
    SL_MINIDUMP_NOT_ACCESSED = 16,  /* the instruction does not access the reported address */
};

struct sl_minidump_analysis {
    bool has_exception;   /* false: the dump has no exception, and nothing is known */
    bool has_instruction; /* false: the dump does not hold the instruction, or it is invalid; its effects are unknown */
    struct sl_disasm_effects effects;  /* flips[].source points to register names in it */
    bool is_guard[SL_DISASM_ACCESSES]; /* for each access: its address is in what is likely a guard page */
    bool has_next;                     /* the instruction jumps to `next` instead of falling through */
    uint64_t next;
    enum sl_minidump_adjustment adjustment;
    uint64_t adjusted;
    bool is_stack_overflow; /* likely */
    struct sl_minidump_flip *flips;
    size_t flip_count;
    unsigned inconsistencies; /* bits of enum sl_minidump_inconsistency */
};

/* Analyses a dump with an exception. The flips lie in the arena and refer to `analysis`, which must outlive them.
 * SL_BUSY if out of memory. Pure function. */
enum sl_code sl_minidump_analyse(const struct sl_minidump *dump, struct sl_arena *arena,
                                 struct sl_minidump_analysis *analysis, struct sl_error *error);
