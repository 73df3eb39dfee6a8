#pragma once

#include "cli/cli.h"
#include "core/json.h"
#include "symbfile/symbfile.h"

/* Prints what the symbfile holds (`list`: every record), or writes it to `w` (may be NULL). False when the file is no
 * symbfile; else `*status` is the command's. */
bool inspect_symbfile(const char *path, bool check, bool list, struct json_writer *w, int *status);
