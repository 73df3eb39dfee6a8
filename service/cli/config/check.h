/* `symloom config check`: checks of the configuration (check.c), the machine (machine.c) and the servers (connect.c). */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* `config check`: checks the file `path` or, if that is NULL, the file of --config or $SYMLOOM_CONFIG; with --user, the files that user
 * commands read. Prints the problems on standard output. Returns the exit status. */
int config_check(const struct options *o, const char *path);

/* ---- machine.c ----
 *
 * Checks the machine against a configuration: missing files and the like, with which `run` would fail or serve nothing, and which the
 * configuration file alone does not show. */

/* Adds an error for each problem with which `symloom run`, which also calls this function, would not start, and a warning for everything
 * else that is missing. To test whether a directory is writable, it creates a file and removes it again. */
void config_check_machine(const struct config *config, struct value_problems *problems);

/* Starts a worker process (conversion.isolation), in which untrusted files are read. Adds a warning if no mechanism, such as seccomp,
 * confines that process; otherwise, with `tells_all`, an info that names the mechanism. Call it while the process has one thread. */
void config_check_isolation(const struct config *config, bool tells_all, struct value_problems *problems);

/* ---- connect.c ----
 *
 * Checks that the servers of a configuration answer: its sources, the shared cache and the upload store each get one request without
 * side effects. */

struct connect_target {           /* a configuration whose servers are checked */
    const struct config *config;  /* must have no errors */
    const struct source *symbols; /* the sources of its `symbols`, for user commands */
    size_t symbol_count;
    struct value_problems *problems;
};

/* Adds to each target's problems: an info for a server that answers, a warning for one that refuses, an error for one that does not
 * answer. `level`: level of the log messages that are printed, NULL for none. Sources that are directories are not checked:
 * config_check_machine does that. Call it once in a process, which must have no loop (it runs one of its own); downloads use the settings
 * of the first configuration. */
void config_check_connections(const struct connect_target *targets, size_t count, const char *level);
