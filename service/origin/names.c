/* Names of file types and object types. */
#include "origin/origin.h"

const char *const file_type_words[] = {
    [FILE_PE] = "pe",
    [FILE_PDB] = "pdb",
    [FILE_PORTABLEPDB] = "portablepdb",
    [FILE_MACH_DEBUG] = "mach_debug",
    [FILE_MACH_CODE] = "mach_code",
    [FILE_ELF_DEBUG] = "elf_debug",
    [FILE_ELF_CODE] = "elf_code",
    [FILE_WASM_DEBUG] = "wasm_debug",
    [FILE_WASM_CODE] = "wasm_code",
    [FILE_BREAKPAD] = "breakpad",
    [FILE_SOURCEBUNDLE] = "sourcebundle",
    [FILE_UUIDMAP] = "uuidmap",
    [FILE_BCSYMBOLMAP] = "bcsymbolmap",
    [FILE_IL2CPP] = "il2cpp",
    [FILE_PROGUARD] = "proguard",
    [FILE_TYPES] = NULL,
};

const char *const layout_type_words[] = {
    [LAYOUT_NATIVE] = "native",
    [LAYOUT_SYMSTORE] = "symstore",
    [LAYOUT_SYMSTORE_INDEX2] = "symstore_index2",
    [LAYOUT_SSQP] = "ssqp",
    [LAYOUT_DEBUGINFOD] = "debuginfod",
    [LAYOUT_UNIFIED] = "unified",
    [LAYOUT_SLASHSYMBOLS] = "slashsymbols",
    NULL,
};

static const char *const object_types[] = {"unknown", "elf", "macho", "pe", "pe_dotnet", "wasm"};

const char *file_type_name(enum file_type type)
{
    return file_type_words[type];
}

bool file_type_parse(struct sl_str name, enum file_type *type)
{
    for (size_t i = 0; i < FILE_TYPES; i++)
        if (sl_str_equal(name, sl_str(file_type_words[i]))) {
            *type = (enum file_type)i;
            return true;
        }
    return false;
}

const char *object_type_name(enum object_type type)
{
    return object_types[type];
}

enum object_type object_type_parse(struct sl_str name)
{
    for (size_t i = 1; i < sizeof object_types / sizeof *object_types; i++)
        if (sl_str_equal(name, sl_str(object_types[i])))
            return (enum object_type)i;
    return OBJECT_UNKNOWN;
}

bool layout_type_parse(struct sl_str name, enum layout_type *type)
{
    for (size_t i = 0; layout_type_words[i]; i++)
        if (sl_str_equal(name, sl_str(layout_type_words[i]))) {
            *type = (enum layout_type)i;
            return true;
        }
    return false;
}
