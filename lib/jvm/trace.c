#include "jvm/trace.h"

enum { MOST_FRAMES = 1 << 17 }; /* of one line; one mapping alone comes to half of that */

/* ---- lines ---- */

struct line {
    struct sl_str text, end; /* without and with only what ends it */
};

static struct line line_of(struct sl_str whole)
{
    struct line line = {whole, SL_STR("\n")};
    if (line.text.size && line.text.data[line.text.size - 1] == '\n')
        line.text.size--;
    if (line.text.size && line.text.size < whole.size && line.text.data[line.text.size - 1] == '\r') {
        line.text.size--;
        line.end = SL_STR("\r\n");
    }
    return line;
}

static struct sl_str front(struct sl_str text, const char *end)
{
    return (struct sl_str){text.data, (size_t)(end - text.data)};
}

static struct sl_str from(struct sl_str text, const char *begin)
{
    return (struct sl_str){begin, text.size - (size_t)(begin - text.data)};
}

static const char *find_text(struct sl_str text, struct sl_str wanted)
{
    return text.size >= wanted.size ? memmem(text.data, text.size, wanted.data, wanted.size) : NULL;
}

static const char *find_last(struct sl_str text, char c)
{
    return text.size ? memrchr(text.data, c, text.size) : NULL;
}

/* ---- frames ---- */

struct frame_line { /* prefix "at " module class "." method "(" file ":" line ")" rest */
    struct sl_str prefix, module, class, method;
    uint32_t line;
    struct sl_str rest;
};

static uint32_t parse_line(struct sl_str place)
{
    const char *colon = find_last(place, ':');
    uint64_t value = 0;
    for (const char *c = colon ? colon + 1 : NULL; c && c < place.data + place.size; c++)
        if (!sl_is_digit(*c) || (value = value * 10 + (uint64_t)(*c - '0')) > UINT32_MAX)
            return 0;
    return (uint32_t)value;
}

/* Whether the name behind the text's last blank has "at" in front of it, a word of its own. */
static bool is_at(struct sl_str text, const char *blank)
{
    size_t size = blank ? (size_t)(blank - text.data) : 0;
    return size >= 2 && memcmp(blank - 2, "at", 2) == 0 && (size == 2 || sl_is_blank(blank[-3]));
}

static bool is_frame(struct sl_str text, struct frame_line *f)
{
    const char *close = find_last(text, ')'), *open = close ? find_last(front(text, close), '(') : NULL;
    const char *blank = open ? find_last(front(text, open), ' ') : NULL;
    if (!is_at(text, blank))
        return false;
    struct sl_str name = from(front(text, open), blank + 1), place = from(front(text, close), open + 1);
    const char *dot = find_last(name, '.'), *slash = dot ? find_last(front(name, dot), '/') : NULL;
    if (!dot)
        return false;
    f->prefix = front(text, blank - 2);
    f->module = slash ? front(name, slash + 1) : (struct sl_str){name.data, 0};
    f->class = front(from(name, name.data + f->module.size), dot);
    f->method = from(name, dot + 1);
    f->line = parse_line(place);
    f->rest = from(text, close + 1);
    return true;
}

static void put_frame(const struct sl_jvm_trace *t, const struct frame_line *f, const struct sl_jvm_frame *frame,
                      struct sl_buf *out)
{
    bool plain = f->prefix.size <= 4 && !sl_str_trimmed(f->prefix).size;
    sl_buf_str(out, plain ? SL_STR("    ") : f->prefix);
    sl_buf_cstr(out, "at ");
    sl_buf_str(out, f->module);
    sl_buf_str(out, frame->class);
    sl_buf_u8(out, '.');
    sl_jvm_signatures_put(t->signatures, frame, out);
    sl_buf_u8(out, '(');
    sl_buf_str(out, frame->file);
    sl_buf_str(out, frame->suffix);
    if (!frame->file.size && !frame->suffix.size)
        sl_buf_cstr(out, "<unknown>");
    if (frame->has_line) {
        sl_buf_u8(out, ':');
        sl_buf_number(out, frame->line, ')');
    } else {
        sl_buf_u8(out, ')');
    }
    sl_buf_str(out, f->rest);
}

