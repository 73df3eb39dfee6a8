/* Private to this folder: the builder, and the functions that its files share.
 *
 *     format reader ──all rules at an address──▶ struct unwind_builder ──ranges, of which rows have only changes──▶ sink */
#pragma once

#include "base/account.h"
#include "unwind/unwind.h"

enum {
    MAX_SLOTS = 192,         /* maximum number of registers with rules in a range: more than any architecture has */
    MAX_ROW_RULES = 1 << 17, /* maximum number of rules of a range in memory; a longer range is split */
};

/* All rules at an address. Within a range (code for which one FDE or the like has rules) a register gets a slot when it is first mentioned
 * and keeps it. So two addresses can be compared slot by slot, and rules are written in the order in which the file mentions registers. */
struct unwind_rules {
    struct sl_unwind_rule cfa; /* valid if cfa_known */
    bool cfa_known;
    bool not_in_text; /* symbol files omit the rules at this address; see sl_unwind_row */
    size_t count;
    struct unwind_slot {
        struct sl_unwind_rule rule;
        bool set; /* false: no rule, so the ABI says whether the register is unchanged or lost */
    } slots[MAX_SLOTS];
};

struct unwind_span { /* addresses [start, end) that have rules */
    uint64_t start, end;
};

/* Collects the current range and passes it to the sink when it ends. */
struct unwind_builder {
    struct sl_unwind_sink *sink;
    struct sl_error *error;
    enum sl_cpu_family family;
    uint16_t ra;           /* register with the return address at function entry; SL_UNWIND_RA: none */
    struct sl_arena arena; /* programs of the current range */
    struct sl_unwind_row *rows;
    struct sl_unwind_rule *rules;
    size_t row_count, row_capacity, rule_count, rule_capacity;
    struct unwind_rules *last; /* the rules after the last row */
    struct sl_account account;
    uint64_t start;            /* of the current range; valid if `open` */
    bool signal_frame;         /* sl_unwind_range.signal_frame of the ranges that follow */
    size_t emitted;            /* ranges and STACK WIN records passed to the sink */
    bool keeps_spans;          /* record the addresses of ranges, for builder_gap() */
    struct unwind_span *spans; /* addresses of the ranges passed to the sink while keeps_spans was set */
    size_t span_count, span_capacity;
    bool open;         /* a range has begun */
    enum sl_code code; /* the first failure; sticky */
};

/* ---- build.c ---- */

/* Initialises a builder; `budget` may be NULL. False when out of memory: then nothing need be freed. */
bool builder_init(struct unwind_builder *b, struct sl_unwind_sink *sink, enum sl_cpu_family family,
                  struct sl_budget *budget, struct sl_error *error);
void builder_free(struct unwind_builder *b);

/* Charges work to the budget. When it is used up, sets b->code and returns false; false also if the builder failed before. */
bool builder_spend(struct unwind_builder *b, uint32_t steps);

/* Returns how many steps of the budget it costs to search, copy or compare these rules. */
static inline uint32_t count_steps(const struct unwind_rules *rules)
{
    return 1 + (uint32_t)rules->count / 4;
}

/* Tells the builder all rules that hold from `address` on; addresses must ascend within a range. Begins a range if none is open. Only the
 * changes since the last call are stored. Rules without a known CFA end the range. */
void builder_row(struct unwind_builder *b, uint64_t address, const struct unwind_rules *rules);

/* Ends the open range, if any, at `end` and passes it to the sink. Returns b->code: the first failure of the builder or sink, or SL_OK. */
enum sl_code builder_end(struct unwind_builder *b, uint64_t end);

/* Stops recording the addresses of ranges and sorts them. After that builder_gap() may be called. */
void builder_close_spans(struct unwind_builder *b);

/* Finds the first part of [start, end) that no recorded range covers; false when there is none. */
bool builder_gap(const struct unwind_builder *b, uint64_t start, uint64_t end, struct unwind_span *gap);

/* Sets the rule of the register rule->reg, or rule->name if that is SL_UNWIND_NAMED. False when all slots are taken. */
bool rules_set(struct unwind_rules *rules, const struct sl_unwind_rule *rule);
void rules_clear(struct unwind_rules *rules);
void rules_copy(struct unwind_rules *to, const struct unwind_rules *from);

