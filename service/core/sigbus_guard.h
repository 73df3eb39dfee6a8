/* Disk errors under a mapping.
 *
 * A file that shrinks under its mapping (or a broken disk) raises SIGBUS at the reading instruction. Code that reads
 * mapped files runs guarded: the fault then ends that code, not the process. */
#pragma once

#include <stdbool.h>

/* Runs fn(arg); false when a SIGBUS ended it. Then memory that `fn` has allocated and not stored in `arg` is lost, which is accepted for so
 * rare a case. `fn` must hold no lock while it reads a mapping, and must not suspend its fiber. Calls may nest; any thread, after
 * loop_init. Faults are counted in the metric faults_recovered_total. */
bool sigbus_guard_run(void (*fn)(void *arg), void *arg);

/* Sets `*address` to that of a recent SIGBUS in sigbus_guard_run, each once, so that the owner of the mapping can check its file. False
 * when there are none left. Any thread; of more than 16 faults at a time some are lost. */
bool sigbus_guard_next_fault(const void **address);

/* Ends the innermost sigbus_guard_run of this thread, which returns false as after a SIGBUS. Returns if the thread is in none. */
void sigbus_guard_fail(void);
