/* The converter of the kind `mozilla_syms` (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* Makes the symcache of INPUT_FILE, a Breakpad file that must have the debug id of the options. */
extern const struct converter converter_mozilla_syms;
struct mozilla_syms_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
};
struct mozilla_syms_result {
    bool has_table, is_written; /* the file was converted; its symcache was written */
    uint64_t written_ns;        /* duration of writing */
};
