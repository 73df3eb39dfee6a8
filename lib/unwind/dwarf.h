/* Call frame information (DWARF 5, 6.4; for .eh_frame: LSB Core, "Exception Frames"): what dwarf.c, which finds the entries,
 * and program.c, which runs their instructions, share. Private to this folder. */
#pragma once

#include "unwind/impl.h"

struct cie {
    uint64_t offset; /* in the section; UINT64_MAX = none read yet */
    uint64_t code_alignment, return_register;
    int64_t data_alignment;
    unsigned address_size, segment_size;
    uint8_t pointer_encoding;
    bool has_augmentation_data;
    bool usable;
    bool signal_frame;
    struct sl_bytes instructions;
    struct rules initial;
};

struct fde {
    uint64_t start, end; /* absolute */
    struct sl_bytes instructions;
};

/* Runs the CIE's own instructions, which gives `cie->initial`. */
bool program_begin(const struct frames *frames, struct cie *cie, struct builder *b);

/* Runs the FDE's and gives the rows to the builder. After an instruction that cannot be understood nothing is known: the
 * range ends there. Returns false then. */
bool program_run(const struct frames *frames, const struct cie *cie, const struct fde *fde, struct builder *b);

/* An encoded pointer; false when it is not there or needs a base that is not known. */
bool frames_pointer(const struct frames *frames, struct sl_reader *r, uint8_t encoding, unsigned address_size,
                    uint64_t *value);