static void map_frame(struct sl_jvm_trace *t, const struct line *line, const struct frame_line *f, struct sl_buf *out)
{
    struct sl_jvm_query query = {
        .class = f->class, .method = f->method, .line = f->line, .signatures = t->signatures != NULL};
    t->frames.count = 0;
    if (sl_jvm_stack_frame(&t->stack, &query, &t->frames) == SL_JVM_UNKNOWN) {
        sl_buf_str(out, line->text);
        sl_buf_str(out, line->end);
        return;
    }
    for (size_t i = 0; i < t->frames.count; i++) {
        put_frame(t, f, &t->frames.items[i], out);
        sl_buf_str(out, line->end);
    }
}

/* ---- exceptions ---- */

struct throwable { /* prefix class rest */
    struct sl_str prefix, class, rest;
};

/* "class" or "class: message", blanks around them aside. */
static bool is_throwable(struct sl_str text, struct throwable *t)
{
    struct sl_str trimmed = sl_str_trimmed(text);
    const char *colon = find_text(trimmed, SL_STR(": "));
    if (!colon && trimmed.size && trimmed.data[trimmed.size - 1] == ':')
        colon = trimmed.data + trimmed.size - 1;
    t->class = colon ? front(trimmed, colon) : trimmed;
    if (t->class.size && memchr(t->class.data, ' ', t->class.size))
        return false;
    t->prefix = front(text, trimmed.size ? trimmed.data : text.data);
    t->rest = from(text, t->class.size ? t->class.data + t->class.size : text.data);
    return true;
}

/* A throwable behind words that say what it has to do with the one before. */
static bool is_announced(struct sl_str text, struct throwable *t)
{
    static const struct sl_str words[] = {{"Caused by: ", 11}, {"Suppressed: ", 12}, {"Exception in thread \"", 21}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *found = find_text(text, words[i]), *behind = found ? found + words[i].size : NULL;
        if (found && i == 2) {
            behind = find_text(from(text, behind), SL_STR("\" "));
            behind = behind ? behind + 2 : NULL;
        }
        if (!behind || !is_throwable(from(text, behind), t))
            continue;
        t->prefix = front(text, behind + t->prefix.size);
        return true;
    }
    return false;
}

/* Its stack begins. The name is kept, for the line is gone when its frames come. */
static bool begin_stack(struct sl_jvm_trace *t, struct sl_str class)
{
    struct sl_str kept = {NULL, 0};
    sl_arena_reset(&t->thrown_arena);
    if (class.data) {
        kept = (struct sl_str){sl_arena_strndup(&t->thrown_arena, class.data, class.size), class.size};
        if (!kept.data)
            return false;
    }
    return sl_jvm_stack_begin(&t->stack, &t->mappers, kept, &t->thrown_arena);
}

static bool map_throwable(struct sl_jvm_trace *t, const struct line *line, const struct throwable *thrown,
                          struct sl_buf *out)
{
    struct sl_str original;
    bool known = sl_jvm_stack_class(&t->mappers, thrown->class, &original);
    if (known) {
        sl_buf_str(out, thrown->prefix);
        sl_buf_str(out, original);
        sl_buf_str(out, thrown->rest);
    } else {
        sl_buf_str(out, line->text);
    }
    sl_buf_str(out, line->end);
    return begin_stack(t, original);
}

/* ---- traces ---- */

bool sl_jvm_trace_begin(struct sl_jvm_trace *t, const struct sl_jvm_mappers *mappers)
{
    *t = (struct sl_jvm_trace){.mappers = *mappers};
    t->frames = (struct sl_jvm_frames){.arena = &t->arena, .limit = MOST_FRAMES};
    return begin_stack(t, (struct sl_str){NULL, 0});
}

bool sl_jvm_trace_line(struct sl_jvm_trace *t, struct sl_str whole, struct sl_buf *out)
{
    struct line line = line_of(whole);
    struct frame_line frame;
    struct throwable thrown;
    if (is_frame(line.text, &frame)) {
        map_frame(t, &line, &frame, out);
        return !t->frames.busy && !out->failed;
    }
    if (is_announced(line.text, &thrown) || is_throwable(line.text, &thrown))
        return map_throwable(t, &line, &thrown, out) && !out->failed;
    sl_buf_str(out, line.text);
    sl_buf_str(out, line.end);
    t->stack.thrown.data = NULL;
    return !out->failed;
}

void sl_jvm_trace_end(struct sl_jvm_trace *t)
{
    sl_arena_free(&t->arena);
    sl_arena_free(&t->thrown_arena);
}
