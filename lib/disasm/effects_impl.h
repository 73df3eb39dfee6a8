/* What effects.c, effects_x86.c and effects_arm64.c share. Private to them. */
#pragma once

#include "disasm/effects.h"
#include "disasm/impl.h"

struct effects_reading {
    const struct sl_disasm_registers *registers;
    struct sl_disasm_effects *out;
    bool is_complete; /* all that it accesses is known */
    bool is_implied;  /* by the instruction: registers of its addresses are none that it names */
};

/* A register's value, noted as one of those that addresses are made of unless that is implied. False, and the accesses are not known, when it is not. */
bool effects_base(struct effects_reading *r, unsigned number, const char *name, uint64_t *value);
void effects_access(struct effects_reading *r, const struct sl_disasm_access *access);

/* Each fills all but `has_accesses`; false: it is no instruction. */
bool effects_x86(struct effects_reading *r, bool is_64bit, struct sl_bytes bytes, uint64_t address);
/* `text` is the instruction's. */
void effects_arm64(struct effects_reading *r, struct sl_str text, uint64_t address);
