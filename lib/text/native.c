/* Finds frames of native code in a line of text. The function for a format searches for characters that only this format has, then
 * matches the line without backtracking. */
#include "text/impl.h"

/* How many occurrences of "#" or "+0x" are tried in one line: a hostile line full of them must not cost quadratic time. */
enum { MAX_TRIES = 8 };

static bool is_edge(char c)
{
    return c == ' ' || c == '\t' || c == '|' || c == '>' || c == ':';
}

/* Notes that the frame begins at `at`: f->head becomes the text before it (log prefix and indent), which lines added for inlined calls
 * repeat. t->prefix becomes the size of that text without trailing blanks: the log prefix of the next lines is taken to be as long. */
static void set_head(struct sl_text *t, struct sl_str line, const char *at, struct sl_text_frame *f)
{
    const char *begin = at;
    while (begin > line.data && (begin[-1] == ' ' || begin[-1] == '\t'))
        begin--;
    t->prefix = (size_t)(begin - line.data);
    f->head = sl_scan_between(line.data, at);
}

/* Returns the text after the last `!`: libfoo.so of "/data/app/base.apk!libfoo.so", a library inside an APK. Without `!` all of it. */
static struct sl_str library_in_apk(struct sl_str path)
{
    const char *bang = path.size ? memrchr(path.data, '!', path.size) : NULL;
    return bang ? sl_scan_between(bang + 1, path.data + path.size) : path;
}

/* Finds "BuildId: HEX" anywhere in `rest`. `*id` is empty if there is none, or if it does not have 2 to 128 digits (1 to 64 bytes). */
static void find_build_id(struct sl_str rest, struct sl_str *id)
{
    static const struct sl_str word = SL_STR("BuildId: ");
    const char *at = rest.size ? memmem(rest.data, rest.size, word.data, word.size) : NULL;
    *id = (struct sl_str){NULL, 0};
    if (!at)
        return;
    const char *begin = at + word.size, *end = begin;
    while (end < rest.data + rest.size && sl_hex_digit(*end) >= 0)
        end++;
    if (end - begin >= 2 && end - begin <= 128)
        *id = sl_scan_between(begin, end);
}

/* Finds the first "(PATH+0xOFFSET)" in the text and sets `*path` and `*offset`; `*open` is its opening bracket, `*close` the place behind
 * its closing one. False if there is none. */
static bool find_place(struct sl_str text, struct sl_str *path, uint64_t *offset, const char **open, const char **close)
{
    const char *end = text.data + text.size, *at = text.data;
    *open = text.size ? memchr(text.data, '(', text.size) : NULL;
    if (!*open)
        return false;
    at = *open;
    /* MAX_TRIES: a hostile line full of "+0x" must not cost quadratic time */
    for (unsigned i = 0; i < MAX_TRIES && (at = memmem(at, (size_t)(end - at), "+0x", 3)); i++, at++) {
        struct sl_scan s = {at + 1, end};
        if (!sl_scan_0x(&s, offset) || !sl_scan_char(&s, ')'))
            continue;
        /* the first bracket of the text may be in a function's name, "f(int) (/bin/a+0x1)": the path's own bracket stands behind a blank */
        const char *blank = memmem(*open, (size_t)(at - *open), " (", 2);
        const char *begin = blank ? blank + 1 : *open;
        *open = begin;
        *close = s.at;
        *path = sl_scan_between(begin + 1, at);
        return path->size > 0;
    }
    return false;
}

/* ---- sanitizers: "#0 0x5626e022f314  (/tmp/a+0x1314) (BuildId: ab)", "#0 0x.. in f (/tmp/a+0x1)", TSan's "<null> <null>" ---- */

/* Reads the rest of a sanitizer's "#1 0x4011d6 in f (/bin/a+0x11d6) (BuildId: 12ab)". `place` is behind the address; " in f" may be
 * missing. The names that are looked up will replace the text from `place` up to the module's bracket. False if there is no module. */
static bool read_sanitizer(struct sl_text *t, struct sl_str line, const char *place, struct sl_text_frame *f)
{
    struct sl_str path, id;
    const char *open, *close, *end = line.data + line.size;
    uint64_t offset;
    if (!find_place(sl_scan_between(place, end), &path, &offset, &open, &close))
        return false;
    find_build_id(sl_scan_between(close, end), &id);
    f->format = SL_TEXT_SANITIZER;
    f->base = SL_TEXT_OF_FILE; /* sanitizers print an address of the file (p_vaddr) as offset */
    f->address = offset;
    f->module = sl_text_module(t, path, id);
    const char *cut = place, *cut_end = open;
    while (cut_end > cut && cut_end[-1] == ' ')
        cut_end--;
    sl_text_cut(f, line, cut, cut_end);
    return true;
}

