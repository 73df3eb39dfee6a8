/* What the files of this folder share. Private to it.
 *
 *     format reader ──rules of one place──▶ struct builder ──ranges of changes──▶ sink */
#pragma once

#include "base/account.h"
#include "unwind/unwind.h"

enum {
    MAX_SLOTS = 192,         /* registers with rules in one range: as many as architectures have, and a few */
    MAX_ROW_RULES = 1 << 17, /* rules of one range in memory; a longer range is split */
};

/* The rules of one place. A register gets a slot when it is first mentioned and keeps it, so that rules come in the order
 * in which a range mentions them. */
struct rules {
    struct sl_unwind_rule cfa; /* `known` false: it cannot be said */
    bool cfa_known;
    bool beyond_text; /* of unwind.h's rows */
    size_t count;
    struct slot {
        struct sl_unwind_rule rule;
        bool set; /* else the register is as the ABI has it */
    } slots[MAX_SLOTS];
};

struct span {
    uint64_t start, end;
};

struct builder {
    struct sl_unwind_sink *sink;
    struct sl_error *error;
    enum sl_cpu_family family;
    uint16_t ra;           /* the register that has the return address when a function begins; SL_UNWIND_RA: none has */
    struct sl_arena arena; /* programs of the range at hand */
    struct sl_unwind_row *rows;
    struct sl_unwind_rule *rules;
    size_t row_count, row_capacity, rule_count, rule_capacity;
    struct rules *last; /* what the rows so far add up to */
    struct sl_account account;
    uint64_t start;
    bool signal_frame; /* of the ranges to come */
    size_t emitted;    /* ranges given to the sink */
    bool keeps_spans;
    struct span *spans; /* of those ranges, if it keeps them */
    size_t span_count, span_capacity;
    bool open;
    enum sl_code code; /* first failure, sticky */
};

/* ---- build.c ---- */

/* False when out of memory. To be freed in any case. */
bool builder_init(struct builder *b, struct sl_unwind_sink *sink, enum sl_cpu_family family, struct sl_budget *budget,
                  struct sl_error *error);
void builder_free(struct builder *b);

/* Takes from the budget; false (and the builder fails) when nothing is left. */
bool builder_spend(struct builder *b, uint32_t steps);

/* What an instruction costs where rules are searched, copied or compared. */
static inline uint32_t steps_of(const struct rules *rules)
{
    return 1 + (uint32_t)rules->count / 4;
}

/* The rules from `address` on, which ascend within a range; what did not change is left out. Rules whose CFA is not known
 * end the range, and the next known ones begin another. */
void builder_row(struct builder *b, uint64_t address, const struct rules *rules);

/* Ends the range at `end` and gives it to the sink. Returns the builder's code. */
enum sl_code builder_end(struct builder *b, uint64_t end);

/* What is in the ranges given so far is complete: builder_gap() can be asked. */
void builder_close_spans(struct builder *b);

/* The first part of [start, end) that is in none of the spans; false when there is none. */
bool builder_gap(const struct builder *b, uint64_t start, uint64_t end, struct span *gap);

/* Sets the rule of rule->reg, or of its name. False when there are too many. */
bool rules_set(struct rules *rules, const struct sl_unwind_rule *rule);
void rules_clear(struct rules *rules);
void rules_copy(struct rules *to, const struct rules *from);

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

/* Register of that name, SL_UNWIND_CFA, SL_UNWIND_RA, or SL_UNWIND_NAMED if there is none. */
unsigned register_number(enum sl_cpu_family family, struct sl_str name);

/* Whether the return address is in a register when a function begins. */
bool has_return_register(enum sl_cpu_family family);

/* ---- rule.c ---- */

/* The next field of a line, separated by blanks, which is taken off `*rest`; empty at the end. */
struct sl_str next_field(struct sl_str *rest);

/* Blanks and printable characters: the text goes to terminals and other tools. */
bool is_text(struct sl_str line);

/* What a postfix expression says, in a fixed form if it has one, else as the program it is (not copied). */
struct sl_unwind_rule rule_parse(enum sl_cpu_family family, unsigned reg, struct sl_str text);

/* Appends `reg: expression`. Nothing is appended for what has no name. */
void rule_print(struct sl_buf *out, const struct sl_unwind_rule *rule, enum sl_cpu_family family, bool subtract);

/* ---- expression.c ---- */

/* A DWARF expression (DWARF 5, 2.5) in postfix form, into the arena. `pushes_cfa`: it finds the CFA on the stack, as those
 * of registers do. False when it cannot be said so. `big_endian` is that of its constants. */
bool expression_translate(struct sl_bytes expression, enum sl_cpu_family family, bool big_endian, bool pushes_cfa,
                          struct sl_arena *arena, struct sl_str *text);

/* ---- dwarf.c ---- */

struct frames { /* one section of call frame information */
    struct sl_bytes bytes;
    uint64_t address;      /* of the section, absolute */
    uint64_t load_address; /* what results are relative to */
    unsigned pointer_size;
    bool big_endian, is_eh;
    bool swapped; /* Apple's 32-bit x86 has esp and ebp the other way round */
};

/* Every entry of the section. */
enum sl_code frames_read(const struct frames *frames, struct builder *b);

/* The one entry at an offset. */
enum sl_code frames_read_at(const struct frames *frames, uint64_t offset, struct builder *b);

/* ---- the other formats ---- */

/* `frames` has no bytes if there is no __eh_frame. */
enum sl_code compact_read(struct sl_object *object, struct sl_bytes info, const struct frames *frames,
                          struct builder *b);
enum sl_code ehabi_read(struct sl_object *object, struct builder *b); /* where the builder has no ranges yet */
enum sl_code pdb_read(const struct sl_object *object, struct builder *b);
enum sl_code pe_read(struct sl_object *object, struct builder *b);
enum sl_code breakpad_stack_read(const struct sl_object *object, struct builder *b);
