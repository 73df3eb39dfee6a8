/* `symloom cache`: invalidates cached files of a source, also in running services; lists and releases files that are quarantined because
 * services crashed on them. */
#include "cli/cli.h"
#include "cli/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/log.h"
#include "core/loop.h"
#include "fetch/fetch.h"
#include "cache_kinds/invalidate.h"
#include "catalog/catalog.h"
#include "origin/origin.h"

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"source", 0, OPTION_VALUE, false, "ID", "Invalidate files of this source; alone, all of them"},
    {"location", 0, OPTION_VALUE, false, "URI", "Invalidate one file, by its location as candidates list it"},
    {"debug-file", 0, OPTION_VALUE, false, "NAME", "Invalidate the files of a module (with --debug-id)"},
    {"debug-id", 0, OPTION_VALUE, false, "ID", "Invalidate the module with this debug id"},
    {"hosts", 0, OPTION_FLAG, false, NULL, "Retry hosts now that are skipped after repeated failures"},
    {"clear", 0, OPTION_FLAG, false, NULL, "Release all quarantined files"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct invalidation_run {
    struct invalidation what;
    bool hosts;
    enum sl_code code;
    struct sl_error error;
};

/* Invalidates files or, with --hosts, unblocks hosts; then waits for the cache's background work. Runs in a fiber, because these functions
 * suspend their caller. */
static void invalidate(void *arg)
{
    struct invalidation_run *i = arg;
    i->code = i->hosts ? release_blocked_hosts(&i->error) : invalidate_entries(&i->what, &i->error);
    cache_drain();
}

/* Warns of a source id that may be a typing error. It is no error: requests may bring sources that are not in the configuration. */
static void warn_of_unknown_source(struct sl_str id, const struct config *config)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (sl_str_equal(config->sources[i].id, id))
            return;
    fprintf(stderr,
            "warning: the configuration has no source '" SL_STR_FMT
            "'; only files of requests that name this source are invalidated\n",
            SL_STR_ARG(id));
}

/* Starts the loop, the log and the cache, which an invalidation needs, runs it, and ends them. Returns the exit status. */
static int cache_run(struct invalidation_run *i, const struct config *config)
{
    if (!i->hosts) /* --hosts unblocks servers that failed repeatedly, and names no source */
        warn_of_unknown_source(i->what.source, config);
    loop_init(0); /* 0: a thread for each core */
    log_start();
    i->code = cache_init(config, catalog_kinds, catalog_kind_count, &i->error);
    if (i->code == SL_OK) {
        catalog_init(config);
        server_init_fetch(config);
        loop_run_fiber(invalidate, i);
        fetch_close();
        catalog_close();
        cache_close();
    }
    log_stop();
    loop_close();
    return i->code == SL_OK ? 0 : server_failed("cannot invalidate cached files", i->error.message);
}

/* ---- quarantine ---- */
/* Prints a line about a file that was in use when a service crashed or was killed: cache kind, beginning of the key, how often either
 * happened, until when it is quarantined, and a description. */
static void show_suspect(void *arg, const struct cache_suspect *suspect)
{
    char until[40] = "not quarantined";
    time_t at = (time_t)suspect->until_s;
    struct tm tm;
    (void)arg;
    if (at)
        strftime(until, sizeof until, "quarantined until %Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    printf("%s %.16s  %u crashes, %u kills, %s  %s\n", suspect->kind, suspect->key, suspect->crashes, suspect->kills,
           until, suspect->about);
}

/* Lists the files that were in use when services crashed or were killed, quarantined ones among them; with --clear releases all. Returns
 * the exit status. */
static int quarantine(const struct options *o, const struct config *config)
{
    if (option_given(o, "clear"))
        printf("released %zu files from quarantine\n", cache_quarantine_clear(config->cache_dir));
    else
        cache_quarantine_list(config->cache_dir, show_suspect, NULL);
    return 0;
}

/* ---- the command ---- */

/* Checks that services can be notified: through an existing cache_dir (a missing one would be created, and no service would look there) or,
 * unless `directory_only`, through Redis without a cache_dir. Returns 0, or the exit status after a report. */
static int check_cache_dir(const struct config *config, bool directory_only)
{
    if (!config->cache_dir)
        return config->shared.redis_url && !directory_only
                   ? 0
                   : server_failed(
                         directory_only
                             ? "cache_dir is not set: pass --cache-dir or a configuration with -c"
                             : "neither cache_dir nor shared_cache.redis is set, so no service can be notified; pass "
                               "--cache-dir or -c",
                         NULL);
    return access(config->cache_dir, F_OK) == 0 ? 0 : server_failed(config->cache_dir, strerror(errno));
}

/* True if an option that names files was given; --hosts cannot be combined with one. */
static bool names_files(const struct invalidation *what)
{
    return what->source.size || what->location.size || what->debug_file.size || what->debug_id.size;
}

/* Checks the arguments, and runs the command as the owner of the cache directory, so that the service can use what is written. Returns the
 * exit status. */
static int load_and_run(const struct options *o)
{
    struct config *config = NULL;
    struct invalidation_run i = {
        .what = {sl_str(option_value(o, "source", "")), sl_str(option_value(o, "location", "")),
                 sl_str(option_value(o, "debug-file", "")), sl_str(option_value(o, "debug-id", ""))}};
    const char *what = o->argument_count == 1 ? o->arguments[0] : "";
    bool quarantines = strcmp(what, "quarantine") == 0, invalidates = strcmp(what, "invalidate") == 0;
    i.hosts = option_given(o, "hosts");
    /* --hosts cannot be combined with options that name files */
    if (!quarantines && !(invalidates && (i.hosts ? !names_files(&i.what) : invalidation_is_valid(&i.what))))
        return options_wrong(
            o, "expected 'cache invalidate --source ID [--location URI | --debug-file NAME --debug-id ID]', "
               "'cache invalidate --hosts' or 'cache quarantine [--clear]'");
    int status = server_load(o, &config);
    if (status == 0)
        status = server_log(o, config, server_verbosity(o));
    if (status == 0)
        status = check_cache_dir(config, quarantines);
    if (status == 0)
        status = server_become_owner(config);
    if (status == 0)
        status = quarantines ? quarantine(o, config) : cache_run(&i, config);
    config_release(config);
    return status;
}

const struct command command_cache = {
    .name = "cache",
    .summary = "invalidate cached files, list quarantined files",
    .usage = "cache invalidate --source ID [OPTION...] | cache invalidate --hosts | cache quarantine [--clear]",
    .about = "Invalidates cached files of a source, or lists files that crashed the service and are "
             "quarantined for a day. Safe while services use the cache.",
    .examples = "symloom cache quarantine -c config.yml",
    .options = specs,
    .groups = {{"Most used", "config cache-dir source location debug-file debug-id hosts clear"},
               {"Log", "log-level log-format verbose quiet"}},
    .run = load_and_run,
};
