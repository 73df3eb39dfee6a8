/* Detects inputs that symloom cannot read or need not symbolicate, to name their formats in messages. */
#include "api/input_kind.h"

#include <string.h>

#include "object/object.h"

/* How many bytes of an input are searched: HEAD for a line that marks a format, LOG_HEAD for stacks, which may stand far down in a log. */
enum { HEAD = 1 << 16, LOG_HEAD = 1 << 20 };

/* True if the word occurs in the first `head` bytes of the text. */
static bool head_has(struct sl_str text, size_t head, const char *word)
{
    size_t size = text.size < head ? text.size : head;
    return size && memmem(text.data, size, word, strlen(word));
}

/* True if a line that starts within HEAD bytes begins with `begin`. */
static bool has_line(struct sl_str text, const char *begin)
{
    struct sl_str rest = text, line;
    while (text.size - rest.size < HEAD && sl_str_next_line(&rest, &line))
        if (sl_str_starts(line, sl_str(begin)))
            return true;
    return false;
}

/* Returns what an object file is ("an ELF file: a program or library"); NULL for other inputs. Object files are binary and have a NUL among
 * their first bytes, so a text that happens to begin with "MZ" is no PE file; Breakpad symbol files are text. */
static const char *object_kind(struct sl_bytes bytes)
{
    enum { EARLY = 64, ELF_TYPE = 16, ELF_CORE = 4 };
    enum sl_format format = sl_format_detect(bytes);
    const char *about = sl_format_traits(format)->about;
    if (!about)
        return NULL;
    /* one of the two bytes of ELF's e_type is zero, whichever the byte order is, so their sum is its value */
    if (format == SL_FORMAT_ELF && bytes.size > ELF_TYPE + 1)
        return bytes.data[ELF_TYPE] + bytes.data[ELF_TYPE + 1] == ELF_CORE ? "a core dump" : about;
    bool is_text = !memchr(bytes.data, 0, bytes.size < EARLY ? bytes.size : EARLY);
    return is_text == (format == SL_FORMAT_BREAKPAD) ? about : NULL;
}

/* Formats that are recognised by their first bytes. */
static const struct {
    struct sl_str magic;
    const char *what;
} magics[] = {
    {SL_STR("\xCA\xFE\xBA\xBE"), "a Java class file"}, {SL_STR("PAGEDU64"), "a Windows kernel dump"},
    {SL_STR("PAGEDUMP"), "a Windows kernel dump"},     {SL_STR("bplist00"), "an Apple binary property list"},
    {SL_STR("PERFILE2"), "a perf recording"},          {SL_STR("{\"nodes\":[{\"id\":1,\"callFrame\":"), "a V8 profile"},
};

/* True for a pprof profile (protobuf): among its first fields is usually sample_type (field 1, 4 bytes) with {type: 1, unit: 2}. */
static bool is_pprof(struct sl_str text)
{
    enum { FIRST_FIELDS = 64 };
    return head_has(text, FIRST_FIELDS, "\n\x04\x08\x01\x10\x02");
}

/* Formats that are recognised by the beginning of one of their first lines. */
static const struct {
    const char *line, *what;
} heads[] = {
    {"*** *** *** *** *** ***", "an Android tombstone"},
};

/* Types of Apple reports that the reader refuses, as they have no stacks that it can read. */
static const struct {
    const char *type, *what;
} apple_types[] = {
    {"210", "a kernel panic report"},
    {"288", "a stackshot without processes"},
    {"298", "a jetsam report (memory use of processes)"},
};

const char *input_unread_report(struct sl_str message)
{
    for (size_t i = 0; i < sizeof apple_types / sizeof *apple_types; i++) {
        const struct sl_str type = sl_str(apple_types[i].type);
        if (sl_str_ends(message, type))
            return apple_types[i].what;
    }
    return NULL;
}

/* True for a frame of a Java stack: "at a.b.c(SourceFile:12)", behind any log prefix. False for JavaScript frames, "at a.b (x.js:1:2)",
 * which have a blank before the parenthesis. */
static bool is_jvm_frame(struct sl_str line)
{
    const char *at = line.size ? memmem(line.data, line.size, "at ", 3) : NULL;
    const char *end = line.data + line.size;
    if (!at || (at != line.data && at[-1] != '\t' && at[-1] != ' '))
        return false;
    const char *open = memchr(at + 3, '(', (size_t)(end - at - 3)),
               *close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
    const char *blank = memchr(at + 3, ' ', (size_t)(end - at - 3)), *dot = memchr(at + 3, '.', (size_t)(end - at - 3));
    return close && dot && dot < open && (!blank || blank > open);
}

/* True for a frame of a .NET exception: "   at Shop.Main(String[] args) in /src/a.cs:line 12". */
static bool is_dotnet_frame(struct sl_str line)
{
    return line.size && head_has(line, line.size, ":line ") && head_has(line, line.size, ") in ") &&
           sl_is_digit(line.data[line.size - 1]);
}

bool input_is_dotnet(struct sl_str text)
{
    struct sl_str rest = text, line;
    while (text.size - rest.size < LOG_HEAD && sl_str_next_line(&rest, &line))
        if (is_dotnet_frame(line))
            return true;
    return false;
}

