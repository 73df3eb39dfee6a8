/* What instructions of ARM and AArch64 do, read off their text: "ldr x0, [x1, #8]", "stmdb sp!, {r4, lr}", "blr x8". */
#include "disasm/effects_impl.h"

#include <stdio.h>
#include <stdlib.h>

struct arm_text {
    struct effects_reading *r;
    bool is_64bit, is_thumb;
    uint64_t address;
    struct sl_str name, operands;
};

/* ---- text ---- */

static struct sl_str rest_from(struct sl_str text, size_t at)
{
    return (struct sl_str){text.data + at, text.size - at};
}

static bool ends_with(struct sl_str text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

static bool begins_with(struct sl_str text, const char *begin)
{
    return sl_str_starts(text, sl_str(begin));
}

/* The operand at the front, which it is taken from: what is in brackets or braces is one. */
static struct sl_str take_operand(struct sl_str *rest)
{
    size_t at = 0;
    int depth = 0;
    for (; at < rest->size && (depth || rest->data[at] != ','); at++)
        depth += rest->data[at] == '[' || rest->data[at] == '{'   ? 1
                 : rest->data[at] == ']' || rest->data[at] == '}' ? -1
                                                                  : 0;
    struct sl_str operand = sl_str_trimmed((struct sl_str){rest->data, at});
    *rest = sl_str_trimmed(rest_from(*rest, at < rest->size ? at + 1 : at));
    return operand;
}

/* "#-0x10", "#8" */
static bool parse_immediate(struct sl_str text, int64_t *value)
{
    char copy[32], *end;
    if (text.size < 2 || text.data[0] != '#' || text.size >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)text.size - 1, text.data + 1);
    *value = (int64_t)strtoull(copy, &end, 0);
    return end != copy && !*end;
}

/* ---- registers ---- */

/* By DWARF's numbers; false for what is no general register. */
static bool parse_register(const struct arm_text *t, struct sl_str text, unsigned *number, bool *is_narrow)
{
    static const struct {
        const char *name;
        unsigned number;
    } named[] = {{"sb", 9}, {"sl", 10}, {"fp", 11}, {"ip", 12}, {"sp", 13}, {"lr", 14}, {"pc", 15}};
    char letter = text.size ? text.data[0] : 0;
    *is_narrow = t->is_64bit && letter == 'w';
    if (t->is_64bit && (sl_str_equal(text, SL_STR("sp")) || sl_str_equal(text, SL_STR("wsp")))) {
        *number = 31;
        return true;
    }
    for (size_t i = 0; i < sizeof named / sizeof *named && !t->is_64bit; i++)
        if (sl_str_equal(text, sl_str(named[i].name))) {
            *number = named[i].number;
            return true;
        }
    if (text.size < 2 || text.size > 3 || !(t->is_64bit ? letter == 'x' || letter == 'w' : letter == 'r'))
        return false;
    *number = 0;
    for (size_t i = 1; i < text.size; i++) {
        if (!sl_is_digit(text.data[i]))
            return false;
        *number = *number * 10 + (unsigned)(text.data[i] - '0');
    }
    return *number < (t->is_64bit ? 31u : 16u);
}

/* A register of an address. */
static bool base_value(const struct arm_text *t, struct sl_str text, uint64_t *value)
{
    unsigned number;
    bool is_narrow;
    char name[8];
    *value = 0;
    if (sl_str_equal(text, SL_STR("xzr")) || sl_str_equal(text, SL_STR("wzr")))
        return true;
    if (!parse_register(t, text, &number, &is_narrow)) {
        t->r->is_complete = false;
        return false;
    }
    if (!t->is_64bit && number == 15) {
        *value = (t->address + (t->is_thumb ? 4 : 8)) & ~UINT64_C(3);
        return true;
    }
    snprintf(name, sizeof name, is_narrow ? "x%.*s" : "%.*s", (int)(text.size - is_narrow), text.data + is_narrow);
    if (!effects_base(t->r, number, name, value))
        return false;
    *value = is_narrow || !t->is_64bit ? (uint32_t)*value : *value;
    return true;
}

/* ---- addresses ---- */

