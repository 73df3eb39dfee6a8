/* PE for ARM64: the exception directory (Microsoft, "ARM64 exception handling").
 *
 *     RUNTIME_FUNCTION  begin, word ──▶ .xdata: length, then a code for each instruction of the prologue, newest first
 *                                  └──▶ packed: a few numbers that select a canonical prologue
 *
 * Both are decoded into steps, one for each instruction of the prologue. Then the steps are run from the oldest on, and the state before
 * each instruction gives the rules at its address. */
#include "unwind/pe.h"

enum {
    X19 = 19,
    FP = 29,
    LR = 30,
    SP = 31,
    D8 = 72,
    MAX_STEPS = 1024,    /* .xdata has at most 255 words of codes, and a code at least one byte */
    PACKED_FRAGMENT = 2, /* flag: a part of a function whose prologue is in an earlier part */
};

enum step_kind {
    STEP_NOTHING,
    STEP_ALLOC,     /* sub sp, `offset` */
    STEP_SAVE,      /* stores registers at sp + offset */
    STEP_PUSH,      /* stores registers at sp - offset, the new sp */
    STEP_SAVE_NEXT, /* stores the pair after the last one */
    STEP_SET_FP,    /* x29 = sp + offset */
};

struct pe_arm64_step {
    uint8_t kind;
    uint8_t first, second; /* DWARF numbers of the registers stored; second 0: one register */
    bool before;           /* an instruction of an earlier part of the function, which has its own unwind data */
    uint32_t offset;       /* bytes */
};

struct steps {
    struct pe_arm64_step items[MAX_STEPS]; /* newest first */
    size_t count;
    bool bad;
};

/* Appends a step, the effect of one instruction: the registers that it stores (`second` 0: only one; both 0: none) and an offset in bytes,
 * whose meaning depends on the kind. More than MAX_STEPS, which only damaged files have, set s->bad. */
static void pe_arm64_add(struct steps *s, enum step_kind kind, unsigned first, unsigned second, uint32_t offset)
{
    if (s->count == MAX_STEPS)
        s->bad = true;
    else
        s->items[s->count++] = (struct pe_arm64_step){
            .kind = (uint8_t)kind, .first = (uint8_t)first, .second = (uint8_t)second, .offset = offset};
}

/* ---- codes of .xdata ---- */

/* Decodes a save code of two bytes: from the highest bit on, 6 to 8 bits are the code, 3 or 4 the register, 5 or 6 the offset / 8. Codes
 * `.._x` are stores that also allocate stack, at least 8 bytes, so there the field is offset / 8 - 1. False for reserved codes. */
static bool add_save(struct steps *s, unsigned byte, unsigned next)
{
    unsigned reg4 = (byte & 3) << 2 | next >> 6, reg3 = (byte & 1) << 2 | next >> 6, offset = (next & 63) * 8;
    if (byte < 0xCC) /* save_regp */
        pe_arm64_add(s, STEP_SAVE, X19 + reg4, X19 + reg4 + 1, offset);
    else if (byte < 0xD0) /* save_regp_x */
        pe_arm64_add(s, STEP_PUSH, X19 + reg4, X19 + reg4 + 1, offset + 8);
    else if (byte < 0xD4) /* save_reg */
        pe_arm64_add(s, STEP_SAVE, X19 + reg4, 0, offset);
    else if (byte < 0xD6) /* save_reg_x */
        pe_arm64_add(s, STEP_PUSH, X19 + ((byte & 1) << 3 | next >> 5), 0, (next & 31) * 8 + 8);
    else if (byte < 0xD8) /* save_lrpair */
        pe_arm64_add(s, STEP_SAVE, X19 + 2 * reg3, LR, offset);
    else if (byte < 0xDA) /* save_fregp */
        pe_arm64_add(s, STEP_SAVE, D8 + reg3, D8 + reg3 + 1, offset);
    else if (byte < 0xDC) /* save_fregp_x */
        pe_arm64_add(s, STEP_PUSH, D8 + reg3, D8 + reg3 + 1, offset + 8);
    else if (byte < 0xDE) /* save_freg */
        pe_arm64_add(s, STEP_SAVE, D8 + reg3, 0, offset);
    else if (byte == 0xDE) /* save_freg_x */
        pe_arm64_add(s, STEP_PUSH, D8 + (next >> 5), 0, (next & 31) * 8 + 8);
    else
        return false;
    return true;
}

/* Decodes one code ("Unwind codes" in Microsoft's document). False at the code `end`, and, with s->bad set, at an unsupported code. The
 * code end_c sets `*before`: all codes after it describe the prologue of an earlier part of the function. */
