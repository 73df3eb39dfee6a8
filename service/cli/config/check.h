/* `config check`: what its files share. */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Checks the file, or (NULL) that of the options and the environment; with --user, those that commands of a user read. What was
 * found is on standard output. The exit status. */
int config_check(const struct options *o, const char *path);

/* ---- machine.c ----
 *
 * What a configuration asks of this machine, and is not there: `run` would fail, or serve nothing, for reasons that no reading
 * of the file shows. */

/* Adds to `problems`: errors for what `run`, which calls this too, does not start with, warnings for what it would not find.
 * Nothing stays changed: a directory that is to be written gets a file for a moment. */
void config_check_machine(const struct config *config, struct value_problems *problems);

/* ---- connect.c ----
 *
 * Whether what a configuration names answers: its sources, the shared cache and the store of uploads, each asked one question
 * that changes nothing. */

struct connect_target {
    const struct config *config;  /* without errors */
    const struct source *symbols; /* what its `symbols` stand for, with commands of a user */
    size_t symbol_count;
    struct value_problems *problems;
};

/* Adds to the problems of each what came of it: an info for each that answers, a warning for one that refuses, an error for one
 * that does not answer. `level`: of the log, NULL for none. Directories are config_check_machine's. Once in a process, which has
 * no loop; downloads are as the first configuration has them. */
void config_check_connections(const struct connect_target *targets, size_t count, const char *level);
