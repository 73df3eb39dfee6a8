/* `symloom inspect` of source maps of JavaScript. */
#pragma once

#include "cli/inspect/inspect.h"

/* Shows the file if it is a source map, or was meant to be, as text or (with `w`) JSON, when its id is `wanted` (NULL = any). False
 * when it is none, and nothing was shown; `*shown`: it has the id; `*usable`: all of it can be read. */
bool inspect_sourcemap(const char *path, const struct options *options, const struct sl_debug_id *wanted,
                       struct sl_json_writer *w, struct sl_buf *out, bool *shown, bool *usable);
