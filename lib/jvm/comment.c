/* Reads comments that R8 puts into mappings: JSON objects about the class or method before them. */
#include "jvm/mapping.h"

#include "base/json_fields.h"

/* The JSON members of a comment. All but the id are kept undecoded until the id tells which of them are needed. */
struct jvm_comment_parts {
    struct sl_str id, file_name, positions, conditions, actions, signature;
};

static const struct sl_field part_fields[] = {
    SL_FIELD(TEXT, true, jvm_comment_parts, id, "id"),
    SL_FIELD(RAW, false, jvm_comment_parts, file_name, "fileName"),
    SL_FIELD(RAW, false, jvm_comment_parts, positions, "positions"),
    SL_FIELD(RAW, false, jvm_comment_parts, conditions, "conditions"),
    SL_FIELD(RAW, false, jvm_comment_parts, actions, "actions"),
    SL_FIELD(RAW, false, jvm_comment_parts, signature, "signature"),
    SL_FIELDS_END,
};

static const struct {
    struct sl_str id;
    enum sl_jvm_comment_kind kind;
} comment_kinds[] = {
    {{"sourceFile", 10}, SL_JVM_COMMENT_SOURCE_FILE},
    {{"com.android.tools.r8.synthesized", 32}, SL_JVM_COMMENT_SYNTHESIZED},
    {{"com.android.tools.r8.outline", 28}, SL_JVM_COMMENT_OUTLINE},
    {{"com.android.tools.r8.outlineCallsite", 36}, SL_JVM_COMMENT_CALLSITE},
    {{"com.android.tools.r8.rewriteFrame", 33}, SL_JVM_COMMENT_REWRITE},
    {{"com.android.tools.r8.residualsignature", 38}, SL_JVM_COMMENT_SIGNATURE},
};

/* Reads {"1": 10, ...}: lines of an outline (code that R8 moved out of several methods), and the lines of its caller for them. Keys that
 * are no numbers are skipped; a value that is no number sets j->failed, lack of memory j->busy. */
static void read_positions(struct sl_json *j, struct sl_arena *arena, struct sl_jvm_comment *comment)
{
    struct sl_arena_array array = {.arena = arena, .item = sizeof *comment->positions};
    struct sl_str key;
    if (sl_json_peek(j) != SL_JSON_OBJECT)
        sl_json_fail(j, "`positions` of an outline's call site is not an object");
    else
        sl_json_enter(j);
    while (sl_json_next(j, &key)) { /* ends after a failure as well */
        uint64_t line, position;
        struct sl_jvm_position *item;
        if (!sl_json_u64(j, &line) || line > UINT32_MAX)
            sl_json_fail(j, "a line in `positions` is not a 32-bit number");
        else if (!sl_parse_u64(key, &position) || position > UINT32_MAX)
            continue;
        else if ((item = sl_arena_array_add(&array)))
            *item = (struct sl_jvm_position){(uint32_t)position, (uint32_t)line};
        else
            sl_json_no_memory(j);
    }
    comment->position_count = array.count;
    comment->positions = sl_arena_array_finish(&array); /* not NULL for an empty array */
    if (!comment->positions)
        sl_json_no_memory(j);
}

/* True if the text begins with `name`, such as "throws("; `*value` is the text after that. */
static bool is_call(struct sl_str text, struct sl_str name, struct sl_str *value)
{
    if (!sl_str_starts(text, name))
        return false;
    *value = (struct sl_str){text.data + name.size, text.size - name.size};
    return true;
}

/* Removes the `)` at the end of the text; false if there is none. */
static bool ends_call(struct sl_str *value)
{
    if (!sl_str_ends(*value, SL_STR(")")))
        return false;
    value->size--;
    return true;
}

/* Reads a condition "throws(DESCRIPTOR)"; false for any other, or if two conditions contradict each other. */
static bool read_condition(struct sl_str text, struct sl_jvm_comment *comment)
{
    struct sl_str thrown;
    if (!is_call(text, SL_STR("throws("), &thrown) || !ends_call(&thrown) || !thrown.size)
        return false;
    if (comment->text.data && !sl_str_equal(comment->text, thrown)) /* an earlier condition of the rule has another */
        return false;
    comment->text = thrown;
    return true;
}

/* Adds the count of "removeInnerFrames(COUNT)" to comment->remove. Other actions are accepted and ignored. False if the text is malformed
 * or empty. */
static bool read_action(struct sl_str text, struct sl_jvm_comment *comment)
{
    struct sl_str count;
    uint64_t number;
    if (!is_call(text, SL_STR("removeInnerFrames("), &count))
        return text.size > 0;
    if (!ends_call(&count) || !sl_parse_u64(count, &number))
        return false;
    uint64_t sum = comment->remove + (number < UINT32_MAX ? number : UINT32_MAX);
    comment->remove = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    return true;
}

/* Reads an array of strings, and calls `read` for each. False if the array is empty or malformed, or `read` is false for one. */
static bool read_texts(struct sl_json *j, bool (*read)(struct sl_str text, struct sl_jvm_comment *comment),
                       struct sl_jvm_comment *comment)
{
    bool good = true;
    size_t count = 0;
    struct sl_str key, text;
    if (sl_json_peek(j) != SL_JSON_ARRAY)
        return sl_json_fail(j, "`conditions` or `actions` of a rule is not an array");
    sl_json_enter(j);
    for (; sl_json_next(j, &key); count++)
        if (sl_json_string(j, &text))
            good = read(sl_str_trimmed(text), comment) && good;
    return good && count && !j->failed;
}

