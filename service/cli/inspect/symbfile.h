#pragma once

#include "cli/inspect/inspect.h"
#include "symbfile/symbfile.h"

/* Prints what the symbfile holds to `out`, or as JSON to `w` (NULL: text). False when the file is no symbfile. */
bool inspect_symbfile(const char *path, const struct options *options, struct sl_json_writer *w, struct sl_buf *out,
                      bool *usable);
