/* The formats of debug files, a row each: magic, operations, and constant properties. */
#include "object/coff.h"

enum { MIN_FILE = 16, MAX_MAGICS = 2 };

/* True if the text begins with a MODULE record, perhaps after a few empty lines. */
static bool is_breakpad(struct sl_bytes bytes)
{
    struct sl_bytes text = sl_bytes_from(bytes, object_blank_lines(bytes));
    return text.size >= 7 && memcmp(text.data, "MODULE ", 7) == 0;
}

/* True for Mach-O and fat Mach-O files. Java class files have the magic of fat files, too. The word after it tells them apart: in a class
 * file it is the version, which is at least 45; in a fat file the number of slices, which is less. */
static bool is_macho(struct sl_bytes bytes)
{
    struct sl_reader r = sl_reader(bytes, true);
    switch (sl_read_u32(&r)) {
    case 0xFEEDFACE: /* MH_MAGIC, MH_MAGIC_64, then both with the bytes swapped */
    case 0xFEEDFACF:
    case 0xCEFAEDFE:
    case 0xCFFAEDFE: return true;
    case 0xCAFEBABE: /* FAT_MAGIC, also of Java class files */
    case 0xCAFEBABF: return sl_read_u32(&r) < 45;
    default: return false;
    }
}

/* True for a COFF object file. These have no magic: coff_detect() checks whether the header is plausible. */
static bool is_coff(struct sl_bytes bytes)
{
    enum coff_anonymous anonymous;
    return coff_detect(bytes, &anonymous);
}

static const struct format_row {
    struct sl_format_traits traits;
    const struct object_format *ops;
    struct sl_str magics[MAX_MAGICS];
    bool (*is)(struct sl_bytes bytes); /* detects the format; NULL: the file begins with one of `magics` */
} formats[] = {
    [SL_FORMAT_UNKNOWN] = {.traits = {"unknown", NULL, NULL, SL_FORMAT_UNKNOWN, SL_UNWIND_NONE}},
    [SL_FORMAT_ELF] = {{"elf", "an ELF file: a program or library", "Linux", SL_FORMAT_ELF, SL_UNWIND_DWARF},
                       &sl_object_elf,
                       {SL_STR("\x7F"
                               "ELF")}},
    [SL_FORMAT_PE] = {{"pe", "a Windows program or library", "windows", SL_FORMAT_PE, SL_UNWIND_PE},
                      &sl_object_pe,
                      {SL_STR("MZ")}},
    [SL_FORMAT_PDB] = {{"pdb", "a PDB with debug information", "windows", SL_FORMAT_PE, SL_UNWIND_PDB},
                       &sl_object_pdb,
                       {SL_STR("Microsoft C/C++ MSF 7.00\r\n\x1a"
                               "DS\0\0\0")}},
    [SL_FORMAT_SOURCEBUNDLE] = {{"sourcebundle", "a ZIP archive or source bundle", NULL, SL_FORMAT_UNKNOWN,
                                 SL_UNWIND_NONE},
                                &sl_object_bundle,
                                {SL_STR("SYSB"), SL_STR("PK\3\4")}},
    [SL_FORMAT_BREAKPAD] = {{"breakpad", "a Breakpad symbol file", NULL, SL_FORMAT_UNKNOWN, SL_UNWIND_BREAKPAD},
                            &sl_object_breakpad,
                            .is = is_breakpad},
    [SL_FORMAT_WASM] = {{"wasm", "a WebAssembly module", "wasm", SL_FORMAT_WASM, SL_UNWIND_DWARF},
                        &sl_object_wasm,
                        {SL_STR("\0asm")}},
    [SL_FORMAT_PORTABLEPDB] = {{"portablepdb", "a Portable PDB", NULL, SL_FORMAT_PE, SL_UNWIND_NONE},
                               &sl_object_ppdb,
                               {SL_STR("BSJB")}},
    [SL_FORMAT_MACHO] = {{"macho", "a Mach-O file: a program, library or dSYM", "mac", SL_FORMAT_MACHO,
                          SL_UNWIND_DWARF},
                         &sl_object_macho,
                         .is = is_macho},
    [SL_FORMAT_COFF] = {{"coff", "a COFF object file", "windows", SL_FORMAT_PE, SL_UNWIND_NONE},
                        &sl_object_coff,
                        .is = is_coff},
};

enum sl_format sl_format_detect(struct sl_bytes bytes)
{
    const struct sl_str text = {(const char *)bytes.data, bytes.size};
    for (size_t i = 0; bytes.size >= MIN_FILE && i < sizeof formats / sizeof *formats; i++) {
        const struct format_row *row = &formats[i];
        for (size_t k = 0; k < MAX_MAGICS && row->magics[k].size; k++)
            if (sl_str_starts(text, row->magics[k]))
                return (enum sl_format)i; /* formats[] has a row for each value of the enum */
        if (row->is && row->is(bytes))
            return (enum sl_format)i;
    }
    return SL_FORMAT_UNKNOWN;
}

const struct object_format *object_format_ops(enum sl_format format)
{
    return formats[format].ops;
}

const struct sl_format_traits *sl_format_traits(enum sl_format format)
{
    return &formats[format].traits;
}

const char *sl_format_name(enum sl_format format)
{
    return formats[format].traits.name;
}
