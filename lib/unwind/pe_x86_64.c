/* PE for x86-64: the exception directory (Microsoft, "x64 exception handling").
 *
 *     RUNTIME_FUNCTION  begin, end, unwind info ──▶ UNWIND_INFO  actions of the prologue, newest first; optionally the
 *                                                                RUNTIME_FUNCTION of an earlier part of the function
 *
 * The rules change with each instruction of the prologue. For a later part of a function the prologues of earlier parts were executed
 * before it begins. Epilogues are not described: Windows recognises them by their code. */
#include "unwind/pe.h"

#include <stdlib.h>

enum {
    FLAG_CHAINED = 4,
    UWOP_PUSH_NONVOL = 0,
    UWOP_ALLOC_LARGE,
    UWOP_ALLOC_SMALL,
    UWOP_SET_FPREG,
    UWOP_SAVE_NONVOL,
    UWOP_SAVE_NONVOL_FAR,
    UWOP_EPILOG, /* in version 2; in version 1 it saved half an XMM register */
    UWOP_SPARE,
    UWOP_SAVE_XMM128,
    UWOP_SAVE_XMM128_FAR,
    UWOP_PUSH_MACHFRAME,
    RSP = 7, /* DWARF number */
};

struct info { /* UNWIND_INFO */
    uint8_t version, flags, count;
    uint8_t frame_register, frame_offset; /* Microsoft's register number; its value minus rsp, in units of 16 bytes */
    const uint8_t *codes;                 /* `count` slots of two bytes; a code has one to three of them */
};

struct unwind_x86_64_code {
    uint8_t offset;   /* end of its instruction, counted from the start of the function part */
    uint8_t op, info; /* UWOP_*; Microsoft's OpInfo, whose meaning depends on `op` */
    uint32_t operand; /* for codes with more than one slot; in bytes */
};

struct part_reader {
    const struct pe_tables *tables;
    struct unwind_builder *b;
    struct info *chain; /* UNWIND_INFO of the part itself, then of earlier parts */
    size_t capacity;
};

/* The effect of the instructions of the prologue that have been applied. */
struct pe_x86_64_state {
    struct unwind_rules rules;
    int64_t stack;        /* distance from rsp to the CFA in bytes, before a frame register was set */
    bool has_frame;       /* CFA and saved registers are relative to the frame register */
    unsigned frame;       /* has_frame: DWARF number of the frame register */
    int64_t frame_offset; /* has_frame: frame register minus rsp when it was set, in bytes */
};

/* ---- UNWIND_INFO ---- */

/* Reads the UNWIND_INFO at `address`; false if it is damaged or of an unknown version. `*chained` is the address of the UNWIND_INFO of the
 * earlier part of the function, 0 if there is none. */
static bool read_info(const struct part_reader *pe, uint32_t address, struct info *info, uint32_t *chained)
{
    struct sl_reader r = sl_reader(sl_object_at(pe->tables->object, address), false);
    uint8_t head = sl_read_u8(&r);
    sl_read_u8(&r); /* size of the prologue */
    info->version = head & 7;
    info->flags = head >> 3;
    info->count = sl_read_u8(&r);
    uint8_t frame = sl_read_u8(&r);
    info->frame_register = frame & 15;
    info->frame_offset = frame >> 4;
    info->codes = r.at;
    sl_reader_skip(&r, (uint64_t)((info->count + 1) & ~1) * 2); /* slots of two bytes, padded to an even number */
    *chained = 0;
    if (info->flags & FLAG_CHAINED) {
        sl_reader_skip(&r, 8); /* start and end of the earlier part */
        *chained = sl_read_u32(&r);
    }
    return !r.failed && (info->version == 1 || info->version == 2);
}

/* Decodes the code in slot `*at` and moves `*at` past it. Codes have one to three slots of two bytes, depending on the operation and the
 * version. False for an unknown operation. */
