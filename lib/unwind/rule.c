/* Converts rules to postfix text (Breakpad, docs/symbol_files.md, "STACK CFI") and back. */
#include "base/plain.h"
#include "unwind/impl.h"

struct sl_str next_field(struct sl_str *rest)
{
    const char *at = rest->data, *end = at + rest->size;
    while (at < end && sl_is_blank(*at))
        at++;
    const char *begin = at;
    while (at < end && ((uint8_t)*at > ' ' || !sl_is_blank(*at))) /* the first test mostly decides */
        at++;
    *rest = (struct sl_str){at, (size_t)(end - at)};
    return (struct sl_str){begin, (size_t)(at - begin)};
}

bool is_text(struct sl_str line)
{
    size_t plain = sl_plain_run(line); /* printable ASCII at the beginning, which is mostly all of the line */
    if (plain == line.size)
        return true;
    for (size_t i = plain; i < line.size; i++) {
        uint8_t c = (uint8_t)line.data[i];
        /* a CR is allowed at the end only: a line that ended with CR LF */
        if ((c < ' ' && c != '\t' && !(c == '\r' && i + 1 == line.size)) || c == 0x7F)
            return false;
    }
    return sl_str_is_utf8(line);
}

/* Parses a decimal with an optional `-`; false for anything else, and for numbers beyond INT64_MAX. */
static bool parse_number(struct sl_str text, int64_t *value)
{
    bool negative = text.size && text.data[0] == '-';
    uint64_t v;
    if (!sl_parse_u64((struct sl_str){text.data + negative, text.size - negative}, &v) || v > INT64_MAX)
        return false;
    *value = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

/* True if the token is `.cfa` or a register of the architecture, which a rule can have as base; `*base` is its number. */
static bool is_base(enum sl_cpu_family family, struct sl_str token, uint16_t *base)
{
    *base = (uint16_t)register_number(family, token);
    return *base != SL_UNWIND_NAMED && *base != SL_UNWIND_RA;
}

/* The texts that become a rule with base and offset are `R`, `R ^`, `R N +`, `R N -`, `R N + ^` and `R N - ^`. */
struct sl_unwind_rule rule_parse(enum sl_cpu_family family, unsigned reg, struct sl_str text)
{
    struct sl_str rest = text, token[5];
    struct sl_unwind_rule rule = {.reg = (uint16_t)reg, .kind = SL_UNWIND_PROGRAM, .program = text};
    size_t count = 0;
    uint16_t base;
    int64_t offset;
    while (count < 5 && (token[count] = next_field(&rest)).size)
        count++;
    if (count < 1 || count > 4 || !is_base(family, token[0], &base))
        return rule;
    if (count == 1 && base == reg)
        return (struct sl_unwind_rule){.reg = (uint16_t)reg, .kind = SL_UNWIND_SAME};
    if (count == 1)
        return rule_register(reg, base);
    if (count == 2 && sl_str_equal(token[1], SL_STR("^")))
        return rule_memory(reg, base, 0);
    if (count < 3 || !parse_number(token[1], &offset) || (count == 4 && !sl_str_equal(token[3], SL_STR("^"))))
        return rule;
    if (sl_str_equal(token[2], SL_STR("-")))
        offset = -offset;
    else if (!sl_str_equal(token[2], SL_STR("+")))
        return rule;
    return count == 3 ? rule_offset(reg, base, offset) : rule_memory(reg, base, offset);
}

/* Writes `base N +`, for example `$rsp 8 +` or `$rsp -8 +`; with `subtract` as a difference, `$rsp 8 -` for the offset -8. */
static void print_sum(struct sl_buf *out, const char *base, int64_t offset, bool subtract)
{
    uint64_t value = subtract ? 0 - (uint64_t)offset : (uint64_t)offset;
    bool negative = (int64_t)value < 0;
    sl_buf_cstr(out, base);
    sl_buf_add(out, " -", negative ? 2 : 1); /* a blank, and the sign of a negative number */
    sl_buf_number(out, negative ? 0 - value : value, ' ');
    sl_buf_u8(out, subtract ? '-' : '+');
}

void rule_print(struct sl_buf *out, const struct sl_unwind_rule *rule, enum sl_cpu_family family, bool subtract)
{
    const char *name = sl_unwind_register_name(family, rule->reg);
    const char *base = sl_unwind_register_name(family, rule->base);
    bool takes_base =
        rule->kind == SL_UNWIND_REGISTER || rule->kind == SL_UNWIND_OFFSET || rule->kind == SL_UNWIND_MEMORY;
    /* the register or the base has no name in symbol files */
    if (rule->reg == SL_UNWIND_NAMED ? !rule->name.size : !name || (takes_base && !base))
        return;
    if (rule->reg == SL_UNWIND_NAMED)
        sl_buf_str(out, rule->name);
    else
        sl_buf_cstr(out, name);
    sl_buf_cstr(out, ": ");
    subtract = subtract && rule->base == SL_UNWIND_CFA; /* only offsets from the CFA are written as differences */
    switch ((enum sl_unwind_kind)rule->kind) {
    case SL_UNWIND_UNDEFINED:
    case SL_UNWIND_EXPRESSION: sl_buf_cstr(out, ".undef"); break; /* symbol files cannot contain DWARF expressions */
    case SL_UNWIND_SAME:
        if (rule->reg == SL_UNWIND_NAMED)
            sl_buf_str(out, rule->name);
        else
            sl_buf_cstr(out, name);
        break;
    case SL_UNWIND_REGISTER: sl_buf_cstr(out, base); break;
    case SL_UNWIND_OFFSET: print_sum(out, base, rule->offset, subtract); break;
    case SL_UNWIND_MEMORY:
        print_sum(out, base, rule->offset, subtract);
        sl_buf_cstr(out, " ^");
        break;
    case SL_UNWIND_PROGRAM: sl_buf_str(out, rule->program); break;
    }
}
