/* The report that the process prints when it dies of a fatal signal.
 *
 *     symloom 0.3.0 (commit 4d7b183a2b3c) dies: signal 11 (SIGSEGV) at address 0x8, thread 4711
 *     in work: symcaches 0123456789abcdef0123456789abcdef source: test location: http://... (this thread)
 *     0x000055d0c0a1b2c3 symloom+0x21b2c3
 *     ...
 *     module 0x000055d0c0800000 build-id 3f2a... /usr/bin/symloom
 *
 * It goes to the log's destination and to standard error, by async-signal-safe calls alone; then come the log lines that are
 * still in memory, and the default action of the signal. Addresses are that of the interrupted instruction and return addresses
 * less one, so that `symloom lookup -e /usr/bin/symloom 0x21b2c3` shows what each means. The work in progress is noted for the
 * process that starts next (journal.h). */
#pragma once

#include <signal.h>

/* Installs handlers for SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGQUIT; SIGBUS is handled by sigbus_guard.h. Once, on the loop's thread,
 * after loop_init. */
void crash_open(void);

/* Gives the calling thread an alternate signal stack (sigaltstack(2)), as a stack overflow may be the reason. */
void crash_thread(void);

/* For signal handlers: prints the report if crash_open was called, and returns. */
void crash_report(int number, const siginfo_t *info);
