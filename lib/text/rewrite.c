/* Writes lines with native frames again, with functions and source lines in the notation of the format's own tools. */
#include "text/impl.h"

#include <stdio.h>

#include "base/json_write.h"

static void put_unchanged(const struct sl_text_frame *f, struct sl_buf *out)
{
    sl_buf_str(out, f->stem);
    sl_buf_str(out, f->cut);
    sl_buf_str(out, f->tail);
    sl_buf_str(out, f->end);
}

/* Ends a written line as the input line ended, with LF or CR LF. If the input line has no end, only lines before the last one get an LF. */
static void put_line_end(const struct sl_text_frame *f, bool is_last, struct sl_buf *out)
{
    if (!is_last && !f->end.size)
        sl_buf_u8(out, '\n');
    sl_buf_str(out, f->end);
}

/* Writes PATH:LINE between the texts `before` and `after`; nothing at all if the path is unknown. Line 0 is unknown and not written. */
static void put_place(const char *before, const struct sl_text_call *call, const char *after, struct sl_buf *out)
{
    if (!call->path.size)
        return;
    sl_buf_cstr(out, before);
    sl_buf_str(out, call->path);
    if (call->line) {
        sl_buf_u8(out, ':');
        sl_buf_decimal(out, call->line);
    }
    sl_buf_cstr(out, after);
}

static void put_offset(const char *plus, const struct sl_text_call *call, struct sl_buf *out)
{
    if (call->has_offset)
        sl_buf_printf(out, "%s0x%llx", plus, (unsigned long long)call->offset);
}

/* ---- formats ---- */

/* Writes the rest of a sanitizer's line: the address of the input line (f->shown), "0x401136", then " in f /a.c:2". The module of the input
 * line (f->tail), "(a+0x1314)", follows if that line has no address (TSan) or if the source line is unknown. */
static void put_sanitizer_call(const struct sl_text_frame *f, const struct sl_text_call *call, struct sl_buf *out)
{
    if (f->shown.size) {
        sl_buf_str(out, f->shown);
        sl_buf_cstr(out, " in ");
    }
    sl_buf_str(out, call->function);
    put_place(" ", call, "", out);
    if (!call->path.size || !f->shown.size) {
        sl_buf_u8(out, ' ');
        sl_buf_str(out, sl_str_trimmed(f->tail));
    }
}

/* Writes a line for each call. Inlined calls become numbered frames of their own, so the numbers of later frames of the stack rise:
 * `*shift` is the number of lines added to the stack so far. */
static void put_sanitizer(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                          uint64_t *shift, struct sl_buf *out)
{
    uint64_t number = 0; /* of the frame in the input */
    sl_parse_u64(f->number, &number);
    for (size_t i = 0; i < count; i++) {
        sl_buf_str(out, f->head); /* log prefix and indent */
        sl_buf_u8(out, '#');
        sl_buf_number(out, number + *shift + i, ' ');
        put_sanitizer_call(f, &calls[i], out);
        put_line_end(f, i + 1 == count, out);
    }
    *shift += count - 1;
}

/* Writes a frame that gets no names. Its number is raised by `shift`, the number of lines that inlined calls have added to the stack
 * before it. */
static void put_renumbered(const struct sl_text_frame *f, uint64_t shift, struct sl_buf *out)
{
    uint64_t number; /* of the frame in the input */
    if (!shift || !sl_parse_u64(f->number, &number)) {
        put_unchanged(f, out);
        return;
    }
    sl_buf_str(out, f->head);
    sl_buf_u8(out, '#');
    sl_buf_decimal(out, number + shift);
    /* the rest of the input line behind the number: it is stem, cut (which names would replace), tail and line end */
    sl_buf_str(out, sl_scan_between(f->number.data + f->number.size, f->stem.data + f->stem.size));
    sl_buf_str(out, f->cut);
    sl_buf_str(out, f->tail);
    sl_buf_str(out, f->end);
}

/* Writes the input line up to the place of the names (f->stem), then function and source line, between `before` and `after`. Each caller of
 * an inlined call follows on a line of its own: log prefix and indent (f->head), then "(inlined by)", as addr2line -p -i prints it. */