static bool add_code(struct steps *s, struct sl_reader *r, bool *before)
{
    unsigned byte = sl_read_u8(r);
    size_t count = s->count;
    if (byte < 0x20) /* alloc_s */
        pe_arm64_add(s, STEP_ALLOC, 0, 0, byte * 16);
    else if (byte < 0x40) /* save_r19r20_x */
        pe_arm64_add(s, STEP_PUSH, X19, X19 + 1, (byte & 31) * 8);
    else if (byte < 0x80) /* save_fplr */
        pe_arm64_add(s, STEP_SAVE, FP, LR, (byte & 63) * 8);
    else if (byte < 0xC0) /* save_fplr_x */
        pe_arm64_add(s, STEP_PUSH, FP, LR, (byte & 63) * 8 + 8);
    else if (byte < 0xC8) /* alloc_m */
        pe_arm64_add(s, STEP_ALLOC, 0, 0, ((byte & 7) << 8 | sl_read_u8(r)) * 16);
    else if (byte < 0xE0)
        s->bad = !add_save(s, byte, sl_read_u8(r));
    else if (byte == 0xE0) { /* alloc_l */
        uint32_t high = sl_read_u8(r), middle = sl_read_u8(r);
        pe_arm64_add(s, STEP_ALLOC, 0, 0, (high << 16 | middle << 8 | sl_read_u8(r)) * 16);
    } else if (byte == 0xE1) /* set_fp */
        pe_arm64_add(s, STEP_SET_FP, 0, 0, 0);
    else if (byte == 0xE2) /* add_fp */
        pe_arm64_add(s, STEP_SET_FP, 0, 0, sl_read_u8(r) * 8u);
    else if (byte == 0xE3 || byte == 0xFC) /* nop, pac_sign_lr */
        pe_arm64_add(s, STEP_NOTHING, 0, 0, 0);
    else if (byte == 0xE4) /* end */
        return false;
    else if (byte == 0xE5) /* end_c: the codes of the earlier part follow */
        *before = true;
    else if (byte == 0xE6) /* save_next */
        pe_arm64_add(s, STEP_SAVE_NEXT, 0, 0, 0);
    /* 0xEC, clear_unwound_to_call, stands for no instruction; the other codes are of system frames and scalable vectors, or reserved */
    else if (byte != 0xEC)
        s->bad = true;
    for (; count < s->count; count++)
        s->items[count].before = *before;
    s->bad = s->bad || r->failed;
    return !s->bad;
}

/* Reads the .xdata record at `address`. False if it is damaged or has an unsupported version or code. The codes of epilogues are skipped,
 * so epilogues get the rules of the function's body. `*length` is the size of the function in bytes. */
static bool read_xdata(const struct pe_tables *t, uint32_t address, struct steps *s, uint32_t *length)
{
    struct sl_reader r = sl_reader(sl_object_at(t->object, address), false);
    uint32_t head = sl_read_u32(&r), scopes = head >> 22 & 31,
             words = head >> 27; /* epilogue records; words of codes */
    bool before = false;
    *length = (head & 0x3FFFF) * 4;
    if (!scopes && !words) { /* both zero: the numbers are too large for the first word, a second one has them */
        uint32_t more = sl_read_u32(&r);
        scopes = more & 0xFFFF;
        words = more >> 16 & 0xFF;
    }
    if (!(head >> 21 &
          1)) /* skip the epilogue records; bit 21: there are none, but one epilogue, at the end of the function */
        sl_reader_skip(&r, (uint64_t)scopes * 4);
    struct sl_reader codes = sl_reader(sl_read_bytes(&r, (uint64_t)words * 4), false);
    if (r.failed || (head >> 18 & 3) != 0) /* the version of the format: only 0 exists */
        return false;
    while (sl_reader_left(&codes) && add_code(s, &codes, &before))
        continue; /* up to the code `end`; the codes of epilogues are behind it */
    return !s->bad;
}

/* ---- packed ---- */

struct arm64_packed_unwind {
    uint32_t frame;    /* bytes of the whole frame */
    uint32_t saved;    /* bytes of the saved registers and, if `homed`, x0 to x7, rounded up to 16 */
    uint32_t integers; /* bytes of x19.. and, with cr 1, lr */
    uint32_t floats;   /* bytes of d8.. */
    unsigned reg_f;    /* Microsoft's RegF: number of saved registers d8.. minus 1; 0: none */
    unsigned reg_i;    /* Microsoft's RegI: number of saved registers x19.. */
    unsigned cr;       /* Microsoft's CR: 0 lr is not saved, 1 saved; 2 and 3 frame chain, with 2 lr is signed */
    bool homed;        /* Microsoft's H: x0 to x7 are stored on the stack */
};

