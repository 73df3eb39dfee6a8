/* Shows on stderr what a long-running command is doing. On a terminal: one line, from half a second on, redrawn at most ten times a
 * second and erased at the end, with a bar once the number of items is known. With --progress plain: a line for each finished item and
 * every five seconds; with --progress json: the same as JSON objects. Nothing with --quiet or --progress none, nor, unless asked for,
 * when stderr is no terminal.
 *
 * Callers whose work calls them back draw the line themselves (progress_show). For other work a thread redraws the line (progress_file,
 * progress_set_item). Other output to the terminal first calls progress_clear_line. All functions are thread-safe. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

enum { PROGRESS_ITEM = 256 };

struct progress {
    enum progress_mode { PROGRESS_NONE, PROGRESS_LINE, PROGRESS_PLAIN, PROGRESS_JSON } mode;
    const char *verb;            /* begins the line: "reading", "sending" */
    uint64_t began_ms, shown_ms; /* when the display began, and was last drawn or printed; monotonic clock */
    uint64_t done, total;        /* numbers of items: finished, known; total 0: unknown */
    bool drawn;                  /* the line is on the terminal */
    bool watching, ends;         /* watching: the thread that redraws the line runs; ends: it has to end */
    pthread_t thread;
    pthread_cond_t change;    /* signalled when `ends` is set */
    char item[PROGRESS_ITEM]; /* what is worked on, shown by the thread; empty: nothing */
    uint64_t bytes;           /* size of `item` */
    bool counts;              /* `item` is one of the `total` items: counted in `done` when it is finished */
};

/* Starts the display; an unknown --progress mode counts as `auto`. One display at a time in a process; `p` must not move until
 * progress_end. `verb` begins the line ("reading", "sending") and is not copied. */
void progress_begin(struct progress *p, const struct options *o, const char *verb);
/* Shows what is worked on. May be called at any rate, since most calls do not redraw. `item`: host and file name; `bytes` of it so far. */
void progress_show(struct progress *p, const char *item, uint64_t bytes);
/* Counts an item of `bytes` as finished; with --progress plain or json also prints its line. */
void progress_item(struct progress *p, const char *item, uint64_t bytes);

/* Lets a thread show an item that is worked on, without counting it: a path, whose last component is shown, or a URL. */
void progress_set_item(struct progress *p, const char *item, uint64_t bytes);
/* Lets a thread show a file that is worked on, and counts the file of the call before as finished. `total` grows if it is exceeded. */
void progress_file(struct progress *p, const char *path);
/* Adds `files` to the number of items that the bar counts up to. */
void progress_expect(struct progress *p, uint64_t files);

/* Ends the display and erases the line. A later call that shows progress starts it again. */
void progress_end(struct progress *p);
/* Counts the file of the last progress_file as finished, then does what progress_end does. */
void progress_finish(struct progress *p);

/* Erases the line of the active display, if any, before other text goes to the terminal. The next redraw shows it again. */
void progress_clear_line(void);