static void put_appended(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                         const char *before, const char *after, struct sl_buf *out)
{
    sl_buf_str(out, f->stem);
    for (size_t i = 0; i < count; i++) {
        if (i) {
            sl_buf_str(out, f->head);
            sl_buf_cstr(out, "  (inlined by)");
        }
        sl_buf_u8(out, ' ');
        sl_buf_str(out, calls[i].function);
        put_place(before, &calls[i], after, out);
        put_line_end(f, i + 1 == count, out);
    }
}

/* Writes "C  [libc.so.6+0x27249]" (f->stem), then "  f+0x85  (f.c:3)", and a line for each caller of an inlined call, which begins with the
 * log prefix and indent (f->head). */
static void put_hs_err(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                       struct sl_buf *out)
{
    sl_buf_str(out, f->stem);
    for (size_t i = 0; i < count; i++) {
        if (i)
            sl_buf_str(out, f->head);
        sl_buf_cstr(out, i ? "  (inlined by) " : "  ");
        sl_buf_str(out, calls[i].function);
        if (i + 1 == count) /* only the outermost function is a symbol, from which the offset counts */
            put_offset("+", &calls[i], out);
        put_place("  (", &calls[i], ")", out);
        put_line_end(f, i + 1 == count, out);
    }
}

/* Writes "#1  0x00007f0e2a " (f->stem), "f" in place of the name in the input, which may be "n/a", "(libc.so.6 + 0x2a1ca)" (f->tail) and
 * "(a.c:3)". Each caller of an inlined call follows, without module, on a line that begins with the log prefix and indent (f->head). */
static void put_systemd(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                        struct sl_buf *out)
{
    sl_buf_str(out, f->stem);
    for (size_t i = 0; i < count; i++) {
        if (i) {
            sl_buf_str(out, f->head);
            sl_buf_cstr(out, "  (inlined by) ");
        }
        sl_buf_str(out, calls[i].function);
        if (!i)
            sl_buf_str(out, f->tail);
        put_place(" (", &calls[i], ")", out);
        put_line_end(f, i + 1 == count, out);
    }
}

/* Writes "#1  0x000056507a7a2140 in main () at t.c:3". If the source line is unknown, " from /lib/x.so" takes the place of " at t.c:3",
 * provided the input line has it (in f->cut, the text to be replaced). `*shift` is the number of lines that inlined calls have added to the
 * stack so far. */
static void put_gdb(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, uint64_t *shift,
                    struct sl_buf *out)
{
    const char *from = f->cut.size ? memmem(f->cut.data, f->cut.size, " from ", 6) : NULL;
    uint64_t number = 0; /* of the frame in the input */
    sl_parse_u64(f->number, &number);
    for (size_t i = 0; i < count; i++) {
        if (count == 1 && !*shift) { /* the number stays the same */
            sl_buf_str(out, f->stem);
        } else { /* gdb numbers inlined frames, and prints an address only for the outermost function */
            sl_buf_str(out, f->head);
            sl_buf_printf(out, "#%-3llu", (unsigned long long)number + *shift + i);
            if (i + 1 == count) {
                sl_buf_str(out, f->shown); /* the address as the input has it */
                sl_buf_cstr(out, " in ");
            }
        }
        sl_buf_str(out, calls[i].function);
        sl_buf_cstr(out, " ()");
        put_place(" at ", &calls[i], "", out);
        if (!calls[i].path.size && from)
            sl_buf_str(out, sl_scan_between(from, f->cut.data + f->cut.size));
        put_line_end(f, i + 1 == count, out);
    }
    *shift += count - 1;
}

/* Writes "#2  0x.." (f->stem), " main" and " - /tmp/t" (f->tail), and the source line, if known, on the next line. Inlined calls repeat the
 * number and address. */
static void put_eu_stack(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                         struct sl_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        sl_buf_str(out, f->stem);
        sl_buf_u8(out, ' ');
        sl_buf_str(out, calls[i].function);
        sl_buf_str(out, f->tail);
        put_line_end(f, last && !calls[i].path.size, out);
        if (!calls[i].path.size)
            continue;
        sl_buf_str(out, f->head);
        put_place("    ", &calls[i], "", out);
        put_line_end(f, last, out);
    }
}

/* Writes "   4:     0x556a.. - main", and "at FILE:LINE", if known, on the next line. Callers of inlined calls follow as further lines
 * "- NAME" without number and address, with the "-" below the first one. */
