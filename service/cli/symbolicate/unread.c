/* Files that people have and that are not read: what they look like. */
#include "cli/symbolicate/symbolicate.h"

#include <string.h>

enum { HEAD = 1 << 16, LOG_HEAD = 1 << 20 };

static bool head_has(struct sl_str text, size_t head, const char *word)
{
    size_t size = text.size < head ? text.size : head;
    return size && memmem(text.data, size, word, strlen(word));
}

/* A line of the head begins with this. */
static bool has_line(struct sl_str text, const char *begin)
{
    size_t size = strlen(begin);
    for (size_t at = 0; at < text.size && at < HEAD;) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        if (text.size - at >= size && memcmp(text.data + at, begin, size) == 0)
            return true;
        at = newline ? (size_t)(newline + 1 - text.data) : text.size;
    }
    return false;
}

/* By the bytes that they begin with. */
static const struct {
    const char *magic;
    size_t size;
    const char *what;
} magics[] = {
    {"\177ELF", 4, "an ELF file: a program, library or core dump"},
    {"MZ", 2, "a Windows program or library"},
    {"Microsoft C/C++ MSF", 19, "a PDB with debug information"},
    {"\xCF\xFA\xED\xFE", 4, "a Mach-O file: a program, library or dSYM"},
    {"\xCE\xFA\xED\xFE", 4, "a Mach-O file: a program, library or dSYM"},
    {"\xCA\xFE\xBA\xBE", 4, "a Mach-O file of several architectures, or a class of Java"},
    {"\0asm", 4, "a WebAssembly module"},
    {"PAGEDU64", 8, "a dump of the Windows kernel"},
    {"PAGEDUMP", 8, "a dump of the Windows kernel"},
    {"MODULE ", 7, "a symbol file of Breakpad"},
    {"bplist00", 8, "a binary property list of Apple's"},
};

static const struct {
    const char *line, *what;
} heads[] = {
    {"Analysis of sampling ", "a report of Apple's `sample`"},
    {"Heaviest stack for the ", "a report of Apple's `spindump`"},
    {"*** *** *** *** *** ***", "a tombstone of Android"},
};

const char *input_unread_kind(struct sl_bytes bytes)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (text.size >= magics[i].size && memcmp(text.data, magics[i].magic, magics[i].size) == 0)
            return magics[i].what;
    if (head_has(text, LOG_HEAD, "-----BEGIN BREAKPAD MICRODUMP-----"))
        return "a microdump of Breakpad";
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (has_line(text, heads[i].line))
            return heads[i].what;
    return text.size ? NULL : "an empty file";
}
