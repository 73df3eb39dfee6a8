/* Shared by the commands that read the server's configuration. */
#pragma once

#include "cli/options.h"
#include "config/config.h"

/* Rows of the option table of a command that reads the server's configuration. */
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

/* Loads the configuration file of --config or $SYMLOOM_CONFIG, or the defaults, and applies other options and variables (server_override).
 * Problems are written to stderr. Returns 0, and the caller releases `*config` (config_release); or an exit status, and there is no
 * `*config`. */
int server_load(const struct options *o, struct config **config);

/* Replaces values of the configuration by those of --cache-dir and --bind, or of $SYMLOOM_CACHE_DIR, $SYMLOOM_BIND and
 * $SYMLOOM_SENTRY_DSN. Returns 0, or an exit status after a report on stderr. */
int server_override(const struct options *o, struct config *config);

/* Writes problems to stderr, a line each, with the path of the configuration file (--config or $SYMLOOM_CONFIG). */
void server_report_problems(const struct options *o, const struct value_problems *problems);

/* True if --no-network is given or $SYMLOOM_NO_NETWORK is set. */
bool server_is_offline(const struct options *o);

/* True if connections are allowed, for commands that cannot work offline. False after reporting a usage error on stderr. */
bool server_may_connect(const struct options *o);

/* Loads the configuration again, from the same file and with the same overrides as at the start. Errors and warnings are appended to
 * `problems`, a line each. False if there is an error: `*config` is then not to be used. */
bool server_reload(const struct options *o, struct config **config, struct sl_buf *problems);

/* Sets levels, format and files of the log from the options, the environment and the configuration. `verbosity` is the level that -v stands
 * for, NULL if not given. Returns 0, or an exit status after a report on stderr. */
int server_log(const struct options *o, const struct config *config, const char *verbosity);

/* Returns the log level of -v: its value, if the command's -v takes one, else info, debug or trace by how often it was given. NULL when it
 * was not given, or its value is no level. */
const char *server_verbosity(const struct options *o);

/* For commands that write below cache_dir: when run as root, switches to the owner of that directory, because the service could not
 * remove or replace files of root. Returns 0, or an exit status after a report on stderr. */
int server_become_owner(const struct config *config);

/* Set the limits of downloads from the configuration: server_init_fetch at the start, after cache_init, which makes the directory for
 * temporary files; server_configure_fetch for each new configuration. */
void server_init_fetch(const struct config *config);
void server_configure_fetch(const struct config *config);

/* Prints "error: <message>" and its cause (may be NULL) on stderr; returns 1. */
int server_failed(const char *message, const char *cause);