static void put_rust(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, struct sl_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (i) {
            /* the input line up to the frame's number: log prefix and indent */
            sl_buf_str(out, sl_scan_between(f->head.data, f->number.data));
            /* blanks up to the column of the first line's "- ", with which the stem ends */
            sl_buf_fill(out, ' ', f->stem.size > f->head.size + 2 ? f->stem.size - f->head.size - 2 : 0);
            sl_buf_cstr(out, "- ");
        } else {
            sl_buf_str(out, f->stem);
        }
        sl_buf_str(out, calls[i].function);
        put_line_end(f, last && !calls[i].path.size, out);
        if (!calls[i].path.size)
            continue;
        sl_buf_str(out, sl_scan_between(f->head.data, f->number.data));
        sl_buf_fill(out, ' ', 27); /* the column of "at" in backtraces of Rust */
        put_place("at ", &calls[i], "", out);
        put_line_end(f, last, out);
    }
}

/* Writes "app!" (f->stem), then "f+0x12 [d:\x.c @ 5]". Each caller of an inlined call follows on a line of its own that begins with the log
 * prefix and indent (f->head); only the outermost function has the offset, which counts from its symbol. */
static void put_windows(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                        struct sl_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            sl_buf_str(out, f->head);
        else
            sl_buf_str(out, f->stem);
        if (i)
            sl_buf_cstr(out, "  (inlined by) ");
        sl_buf_str(out, calls[i].function);
        if (i + 1 == count)
            put_offset("+", &calls[i], out);
        if (calls[i].path.size) {
            sl_buf_cstr(out, " [");
            sl_buf_str(out, calls[i].path);
            sl_buf_printf(out, " @ %llu]", (unsigned long long)calls[i].line);
        }
        if (!i)
            sl_buf_str(out, f->tail);
        put_line_end(f, i + 1 == count, out);
    }
}

/* Writes "0   Demo   0x0000000100003f70 main + 40 (main.c:12)". Inlined calls, marked "[inlined]", repeat the number and address. */
static void put_apple(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, struct sl_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        sl_buf_str(out, f->stem);
        sl_buf_str(out, calls[i].function);
        if (calls[i].has_offset)
            sl_buf_printf(out, " + %llu", (unsigned long long)calls[i].offset);
        put_place(" (", &calls[i], ")", out);
        if (i + 1 < count)
            sl_buf_cstr(out, " [inlined]");
        put_line_end(f, i + 1 == count, out);
    }
}

static void put_json_text(const char *key, struct sl_str text, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    sl_buf_printf(out, ",\"%s\":", key);
    sl_json_put_str(&w, text);
}

/* Writes names in an `.ips` report as Apple's tools do: as further members of the frame's JSON object. The text that is replaced is only
 * the closing brace of that object. Callers of inlined calls become objects behind it. */
static void put_ips(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, struct sl_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (i)
            sl_buf_printf(out, ",{\"imageOffset\":%llu,\"imageIndex\":%u", (unsigned long long)f->address,
                          (unsigned)f->image.index);
        put_json_text("symbol", calls[i].function, out);
        if (last && calls[i].has_offset)
            sl_buf_printf(out, ",\"symbolLocation\":%llu", (unsigned long long)calls[i].offset);
        if (calls[i].path.size)
            put_json_text("sourceFile", calls[i].path, out);
        if (calls[i].line)
            sl_buf_printf(out, ",\"sourceLine\":%llu", (unsigned long long)calls[i].line);
        if (!last)
            sl_buf_cstr(out, ",\"inline\":true");
        sl_buf_u8(out, '}');
    }
}

/* ---- markup ---- */

/* Writes "    #1.1  0x00000000000111d0 g a.c:2:9 (a+0x11d0)" for each inlined call, then "    #1 ..." for the
 * function they are inlined into. */
