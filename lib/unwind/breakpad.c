/* Reads STACK records of Breakpad symbol files (Breakpad, docs/symbol_files.md). */
#include "unwind/impl.h"

/* The state of a reader between two records. */
struct breakpad_stack_record {
    struct unwind_builder *b;
    struct unwind_rules rules; /* at the last address read */
    uint64_t end;              /* of the range that the last STACK CFI INIT record began; valid if `open` */
    bool open;
};

/* Removes the next field and reads it as a hexadecimal number; false if it is none or has more than `max_digits` digits. */
static bool next_hex(struct sl_str *rest, unsigned max_digits, uint64_t *value)
{
    struct sl_str field = next_field(rest);
    *value = 0;
    return field.size <= max_digits && sl_parse_hex_u64(field, value);
}

/* Removes the next field if it equals `wanted`; else returns false and removes nothing. */
static bool skip_word(struct sl_str *rest, struct sl_str wanted)
{
    struct sl_str after = *rest;
    if (!sl_str_equal(next_field(&after), wanted))
        return false;
    *rest = after;
    return true;
}

/* True for the name of a register in a rule list: it ends with a colon. */
static bool is_register(struct sl_str field)
{
    return field.size > 1 && field.data[field.size - 1] == ':';
}

/* Sets the rule of the register `name`, which is kept as a name if the architecture has no such register. False if there are too many
 * rules. */
static bool breakpad_set(struct breakpad_stack_record *s, struct sl_str name, struct sl_str expression)
{
    unsigned reg = register_number(s->b->family, name);
    struct sl_unwind_rule rule = rule_parse(s->b->family, reg, expression);
    if (reg == SL_UNWIND_NAMED)
        rule.name = name;
    return rules_set(&s->rules, &rule);
}

/* Parses `reg: expression reg: expression ..` and, if `store`, sets these rules in s->rules. A field that ends with a colon is the name of
 * a register (is_register). False if the syntax is wrong or there are too many rules. */
static bool parse_rules(struct breakpad_stack_record *s, struct sl_str rest, bool store)
{
    struct sl_str name = next_field(&rest);
    while (name.size) {
        const char *begin = NULL, *end = NULL;
        struct sl_str field;
        if (!is_register(name))
            return false;
        while ((field = next_field(&rest)).size && !is_register(field)) {
            begin = begin ? begin : field.data;
            end = field.data + field.size;
        }
        if (!begin) /* a register without an expression */
            return false;
        if (store && /* name.size - 1: without the colon */
            !breakpad_set(s, (struct sl_str){name.data, name.size - 1}, (struct sl_str){begin, (size_t)(end - begin)}))
            return false;
        name = field;
    }
    return true;
}

/* Ends the range of the last STACK CFI INIT record, if one is open, and passes it to the sink. */
static void end_range(struct breakpad_stack_record *s)
{
    if (s->open)
        builder_end(s->b, s->end);
    s->open = false;
}

/* Reads a STACK CFI INIT record, which begins a range: address, size, all rules. It ends the range before. False if it is malformed or
 * lacks a rule for the CFA; then no range is open. next_hex() reads a hexadecimal number of at most 16 digits. */
static bool read_init(struct breakpad_stack_record *s, struct sl_str rest)
{
    uint64_t start, size;
    end_range(s);
    rules_clear(&s->rules);
    if (!next_hex(&rest, 16, &start) || !next_hex(&rest, 16, &size) || !size ||
        __builtin_add_overflow(start, size, &s->end) || !parse_rules(s, rest, true) || !s->rules.cfa_known)
        return false;
    s->open = true;
    builder_row(s->b, start, &s->rules);
    return true;
}

/* Reads a STACK CFI record, which changes rules from an address on. False, and no rule is changed, if it is malformed, outside the range of
 * the last INIT record, or at a lower address than the record before it. */
static bool read_delta(struct breakpad_stack_record *s, struct sl_str rest)
{
    uint64_t address;
    struct unwind_builder *b = s->b;
    if (!s->open || !next_hex(&rest, 16, &address) || address < b->start || address >= s->end || /* at most 16 digits */
        (b->open && b->row_count && address < b->rows[b->row_count - 1].address))
        return false;
    /* the syntax is checked first: a bad record must not change any rule */
    if (!parse_rules(s, rest, false) || !parse_rules(s, rest, true))
        return false;
    builder_row(b, address, &s->rules);
    return true;
}

/* Reads a STACK WIN record (type, address, size, six sizes, whether a program follows, the program or a flag) and passes it to the sink. It
 * ends an open STACK CFI range. False, and nothing is passed, if it is malformed or the last field is missing. */
static bool read_win(struct breakpad_stack_record *s, struct sl_str rest)
{
    struct sl_unwind_win win = {0};
    uint64_t type, value[6], has_program;
    if (!next_hex(&rest, 2, &type) || !next_hex(&rest, 16, &win.start) || !next_hex(&rest, 16, &win.size))
        return false;
    for (size_t i = 0; i < 6; i++) /* 8: each has at most 8 hexadecimal digits */
        if (!next_hex(&rest, 8, &value[i]))
            return false;
    if (!next_hex(&rest, 1, &has_program) || has_program > 1)
        return false;
    win.type = (uint8_t)type;
    win.prolog = (uint32_t)value[0];
    win.epilog = (uint32_t)value[1];
    win.params = (uint32_t)value[2];
    win.saved = (uint32_t)value[3];
    win.locals = (uint32_t)value[4];
    win.max_stack = (uint32_t)value[5];
    win.has_program = has_program;
    win.program = sl_str_trimmed(rest);
    end_range(s);
    if (s->b->code == SL_OK && win.program.size) {
        s->b->code = s->b->sink->win(s->b->sink, &win, s->b->error);
        s->b->emitted++; /* the file does have unwind information */
    }
    return win.program.size > 0;
}

/* Reads a STACK record of any kind, without the word STACK. A malformed one is counted in sink->skipped. */
static void read_record(struct breakpad_stack_record *s, struct sl_str rest)
{
    bool ok = true;
    if (!is_text(rest)) /* unprintable characters */
        ok = false;
    else if (skip_word(&rest, SL_STR("WIN")))
        ok = read_win(s, rest);
    else if (!skip_word(&rest, SL_STR("CFI")))
        ok = false;
    else if (skip_word(&rest, SL_STR("INIT")))
        ok = read_init(s, rest);
    else
        ok = read_delta(s, rest);
    s->b->sink->skipped += !ok;
}

enum sl_code breakpad_stack_read(const struct sl_object *object, struct unwind_builder *b)
{
    struct sl_bytes bytes = sl_object_file(object);
    struct sl_str rest = {(const char *)bytes.data, bytes.size}, line;
    struct breakpad_stack_record s = {.b = b};
    rules_clear(&s.rules);
    while (b->code == SL_OK && sl_str_next_line(&rest, &line))
        /* the first character is tested first, because most lines are FUNC and line records; blanks may precede STACK */
        if (line.size && (*line.data == 'S' || sl_is_blank(*line.data)) && skip_word(&line, SL_STR("STACK")) &&
            builder_spend(b, count_steps(&s.rules))) /* a record costs as much as comparing all rules */
            read_record(&s, line);
    end_range(&s);
    return b->code;
}
