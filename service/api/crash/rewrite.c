/* Renames the debug file of a minidump's first module by regular expressions, with limits on their work. */
#include "api/crash/rewrite.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stddef.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "core/log.h"

enum {
    MAX_RULES = 100,
    MAX_PATTERN = 4096,   /* bytes */
    MATCH_LIMIT = 100000, /* PCRE2 match limit (backtracking) */
    DEPTH_LIMIT = 1000,   /* PCRE2 depth limit */
    HEAP_LIMIT = 1024,    /* PCRE2 heap limit, KiB */
    COMPILE_STEPS = 512,  /* charged for compiling a pattern, which is done again for each module name */
};

struct rewrite_rule {
    struct sl_str from, to; /* pattern; replacement, in which $1 and ${name} stand for groups */
};

/* ---- patterns ---- */

static bool starts_with_any(struct sl_str text, const struct sl_str *starts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_starts(text, starts[i]))
            return true;
    return false;
}

/* True if `rest` begins with a construct of PCRE2 that RE2 does not have, such as look-around, back-references, recursion or possessive
 * repetition. */
static bool is_refused(struct sl_str rest)
{
    static const struct sl_str starts[] = {
        SL_STR("(?="), SL_STR("(?!"), SL_STR("(?<="), SL_STR("(?<!"), SL_STR("(?>"),  SL_STR("(?|"),
        SL_STR("(?("), SL_STR("(?R"), SL_STR("(?&"),  SL_STR("(?+"),  SL_STR("(?P>"), SL_STR("(?P="),
        SL_STR("(?C"), SL_STR("(*"),  SL_STR("\\k"),  SL_STR("\\g"),  SL_STR("\\K"),  SL_STR("\\G"),
        SL_STR("\\C"), SL_STR("*+"),  SL_STR("++"),   SL_STR("?+"),   SL_STR("}+"),
    };
    bool numbered = rest.size > 1 && rest.data[0] == '\\' && rest.data[1] >= '1' && rest.data[1] <= '9';
    bool recursive = rest.size > 2 && rest.data[0] == '(' && rest.data[1] == '?' && sl_is_digit(rest.data[2]);
    return numbered || recursive || starts_with_any(rest, starts, sizeof starts / sizeof *starts);
}

/* Returns the offset of the first construct in the pattern that RE2 does not have (is_refused); the pattern's size if there is none. In a
 * character class ([...]) and behind a backslash the characters of such constructs have no special meaning. */
static size_t find_refused(struct sl_str pattern)
{
    bool in_class = false;
    for (size_t i = 0; i < pattern.size; i++) {
        struct sl_str rest = {pattern.data + i, pattern.size - i};
        if (!in_class && is_refused(rest))
            return i;
        if (pattern.data[i] == '\\')
            i++;
        else if (pattern.data[i] == '[')
            in_class = true;
        else if (pattern.data[i] == ']')
            in_class = false;
    }
    return pattern.size;
}

/* Compiles the rule's pattern; NULL if that fails, with PCRE2's error `*number` at offset `*where`. PCRE2_AUTO_CALLOUT makes PCRE2 call
 * count_step() before every item: its own limits count neither start positions nor loops without backtracking. PCRE2_NO_START_OPTIMIZE
 * switches off its fast search for start positions, which calls nothing and would not be counted. */
static pcre2_code *rewrite_compile(const struct rewrite_rule *rule, int *number, PCRE2_SIZE *where)
{
    return pcre2_compile((PCRE2_SPTR)rule->from.data, rule->from.size,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT |
                             PCRE2_NO_START_OPTIMIZE,
                         number, where, NULL);
}