/* Adds the stores of the canonical prologue for packed data, oldest first: x19.., lr with cr 1, d8.., x0 to x7. The first store also
 * allocates the save area of p->saved bytes (STEP_PUSH), whose first p->integers bytes are for x19.. and lr. */
static void add_saves(struct steps *s, const struct arm64_packed_unwind *p)
{
    uint32_t at = 0;
    bool lr_pending = p->cr == 1;
    for (unsigned i = 0; i < p->reg_i; i += 2) {
        unsigned second = i + 1 < p->reg_i ? X19 + i + 1 : 0;
        /* an odd register is paired with lr, but not the first one, whose store allocates: save_lrpair cannot do that */
        if (!second && lr_pending && i) {
            second = LR;
            lr_pending = false;
        }
        pe_arm64_add(s, at ? STEP_SAVE : STEP_PUSH, X19 + i, second, at ? at : p->saved);
        at += second ? 16 : 8;
    }
    if (lr_pending) /* lr has the last place of `integers` */
        pe_arm64_add(s, at ? STEP_SAVE : STEP_PUSH, LR, 0, at ? p->integers - 8 : p->saved);
    at = p->integers;
    for (unsigned i = 0; p->reg_f && i < p->reg_f + 1; i += 2) { /* reg_f is the number of registers minus 1; 0: none */
        unsigned second = i + 1 < p->reg_f + 1 ? D8 + i + 1 : 0;
        pe_arm64_add(s, at ? STEP_SAVE : STEP_PUSH, D8 + i, second, at ? at : p->saved);
        at += second ? 16 : 8;
    }
    /* four stores of two parameters each, which no rule restores; if nothing was saved before them, the first one allocates the area */
    for (unsigned i = 0; p->homed && i < 4; i++)
        pe_arm64_add(s, i == 0 && !p->integers && !p->floats ? STEP_ALLOC : STEP_NOTHING, 0, 0, p->saved);
}

/* Adds the part of the canonical prologue that allocates the local variables and, with a frame chain (cr 2, 3), saves x29 and lr there. The
 * limits are those of the instructions: `stp` allocates at most 512 bytes, the first `sub` 4080. */
static void add_frame(struct steps *s, const struct arm64_packed_unwind *p)
{
    uint32_t local = p->frame - p->saved;
    bool has_frame = p->cr >= 2;
    if (has_frame && local <= 512) {
        pe_arm64_add(s, STEP_PUSH, FP, LR, local);
    } else if (local) {
        if (local > 4080)
            pe_arm64_add(s, STEP_ALLOC, 0, 0, 4080);
        pe_arm64_add(s, STEP_ALLOC, 0, 0, local > 4080 ? local - 4080 : local);
        if (has_frame)
            pe_arm64_add(s, STEP_SAVE, FP, LR, 0);
    }
    if (has_frame)
        pe_arm64_add(s, STEP_SET_FP, 0, 0, 0);
}

/* Decodes packed unwind data (Microsoft, "Packed unwind data", has the bits) and makes the steps of the prologue that it stands for.
 * `*length` is the size of the function in bytes. False if the data contradict themselves: there are only ten registers x19 to x28, and the
 * saved ones must fit into the frame. */
static bool read_packed(uint32_t word, struct steps *s, uint32_t *length)
{
    struct arm64_packed_unwind p = {.frame = (word >> 23) * 16,
                                    .reg_f = word >> 13 & 7,
                                    .reg_i = word >> 16 & 15,
                                    .homed = word >> 20 & 1,
                                    .cr = word >> 21 & 3};
    *length = (word >> 2 & 0x7FF) * 4;
    p.integers = p.reg_i * 8 + (p.cr == 1 ? 8 : 0);
    p.floats = p.reg_f ? p.reg_f * 8 + 8 : 0;
    p.saved = (p.integers + p.floats + (p.homed ? 64 : 0) + 15) & ~15u; /* 64: x0 to x7 */
    if (p.reg_i > 10 || p.saved > p.frame)
        return false;
    if (p.cr == 2) /* pacibsp signs the return address */
        pe_arm64_add(s, STEP_NOTHING, 0, 0, 0);
    add_saves(s, &p);
    add_frame(s, &p);
    for (size_t i = 0; i < s->count / 2; i++) { /* reverse them: `items` is newest first */
        struct pe_arm64_step swap = s->items[i];
        s->items[i] = s->items[s->count - 1 - i];
        s->items[s->count - 1 - i] = swap;
    }
    /* the prologue of a fragment was executed in an earlier part of the function, and has no instructions in this one */
    if ((word & 3) == PACKED_FRAGMENT)
        for (size_t i = 0; i < s->count; i++)
            s->items[i].before = true;
    return true;
}

