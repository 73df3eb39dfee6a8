/* Tables of file types and object types with their names. */
#include "origin/impl.h"

const struct file_type_row file_type_rows[FILE_TYPES] = {
    [FILE_PE] = {"pe", SL_FORMAT_PE, PART_ANY, BLOCK_PE, "", UNIFIED_DEBUG_ID, "executable", .mozilla = ""},
    [FILE_PDB] = {"pdb", SL_FORMAT_PDB, PART_ANY, BLOCK_PDB, "", UNIFIED_DEBUG_ID, "debuginfo", .mozilla = ""},
    [FILE_PORTABLEPDB] = {"portablepdb", SL_FORMAT_PORTABLEPDB, PART_ANY, BLOCK_PDB, "", UNIFIED_DEBUG_ID, "debuginfo"},
    [FILE_MACH_DEBUG] = {"mach_debug", SL_FORMAT_MACHO, PART_DEBUG, BLOCK_LLDB, "", UNIFIED_CODE_ID_OR_UUID,
                         "debuginfo", "mach-uuid-sym-", "_.dwarf"},
    [FILE_MACH_CODE] = {"mach_code", SL_FORMAT_MACHO, PART_CODE, BLOCK_LLDB, ".app", UNIFIED_CODE_ID_OR_UUID,
                        "executable", "mach-uuid-"},
    [FILE_ELF_DEBUG] = {"elf_debug", SL_FORMAT_ELF, PART_DEBUG, BLOCK_GDB, ".debug", UNIFIED_CODE_ID, "debuginfo",
                        "elf-buildid-sym-", "_.debug", ".dbg.gz"},
    [FILE_ELF_CODE] = {"elf_code", SL_FORMAT_ELF, PART_CODE, BLOCK_GDB, "", UNIFIED_CODE_ID, "executable",
                       "elf-buildid-"},
    [FILE_WASM_DEBUG] = {"wasm_debug", SL_FORMAT_WASM, PART_DEBUG, BLOCK_GDB, ".debug", UNIFIED_CODE_ID_OR_UUID,
                         "debuginfo"},
    [FILE_WASM_CODE] = {"wasm_code", SL_FORMAT_WASM, PART_CODE, BLOCK_GDB, "", UNIFIED_CODE_ID_OR_UUID, "executable"},
    [FILE_BREAKPAD] = {"breakpad", SL_FORMAT_BREAKPAD, PART_ANY, BLOCK_BREAKPAD, ".sym", UNIFIED_BY_TYPE, "breakpad",
                       .mozilla = ".sym"},
    [FILE_SOURCEBUNDLE] = {"sourcebundle", SL_FORMAT_SOURCEBUNDLE, PART_ANY, BLOCK_BUNDLE, "", UNIFIED_BY_TYPE,
                           "sourcebundle"},
    [FILE_UUIDMAP] = {.word = "uuidmap", .unified = UNIFIED_CODE_ID_OR_UUID, .suffix = "uuidmap"},
    [FILE_BCSYMBOLMAP] = {.word = "bcsymbolmap", .unified = UNIFIED_CODE_ID_OR_UUID, .suffix = "bcsymbolmap"},
    [FILE_IL2CPP] = {.word = "il2cpp", .unified = UNIFIED_BY_TYPE, .suffix = "il2cpp"},
    [FILE_PROGUARD] = {.word = "proguard", .unified = UNIFIED_DEBUG_ID, .suffix = "proguard"},
};

#define FILES(...) {__VA_ARGS__}, sizeof((enum file_type[]){__VA_ARGS__}) / sizeof(enum file_type)

/* Files of other formats are listed on purpose: some applications ship, for example, ELF debug files for PE
 * programs. */
