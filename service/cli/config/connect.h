/* Whether what a configuration names answers: its sources, the shared cache and the store of uploads, each asked one question
 * that changes nothing. */
#pragma once

#include "config/config.h"

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
