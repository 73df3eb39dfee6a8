/* sl_object_read_functions: chooses the reader of an object's functions. */
#include "btf/btf.h"
#include "dwarf/impl.h"
#include "go/go.h"

/* Reads BTF, which has less than DWARF, if there is no DWARF or none of it could be read: `dwarf` is the result of reading DWARF. Returns
 * `dwarf` if BTF was not needed or does not exist, else the result of reading BTF. */
static enum sl_code read_btf(enum sl_code dwarf, struct sl_object *object, struct sl_function_sink *sink,
                             struct sl_error *error)
{
    struct sl_error other;
    if (dwarf != SL_NOT_FOUND && dwarf != SL_MALFORMED)
        return dwarf;
    enum sl_code code = sl_btf_read(object, sink, &other);
    if (code == SL_NOT_FOUND)
        return dwarf;
    if (code != SL_OK && error)
        *error = other;
    return code;
}

/* Tries the formats in order, the one that describes most first: the object's own format, DWARF in the object, DWARF in the object files
 * that its debug map names (Mach-O), BTF, the function table of a Go program. */
static enum sl_code read_any(struct sl_object *object, const struct sl_companions *companions,
                             const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error)
{
    if (sl_object_reads_own_functions(object))
        return sl_object_read_own_functions(object, parallel, sink, error);
    enum sl_code code = sl_dwarf_read(object, companions, parallel, sink, error);
    if (code == SL_NOT_FOUND && companions && companions->open_object)
        code = dwarf_read_debug_map(object, companions, parallel, sink, error);
    code = read_btf(code, object, sink, error);
    return code == SL_NOT_FOUND ? sl_go_read(object, sink, error) : code;
}

/* True if the object has stabs, the debug information of old compilers: Debian's AVR compiler writes it by default. */
static bool has_stabs(struct sl_object *object)
{
    struct sl_section_info section;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (section.size && sl_str_equal(section.name, SL_STR(".stab")))
            return true;
    return false;
}

enum sl_code sl_object_read_functions(struct sl_object *object, const struct sl_companions *companions,
                                      const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                      struct sl_error *error)
{
    enum sl_code code = read_any(object, companions, parallel, sink, error);
    /* a reason why debug information is not used is reported as a unit that was skipped */
    const char *unused = sl_object_debug_info_error(object);
    if (!unused && has_stabs(object))
        unused = "stabs debug information (section .stab) is not supported; compile with -gdwarf-4";
    if (unused && !sink->skipped_units++)
        sl_fail(&sink->first_skipped, SL_UNSUPPORTED, "%s", unused);
    enum sl_code object_status = sl_object_status(object, error); /* a section may seem absent because memory ran out */
    return object_status == SL_OK ? code : object_status;
}