static bool read_code(const struct info *info, unsigned *at, struct unwind_x86_64_code *code)
{
    /* by operation, from UWOP_PUSH_NONVOL (0) to UWOP_PUSH_MACHFRAME (10), for version 2 of the format */
    static const uint8_t slots[] = {1, 2, 1, 1, 2, 3, 1, 2, 2, 3, 1};
    struct sl_reader r = sl_reader((struct sl_bytes){info->codes, info->count * 2u}, false);
    sl_reader_skip(&r, *at * 2u);
    code->offset = sl_read_u8(&r);
    uint8_t op = sl_read_u8(&r);
    code->op = op & 15;
    code->info = op >> 4;
    if (r.failed || code->op > UWOP_PUSH_MACHFRAME)
        return false;
    unsigned count = slots[code->op];
    if (code->op == UWOP_ALLOC_LARGE && code->info == 1)
        count = 3;
    /* in version 1 these two numbers stood for saved XMM registers */
    else if (info->version == 1 && (code->op == UWOP_EPILOG || code->op == UWOP_SPARE))
        count = code->op == UWOP_EPILOG ? 2 : 3;
    if (count == 2)
        /* an offset in units of 8 bytes; that of vector registers is in units of 16, but they get no rule */
        code->operand = sl_read_u16(&r) * 8u;
    else if (count == 3)
        code->operand = sl_read_u32(&r);
    *at += count;
    return !r.failed;
}

/* Converts a register number of instructions to DWARF's, whose order differs. */
static unsigned dwarf_register(unsigned number)
{
    static const uint8_t map[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    return map[number & 15];
}

static void pe_x86_64_set(struct pe_x86_64_state *s, struct sl_unwind_rule rule)
{
    rules_set(&s->rules, &rule);
}

/* Applies the effect of an instruction of the prologue to the state. Once there is a frame register the rule of the CFA is relative to it,
 * and later changes of rsp do not matter. */
static void pe_x86_64_apply(struct pe_x86_64_state *s, const struct info *info, const struct unwind_x86_64_code *code)
{
    switch (code->op) {
    case UWOP_PUSH_NONVOL:
        s->stack += 8;
        pe_x86_64_set(s, rule_memory(dwarf_register(code->info), SL_UNWIND_CFA, -s->stack));
        break;
    case UWOP_ALLOC_LARGE: s->stack += code->operand; break;
    case UWOP_ALLOC_SMALL: s->stack += code->info * 8 + 8; break;
    case UWOP_SET_FPREG:
        s->has_frame = true;
        s->frame = dwarf_register(info->frame_register);
        s->frame_offset = info->frame_offset * 16;
        pe_x86_64_set(s, rule_offset(SL_UNWIND_CFA, s->frame, s->stack - s->frame_offset));
        break;
    case UWOP_SAVE_NONVOL:
    case UWOP_SAVE_NONVOL_FAR:
        /* the operand counts from rsp as it was when the frame register was set: that register minus s->frame_offset */
        if (s->has_frame)
            pe_x86_64_set(s,
                          rule_memory(dwarf_register(code->info), s->frame, (int64_t)code->operand - s->frame_offset));
        else
            pe_x86_64_set(s, rule_memory(dwarf_register(code->info), SL_UNWIND_CFA, (int64_t)code->operand - s->stack));
        break;
    case UWOP_PUSH_MACHFRAME: /* interrupt frame: ip, cs, flags, sp, ss, and perhaps an error code below */
        pe_x86_64_set(s, rule_memory(RSP, SL_UNWIND_CFA, -(s->stack + 16)));
        pe_x86_64_set(s, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -(s->stack + 40)));
        s->stack += 40 + (code->info ? 8 : 0);
        break;
    default: break;
    }
    if (!s->has_frame)
        pe_x86_64_set(s, rule_offset(SL_UNWIND_CFA, RSP, s->stack));
}

/* Decodes the codes of the prologue, newest first, into `codes`. Returns their number, or -1 if one is unknown. */
static int read_codes(const struct info *info, struct unwind_x86_64_code codes[255])
{
    unsigned at = 0;
    int count = 0;
    while (at < info->count) {
        if (!read_code(info, &at, &codes[count]))
            return -1;
        count += info->version == 1 || codes[count].op != UWOP_EPILOG; /* epilogue codes of version 2 are dropped */
    }
    return count;
}

/* A part of a function at addresses [begin, end), whose codes are being applied. */
struct x86_64_unwind_part {
    uint32_t begin, end;
    struct unwind_builder *b;
};

static void add_row(const struct x86_64_unwind_part *part, unsigned offset, const struct unwind_rules *rules)
{
    if (offset < part->end - part->begin)
        builder_row(part->b, part->begin + offset, rules);
}

/* Applies the codes, given newest first, from the oldest on. A code takes effect at its offset, behind its instruction; there the builder
 * gets the new rules, once for several codes at one offset. If offsets do not ascend, as they must, the whole part gets the rules after its
 * prologue. */
