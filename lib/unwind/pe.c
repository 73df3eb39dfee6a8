/* Finds the exception directory of a PE file (Microsoft's "PE Format") and reads it as x86-64 or ARM64. */
#include "unwind/pe.h"

enum sl_code pe_read(struct sl_object *object, struct unwind_builder *b)
{
    struct pe_tables t = {object, sl_object_exceptions(object)};
    if (!t.directory.size)
        return SL_OK;
    if (b->family == SL_CPU_ARM64)
        pe_read_arm64(&t, b);
    else
        pe_read_x86_64(&t, b);
    return b->code;
}
