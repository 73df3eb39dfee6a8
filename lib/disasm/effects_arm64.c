/* Effects of AArch64 instructions, derived from their text: "ldr x0, [x1, #8]", "ldp x29, x30, [sp], #0x20", "blr x8". LLVM's C
 * interface has no other form of a decoded instruction. */
#include "disasm/effects_impl.h"

#include <stdio.h>
#include <stdlib.h>

struct arm64_text {
    struct effects_reading *r;
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
    return sl_str_ends(text, sl_str(end));
}

static bool begins_with(struct sl_str text, const char *begin)
{
    return sl_str_starts(text, sl_str(begin));
}

/* Removes and returns the next operand, which ends at a comma outside of brackets and braces. */
static struct sl_str next_operand(struct sl_str *rest)
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

/* Parses a number such as "#-0x10" or "#8"; false for any other text. */
static bool parse_immediate(struct sl_str text, int64_t *value)
{
    char copy[32], *end;
    if (text.size < 2 || text.data[0] != '#' || text.size >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)text.size - 1, text.data + 1);
    *value = (int64_t)strtoull(copy, &end, 0); /* takes a minus sign, and masks of 64 bits, too */
    return end != copy && !*end;
}

/* ---- registers ---- */

/* Sets `*number` to the DWARF number of a general register or the stack pointer; `is_narrow`: its lower 32 bits are named (w0, wsp). False
 * for any other operand. */
static bool parse_register(struct sl_str text, unsigned *number, bool *is_narrow)
{
    *is_narrow = text.size && text.data[0] == 'w';
    *number = 31; /* the stack pointer */
    if (sl_str_equal(text, SL_STR("sp")) || sl_str_equal(text, SL_STR("wsp")))
        return true;
    if (text.size < 2 || text.size > 3 || !(text.data[0] == 'x' || *is_narrow))
        return false;
    uint64_t value;
    bool good = sl_parse_u64((struct sl_str){text.data + 1, text.size - 1}, &value);
    *number = (unsigned)value;
    return good && value < 31;
}

/* Reads the value of a register in an address; a zero register is 0. False, and the accesses are incomplete, if the value is unknown. */
static bool base_value(const struct arm64_text *t, struct sl_str text, uint64_t *value)
{
    unsigned number;
    bool is_narrow;
    char name[8];
    *value = 0;
    if (sl_str_equal(text, SL_STR("xzr")) || sl_str_equal(text, SL_STR("wzr")))
        return true;
    if (!parse_register(text, &number, &is_narrow)) {
        t->r->is_complete = false;
        return false;
    }
    /* recorded by the name of the whole register: "x3" for "w3" */
    snprintf(name, sizeof name, is_narrow ? "x%.*s" : "%.*s", (int)(text.size - is_narrow), text.data + is_narrow);
    if (!effects_base(t->r, number, name, value))
        return false;
    *value = is_narrow ? (uint32_t)*value : *value;
    return true;
}

/* ---- addresses ---- */

/* Extends and shifts the index of an address by its modifier `how`, such as "sxtw #2" or "lsl #3". False for an unknown modifier. */
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

/* Computes the address of "[x1, w2, sxtw #2]", optionally followed by "!". With pre- or post-indexing the base register has its
 * old value while the address is computed. `*base_is_null`: the first register is 0, so a null pointer is accessed. False, and the accesses
 * are incomplete, if a register or the form is not known. */
static bool memory_address(const struct arm64_text *t, struct sl_str operand, uint64_t *address, bool *base_is_null)
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
    struct sl_str rest = {operand.data + 1, end - 2}, first = next_operand(&rest), second = next_operand(&rest);
    if (!base_value(t, first, &base))
        return false;
    bool is_offset = !second.size || parse_immediate(second, &offset);
    if (!is_offset && !base_value(t, second, &index))
        return false;
    /* only an index may have a modifier: "mul vl" after an offset makes it a multiple of the unknown vector length */
    if (rest.size && (is_offset || !shift_index(rest, &index))) {
        t->r->is_complete = false;
        return false;
    }
    *address = base + index + (uint64_t)offset;
    *base_is_null = !base;
    return true;
}

/* Adds an access to the operand in brackets, if its address is known. */
static void add_access(const struct arm64_text *t, struct sl_str operand, uint32_t size, uint8_t direction)
{
    struct sl_disasm_access access = {.size = size, .direction = direction};
    if (memory_address(t, operand, &access.address, &access.base_is_null))
        effects_access(t->r, &access);
}

/* Returns the operand in brackets, which is the one in memory; data NULL if there is none. */
static struct sl_str find_memory(const struct arm64_text *t)
{
    struct sl_str rest = t->operands;
    while (rest.size) {
        struct sl_str operand = next_operand(&rest);
        if (operand.size && operand.data[0] == '[')
            return operand;
    }
    return (struct sl_str){NULL, 0};
}

/* ---- control flow ---- */

/* Sets the flow of a branch to the address in a register; unknown if its value is unknown. */
static void go_to_register(const struct arm64_text *t, struct sl_str text)
{
    unsigned number;
    bool is_narrow;
    struct sl_disasm_effects *out = t->r->out;
    out->flow = SL_DISASM_UNKNOWN;
    if (parse_register(text, &number, &is_narrow) && t->r->registers->get(t->r->registers->arg, number, &out->target))
        out->flow = SL_DISASM_DIRECT;
}

