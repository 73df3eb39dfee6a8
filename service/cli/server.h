/* Shared by the commands that read the server's configuration. */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Rows for the option tables of these commands. */
#define SERVER_OPTIONS                                                                                                 \
    {"config", 'c', OPTION_VALUE, false, "FILE", "Read this configuration file ($SYMLOOM_CONFIG; default: none)"},     \
        {"cache-dir", 0, OPTION_VALUE, false, "DIR", "Keep the disk cache in DIR; '' disables it"},                    \
        {"log-level", 0,       OPTION_VALUE,                                                                           \
         false,       "LEVEL", "Log off, error, warn, info, debug or trace; also module=level,..."},                   \
        {"log-format", 0, OPTION_VALUE, false, "FORMAT", "Log as auto, pretty, simplified or json"},                   \
        {"verbose", 'v', OPTION_FLAG, true, NULL, "Log more: -v info, -vv debug, -vvv trace"},                         \
    {                                                                                                                  \
        "quiet", 'q', OPTION_FLAG, false, NULL, "Log only errors"                                                      \
    }

/* Returns the environment variable, NULL when unset or empty. */
const char *server_environment(const char *name);

/* Loads the configuration that the options and the environment name, and applies their overrides. Problems are written to stderr. 0, or
 * the exit status; the caller frees `*config`. */
int server_load(const struct options *o, struct config **config);

/* Applies the overrides of the options and the environment. 0, or the exit status after a report on stderr. */
int server_override(const struct options *o, struct config *config);

/* Writes problems of the configuration that the options and the environment name to stderr, a line each. */
void server_report_problems(const struct options *o, const struct value_problems *problems);

/* True with --no-network or its environment variable. */
bool server_is_offline(const struct options *o);

/* True if connections are allowed, for commands that cannot work offline. False after reporting a usage error on stderr. */
bool server_may_connect(const struct options *o);

/* Like server_load, but appends the problems (errors and warnings, a line each) to `problems`. */
bool server_reload(const struct options *o, struct config **config, struct sl_buf *problems);

/* Sets levels, format and destination of the log; `verbosity` is the level that -v stands for, NULL if not given. 0, or the exit status
 * after a report on stderr. */
int server_log(const struct options *o, const struct config *config, const char *verbosity);

/* Returns the level that -v stands for: its value, else info, debug or trace by how often it was given. NULL when it was not given, or
 * its value is no level. */
const char *server_verbosity(const struct options *o);

/* For commands that write below cache_dir: when run as root, switches to the owner of that directory, because the service could not
 * remove or replace files of root. 0, or the exit status after a report on stderr. */
int server_become_owner(const struct config *config);

/* Initialise and reconfigure downloads from the configuration; call the first after cache_init. */
void server_init_fetch(const struct config *config);
void server_configure_fetch(const struct config *config);

/* Prints "error: <message>" and its cause (may be NULL) on stderr; returns 1. */
int server_failed(const char *message, const char *cause);
