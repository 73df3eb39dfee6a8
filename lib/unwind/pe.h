/* The exception directory of PE files; shared by the pe*.c files. Private to this folder. */
#pragma once

#include "unwind/impl.h"

struct pe_tables {
    const struct sl_object *object;
    struct sl_bytes directory; /* the RUNTIME_FUNCTIONs */
};

/* Each reads the whole directory and passes the rules to the builder. Entries that cannot be read are counted in sink->skipped. Returns
 * b->code: SL_OK, or why reading stopped. */
enum sl_code pe_read_x86_64(const struct pe_tables *tables, struct unwind_builder *b);
enum sl_code pe_read_arm64(const struct pe_tables *tables, struct unwind_builder *b);