/* ---- rules ---- */

struct pe_arm64_state {
    struct unwind_rules rules;
    int64_t stack;             /* distance from sp to the CFA in bytes */
    bool has_frame;            /* the CFA is relative to x29 */
    struct pe_arm64_step last; /* the last store, with its offset from sp; kind 0: none */
};

static void pe_arm64_set(struct pe_arm64_state *s, struct sl_unwind_rule rule)
{
    rules_set(&s->rules, &rule);
}

/* Sets the rules of the one or two registers that the step stores at sp + offset; rules count from the CFA, which is sp + s->stack. A
 * stored lr is also the return address. */
static void save(struct pe_arm64_state *s, const struct pe_arm64_step *step, int64_t offset)
{
    const unsigned regs[] = {step->first, step->second};
    for (size_t i = 0; i < 2 && (i == 0 || regs[i]); i++) {
        int64_t at = offset + 8 * (int64_t)i - s->stack;
        if (regs[i] == LR)
            pe_arm64_set(s, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, at));
        pe_arm64_set(s, rule_memory(regs[i], SL_UNWIND_CFA, at));
    }
    s->last = *step; /* for the code save_next, which stores the next pair of registers above this one */
    s->last.offset = (uint32_t)offset;
}

/* Applies the effect of an instruction to the state. Once x29 is the frame pointer the rule of the CFA is relative to it, and later changes
 * of sp do not matter. */
static void pe_arm64_apply(struct pe_arm64_state *s, const struct pe_arm64_step *step)
{
    struct pe_arm64_step next;
    switch ((enum step_kind)step->kind) {
    case STEP_NOTHING: break;
    case STEP_ALLOC: s->stack += step->offset; break;
    case STEP_SAVE: save(s, step, step->offset); break;
    case STEP_PUSH:
        s->stack += step->offset;
        save(s, step, 0);
        break;
    case STEP_SAVE_NEXT:
        if (!s->last.kind) /* damaged: there is no store whose next pair of registers could follow */
            break;
        next = s->last;
        next.first += 2;
        next.second += next.second ? 2 : 0;
        save(s, &next, (int64_t)s->last.offset + 16);
        break;
    case STEP_SET_FP:
        s->has_frame = true;
        pe_arm64_set(s, rule_offset(SL_UNWIND_CFA, FP, s->stack - step->offset));
        break;
    }
    if (!s->has_frame)
        pe_arm64_set(s, rule_offset(SL_UNWIND_CFA, SP, s->stack));
}

/* Runs the steps and gives the builder the rules at the address of each instruction of the prologue (4 bytes each) and behind it. Steps of
 * an earlier part of the function have no instruction here: they only change the rules with which this part begins. */
static void pe_arm64_run(struct unwind_builder *b, const struct steps *steps, uint32_t begin, uint32_t length)
{
    struct pe_arm64_state s = {.stack = 0};
    uint32_t offset = 0;
    pe_arm64_set(&s, rule_offset(SL_UNWIND_CFA, SP, 0));
    for (size_t i = steps->count; i-- > 0;) { /* `items` is newest first */
        if (!steps->items[i].before && offset < length) {
            builder_row(b, (uint64_t)begin + offset, &s.rules);
            offset += 4;
        }
        pe_arm64_apply(&s, &steps->items[i]);
    }
    if (offset < length) /* false in a damaged file, whose prologue is longer than the function */
        builder_row(b, (uint64_t)begin + offset, &s.rules);
    builder_end(b, (uint64_t)begin + length);
}

/* Reads the exception directory: for each function its address, and a word with packed unwind data or the address of an .xdata record.
 * Functions whose data cannot be read are counted in sink->skipped. */
enum sl_code pe_read_arm64(const struct pe_tables *t, struct unwind_builder *b)
{
    struct sl_reader r = sl_reader(t->directory, false);
    b->ra = LR;
    while (sl_reader_left(&r) >= 8 && b->code == SL_OK) {
        uint32_t begin = sl_read_u32(&r), word = sl_read_u32(&r), length, flag = word & 3;
        struct steps steps; /* its large array is not cleared */
        steps.count = 0;
        steps.bad = false;
        if (!begin && !word) /* padding */
            continue;
        /* flag 0: `word` is the RVA of an .xdata record; 1 and 2: packed unwind data; 3 is reserved */
        bool ok = flag == 0 ? read_xdata(t, word, &steps, &length) : flag < 3 && read_packed(word, &steps, &length);
        if (!builder_spend(b, 1 + (uint32_t)steps.count))
            break;
        if (ok)
            pe_arm64_run(b, &steps, begin, length);
        else
            b->sink->skipped++;
    }
    return b->code;
}
