/* `symloom cleanup`: removes expired entries from the disk cache. */
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json_write.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "core/duration.h"

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"dry-run", 0, OPTION_FLAG, false, NULL, "Print what would be removed; remove nothing"},
    {"repeat", 0, OPTION_NEXT, false, "INTERVAL", "Repeat at this interval (default: cache_cleanup_interval)"},
    {"only", 0, OPTION_VALUE, false, "KIND,...", "Clean only these kinds of cache entries"},
    {"all", 0, OPTION_FLAG, false, NULL, "Remove entries regardless of their age"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print totals as JSON"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct cleanup_row {
    const char *kind;
    struct cleanup_totals totals;
};

enum { SIZE_TEXT = 16 };

/* Formats a number of bytes as `text`, in the largest unit that leaves at least 1: "1.5 GiB". Returns `text`. */
static const char *size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    snprintf(text, SIZE_TEXT, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
    return text;
}

/* Prints a line of the table: number and size of a kind's files that are left, and of those that were removed. */
static void print_row(const struct cleanup_row *row)
{
    char size[SIZE_TEXT], freed[SIZE_TEXT];
    const struct cleanup_totals *t = &row->totals;
    printf(" %-16s  %10llu  %12s  %10llu  %12s\n", row->kind, (unsigned long long)t->files, size_text(t->bytes, size),
           (unsigned long long)t->removed_files, size_text(t->removed_bytes, freed));
}

/* Prints a row per kind and their sum. */
static void print_table(const struct cleanup_row *rows, size_t count)
{
    struct cleanup_row total = {.kind = "total"};
    printf(" %-16s  %10s  %12s  %10s  %12s\n", "Kind", "Files", "Size", "Removed", "Freed");
    for (size_t i = 0; i < count; i++) {
        print_row(&rows[i]);
        total.totals.files += rows[i].totals.files;
        total.totals.bytes += rows[i].totals.bytes;
        total.totals.removed_files += rows[i].totals.removed_files;
        total.totals.removed_bytes += rows[i].totals.removed_bytes;
    }
    print_row(&total);
}

/* Prints the totals of each kind as one JSON object, with the number of errors, which the table does not show. */
static void print_json(const struct cleanup_row *rows, size_t count, bool dry_run)
{
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    sl_json_begin_object(&w);
    sl_json_member_boolean(&w, "dry_run", dry_run);
    sl_json_member_array(&w, "kinds");
    for (size_t i = 0; i < count; i++) {
        sl_json_begin_object(&w);
        sl_json_member_str(&w, "kind", sl_str(rows[i].kind));
        sl_json_member_u64(&w, "files", rows[i].totals.files);
        sl_json_member_u64(&w, "bytes", rows[i].totals.bytes);
        sl_json_member_u64(&w, "removed", rows[i].totals.removed_files);
        sl_json_member_u64(&w, "removed_bytes", rows[i].totals.removed_bytes);
        sl_json_member_u64(&w, "errors", rows[i].totals.errors);
        sl_json_end_object(&w);
    }
    sl_json_end_array(&w);
    sl_json_end_object(&w);
    printf(SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&out)));
    sl_buf_free(&out);
}

/* True if the list "a,b" contains the name. Each step of the loop skips an item, and its comma unless the list ends
 * there. */
static bool names_kind(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == size && memcmp(at, name, size) == 0)
            return true;
    return false;
}

/* True if a kind of cache entries has this name, which is not NUL-terminated. */
static bool is_kind(const char *name, size_t size)
{
    for (size_t i = 0; i < catalog_kind_count; i++)
        if (strlen(catalog_kinds[i]->name) == size && memcmp(catalog_kinds[i]->name, name, size) == 0)
            return true;
    return false;
}

