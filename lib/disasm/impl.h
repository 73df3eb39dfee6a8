/* What the disassemblers share. Private to this folder. */
#pragma once

#include "disasm/disasm.h"

struct disasm_line {
    struct sl_buf text;
    bool has_target; /* a relative branch */
    uint64_t target;
    const char *why; /* it is no instruction */
};

struct disasm_engine { /* one for each run */
    void *state;
    /* Bytes of the instruction at the front, whose text is appended; 0: there is none. */
    size_t (*read)(void *state, enum sl_code_form form, struct sl_bytes bytes, uint64_t address,
                   struct disasm_line *line);
    void (*close)(void *state);
};

/* False when out of memory. */
bool disasm_x86_open(bool is_64bit, struct disasm_engine *engine);
bool disasm_llvm_open(bool is_aarch64, struct disasm_engine *engine); /* ARM: Thumb is the usual form */
