/* The converter that finds out what kind of file was uploaded, and rates how much it tells about code. */
#include "debug_file_store/converters.h"

#include <stdio.h>

#include "object/archive.h"
#include "object/bcsymbolmap.h"
#include "source/bundle.h"
#include "source/il2cpp.h"

/* True if the ELF file has the symbol table that `strip` removes (.symtab), not only that of the dynamic linker. True for other formats. */
static bool has_symbol_table(struct sl_object *object, enum sl_format format)
{
    struct sl_section_info section;
    if (format != SL_FORMAT_ELF)
        return true;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (section.size && sl_str_equal(section.name, SL_STR(".symtab")))
            return true;
    return false;
}

/* True if the file contains machine code, not only debug information about it: it has an executable segment with bytes (in files made by
 * `strip --only-keep-debug` such a segment has none). WASM has no segments. */
static bool has_code(const struct sl_object *object, const struct sl_object_info *info)
{
    struct sl_segment segment;
    if (info->kind == SL_KIND_DBG) /* a debug file */
        return false;
    for (size_t i = 0; sl_object_segment(object, i, &segment); i++)
        if (segment.executable && segment.bytes.size)
            return true;
    return info->format == SL_FORMAT_WASM && info->kind != SL_KIND_NONE;
}

/* Rates how much a file tells about code: lines, only symbols, or neither. Of two files with the same id the better one is served. */
static enum debug_file_quality rate(struct sl_object *object, const struct sl_object_info *info)
{
    if (info->format == SL_FORMAT_BREAKPAD)
        return QUALITY_BREAKPAD;
    /* an upload replaces a stored file unless that is better; source bundles all get the same quality, so the latest one is kept */
    if (info->features.has_debug_info || info->format == SL_FORMAT_SOURCEBUNDLE)
        return QUALITY_LINES;
    if (!info->features.has_symbols)
        return QUALITY_CODE;
    return has_symbol_table(object, info->format) ? QUALITY_SYMBOLS : QUALITY_DYNAMIC_SYMBOLS;
}

/* Returns the module type (object_type, as in requests: "elf", "macho", ...) of programs in this format; OBJECT_UNKNOWN if there is
 * none. */
static enum object_type program_type(enum sl_format format)
{
    for (int type = OBJECT_UNKNOWN + 1; type < OBJECT_TYPES; type++)
        if (object_type_format((enum object_type)type) == format)
            return (enum object_type)type;
    return OBJECT_UNKNOWN;
}

/* Fills in what the store records of an object; `program` is the type of the program or library that it is or describes. False if the store
 * does not accept files of its format. A code id that is too long is left out. */
static bool describe_object(struct sl_object *object, struct checked_object *checked)
{
    const struct sl_object_info *info = sl_object_info(object);
    *checked = (struct checked_object){.program = program_type(sl_format_traits(info->format)->program),
                                       .quality = rate(object, info),
                                       .arch = info->arch,
                                       .kind = info->kind,
                                       .has_code = has_code(object, info),
                                       .has_debug_info = info->features.has_debug_info,
                                       .has_symbols = info->features.has_symbols,
                                       .has_unwind_info = info->features.has_unwind_info,
                                       .has_sources = info->features.has_sources,
                                       .debug_id = info->debug_id};
    /* a Breakpad file is a text about a program of another format, which it may name */
    if (info->format == SL_FORMAT_BREAKPAD && info->program_format != SL_FORMAT_UNKNOWN)
        checked->program = program_type(info->program_format);
    if (info->code_id.size < CHECKED_CODE_ID)
        snprintf(checked->code_id, sizeof checked->code_id, SL_STR_FMT, SL_STR_ARG(info->code_id));
    /* A file with symbols and without code is a debug file even without DWARF; one with symbols and code may be a stripped library. */
    bool is_debug = checked->has_debug_info || (!checked->has_code && checked->has_symbols);
    return file_type_for_format(info->format, is_debug, &checked->type);
}

/* Describes each object of the file, of which a fat Mach-O file has several. `found->name` becomes the first debug file name in an object
 * that is UTF-8 and not too long. */
static enum sl_code describe_objects(struct conversion *conversion, struct sl_bytes file,
                                     const struct reader_limits *limits, struct upload_check_result *found,
                                     struct sl_error *error)
{
    struct sl_archive archive;
    struct sl_object_limits object_limits = make_object_limits(limits, &conversion->budget);
    enum sl_code code = sl_archive_open(file, &archive, error);
    if (code == SL_OK && archive.count > CHECKED_OBJECTS)
        return sl_fail(error, SL_MALFORMED, "the file has %zu objects; the store of uploads keeps at most %d",
                       archive.count, CHECKED_OBJECTS);
    for (size_t i = 0; code == SL_OK && i < archive.count; i++) {
        struct sl_object *object;
        code = sl_archive_object(&archive, i, &object_limits, &object, error);
        if (code != SL_OK)
            break;
        const struct sl_object_info *info = sl_object_info(object);
        if (!*found->name && info->debug_file.size < CHECKED_NAME && sl_str_is_utf8(info->debug_file))
            snprintf(found->name, sizeof found->name, SL_STR_FMT, SL_STR_ARG(info->debug_file));
        bool known = describe_object(object, &found->objects[found->count++]);
        code = sl_object_status(object, error); /* memory or budget may have run out while it was described */
        sl_object_close(object);
        if (code == SL_OK && !known)
            code = sl_fail(error, SL_MALFORMED, "the store of uploads does not keep files of the format %s",
                           sl_format_name(info->format));
    }
    return code;
}

