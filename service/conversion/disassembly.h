/* Converter that disassembles a function of a program.
 *
 * `out` gets for each line: offset from the first instruction (uint64_t), size of the text (uint32_t), text. All little-endian. */
#pragma once

#include "conversion/conversion.h"

enum { DISASSEMBLY_MAX_CODE = 1 << 20 }; /* bytes of code; larger than any function */

extern const struct converter converter_disassembly; /* INPUT_FILE: the program */
struct disassembly_options {
    struct reader_limits limits;
    uint64_t address, size; /* the range to disassemble; begins earlier if `address` is inside of an instruction */
    bool to_function_end;   /* disassemble at least to the end of the function */
};
enum disassembly_problem {
    DISASSEMBLY_OK,
    DISASSEMBLY_NO_ARCH,  /* there is no disassembler for `arch` */
    DISASSEMBLY_NO_BYTES, /* the program has no bytes at the address */
    DISASSEMBLY_PROBLEMS,
};
struct disassembly_result {
    enum disassembly_problem problem;
    enum sl_arch arch;
    uint64_t start, size; /* address of the first instruction; bytes that were decoded */
};

/* Reads the output of converter_disassembly: calls `line` for each line, until it returns false. False if the bytes are damaged, which the
 * caller must expect, since a worker wrote them. */
bool disassembly_read(struct sl_bytes lines, bool (*line)(void *arg, uint64_t offset, struct sl_str text), void *arg);