/* "sxtw #2", "lsl #3" of an index. False for what is not known. */
static bool shift_index(struct sl_str how, uint64_t *index)
{
    static const struct {
        const char *name;
        bool is_signed;
        uint8_t bits;
    } kinds[] = {{"lsl", false, 64}, {"uxtw", false, 32}, {"sxtw", true, 32}, {"sxtx", true, 64}, {"uxtx", false, 64}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t amount = 0;
        size_t size = strlen(kinds[i].name);
        if (!begins_with(how, kinds[i].name))
            continue;
        struct sl_str rest = sl_str_trimmed(rest_from(how, size));
        if (rest.size && (!parse_immediate(rest, &amount) || amount < 0 || amount > 31))
            return false;
        if (kinds[i].bits == 32)
            *index = kinds[i].is_signed ? (uint64_t)(int64_t)(int32_t)*index : (uint32_t)*index;
        *index <<= amount;
        return true;
    }
    return false;
}

/* What is in brackets: "[x1, w2, sxtw #2]", and "!" behind. Written back before the access with "!" or after it, the register has the
 * same value while it is made. */
static bool memory_address(const struct arm_text *t, struct sl_str operand, uint64_t *address, bool *base_is_null)
{
    size_t end = operand.size;
    uint64_t base, index = 0;
    int64_t offset = 0;
    while (end && operand.data[end - 1] != ']')
        end--;
    if (end < 2 || operand.data[0] != '[') {
        t->r->is_complete = false;
        return false;
    }
    struct sl_str rest = {operand.data + 1, end - 2}, first = take_operand(&rest);
    const char *colon = first.size ? memchr(first.data, ':', first.size) : NULL; /* an alignment */
    if (colon)
        first.size = (size_t)(colon - first.data);
    if (!base_value(t, first, &base))
        return false;
    struct sl_str second = take_operand(&rest);
    bool is_minus = second.size && second.data[0] == '-';
    second = is_minus ? rest_from(second, 1) : second;
    if (second.size && !parse_immediate(second, &offset)) {
        if (!base_value(t, second, &index))
            return false;
        if (rest.size && !shift_index(rest, &index)) {
            t->r->is_complete = false;
            return false;
        }
    }
    *address = base + (is_minus ? -index : index) + (uint64_t)offset;
    *address = t->is_64bit ? *address : (uint32_t)*address;
    *base_is_null = !base;
    return true;
}

static void add_access(const struct arm_text *t, struct sl_str operand, uint32_t size, uint8_t direction)
{
    struct sl_disasm_access access = {.size = size, .direction = direction};
    if (memory_address(t, operand, &access.address, &access.base_is_null))
        effects_access(t->r, &access);
}

/* The operand in brackets; data NULL when there is none. */
static struct sl_str find_memory(const struct arm_text *t)
{
    struct sl_str rest = t->operands;
    while (rest.size) {
        struct sl_str operand = take_operand(&rest);
        if (operand.size && operand.data[0] == '[')
            return operand;
    }
    return (struct sl_str){NULL, 0};
}

/* Registers in braces, and what each holds: "{r4-r6, lr}", "{d8, d9}". */
static size_t count_listed(struct sl_str list, uint32_t *each)
{
    size_t count = 0;
    if (list.size < 2 || list.data[0] != '{' || list.data[list.size - 1] != '}')
        return 0;
    struct sl_str rest = {list.data + 1, list.size - 2};
    for (*each = 4; rest.size; count++) {
        struct sl_str item = take_operand(&rest);
        const char *dash = memchr(item.data, '-', item.size);
        *each = item.size && item.data[0] == 'd' ? 8 : item.size && item.data[0] == 'q' ? 16 : 4;
        if (dash)
            count += (size_t)abs(atoi(dash + 2) - atoi(item.data + 1));
    }
    return count;
}

/* ---- where it goes on ---- */

static void go_to_register(const struct arm_text *t, struct sl_str text)
{
    unsigned number;
    bool is_narrow;
    struct sl_disasm_effects *out = t->r->out;
    out->flow = SL_DISASM_ELSE;
    if (parse_register(t, text, &number, &is_narrow) &&
        t->r->registers->get(t->r->registers->arg, number, &out->target))
        out->flow = SL_DISASM_TO;
    if (out->flow == SL_DISASM_TO && !t->is_64bit)
        out->target &= ~UINT64_C(1); /* which form it is in */
}

static void read_branch_64(const struct arm_text *t)
{
    static const char *const others[] = {"b", "bl", "cbz", "cbnz", "tbz", "tbnz"};
    struct sl_str rest = t->operands, first = take_operand(&rest);
    if (sl_str_equal(t->name, SL_STR("br")) || sl_str_equal(t->name, SL_STR("blr")))
        go_to_register(t, first);
    else if (sl_str_equal(t->name, SL_STR("ret")))
        go_to_register(t, first.size ? first : SL_STR("x30"));
    else if (begins_with(t->name, "b.") || begins_with(t->name, "bra") || begins_with(t->name, "blra") ||
             begins_with(t->name, "reta"))
        t->r->out->flow = SL_DISASM_ELSE; /* conditional, or with signed pointers */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sl_str_equal(t->name, sl_str(others[i])))
            t->r->out->flow = SL_DISASM_ELSE;
}

