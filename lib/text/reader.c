/* Splits lines of text into frames and the text between them, for all formats. */
#include "text/impl.h"

#include "js/names.h"

static const char *const names[SL_TEXT_FORMATS] = {
    [SL_TEXT_MARKUP] = "markup",   [SL_TEXT_SANITIZER] = "asan",    [SL_TEXT_GLIBC] = "glibc",
    [SL_TEXT_ANDROID] = "android", [SL_TEXT_HS_ERR] = "hs_err",     [SL_TEXT_SYSTEMD] = "systemd",
    [SL_TEXT_GDB] = "gdb",         [SL_TEXT_EU_STACK] = "eu-stack", [SL_TEXT_RUST] = "rust",
    [SL_TEXT_WINDOWS] = "windows", [SL_TEXT_APPLE] = "apple",       [SL_TEXT_ADDRESSES] = "addresses",
    [SL_TEXT_JS] = "js",           [SL_TEXT_JVM] = "jvm",           [SL_TEXT_GO] = "go",
    [SL_TEXT_DOTNET] = "dotnet",   [SL_TEXT_PYTHON] = "python",
};

const char *sl_text_format_name(enum sl_text_format format)
{
    return names[format];
}

bool sl_text_format_parse(struct sl_str name, enum sl_text_format *format)
{
    for (int i = 1; i < SL_TEXT_FORMATS; i++) /* 0, SL_TEXT_PLAIN, has no name */
        if (sl_str_equal(name, sl_str(names[i]))) {
            *format = (enum sl_text_format)i;
            return true;
        }
    return false;
}

void sl_text_begin(struct sl_text *t)
{
    *t = (struct sl_text){.max_frames = UINT64_MAX};
}

void sl_text_end(struct sl_text *t)
{
    sl_map_free(&t->by_name);
    sl_map_free(&t->by_number);
    sl_arena_free(&t->numbers);
    sl_buf_free(&t->pending);
    sl_arena_free(&t->made);
    sl_arena_free(&t->arena);
}

void sl_text_part(struct sl_text *t)
{
    sl_arena_reset(&t->made);
    t->ips = (struct sl_text_ips){.report = t->ips.report};
}

void sl_text_flush(struct sl_text *t, struct sl_buf *out)
{
    sl_buf_str(out, sl_text_end_module_line(t));
}

/* ---- scripts ---- */

/* True for source files of compiled languages. Lines such as Rust's "at ./library/std/src/rt.rs:165:17" look like JavaScript frames. */
static bool is_compiled(struct sl_str url)
{
    static const struct sl_str ends[] = {SL_STR(".rs"), SL_STR(".c"), SL_STR(".h"), SL_STR(".cc"), SL_STR(".cpp")};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sl_str_ends(url, ends[i]))
            return true;
    return false;
}

/* Removes the next part from the line and reads a JavaScript frame in it. A part is the whole line, or one line of a stack that is
 * quoted in it as a JSON string, "a\nb". False if the part has no frame, or one in a file of a compiled language, whose stacks may look the
 * same ("at ./src/a.rs:1:2"): then only `piece->text` is of use. */
static bool read_script(struct sl_str *rest, struct sl_text_piece *piece)
{
    if (!sl_js_stack_part(rest, &piece->text) || !sl_js_stack_frame(piece->text, &piece->js) ||
        (piece->js.url.size && is_compiled(sl_js_without_parameters(piece->js.url))))
        return false;
    piece->kind = SL_TEXT_SCRIPT;
    piece->format = SL_TEXT_JS;
    return true;
}

/* True if a line may hold a JavaScript frame: it has ":" with a digit, and "@", "at " or "://". */
static bool may_be_script(unsigned marks)
{
    return (marks & HAS_PLACE) && (marks & (HAS_SIGN | HAS_AT | HAS_SLASHES));
}

static bool may_be_jvm(unsigned marks)
{
    return (marks & HAS_CLOSE) && (marks & HAS_AT);
}

/* True for frames of functions that are part of a JavaScript engine, "at Array.map (<anonymous>)", "at async Promise.all (index 0)".
 * The parser of JVM traces accepts them too, although they are no JVM frames. */
static bool is_of_js_engine(const struct sl_jvm_trace_frame *frame)
{
    return sl_str_equal(frame->file, SL_STR("<anonymous>")) || sl_str_equal(frame->file, SL_STR("native")) ||
           sl_str_starts(frame->file, SL_STR("index "));
}

/* ---- lines ---- */

bool sl_text_next_line(struct sl_str *rest, struct sl_str *line)
{
    const char *newline = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    size_t size = newline ? (size_t)(newline + 1 - rest->data) : rest->size;
    *line = (struct sl_str){rest->data, size};
    *rest = (struct sl_str){rest->data + size, rest->size - size};
    return size > 0;
}

/* Returns the line without its LF or CR LF, which becomes `*end`. */
static struct sl_str without_end(struct sl_str line, struct sl_str *end)
{
    size_t size = line.size;
    size -= size && line.data[size - 1] == '\n';
    size -= size && size < line.size && line.data[size - 1] == '\r';
    *end = (struct sl_str){line.data + size, line.size - size};
    return (struct sl_str){line.data, size};
}

/* Moves the whole rest of the line to the piece's text. Always true, so that callers can end with `return return_rest(..)`. */
static bool return_rest(struct sl_str *rest, struct sl_text_piece *piece)
{
    piece->text = *rest;
    rest->data += rest->size;
    rest->size = 0;
    return true;
}

/* If the frame has both its address in the process and in the file, stores their difference for its module. With it the addresses of the
 * module's other frames, which may have only a symbol and an address in the process, are converted. */
