/* Shared by the commands that read the server's configuration: loading it, log, user, downloads. */
#include "cli/server.h"

#include "cli/cli.h"
#include "cli/run/run.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/log.h"
#include "fetch/fetch.h"
#include "cache_kinds/invalidate.h"

int server_failed(const char *message, const char *cause)
{
    return report_error(1, message, cause);
}

const char *server_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Prints the problems of the configuration file `path` on stderr; nothing when out of memory. */
static void report_problems(const char *path, const struct value_problems *problems)
{
    struct sl_buf text = {0};
    config_format_problems(path, problems, &text);
    if (!text.failed && text.size)
        fwrite(text.data, 1, text.size, stderr);
    sl_buf_free(&text);
}

/* Returns the configuration file: of --config, or $SYMLOOM_CONFIG; NULL if there is none. */
static const char *config_path(const struct options *o)
{
    return option_value(o, "config", server_environment("SYMLOOM_CONFIG"));
}

void server_report_problems(const struct options *o, const struct value_problems *problems)
{
    const char *path = config_path(o);
    report_problems(path ? path : "defaults", problems);
}

/* Replaces the configured Sentry DSN by $SYMLOOM_SENTRY_DSN, if that is set; if it is empty, no errors are sent. Returns 0, or an exit
 * status after a report. */
static int override_sentry(struct config *config)
{
    const char *dsn = getenv("SYMLOOM_SENTRY_DSN");
    if (!dsn)
        return 0;
    if (*dsn && !errors_dsn_valid(sl_str(dsn)))
        return server_failed("SYMLOOM_SENTRY_DSN is not a DSN (example: https://key@sentry.io/1)", NULL);
    const char *copy = *dsn ? sl_arena_strndup(&config->arena, dsn, strlen(dsn)) : NULL;
    config->sentry_dsn = secret_make((struct sl_str){copy, copy ? strlen(copy) : 0});
    return *dsn && !copy ? server_failed("out of memory", NULL) : 0;
}

/* --bind and $SYMLOOM_BIND name one listener, which replaces all configured ones: the text is not split at commas. */
int server_override(const struct options *o, struct config *config)
{
    const char *cache_dir = option_value(o, "cache-dir", server_environment("SYMLOOM_CACHE_DIR"));
    const char *bind = option_given(o, "bind") ? option_value(o, "bind", NULL) : server_environment("SYMLOOM_BIND");
    if (cache_dir) {
        config->cache_dir = *cache_dir ? sl_arena_strndup(&config->arena, cache_dir, strlen(cache_dir)) : NULL;
        config_note_override(config, "cache_dir", !option_given(o, "cache-dir"));
    }
    if (bind) {
        config_note_override(config, "bind", !option_given(o, "bind"));
        config->bind = SL_ARENA_ARRAY(&config->arena, const char *, 1);
        if (!config->bind)
            return server_failed("out of memory", NULL);
        config->bind[0] = bind;
        config->bind_count = 1;
    }
    return override_sentry(config);
}

bool server_is_offline(const struct options *o)
{
    return option_given(o, "no-network") || server_environment("SYMLOOM_NO_NETWORK");
}

bool server_may_connect(const struct options *o)
{
    return !server_is_offline(o) ||
           options_wrong(o, "--no-network does not allow this: the command needs the network") == 0;
}

bool server_reload(const struct options *o, struct config **config, struct sl_buf *problems)
{
    const char *path = config_path(o);
    struct sl_arena arena = {0};
    struct value_problems found = {.arena = &arena};
    struct sl_error error = {0};
    enum sl_code code = config_load(path, config, &found, &error);
    config_format_problems(path ? path : "", &found, problems);
    if (code != SL_OK && !found.errors) /* an error outside of the keys: the file is unreadable, or out of memory */
        sl_buf_printf(problems, "%s\n", error.message);
    sl_arena_free(&arena);
    if (code == SL_OK && server_override(o, *config) != 0) {
        config_release(*config);
        return false;
    }
    return code == SL_OK;
}

int server_load(const struct options *o, struct config **config)
{
    const char *path = config_path(o);
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct sl_error error = {0};
    enum sl_code code = config_load(path, config, &problems, &error);
    if (path)
        report_problems(path, &problems);
    sl_arena_free(&arena);
    if (code != SL_OK)
        return server_failed("failed loading config", error.message);
    int status = server_override(o, *config);
    if (status)
        config_release(*config);
    return status;
}

/* Returns the first entry of `list`, such as "info,fetch=debug", that is a log level without a module; NULL if there is none, or `list` is
 * NULL. */
static const char *bare_level(const char *list)
{
    static const char *const levels[] = {"off", "error", "warn", "info", "debug", "trace"};
    for (; list && *list; list += strcspn(list, ",") + (list[strcspn(list, ",")] == ','))
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            if (strcspn(list, ",") == strlen(levels[i]) && strncmp(list, levels[i], strlen(levels[i])) == 0)
                return levels[i];
    return NULL;
}

