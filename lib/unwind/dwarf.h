/* Call frame information (DWARF 5, 6.4; for .eh_frame: LSB Core, "Exception Frames"). Shared by dwarf.c, which finds the
 * entries, program.c, which runs their instructions, and the readers of expressions. Private to this folder. */
#pragma once

#include "unwind/impl.h"

struct cie {         /* the CIE that was read last; most FDEs in a row share one */
    uint64_t offset; /* in the section; UINT64_MAX = none has been read */
    uint64_t code_alignment, return_register;
    int64_t data_alignment;
    unsigned address_size, segment_size;
    uint8_t pointer_encoding;   /* DW_EH_PE_*, of addresses in FDEs */
    bool has_augmentation_data; /* the augmentation string begins with `z` */
    bool usable;                /* it is well-formed; else its FDEs are skipped */
    bool signal_frame;
    struct sl_bytes instructions;
    struct unwind_rules initial; /* the rules after `instructions`, with which each FDE begins */
};

struct fde {
    uint64_t start, end; /* absolute */
    struct sl_bytes instructions;
};

/* Runs the initial instructions of the CIE; fills `cie->initial`. False if one is malformed or not supported. */
bool program_begin(const struct cfi_section_data *frames, struct cie *cie, struct unwind_builder *b);

/* Runs the instructions of the FDE and passes the rules at each address to the builder. A malformed or unsupported instruction ends the
 * range at the address reached, and false is returned. */
bool program_run(const struct cfi_section_data *frames, const struct cie *cie, const struct fde *fde,
                 struct unwind_builder *b);

/* Reads a pointer in a DW_EH_PE_* encoding from `r`, which points into the section. False when it is cut off, indirect, or relative to
 * something other than its own position. */
bool frames_pointer(const struct cfi_section_data *frames, struct sl_reader *r, uint8_t encoding, unsigned address_size,
                    uint64_t *value);

/* Operations of DWARF expressions (DWARF 5, 7.7.1). */
enum {
    DW_OP_deref = 0x06,
    DW_OP_const1u = 0x08,
    DW_OP_const1s,
    DW_OP_const2u,
    DW_OP_const2s,
    DW_OP_const4u,
    DW_OP_const4s,
    DW_OP_const8u,
    DW_OP_const8s,
    DW_OP_constu,
    DW_OP_consts,
    DW_OP_dup,
    DW_OP_drop,
    DW_OP_over,
    DW_OP_pick,
    DW_OP_swap,
    DW_OP_rot,
    DW_OP_abs = 0x19,
    DW_OP_and,
    DW_OP_div,
    DW_OP_minus,
    DW_OP_mod,
    DW_OP_mul,
    DW_OP_neg,
    DW_OP_not,
    DW_OP_or,
    DW_OP_plus,
    DW_OP_plus_uconst,
    DW_OP_shl,
    DW_OP_shr,
    DW_OP_shra,
    DW_OP_xor,
    DW_OP_bra,
    DW_OP_eq,
    DW_OP_ge,
    DW_OP_gt,
    DW_OP_le,
    DW_OP_lt,
    DW_OP_ne,
    DW_OP_skip,
    DW_OP_lit0 = 0x30,
    DW_OP_lit31 = 0x4F,
    DW_OP_breg0 = 0x70,
    DW_OP_breg31 = 0x8F,
    DW_OP_bregx = 0x92,
    DW_OP_deref_size = 0x94,
    DW_OP_nop = 0x96,
    DW_OP_call_frame_cfa = 0x9C,
};

/* Returns the value of an operation that only pushes a constant (DWARF 5, 2.5.1.1), reading its operand from `r`. False, without
 * reading, for any other operation. */
bool dwarf_constant(struct sl_reader *r, unsigned op, uint64_t *value);
