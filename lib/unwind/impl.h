/* Shared by the files of this folder. Private to it.
 *
 *     format reader ──rules at an address──▶ struct unwind_builder ──ranges of changes──▶ sink */
#pragma once

#include "base/account.h"
#include "unwind/unwind.h"

enum {
    MAX_SLOTS = 192, /* registers with rules in a range: as many as the largest architecture has, and a few more */
    MAX_ROW_RULES = 1 << 17, /* maximum of rules of a range in memory; a longer range is split */
};

/* The rules at an address. A register gets a slot when it is first mentioned and keeps it, so rules come in the order in which
 * the range mentions them. */
struct unwind_rules {
    struct sl_unwind_rule cfa; /* valid if cfa_known */
    bool cfa_known;
    bool not_in_text; /* see sl_unwind_row */
    size_t count;
    struct unwind_slot {
        struct sl_unwind_rule rule;
        bool set; /* false: the register is unchanged or lost, by the ABI */
    } slots[MAX_SLOTS];
};

struct unwind_span {
    uint64_t start, end;
};

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
    uint64_t start;
    bool signal_frame; /* for the ranges that follow */
    size_t emitted;    /* ranges passed to the sink */
    bool keeps_spans;
    struct unwind_span *spans; /* of those ranges, if keeps_spans */
    size_t span_count, span_capacity;
    bool open;
    enum sl_code code; /* the first failure; sticky */
};

/* ---- build.c ---- */

/* False when out of memory. Call builder_free() in any case. */
bool builder_init(struct unwind_builder *b, struct sl_unwind_sink *sink, enum sl_cpu_family family,
                  struct sl_budget *budget, struct sl_error *error);
void builder_free(struct unwind_builder *b);

/* Spends steps of the budget; false, and the builder fails, when none are left. */
bool builder_spend(struct unwind_builder *b, uint32_t steps);

/* Returns the cost of an instruction that searches, copies or compares rules. */
static inline uint32_t count_steps(const struct unwind_rules *rules)
{
    return 1 + (uint32_t)rules->count / 4;
}

/* Sets the rules from `address` on (addresses ascend within a range); only changes are recorded. Rules without a known CFA end the range,
 * and the next rules with a CFA begin another. */
void builder_row(struct unwind_builder *b, uint64_t address, const struct unwind_rules *rules);

/* Ends the range at `end` and passes it to the sink. Returns the builder's code. */
enum sl_code builder_end(struct unwind_builder *b, uint64_t end);

/* Stops recording spans and sorts them; builder_gap() may be called from now on. */
void builder_close_spans(struct unwind_builder *b);

/* Finds the first part of [start, end) outside of all spans; false when there is none. */
bool builder_gap(const struct unwind_builder *b, uint64_t start, uint64_t end, struct unwind_span *gap);

/* Sets the rule of rule->reg, or of its name. False when all slots are taken. */
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

/* Returns the number of the register, SL_UNWIND_CFA, SL_UNWIND_RA, or SL_UNWIND_NAMED for any other name. */
unsigned register_number(enum sl_cpu_family family, struct sl_str name);

/* True if the return address is in a register at function entry. */
bool has_return_register(enum sl_cpu_family family);

/* ---- rule.c ---- */

/* Removes and returns the next field of a line, separated by blanks; empty at the end. */
struct sl_str next_field(struct sl_str *rest);

/* True for text of blanks and printable characters: it is written to terminals and other tools. */
bool is_text(struct sl_str line);

/* Parses a postfix expression into a rule of a fixed form, if there is one, else into a program (not copied). */
struct sl_unwind_rule rule_parse(enum sl_cpu_family family, unsigned reg, struct sl_str text);

/* Appends `reg: expression`; nothing for a register without a name. */
void rule_print(struct sl_buf *out, const struct sl_unwind_rule *rule, enum sl_cpu_family family, bool subtract);

/* ---- expression.c ---- */

/* Translates a DWARF expression (DWARF 5, 2.5) into postfix text in the arena. `pushes_cfa`: the CFA is on the stack initially,
 * as for expressions of registers. `big_endian`: byte order of its constants. False when postfix cannot express it. */
bool expression_translate(struct sl_bytes expression, enum sl_cpu_family family, bool big_endian, bool pushes_cfa,
                          struct sl_arena *arena, struct sl_str *text);

/* ---- dwarf.c ---- */

struct cfi_section_data { /* a section of call frame information */
    struct sl_bytes bytes;
    uint64_t address;      /* of the section; absolute */
    uint64_t load_address; /* results are relative to it */
    unsigned pointer_size;
    bool big_endian, is_eh;
    bool swapped; /* Apple's 32-bit x86 numbers esp and ebp in reverse */
};

/* Reads every entry of the section. */
enum sl_code frames_read(const struct cfi_section_data *frames, struct unwind_builder *b);

/* Reads the entry at an offset. */
enum sl_code frames_read_at(const struct cfi_section_data *frames, uint64_t offset, struct unwind_builder *b);

/* ---- the other formats ---- */

/* Reads `__unwind_info`. `frames` is __eh_frame, to which entries may refer; it has no bytes if the file has no such section. */
enum sl_code compact_read(struct sl_object *object, struct sl_bytes info, const struct cfi_section_data *frames,
                          struct unwind_builder *b);
enum sl_code ehabi_read(struct sl_object *object,
                        struct unwind_builder *b); /* fills the gaps between the builder's ranges */
enum sl_code pdb_read(const struct sl_object *object, struct unwind_builder *b);
enum sl_code pe_read(struct sl_object *object, struct unwind_builder *b);
enum sl_code breakpad_stack_read(const struct sl_object *object, struct unwind_builder *b);