/* True if the file may be a ProGuard mapping: its beginning has " -> ", as in "class -> obfuscated:", and no NUL. */
static bool looks_like_mapping(struct sl_bytes file)
{
    enum { LOOKED_AT = 64 << 10 };
    struct sl_str text = {(const char *)file.data, file.size < LOOKED_AT ? file.size : LOOKED_AT};
    return memmem(text.data, text.size, " -> ", 4) != NULL && !memchr(text.data, '\0', text.size);
}

/* Sets `*type` for a file that is no object: a BCSymbolMap, UUID map (property list), il2cpp line mapping (JSON) or ProGuard mapping. Its
 * beginning tells which; then the parser for that type, which fails fast on other files, checks it. */
static enum sl_code describe_auxiliary(struct conversion *conversion, struct sl_bytes file, enum file_type *type,
                                       struct sl_error *error)
{
    struct sl_str text = {(const char *)file.data, file.size};
    if (sl_str_starts(text, SL_STR("BCSymbolMap Version:"))) {
        struct sl_bcsymbolmap *map;
        *type = FILE_BCSYMBOLMAP;
        enum sl_code code = sl_bcsymbolmap_open(file, &conversion->budget, &map, error);
        sl_bcsymbolmap_close(map);
        return code;
    }
    if (sl_str_starts(text, SL_STR("bplist00")) || sl_str_starts(text, SL_STR("<?xml")) ||
        sl_str_starts(text, SL_STR("<plist"))) {
        struct sl_debug_id original;
        *type = FILE_UUIDMAP;
        return sl_uuidmap_parse(file, &original, error);
    }
    if (sl_str_starts(text, SL_STR("{"))) {
        struct sl_il2cpp *lines;
        *type = FILE_IL2CPP;
        enum sl_code code = sl_il2cpp_open(file, &conversion->budget, &lines, error);
        sl_il2cpp_close(lines);
        return code;
    }
    *type = FILE_PROGUARD;
    return looks_like_mapping(file) ? SL_OK
                                    : sl_fail(error, SL_MALFORMED,
                                              "the file is no debug file, executable, source bundle or mapping that "
                                              "symloom knows");
}

/* The converter's function: finds out what an uploaded file is. If it is no object, it may be one of the auxiliary files (mappings and
 * property lists), which have no ids of their own. */
static enum sl_code check_upload(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    struct upload_check_result *found = result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    if (sl_format_detect(file) != SL_FORMAT_UNKNOWN)
        return describe_objects(conversion, file, converter_options(call), found, error);
    found->count = 1;
    /* an upload replaces a stored file unless that is better; auxiliary files all get the same quality, so the latest one is kept */
    found->objects[0] = (struct checked_object){.quality = QUALITY_LINES, .kind = SL_KIND_OTHER};
    return describe_auxiliary(conversion, file, &found->objects[0].type, error);
}

/* True if the code id consists of lower-case hex digits and ends within its array: it becomes a part of paths. */
static bool code_id_is_valid(const char *text)
{
    size_t size = strspn(text, "0123456789abcdef");
    return size < CHECKED_CODE_ID && !text[size];
}

/* Checks what a worker process, which is not trusted, says of an object. Enums are copied as integers first: reading an enum whose value is
 * none of its constants would be undefined. */
static bool object_is_valid(const struct checked_object *object)
{
    const bool *const flags[] = {&object->has_code, &object->has_debug_info, &object->has_symbols,
                                 &object->has_unwind_info, &object->has_sources};
    uint32_t type, program, quality, kind;
    memcpy(&type, &object->type, sizeof type);
    memcpy(&program, &object->program, sizeof program);
    memcpy(&quality, &object->quality, sizeof quality);
    memcpy(&kind, &object->kind, sizeof kind);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!converter_bool_is_valid(flags[i]))
            return false;
    return type < FILE_TYPES && program < OBJECT_TYPES && quality <= QUALITY_LINES && kind <= SL_KIND_OTHER &&
           converter_arch_is_valid(&object->arch) && memchr(object->code_id, '\0', sizeof object->code_id) &&
           code_id_is_valid(object->code_id);
}

/* Checks the result of a worker process, which is not trusted. */
static bool check_result(const void *result)
{
    const struct upload_check_result *found = result;
    bool good = found->count <= CHECKED_OBJECTS && converter_text_is_valid(found->name, sizeof found->name);
    for (uint32_t i = 0; good && i < found->count; i++)
        good = object_is_valid(&found->objects[i]);
    return good;
}

const struct converter converter_upload_check = {"upload_check", sizeof(struct reader_limits),
                                                 sizeof(struct upload_check_result), check_upload, check_result};
