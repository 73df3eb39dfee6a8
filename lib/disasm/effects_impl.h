/* Shared by effects.c, effects_x86.c and effects_arm64.c. Private to them. */
#pragma once

#include "disasm/effects.h"
#include "disasm/impl.h"

struct effects_reading {
    const struct sl_disasm_registers *registers;
    struct sl_disasm_effects *out;
    bool is_complete; /* all accesses are known */
    bool is_implied;  /* the operand being read is implicit: its registers are not named in the instruction's text */
};

/* Reads the register of an address, by its DWARF `number`, and records it under `name` in `out->bases`, unless the operand is implicit or
 * the array is full. False, with `*value` 0 and `is_complete` cleared, if its value is unknown. */
bool effects_base(struct effects_reading *r, unsigned number, const char *name, uint64_t *value);
/* Adds an access; if the array is full, clears `is_complete` instead. */
void effects_access(struct effects_reading *r, const struct sl_disasm_access *access);

/* Fills `r->out` except `has_accesses`, which follows from `r->is_complete`. False for an invalid instruction. */
bool effects_x86(struct effects_reading *r, bool is_64bit, struct sl_bytes bytes, uint64_t address);
/* Fills the accesses, bases and flow of `r->out`; `text` is the disassembled instruction. */
void effects_arm64(struct effects_reading *r, struct sl_str text, uint64_t address);
