/* Apple's compact unwind encoding (<mach-o/compact_unwind_encoding.h>): one word describes a function after its prologue.
 *
 *     header ─▶ index: function offset, page ──▶ page: regular (address, encoding)..
 *                                                      compressed (24 bits address, 8 bits index of an encoding)..
 *
 * Addresses are relative to the image. An entry extends to the next one; the last entry of the index is the end of the last
 * page. */
#include "unwind/impl.h"

enum {
    STEPS_PER_ITEM = 4, /* work charged to the budget per entry: a hostile index may name the same page repeatedly */
    PAGE_REGULAR = 2,
    PAGE_COMPRESSED = 3,
    MODE_FRAME = 1, /* x86: modes are in bits 24 to 27 */
    MODE_FRAMELESS = 2,
    MODE_INDIRECT = 3,
    MODE_DWARF = 4,
    ARM64_MODE_FRAMELESS = 2,
    ARM64_MODE_DWARF = 3,
    ARM64_MODE_FRAME = 4,
    X86_EBP = 5,
    X86_ESP = 4,
    X86_64_RBX = 3,
    X86_64_RBP = 6,
    X86_64_RSP = 7,
    ARM64_FP = 29,
    ARM64_LR = 30,
    ARM64_SP = 31,
    ARM64_D8 = 72,
};

struct compact {
    struct sl_object *object;
    struct sl_bytes info;                  /* __unwind_info */
    const struct cfi_section_data *frames; /* __eh_frame */
    struct unwind_builder *b;
    struct sl_bytes text; /* __text, for stack sizes that are operands of instructions */
    uint64_t text_address;
    bool big_endian;
    uint32_t common_offset, common_count; /* the encodings that all compressed pages share: offset in `info`, number */
    uint64_t at;                          /* start of the previous entry; entries ascend */
    uint64_t last_fde;                    /* offset of the FDE that was read last; UINT64_MAX: none */
    uint64_t sigtramp;                    /* start of _sigtramp, once looked up; UINT64_MAX = absent */
    bool sigtramp_known;
};

/* Reads the 32-bit word at this offset in __unwind_info; `*ok` is false if it is outside. */
static uint32_t word_at(const struct compact *c, uint64_t offset, bool *ok)
{
    struct sl_reader r = sl_reader(c->info, c->big_endian);
    sl_reader_seek(&r, offset);
    uint32_t word = sl_read_u32(&r);
    *ok = !r.failed;
    return word;
}

/* ---- encodings ---- */

/* Sets a rule. rules_set() fails above MAX_SLOTS registers, which an encoding cannot have, so its result is not checked. */
static void compact_set(struct unwind_rules *rules, struct sl_unwind_rule rule)
{
    rules_set(rules, &rule);
}

/* Returns the DWARF number of the callee-saved register that an encoding calls 1 to 6 (rbx, r12 to r15, rbp); -1 for another number. */
static int saved_register(bool is_64bit, unsigned number)
{
    static const int8_t x86[] = {-1, 3, 1, 2, 7, 6, 5}, x86_64[] = {-1, 3, 12, 13, 14, 15, 6};
    return number > 6 ? -1 : is_64bit ? x86_64[number] : x86[number];
}

/* Sets the rules of a function with a frame pointer. Bits 0 to 14 are the numbers of up to five saved registers (0: none); bits 16 to 23
 * are how many words below the frame pointer the first one is saved. False if a number is invalid. */
static bool x86_frame(struct unwind_rules *rules, uint32_t encoding, bool is_64bit)
{
    int64_t p = is_64bit ? 8 : 4, offset = encoding >> 16 & 0xFF;
    unsigned bp = is_64bit ? X86_64_RBP : X86_EBP;
    compact_set(rules, rule_offset(SL_UNWIND_CFA, bp, 2 * p));
    compact_set(rules, rule_memory(bp, SL_UNWIND_CFA, -2 * p));
    compact_set(rules, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -p));
    for (int64_t i = 0; i < 5; i++) {
        unsigned number = encoding >> (3 * i) & 7;
        int reg = saved_register(is_64bit, number);
        if (number && reg < 0)
            return false;
        if (number)
            /* the frame pointer points two words below the CFA */
            compact_set(rules, rule_memory((unsigned)reg, SL_UNWIND_CFA, -(offset + 2 - i) * p));
    }
    return true;
}

