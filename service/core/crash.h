/* The report that the process prints when it dies of a fatal signal.
 *
 *     symloom 0.3.0 (commit 4d7b183a2b3c) dies: signal 11 (SIGSEGV) at address 0x8, process 4711, thread 4713
 *     in work: symcaches 0123456789abcdef0123456789abcdef source: test location: http://... (this thread)
 *     0x000055d0c0a1b2c3 symloom+0x21b2c3
 *     ...
 *     module 0x000055d0c0800000 build-id 3f2a... /usr/bin/symloom
 *
 * It goes to the log's file and to standard error, by async-signal-safe calls alone; then come the log lines that are still in
 * memory, and the signal's previous action, which ends the process. The first address is that of the interrupted instruction, the
 * others are return addresses less one, so that `symloom lookup -e /usr/bin/symloom 0x21b2c3` shows what each means. The journal
 * (journal.h) tells the process that starts next which work was in progress. */
#pragma once

#include <signal.h>

/* Installs handlers for SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGQUIT; SIGBUS is handled by sigbus_guard.h. Once, on the loop's thread,
 * after loop_init. */
void crash_open(void);

/* Gives the calling thread an alternate signal stack (sigaltstack(2)), so that a stack overflow can be reported too. */
void crash_thread(void);

/* For signal handlers: notes the end of the process in the journal, prints the report and returns; nothing if crash_open was not called. If
 * another thread is writing the report, waits until that ends the process. */
void crash_report(int number, const siginfo_t *info);
