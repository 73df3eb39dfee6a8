#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Reads the configuration anew and makes it count for caches, downloads, sources and the log. Keys that need a restart keep
 * their values. NULL when it is wrong: then everything stays. `problems` gets errors and warnings, a line each. */
struct config *reload_config(const struct options *options, const struct config *before, struct sl_buf *problems);
