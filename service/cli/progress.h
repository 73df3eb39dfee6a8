/* What a command that takes its time is doing, on stderr: on a terminal one line, at most ten times a second, erased at the end,
 * with a bar once it is known how many items there are; with --progress plain a line for each finished item and every five seconds;
 * with --progress json the same as objects. Nothing with --quiet and --progress none, and when stderr is no terminal unless asked
 * for.
 *
 * Who is called again and again while it works shows the line itself (progress_show). Work in one piece has a thread of its own
 * show what it is at (progress_file). Whatever else a command says goes around the line (progress_make_way). Any thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

enum { PROGRESS_ITEM = 256 };

struct progress {
    enum progress_mode { PROGRESS_NONE, PROGRESS_LINE, PROGRESS_PLAIN, PROGRESS_JSON } mode;
    const char *verb;
    uint64_t began_ms, shown_ms; /* of a monotonic clock */
    uint64_t done, total;        /* items */
    bool drawn;                  /* there is a line to erase */
    bool watching, ends;         /* there is a thread, which is to end */
    pthread_t thread;
    pthread_cond_t change;
    char item[PROGRESS_ITEM]; /* that the thread shows; empty: none */
    uint64_t bytes;           /* of it */
    bool counts;              /* it is one of `total` */
};

/* An unknown word after --progress counts as `auto`. One at a time in a process; until progress_end it stays where it is. */
void progress_begin(struct progress *p, const struct options *o, const char *verb);
/* Called as often as one likes. `item`: host and file name; `bytes` of it so far. */
void progress_show(struct progress *p, const char *item, uint64_t bytes);
/* An item is finished. */
void progress_item(struct progress *p, const char *item, uint64_t bytes);

/* From now on this is worked on, beside others: a path, of which the last part is shown, or a URL. */
void progress_at(struct progress *p, const char *item, uint64_t bytes);
/* From now on the file is worked on; the one before is finished. Where `total` is not set it grows. */
void progress_file(struct progress *p, const char *path);
/* So many more are known of. */
void progress_expect(struct progress *p, uint64_t files);

/* Ends it, and erases the line. `finished`: what it is at, too. */
void progress_end(struct progress *p);
void progress_finish(struct progress *p);

/* Erases the line of whoever draws one, before other text goes to a terminal. It comes back. */
void progress_make_way(void);
