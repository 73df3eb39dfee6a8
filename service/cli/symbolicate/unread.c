/* Files that people have and that are not read: what they look like. */
#include "cli/symbolicate/symbolicate.h"

#include <string.h>

#include "object/object.h"

enum { HEAD = 1 << 16 };

/* A line that begins in the head begins with this. */
static bool has_line(struct sl_str text, const char *begin)
{
    struct sl_str rest = text, line;
    while (text.size - rest.size < HEAD && sl_str_next_line(&rest, &line))
        if (sl_str_starts(line, sl_str(begin)))
            return true;
    return false;
}

/* What lookup and dump-syms read; those that are no text have a NUL early, which texts that begin with "MZ" do not. */
static const char *object_kind(struct sl_bytes bytes)
{
    static const char *const kinds[] = {
        [SL_FORMAT_ELF] = "an ELF file: a program, library or core dump",
        [SL_FORMAT_PE] = "a Windows program or library",
        [SL_FORMAT_PDB] = "a PDB with debug information",
        [SL_FORMAT_SOURCEBUNDLE] = "a ZIP archive or source bundle",
        [SL_FORMAT_BREAKPAD] = "a symbol file of Breakpad",
        [SL_FORMAT_WASM] = "a WebAssembly module",
        [SL_FORMAT_PORTABLEPDB] = "a Portable PDB",
        [SL_FORMAT_COFF] = "an object file of a compiler for Windows",
        [SL_FORMAT_MACHO] = "a Mach-O file: a program, library or dSYM",
    };
    enum { EARLY = 64 };
    enum sl_format format = sl_format_detect(bytes);
    if (format == SL_FORMAT_UNKNOWN)
        return NULL;
    bool is_text = !memchr(bytes.data, 0, bytes.size < EARLY ? bytes.size : EARLY);
    return is_text == (format == SL_FORMAT_BREAKPAD) ? kinds[format] : NULL;
}

/* Others, by the bytes that they begin with. */
static const struct {
    struct sl_str magic;
    const char *what;
} magics[] = {
    {SL_STR("\xCA\xFE\xBA\xBE"), "a class of Java"},
    {SL_STR("PAGEDU64"), "a dump of the Windows kernel"},
    {SL_STR("PAGEDUMP"), "a dump of the Windows kernel"},
    {SL_STR("bplist00"), "a binary property list of Apple's"},
};

static const struct {
    const char *line, *what;
} heads[] = {
    {"*** *** *** *** *** ***", "a tombstone of Android"},
};

/* Numbers of Apple's reports that have no stacks, or none that are read. */
static const struct {
    const char *type, *what;
} apple_types[] = {
    {"210", "a panic of the kernel"},
    {"288", "a stackshot without processes"},
    {"298", "a report of the memory that processes had when one was ended (jetsam)"},
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
    return text.size ? NULL : "an empty file";
}