/* Decodes which `count` of six registers a frameless function pushes, in order. `permutation` is a number in a mixed radix: digit i, of
 * weight radix[count][i], is the index of the next register among those not used yet. False if a digit is too large. */
static bool unpermute(uint32_t permutation, unsigned count, unsigned registers[6])
{
    static const uint16_t radix[7][6] = {
        {0}, {1}, {5, 1}, {20, 4, 1}, {60, 12, 3, 1}, {120, 24, 6, 2, 1}, {120, 24, 6, 2, 1, 1}};
    bool used[7] = {false};
    for (unsigned i = 0; i < count; i++) {
        unsigned digit = permutation / radix[count][i], number = 1;
        permutation %= radix[count][i];
        for (; number <= 6; number++)
            if (!used[number] && digit-- == 0)
                break;
        if (number > 6)
            return false;
        used[number] = true;
        registers[i] = number;
    }
    return true;
}

/* Sets the rules of a function without a frame pointer whose frame has `size` bytes: the return address has the highest address, the saved
 * registers are below it. Bits 10 to 12 are their number, bits 0 to 9 their permutation. False if the encoding is invalid. */
static bool x86_frameless(struct unwind_rules *rules, uint32_t encoding, bool is_64bit, int64_t size)
{
    int64_t p = is_64bit ? 8 : 4;
    unsigned registers[6], count = encoding >> 10 & 7;
    if (count > 6 || !unpermute(encoding & 0x3FF, count, registers))
        return false;
    compact_set(rules, rule_offset(SL_UNWIND_CFA, is_64bit ? X86_64_RSP : X86_ESP, size));
    compact_set(rules, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -p));
    for (unsigned i = 0; i < count; i++) {
        /* the last register of the list lies next to the return address */
        int reg = saved_register(is_64bit, registers[count - 1 - i]);
        compact_set(rules, rule_memory((unsigned)reg, SL_UNWIND_CFA, -(int64_t)(i + 2) * p));
    }
    return true;
}

/* Sets the rules of a function at `start` without a frame pointer whose frame is too large for the encoding: the size is the operand of its
 * `sub` instruction. Bits 16 to 23 are the offset of that operand in the function, bits 13 to 15 the number of words to add to it. False
 * if the operand is outside __text. */
static bool x86_indirect(const struct compact *c, struct unwind_rules *rules, uint32_t encoding, bool is_64bit,
                         uint64_t start)
{
    struct sl_reader r = sl_reader(c->text, c->big_endian);
    if (start < c->text_address)
        return false;
    sl_reader_seek(&r, start - c->text_address);
    sl_reader_skip(&r, encoding >> 16 & 0xFF);
    int64_t size = sl_read_u32(&r);
    return !r.failed && x86_frameless(rules, encoding, is_64bit, size + (encoding >> 13 & 7) * (is_64bit ? 8 : 4));
}

/* Sets the rules of an x86 or x86-64 encoding for the function at `start`, by the mode in bits 24 to 27. False if the encoding is invalid.
 * In MODE_FRAMELESS bits 16 to 23 are the size of the frame in words. */
static bool x86_rules(const struct compact *c, struct unwind_rules *rules, uint32_t encoding, uint64_t start)
{
    bool is_64bit = c->b->family == SL_CPU_X86_64;
    int64_t p = is_64bit ? 8 : 4;
    switch (encoding >> 24 & 15) {
    case MODE_FRAME: return x86_frame(rules, encoding, is_64bit);
    case MODE_FRAMELESS: return x86_frameless(rules, encoding, is_64bit, (encoding >> 16 & 0xFF) * p);
    case MODE_INDIRECT: return x86_indirect(c, rules, encoding, is_64bit, start);
    default: /* no encoding: a leaf that does not change the stack */
        compact_set(rules, rule_offset(SL_UNWIND_CFA, is_64bit ? X86_64_RSP : X86_ESP, p));
        compact_set(rules, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -p));
        return true;
    }
}

