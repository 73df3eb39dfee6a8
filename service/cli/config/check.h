/* `symloom config check`: declarations that its files share. */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Checks the file, or if NULL the one of the options and the environment; with --user, the files that user commands read. Prints the
 * findings on standard output. Returns the exit status. */
int config_check(const struct options *o, const char *path);

/* ---- machine.c ----
 *
 * Checks the machine against a configuration: missing files and the like, with which `run` would fail or serve nothing, and which the
 * configuration file alone does not show. */

/* Adds errors for what keeps `run` from starting (it calls this too), warnings for other things that do not exist. Leaves nothing
 * behind: a writability test creates a file and removes it. */
void config_check_machine(const struct config *config, struct value_problems *problems);

/* Adds a warning if nothing confines the workers that read files (conversion.isolation); if `tells_all`, else an info that says what does.
 * Starts a worker. Call it while the process has one thread. */
void config_check_isolation(const struct config *config, bool tells_all, struct value_problems *problems);

/* ---- connect.c ----
 *
 * Checks that the servers of a configuration answer: its sources, the shared cache and the upload store each get one request without
 * side effects. */

struct connect_target {
    const struct config *config;  /* must have no errors */
    const struct source *symbols; /* the sources of its `symbols`, for user commands */
    size_t symbol_count;
    struct value_problems *problems;
};

/* Adds to each target's problems: an info for a server that answers, a warning for one that refuses, an error for one that does not
 * answer. `level`: the log level, NULL for none. Directories are left to config_check_machine. Call it once in a process, which must
 * have no loop; downloads use the settings of the first configuration. */
void config_check_connections(const struct connect_target *targets, size_t count, const char *level);
