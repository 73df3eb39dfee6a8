/* `symloom inspect` of mappings of ProGuard and R8. */
#pragma once

#include "cli/inspect/inspect.h"

/* Shows the file if it is a mapping, as text or (with `w`) JSON, when its id is `wanted` (NULL = any). False when it is none, and nothing was shown;
 * `*shown`: it has the id. */
bool inspect_mapping(const char *path, const struct options *options, const struct sl_debug_id *wanted,
                     struct sl_json_writer *w, struct sl_buf *out, bool *shown);
