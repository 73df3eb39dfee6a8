/* `symloom scan`: indexes the debug files in directories (debuginfod.scan) once, so that the service starts with an index of them. */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "core/log.h"
#include "core/loop.h"
#include "fetch/fetch.h"
#include "scan/scan.h"

enum { FRAME_MS = 100 };

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"json", 0, OPTION_FLAG, false, NULL, "Print the summary as JSON"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct scan_command {
    const struct options *options;
    size_t first, count; /* which directories of config->scan are scanned */
    size_t current;      /* index of the directory that is being scanned */
    bool ended;          /* all were scanned: show_progress ends */
    struct progress progress;
    enum sl_code code; /* of the first directory that could not be scanned */
    struct sl_error error;
};

/* ---- what is scanned ---- */

/* True if both paths lead to the same directory, also through links; false if one does not exist. `b` ends with NUL. */
static bool is_same_directory(const char *a, struct sl_str b)
{
    char *one = realpath(a, NULL), *other = realpath(b.data, NULL);
    bool same = one && other && strcmp(one, other) == 0;
    free(one);
    free(other);
    return same;
}

/* Chooses what is scanned: `directory`, or, if it is NULL, all directories of debuginfod.scan. A directory that is not listed there
 * replaces the list, with default settings. Returns 0, or an exit status after a report. */
static int choose_scans(struct scan_command *c, struct config *config, const char *directory)
{
    c->count = config->scan.count;
    for (size_t i = 0; directory && i < config->scan.count; i++)
        if (is_same_directory(directory, config->scan.items[i].path)) {
            c->first = i;
            c->count = 1;
            return 0;
        }
    if (!directory)
        return c->count ? 0 : options_wrong(c->options, "name a directory, or a configuration with debuginfod.scan");
    char *real = realpath(directory, NULL);
    if (!real) {
        const char *why = strerror(errno);
        char text[4200];
        snprintf(text, sizeof text, "cannot read the directory %s", directory);
        return server_failed(text, why);
    }
    struct config_scan *scan = SL_ARENA_NEW(&config->arena, struct config_scan);
    const char *path = sl_arena_strndup(&config->arena, real, strlen(real));
    free(real);
    if (!scan || !path)
        return server_failed("out of memory", NULL);
    *scan = (struct config_scan){.path = sl_str(path), .kinds = SCAN_ALL_KINDS};
    config->scan.items = scan;
    config->scan.count = c->count = 1;
    return 0;
}

/* ---- scanning ---- */

/* A fiber: shows how many files of the current directory were read, until all directories are scanned. */
static void show_progress(void *arg)
{
    struct scan_command *c = arg;
    struct scan_state state;
    char path[PROGRESS_ITEM];
    while (!c->ended && scan_get_state(c->current, &state)) {
        snprintf(path, sizeof path, SL_STR_FMT " (%s)", SL_STR_ARG(state.path), state.state);
        c->progress.total = state.files;
        c->progress.done = state.done;
        progress_show(&c->progress, path, 0);
        if (!fiber_sleep(FRAME_MS))
            return;
    }
}

/* A fiber: scans one directory after the other. A failure does not stop the others; the first one is kept in c->code and c->error. */
static void scan_all(void *arg)
{
    struct scan_command *c = arg;
    struct fiber_group group;
    struct sl_error error;
    scan_open();
    fiber_group_init(&group, NULL);
    c->current = c->first;
    fiber_start(&group, show_progress, c);
    for (; c->current < c->first + c->count; c->current++) {
        enum sl_code code = scan_pass(c->current, &error);
        if (code != SL_OK && c->code == SL_OK) {
            c->code = code;
            c->error = error;
        }
    }
    c->current = c->first; /* the loop left an index past the last directory, and show_progress still reads it */
    c->ended = true;
    fiber_group_wait(&group);
    cache_drain();
}

/* ---- the summary ---- */