/* Removes " PATH:LINE" or " PATH:LINE:COLUMN" from the end of `*text` and stores path and line in `f`. False, and nothing is changed, if
 * the text ends otherwise or the line is above INT32_MAX. */
static bool split_source(struct sl_str *text, struct sl_text_frame *f)
{
    const char *end = text->data + text->size, *at = end;
    struct sl_str digits[2];
    unsigned count = 0;
    for (; count < 2;
         count++) { /* from the end backwards: the number that is read last is the line, one before it the column */
        const char *last = at;
        while (at > text->data && sl_is_digit(at[-1]))
            at--;
        if (at == last || at == text->data || at[-1] != ':') {
            at = last;
            break;
        }
        digits[count] = sl_scan_between(at, last);
        at--;
    }
    uint64_t line;
    const char *path = at;
    while (path > text->data && path[-1] != ' ')
        path--;
    if (!count || path == text->data || path == at || !sl_parse_u64(digits[count - 1], &line) || line > INT32_MAX)
        return false;
    f->path = sl_scan_between(path, at);
    f->line = (uint32_t)line;
    text->size = (size_t)(path - 1 - text->data);
    return true;
}

/* Reads "f /src/a.c:12:3", behind "#0 0x1000 in ": a frame that the sanitizer's own symbolizer has named. It stays as it is, so the text
 * to be replaced is empty. False for "f at /src/a.c:12", which is another tool's. */
static bool read_named_sanitizer(struct sl_str line, struct sl_scan name, struct sl_text_frame *f)
{
    struct sl_str rest = sl_scan_rest(&name);
    f->format = SL_TEXT_SANITIZER;
    f->is_named = split_source(&rest, f);
    f->symbol = rest;
    sl_text_cut(f, line, name.end, name.end);
    return f->is_named && rest.size && !sl_str_ends(rest, SL_STR(" at"));
}

/* ---- gdb: "#1  0x000056507a7a2140 in ?? () from /lib/x.so" ---- */

/* Reads the rest of gdb's "#1 0x0000000000401136 in f (x=1) at a.c:3" behind "in"; `??` is gdb's word for an unknown
 * function. A line that ends with FILE:LINE has its names already and stays as it is (is_named); a line without it is looked up. */
static bool read_gdb(struct sl_str line, struct sl_scan name, struct sl_text_frame *f)
{
    struct sl_str rest = sl_scan_rest(&name);
    const char *brackets = rest.size ? memmem(rest.data, rest.size, " (", 2) : NULL;
    if (!brackets || brackets == rest.data)
        return false;
    f->format = SL_TEXT_GDB;
    f->symbol = sl_scan_between(rest.data, brackets);
    if (sl_str_equal(f->symbol, SL_STR("??")))
        f->symbol.size = 0;
    f->is_named = split_source(&rest, f);
    sl_text_cut(f, line, name.at, name.end);
    return true;
}

/* ---- systemd: "#0  0x00007f.. epoll_wait (libc.so.6 + 0x119877)" ---- */

/* Reads the rest of "#1 0x00007f0e2a f (libc.so.6 + 0x2a1ca)" behind the address, as `coredumpctl info` prints it; "n/a" in place of `f`
 * means that the name is unknown. The number in brackets is the offset from the module's load address. */
static bool read_systemd(struct sl_text *t, struct sl_str line, const char *name, struct sl_text_frame *f)
{
    const char *end = line.data + line.size, *open;
    if (end == name || end[-1] != ')' || !(open = memrchr(name, '(', (size_t)(end - name))))
        return false;
    const char *plus = memmem(open, (size_t)(end - open), " + 0x", 5);
    struct sl_scan s = {plus ? plus + 3 : end, end};                                  /* at "0x" */
    if (!plus || plus == open + 1 || !sl_scan_0x(&s, &f->address) || s.at != end - 1) /* open + 1: no module name */
        return false;
    f->format = SL_TEXT_SYSTEMD;
    f->base = SL_TEXT_OF_IMAGE;
    f->module = sl_text_module(t, sl_scan_between(open + 1, plus), (struct sl_str){NULL, 0});
    const char *name_end = open;
    while (name_end > name && name_end[-1] == ' ')
        name_end--;
    f->symbol = sl_scan_between(name, name_end);
    if (sl_str_equal(f->symbol, SL_STR("n/a")))
        f->symbol.size = 0;
    sl_text_cut(f, line, name, name_end);
    return true;
}

