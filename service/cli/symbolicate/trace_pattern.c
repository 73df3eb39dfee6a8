/* `symloom symbolicate` and retrace: log lines that match --regex. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "cli/symbolicate/trace_pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns ----
 *
 * --regex, as in ProGuard's and R8's retrace: a regular expression with letters for the obfuscated names of a line.
 *
 *     %c   class, a.b.C        %m   method name    %s   source file      %a   argument types, separated by commas
 *     %C   class, a/b/C        %f   field name     %l   line number      %S   %s, or %s:%l
 *                              %t   type
 *
 *     .*at %c\.%m\(%s:%l\)     matches `  at a.b.c(SourceFile:4)`: class a.b, method c, file SourceFile, line 4
 *
 * A line that the whole expression matches is written with the original names, once per inlined call; other lines are copied. */

/* MAX_PLACES: letters such as %c in an expression. MATCH_LIMIT: PCRE's steps per line, since an expression can backtrack for hours.
 * MAX_LINE_FRAMES: calls that one line may expand to, since a hostile mapping can list millions. */
enum { MAX_PLACES = 64, MATCH_LIMIT = 1000000, MAX_LINE_FRAMES = 4096 };

/* What the letters of an expression stand for, in the order of `letters`. */
enum place_kind {
    PLACE_CLASS,
    PLACE_CLASS_PATH,
    PLACE_METHOD,
    PLACE_FIELD,
    PLACE_TYPE,
    PLACE_ARGUMENTS,
    PLACE_FILE,
    PLACE_LINE,
    PLACE_KINDS
};

struct trace_location { /* a part of a line that a letter of --regex, such as %c, has matched */
    enum place_kind kind;
    struct sl_str text; /* the text of that part */
};

struct trace_pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const struct sl_jvm_mappers *mappers;
    const struct sl_jvm_signatures *signatures;
    struct sl_jvm_output_limit *allowance;
    bool verbose;
    /* the capture groups that replace the letters: what each stands for, and its number in `code` */
    enum place_kind kinds[MAX_PLACES];
    int groups[MAX_PLACES];
    size_t kind_count;
    struct sl_arena arena;        /* memory for one line */
    struct sl_arena thrown_arena; /* memory for `stack`, whose exception outlives the line that names it */
    struct sl_jvm_stack stack;
    struct sl_jvm_frames frames; /* the calls of the current line */
    struct sl_buf types;         /* original types of the current line: of the arguments, or of the field */
    struct trace_location places[MAX_PLACES]; /* the parts of the current line that letters have matched, in order */
    size_t place_count;
};

/* ---- the expression ---- */

#define NAME  "[^\\s.,:;/()\\[\\]\"]+"
#define CLASS NAME "(?:\\." NAME ")*"
#define TYPE  CLASS "(?:\\[\\])*"

/* The letters and, for each, the regular expression that replaces it. */
static const char letters[] = "cCmftasl";
static const char *const expressions[PLACE_KINDS] = {
    CLASS, NAME "(?:/" NAME ")*", NAME, NAME, TYPE, "(?:" TYPE "(?:\\s*,\\s*" TYPE ")*)?", "[^:()]*", "[0-9]+"};

/* Appends a named capture group for a letter of --regex, such as %c (a class). False if there are more than MAX_PLACES. */
static bool put_place(struct trace_pattern *p, enum place_kind kind, struct sl_buf *out)
{
    if (p->kind_count == MAX_PLACES)
        return false;
    sl_buf_printf(out, "(?<symloom%zu>%s)", p->kind_count, expressions[kind]);
    p->kinds[p->kind_count++] = kind;
    return true;
}

/* Appends the expression that `%letter` stands for; for %S that of %s or %s:%l. A `%` before any other letter is copied. False if there are
 * too many letters. */
static bool put_letter(struct trace_pattern *p, char letter, struct sl_buf *out)
{
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (found)
        return put_place(p, (enum place_kind)(found - letters), out);
    if (letter != 'S') {
        sl_buf_u8(out, '%');
        sl_buf_u8(out, (uint8_t)letter);
        return true;
    }
    bool good = put_place(p, PLACE_FILE, out);
    sl_buf_cstr(out, "(?::");
    good = good && put_place(p, PLACE_LINE, out);
    sl_buf_cstr(out, ")?");
    return good;
}

/* Translates --regex into PCRE's syntax. A backslash quotes the character that follows, so `\%c` is no letter. False when there are more
 * than MAX_PLACES letters, or memory runs out. */