static void run_part(const struct x86_64_unwind_part *part, const struct info *info,
                     const struct unwind_x86_64_code *codes, int count, struct pe_x86_64_state *s)
{
    bool ascend = true;
    for (int i = 0; i + 1 < count; i++)
        ascend = ascend && codes[i].offset >= codes[i + 1].offset;
    unsigned offset = 0;
    for (int i = count; i-- > 0;) {
        if (ascend && codes[i].offset > offset) {
            add_row(part, offset, &s->rules);
            offset = codes[i].offset;
        }
        pe_x86_64_apply(s, info, &codes[i]);
    }
    add_row(part, offset, &s->rules);
}

/* ---- RUNTIME_FUNCTION ---- */

/* Sets the state at the entry of a function: only the return address is on the stack. */
static void begin_state(struct pe_x86_64_state *s)
{
    s->stack = 8;
    s->has_frame = false;
    rules_clear(&s->rules);
    pe_x86_64_set(s, rule_offset(SL_UNWIND_CFA, RSP, 8));
    pe_x86_64_set(s, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -8));
}

/* Adds the rules of a part of a function at [begin, end) whose UNWIND_INFO is at `address`. Follows the chain of earlier parts up to the
 * first, applies the codes of all earlier parts, whose prologues were executed before, then those of this part. SL_OK also for a damaged
 * function, which is counted in sink->skipped. SL_MALFORMED if the chain exceeds sl_object_max_unwind_chain(); else errors of memory,
 * budget or sink. */
static enum sl_code pe_x86_64_add_function(struct part_reader *pe, uint32_t begin, uint32_t end, uint32_t address)
{
    struct unwind_builder *b = pe->b;
    struct pe_x86_64_state state;
    struct unwind_x86_64_code codes[255];
    size_t depth = 0;
    int count = 0;
    bool ok = true;
    if (address & 1) { /* the address of another RUNTIME_FUNCTION plus 1: its UNWIND_INFO holds for this one too */
        struct sl_reader r = sl_reader(sl_object_at(pe->tables->object, address & ~1u), false);
        sl_reader_skip(&r, 8);
        address = sl_read_u32(&r);
    }
    do {
        if (depth == sl_object_max_unwind_chain(pe->tables->object))
            return b->code =
                       sl_fail(b->error, SL_MALFORMED,
                               "unwind data of the PE file: a function has a chain of more than %llu UNWIND_INFOs",
                               (unsigned long long)depth);
        if (!sl_account_grow(&b->account, &pe->chain, &pe->capacity, depth + 1, sizeof *pe->chain))
            return b->code = sl_budget_fail(b->account.budget, b->error);
        ok = builder_spend(b, 1) && read_info(pe, address, &pe->chain[depth], &address);
    } while (ok && (pe->chain[depth++].flags & FLAG_CHAINED));
    if (!ok) { /* counted as damaged only if b->code is SL_OK: else the budget is used up, and the function may be sound */
        b->sink->skipped += b->code == SL_OK;
        return b->code;
    }
    begin_state(&state);
    for (size_t i = depth; i-- > 0 && count >= 0;) {
        count = builder_spend(b, 2u * pe->chain[i].count) ? read_codes(&pe->chain[i], codes) : -1;
        /* earlier parts only: the codes of this part, i == 0, are applied by run_part() */
        for (int j = count; i > 0 && j-- > 0;)
            pe_x86_64_apply(&state, &pe->chain[i], &codes[j]);
    }
    if (count < 0) {
        b->sink->skipped += b->code == SL_OK;
        return b->code;
    }
    run_part(&(struct x86_64_unwind_part){begin, end, b}, &pe->chain[0], codes, count, &state);
    return builder_end(b, end);
}

/* Reads the exception directory: for each part of a function its start, its end and the address of its UNWIND_INFO. Entries of no code are
 * ignored. */
enum sl_code pe_read_x86_64(const struct pe_tables *tables, struct unwind_builder *b)
{
    struct sl_reader r = sl_reader(tables->directory, false);
    struct part_reader pe = {.tables = tables, .b = b};
    while (sl_reader_left(&r) >= 12 && b->code == SL_OK) {
        uint32_t begin = sl_read_u32(&r), end = sl_read_u32(&r), info = sl_read_u32(&r);
        if (begin < end)
            pe_x86_64_add_function(&pe, begin, end, info);
    }
    free(pe.chain);
    return b->code;
}
