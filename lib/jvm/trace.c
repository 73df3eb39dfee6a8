/* Rewrites JVM stack traces in text line by line: frames, and lines that name exceptions. */
#include "jvm/trace.h"

enum { MAX_FRAMES = 4096 }; /* frames that one line may become; a line that would become more is left unchanged */

/* ---- lines ---- */

static struct sl_str between(const char *begin, const char *end)
{
    return (struct sl_str){begin, (size_t)(end - begin)};
}

/* Classes of characters in a name "module/package.Class.method": names contain neither blanks nor []();:<>. */
enum name_char { NAME_OTHER, NAME_DOT, NAME_SLASH, NAME_NONE };

/* Returns which role the character has in a name: a dot, a slash, any other character of names, or none of a name. */
static inline enum name_char name_char(char c)
{
    enum { N = NAME_NONE };
    static const uint8_t kinds[256] = {
        [' '] = N, ['\t'] = N, ['\r'] = N, ['\f'] = N, ['\v'] = N, ['\n'] = N, ['['] = N,        [']'] = N,
        ['('] = N, [')'] = N,  [';'] = N,  [':'] = N,  ['<'] = N,  ['>'] = N,  ['.'] = NAME_DOT, ['/'] = NAME_SLASH,
    };
    return kinds[(unsigned char)c];
}

static inline bool is_name_char(char c)
{
    return name_char(c) != NAME_NONE;
}