/* Sets the rules of the saved register pairs, one bit each: x19/x20 to x27/x28, then d8/d9 to d14/d15. They are stored downwards from
 * `offset`, relative to the CFA. */
static void arm64_pairs(struct unwind_rules *rules, uint32_t encoding, int64_t offset)
{
    for (unsigned bit = 0; bit < 9; bit++) {
        unsigned reg = bit < 5 ? 19 + 2 * bit : ARM64_D8 + 2 * (bit - 5);
        if (!(encoding >> bit & 1))
            continue;
        compact_set(rules, rule_memory(reg, SL_UNWIND_CFA, offset));
        compact_set(rules, rule_memory(reg + 1, SL_UNWIND_CFA, offset - 8));
        offset -= 16;
    }
}

/* Sets the rules of an ARM64 encoding: a function with a frame record (x29, x30), one without, or, for any other mode, a leaf that does not
 * change the stack. In ARM64_MODE_FRAMELESS bits 12 to 23 are the size of the frame in units of 16 bytes. */
static void arm64_rules(struct unwind_rules *rules, uint32_t encoding)
{
    switch (encoding >> 24 & 15) {
    case ARM64_MODE_FRAME:
        compact_set(rules, rule_offset(SL_UNWIND_CFA, ARM64_FP, 16));
        compact_set(rules, rule_memory(ARM64_FP, SL_UNWIND_CFA, -16));
        compact_set(rules, rule_memory(SL_UNWIND_RA, SL_UNWIND_CFA, -8));
        arm64_pairs(rules, encoding, -24);
        break;
    case ARM64_MODE_FRAMELESS:
        compact_set(rules, rule_offset(SL_UNWIND_CFA, ARM64_SP, 16 * (int64_t)(encoding >> 12 & 0xFFF)));
        /* the same as rule_register(SL_UNWIND_RA, ARM64_LR) */
        compact_set(rules, rule_offset(SL_UNWIND_RA, ARM64_LR, 0));
        arm64_pairs(rules, encoding, -8);
        break;
    default:
        compact_set(rules, rule_register(SL_UNWIND_CFA, ARM64_SP));
        compact_set(rules, rule_register(SL_UNWIND_RA, ARM64_LR));
    }
}

/* ---- entries ---- */

/* Reads the FDE at an offset in __eh_frame. Several entries of one function may name the same FDE, so one that was just read is not read
 * again. If the file has no __eh_frame, the entry is counted in sink->skipped. */
static void read_fde(struct compact *c, uint32_t offset)
{
    if (offset == c->last_fde)
        return;
    c->last_fde = offset;
    if (c->frames->bytes.size)
        frames_read_at(c->frames, offset, c->b);
    else
        c->b->sink->skipped++;
}

/* ---- the trampoline of signal handlers, _sigtramp ---- */

/* True if `start` is the address of _sigtramp, the function through which macOS calls signal handlers. The first call reads the symbols; if
 * that fails, no function counts as _sigtramp, and it gets the rules of its FDE. */
static bool is_sigtramp(struct compact *c, uint64_t start)
{
    struct sl_arena arena = {.budget = sl_object_budget(c->object)};
    struct sl_symbol *symbols;
    size_t count;
    if (!c->sigtramp_known) {
        c->sigtramp_known = true;
        c->sigtramp = UINT64_MAX;
        if (sl_object_symbols(c->object, &arena, &symbols, &count, NULL) == SL_OK)
            for (size_t i = 0; i < count; i++)
                if (sl_str_equal(symbols[i].name, SL_STR("_sigtramp")))
                    c->sigtramp = symbols[i].address;
        sl_arena_free(&arena);
    }
    return start == c->sigtramp;
}

/* Sets the rules of _sigtramp, x86-64 only. rbx points to a ucontext_t of the kernel, which has at offset 48 a pointer to the machine
 * context with the registers of the interrupted code. In each program, the second number is the offset of the register in the machine
 * context. _sigtramp's own FDE has DWARF expressions instead, which symbol files cannot express. */
