/* Effects of one instruction, given the register values: memory accesses and control flow. x86 is decoded by Zydis; AArch64 from
 * the text of LLVM's MC. Effects that depend on unknown registers or segments are reported as unknown. */
#pragma once

#include "disasm/disasm.h"

struct sl_disasm_registers {
    bool (*get)(const void *arg, unsigned number, uint64_t *value); /* by DWARF number; false: unknown */
    const void *arg;
    bool has_segment; /* `segment` is known */
    uint64_t segment; /* Windows: base address of GS (x86-64) or FS (x86), where the thread environment block is */
};

enum { SL_DISASM_READS = 1, SL_DISASM_WRITES = 2 };

struct sl_disasm_access {
    uint64_t address;
    uint32_t size;     /* bytes; 0 = unknown */
    uint8_t direction; /* SL_DISASM_READS, SL_DISASM_WRITES or both */
    bool base_is_null; /* the base register is 0 */
};

enum sl_disasm_flow {
    SL_DISASM_NEXT,     /* continues with the next instruction */
    SL_DISASM_UNKNOWN,  /* a conditional branch, one to a constant address, or one whose register is not known */
    SL_DISASM_DIRECT,   /* jumps to `target`, the value of a register */
    SL_DISASM_INDIRECT, /* jumps to the address stored at `target` */
};

enum { SL_DISASM_ACCESSES = 8, SL_DISASM_BASES = 4, SL_DISASM_TEXT = 256 };

struct sl_disasm_base { /* a register used in an address */
    char name[8];
    uint64_t value;
};

struct sl_disasm_effects {
    char text[SL_DISASM_TEXT]; /* "mov dword [rax + 0x8], 0x5" */
    bool has_accesses;         /* `accesses` is complete; else some are unknown */
    struct sl_disasm_access accesses[SL_DISASM_ACCESSES];
    struct sl_disasm_base bases[SL_DISASM_BASES];
    size_t size, access_count, base_count; /* `size`: bytes of the instruction */
    enum sl_disasm_flow flow;
    uint64_t target;
    bool is_division, is_privileged; /* x86 only */
    bool faults_only_non_canonical;  /* x86: a general protection fault can only mean a non-canonical address */
};

/* Decodes the instruction at the beginning of `code->bytes`. SL_UNSUPPORTED if the processor is not x86, x86-64 or AArch64; SL_MALFORMED
 * for an invalid instruction; SL_BUSY when out of memory. */
enum sl_code sl_disasm_effects(const struct sl_disasm_code *code, const struct sl_disasm_registers *registers,
                               struct sl_disasm_effects *effects, struct sl_error *error);