/* ---- eu-stack: "#2  0x.. - 1 main - /tmp/t" ---- */

/* Reads the rest of eu-stack's "#1 0x00007f0e2a - 1 f - /lib/libc.so.6" behind the address. "- 1" marks a return address, " - MODULE" is
 * only in verbose output; both are optional. False if the function's name contains `(` or `:`: then another tool wrote the line. */
static bool read_eu_stack(struct sl_text *t, struct sl_str line, struct sl_scan s, struct sl_text_frame *f)
{
    const char *name = s.at;
    struct sl_scan mark = s;
    sl_scan_blanks(&mark);
    if (sl_scan_word(&mark, SL_STR("- 1")) && (mark.at == mark.end || *mark.at == ' '))
        name = mark.at;
    struct sl_str rest = sl_scan_between(name, s.end);
    const char *module = rest.size ? memmem(rest.data, rest.size, " - ", 3) : NULL;
    const char *name_end = module ? module : s.end;
    f->symbol = sl_str_trimmed(sl_scan_between(name, name_end));
    if (memchr(f->symbol.data, '(', f->symbol.size) || memchr(f->symbol.data, ':', f->symbol.size))
        return false;
    f->format = SL_TEXT_EU_STACK;
    if (module && module + 3 < s.end)
        f->module = sl_text_module(t, sl_scan_between(module + 3, s.end), (struct sl_str){NULL, 0});
    sl_text_cut(f, line, name, name_end);
    return true;
}

/* ---- Android: "#00 pc 0000000000012345  /system/lib64/libc.so (abort+164) (BuildId: ab)" ---- */

/* Reads the rest of "#01 pc 0000000000001234 /system/lib64/libc.so (abort+56) (BuildId: 12ab)" behind "pc". The address is one of the
 * ELF file (p_vaddr), not of the process. Names will be added at the end of the line. */
static bool read_android(struct sl_text *t, struct sl_str line, struct sl_scan s, struct sl_text_frame *f)
{
    struct sl_str id;
    if (!sl_scan_blanks(&s) || !sl_scan_hex(&s, &f->address) || !sl_scan_blanks(&s) || s.at == s.end)
        return false;
    struct sl_str rest = sl_scan_rest(&s);
    const char *end = memmem(rest.data, rest.size, " (", 2);
    struct sl_str path = sl_str_trimmed(sl_scan_between(rest.data, end ? end : s.end));
    if (!path.size || path.data[0] == '<') /* memory of no file: "<anonymous:7f00>", "<unknown>" */
        return false;
    find_build_id(rest, &id);
    f->format = SL_TEXT_ANDROID;
    f->base = SL_TEXT_OF_FILE;
    f->module = sl_text_module(t, library_in_apk(path), id); /* "base.apk!libx.so" becomes "libx.so" */
    sl_text_cut(f, line, s.end, s.end);
    return true;
}

/* ---- lines with "#N" ---- */

/* Reads what follows "#N ". "pc" is Android's. "<null> <null>" is of TSan, which prints no address. All other formats have an address;
 * behind it, "(MODULE+0xOFFSET)" is a sanitizer's. Else "in" is of gdb or of a sanitizer that printed names itself, and a line without
 * "in" is systemd's or eu-stack's. */
static bool read_after_number(struct sl_text *t, struct sl_str line, struct sl_scan s, struct sl_text_frame *f)
{
    if (sl_scan_word(&s, SL_STR("pc ")))
        return s.at--, read_android(t, line, s, f); /* s.at is at the blank behind "pc", which read_android() skips */
    struct sl_scan tsan = s;
    if (sl_scan_word(&tsan, SL_STR("<null> <null>")))
        return read_sanitizer(t, line, s.at, f);
    const char *address = s.at;
    if (!sl_scan_0x(&s, &f->absolute))
        return false;
    f->shown = sl_scan_between(address, s.at);
    const char *behind = s.at;
    f->address = f->absolute;
    size_t blanks = sl_scan_blanks(&s);
    if (s.at == s.end) /* eu-stack prints an unknown function as the address alone */
        return read_eu_stack(t, line, (struct sl_scan){behind, s.end}, f);
    if (!blanks)
        return false;
    bool is_in = sl_scan_word(&s, SL_STR("in "));
    if (read_sanitizer(t, line, behind, f) || (is_in && (read_gdb(line, s, f) || read_named_sanitizer(line, s, f))))
        return true;
    return !is_in && (read_systemd(t, line, s.at, f) || read_eu_stack(t, line, (struct sl_scan){behind, s.end}, f));
}

