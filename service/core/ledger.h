/* What the threads of the pool are working on, in a file that outlives the process.
 *
 * A file that ends the process by being read would do so again whenever a client sends it. So each thread notes what it works on
 * before it begins, and whoever finds the file of a process that did not end as it should knows what was in work. It is written,
 * not mapped: a full disk, or somebody who cuts it, does no harm. The notes are kept in memory too, for the crash report. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"

enum { LEDGER_MOST = 1024 }; /* threads; of more than that, some have no slot */

struct ledger_work {
    char kind[28];   /* of the cache entry, or of the file */
    char key[36];    /* 32 hex digits that name it among its kind */
    char about[188]; /* for people, without line ends; may be empty */
};

/* Fills in a work; `about` is cut, and loses what may be secret: queries of URLs. */
void ledger_describe(struct ledger_work *work, const char *kind, const uint8_t key[16], struct sl_str about);

/* Once, before the threads of the pool begin; without a file when it cannot be made, or `path` is NULL. */
void ledger_open(const char *path, unsigned slots);
void ledger_close(void);

/* The calling thread begins to work on something (NULL: on nothing that could be named) and ends. Not nested. */
void ledger_begin(const struct ledger_work *work);
void ledger_end(void);
const struct ledger_work *ledger_own(void); /* of the calling thread; NULL = none. Async-signal-safe */

/* The i-th slot's work, NULL = none; false behind the last. Async-signal-safe. */
bool ledger_at(unsigned i, const struct ledger_work **work);

/* Notes how the process ends: by a signal, raised by what the calling thread did itself or not; 0: on purpose, whatever is in
 * work. Async-signal-safe. */
void ledger_sign(int number, bool own_fault);

/* What a process left. */
struct ledger_death {
    pid_t pid;
    int number; /* of the signal that it noted; 0: none, it was killed */
    bool on_purpose;
    unsigned count; /* of works: that of the thread that failed when that is known, else all */
    struct ledger_work works[32];
};
bool ledger_read(int fd, struct ledger_death *death); /* false: it is none */
