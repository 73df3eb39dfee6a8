/* The list of the sub-commands: the one place that names them all. */
#pragma once

#include <stddef.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;    /* in half a line */
    const char *examples; /* what one would type, line by line; NULL: nothing that says more than the usage */
};

extern const struct command commands_all[];
extern const size_t commands_count;