/* Finds a frame that begins with `#` and a number, at the start of the line or behind a blank, `|`, `>` or `:` (is_edge);
 * read_after_number() recognises its format. Tries only the first MAX_TRIES `#`, so that a line full of them does not cost much time. */
static bool read_numbered(struct sl_text *t, struct sl_str line, struct sl_text_frame *f)
{
    const char *end = line.data + line.size, *at = line.data;
    for (unsigned i = 0; i < MAX_TRIES && (at = memchr(at, '#', (size_t)(end - at))); i++, at++) {
        struct sl_scan s = {at + 1, end};
        if ((at > line.data && !is_edge(at[-1])) || !sl_scan_digits(&s, &f->number) || !sl_scan_blanks(&s))
            continue;
        /* "#0" and "#00" (Android) number the first frame, whose address is the pc; all others are callers with return addresses */
        f->is_return = f->number.size > 2 || f->number.data[f->number.size - 1] != '0' || f->number.data[0] != '0';
        if (!read_after_number(t, line, s, f))
            continue;
        set_head(t, line, at, f);
        f->is_first = !f->is_return;
        /* tools that print addresses of the file have already moved return addresses back into the call instruction */
        f->is_return = f->is_return && f->base != SL_TEXT_OF_FILE;
        return true;
    }
    return false;
}

/* ---- glibc: "./bt(+0x1182)[0x559da1430182]", "libc.so.6(f+0x85) [0x..]", "./bt() [0x401136]" ---- */

/* Reads a line of backtrace_symbols_fd(3): "/bin/a(f+0x1d)[0x4011d6]" with the offset from the function, "/bin/a(+0x11d6)[0x4011d6]" with
 * an address of the file, or "/bin/a()[0x4011d6]". */
static bool read_glibc(struct sl_text *t, struct sl_str line, struct sl_text_frame *f)
{
    const char *end = line.data + line.size;
    const char *bracket = line.size ? memrchr(line.data, '[', line.size) : NULL;
    struct sl_scan s = {bracket ? bracket + 1 : end, end};
    if (!bracket || !sl_scan_0x(&s, &f->absolute) || !sl_scan_char(&s, ']') || s.at != end)
        return false;
    const char *close = bracket;
    /* backtrace_symbols(3) of older versions has a blank before `[` */
    close -= close > line.data && close[-1] == ' ';
    const char *open =
        close > line.data && close[-1] == ')' ? memrchr(line.data, '(', (size_t)(close - 1 - line.data)) : NULL;
    if (!open || open == line.data)
        return false;
    const char *path = open;
    while (path > line.data && path[-1] != ' ' && path[-1] != '\t')
        path--;
    const char *plus = memchr(open, '+', (size_t)(close - open));
    struct sl_scan offset = {plus ? plus + 1 : close, close};
    bool has_offset = plus && sl_scan_0x(&offset, &f->address) && offset.at == close - 1;
    if (path == open || (!has_offset && close != open + 2)) /* without an offset the brackets must be "()" */
        return false;
    f->format = SL_TEXT_GLIBC;
    f->symbol = sl_scan_between(open + 1, has_offset ? plus : open + 1);
    /* "f+0x1d" counts from the symbol, "+0x11d6" is an address of the file */
    f->base = !has_offset ? SL_TEXT_OF_FILE : f->symbol.size ? SL_TEXT_OF_SYMBOL : SL_TEXT_OF_FILE;
    if (!has_offset) /* a program linked at a fixed address: addresses of the process are those of the file */
        f->address = f->absolute;
    f->is_return = true; /* backtrace(3) returns only return addresses, also for the first frame */
    f->module = sl_text_module(t, sl_scan_between(path, open), (struct sl_str){NULL, 0});
    set_head(t, line, path, f);
    sl_text_cut(f, line, end, end);
    return true;
}

/* ---- hs_err: "C  [libc.so.6+0x27249]  f+0x85" ---- */

/* Reads a native frame of a JVM's hs_err file: "C  [libc.so.6+0x1d6]  f+0x10", where `C` is native code and `V` the JVM's own. The letter
 * must be the first of the line or follow a blank. */