static void learn_bias(struct sl_text *t, const struct sl_text_frame *f)
{
    if (f->base != SL_TEXT_OF_FILE || f->module == SL_TEXT_NO_MODULE || f->absolute <= f->address)
        return;
    t->modules[f->module].bias = f->absolute - f->address;
    t->modules[f->module].has_bias = true;
}

/* Removes the next part of the line, which may be a JavaScript frame: a part is the whole line or, if the line quotes a stack as a JSON
 * string, one line of that string. A part that is no such frame becomes text to copy. False, and nothing is removed, if that happens with
 * the last or only part: the caller then tries other formats. */
static bool read_part(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    struct sl_str part = *rest;
    bool found = read_script(&part, piece) || part.size;
    t->in_parts = found && part.size; /* other parts of this line follow */
    if (found)
        *rest = part;
    return found;
}

/* Removes the next piece from the line and sets its kind and format: tries native frames, then JavaScript, formats that have all names
 * already, the JVM. Any other line is text to copy, from which sl_text_read_table() takes the module that it may list. Always true. */
static bool read_line(struct sl_text *t, struct sl_str *rest, unsigned marks, struct sl_text_piece *piece)
{
    struct sl_str end, line = without_end(*rest, &end);
    if (sl_text_read_native(t, line, marks, &piece->native)) {
        piece->native.end = end;
        learn_bias(
            t,
            &piece
                 ->native); /* a frame with both its addresses, in process and file, tells where its module is loaded */
        piece->kind = SL_TEXT_NATIVE;
        piece->format = piece->native.format;
        return return_rest(rest, piece);
    }
    if (may_be_script(marks)) {
        if (read_part(t, rest, piece))
            return true;
        piece->kind = SL_TEXT_COPY;
    }
    if (sl_text_read_named(line, marks, &piece->format)) {
        piece->kind = SL_TEXT_COPY;
    } else if (may_be_jvm(marks) && sl_jvm_trace_frame(line, &piece->jvm) && !is_of_js_engine(&piece->jvm)) {
        piece->kind = SL_TEXT_JAVA;
        piece->format = SL_TEXT_JVM;
    } else {
        piece->format = SL_TEXT_PLAIN;
        sl_text_read_table(t, line, marks);
    }
    return return_rest(rest, piece);
}

/* Counts the piece under its format and stores the format in t->last, for the formats that look at the line before. A frame beyond
 * t->max_frames becomes text to copy, so that it is not looked up. */
static void count(struct sl_text *t, struct sl_text_piece *piece)
{
    t->last = piece->format;
    t->counts[piece->format]++;
    if (piece->kind != SL_TEXT_COPY && piece->kind != SL_TEXT_MADE && ++t->frame_count > t->max_frames)
        piece->kind = SL_TEXT_COPY;
}

bool sl_text_next(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    if (!rest->size)
        return false;
    *piece = (struct sl_text_piece){.kind = SL_TEXT_COPY};
    /* Apple's crash reports as JSON (`.ips`) are read first; not while a line about a markup module is pending, which must be written
     * before this line */
    if (!t->in_module_line && !t->out_of_memory && sl_text_next_ips(t, rest, piece)) {
        if (piece->kind == SL_TEXT_NATIVE) /* the JSON between frames does not count as lines of the format */
            count(t, piece);               /* count() also turns frames beyond a limit into text to copy */
        return true;
    }
    if (rest->size > SL_TEXT_MAX_LINE || t->out_of_memory)
        return return_rest(rest, piece);
    /* tried alone, as each of the other readers looks at the whole rest */
    if (t->in_parts && read_part(t, rest, piece)) {
        count(t, piece);
        return true;
    }
    unsigned marks = sl_text_marks(*rest);
    if (marks & HAS_BRACES) {
        sl_text_next_markup(t, rest, piece);
        if (piece->kind == SL_TEXT_MADE) /* not a line of the input, so it is not counted */
            return true;
    } else if (t->in_module_line) {
        /* the pending line about a module is written first; this line stays in `*rest` for the next call */
        piece->kind = SL_TEXT_MADE;
        piece->text = sl_text_end_module_line(t);
        return true;
    } else {
        read_line(t, rest, marks, piece);
    }
    count(t, piece);
    return true;
}

/* ---- the module of a frame, by what the whole text lists ---- */

void sl_text_resolve(const struct sl_text *t, struct sl_text_frame *f)
{
    uint32_t module;
    uint64_t value;
    bool of_file;
    if (f->is_json) /* names its module by the number in a list that follows the stacks */
        sl_text_resolve_ips(t, f);
    /* another frame of the module had both its addresses, in the process and in the file: their difference converts this one's */
    if (f->base == SL_TEXT_OF_SYMBOL && f->absolute && f->module != SL_TEXT_NO_MODULE &&
        t->modules[f->module].has_bias && t->modules[f->module].bias <= f->absolute) {
        f->base = SL_TEXT_OF_FILE;
        f->address = f->absolute - t->modules[f->module].bias;
    }
    /* a frame "symbol + offset" has no address in the file; if its address in the process is known, the mappings lead to one */
    bool after_symbol = f->base == SL_TEXT_OF_SYMBOL && f->absolute;
    if ((f->base != SL_TEXT_ABSOLUTE && !after_symbol) ||
        !sl_text_find(t, after_symbol ? f->absolute : f->address, &module, &value, &of_file))
        return;
    f->module = module;
    f->address = value;
    f->base = of_file ? SL_TEXT_OF_FILE : SL_TEXT_OF_IMAGE;
}
