/* The plain part of the configuration files of older tools, in the syntax of TOML: blank lines, comments, [section] and
 * [[section]] with dotted names, and `key = value` with a string, an integer or a boolean. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* The file as YAML. SL_MALFORMED with "<file>:<line>: not a plain "key = value" line; use .symloom.yml" for anything else;
 * SL_NOT_FOUND and the like when it cannot be read. */
enum sl_code plain_config_read(const char *path, struct sl_buf *yaml, struct sl_error *error);