static bool read_hs_err(struct sl_text *t, struct sl_str line, struct sl_text_frame *f)
{
    const char *end = line.data + line.size, *at = line.data;
    for (; (at = memchr(at, '[', (size_t)(end - at))); at++) {
        if (at - line.data < 3 || at[-1] != ' ' || at[-2] != ' ' || (at[-3] != 'C' && at[-3] != 'V') ||
            (at - line.data > 3 && at[-4] != ' '))
            continue;
        const char *close = memchr(at, ']', (size_t)(end - at));
        const char *plus = close ? memrchr(at, '+', (size_t)(close - at)) : NULL;
        struct sl_scan s = {plus ? plus + 1 : end, end};
        if (!plus || plus == at + 1 || !sl_scan_0x(&s, &f->address) || s.at != close)
            return false;
        f->format = SL_TEXT_HS_ERR;
        f->base = SL_TEXT_OF_IMAGE;
        f->module = sl_text_module(t, sl_scan_between(at + 1, plus), (struct sl_str){NULL, 0});
        /* frames have no numbers: if the line before was one too, this is its caller, whose address is a return address */
        f->is_return = t->last == SL_TEXT_HS_ERR;
        f->symbol = sl_str_trimmed(sl_scan_between(close + 1, end));
        set_head(t, line, at - 3, f);
        sl_text_cut(f, line, close + 1, end);
        return true;
    }
    return false;
}

/* ---- Windows: "ntdll!RtlUserThreadStart+0x21", "at App!<BaseAddress>+0x13b2f0" ---- */

static bool is_module_char(char c)
{
    return sl_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '.' || c == '-' || c == '$';
}

/* Reads "module!function+0x1d" as WinDbg and Windows logs print it, at the start of the line or behind a blank, `|`, `>` or `:` (is_edge).
 * In .NET's "App!<BaseAddress>+0x13b2f0" the offset counts from the load address of the module. A line with " @ " behind it, "[a.c @ 5]",
 * has its source line already and stays as it is (is_named). */
static bool read_windows(struct sl_text *t, struct sl_str line, struct sl_text_frame *f)
{
    const char *end = line.data + line.size, *bang = memchr(line.data, '!', line.size);
    const char *begin = bang;
    while (bang && begin > line.data && is_module_char(begin[-1]))
        begin--;
    if (!bang || begin == bang || bang + 1 == end || (begin > line.data && !is_edge(begin[-1])))
        return false;
    const char *plus = memmem(bang, (size_t)(end - bang), "+0x", 3);
    struct sl_scan s = {plus ? plus + 1 : end, end};
    if (!plus || plus == bang + 1 || !sl_scan_0x(&s, &f->address) ||
        (s.at < end && *s.at != ' ' && *s.at != '\t' && *s.at != ')'))
        return false;
    f->format = SL_TEXT_WINDOWS;
    f->symbol = sl_scan_between(bang + 1, plus);
    f->base = SL_TEXT_OF_SYMBOL;
    if (sl_str_equal(f->symbol, SL_STR("<BaseAddress>"))) {
        f->base = SL_TEXT_OF_IMAGE;
        f->symbol.size = 0;
    }
    /* frames have no numbers: if the line before was one too, this is its caller, whose address is a return address */
    f->is_return = t->last == SL_TEXT_WINDOWS;
    f->is_named = memmem(s.at, (size_t)(end - s.at), " @ ", 3) != NULL;
    f->module = sl_text_module(t, sl_scan_between(begin, bang), (struct sl_str){NULL, 0});
    set_head(t, line, begin, f);
    sl_text_cut(f, line, bang + 1, s.at);
    return true;
}

/* ---- Rust: "   4:     0x556a.. - <unknown>" ---- */

/* Reads " 1: 0x55d0 - f" of Rust's backtraces. A frame with a name stays as it is (is_named); `<unknown>` stands for no name. */
static bool read_rust(struct sl_text *t, struct sl_str line, struct sl_text_frame *f)
{
    const char *end = line.data + line.size, *at = memmem(line.data, line.size, "0x", 2), *digits;
    struct sl_scan s = {at ? at : end, end};
    if (!at || !sl_scan_0x(&s, &f->absolute))
        return false;
    f->shown = sl_scan_between(at, s.at);
    while (at > line.data && at[-1] == ' ')
        at--;
    if (at == line.data || at[-1] != ':' || !sl_scan_word(&s, SL_STR(" - ")) || s.at == end)
        return false;
    digits = --at;
    while (digits > line.data && sl_is_digit(digits[-1]))
        digits--;
    if (digits == at || (digits > line.data && digits[-1] != ' '))
        return false;
    f->number = sl_scan_between(digits, at);
    f->format = SL_TEXT_RUST;
    f->address = f->absolute;
    /* frames are numbered from 0; all but the first are callers, whose addresses are return addresses */
    f->is_return = *digits != '0';
    f->symbol = sl_scan_rest(&s);
    if (sl_str_equal(f->symbol, SL_STR("<unknown>")))
        f->symbol.size = 0;
    f->is_named = f->symbol.size > 0;
    set_head(t, line, digits, f);
    sl_text_cut(f, line, s.at, end);
    return true;
}