static void put_markup_stack(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                             struct sl_buf *out)
{
    char number[32];
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        /* the number as the text has it, cut after 20 digits, more than a 64-bit number has */
        snprintf(number, sizeof number, "#%.*s", sl_str_precision(f->number) < 20 ? sl_str_precision(f->number) : 20,
                 f->number.data);
        sl_buf_printf(out, "%6s", number);
        if (last)
            sl_buf_cstr(out, "    ");
        else
            sl_buf_printf(out, ".%-3zu", i + 1);
        sl_buf_printf(out, "0x%016llx ", (unsigned long long)f->absolute);
        sl_buf_str(out, calls[i].function);
        sl_buf_u8(out, ' ');
        sl_buf_str(out, calls[i].path.size ? calls[i].path : SL_STR("<invalid>")); /* as LLVM prints an unknown path */
        sl_buf_printf(out, ":%llu:%llu (", (unsigned long long)calls[i].line, (unsigned long long)calls[i].column);
        sl_buf_str(out, f->module_name);
        sl_buf_printf(out, "+0x%llx)", (unsigned long long)f->address);
        if (!last)
            sl_buf_u8(out, '\n');
    }
}

/* Writes "f[/a.c:4]" for a {{{pc}}} element; for a {{{data}}} element, the address of a variable, only the name. */
static void put_markup_place(const struct sl_text_frame *f, const struct sl_text_call *call, struct sl_buf *out)
{
    sl_buf_str(out, call->function);
    if (!sl_str_equal(f->shown, SL_STR("pc")))
        return;
    sl_buf_u8(out, '[');
    sl_buf_str(out, call->path.size ? call->path : SL_STR("<invalid>")); /* as LLVM prints an unknown path */
    sl_buf_printf(out, ":%llu]", (unsigned long long)call->line);
}

/* Replaces a markup element by its names. {{{bt}}}, a numbered frame of a stack trace, gets a line for each call; {{{pc}}} and
 * {{{data}}}, which may stand in a sentence, get the innermost call only. */
static void put_markup(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count,
                       struct sl_buf *out)
{
    if (!count) { /* "{{{pc:0x1}}}" becomes "[[[pc:0x1]]]" */
        sl_buf_cstr(out, "[[[");
        sl_buf_add(out, f->cut.data + 3, f->cut.size - 6);
        sl_buf_cstr(out, "]]]");
    } else if (f->number.data) {
        put_markup_stack(f, calls, count, out);
    } else {
        put_markup_place(f, &calls[0], out);
    }
}

/* ---- all ---- */

/* Writes a frame with its names in the notation of the format's own tools. Formats whose tools have none (addresses, Android) get
 * "FUNCTION (PATH:LINE)" behind the line. */
static void put_named(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, uint64_t *shift,
                      struct sl_buf *out)
{
    switch (f->format) {
    case SL_TEXT_SANITIZER: put_sanitizer(f, calls, count, shift, out); break;
    case SL_TEXT_GLIBC: put_appended(f, calls, count, " at ", "", out); break;
    case SL_TEXT_HS_ERR: put_hs_err(f, calls, count, out); break;
    case SL_TEXT_SYSTEMD: put_systemd(f, calls, count, out); break;
    case SL_TEXT_GDB: put_gdb(f, calls, count, shift, out); break;
    case SL_TEXT_EU_STACK: put_eu_stack(f, calls, count, out); break;
    case SL_TEXT_RUST: put_rust(f, calls, count, out); break;
    case SL_TEXT_WINDOWS: put_windows(f, calls, count, out); break;
    case SL_TEXT_APPLE: (f->is_json ? put_ips : put_apple)(f, calls, count, out); break;
    default: put_appended(f, calls, count, " (", ")", out); break;
    }
}

/* Writes the frame with its names, or as it was if `count` is 0. `*shift` is how many lines inlined calls have added to the stack. */
void sl_text_write(const struct sl_text_frame *f, const struct sl_text_call *calls, size_t count, uint64_t *shift,
                   struct sl_buf *out)
{
    /* in these formats inlined calls get numbers of their own, which shifts the numbers of all later frames of the stack */
    bool renumbers = f->format == SL_TEXT_SANITIZER || f->format == SL_TEXT_GDB;
    if (f->is_first)
        *shift = 0;
    if (f->format == SL_TEXT_MARKUP)
        put_markup(f, calls, count, out);
    else if (count && !f->is_named) /* is_named: the input line has function and source line already */
        put_named(f, calls, count, shift, out);
    else if (renumbers)
        put_renumbered(f, *shift, out);
    else
        put_unchanged(f, out);
}