/* Prints what was found in a directory as text. */
static void print_text(const struct scan_state *s)
{
    printf(SL_STR_FMT ": %llu files", SL_STR_ARG(s->path), (unsigned long long)s->files);
    printf(", %llu read (%llu packages), %llu without debug files, %llu failed\n", (unsigned long long)s->new_files,
           (unsigned long long)s->packages, (unsigned long long)s->skipped, (unsigned long long)s->failed);
    printf("  index: %llu ids of %llu files, %llu bytes, made in %.1f s\n", (unsigned long long)s->ids,
           (unsigned long long)s->indexed_files, (unsigned long long)s->index_bytes, (double)s->last_pass_ms / 1e3);
}

/* Writes what was found in a directory as a JSON object. */
static void print_json(struct sl_json_writer *w, const struct scan_state *s)
{
    sl_json_begin_object(w);
    sl_json_member_str(w, "path", s->path);
    sl_json_member_u64(w, "files", s->files);
    sl_json_member_u64(w, "read", s->new_files);
    sl_json_member_u64(w, "packages", s->packages);
    sl_json_member_u64(w, "skipped", s->skipped);
    sl_json_member_u64(w, "failed", s->failed);
    sl_json_member_u64(w, "ids", s->ids);
    sl_json_member_u64(w, "indexed_files", s->indexed_files);
    sl_json_member_u64(w, "index_bytes", s->index_bytes);
    sl_json_member_u64(w, "milliseconds", s->last_pass_ms);
    sl_json_member_or_null(w, "error", sl_str(*s->last_error ? s->last_error : NULL));
    sl_json_end_object(w);
}

/* Prints for each directory what was found in it, as text or, with --json, as a JSON array. */
static void print_summary(const struct scan_command *c)
{
    struct scan_state state;
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    bool json = option_given(c->options, "json");
    sl_json_begin_array(&w);
    for (size_t i = c->first; i < c->first + c->count && scan_get_state(i, &state); i++)
        if (json)
            print_json(&w, &state);
        else
            print_text(&state);
    sl_json_end_array(&w);
    if (json)
        printf(SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&out)));
    sl_buf_free(&out);
}

/* ---- the command ---- */

/* Starts the loop and the cache, scans the chosen directories, and prints the summary. Returns the exit status. */
static int run_passes(struct scan_command *c, struct config *config)
{
    loop_init(0);
    log_start();
    c->code = cache_init(config, catalog_kinds, catalog_kind_count, &c->error);
    if (c->code == SL_OK) {
        catalog_init(config);
        scan_configure(config);
        server_init_fetch(config);
        progress_begin(&c->progress, c->options, "scanning");
        loop_run_fiber(scan_all, c);
        progress_end(&c->progress);
        print_summary(c);
        fetch_close();
        catalog_close();
        cache_close();
    }
    log_stop();
    loop_close();
    return c->code == SL_OK ? 0 : server_failed("the scan failed", c->error.message);
}

/* Runs `symloom scan`: loads the configuration and scans the directory of the command line, or all of debuginfod.scan, once. Returns the
 * exit status. */
static int scan_main(const struct options *o)
{
    struct config *config = NULL;
    struct scan_command command = {.options = o};
    if (!options_arguments(o, 1))
        return 2;
    int status = server_load(o, &config);
    if (status == 0)
        status = choose_scans(&command, config, o->argument_count ? o->arguments[0] : NULL);
    if (status == 0)
        status = server_log(o, config, server_verbosity(o));
    if (status == 0 && config->cache_dir)
        status = server_become_owner(config);
    if (status == 0)
        status = run_passes(&command, config);
    config_release(config);
    return status;
}

const struct command command_scan = {
    .name = "scan",
    .summary = "find the debug files in directories and packages",
    .usage = "scan [OPTION...] [DIR]",
    .about = "Reads the debug files and packages below DIR, or below all directories of `debuginfod.scan`, and prints "
             "a summary.\n"
             "With a cache directory the service uses what was found; later passes read only new files.",
    .examples = "symloom scan -c config.yml\n"
                "symloom scan /srv/mirror/debug",
    .options = specs,
    .groups = {{"Most used", "config cache-dir json"}, {"Log", "log-level log-format verbose quiet"}},
    .run = scan_main,
};