/* ---- AArch64 ---- */

/* Of a register that is loaded or stored, by its letter; of vectors by their arrangement. */
static uint32_t register_width(struct sl_str text)
{
    static const char letters[] = "bhswdxq";
    static const uint8_t widths[] = {1, 2, 4, 4, 8, 8, 16};
    const char *at = text.size ? strchr(letters, text.data[0]) : NULL;
    return at && *at ? widths[at - letters] : 0;
}

/* "{ v0.16b, v1.16b }": all of them; 0 when it is not known, as of single lanes. */
static uint32_t vectors_width(struct sl_str list)
{
    uint32_t count = 1;
    for (size_t i = 0; i < list.size; i++)
        count += list.data[i] == ',';
    bool is_whole = memmem(list.data, list.size, ".16b", 4) || memmem(list.data, list.size, ".8h", 3) ||
                    memmem(list.data, list.size, ".4s", 3) || memmem(list.data, list.size, ".2d", 3);
    bool is_half = memmem(list.data, list.size, ".8b", 3) || memmem(list.data, list.size, ".4h", 3) ||
                   memmem(list.data, list.size, ".2s", 3) || memmem(list.data, list.size, ".1d", 3);
    bool is_lane = list.size && list.data[list.size - 1] != '}';
    return is_lane ? 0 : is_whole ? 16 * count : is_half ? 8 * count : 0;
}

static uint32_t width_64(const struct arm_text *t, bool is_pair)
{
    struct sl_str rest = t->operands, data = take_operand(&rest);
    if (begins_with(t->name, "stx") || begins_with(t->name, "stlx"))
        data = take_operand(&rest); /* behind the one that tells whether it was done */
    uint32_t width = ends_with(t->name, "b") ? 1 : ends_with(t->name, "h") ? 2 : ends_with(t->name, "sw") ? 4 : 0;
    if (data.size && data.data[0] == '{')
        return vectors_width(data);
    width = width ? width : register_width(data);
    return is_pair ? 2 * width : width;
}

static bool is_any_of(struct sl_str name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (begins_with(name, *prefixes))
            return true;
    return false;
}

static void read_64(const struct arm_text *t)
{
    static const char *const atomics[] = {"swp",    "cas",    "ldadd",  "ldclr",  "ldeor", "ldset", "ldsmax",
                                          "ldsmin", "ldumax", "ldumin", "stadd",  "stclr", "steor", "stset",
                                          "stsmax", "stsmin", "stumax", "stumin", NULL};
    static const char *const pairs[] = {"ldp", "stp", "ldnp", "stnp", "ldxp", "stxp", "ldaxp", "stlxp", "casp", NULL};
    static const char *const other[] = {"ldraa", "ldrab", "ldg", "stg", "st2g", "stz", "ld64", "st64", NULL};
    struct sl_str memory = find_memory(t), rest = t->operands;
    uint32_t width = width_64(t, is_any_of(t->name, pairs));
    read_branch_64(t);
    if (begins_with(t->name, "prfm") || begins_with(t->name, "prfum"))
        return; /* these do not fault */
    if (memory.data && !is_any_of(t->name, other) && is_any_of(t->name, atomics))
        add_access(t, memory, width, SL_DISASM_READS | SL_DISASM_WRITES);
    else if (memory.data && !is_any_of(t->name, other) && begins_with(t->name, "ld"))
        add_access(t, memory, width, SL_DISASM_READS);
    else if (memory.data && !is_any_of(t->name, other) && begins_with(t->name, "st"))
        add_access(t, memory, width, SL_DISASM_WRITES);
    else if (sl_str_equal(t->name, SL_STR("ldr")) || sl_str_equal(t->name, SL_STR("ldrsw"))) { /* "ldr x0, #16" */
        int64_t offset;
        take_operand(&rest);
        if (parse_immediate(take_operand(&rest), &offset))
            effects_access(t->r,
                           &(struct sl_disasm_access){t->address + (uint64_t)offset, width, SL_DISASM_READS, false});
        else
            t->r->is_complete = false;
    } else {
        t->r->is_complete = t->r->is_complete && !memory.data && !sl_str_equal(t->name, SL_STR("dc"));
    }
}

/* ---- ARM ---- */

