/* What a configuration asks of this machine, and is not there: `run` would fail, or serve nothing, for reasons that no reading
 * of the file shows. */
#pragma once

#include "config/config.h"

/* Adds to `problems`: errors for what `run`, which calls this too, does not start with, warnings for what it would not find.
 * Nothing stays changed: a directory that is to be written gets a file for a moment. */
void config_check_machine(const struct config *config, struct value_problems *problems);
