/* `symloom symbolicate`: what its files share. */
#pragma once

#include "cli/cli.h"
#include "cli/options.h"

/* ---- trace.c ---- */

/* A stack trace of a JVM, or a log with such in it, from `path` (`-` is standard input) to standard output or `output` (may be
 * NULL): its frames and exceptions as they were before `mappings`, all other lines as they are. Whatever its size, it passes
 * through; answers to lines that have come are not held back. Returns the status. */
int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count, const char *output);
