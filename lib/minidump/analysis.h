/* What the instruction did that a minidump's thread crashed at, and what may have been meant: the address that was accessed where the
 * system does not tell it, guard pages, stack overflows, addresses that a bit flipped in, and what does not fit together. Of x86,
 * x86-64 and AArch64; the same facts, and the same confidences, as rust-minidump's. */
#pragma once

#include "disasm/effects.h"
#include "minidump/minidump.h"

enum sl_minidump_adjustment {
    SL_MINIDUMP_AS_TOLD,
    SL_MINIDUMP_NULL_POINTER,  /* `adjusted` is how far behind the null pointer */
    SL_MINIDUMP_NON_CANONICAL, /* `adjusted` is the address, which x86-64 does not tell */
};

struct sl_minidump_flip { /* an address that is there, one bit away from one that is not */
    uint64_t address;
    const char *source; /* the register that has it; NULL: the address that was accessed */
    bool was_non_canonical, is_null;
    bool was_low;      /* and is null: such are often no flipped bits */
    bool has_poison;   /* a register is filled with what allocators fill freed memory with */
    unsigned nearby;   /* registers that point nearby */
    double confidence; /* 0 to 1 */
};

enum sl_minidump_inconsistency {
    SL_MINIDUMP_NO_DIVISION = 1,
    SL_MINIDUMP_NOT_PRIVILEGED = 2,
    SL_MINIDUMP_IS_CANONICAL = 4,
    SL_MINIDUMP_ACCESS_ALLOWED = 8,
    SL_MINIDUMP_NOT_ACCESSED = 16,
};

struct sl_minidump_analysis {
    bool is_of_crash;     /* else the dump has no exception, and nothing is known */
    bool has_instruction; /* else the dump does not hold it, or it is none; nothing is known of what it does */
    struct sl_disasm_effects effects;  /* its registers' names are those of flips */
    bool is_guard[SL_DISASM_ACCESSES]; /* of each access: it is in what is likely a guard page */
    bool has_next;                     /* it goes on at `next`, not behind itself */
    uint64_t next;
    enum sl_minidump_adjustment adjustment;
    uint64_t adjusted;
    bool is_stack_overflow; /* likely */
    struct sl_minidump_flip *flips;
    size_t flip_count;
    unsigned inconsistencies; /* of enum sl_minidump_inconsistency */
};

/* Of a dump with an exception. The flips lie in the arena, the analysis must outlive them. SL_BUSY when out of memory. Pure. */
enum sl_code sl_minidump_analyse(const struct sl_minidump *dump, struct sl_arena *arena,
                                 struct sl_minidump_analysis *analysis, struct sl_error *error);