/* The name without what says how wide its encoding is, or when it is done. */
static bool is_mnemonic(struct sl_str name, const char *wanted)
{
    static const char *const conditions = "eq ne hs cs lo cc mi pl vs vc hi ls ge lt gt le al ";
    if (ends_with(name, ".w") || ends_with(name, ".n"))
        name.size -= 2;
    if (!begins_with(name, wanted))
        return false;
    struct sl_str rest = rest_from(name, strlen(wanted));
    if (rest.size != 2)
        return !rest.size;
    const char condition[] = {rest.data[0], rest.data[1], ' ', 0};
    return strstr(conditions, condition) != NULL;
}

/* From and to several registers: where the first of them lies. */
static const struct arm_multiple {
    const char *name;
    uint8_t direction;
    enum { AT_BASE, BELOW_BASE, BEHIND_BASE, BELOW_WITH_BASE } where;
} multiples[] = {
    {"ldm", SL_DISASM_READS, AT_BASE},           {"ldmia", SL_DISASM_READS, AT_BASE},
    {"ldmib", SL_DISASM_READS, BEHIND_BASE},     {"ldmdb", SL_DISASM_READS, BELOW_BASE},
    {"ldmda", SL_DISASM_READS, BELOW_WITH_BASE}, {"stm", SL_DISASM_WRITES, AT_BASE},
    {"stmia", SL_DISASM_WRITES, AT_BASE},        {"stmib", SL_DISASM_WRITES, BEHIND_BASE},
    {"stmdb", SL_DISASM_WRITES, BELOW_BASE},     {"stmda", SL_DISASM_WRITES, BELOW_WITH_BASE},
    {"vldmia", SL_DISASM_READS, AT_BASE},        {"vldmdb", SL_DISASM_READS, BELOW_BASE},
    {"vstmia", SL_DISASM_WRITES, AT_BASE},       {"vstmdb", SL_DISASM_WRITES, BELOW_BASE},
    {"push", SL_DISASM_WRITES, BELOW_BASE},      {"pop", SL_DISASM_READS, AT_BASE},
    {"vpush", SL_DISASM_WRITES, BELOW_BASE},     {"vpop", SL_DISASM_READS, AT_BASE},
};

static void read_multiple(const struct arm_text *t, const struct arm_multiple *multiple)
{
    struct sl_str rest = t->operands, first = take_operand(&rest);
    bool is_stack = first.size && first.data[0] == '{';
    struct sl_str list = is_stack ? first : take_operand(&rest), base = is_stack ? SL_STR("sp") : first;
    uint32_t each = 4;
    size_t count = count_listed(list, &each);
    struct sl_disasm_access access = {.size = (uint32_t)count * each, .direction = multiple->direction};
    if (base.size && base.data[base.size - 1] == '!')
        base.size--;
    t->r->is_implied = is_stack;
    if (!count || !base_value(t, base, &access.address)) {
        t->r->is_complete = false;
        return;
    }
    access.base_is_null = !access.address;
    access.address += multiple->where == BEHIND_BASE       ? 4
                      : multiple->where == BELOW_BASE      ? -(uint64_t)access.size
                      : multiple->where == BELOW_WITH_BASE ? 4 - (uint64_t)access.size
                                                           : 0;
    access.address = (uint32_t)access.address;
    effects_access(t->r, &access);
    if (access.direction == SL_DISASM_READS && memmem(list.data, list.size, "pc", 2)) {
        t->r->out->flow = SL_DISASM_LOADED; /* the last one */
        t->r->out->target = access.address + access.size - 4;
    }
}

