/* Shows on stderr what a long-running command is doing. On a terminal: one line, from half a second on, redrawn at most ten times a
 * second and erased at the end, with a bar once the number of items is known. With --progress plain: a line for each finished item and
 * every five seconds; with --progress json: the same as JSON objects. Nothing with --quiet or --progress none, nor, unless asked for,
 * when stderr is no terminal.
 *
 * Callers with a callback during their work draw the line themselves (progress_show). For work without callbacks a thread redraws the
 * line (progress_file). Other output to the terminal first calls progress_clear_line. All functions are thread-safe. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

enum { PROGRESS_ITEM = 256 };

struct progress {
    enum progress_mode { PROGRESS_NONE, PROGRESS_LINE, PROGRESS_PLAIN, PROGRESS_JSON } mode;
    const char *verb;
    uint64_t began_ms, shown_ms; /* monotonic clock */
    uint64_t done, total;        /* items */
    bool drawn;                  /* the line is on the terminal */
    bool watching, ends;         /* the thread runs; it has to end */
    pthread_t thread;
    pthread_cond_t change;
    char item[PROGRESS_ITEM]; /* shown by the thread; empty: none */
    uint64_t bytes;           /* size of `item` */
    bool counts;              /* `item` is one of `total` */
};

/* Starts the display; an unknown --progress mode counts as `auto`. One display at a time in a process; `p` must not move until
 * progress_end. */
void progress_begin(struct progress *p, const struct options *o, const char *verb);
/* May be called at any rate: redraws are limited here. `item`: host and file name; `bytes` of it so far. */
void progress_show(struct progress *p, const char *item, uint64_t bytes);
/* Reports an item as finished. */
void progress_item(struct progress *p, const char *item, uint64_t bytes);

/* Shows that an item is worked on, maybe beside others: a path, whose last part is shown, or a URL. */
void progress_set_item(struct progress *p, const char *item, uint64_t bytes);
/* Shows that a file is worked on, and counts the one before as finished. `total` grows if it is exceeded. */
void progress_file(struct progress *p, const char *path);
/* Adds to the total. */
void progress_expect(struct progress *p, uint64_t files);

/* Ends the display and erases the line; progress_finish also counts the current item as finished. */
void progress_end(struct progress *p);
void progress_finish(struct progress *p);

/* Erases the line of the active display, if any, before other text goes to the terminal. The next redraw shows it again. */
void progress_clear_line(void);