/* ---- Apple: "0   Demo   0x0000000100003f70 0x100000000 + 16240", "0   Demo   0x0000000100003f70 main + 40" ---- */

/* Reads what follows the address in a frame of Apple's: "0xBASE + DECIMAL" gives `*base`, the load address of the image; "SYMBOL +
 * DECIMAL" gives f->symbol, and `*base` is 0. The decimal is not stored, as the frame's address says the same. False for other text. */
static bool read_apple_place(struct sl_scan s, struct sl_text_frame *f, uint64_t *base)
{
    uint64_t offset;
    struct sl_str digits, rest = sl_scan_rest(&s);
    if (sl_scan_0x(&s, base))
        return sl_scan_word(&s, SL_STR(" + ")) && sl_scan_digits(&s, &digits);
    const char *plus = rest.size ? memmem(rest.data, rest.size, " + ", 3) : NULL;
    if (!plus)
        return false;
    s.at = plus + 3;
    *base = 0;
    f->symbol = sl_scan_between(rest.data, plus);
    /* `offset` is not used: this only checks that the digits are a number of 64 bits */
    return sl_scan_digits(&s, &digits) && sl_parse_u64(digits, &offset);
}

/* Reads "3 libfoo.dylib 0x0000000100001234 f + 16", as backtraces of Apple's systems have it, behind `prefix` bytes of the line. If the
 * load address of the image stands in place of `f`, f->address becomes an offset in the image. */
static bool read_apple(struct sl_text *t, struct sl_str line, size_t prefix, struct sl_text_frame *f)
{
    struct sl_scan s = {line.data + prefix, line.data + line.size};
    uint64_t base;
    sl_scan_blanks(&s);
    const char *begin = s.at;
    if (!sl_scan_digits(&s, &f->number) || f->number.size > 5 ||
        !sl_scan_blanks(&s)) /* longer numbers are none of frames */
        return false;
    const char *name = s.at, *at = memmem(s.at, sl_scan_left(&s), " 0x", 3);
    if (!at || at == name)
        return false;
    s.at = at + 1;
    if (!sl_scan_0x(&s, &f->absolute) || !sl_scan_char(&s, ' '))
        return false;
    const char *rest = s.at;
    if (!read_apple_place(s, f, &base) || base > f->absolute)
        return false;
    f->format = SL_TEXT_APPLE;
    f->shown = sl_scan_between(at + 1, rest - 1);
    f->address = f->absolute;
    f->is_first = f->number.size == 1 && f->number.data[0] == '0';
    f->is_return = !f->is_first;
    f->is_named = s.end[-1] == ')' && memchr(rest, ':', (size_t)(s.end - rest)); /* ends with "(file:line)" */
    f->module = sl_text_module(t, sl_str_trimmed(sl_scan_between(name, at)), (struct sl_str){NULL, 0});
    if (base) {
        f->base = SL_TEXT_OF_IMAGE;
        f->address -= base;
    }
    set_head(t, line, begin, f);
    sl_text_cut(f, line, rest, line.data + line.size);
    return true;
}

/* ---- addresses: "0x401106", "#1: 0x401106 (main+0x3)", "libc.so.6 + 0x27249" ---- */

/* Reads "NAME+0xOFFSET" or "(NAME + 0xOFFSET)", an offset in a module. False if other text follows, or if NAME begins with a digit, as a
 * number is no module. */
static bool read_offset(struct sl_text *t, struct sl_scan s, struct sl_text_frame *f)
{
    bool bracket = sl_scan_char(&s, '(');
    const char *begin = s.at;
    while (s.at < s.end && !sl_is_blank(*s.at) && *s.at != '+' && *s.at != ':') /* "a.go:3 +0x16" is a line of Go */
        s.at++;
    struct sl_str name = sl_scan_between(begin, s.at);
    sl_scan_blanks(&s);
    bool good = name.size && !sl_is_digit(name.data[0]) && sl_scan_char(&s, '+');
    sl_scan_blanks(&s);
    if (!good || !sl_scan_0x(&s, &f->address) || (bracket && !sl_scan_char(&s, ')')))
        return false;
    sl_scan_blanks(&s);
    if (s.at != s.end)
        return false;
    f->base = SL_TEXT_OF_IMAGE;
    f->module = sl_text_module(t, name, (struct sl_str){NULL, 0});
    return true;
}