static bool put_expression(struct trace_pattern *p, const char *regex, struct sl_buf *out)
{
    bool good = true;
    for (; good && *regex; regex++)
        if (*regex == '\\' && regex[1]) {
            sl_buf_add(out, regex, 2);
            regex++;
        } else if (*regex == '%' && regex[1]) {
            good = put_letter(p, *++regex, out);
        } else {
            sl_buf_u8(out, (uint8_t)*regex);
        }
    return good && !out->failed;
}

/* Compiles the expression and finds the numbers of its capture groups. False with the reason in `problem`. \C is refused, because it can
 * match half of a UTF-8 character. */
static bool pattern_compile(struct trace_pattern *p, const char *regex, char problem[TRACE_PROBLEM])
{
    struct sl_buf text = {0};
    int number = 0;
    PCRE2_SIZE where = 0;
    if (put_expression(p, regex, &text))
        p->code = pcre2_compile((PCRE2_SPTR)text.data, text.size, PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                                &number, &where, NULL);
    else
        snprintf(problem, TRACE_PROBLEM, "it has more than %d letters such as %%c", MAX_PLACES);
    if (number && !p->code) /* pcre2_compile() sets `number` on success, too */
        pcre2_get_error_message(number, (PCRE2_UCHAR *)problem, TRACE_PROBLEM);
    sl_buf_free(&text);
    for (size_t i = 0; p->code && i < p->kind_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "symloom%zu", i);
        p->groups[i] = pcre2_substring_number_from_name(p->code, (PCRE2_SPTR)name);
    }
    return p->code != NULL;
}

/* Begins a new stack, thrown by an exception of this original class (data NULL: unknown). Retracing needs the class, since mappings of R8
 * have rules that remove frames below certain exceptions. False when out of memory. */
static bool pattern_begin_stack(struct trace_pattern *p, struct sl_str class)
{
    struct sl_str copy = {NULL, 0};
    sl_arena_reset(&p->thrown_arena);
    if (class.data)
        copy = (struct sl_str){sl_arena_strndup(&p->thrown_arena, class.data, class.size), class.size};
    return (copy.data || !class.data) && sl_jvm_stack_begin(&p->stack, p->mappers, copy, &p->thrown_arena);
}

void trace_pattern_free(struct trace_pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    pcre2_match_data_free(p->data);
    pcre2_match_context_free(p->limits);
    sl_arena_free(&p->arena);
    sl_arena_free(&p->thrown_arena);
    sl_buf_free(&p->types);
    free(p);
}

struct trace_pattern *trace_pattern_new(const char *regex, const struct sl_jvm_mappers *mappers,
                                        const struct sl_jvm_signatures *signatures, bool verbose,
                                        struct sl_jvm_output_limit *allowance, char problem[TRACE_PROBLEM])
{
    struct trace_pattern *p = calloc(1, sizeof *p);
    snprintf(problem, TRACE_PROBLEM, "out of memory"); /* unless pattern_compile() finds another reason */
    if (!p)
        return NULL;
    p->mappers = mappers;
    p->signatures = signatures;
    p->verbose = verbose;
    p->allowance = allowance;
    p->frames = (struct sl_jvm_frames){.arena = &p->arena, .limit = MAX_LINE_FRAMES};
    bool good = pattern_compile(p, regex, problem);
    if (good) {
        p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
        p->limits = pcre2_match_context_create(NULL);
        good = p->data && p->limits && pattern_begin_stack(p, (struct sl_str){NULL, 0});
    }
    if (!good) {
        trace_pattern_free(p);
        return NULL;
    }
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    return p;
}

/* ---- a line ---- */

/* Finds the parts of the line that letters of --regex, such as %c, match, in order of the line. False if the whole line does not match;
 * also if the match takes more than MATCH_LIMIT steps. */
static bool find_places(struct trace_pattern *p, struct sl_str line)
{
    size_t end = 0;
    p->place_count = 0;
    if (pcre2_match(p->code, (PCRE2_SPTR)line.data, line.size, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, p->data,
                    p->limits) < 0)
        return false;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(p->data);
    for (size_t i = 0; i < p->kind_count; i++) {
        PCRE2_SIZE from = ends[2 * p->groups[i]], to = ends[2 * p->groups[i] + 1];
        if (from == PCRE2_UNSET || from < end) /* not matched, or (by a look-around) inside of the previous part */
            continue;
        p->places[p->place_count++] = (struct trace_location){p->kinds[i], {line.data + from, to - from}};
        end = to;
    }
    return true;
}

/* Returns the first part of the line that stands for this kind; data NULL: none. */
static struct sl_str place_text(const struct trace_pattern *p, enum place_kind kind)
{
    for (size_t i = 0; i < p->place_count; i++)
        if (p->places[i].kind == kind)
            return p->places[i].text;
    return (struct sl_str){NULL, 0};
}

