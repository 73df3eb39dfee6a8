/* Shared by the disassemblers. Private to this folder. */
#pragma once

#include "disasm/disasm.h"

struct disasm_line {
    struct sl_buf text;
    bool has_target; /* set for relative branches */
    uint64_t target;
    const char *why; /* why the instruction is invalid; static, or NULL */
};

struct disasm_engine { /* one for each call of sl_disasm() */
    void *state;
    /* Decodes the instruction at the beginning of `bytes` and appends its text; returns its size, 0 if it is invalid. */
    size_t (*read)(void *state, enum sl_code_isa isa, struct sl_bytes bytes, uint64_t address,
                   struct disasm_line *line);
    void (*close)(void *state);
};

/* False when out of memory. */
bool disasm_x86_open(bool is_64bit, struct disasm_engine *engine);
bool disasm_llvm_open(bool is_aarch64, struct disasm_engine *engine); /* for ARM, SL_ISA_DEFAULT is Thumb */
