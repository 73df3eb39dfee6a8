/* Converts a subset of TOML to YAML, for configuration files of symbolicli, an older tool: blank lines, comments, [section] and [[section]]
 * with dotted names, and `key = value` with a string, an integer or a boolean.
 *
 *     [[sources]]          sources:
 *     id = "local"           - id: "local" */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* Converts the file to YAML. SL_MALFORMED with "<file>:<line>: not a plain "key = value" line; move the configuration to .symloom.yml"
 * for other syntax; SL_NOT_FOUND and the like when it cannot be read. */
enum sl_code plain_config_read(const char *path, struct sl_buf *yaml, struct sl_error *error);
