/* Disassembles machine code, one line for each instruction: x86 in Intel's syntax by Zydis, ARM and AArch64 by LLVM's MC. ELF mapping
 * symbols ($a, $t, $d) tell where ARM code is A32, Thumb or data; without them it is Thumb. Data are printed as words.
 *
 * Relative branches show their absolute target, with its name if it has one. Invalid bytes are shown with the reason, and
 * decoding continues after them. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "object/object.h"

struct sl_disasm_code {
    enum sl_arch arch;
    struct sl_bytes bytes; /* from the first instruction on; may extend beyond `size`, as the last instruction may */
    uint64_t address;      /* of the first byte */
    uint64_t size;         /* decode the instructions that begin within these bytes */
    /* ELF mapping symbols of the whole file, sorted by address; `mapping_symbol_count` 0 = none */
    const struct sl_mapping_symbol *mapping_symbols;
    size_t mapping_symbol_count;
};

struct sl_disasm_reader {
    /* Receives the line for the instruction or data at `offset` in `bytes`; false stops the disassembly. */
    bool (*line)(void *arg, uint64_t offset, struct sl_str text);
    /* Appends the name of a branch target, if it has one. NULL = no names. */
    void (*name)(void *arg, uint64_t address, struct sl_buf *out);
    void *arg;
};

/* Returns "x86_64", "i686", "arm", "aarch64"; NULL if there is no disassembler. */
const char *sl_disasm_arch(enum sl_arch arch);
const char *sl_disasm_syntax(enum sl_arch arch); /* returns "Intel" or "ARM" */
/* Returns the alignment of instructions in bytes, which is also the number of bytes skipped as an invalid instruction. */
unsigned sl_disasm_step(enum sl_arch arch, enum sl_code_isa isa);
/* Returns the form of the code at `address` (A32, T32 or data), according to the last of the mapping symbols at or before it;
 * SL_ISA_DEFAULT if there is none. */
enum sl_code_isa sl_disasm_isa_at(const struct sl_mapping_symbol *mapping_symbols, size_t count, uint64_t address);

/* Disassembles `code` into lines for `reader`. `*decoded` is the number of bytes read; the last instruction may extend beyond `size`.
 * SL_UNSUPPORTED if sl_disasm_arch() is NULL; SL_BUSY, with the message "out of memory", if memory is exhausted or `line` returned
 * false. */
enum sl_code sl_disasm(const struct sl_disasm_code *code, const struct sl_disasm_reader *reader, uint64_t *decoded,
                       struct sl_error *error);
