/* Shared by effects.c, effects_x86.c and effects_arm64.c. Private to them. */
#pragma once

#include "disasm/effects.h"
#include "disasm/impl.h"

struct effects_reading {
    const struct sl_disasm_registers *registers;
    struct sl_disasm_effects *out;
    bool is_complete; /* all accesses are known */
    bool is_implied;  /* implicit operand: its registers are not named in the instruction */
};

/* Reads a register for an address and records it as a base, unless the operand is implicit. False, and the accesses are
 * incomplete, if its value is unknown. */
bool effects_base(struct effects_reading *r, unsigned number, const char *name, uint64_t *value);
void effects_access(struct effects_reading *r, const struct sl_disasm_access *access);

/* Fill all but `has_accesses`; false for an invalid instruction. */
bool effects_x86(struct effects_reading *r, bool is_64bit, struct sl_bytes bytes, uint64_t address);
/* `text` is the disassembled instruction. */
void effects_arm64(struct effects_reading *r, struct sl_str text, uint64_t address);