static void sigtramp_rules(struct unwind_rules *rules)
{
    static const struct {
        uint16_t reg;
        struct sl_str program;
    } saved[] = {
        {X86_64_RBX, SL_STR("$rbx 48 + ^ 24 + ^")},    {X86_64_RBP, SL_STR("$rbx 48 + ^ 64 + ^")},
        {12, SL_STR("$rbx 48 + ^ 112 + ^")},           {13, SL_STR("$rbx 48 + ^ 120 + ^")},
        {14, SL_STR("$rbx 48 + ^ 128 + ^")},           {15, SL_STR("$rbx 48 + ^ 136 + ^")},
        {SL_UNWIND_CFA, SL_STR("$rbx 48 + ^ 72 + ^")}, {SL_UNWIND_RA, SL_STR("$rbx 48 + ^ 144 + ^")},
    };
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
        compact_set(rules, (struct sl_unwind_rule){
                               .reg = saved[i].reg, .kind = SL_UNWIND_PROGRAM, .program = saved[i].program});
}

/* Adds the rules of an entry, for [start, end). An entry whose encoding is invalid or that starts before the previous one is counted in
 * sink->skipped. In the mode DWARF the low 24 bits are the offset of an FDE, which is read instead. */
static void add_entry(struct compact *c, uint64_t start, uint64_t end, uint32_t encoding)
{
    struct unwind_rules rules;
    bool is_arm64 = c->b->family == SL_CPU_ARM64 || c->b->family == SL_CPU_ARM64_32, ok = true;
    unsigned mode = encoding >> 24 & 15;
    if (start < c->at || end < start) {
        c->b->sink->skipped++;
        return;
    }
    c->at = start;
    if (start == end) /* no code */
        return;
    bool has_fde = mode == (is_arm64 ? ARM64_MODE_DWARF : MODE_DWARF);
    bool is_trampoline = has_fde && c->b->family == SL_CPU_X86_64 && is_sigtramp(c, start);
    if (has_fde && !is_trampoline) {
        read_fde(c, encoding & 0xFFFFFF);
        return;
    }
    rules_clear(&rules);
    if (is_trampoline)
        sigtramp_rules(&rules);
    else if (is_arm64)
        arm64_rules(&rules, encoding);
    else
        ok = x86_rules(c, &rules, encoding, start);
    if (!ok) {
        c->b->sink->skipped++;
        return;
    }
    /* where the return address is at function entry: in lr, or on the stack */
    c->b->ra = is_arm64 ? ARM64_LR : SL_UNWIND_RA;
    builder_row(c->b, start, &rules);
    builder_end(c->b, end);
}

/* ---- pages ---- */

struct page {
    struct sl_reader entries;                   /* at the next entry */
    uint64_t offset;                            /* of the page in __unwind_info */
    uint64_t base, end;                         /* the addresses of its functions are in [base, end) */
    uint32_t count;                             /* number of entries */
    uint32_t encodings_offset, encodings_count; /* is_compressed: the page's own encodings, offset in the page */
    bool is_compressed;
};

/* Opens the page of entries at `offset` of __unwind_info, for functions at addresses [base, end). False if it is cut off or of an unknown
 * kind. */
static bool read_page(const struct compact *c, uint64_t offset, uint64_t base, uint64_t end, struct page *page)
{
    struct sl_reader r = sl_reader(c->info, c->big_endian);
    sl_reader_seek(&r, offset);
    uint32_t kind = sl_read_u32(&r);
    *page = (struct page){.offset = offset, .base = base, .end = end, .is_compressed = kind == PAGE_COMPRESSED};
    uint64_t entries = offset + sl_read_u16(&r);
    page->count = sl_read_u16(&r);
    if (page->is_compressed) {
        page->encodings_offset = sl_read_u16(&r);
        page->encodings_count = sl_read_u16(&r);
    }
    sl_reader_seek(&r, entries);
    page->entries = r;
    return !r.failed && (kind == PAGE_REGULAR || kind == PAGE_COMPRESSED);
}

