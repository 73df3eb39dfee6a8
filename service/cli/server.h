/* What the commands that read the server's configuration share. */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Rows for their tables of options. */
#define SERVER_OPTIONS                                                                                                 \
    {"config", 'c', OPTION_VALUE, false, "FILE", "configuration file (default: $SYMLOOM_CONFIG, else all defaults)"},  \
        {"cache-dir", 0, OPTION_VALUE, false, "DIR", "root of the disk cache; '' disables it"},                        \
        {"log-level", 0, OPTION_VALUE, false, "LEVEL", "off, error, warn, info, debug, trace; also module=level,..."}, \
        {"log-format", 0, OPTION_VALUE, false, "FORMAT", "auto, pretty, simplified, json"},                            \
        {"verbose", 'v', OPTION_FLAG, true, NULL, "log more: -v info, -vv debug, -vvv trace"},                         \
    {                                                                                                                  \
        "quiet", 'q', OPTION_FLAG, false, NULL, "log errors only"                                                      \
    }

/* The environment variable, NULL when unset or empty. */
const char *server_environment(const char *name);

/* Loads the configuration that the options and the environment name, and lets them override it. Problems are written to
 * stderr. 0, or the exit status; the caller frees `*config`. */
int server_load(const struct options *o, struct config **config);

/* Lets options and environment override what the file says. 0, or the exit status after a report on stderr. */
int server_override(const struct options *o, struct config *config);

/* Writes problems of the configuration that the options and the environment name to stderr, a line each. */
void server_report_problems(const struct options *o, const struct value_problems *problems);

/* --no-network, or its variable. */
bool server_is_offline(const struct options *o);

/* Whether connections are allowed; for commands that are nothing without. False after a report on stderr: a usage error. */
bool server_may_connect(const struct options *o);

/* As server_load, but the problems (errors and warnings, a line each) go into `problems`. */
bool server_reload(const struct options *o, struct config **config, struct sl_buf *problems);

/* Sets levels, format and destination of the log; `verbosity`: the level that -v stands for, NULL
 * for none. 0, or the exit status after a report on stderr. */
int server_log(const struct options *o, const struct config *config, const char *verbosity);

/* The level that -v stands for: its value's, else info, debug or trace by how often it was given. NULL when it was not
 * given, or its value is no level. */
const char *server_verbosity(const struct options *o);

/* Of a command that writes below cache_dir, when root runs it: becomes the owner of that directory, for the service would not be
 * allowed to remove or replace what root leaves there. 0, or the exit status after a report on stderr. */
int server_become_owner(const struct config *config);

/* Downloads as the configuration has them; after cache_init. */
void server_init_fetch(const struct config *config);
void server_configure_fetch(const struct config *config);

/* "error: <message>", and what it was caused by (may be NULL), on stderr; returns 1. */
int server_failed(const char *message, const char *cause);