/* Sets the flow of a branch: to the address in a register (br, blr, ret), or SL_DISASM_UNKNOWN for all other branches, also those to a
 * constant address (see enum sl_disasm_flow). No effect if it is not a branch. */
static void read_branch(const struct arm64_text *t)
{
    static const char *const others[] = {"b", "bl", "cbz", "cbnz", "tbz", "tbnz"};
    struct sl_str rest = t->operands, first = next_operand(&rest);
    if (sl_str_equal(t->name, SL_STR("br")) || sl_str_equal(t->name, SL_STR("blr")))
        go_to_register(t, first);
    else if (sl_str_equal(t->name, SL_STR("ret")))
        go_to_register(t, first.size ? first : SL_STR("x30"));
    else if (begins_with(t->name, "b.") || begins_with(t->name, "bra") || begins_with(t->name, "blra") ||
             begins_with(t->name, "reta"))
        t->r->out->flow = SL_DISASM_UNKNOWN; /* conditional, or a branch with a signed pointer */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sl_str_equal(t->name, sl_str(others[i])))
            t->r->out->flow = SL_DISASM_UNKNOWN;
}

/* ---- memory accesses ---- */

/* Returns the size in bytes of a register that is loaded or stored, by its first letter ("w0": 4); 0 for any other operand. */
static uint32_t register_width(struct sl_str text)
{
    static const char letters[] = "bhswdxq";
    static const uint8_t widths[] = {1, 2, 4, 4, 8, 8, 16};
    const char *at = text.size ? strchr(letters, text.data[0]) : NULL;
    return at && *at ? widths[at - letters] : 0;
}

/* Returns the size in bytes of a list such as "{ v0.16b, v1.16b }"; 0 if it is unknown, e.g. for single lanes ("{ v0.b }[1]"). */
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

/* Returns the size of an access in bytes: by the suffix of the instruction's name ("ldrb": 1), else by the register; for a pair of
 * registers twice that. 0 = unknown. */
static uint32_t access_width(const struct arm64_text *t, bool is_pair)
{
    struct sl_str rest = t->operands, data = next_operand(&rest);
    if (begins_with(t->name, "stx") || begins_with(t->name, "stlx"))
        data = next_operand(&rest); /* the first operand is the status */
    uint32_t width = ends_with(t->name, "b") ? 1 : ends_with(t->name, "h") ? 2 : ends_with(t->name, "sw") ? 4 : 0;
    if (data.size && data.data[0] == '{')
        return vectors_width(data);
    width = width ? width : register_width(data);
    return is_pair ? 2 * width : width;
}

static bool starts_with_any(struct sl_str name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (begins_with(name, *prefixes))
            return true;
    return false;
}

/* Derives the effects of an instruction: branch, loads and stores. `other` are loads and stores whose accesses are not derived, and so are
 * marked as incomplete. */
static void read_instruction(const struct arm64_text *t)
{
    static const char *const atomics[] = {"swp",    "cas",    "ldadd",  "ldclr",  "ldeor", "ldset", "ldsmax",
                                          "ldsmin", "ldumax", "ldumin", "stadd",  "stclr", "steor", "stset",
                                          "stsmax", "stsmin", "stumax", "stumin", NULL};
    static const char *const pairs[] = {"ldp", "stp", "ldnp", "stnp", "ldxp", "stxp", "ldaxp", "stlxp", "casp", NULL};
    static const char *const other[] = {"ldraa", "ldrab", "ldg", "stg", "st2g", "stz", "ld64", "st64", NULL};
    struct sl_str memory = find_memory(t), rest = t->operands;
    uint32_t width = access_width(t, starts_with_any(t->name, pairs));
    uint8_t direction = starts_with_any(t->name, other)     ? 0
                        : starts_with_any(t->name, atomics) ? SL_DISASM_READS | SL_DISASM_WRITES
                        : begins_with(t->name, "ld")        ? SL_DISASM_READS
                        : begins_with(t->name, "st")        ? SL_DISASM_WRITES
                                                            : 0;
    read_branch(t);
    if (begins_with(t->name, "prfm") || begins_with(t->name, "prfum"))
        return; /* prefetches do not fault */
    if (memory.data && direction)
        add_access(t, memory, width, direction);
    else if (sl_str_equal(t->name, SL_STR("ldr")) || sl_str_equal(t->name, SL_STR("ldrsw"))) { /* "ldr x0, #16" */
        int64_t offset; /* from the instruction */
        next_operand(&rest);
        if (parse_immediate(next_operand(&rest), &offset))
            effects_access(t->r,
                           &(struct sl_disasm_access){t->address + (uint64_t)offset, width, SL_DISASM_READS, false});
        else
            t->r->is_complete = false;
    } else {
        /* any other instruction with a memory operand, and `dc` (cache maintenance, by an address in a register), has
         * accesses that are not known */
        t->r->is_complete = t->r->is_complete && !memory.data && !sl_str_equal(t->name, SL_STR("dc"));
    }
}

void effects_arm64(struct effects_reading *r, struct sl_str text, uint64_t address)
{
    const char *blank = text.size ? memchr(text.data, ' ', text.size) : NULL;
    size_t size = blank ? (size_t)(blank - text.data) : text.size;
    const struct arm64_text t = {
        .r = r,
        .address = address,
        .name = {text.data, size},
        .operands = sl_str_trimmed(rest_from(text, size)),
    };
    read_instruction(&t);
}