/* Checks that the rule's pattern is short enough and compiles. False if not: then the error of the request is set. */
static bool rewrite_check(struct sl_fields *s, const struct sl_json_path *at, const struct rewrite_rule *rule)
{
    int number;
    PCRE2_SIZE where;
    PCRE2_UCHAR text[120] = "";
    if (rule->from.size > MAX_PATTERN)
        return sl_fields_fail(s, at, s->json->at, "the pattern is longer than %d bytes", MAX_PATTERN);
    size_t refused = find_refused(rule->from);
    if (refused < rule->from.size)
        return sl_fields_fail(s, at, s->json->at, "regex parse error at %zu: this construct is not supported", refused);
    pcre2_code *code = rewrite_compile(rule, &number, &where);
    if (!code) {
        pcre2_get_error_message(number, text, sizeof text);
        return sl_fields_fail(s, at, s->json->at, "regex parse error at %zu: %s", (size_t)where, (const char *)text);
    }
    pcre2_code_free(code);
    return true;
}

/* Reads one rule from JSON: {"from": pattern, "to": replacement}; both members must be present (`true`). */
static bool rewrite_read_rule(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct sl_field fields[] = {
        SL_FIELD(TEXT, true, rewrite_rule, from, "from"),
        SL_FIELD(TEXT, true, rewrite_rule, to, "to"),
        SL_FIELDS_END,
    };
    return sl_fields_object(s, at, fields, out);
}

bool rewrite_read(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct rewrite_rules *rules = out;
    void *items;
    size_t count;
    if (!sl_fields_array(s, at, sizeof(struct rewrite_rule), rewrite_read_rule, &items, &count))
        return false;
    if (count > MAX_RULES)
        return sl_fields_fail(s, at, s->json->at, "rewrite_first_module has more than %d rules", MAX_RULES);
    *rules = (struct rewrite_rules){items, count};
    for (size_t i = 0; i < count; i++) {
        struct sl_json_path element = {.up = at, .index = i};
        if (!rewrite_check(s, &element, &rules->rules[i]))
            return false;
    }
    return true;
}

/* ---- replacing ---- */

struct rewrite_match {
    const struct rewrite_rule *rule;
    struct sl_str name;
    pcre2_code *code;
    pcre2_match_data *data;
};