/* True if what follows the address is neither a memory dump ("0x1000: fa fa", also with brackets as AddressSanitizer marks a byte:
 * "0x1000:[fa]fa") nor a sentence about the address ("0x1000 is located ..."). */
static bool is_bare(struct sl_scan s)
{
    if (sl_scan_char(&s, ':')) {
        sl_scan_blanks(&s);
        while (sl_scan_char(&s, '[') || sl_scan_char(&s, '('))
            ;
        return sl_scan_left(&s) < 2 || sl_hex_digit(s.at[0]) < 0 || sl_hex_digit(s.at[1]) < 0;
    }
    if (s.at < s.end && !sl_is_blank(*s.at))
        return false;
    sl_scan_blanks(&s);
    return !(sl_scan_word(&s, SL_STR("is")) && (s.at == s.end || sl_is_blank(*s.at)));
}

/* Reads an address, or a module with an offset ("libc.so.6 + 0x27249"), at the start of a line without its first `prefix` bytes. A frame
 * number such as "#3", "3:" or "3." may stand before it. */
static bool read_address(struct sl_text *t, struct sl_str line, size_t prefix, struct sl_text_frame *f)
{
    struct sl_scan s = {line.data + prefix, line.data + line.size};
    struct sl_str digits;
    sl_scan_blanks(&s);
    const char *begin = s.at;
    struct sl_scan number = s;
    /* `|` and not `||`: both sides must be evaluated, because each skips what it finds */
    bool has_number = sl_scan_char(&number, '#') | sl_scan_digits(&number, &digits);
    /* `| 1`: the mark behind the number is optional */
    if (has_number && (sl_scan_char(&number, ':') | sl_scan_char(&number, '.') | 1) && sl_scan_blanks(&number))
        s = number;
    const char *shown = s.at;
    bool has_address = sl_scan_0x(&s, &f->absolute);
    f->format = SL_TEXT_ADDRESSES;
    f->shown = sl_scan_between(shown, s.at);
    f->address = f->absolute;
    /* if the line before was such a frame too, this is its caller, whose address is a return address */
    f->is_return = t->last == SL_TEXT_ADDRESSES;
    struct sl_scan rest = s;
    bool may_be_module = sl_scan_blanks(&rest) || !has_address; /* blanks separate an address from the module */
    uint64_t numbers[4];
    if (has_address && sl_text_is_gdb_mapping((struct sl_scan){shown, s.end}, numbers))
        return false; /* a line of `info proc mappings`: four numbers, no frame */
    if (!(may_be_module && read_offset(t, rest, f)) && !(has_address && is_bare(s)))
        return false;
    f->is_first = !f->is_return;
    set_head(t, line, begin, f);
    sl_text_cut(f, line, line.data + line.size, line.data + line.size);
    return true;
}

/* ---- all ---- */

/* True if the line has `word` (of `size` bytes) directly before index `at`. */
static bool is_behind(struct sl_str line, size_t at, const char *word, size_t size)
{
    return at >= size && memcmp(line.data + at - size, word, size) == 0;
}

/* Returns the flags HAS_... of impl.h that the character at `i`, with its neighbours, gives the line: HAS_0X for the x of "0x", HAS_SIGN
 * for "@", HAS_BRACES for the last brace of "{{{", HAS_AT and HAS_ID for the blank of "at " and "id "; for a colon, HAS_PLACE in ":12",
 * HAS_SLASHES in "://", HAS_GO in ".go:". */
static unsigned mark_at(struct sl_str line, size_t i)
{
    char next = i + 1 < line.size ? line.data[i + 1] : 0;
    switch (line.data[i]) {
    case '#': return HAS_HASH;
    case '[': return HAS_BRACKET;
    case '!': return HAS_BANG;
    case '@': return HAS_SIGN;
    case ')': return HAS_CLOSE;
    case '"': return HAS_QUOTE;
    case 'x':
    case 'X': return is_behind(line, i, "0", 1) ? HAS_0X : 0;
    case '{': return is_behind(line, i, "{{", 2) ? HAS_BRACES : 0;
    case ' ': return is_behind(line, i, "at", 2) ? HAS_AT : is_behind(line, i, "id", 2) ? HAS_ID : 0;
    case ':':
        return (sl_is_digit(next) ? HAS_PLACE : 0) | (next == '/' ? HAS_SLASHES : 0) |
               (is_behind(line, i, ".go", 3) ? HAS_GO : 0);
    default: return 0;
    }
}