const char *server_verbosity(const struct options *o)
{
    static const char *const by_count[] = {"info", "debug", "trace"};
    size_t count;
    const char *const *values = option_values_of_all(o, "verbose", &count);
    for (size_t i = count; i-- > 0;) /* the last value counts; a list of several levels does not */
        if (values[i][0])
            return strchr(values[i], ',') ? NULL : bare_level(values[i]);
    return count ? by_count[count < 3 ? count - 1 : 2] : NULL;
}

/* Returns the log levels: of --log-level, --quiet or -v (`verbosity`), else of $SYMLOOM_LOG or $RUST_LOG, else of the configuration. */
static const char *log_levels(const struct options *o, const struct config *config, const char *verbosity)
{
    const char *level = option_value(o, "log-level", NULL);
    if (!level && option_given(o, "quiet"))
        level = "error";
    if (!level)
        level = verbosity;
    if (!level)
        level = server_environment("SYMLOOM_LOG");
    if (!level)
        level = bare_level(server_environment("RUST_LOG"));
    return level ? level : config->log_level;
}

int server_log(const struct options *o, const struct config *config, const char *verbosity)
{
    static const char *const formats[] = {"auto", "pretty", "simplified", "json"};
    const char *levels = log_levels(o, config, verbosity), *format = option_value(o, "log-format", NULL);
    size_t chosen = config->log_format;
    struct sl_error error = {0};
    /* sets `chosen` to the index of the format of --log-format; 4 if it is unknown */
    for (chosen = format ? 0 : chosen; format && chosen < 4 && strcmp(format, formats[chosen]) != 0; chosen++)
        continue;
    if (chosen == 4) {
        fprintf(stderr, "error: unknown log format '%s'; expected auto, pretty, simplified or json\n", format);
        return 2;
    }
    log_set_format((enum log_format)chosen);
    if (!log_set_levels(levels)) {
        fprintf(stderr, "error: unknown log level '%s'\n", levels);
        return 2;
    }
    if (log_set_file(config->log_file, &error) != true)
        return server_failed("cannot open the log file", error.message);
    if (log_set_access_file(config->access_file, &error) != true)
        return server_failed("cannot open the access log file", error.message);
    return 0;
}

int server_become_owner(const struct config *config)
{
    struct stat st;
    if (geteuid() != 0 || !config->cache_dir || stat(config->cache_dir, &st) != 0 || st.st_uid == 0)
        return 0;
    const struct passwd *user = getpwuid(st.st_uid);
    /* an owner without an entry in the user database has no other groups than the directory's */
    bool ok = user ? initgroups(user->pw_name, user->pw_gid) == 0 && setgid(user->pw_gid) == 0
                   : setgroups(1, &st.st_gid) == 0 && setgid(st.st_gid) == 0;
    return ok && setuid(st.st_uid) == 0 ? 0 : server_failed("cannot switch to the owner of cache_dir", strerror(errno));
}

/* Returns the options of downloads (timeouts, limits, addresses) that the configuration sets; valid until the next call. */
static struct fetch_options *make_fetch_options(const struct config *config)
{
    static struct fetch_options options;
    options = (struct fetch_options){
        .connect_timeout_ns = config->connect_timeout_ns,
        .head_timeout_ns = config->head_timeout_ns,
        .max_download_timeout_ns = config->max_download_timeout_ns,
        .stall_timeout_ns = config->download_stall_timeout_ns,
        .max_download_size = config->max_download_size,
        .max_inflate_ratio = config->max_inflate_ratio,
        .max_downloads = config->max_downloads,
        .max_downloads_per_host = config->max_downloads_per_host,
        .connect_to_reserved_ips = config->connect_to_reserved_ips,
        .allowed_reserved_networks = config->allowed_reserved_networks,
        .allowed_reserved_network_count = config->allowed_reserved_network_count,
        .deny_list_enabled = config->deny_list_enabled,
        .deny_window_ns = config->deny_list_time_window_ns,
        .deny_bucket_ns = config->deny_list_bucket_size_ns,
        .deny_block_ns = config->deny_list_block_time_ns,
        .deny_threshold = config->deny_list_threshold,
        .deny_never_block = config->deny_list_never_block_hosts,
        .deny_never_block_count = config->deny_list_never_block_host_count,
        .released = were_hosts_released_since, /* asked whether the operator has unblocked the hosts of the deny list */
        .tmp_dir = cache_tmp_dir(),
    };
    return &options;
}

void server_init_fetch(const struct config *config)
{
    fetch_init(make_fetch_options(config));
}

void server_configure_fetch(const struct config *config)
{
    fetch_configure(make_fetch_options(config));
}
