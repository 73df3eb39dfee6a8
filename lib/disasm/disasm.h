/* Machine code as text, an instruction a line: of x86 in Intel's syntax by Zydis, of ARM (as Thumb where nothing else is said) and
 * AArch64 by LLVM's MC. Data between code are words.
 * Relative branches have their absolute target, and its name where there is one. What is no instruction is told so, byte by
 * byte, and the next one is looked for behind it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "object/object.h"

struct sl_disasm_code {
    enum sl_arch arch;
    struct sl_bytes bytes;            /* from the first instruction on, as much as there is */
    uint64_t address;                 /* of the first byte */
    uint64_t size;                    /* instructions that begin within these bytes are wanted */
    const struct sl_code_mark *marks; /* by address, of the whole file; `mark_count` 0 = none */
    size_t mark_count;
};

struct sl_disasm_reader {
    /* One instruction; false ends it. */
    bool (*line)(void *arg, uint64_t offset, struct sl_str text);
    /* Appends what a branch to the address is to be called, nothing when it has no name. NULL = nothing has. */
    void (*name)(void *arg, uint64_t address, struct sl_buf *out);
    void *arg;
};

/* "x86_64", "i686", "arm", "aarch64"; NULL: there is no disassembler for it. */
const char *sl_disasm_arch(enum sl_arch arch);
const char *sl_disasm_syntax(enum sl_arch arch); /* "Intel", "ARM" */
/* Bytes: where instructions can begin, in code of that form. */
unsigned sl_disasm_step(enum sl_arch arch, enum sl_code_form form);
/* That of the code at the address, by the marks. */
enum sl_code_form sl_disasm_form(const struct sl_code_mark *marks, size_t count, uint64_t address);

/* `*decoded` gets the bytes that were read, which the last instruction may take beyond `size`. SL_UNSUPPORTED; SL_BUSY out of
 * memory, or `line` has had enough. */
enum sl_code sl_disasm(const struct sl_disasm_code *code, const struct sl_disasm_reader *reader, uint64_t *decoded,
                       struct sl_error *error);
