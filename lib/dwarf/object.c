/* Which reader an object's functions come from. */
#include "dwarf/impl.h"
#include "go/go.h"

/* DWARF says more than the table of a Go program, which is read where there is none. */
static enum sl_code read_any(struct sl_object *object, const struct sl_companions *companions,
                             const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error)
{
    if (sl_object_reads_own_functions(object))
        return sl_object_read_own_functions(object, parallel, sink, error);
    enum sl_code code = sl_dwarf_read(object, companions, parallel, sink, error);
    if (code == SL_NOT_FOUND && companions && companions->open_object)
        code = dwarf_read_debug_map(object, companions, parallel, sink, error);
    return code == SL_NOT_FOUND ? sl_go_read(object, sink, error) : code;
}

enum sl_code sl_object_read_functions(struct sl_object *object, const struct sl_companions *companions,
                                      const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                      struct sl_error *error)
{
    enum sl_code code = read_any(object, companions, parallel, sink, error);
    const char *unused = sl_object_unused(object);
    if (unused && !sink->skipped_units++)
        sl_fail(&sink->first_skipped, SL_UNSUPPORTED, "%s", unused);
    enum sl_code lack =
        sl_object_complete(object, error); /* a section that memory was missing for is not an absent one */
    return lack == SL_OK ? code : lack;
}
