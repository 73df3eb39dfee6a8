/* What one instruction does with the registers as they are: the memory it reads and writes, and where it goes on. Of x86 as Zydis
 * decodes it; of AArch64 by the text that LLVM's MC gives. It tells nothing of what it cannot know: no address is made of a
 * register or a segment that is not known. */
#pragma once

#include "disasm/disasm.h"

struct sl_disasm_registers {
    bool (*get)(const void *arg, unsigned number, uint64_t *value); /* by DWARF's numbers; false: not known */
    const void *arg;
    bool has_segment; /* Windows: where the thread's block is that GS (x86-64) or FS (x86) begins at */
    uint64_t segment;
};

enum { SL_DISASM_READS = 1, SL_DISASM_WRITES = 2 };

struct sl_disasm_access {
    uint64_t address;
    uint32_t size;     /* bytes; 0 = not known */
    uint8_t direction; /* SL_DISASM_READS, SL_DISASM_WRITES or both */
    bool base_is_null; /* the register that the address begins with is 0 */
};

enum sl_disasm_flow {
    SL_DISASM_NEXT,   /* it goes on behind it */
    SL_DISASM_ELSE,   /* or somewhere that its bytes say, or nobody knows */
    SL_DISASM_TO,     /* at `target` */
    SL_DISASM_LOADED, /* where the word of memory at `target` says */
};

enum { SL_DISASM_ACCESSES = 8, SL_DISASM_BASES = 4, SL_DISASM_TEXT = 256 };

struct sl_disasm_base { /* a register that an address is made of */
    char name[8];
    uint64_t value;
};

struct sl_disasm_effects {
    char text[SL_DISASM_TEXT]; /* "mov dword [rax + 0x8], 0x5" */
    bool has_accesses;         /* those are all; else they are not known */
    struct sl_disasm_access accesses[SL_DISASM_ACCESSES];
    struct sl_disasm_base bases[SL_DISASM_BASES];
    size_t size, access_count, base_count; /* `size`: bytes of the instruction */
    enum sl_disasm_flow flow;
    uint64_t target;
    bool is_division, is_privileged; /* known of x86 only */
    bool faults_only_non_canonical;  /* x86: a general protection fault means nothing else */
};

/* `code->bytes` begin with the instruction. SL_UNSUPPORTED: its processor is another one; SL_MALFORMED: it is no instruction;
 * SL_BUSY. */
enum sl_code sl_disasm_effects(const struct sl_disasm_code *code, const struct sl_disasm_registers *registers,
                               struct sl_disasm_effects *effects, struct sl_error *error);