static bool is_word_char(char c)
{
    return sl_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* ---- frames ---- */

/* Splits FILE:LINE into `file` and `line`. If it does not end with a colon and a number of at most 2^31 - 1, all of it is the file. */
static void split_location(struct sl_str location, struct sl_jvm_trace_frame *f)
{
    const char *end = location.data + location.size, *digits = end;
    uint64_t value;
    f->file = location;
    f->line = 0;
    f->has_line = false;
    while (digits > location.data && sl_is_digit(digits[-1]))
        digits--;
    if (digits == end || digits == location.data || digits[-1] != ':')
        return;
    if (!sl_parse_u64(between(digits, end), &value) || value > INT32_MAX)
        return;
    f->file = between(location.data, digits - 1);
    f->line = (uint32_t)value;
    f->has_line = true;
}

/* True if one of the eight bytes at `at` is `(` or `)`, 0x28 or 0x29: all are compared at once, as bytes of a 64-bit number. */
static bool has_bracket_in_eight(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    bytes = (bytes | ones) ^ (ones * ')');               /* `(` | 1 is `)`: brackets are now zero bytes */
    return ((bytes - ones) & ~bytes & (ones << 7)) != 0; /* true if a byte is zero */
}

/* True if there is a `(` or `)` in the text from `at` to `end`. The last eight bytes may be looked at twice. */
static bool has_bracket(const char *at, const char *end)
{
    if (end - at >= 8) {
        for (; end - at > 8; at += 8)
            if (has_bracket_in_eight(at))
                return true;
        return has_bracket_in_eight(end - 8);
    }
    while (at < end && (*at | 1) != ')') /* `(` is 0x28, `)` 0x29 */
        at++;
    return at < end;
}

/* Returns the `)` that closes the `(` at `open`; if none does, the `)` with which the text ends. */
static const char *find_close(const char *open, const char *end)
{
    unsigned depth = 0;
    if (!has_bracket(open + 1, end - 1)) /* nearly always: only these two brackets, as the text ends with `)` */
        return end - 1;
    for (const char *c = open; c < end; c++) {
        depth += *c == '(';
        if (*c == ')' && --depth == 0)
            return c;
    }
    return end - 1;
}

/* A name "[module/]class.method". */
struct frame_name {
    const char *begin, *slash, *dot; /* the last slash before the dot, the last dot; NULL = none */
};

/* Finds the name "[module/]class.method" that ends at `end`, reading backwards: where it begins, the dot before the method (which may be
 * <init> or <clinit>), and the last slash before that dot, which is the end of a module. `dot` is NULL if it is no name of a class and
 * method. */
static struct frame_name find_name(const char *begin, const char *end)
{
    static const struct sl_str special[] = {{".<init>", 7}, {".<clinit>", 9}};
    struct frame_name name = {.begin = end};
    for (size_t i = 0; i < 2 && end > begin && end[-1] == '>'; i++)
        if ((size_t)(end - begin) >= special[i].size &&
            memcmp(end - special[i].size, special[i].data, special[i].size) == 0)
            name.dot = end -= special[i].size;
    while (end > begin) {
        enum name_char kind = name_char(end[-1]);
        if (__builtin_expect(kind == NAME_OTHER, 1)) {
            end--;
            continue;
        }
        if (kind == NAME_NONE)
            break;
        end--;
        if (kind == NAME_DOT)
            name.dot = name.dot ? name.dot : end;
        else if (name.dot && !name.slash)
            name.slash = end;
    }
    name.begin = end;
    return name;
}

/* True if the word "at" and blanks are in front of `name`, in the text that begins at `begin`. */
static bool is_behind_at(const char *begin, const char *name)
{
    const char *at = name;
    while (at > begin && sl_is_blank(at[-1]))
        at--;
    return at < name && at - begin >= 2 && memcmp(at - 2, "at", 2) == 0 && (at - begin == 2 || !is_word_char(at[-3]));
}

/* Parses "at [module/]class.method(FILE:LINE)" whose `(` is at `open`; f->gap is the blanks before that. The text ends with a `)`. f->head
 * is all before the class, f->rest the closing `)` and what follows. False for text of another form. */
static bool read_frame(struct sl_str text, const char *open, struct sl_jvm_trace_frame *f)
{
    const char *end = text.data + text.size, *name_end = open;
    while (name_end > text.data && sl_is_blank(name_end[-1]))
        name_end--;
    struct frame_name name = find_name(text.data, name_end);
    const char *class = name.slash ? name.slash + 1 : name.begin;
    if (!name.dot || !is_behind_at(text.data, name.begin) || name.dot == class || name.dot + 1 == name_end)
        return false;
    const char *close = find_close(open, end);
    f->head = between(text.data, class);
    f->class = between(class, name.dot);
    f->method = between(name.dot + 1, name_end);
    f->gap = between(name_end, open);
    f->rest = between(close, end);
    split_location(between(open + 1, close), f);
    return true;
}

/* Tries each `(` of the line, as other text in brackets may precede the frame. What follows the last `)` is added to the rest. */
bool sl_jvm_trace_frame(struct sl_str text, struct sl_jvm_trace_frame *f)
{
    const char *close = text.size ? memrchr(text.data, ')', text.size) : NULL, *at = text.data;
    struct sl_str whole = text;
    text.size = close ? (size_t)(close + 1 - text.data) : 0;
    for (const char *open; at < close && (open = memchr(at, '(', (size_t)(close - at))); at = open + 1)
        if (read_frame(text, open, f)) {
            f->rest.size += whole.size - text.size;
            return true;
        }
    return false;
}

/* Writes a frame in the form of the line `arg` (struct sl_jvm_trace_frame) that it replaces: the same text in front, the same blanks and
 * text behind. For sl_jvm_alternatives_put(). */
static void put_frame(void *arg, const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    const struct sl_jvm_trace_frame *line = arg;
    sl_buf_str(out, line->head);
    sl_buf_str(out, frame->class);
    sl_buf_u8(out, '.');
    sl_jvm_signatures_put(frame, out);
    sl_buf_str(out, line->gap);
    sl_buf_u8(out, '(');
    sl_buf_str(out, frame->file);
    sl_buf_str(out, frame->suffix);
    if (frame->has_line) {
        sl_buf_u8(out, ':');
        sl_buf_decimal(out, frame->line);
    }
    sl_buf_str(out, line->rest);
}

/* Copies a line with its line end. */
static void put_as_it_is(const struct sl_jvm_line *line, struct sl_buf *out)
{
    if (line->has_end) { /* text and line end are contiguous */
        sl_buf_add(out, line->text.data, line->text.size + line->end.size);
        return;
    }
    sl_buf_str(out, line->text);
    sl_buf_str(out, line->end);
}

/* Writes the original frames of a line. The line is copied unchanged if its class is in no mapping, or if the output would be too large. */
static void map_frame(struct sl_jvm_trace *t, const struct sl_jvm_line *line, struct sl_jvm_trace_frame *f,
                      struct sl_buf *out)
{
    struct sl_jvm_query *query = &t->query;
    query->class = f->class;
    query->method = f->method;
    query->line = f->line;
    query->line_is_known = f->has_line;
    query->file = f->file;
    query->types = t->signatures;
    query->signatures = t->signatures != NULL;
    size_t begin = out->size;
    if (!sl_jvm_output_limit_begin(&t->allowance, line->text.size)) { /* too much output for the input so far */
        put_as_it_is(line, out);
        return;
    }
    /* the arena, which only unusual lines use, is reset only if the line before has used it */
    if (t->frames.items != t->few_frames || t->arena.at != t->arena_at)
        sl_arena_reset(&t->arena);
    t->arena_at = t->arena.at;
    t->frames = (struct sl_jvm_frames){.arena = &t->arena, .limit = MAX_FRAMES, .items = t->few_frames};
    t->frames.capacity = sizeof t->few_frames / sizeof *t->few_frames;
    t->frame_count++;
    if (sl_jvm_stack_retrace(&t->stack, query, &t->frames) == SL_JVM_UNKNOWN) {
        put_as_it_is(line, out);
        t->unknown_count++;
        if (t->on_unknown)
            t->on_unknown(t->unknown_arg, f->class);
        return;
    }
    if (!t->frames.limited)
        sl_jvm_alternatives_put(&t->frames, put_frame, f, line->end, out);
    if (!sl_jvm_output_limit_end(&t->allowance, &t->frames, out->size - begin)) {
        out->size = begin;
        put_as_it_is(line, out);
    }
}

/* ---- exceptions ---- */

/* The classes of exceptions that a line names, by their original names. */
struct thrown {
    struct sl_str first; /* the first class that a mapping contains, or with a dot in its name; data NULL = none */
    struct sl_str last;  /* the last class that a mapping contains; data NULL = none */
    const char *written; /* the line has been written up to here */
};

/* Reads a class name at `at`. False if there is none, or if neither the end of the line nor a colon or `]` follows it (Java prints
 * "[CIRCULAR REFERENCE: a.b]"). */
static bool read_named_class(const char *at, const char *end, struct sl_str *class)
{
    const char *c = at;
    if (c == end || !is_name_char(*c) || sl_is_digit(*c))
        return false;
    while (c < end && is_name_char(*c))
        c++;
    *class = between(at, c);
    return c == end || *c == ':' || *c == ']';
}

/* If a mapping has the class, writes the line up to the class, and then its original name. Else writes nothing: that text is written later,
 * with what follows it. Records the class in `thrown`; a class in no mapping is recorded under its own name, and only if that has a dot,
 * because other words are no classes. */
static void put_class(struct sl_jvm_trace *t, struct sl_str class, struct thrown *thrown, struct sl_buf *out)
{
    struct sl_str original;
    bool known = sl_jvm_stack_class(&t->mappers, class, &original);
    if (known) {
        sl_buf_str(out, between(thrown->written, class.data));
        sl_buf_str(out, original);
        thrown->written = class.data + class.size;
        thrown->last = original;
    }
    if (!thrown->first.data && (known || memchr(class.data, '.', class.size)))
        thrown->first = original;
}

/* Returns where the next class name may begin: after the next colon or quotation mark that a blank follows, and after the blanks. `end` if
 * there is none. */
static const char *next_name(const char *at, const char *end)
{
    while (at < end && !((*at == ':' || *at == '"') && at + 1 < end && sl_is_blank(at[1])))
        at++;
    at += at < end;
    while (at < end && sl_is_blank(*at))
        at++;
    return at;
}

bool sl_jvm_trace_class(struct sl_str *rest, struct sl_str *class)
{
    const char *at = rest->data, *end = at + rest->size;
    bool found = false;
    while (at < end && !found) {
        found = read_named_class(at, end, class);
        at = next_name(found ? class->data + class->size : at, end);
    }
    *rest = between(at, end);
    return found;
}

/* Writes the line up to its last known class name, known names replaced by the original ones. Names are looked for only where exceptions
 * are named: at the beginning of the line, and after ": " or a quotation mark and a blank. */
static void map_named_classes(struct sl_jvm_trace *t, struct sl_str text, struct thrown *thrown, struct sl_buf *out)
{
    struct sl_str class;
    while (sl_jvm_trace_class(&text, &class))
        put_class(t, class, thrown, out);
}

/* Writes the line up to its last known class name, known names replaced by the original ones. Every word is looked up: letters, digits,
 * `$`, `.`, `_` and non-ASCII bytes, without dots at the end. thrown->written is the end of what was written. */
static void map_all_classes(struct sl_jvm_trace *t, const char *at, const char *end, struct thrown *thrown,
                            struct sl_buf *out)
{
    while (at < end) {
        const char *word = at;
        while (at < end && (is_word_char(*at) || *at == '$' || *at == '.' || *at & 0x80))
            at++;
        const char *word_end = at;
        while (word_end > word && word_end[-1] == '.')
            word_end--;
        if (word_end > word)
            put_class(t, between(word, word_end), thrown, out);
        at += at == word; /* a character that is part of no word */
    }
}

/* Replaces a name by a copy in t->thrown_arena, which lives as long as the stack of the exception. False when out of memory, or if the data
 * of the name is NULL. */
static bool copy_name(struct sl_jvm_trace *t, struct sl_str *text)
{
    if (text->data)
        text->data = sl_arena_strndup(&t->thrown_arena, text->data, text->size);
    return text->data;
}

/* Begins the stack of an exception of the class `first` (data NULL = none). If `last` differs from `first`, it is a class that the line
 * names later, such as that of a cause. Copies both names, because the line is freed before the frames come. False when out of memory. */
static bool begin_stack(struct sl_jvm_trace *t, struct sl_str first, struct sl_str last)
{
    bool wrapped = first.data && last.data && !sl_str_equal(first, last);
    sl_arena_reset(&t->thrown_arena);
    if (first.data && !copy_name(t, &first))
        return false;
    if (wrapped && !copy_name(t, &last))
        return false;
    if (!sl_jvm_stack_begin(&t->stack, &t->mappers, first, &t->thrown_arena))
        return false;
    t->stack.wrapped = wrapped ? last : (struct sl_str){NULL, 0};
    return true;
}

/* Writes a line that is not a frame, with original class names. If the line names an exception, the frames after it are the exception's
 * stack. False when out of memory. */
static bool map_throwable(struct sl_jvm_trace *t, const struct sl_jvm_line *line, struct sl_buf *out)
{
    struct sl_str text = sl_str_trimmed(line->text);
    const char *end = text.data + text.size, *line_end = line->text.data + line->text.size;
    struct thrown thrown = {.written = line->text.data};
    if (t->all_classes)
        map_all_classes(t, text.data, end, &thrown, out);
    else
        map_named_classes(t, text, &thrown, out);
    sl_buf_str(out, between(thrown.written, line_end));
    sl_buf_str(out, line->end);
    if (thrown.first.data)
        return begin_stack(t, thrown.first, thrown.last);
    t->stack.thrown.data = NULL; /* other text: frames after it are not at the top of a stack */
    return true;
}

/* ---- traces ---- */

bool sl_jvm_trace_begin(struct sl_jvm_trace *t, const struct sl_jvm_mappers *mappers)
{
    *t = (struct sl_jvm_trace){.mappers = *mappers};
    return begin_stack(t, (struct sl_str){NULL, 0}, (struct sl_str){NULL, 0});
}

bool sl_jvm_trace_line(struct sl_jvm_trace *t, struct sl_str whole, struct sl_buf *out)
{
    struct sl_jvm_line line = sl_jvm_line(whole);
    struct sl_jvm_trace_frame frame;
    if (sl_jvm_trace_frame(line.text, &frame)) {
        map_frame(t, &line, &frame, out);
        return !t->frames.busy && !out->failed;
    }
    return map_throwable(t, &line, out) && !out->failed;
}

void sl_jvm_trace_end(struct sl_jvm_trace *t)
{
    sl_arena_free(&t->arena);
    sl_arena_free(&t->thrown_arena);
}