static const struct arm_single {
    const char *name;
    uint8_t size, direction;
} singles[] = {
    {"ldr", 4, SL_DISASM_READS},
    {"ldrb", 1, SL_DISASM_READS},
    {"ldrh", 2, SL_DISASM_READS},
    {"ldrsb", 1, SL_DISASM_READS},
    {"ldrsh", 2, SL_DISASM_READS},
    {"ldrd", 8, SL_DISASM_READS},
    {"ldrt", 4, SL_DISASM_READS},
    {"ldrbt", 1, SL_DISASM_READS},
    {"ldrht", 2, SL_DISASM_READS},
    {"ldrex", 4, SL_DISASM_READS},
    {"ldrexb", 1, SL_DISASM_READS},
    {"ldrexh", 2, SL_DISASM_READS},
    {"ldrexd", 8, SL_DISASM_READS},
    {"lda", 4, SL_DISASM_READS},
    {"ldab", 1, SL_DISASM_READS},
    {"ldah", 2, SL_DISASM_READS},
    {"ldaex", 4, SL_DISASM_READS},
    {"ldaexb", 1, SL_DISASM_READS},
    {"ldaexh", 2, SL_DISASM_READS},
    {"ldaexd", 8, SL_DISASM_READS},
    {"tbb", 1, SL_DISASM_READS},
    {"tbh", 2, SL_DISASM_READS},
    {"str", 4, SL_DISASM_WRITES},
    {"strb", 1, SL_DISASM_WRITES},
    {"strh", 2, SL_DISASM_WRITES},
    {"strd", 8, SL_DISASM_WRITES},
    {"strt", 4, SL_DISASM_WRITES},
    {"strbt", 1, SL_DISASM_WRITES},
    {"strht", 2, SL_DISASM_WRITES},
    {"strex", 4, SL_DISASM_WRITES},
    {"strexb", 1, SL_DISASM_WRITES},
    {"strexh", 2, SL_DISASM_WRITES},
    {"strexd", 8, SL_DISASM_WRITES},
    {"stl", 4, SL_DISASM_WRITES},
    {"stlb", 1, SL_DISASM_WRITES},
    {"stlh", 2, SL_DISASM_WRITES},
    {"stlex", 4, SL_DISASM_WRITES},
    {"stlexb", 1, SL_DISASM_WRITES},
    {"stlexh", 2, SL_DISASM_WRITES},
    {"stlexd", 8, SL_DISASM_WRITES},
    {"swp", 4, SL_DISASM_READS | SL_DISASM_WRITES},
    {"vldr", 0, SL_DISASM_READS},
    {"vstr", 0, SL_DISASM_WRITES},
};

static void read_single(const struct arm_text *t, const struct arm_single *single, struct sl_str memory)
{
    struct sl_str rest = t->operands, data = take_operand(&rest);
    size_t before = t->r->out->access_count;
    add_access(t, memory, single->size ? single->size : register_width(data), single->direction);
    bool is_branch = is_mnemonic(t->name, "tbb") || is_mnemonic(t->name, "tbh");
    if (is_branch)
        t->r->out->flow = SL_DISASM_ELSE;
    if (is_mnemonic(t->name, "ldr") && sl_str_equal(data, SL_STR("pc"))) {
        t->r->out->flow = t->r->out->access_count > before ? SL_DISASM_LOADED : SL_DISASM_ELSE;
        t->r->out->target = t->r->out->access_count > before ? t->r->out->accesses[before].address : 0;
    }
}

static void read_branch_32(const struct arm_text *t)
{
    static const char *const branches[] = {"b", "bl", "blx", "bx", "bxj", "cbz", "cbnz"};
    struct sl_str rest = t->operands, first = take_operand(&rest);
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
        if (is_mnemonic(t->name, branches[i]))
            t->r->out->flow = SL_DISASM_ELSE;
    if (is_mnemonic(t->name, "bx") || is_mnemonic(t->name, "blx"))
        go_to_register(t, first);
    else if (is_mnemonic(t->name, "mov") && sl_str_equal(first, SL_STR("pc")))
        go_to_register(t, take_operand(&rest));
}

static void read_32(const struct arm_text *t)
{
    struct sl_str memory = find_memory(t);
    read_branch_32(t);
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++)
        if (is_mnemonic(t->name, multiples[i].name)) {
            read_multiple(t, &multiples[i]);
            return;
        }
    if (!memory.data || begins_with(t->name, "pld") || begins_with(t->name, "pli"))
        return; /* those do not fault */
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++)
        if (is_mnemonic(t->name, singles[i].name)) {
            read_single(t, &singles[i], memory);
            return;
        }
    if (begins_with(t->name, "vld") || begins_with(t->name, "vst"))
        add_access(t, memory, 0, t->name.data[1] == 'l' ? SL_DISASM_READS : SL_DISASM_WRITES);
    else
        t->r->is_complete = false;
}

void effects_arm(struct effects_reading *r, enum sl_arch arch, enum sl_code_form form, struct sl_str text,
                 uint64_t address)
{
    const char *blank = text.size ? memchr(text.data, ' ', text.size) : NULL;
    size_t size = blank ? (size_t)(blank - text.data) : text.size;
    struct arm_text t = {
        .r = r,
        .is_64bit = sl_arch_family(arch) != SL_CPU_ARM,
        .is_thumb = form != SL_FORM_ARM,
        .address = address,
        .name = {text.data, size},
        .operands = sl_str_trimmed(rest_from(text, size)),
    };
    if (t.is_64bit)
        read_64(&t);
    else
        read_32(&t);
}