const struct object_type_row object_type_rows[OBJECT_TYPES] = {
    [OBJECT_UNKNOWN] = {"unknown", SL_FORMAT_UNKNOWN, UNIFIED_NONE, BLOCK_NONE,
                        FILES(FILE_PDB, FILE_MACH_DEBUG, FILE_ELF_DEBUG, FILE_PE, FILE_MACH_CODE, FILE_ELF_CODE,
                              FILE_WASM_CODE, FILE_WASM_DEBUG, FILE_BREAKPAD, FILE_SOURCEBUNDLE, FILE_UUIDMAP,
                              FILE_BCSYMBOLMAP, FILE_PORTABLEPDB, FILE_PROGUARD)},
    [OBJECT_ELF] = {"elf", SL_FORMAT_ELF, UNIFIED_CODE_ID, BLOCK_GDB,
                    FILES(FILE_ELF_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    [OBJECT_MACHO] = {"macho", SL_FORMAT_MACHO, UNIFIED_CODE_ID_OR_UUID, BLOCK_LLDB,
                      FILES(FILE_MACH_CODE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    [OBJECT_PE] = {"pe", SL_FORMAT_PE, UNIFIED_DEBUG_ID, BLOCK_PDB,
                   FILES(FILE_PE, FILE_BREAKPAD, FILE_MACH_DEBUG, FILE_PDB, FILE_ELF_DEBUG)},
    [OBJECT_PE_DOTNET] = {"pe_dotnet", SL_FORMAT_PE, UNIFIED_DEBUG_ID, BLOCK_PDB, FILES(FILE_PORTABLEPDB, FILE_PDB)},
    [OBJECT_WASM] = {"wasm", SL_FORMAT_WASM, UNIFIED_CODE_ID_OR_UUID, BLOCK_GDB,
                     FILES(FILE_WASM_CODE, FILE_WASM_DEBUG)},
};

const char *const layout_type_words[] = {
    [LAYOUT_NATIVE] = "native",
    [LAYOUT_SYMSTORE] = "symstore",
    [LAYOUT_SYMSTORE_INDEX2] = "symstore_index2",
    [LAYOUT_SSQP] = "ssqp",
    [LAYOUT_DEBUGINFOD] = "debuginfod",
    [LAYOUT_UNIFIED] = "unified",
    [LAYOUT_SLASHSYMBOLS] = "slashsymbols",
    [LAYOUT_MOZILLA] = NULL, /* the end of the words of configurations */
    [LAYOUT_UPLOADS] = "unified",
};

const char *file_type_name(enum file_type type)
{
    return file_type_rows[type].word;
}

/* Parses the word of the configuration for a file type; false for other words. */
bool file_type_parse(struct sl_str name, enum file_type *type)
{
    for (size_t i = 0; i < FILE_TYPES; i++)
        if (sl_str_equal(name, sl_str(file_type_rows[i].word))) {
            *type = (enum file_type)i;
            return true;
        }
    return false;
}

bool file_type_for_format(enum sl_format format, bool has_debug_info, enum file_type *type)
{
    if (format == SL_FORMAT_COFF) /* has no type of its own */
        format = SL_FORMAT_PE;
    for (size_t i = 0; i < FILE_TYPES; i++) {
        const struct file_type_row *row = &file_type_rows[i];
        if (format != SL_FORMAT_UNKNOWN && row->format == format &&
            (row->part == PART_ANY || (row->part == PART_DEBUG) == has_debug_info)) {
            *type = (enum file_type)i;
            return true;
        }
    }
    return false;
}

const char *object_type_name(enum object_type type)
{
    return object_type_rows[type].word;
}

enum sl_format object_type_format(enum object_type type)
{
    return object_type_rows[type].format;
}

const enum file_type *object_type_files(enum object_type type, size_t *count)
{
    *count = object_type_rows[type].file_count;
    return object_type_rows[type].files;
}

enum object_type object_type_parse(struct sl_str name)
{
    for (size_t i = 1; i < OBJECT_TYPES; i++)
        if (sl_str_equal(name, sl_str(object_type_rows[i].word)))
            return (enum object_type)i;
    return OBJECT_UNKNOWN;
}

/* Parses the word of the configuration for a layout; false for other words. */
bool layout_type_parse(struct sl_str name, enum layout_type *type)
{
    for (size_t i = 0; layout_type_words[i]; i++)
        if (sl_str_equal(name, sl_str(layout_type_words[i]))) {
            *type = (enum layout_type)i;
            return true;
        }
    return false;
}