/* True for a line that begins like a sanitizer's frame: "#0 0x4a5f in f /src/a.c:12". */
static bool is_sanitizer_frame(struct sl_str line)
{
    line = sl_str_trimmed(line);
    size_t digits = 1;
    while (digits < line.size && sl_is_digit(line.data[digits]))
        digits++;
    return line.size > digits + 4 && line.data[0] == '#' && digits > 1 && memcmp(line.data + digits, " 0x", 3) == 0;
}

/* ---- stacks with names ---- */

/* True for the first line of a Go stack: "goroutine 1 [running]:" */
static bool is_go_stack(struct sl_str line)
{
    return sl_str_ends(line, SL_STR("]:")) && head_has(line, line.size, "goroutine ");
}

static bool is_python_stack(struct sl_str line)
{
    return sl_str_ends(line, SL_STR("Traceback (most recent call last):"));
}

static bool is_rust_stack(struct sl_str line)
{
    return sl_str_ends(line, SL_STR("stack backtrace:"));
}

/* True for a frame of Valgrind: "==4711==    at 0x109149: f (a.c:3)" */
static bool is_valgrind_frame(struct sl_str line)
{
    return sl_str_starts(line, SL_STR("==")) &&
           (head_has(line, line.size, "==    at 0x") || head_has(line, line.size, "==    by 0x"));
}

static bool is_hex_digit(char c)
{
    return sl_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* True for a frame of `perf script`: "	           1469e f+0x7e (/usr/lib/a.so)" */
static bool is_perf_frame(struct sl_str line)
{
    size_t begin = 0, digits;
    while (begin < line.size && sl_is_blank(line.data[begin]))
        begin++;
    for (digits = begin; digits < line.size && is_hex_digit(line.data[digits]); digits++)
        ;
    return begin && digits - begin >= 3 && digits < line.size && line.data[digits] == ' ' &&
           sl_str_ends(line, SL_STR(")")) && head_has(line, line.size, "+0x") && head_has(line, line.size, " (");
}

const char *input_named_kind(struct sl_bytes bytes)
{
    static const struct {
        bool (*is)(struct sl_str line);
        const char *what;
    } kinds[] = {
        {is_dotnet_frame, "a .NET exception"},      {is_go_stack, "a Go stack trace"},
        {is_python_stack, "a Python traceback"},    {is_rust_stack, "a Rust backtrace"},
        {is_valgrind_frame, "a Valgrind report"},   {is_perf_frame, "a perf text profile"},
        {is_sanitizer_frame, "a sanitizer report"},
    };
    struct sl_str text = {(const char *)bytes.data, bytes.size}, rest = text, line;
    while (text.size - rest.size < LOG_HEAD && sl_str_next_line(&rest, &line))
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (kinds[i].is(line))
                return kinds[i].what;
    return NULL;
}

/* ---- others ---- */

const char *input_advice(struct sl_bytes bytes)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size}, rest = text, line;
    bool is_dotnet = input_is_dotnet(text);
    while (text.size - rest.size < LOG_HEAD && sl_str_next_line(&rest, &line)) {
        if (is_jvm_frame(line) && !is_dotnet)
            return "this looks like a Java stack trace: pass --mapping FILE, the mapping of ProGuard or R8";
        if (is_valgrind_frame(line) && head_has(line, line.size, ": ??? (in "))
            return "Valgrind does not print where modules were loaded, so frames ??? cannot be named later: run it "
                   "with "
                   "--extra-debuginfo-path=DIR, or with DEBUGINFOD_URLS set";
    }
    return NULL;
}

static bool has_suffix(const char *path, const char *suffix)
{
    return sl_str_ends(sl_str(path), sl_str(suffix));
}

/* Symbols themselves may look like inputs: source maps are JSON, and scripts quote stack traces. So a JSON object without known members,
 * and a JavaScript stack, count as inputs only with a further sign. */
const char *input_crash_kind(struct sl_bytes bytes, const char *path)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    if (has_suffix(path, ".map")) /* a source map: large JSON, which input_kind_detect would read to its end */
        return NULL;
    switch (input_kind_detect(bytes)) {
    case INPUT_MINIDUMP: return "a minidump";
    case INPUT_CORE: return "a core file";
    case INPUT_APPLE: return "a crash report";
    case INPUT_REQUEST:
    case INPUT_MOZILLA: return "a request";
    case INPUT_PROFILE: return "a profile";
    case INPUT_EVENT:
        return head_has(text, LOG_HEAD, "\"event_id\"") ? "an event" : NULL; /* source maps are JSON too */
    case INPUT_JSSTACK: /* scripts may have such lines in comments */
        return has_suffix(path, ".txt") || has_suffix(path, ".log") || !strchr(path, '.') ? "a JavaScript stack trace"
                                                                                          : NULL;
    default: return NULL;
    }
}

const char *input_unread_kind(struct sl_bytes bytes)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    const char *kind = object_kind(bytes);
    for (size_t i = 0; i < sizeof magics / sizeof *magics && !kind; i++)
        kind = sl_str_starts(text, magics[i].magic) ? magics[i].what : NULL;
    if (kind)
        return kind;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (has_line(text, heads[i].line))
            return heads[i].what;
    if (is_pprof(text))
        return "a pprof profile";
    return text.size ? NULL : "an empty file";
}