/* Parses a line number; 0, which is no line, if `digits` is empty or the number is too large. */
static uint32_t line_number(struct sl_str digits)
{
    uint64_t value;
    return sl_parse_u64(digits, &value) && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* Writes a Java type with the original name of its class; the brackets of an array are no part of the name. */
static void put_type(const struct trace_pattern *p, struct sl_str type, struct sl_buf *out)
{
    struct sl_str original;
    size_t size = type.size;
    while (size >= 2 && memcmp(type.data + size - 2, "[]", 2) == 0)
        size -= 2;
    sl_jvm_stack_class(p->mappers, (struct sl_str){type.data, size}, &original);
    sl_buf_str(out, original);
    sl_buf_add(out, type.data + size, type.size - size);
}

/* Appends the original names of a list of types, separated by commas without blanks. */
static void put_types(const struct trace_pattern *p, struct sl_str types, struct sl_buf *out)
{
    while (types.size) {
        const char *comma = memchr(types.data, ',', types.size);
        size_t size = comma ? (size_t)(comma - types.data) : types.size;
        put_type(p, sl_str_trimmed((struct sl_str){types.data, size}), out);
        sl_buf_cstr(out, comma ? "," : "");
        size += comma != NULL;
        types = (struct sl_str){types.data + size, types.size - size};
    }
}

/* Appends the class as a/b/C. */
static void put_slashes(struct sl_str class, struct sl_buf *out)
{
    for (size_t i = 0; i < class.size; i++)
        sl_buf_u8(out, class.data[i] == '.' ? '/' : (uint8_t) class.data[i]);
}

/* Appends the source file of a call, `<unknown>` if the mapping does not tell it. */
static void put_source_file(const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    sl_buf_str(out, frame->file);
    sl_buf_str(out, frame->suffix);
    sl_buf_cstr(out, frame->file.size || frame->suffix.size ? "" : "<unknown>");
}

/* Appends the line number of a call; if it is unknown, removes the colon that the line has before the number. */
static void put_source_number(const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    if (frame->has_line)
        sl_buf_printf(out, "%u", frame->line);
    else if (out->size && out->data[out->size - 1] == ':')
        out->size--;
}

/* Appends what replaces one matched part of the line. `frame` is a call of a method. For lines about exceptions and fields it is only a
 * class, without `method`: then file, line and method are copied. */
static void put_meaning(const struct trace_pattern *p, const struct trace_location *place,
                        const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    bool is_call = frame->method.data;
    switch (place->kind) {
    case PLACE_CLASS: sl_buf_str(out, frame->class); return;
    case PLACE_CLASS_PATH: put_slashes(frame->class, out); return;
    case PLACE_TYPE: put_type(p, place->text, out); return;
    case PLACE_ARGUMENTS: put_types(p, place->text, out); return;
    default: break;
    }
    struct sl_str field;
    if (place->kind == PLACE_FIELD) {
        struct sl_str type = sl_buf_view(&p->types); /* the field's, if the line has it; else empty */
        sl_jvm_signatures_field(p->signatures, frame->class, place->text, type, &field);
        sl_buf_str(out, field);
    } else if (place->kind == PLACE_METHOD && is_call) {
        sl_jvm_signatures_put(frame, out);
    } else if (place->kind == PLACE_FILE && is_call) {
        put_source_file(frame, out);
    } else if (place->kind == PLACE_LINE && is_call) {
        put_source_number(frame, out);
    } else {
        sl_buf_str(out, place->text);
    }
}

/* A line, split into text and line end, whose matched parts are pattern->places. */
struct matched_line {
    const struct trace_pattern *pattern;
    struct sl_str text, end;
};

/* Appends the line with its matched parts replaced by those of the frame (sl_jvm_put_frame). */
static void put_frame_in_line(void *arg, const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    const struct matched_line *line = arg;
    const struct trace_pattern *p = line->pattern;
    const char *at = line->text.data;
    for (size_t i = 0; i < p->place_count; i++) {
        struct sl_str text = p->places[i].text;
        sl_buf_add(out, at, (size_t)(text.data - at));
        put_meaning(p, &p->places[i], frame, out);
        at = text.data + text.size;
    }
    sl_buf_add(out, at, (size_t)(line->text.data + line->text.size - at));
}

/* Returns the obfuscated class a.b.C of the line; a path a/b/C is converted. Data NULL: the line has none; or, with frames.busy set, out of
 * memory. */
static struct sl_str class_of_line(struct trace_pattern *p)
{
    struct sl_str class = place_text(p, PLACE_CLASS), path = place_text(p, PLACE_CLASS_PATH);
    if (class.data || !path.data)
        return class;
    char *name = sl_arena_strndup(&p->arena, path.data, path.size);
    p->frames.busy = p->frames.busy || !name;
    for (size_t i = 0; name && i < path.size; i++)
        name[i] = name[i] == '/' ? '.' : name[i];
    return (struct sl_str){name, name ? path.size : 0};
}

/* Sets p->frames to the calls that the line stands for. They are found by its line number; if that is unknown, by its argument types, which
 * tell methods of the same name apart. False when no mapping has its class. */
static bool find_calls(struct trace_pattern *p, struct sl_str class, struct sl_str method)
{
    struct sl_str arguments = place_text(p, PLACE_ARGUMENTS), digits = place_text(p, PLACE_LINE);
    struct sl_jvm_query query = {.class = class,
                                 .method = method,
                                 .line = line_number(digits),
                                 .line_is_known = digits.size > 0,
                                 .file = place_text(p, PLACE_FILE),
                                 .types = p->verbose ? p->signatures : NULL,
                                 .signatures = p->verbose};
    if (!arguments.data || query.line)
        return sl_jvm_stack_retrace(&p->stack, &query, &p->frames) != SL_JVM_UNKNOWN;
    put_types(p, arguments, &p->types);
    query.by = SL_JVM_BY_PARAMETERS;
    query.parameters = sl_buf_view(&p->types);
    bool known = sl_jvm_stack_frame(&p->stack, &query, &p->frames) != SL_JVM_UNKNOWN;
    /* add the return types, which --verbose prints */
    for (size_t i = 0; p->verbose && i < p->frames.count; i++) {
        struct sl_jvm_frame *f = &p->frames.items[i];
        f->type = sl_jvm_signatures_type(p->signatures, f->class, f->method, f->parameters, f->line);
    }
    return known;
}

/* Appends a line per call of p->frames. False, and nothing is appended, if that exceeds the limit of the output (p->allowance): the caller
 * then copies the line unchanged. */
static bool put_calls(struct trace_pattern *p, struct matched_line *matched, struct sl_buf *out)
{
    size_t begin = out->size;
    if (!p->frames.limited) /* else calls beyond MAX_LINE_FRAMES were left out, and sl_jvm_output_limit_end() fails */
        sl_jvm_alternatives_put(&p->frames, put_frame_in_line, matched, matched->end, out);
    bool good = sl_jvm_output_limit_end(p->allowance, &p->frames, out->size - begin);
    out->size = good ? out->size : begin;
    return good;
}

/* Appends the retraced line. A line with a class but neither method nor field is about an exception, which begins a stack. False if the
 * line is to be copied unchanged: no mapping has its class, or it would become too large. */
static bool put_retraced(struct trace_pattern *p, const struct sl_jvm_line *line, struct sl_buf *out)
{
    struct sl_str class = class_of_line(p), method = place_text(p, PLACE_METHOD), original = {NULL, 0};
    bool known = class.data && sl_jvm_stack_class(p->mappers, class, &original);
    if (class.data && !known)
        return false;
    struct matched_line matched = {p, line->text, line->end};
    if (known && method.data)
        return sl_jvm_output_limit_begin(p->allowance, line->text.size) && find_calls(p, class, method) &&
               put_calls(p, &matched, out);
    struct sl_str type = place_text(p, PLACE_TYPE);
    if (place_text(p, PLACE_FIELD).data && type.data)
        put_type(p, type, &p->types); /* for put_meaning(): obfuscated fields of one name differ by their types */
    else if (known && !place_text(p, PLACE_FIELD).data && !pattern_begin_stack(p, original))
        p->frames.busy = true;
    put_frame_in_line(&matched, &(struct sl_jvm_frame){.class = original}, out);
    sl_buf_str(out, line->end);
    return true;
}

bool trace_pattern_line(struct trace_pattern *p, struct sl_str whole, struct sl_buf *out)
{
    struct sl_jvm_line line = sl_jvm_line(whole);
    sl_arena_reset(&p->arena);
    sl_buf_clear(&p->types);
    p->frames = (struct sl_jvm_frames){.arena = &p->arena, .limit = MAX_LINE_FRAMES};
    bool found = find_places(p, line.text);
    /* a line that does not match ends the stack, so that the exception's rules remove no frames after it */
    if (!found)
        p->stack.thrown.data = NULL;
    if (!found || !put_retraced(p, &line, out)) {
        sl_buf_str(out, line.text);
        sl_buf_str(out, line.end);
    }
    return !p->frames.busy && !p->types.failed && !out->failed;
}
