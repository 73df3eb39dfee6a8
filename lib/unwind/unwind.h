/* Unwind information: how to find the caller's registers at every place of the code, whatever format says so.
 *
 *     .debug_frame, .eh_frame ┐
 *     .ARM.exidx, .ARM.extab  │
 *     __unwind_info           ├──read──▶ ranges of rules ──▶ sink (text of a symbol file, a cache, an unwinder)
 *     .pdata, .xdata          │
 *     STACK records           ┘
 *
 * A *range* is code [start, start + size) with *rows* at ascending addresses, the first at its start. A row has the rules
 * that change there: those of a place are the rules of all rows of its range up to it, later ones in place of earlier ones
 * for the same register. The first row has the rule of the CFA (canonical frame address: the stack pointer of the caller,
 * as DWARF 5, 6.4, defines it), so every place of a range has one; code whose rules cannot be said is in no range. A
 * register without any rule keeps what the ABI says: its value if the callee must preserve it, else it is lost.
 *
 * Ranges come in the order of the file and may overlap where tables do; of two the first is to be preferred. All addresses
 * are relative to the object's load address. Registers have their DWARF numbers (the psABI of each architecture). */
#pragma once

#include "base/buf.h"
#include "object/object.h"

enum {
    SL_UNWIND_CFA = 0xFFFF,   /* `.cfa`, as a rule's register or base */
    SL_UNWIND_RA = 0xFFFE,    /* `.ra`: the address to return to */
    SL_UNWIND_NAMED = 0xFFFD, /* of symbol files: a register the architecture does not have, by its name */
};

enum { SL_UNWIND_MAX_EXPRESSION = 1024 }; /* bytes; longer ones are not worth a look */

enum sl_unwind_kind {
    SL_UNWIND_UNDEFINED, /* the caller's value is lost; of SL_UNWIND_RA: there is no caller */
    SL_UNWIND_SAME,      /* the callee's value */
    SL_UNWIND_REGISTER,  /* base */
    SL_UNWIND_OFFSET,    /* base + offset */
    SL_UNWIND_MEMORY,    /* the pointer-sized word at base + offset */
    SL_UNWIND_PROGRAM,   /* a postfix expression */
    SL_UNWIND_EXPRESSION /* a DWARF expression that postfix text cannot say */
};

struct sl_unwind_rule {
    uint16_t reg;
    uint8_t kind;
    uint16_t base;  /* a register or SL_UNWIND_CFA */
    int64_t offset; /* bytes */
    /* As a STACK CFI record has it: operands first, `^` loads, registers by name, signed decimals. Or the bytes of a DWARF
     * expression (DWARF 5, 2.5) in the file's byte order, which gives the register's value itself, never where it is; that of
     * a register finds the CFA on its stack. */
    struct sl_str program;
    struct sl_str name; /* of SL_UNWIND_NAMED */
};

struct sl_unwind_row {
    uint64_t address;
    const struct sl_unwind_rule *rules; /* each register once */
    size_t count;
    /* Not for symbol files: tools that write these do not know of it (epilogues), or text cannot say it. What such rows
     * change, the last of them in a row changes back; where the first row of a range is one, all of the range is. */
    bool beyond_text;
};

struct sl_unwind_range {
    uint64_t start, size; /* size > 0, no overflow */
    const struct sl_unwind_row *rows;
    size_t row_count;  /* > 0 */
    bool signal_frame; /* the caller of this code was interrupted, it did not call */
};

/* A record of Microsoft's frame data (Breakpad, docs/symbol_files.md, "STACK WIN"). */
struct sl_unwind_win {
    uint8_t type; /* 0 FPO, 4 with a program; others as they are */
    uint64_t start, size;
    uint32_t prolog, epilog, params, saved, locals, max_stack; /* bytes */
    bool has_program;
    struct sl_str program; /* without one: `1` if ebp is used for other purposes, else `0` */
};

/* Takes the stream. What it is given is valid during the call, but for texts that point into the debug file. Another code
 * than SL_OK ends the reading, which returns it. */
struct sl_unwind_sink {
    enum sl_code (*range)(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error);
    enum sl_code (*win)(struct sl_unwind_sink *sink, const struct sl_unwind_win *win, struct sl_error *error);
    size_t skipped; /* entries that could not be read, or said, in part or in whole */
};

/* Streams all unwind information of the object. Bad entries are skipped and counted; what comes of a file is bounded by
 * its budget. SL_NOT_FOUND when the object has none that is known; SL_MALFORMED when a table cannot be read on or takes too
 * much work, after what was read before it; SL_BUSY when out of memory. On the caller's thread: reading is the smaller part
 * of what is done with it. */
enum sl_code sl_unwind_read(struct sl_object *object, struct sl_unwind_sink *sink, struct sl_error *error);

/* The name of a register in STACK CFI records: "$rax", "x29", ".cfa", ".ra". NULL when it has none. */
const char *sl_unwind_register_name(enum sl_cpu_family family, unsigned reg);

/* ---- as text ---- */

/* A sink that writes STACK CFI and STACK WIN records of Breakpad symbol files, line by line. */
struct sl_unwind_text {
    struct sl_unwind_sink sink;
    enum sl_cpu_family family;
    uint64_t base; /* added to every address */
    bool subtract; /* offsets from the CFA are written `N -`, as is the custom for PE, instead of `-N +` */
    bool (*write)(void *arg, struct sl_str text); /* false stops with SL_CANCELLED */
    void *arg;
    size_t records; /* written so far: ranges and STACK WIN */
    struct sl_buf line;
};

/* For the object's stream, or one of the family (`subtract` is false then); sets all but `base`, `write` and `arg`, which the
 * caller does. */
void sl_unwind_text_of(struct sl_unwind_text *text, enum sl_cpu_family family);
void sl_unwind_text_init(struct sl_unwind_text *text, const struct sl_object *object);
void sl_unwind_text_free(struct sl_unwind_text *text);
