/* What a command that takes its time is doing, on stderr: on a terminal one line, at most ten times a second, erased at the
 * end; with --progress plain a line for each finished item and every five seconds; with --progress json the same as
 * objects. Nothing with --quiet and --progress none, and when stderr is no terminal unless asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

struct progress {
    enum progress_mode { PROGRESS_NONE, PROGRESS_LINE, PROGRESS_PLAIN, PROGRESS_JSON } mode;
    const char *verb;
    uint64_t began_ms, shown_ms; /* of a monotonic clock */
    uint64_t done, total;        /* items */
    bool drawn;                  /* there is a line to erase */
};

/* An unknown word after --progress counts as `auto`. */
void progress_begin(struct progress *p, const struct options *o, const char *verb);
/* Called as often as one likes. `item`: host and file name; `bytes` of it so far. */
void progress_show(struct progress *p, uint64_t now_ms, const char *item, uint64_t bytes);
/* An item is finished. */
void progress_item(struct progress *p, uint64_t now_ms, const char *item, uint64_t bytes);
/* Erases the line, before other text goes to stderr. */
void progress_end(struct progress *p);
