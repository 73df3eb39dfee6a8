/* `config check`. */
#pragma once

#include "cli/options.h"

/* Checks the file, or (NULL) that of the options and the environment; with --user, those that commands of a user read. What was
 * found is on standard output. The exit status. */
int config_check(const struct options *o, const char *path);