static inline struct sl_unwind_rule rule_offset(unsigned reg, unsigned base, int64_t offset)
{
    return (struct sl_unwind_rule){
        .reg = (uint16_t)reg, .kind = SL_UNWIND_OFFSET, .base = (uint16_t)base, .offset = offset};
}

static inline struct sl_unwind_rule rule_memory(unsigned reg, unsigned base, int64_t offset)
{
    return (struct sl_unwind_rule){
        .reg = (uint16_t)reg, .kind = SL_UNWIND_MEMORY, .base = (uint16_t)base, .offset = offset};
}

static inline struct sl_unwind_rule rule_register(unsigned reg, unsigned base)
{
    return (struct sl_unwind_rule){.reg = (uint16_t)reg, .kind = SL_UNWIND_REGISTER, .base = (uint16_t)base};
}

/* ---- registers.c ---- */

/* Returns the DWARF number of the register that STACK CFI records call `name`: SL_UNWIND_CFA for `.cfa`, SL_UNWIND_RA for `.ra`,
 * SL_UNWIND_NAMED for an unknown name. */
unsigned register_number(enum sl_cpu_family family, struct sl_str name);

/* True if the return address is in a register at function entry. */
bool has_return_register(enum sl_cpu_family family);

/* ---- rule.c ---- */

/* Removes the next field of a line, in which blanks separate fields, and returns it; empty at the end. */
struct sl_str next_field(struct sl_str *rest);

/* True for text of blanks and printable characters. Other text must not get into symbol files, which people print on terminals. */
bool is_text(struct sl_str line);

/* Parses a postfix expression for the register `reg`. `base N + ^` and the like become a rule with base and offset; any other text becomes
 * SL_UNWIND_PROGRAM, whose program points to `text`. */
struct sl_unwind_rule rule_parse(enum sl_cpu_family family, unsigned reg, struct sl_str text);

/* Appends `reg: expression`; nothing for a register without a name. With `subtract` writes `base N -` for negative offsets. */
void rule_print(struct sl_buf *out, const struct sl_unwind_rule *rule, enum sl_cpu_family family, bool subtract);

/* ---- expression.c ---- */

/* Translates a DWARF expression (DWARF 5, 2.5) into postfix text in the arena. `pushes_cfa`: the CFA is on the stack initially, as DWARF
 * demands for registers. `big_endian`: byte order of constants. False when postfix cannot express it, or when out of memory. */
bool expression_translate(struct sl_bytes expression, enum sl_cpu_family family, bool big_endian, bool pushes_cfa,
                          struct sl_arena *arena, struct sl_str *text);

/* ---- dwarf.c ---- */

struct cfi_section_data { /* a section of call frame information */
    struct sl_bytes bytes;
    uint64_t address;      /* of the section; absolute */
    uint64_t load_address; /* the builder gets addresses relative to it */
    unsigned pointer_size;
    bool big_endian;
    bool is_eh;   /* .eh_frame, else .debug_frame */
    bool swapped; /* the numbers of esp and ebp are exchanged, as in __eh_frame of Apple's 32-bit x86 */
};

/* Reads every FDE of the section and passes its rules to the builder. Returns b->code. */
enum sl_code frames_read(const struct cfi_section_data *frames, struct unwind_builder *b);

/* Reads the FDE at an offset of the section and passes its rules to the builder. Returns b->code. */
enum sl_code frames_read_at(const struct cfi_section_data *frames, uint64_t offset, struct unwind_builder *b);

/* ---- the other formats: each function reads all unwind information of its format, passes it to the builder, returns b->code ---- */

/* Reads Apple's `__unwind_info`. `frames` is __eh_frame, to which entries may refer; it has no bytes if the file has no such section. */
enum sl_code compact_read(struct sl_object *object, struct sl_bytes info, const struct cfi_section_data *frames,
                          struct unwind_builder *b);
/* Reads .ARM.exidx. Code for which a table read before has rules keeps those. */
enum sl_code ehabi_read(struct sl_object *object, struct unwind_builder *b);
/* Reads the frame data of a PDB. */
enum sl_code pdb_read(const struct sl_object *object, struct unwind_builder *b);
/* Reads the exception directory of a PE file for x86-64 or ARM64. */
enum sl_code pe_read(struct sl_object *object, struct unwind_builder *b);
/* Reads the STACK records of a Breakpad symbol file. */
enum sl_code breakpad_stack_read(const struct sl_object *object, struct unwind_builder *b);