/* Returns the flags HAS_... for the line: which characters it has that frames of some format need. Functions for formats whose characters
 * are absent are not tried. Ends at "{{{", which begins an element of markup: only the reader of markup reads such a line. */
unsigned sl_text_marks(struct sl_str line)
{
    static const bool is_special[256] = {
        ['#'] = true, ['['] = true, ['!'] = true, ['@'] = true, [')'] = true, ['"'] = true,
        ['x'] = true, ['X'] = true, ['{'] = true, [' '] = true, [':'] = true};
    unsigned marks = 0;
    for (size_t i = 0; i < line.size && !(marks & HAS_BRACES); i++)
        if (is_special[(uint8_t)line.data[i]])
            marks |= mark_at(line, i);
    return marks;
}

/* Returns an empty frame. Used before each try of a format, because a try that fails may leave members set. */
static struct sl_text_frame blank_frame(void)
{
    return (struct sl_text_frame){.module = SL_TEXT_NO_MODULE};
}

/* Tries the formats one after another; false if the line is a frame of none. */
bool sl_text_read_native(struct sl_text *t, struct sl_str line, unsigned marks, struct sl_text_frame *f)
{
    size_t prefix = t->prefix < line.size ? t->prefix : 0;
    *f = blank_frame(); /* before each try, as one that fails may leave members set */
    if ((marks & HAS_HASH) && read_numbered(t, line, f))
        return true;
    if (!(marks & HAS_0X))
        return false;
    *f = blank_frame();
    if ((marks & HAS_BRACKET) && (read_glibc(t, line, f) || (*f = blank_frame(), read_hs_err(t, line, f))))
        return true;
    *f = blank_frame();
    if ((marks & HAS_BANG) && read_windows(t, line, f))
        return true;
    *f = blank_frame();
    /* before read_address(), which would take the number and address of a Rust frame for its own format */
    if (read_rust(t, line, f))
        return true;
    /* these two formats must start the line: tried first behind a log prefix of the same size as the last frame's, then without */
    for (unsigned i = 0; i < (prefix ? 2 : 1); i++) {
        *f = blank_frame();
        if (read_apple(t, line, i ? 0 : prefix, f))
            return true;
        *f = blank_frame();
        if (read_address(t, line, i ? 0 : prefix, f))
            return true;
    }
    return false;
}

/* ---- formats that have their names ---- */

static bool is_python(struct sl_str line)
{
    struct sl_str trimmed = sl_str_trimmed(line);
    const char *at = trimmed.size ? memmem(trimmed.data, trimmed.size, "File \"", 6) : NULL;
    return at && memmem(at, (size_t)(trimmed.data + trimmed.size - at), "\", line ", 8);
}

/* True for a line of a Go trace: "\t/src/x.go:3 +0x1d" below "main.f(...)". */
static bool is_go(struct sl_str line)
{
    const char *at = memmem(line.data, line.size, ".go:", 4);
    if (!at)
        return false;
    struct sl_scan s = {at + 4, line.data + line.size};
    struct sl_str digits;
    uint64_t offset;
    return sl_scan_digits(&s, &digits) &&
           (s.at == s.end || (sl_scan_word(&s, SL_STR(" +")) && sl_scan_0x(&s, &offset)));
}

/* True for a line of a .NET trace: "   at N.C.M(String s) in C:\x.cs:line 3". */
static bool is_dotnet(struct sl_str line)
{
    struct sl_str trimmed = sl_str_trimmed(line);
    const char *at = memmem(trimmed.data, trimmed.size, ") in ", 5);
    return at && memmem(at, (size_t)(trimmed.data + trimmed.size - at), ":line ", 6) &&
           memmem(trimmed.data, (size_t)(at - trimmed.data), "at ", 3);
}

bool sl_text_read_named(struct sl_str line, unsigned marks, enum sl_text_format *format)
{
    *format = (marks & HAS_CLOSE) && (marks & HAS_AT) && is_dotnet(line) ? SL_TEXT_DOTNET
              : (marks & HAS_GO) && is_go(line)                          ? SL_TEXT_GO
              : (marks & HAS_QUOTE) && is_python(line)                   ? SL_TEXT_PYTHON
                                                                         : SL_TEXT_PLAIN;
    return *format != SL_TEXT_PLAIN;
}