/* Reads an entry: its address and encoding. In a compressed page it is one word: 24 bits are the offset from the page's base, 8 bits the
 * index of an encoding; the first indexes are those of the encodings that all pages share, further ones of the page's own. False if the
 * index is invalid or the page is cut off. */
static bool read_item(const struct compact *c, struct page *page, uint64_t *address, uint32_t *encoding)
{
    uint32_t word = sl_read_u32(&page->entries), number = word >> 24;
    bool ok = true;
    if (!page->is_compressed) {
        *address = word;
        *encoding = sl_read_u32(&page->entries);
        return !page->entries.failed;
    }
    *address = page->base + (word & 0xFFFFFF);
    if (number < c->common_count)
        *encoding = word_at(c, c->common_offset + 4 * (uint64_t)number, &ok);
    else if (number - c->common_count < page->encodings_count)
        *encoding = word_at(c, page->offset + page->encodings_offset + 4 * (uint64_t)(number - c->common_count), &ok);
    else
        ok = false;
    return ok && !page->entries.failed;
}

/* Adds the entries of a page. An entry ends where the next one starts, so it is added after the next one was read. If that one cannot be
 * read, it is counted in sink->skipped, and the entry before is dropped too, because its end is unknown. */
static void add_page(struct compact *c, struct page *page)
{
    uint64_t start = 0, next;
    uint32_t encoding = 0, next_encoding;
    bool pending = false;
    for (uint32_t i = 0; i < page->count && c->b->code == SL_OK; i++) {
        builder_spend(c->b, STEPS_PER_ITEM);
        if (!read_item(c, page, &next, &next_encoding)) {
            c->b->sink->skipped++;
            if (page->entries.failed) /* the page is cut off */
                return;
            pending = false;
            continue;
        }
        if (pending)
            add_entry(c, start, next, encoding);
        start = next;
        encoding = next_encoding;
        pending = true;
    }
    if (pending)
        add_entry(c, start, page->end, encoding);
}

enum sl_code compact_read(struct sl_object *object, struct sl_bytes info, const struct cfi_section_data *frames,
                          struct unwind_builder *b)
{
    struct compact c = {.object = object, .info = info, .frames = frames, .b = b, .last_fde = UINT64_MAX};
    struct sl_reader r = sl_reader(info, c.big_endian = sl_object_info(object)->big_endian);
    uint32_t version = sl_read_u32(&r);
    c.common_offset = sl_read_u32(&r);
    c.common_count = sl_read_u32(&r);
    sl_reader_skip(&r, 8); /* offset and number of the personality routines */
    uint32_t index = sl_read_u32(&r), count = sl_read_u32(&r);
    sl_reader_seek(&r, index);
    if (r.failed || version != 1)
        return b->code =
                   sl_fail(b->error, SL_MALFORMED,
                           "__unwind_info: invalid header (unknown version, or an offset outside of the section)");
    if (count > sl_reader_left(&r) / 12)
        return b->code = sl_fail(b->error, SL_MALFORMED,
                                 "__unwind_info: the index of %u pages at offset 0x%x extends beyond the section",
                                 count, index);
    /* if there is none, x86_indirect() finds no frame sizes */
    sl_object_section(object, "text", &c.text, &c.text_address);
    /* An entry of the index has three words: address of the first function of a page, offset of the page, offset of
     * its LSDAs. The last entry has no page, only the end of the one before it. */
    uint64_t base = sl_read_u32(&r), page_offset = sl_read_u32(&r);
    sl_reader_skip(&r, 4);
    for (uint32_t i = 1; i < count && b->code == SL_OK; i++) {
        struct page page;
        uint64_t end = sl_read_u32(&r), next_page = sl_read_u32(&r);
        sl_reader_skip(&r, 4);
        if (page_offset && read_page(&c, page_offset, base, end, &page))
            add_page(&c, &page);
        else if (page_offset) /* a damaged page; offset 0 means that these addresses have no page */
            b->sink->skipped++;
        base = end;
        page_offset = next_page;
        builder_spend(b, 1);
    }
    return b->code;
}
