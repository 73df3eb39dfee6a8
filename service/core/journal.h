/* A journal of the work of the pool threads, in a file that outlives the process.
 *
 * A file that crashes the process when it is read would do so again whenever a client sends it. So each thread notes its work
 * before it begins; a later process that finds the journal of one that did not exit normally learns which work was in progress.
 * The journal is written, not mapped: a full disk or a truncation does no harm. The notes are also in memory, for the crash
 * report. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"

enum { JOURNAL_MAX_SLOTS = 1024 }; /* threads; further ones have no slot */

struct journal_work {
    char kind[28];   /* cache kind, or type of file */
    char key[36];    /* 32 hex digits, unique within the kind */
    char about[188]; /* for people, without line ends; may be empty */
};

/* Fills in `work`; cuts `about` and removes parts that may be secret: queries of URLs. */
void journal_describe(struct journal_work *work, const char *kind, const uint8_t key[16], struct sl_str about);

/* Once, before the pool threads start. Without a file when it cannot be made or `path` is NULL. */
void journal_open(const char *path, unsigned slots);
void journal_close(void);

/* The calling thread begins to work on `work` (NULL: work without a name), and ends. Not nested. */
void journal_begin(const struct journal_work *work);
void journal_end(void);
const struct journal_work *journal_current(void); /* work of the calling thread, or NULL. Async-signal-safe */

/* Sets `*work` to the work of slot `i`, or NULL if it is idle; false after the last slot. Async-signal-safe. */
bool journal_slot_work(unsigned i, const struct journal_work **work);

/* Notes how the process ends: `number` is the signal (0: a normal exit, whatever is in progress); `own_fault`: the calling
 * thread raised it by what it did. Async-signal-safe. */
void journal_note_end(int number, bool own_fault);

/* What the journal of a process says. */
struct journal_record {
    pid_t pid;
    int number; /* the signal noted; 0: none, the process was killed */
    bool on_purpose;
    unsigned count; /* number of works: that of the thread that failed if it is known, else all */
    struct journal_work works[32];
};
bool journal_read(int fd, struct journal_record *death); /* false: the file is not a journal */