static bool is_group_character(char c)
{
    return sl_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Returns the number of the capture group with this name or number in decimal; -1 if the pattern has no group of this name. */
static int group_number(const struct rewrite_match *m, struct sl_str group)
{
    char name[64];
    uint64_t number;
    if (sl_parse_u64(group, &number) && number < 10000)
        return (int)number;
    if (!group.size || group.size >= sizeof name)
        return -1;
    memcpy(name, group.data, group.size);
    name[group.size] = 0;
    int found = pcre2_substring_number_from_name(m->code, (PCRE2_SPTR)name);
    return found > 0 ? found : -1;
}

/* Appends the text that a capture group (name or number) has matched; nothing if it does not exist or did not match. */
static void put_group(const struct rewrite_match *m, struct sl_str group, struct sl_buf *out)
{
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(m->data);
    int number = group_number(m, group);
    if (number < 0 || (uint32_t)number >= pcre2_get_ovector_count(m->data) || offsets[2 * number] == PCRE2_UNSET)
        return;
    sl_buf_add(out, m->name.data + offsets[2 * number], offsets[2 * number + 1] - offsets[2 * number]);
}

/* Expands the reference of which `rest` is the part behind the dollar: $$, $name, ${name}. Returns how many characters of `rest` belong to
 * it; 0 if the dollar is literal. */
static size_t put_reference(const struct rewrite_match *m, struct sl_str rest, struct sl_buf *out)
{
    size_t size = 0;
    if (rest.size && rest.data[0] == '$') {
        sl_buf_u8(out, '$');
        return 1;
    }
    if (rest.size && rest.data[0] == '{') {
        const char *end = memchr(rest.data, '}', rest.size);
        if (!end)
            return 0;
        put_group(m, (struct sl_str){rest.data + 1, (size_t)(end - rest.data) - 1}, out);
        return (size_t)(end - rest.data) + 1;
    }
    while (size < rest.size && is_group_character(rest.data[size]))
        size++;
    put_group(m, (struct sl_str){rest.data, size}, out);
    return size;
}

/* Appends the rule's replacement, with references to groups expanded; a dollar that begins no reference stays. */
static void put_replacement(const struct rewrite_match *m, struct sl_buf *out)
{
    struct sl_str to = m->rule->to;
    for (size_t i = 0; i < to.size; i++) {
        size_t taken = to.data[i] == '$' ? put_reference(m, (struct sl_str){to.data + i + 1, to.size - i - 1}, out) : 0;
        if (!taken)
            sl_buf_u8(out, (uint8_t)to.data[i]);
        i += taken;
    }
}

/* Returns the name, in the arena, with the part that the pattern matched replaced. When out of memory sets `*failed`. */
static struct sl_str replaced(const struct rewrite_match *m, struct sl_arena *arena, bool *failed)
{
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(m->data);
    struct sl_buf out = {0};
    sl_buf_add(&out, m->name.data, offsets[0]);
    put_replacement(m, &out);
    sl_buf_add(&out, m->name.data + offsets[1], m->name.size - offsets[1]);
    struct sl_str name = sl_buf_move_to_arena(&out, arena);
    *failed |= !name.data;
    return name;
}

/* Searches the rule's pattern in the name; if it matches, sets `*result` to the new name. False if it does not match, if the match takes
 * too much work, or when out of memory, which also sets `*failed`. */
static bool rewrite_by(struct rewrite_match *m, pcre2_match_context *limits, struct sl_arena *arena,
                       struct sl_str *result, bool *failed)
{
    int number;
    PCRE2_SIZE where;
    bool done = false;
    /* fails only for lack of memory: rewrite_check() has tried the pattern */
    m->code = rewrite_compile(m->rule, &number, &where);
    m->data = m->code ? pcre2_match_data_create_from_pattern(m->code, NULL) : NULL;
    *failed |= !m->data;
    if (m->data)
        done = pcre2_match(m->code, (PCRE2_SPTR)m->name.data, m->name.size, 0, 0, m->data, limits) > 0;
    if (done)
        *result = replaced(m, arena, failed);
    pcre2_match_data_free(m->data);
    pcre2_code_free(m->code);
    return done;
}

struct match_work {
    int64_t steps; /* remaining */
    PCRE2_SIZE at; /* position in the name at the last step */
};

/* Called by PCRE2 before each item of the pattern: charges one step and, as the item before may be a loop, one for each byte that it passed
 * over. A result other than 0 ends the match: when the steps are used up, or the job is cancelled. */
static int count_step(pcre2_callout_block *block, void *arg)
{
    struct match_work *work = arg;
    PCRE2_SIZE at = block->current_position;
    work->steps -= 1 + (int64_t)(at > work->at ? at - work->at : work->at - at);
    work->at = at;
    return work->steps < 0 || sl_is_cancelled() ? PCRE2_ERROR_MATCHLIMIT : 0;
}

/* Each rule costs COMPILE_STEPS and the steps of its match, whether it matches or not. */
struct sl_str rewrite_name(const struct rewrite_rules *rules, struct sl_str name, int64_t *steps,
                           struct sl_arena *arena, bool *failed)
{
    struct sl_str result = name;
    bool done = false;
    if (!rules->count || !name.size || *steps < 0)
        return name;
    struct match_work work = {.steps = *steps};
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    *failed |= !limits;
    if (limits) {
        pcre2_set_match_limit(limits, MATCH_LIMIT);
        pcre2_set_depth_limit(limits, DEPTH_LIMIT);
        pcre2_set_heap_limit(limits, HEAP_LIMIT);
        pcre2_set_callout(limits, count_step, &work);
    }
    for (size_t i = 0; i < rules->count && !done && !*failed && work.steps >= 0; i++) {
        work.steps -= COMPILE_STEPS;
        struct rewrite_match m = {.rule = &rules->rules[i], .name = name};
        done = rewrite_by(&m, limits, arena, &result, failed);
    }
    if (work.steps < 0)
        log_warn("crash", "matching rewrite_first_module took too much work; the module name is kept",
                 LOG_U64("bytes", name.size));
    *steps = work.steps;
    pcre2_match_context_free(limits);
    return result;
}
