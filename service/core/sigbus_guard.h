/* Disk errors under a mapping.
 *
 * A file that shrinks under its mapping (or a broken disk) raises SIGBUS at the reading instruction. Code that reads
 * mapped files runs guarded: the fault then ends that code, not the process. */
#pragma once

#include <stdbool.h>

/* Runs fn(arg); false when a fault ended it. Memory that it allocated and did not store in `arg` leaks, which is accepted for
 * so rare a case; it must hold no lock while it reads a mapping, and must not suspend its fiber. Nests; any thread, after
 * loop_init. Faults are counted (faults_recovered_total). */
bool sigbus_guard_run(void (*fn)(void *arg), void *arg);

/* Takes the address of a recent fault, each once, so that its owner can check the mapping. False when there are none left. Any
 * thread; if there are many faults at a time, some are lost. */
bool sigbus_guard_next_fault(const void **address);

/* Ends the innermost sigbus_guard_run of this thread like a fault; returns if there is none. */
void sigbus_guard_fail(void);
