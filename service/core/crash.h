/* What the process says when it dies of a fatal signal.
 *
 *     symloom 0.3.0 (commit 4d7b183a2b3c) dies: signal 11 (SIGSEGV) at address 0x8, thread 4711
 *     in work: symcaches 0123456789abcdef0123456789abcdef source: test location: http://... (this thread)
 *     0x000055d0c0a1b2c3 symloom+0x21b2c3
 *     ...
 *     module 0x000055d0c0800000 build-id 3f2a... /usr/bin/symloom
 *
 * to where the log goes, and standard error, by async-signal-safe calls alone; then the lines that the log still holds, and what
 * the signal does by itself. Addresses are those of the interrupted instruction and of calls (a return address less one), so that
 * `symloom lookup -e /usr/bin/symloom 0x21b2c3` shows what each means. What was in work is noted for the process that starts next
 * (ledger.h). */
#pragma once

#include <signal.h>

/* Takes SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGQUIT; SIGBUS comes by the guard. Once, on the loop's thread, after loop_init. */
void crash_open(void);

/* The calling thread gets a stack to do this on: its own may be what has run out. */
void crash_thread(void);

/* For a handler of signals: the report, when crash_open was called. The action is up to the handler. */
void crash_report(int number, const siginfo_t *info);
