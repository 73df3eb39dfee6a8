/* Disk errors under a mapping.
 *
 * A file that shrinks under its mapping (or a broken disk) raises SIGBUS at the reading instruction. Code that reads
 * mapped files runs guarded: the fault then ends that code, not the process. */
#pragma once

#include <stdbool.h>

/* Runs fn(arg); false when a fault ended it. What it had allocated and not stored in `arg` is lost, which is accepted for
 * so rare a case; it must hold no lock while it reads a mapping, and must not suspend its fiber. Nests; any thread, after
 * loop_init. Faults are counted (faults_recovered_total). */
bool guard_run(void (*fn)(void *arg), void *arg);

/* The addresses of recent faults, each once: what could not be read is to be looked at. False when there is none left. Any
 * thread; of many faults at a time some are forgotten. */
bool guard_next_fault(const void **address);

/* Ends the innermost guard_run of this thread as a fault would; returns when there is none. */
void guard_fail(void);
