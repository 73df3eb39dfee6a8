/* The converter of the kind `mozilla_syms` (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* The table of INPUT_FILE, a Breakpad file that must have the id. */
extern const struct converter converter_mozilla_syms;
struct mozilla_syms_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
};
struct mozilla_syms_result {
    bool has_table, is_written; /* whether there was one to be written, and it was */
    uint64_t written_ns;        /* time that this took */
};
