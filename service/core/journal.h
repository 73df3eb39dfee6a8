/* A journal of the work of the pool threads, in a file that outlives the process.
 *
 * An input file that crashes the process would do so again whenever a client sends it. So each thread notes its work before it
 * begins; when a process did not exit normally, a later one learns from its journal which work was in progress. The journal is
 * written, not mapped: a full disk or a truncation does no harm. The notes are also in memory, for the crash report. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"

enum { JOURNAL_MAX_SLOTS = 1024 }; /* threads that can note their work; further ones note nothing */

struct journal_work {
    char kind[28];   /* cache kind, or type of file */
    char key[36];    /* 32 hex digits, unique within the kind */
    char about[188]; /* for people, without line ends; may be empty */
};

/* Fills in `work`; cuts `about` and removes parts that may be secret: queries of URLs. */
void journal_describe(struct journal_work *work, const char *kind, const uint8_t key[16], struct sl_str about);

/* Creates the journal file, with a slot for each of `slots` threads. Call it once, before the pool threads start. If `path` is NULL or the
 * file cannot be created, the notes are only in memory. */
void journal_open(const char *path, unsigned slots);
void journal_close(void);

/* Note that the calling thread begins to work on `work` (NULL: not noted), and that it has ended. Not nested. */
void journal_begin(const struct journal_work *work);
void journal_end(void);
const struct journal_work *journal_current(void); /* work of the calling thread, or NULL. Async-signal-safe */

/* Sets `*work` to the work of slot `i`, or NULL if it is idle; false after the last slot. Async-signal-safe. */
bool journal_slot_work(unsigned i, const struct journal_work **work);

/* Notes how the process ends: `number` is the signal, 0: a normal exit, so that no work is blamed. `own_fault`: an instruction of the
 * calling thread has raised the signal, so that only this thread's work is blamed. Async-signal-safe. */
void journal_note_end(int number, bool own_fault);

/* Contents of the journal of a process that has ended. */
struct journal_record {
    pid_t pid;
    int number;      /* signal that ended the process; 0: none was noted, as it exited normally or was killed */
    bool on_purpose; /* a normal exit */
    unsigned count;  /* number of `works`: that of the thread that crashed if it is known, else of all threads */
    struct journal_work works[32];
};
bool journal_read(int fd, struct journal_record *death); /* false: the file is not a journal */
