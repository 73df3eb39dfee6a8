/* Unwind information: rules that find the caller's registers at every address of the code, in one form for all formats.
 *
 *     .debug_frame, .eh_frame ┐
 *     .ARM.exidx, .ARM.extab  │
 *     __unwind_info           ├──read──▶ ranges of rules ──▶ sink (text of a symbol file, a cache, an unwinder)
 *     .pdata, .xdata          │
 *     STACK records           ┘
 *
 * A *range* is code [start, start + size) with *rows* at ascending addresses, the first at its start. A row contains the rules
 * that change there. The rules at an address are those of all rows of its range up to it; a later rule replaces an earlier one
 * for the same register. The first row contains the rule of the CFA (canonical frame address: the caller's stack pointer, DWARF
 * 5, 6.4), so every address of a range has one. Code whose rules cannot be expressed is in no range. A register without a rule
 * follows the ABI: unchanged if the callee must preserve it, else lost.
 *
 *     STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^     range [0x1000, 0x1010), row at 0x1000: .cfa, .ra
 *     STACK CFI 1001 .cfa: $rsp 16 + $rbp: .cfa -16 + ^          row at 0x1001: .cfa, rbp; .ra as before
 *
 * Ranges come in the order of the file and may overlap if tables do; the first of two takes precedence. All addresses are
 * relative to the object's load address. Registers have their DWARF numbers (the psABI of each architecture). */
#pragma once

#include "base/buf.h"
#include "object/object.h"

enum {
    SL_UNWIND_CFA = 0xFFFF,   /* `.cfa`, as a rule's register or base */
    SL_UNWIND_RA = 0xFFFE,    /* `.ra`: the return address */
    SL_UNWIND_NAMED = 0xFFFD, /* symbol files only: an unknown register, identified by name */
};

enum { SL_UNWIND_MAX_EXPRESSION = 1024 }; /* bytes of a DWARF expression; the value of a longer one counts as unknown */

enum sl_unwind_kind {
    SL_UNWIND_UNDEFINED, /* the caller's value is lost; for SL_UNWIND_RA: there is no caller */
    SL_UNWIND_SAME,      /* unchanged: the callee's value */
    SL_UNWIND_REGISTER,  /* the value of the register `base` */
    SL_UNWIND_OFFSET,    /* base + offset */
    SL_UNWIND_MEMORY,    /* the pointer-sized word at base + offset */
    SL_UNWIND_PROGRAM,   /* a postfix expression */
    SL_UNWIND_EXPRESSION /* a DWARF expression that postfix text cannot express */
};

struct sl_unwind_rule {
    uint16_t reg;   /* the register, of which the rule gives the caller's value */
    uint8_t kind;   /* enum sl_unwind_kind */
    uint16_t base;  /* a register or SL_UNWIND_CFA */
    int64_t offset; /* bytes */
    /* Postfix as in STACK CFI records: operands first, `^` loads, registers by name, signed decimals. Or the bytes of a DWARF
     * expression (DWARF 5, 2.5) in the file's byte order, which computes the register's value, never its address. The
     * expression of a register starts with the CFA on its stack. */
    struct sl_str program;
    struct sl_str name; /* for SL_UNWIND_NAMED */
};

struct sl_unwind_row {
    uint64_t address;
    const struct sl_unwind_rule *rules; /* each register once */
    size_t count;
    /* Symbol files omit this row, because STACK CFI text cannot express the rule of its CFA. In a range either all rows are so or none. */
    bool not_in_text;
};

struct sl_unwind_range {
    uint64_t start, size; /* size > 0, no overflow */
    const struct sl_unwind_row *rows;
    size_t row_count;  /* > 0 */
    bool signal_frame; /* the caller of this code was interrupted and did not call */
};

/* A record of Microsoft's frame data (Breakpad, docs/symbol_files.md, "STACK WIN"). */
struct sl_unwind_win {
    uint8_t type; /* 0: FPO; 4: with a program; other types that a file has are delivered too */
    uint64_t start, size;
    uint32_t prolog, epilog, params, saved, locals, max_stack; /* bytes */
    bool has_program;
    struct sl_str program; /* has_program false: `1` if ebp is a general-purpose register in the function, else `0` */
};

/* Receives what sl_unwind_read() reads: a callback for each range and each STACK WIN record. Arguments are valid during the call; texts
 * that point into the debug file stay valid. A code other than SL_OK stops the reading, and sl_unwind_read() returns it. */
struct sl_unwind_sink {
    enum sl_code (*range)(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error);
    enum sl_code (*win)(struct sl_unwind_sink *sink, const struct sl_unwind_win *win, struct sl_error *error);
    size_t skipped; /* entries that could not be read or expressed completely */
};

/* Passes all unwind information of the object to the sink, on the caller's thread. Malformed entries are skipped and counted in
 * sink->skipped; the object's budget limits the work. SL_NOT_FOUND when the object has none in a known format. SL_MALFORMED, after the
 * readable part was passed, when a table is malformed or takes too much work. SL_BUSY when out of memory. A failure of the sink is returned
 * as it is. */
enum sl_code sl_unwind_read(struct sl_object *object, struct sl_unwind_sink *sink, struct sl_error *error);

/* Returns the register's name in STACK CFI records: "$rax", "x29", ".cfa", ".ra". NULL if it has none. */
const char *sl_unwind_register_name(enum sl_cpu_family family, unsigned reg);

/* ---- text ---- */

/* A sink that writes STACK CFI and STACK WIN records of Breakpad symbol files, line by line. */
struct sl_unwind_text {
    struct sl_unwind_sink sink;
    enum sl_cpu_family family;
    uint64_t base;                                /* added to every address */
    bool subtract;                                /* write CFA offsets as `N -` instead of `-N +`, as is usual for PE */
    bool (*write)(void *arg, struct sl_str text); /* gets each line; false stops the reading with SL_CANCELLED */
    void *arg;
    size_t records; /* number of ranges and STACK WIN records written */
    struct sl_buf line;
};

/* Initialise the sink for a CPU family (`subtract` is false), or for an object, whose format decides `subtract`. The caller then sets
 * `base`, `write` and `arg`. */
void sl_unwind_text_init_family(struct sl_unwind_text *text, enum sl_cpu_family family);
void sl_unwind_text_init(struct sl_unwind_text *text, const struct sl_object *object);
void sl_unwind_text_free(struct sl_unwind_text *text);
