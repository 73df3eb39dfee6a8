#pragma once

#include "cli/inspect/inspect.h"
#include "minidump/minidump.h"

/* Prints what the minidump holds to `out`, or as JSON to `w` (NULL: text). False when the file is no minidump. */
bool inspect_minidump(const char *path, const struct options *options, struct sl_json_writer *w, struct sl_buf *out,
                      bool *usable);