/* True if `list`, the value of --only (NULL: not given), has only kinds that exist; otherwise reports the first that does not. */
static bool known_kinds(const struct options *o, const char *list)
{
    if (list && !*list) {
        options_wrong(o, "--only needs at least one kind");
        return false;
    }
    for (const char *at = list; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (!is_kind(at, strcspn(at, ","))) {
            fprintf(stderr, "error: --only: unknown kind '%.*s'; expected one of", (int)strcspn(at, ","), at);
            for (size_t i = 0; i < catalog_kind_count; i++)
                fprintf(stderr, " %s", catalog_kinds[i]->name);
            fputc('\n', stderr);
            options_try_help("cleanup");
            return false;
        }
    return true;
}

/* Sets options->only to the kinds in `list`, the value of --only: "a,b", or NULL for all kinds (only_count stays 0). The caller frees the
 * array `*names`. False when out of memory. */
static bool cleanup_split(const char *list, struct cleanup_options *options, const char ***names)
{
    *names = calloc(catalog_kind_count, sizeof **names);
    for (size_t i = 0; *names && list && i < catalog_kind_count; i++)
        if (names_kind(list, catalog_kinds[i]->name))
            (*names)[options->only_count++] = catalog_kinds[i]->name;
    options->only = *names;
    return *names != NULL;
}

/* Cleans the cache once, and prints the result. All kinds are cleaned in one call, because they share the size limit. Returns the exit
 * status. */
static int clean(const struct options *o, const struct config *config)
{
    struct cleanup_options options = {.dry_run = option_given(o, "dry-run"), .all = option_given(o, "all")};
    const char **names;
    /* all: totals of all kinds, which are not used: print_table adds up those that it shows */
    struct cleanup_totals all, *by_kind = calloc(catalog_kind_count, sizeof *by_kind);
    struct cleanup_row *rows = calloc(catalog_kind_count, sizeof *rows);
    struct sl_error error = {0};
    struct progress progress;
    size_t count = 0;
    int status = 0;
    progress_begin(&progress, o, "cleaning");
    progress_file(&progress, config->cache_dir);
    if (!cleanup_split(option_value(o, "only", NULL), &options, &names) || !by_kind || !rows)
        status = server_failed("out of memory", NULL);
    else if (cache_cleanup(config, catalog_kinds, catalog_kind_count, &options, &all, by_kind, &error) != SL_OK)
        status = server_failed("cleanup failed", error.message);
    progress_finish(&progress);
    for (size_t i = 0; by_kind && rows && i < catalog_kind_count; i++)
        if (options.only_count == 0 || names_kind(option_value(o, "only", NULL), catalog_kinds[i]->name))
            rows[count++] = (struct cleanup_row){catalog_kinds[i]->name, by_kind[i]};
    if (status == 0 && option_given(o, "json"))
        print_json(rows, count, options.dry_run);
    else if (status == 0)
        print_table(rows, count);
    free(rows);
    free(by_kind);
    free(names);
    return status;
}

/* Cleans every `ns` nanoseconds until a signal ends the program. clean() reports a failed cleanup; the next one may succeed. */
static void repeat(const struct options *o, const struct config *config, uint64_t ns)
{
    const struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    for (;;) {
        clean(o, config);
        fflush(stdout);
        nanosleep(&pause, NULL);
    }
}

/* The command: cleans the cache once or, with --repeat, again and again; --repeat without a value takes the interval from the
 * configuration. Returns the exit status. */
static int cleanup_run(const struct options *o)
{
    struct config *config = NULL;
    uint64_t ns = 0;
    const char *text = option_value(o, "repeat", "");
    if (!options_arguments(o, 0) || !known_kinds(o, option_value(o, "only", NULL)))
        return 2;
    if (*text && (!duration_parse(sl_str(text), &ns) || ns == 0))
        return options_wrong(o, "--repeat: '%s' is not a duration (example: 1h)", text);
    int status = server_load(o, &config);
    if (status == 0)
        status = server_log(o, config, server_verbosity(o));
    if (status == 0 && !config->cache_dir)
        status = server_failed("cache_dir is not set: pass --cache-dir or a configuration with -c", NULL);
    else if (status == 0)
        status = server_become_owner(config);
    if (status == 0 && option_given(o, "repeat"))
        repeat(o, config, ns ? ns : config->cache_cleanup_interval_ns);
    else if (status == 0)
        status = clean(o, config);
    config_release(config);
    return status;
}

const struct command command_cleanup = {
    .name = "cleanup",
    .summary = "remove expired entries from the disk cache",
    .usage = "cleanup [OPTION...]",
    .about = "Removes expired entries from the disk cache. Safe while a service uses the cache.",
    .examples = "symloom cleanup -c config.yml --dry-run\n"
                "symloom cleanup --cache-dir ~/.cache/symloom",
    .options = specs,
    .groups = {{"Most used", "config cache-dir dry-run repeat only all json"},
               {"Log", "log-level log-format verbose quiet"}},
    .run = cleanup_run,
};