/* Decodes the JSON members that comments of this kind need; false if one is missing or invalid. `*busy` is set when out of memory. */
static bool read_parts(const struct jvm_comment_parts *p, struct sl_arena *arena, struct sl_jvm_comment *comment,
                       bool *busy)
{
    bool good = true;
    struct sl_json j = {.busy = false}, actions;
    switch (comment->kind) {
    case SL_JVM_COMMENT_SOURCE_FILE: j = sl_json(p->file_name, arena, false); return sl_json_string(&j, &comment->text);
    case SL_JVM_COMMENT_SIGNATURE:
        j = sl_json(p->signature, arena, false);
        if (!sl_json_text(&j, &comment->text)) /* the comment has no effect then, but is no error */
            comment->kind = SL_JVM_COMMENT_OTHER;
        return true;
    case SL_JVM_COMMENT_CALLSITE:
        j = sl_json(p->positions, arena, false);
        read_positions(&j, arena, comment);
        *busy |= j.busy;
        return !j.failed;
    case SL_JVM_COMMENT_REWRITE:
        j = sl_json(p->conditions, arena, false);
        actions = sl_json(p->actions, arena, false);
        if (!p->conditions.data || !p->actions.data)
            return false;
        good = read_texts(&j, read_condition, comment);
        if (!read_texts(&actions, read_action, comment) || !good)
            /* a rule with a condition or action of an unknown kind removes no frames */
            comment->remove = 0;
        *busy |= j.busy || actions.busy;
        return !j.failed && !actions.failed;
    default: return true;
    }
}

/* True for a character with which an unquoted word may begin. */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/* Appends the unquoted word at `at` of `json` to `out`, in quotes unless it is a literal of JSON. Returns where the word ends in `json`. */
static size_t quote_word(struct sl_str json, size_t at, char *out, size_t *size)
{
    static const struct sl_str literals[] = {{"true", 4}, {"false", 5}, {"null", 4}};
    size_t end = at;
    while (end < json.size && (is_word(json.data[end]) || sl_is_digit(json.data[end])))
        end++;
    struct sl_str word = {json.data + at, end - at};
    bool bare = true; /* it needs quotes */
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++)
        bare &= !sl_str_equal(word, literals[i]);
    if (bare)
        out[(*size)++] = '"';
    memcpy(out + *size, word.data, word.size);
    *size += word.size;
    if (bare)
        out[(*size)++] = '"';
    return end;
}

/* Converts lenient JSON, as R8 accepts it, to strict JSON: strings may be in apostrophes, and words need no quotes, as in {id:
 * 'sourceFile'}. Data NULL when out of memory. */
static struct sl_str as_json(struct sl_str text, struct sl_arena *arena)
{
    /* at most three bytes of output for each byte of input: a word of one character gets two quotes */
    char *out = text.size < SIZE_MAX / 4 ? sl_arena_alloc(arena, 3 * text.size + 1, 1) : NULL;
    size_t size = 0;
    char quote = 0;
    for (size_t i = 0; out && i < text.size; i++) {
        char c = text.data[i];
        if (quote && c == '\\' && i + 1 < text.size) {
            char escaped = text.data[++i];
            if (escaped != '\'')
                out[size++] = c;
            out[size++] = escaped;
        } else if (c == quote || (!quote && (c == '"' || c == '\''))) {
            quote = quote ? 0 : c;
            out[size++] = '"';
        } else if (!quote && is_word(c) && !(i && sl_is_digit(text.data[i - 1]))) { /* the `e` of 1e5 begins no word */
            i = quote_word(text, i, out, &size) - 1;
        } else {
            if (c == '"') /* inside apostrophes */
                out[size++] = '\\';
            out[size++] = c;
        }
    }
    return (struct sl_str){out, size};
}

/* Reads the strict JSON of a comment. False if it is malformed or lacks a member that its kind needs, or, with `*busy`, when out of
 * memory. */
static bool read_strict_comment(struct sl_str json, struct sl_arena *arena, struct sl_jvm_comment *comment, bool *busy)
{
    struct jvm_comment_parts parts = {.id = {NULL, 0}};
    struct sl_json j = sl_json(json, arena, false);
    *comment = (struct sl_jvm_comment){.kind = SL_JVM_COMMENT_OTHER};
    bool good = sl_json_read_object(&j, part_fields, &parts) && sl_json_end(&j);
    *busy = j.busy;
    for (size_t i = 0; i < sizeof comment_kinds / sizeof *comment_kinds; i++)
        if (sl_str_equal(parts.id, comment_kinds[i].id))
            comment->kind = comment_kinds[i].kind;
    return good && read_parts(&parts, arena, comment, busy);
}

bool sl_jvm_comment_read(struct sl_str json, struct sl_arena *arena, struct sl_jvm_comment *comment, bool *busy)
{
    if (read_strict_comment(json, arena, comment, busy))
        return true;
    if (*busy)
        return false;
    struct sl_str strict = as_json(json, arena);
    *busy = !strict.data;
    return strict.data && read_strict_comment(strict, arena, comment, busy);
}
