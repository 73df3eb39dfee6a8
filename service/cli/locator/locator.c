/* Collects the sources that options and configuration name, and gets files from them through the user's cache (locator.h). */
#include "cli/locator/locator.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/server.h"
#include "core/log.h"
#include "core/loop.h"
#include "catalog/catalog.h"
#include "fetch/fetch.h"

struct held_file { /* keeps a file in memory until locator_close */
    struct cache_item *item;
    struct sl_mapping mapping;
    struct held_file *next;
};

struct locator {
    const struct options *options;
    struct sl_arena arena;
    struct config *layers[2], **files; /* project file and user's file (locator_load_config); --source files */
    size_t file_count;
    /* The sources of the options, and `symbols` of the configuration: searched first. A root is a directory or file given without a layout;
     * it has several items here, one for each directory layout that is tried, and an index of all debug files at or below it. */
    struct locator_source_list preferred;
    struct locator_source_list configured; /* `sources` of the configuration: searched last */
    struct file_index **indexes;           /* one for each root of `preferred`: preferred.roots[i] */
    struct file_index *named_files;        /* index of the files of locator_add_files; NULL = none */
    struct locator_source_list all;        /* all sources in search order, for other code (locator_sources) */
    struct held_file *held;
    struct progress progress;
    const char *verbosity;
    struct missing_report failures; /* servers that failed, and why */
    bool running;
};

/* ---- sources ---- */

/* Adds the `sources` of a configuration to the list. */
static enum sl_code add_all(struct locator_source_list *list, const struct config *config, struct sl_error *error)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (!config->sources[i].index && /* leaves out sources made from debuginfod.scan: only a service scans */
            !source_list_add(list, &config->sources[i]))
            return sl_fail(error, SL_BUSY, "out of memory");
    return SL_OK;
}

/* Adds the sources of each --source file. */
static enum sl_code add_files(struct locator *b, struct sl_error *error)
{
    size_t count;
    const char *const *paths = option_values(b->options, "source", &count);
    enum sl_code code = SL_OK;
    b->files = count ? calloc(count, sizeof(struct config *)) : NULL;
    if (count && !b->files)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < count && code == SL_OK; i++) {
        code = locator_read_source_file(paths[i], &b->files[b->file_count++], error);
        if (code == SL_OK)
            code = add_all(&b->preferred, b->files[i], error);
    }
    return code;
}

/* Adds the sources of `servers` (a symbol path, may be NULL), of --nt-symbol-path (without a value: $_NT_SYMBOL_PATH) and, with
 * --debuginfod, of $DEBUGINFOD_URLS. */
static enum sl_code add_servers(struct locator *b, const char *servers, struct sl_error *error)
{
    const char *path = NULL, *urls = server_environment("DEBUGINFOD_URLS");
    enum sl_code code = SL_OK;
    if (option_given(b->options, "nt-symbol-path"))
        path = option_value(b->options, "nt-symbol-path", "");
    if (path && !*path)
        path = server_environment("_NT_SYMBOL_PATH");
    if (servers)
        code = source_list_path(&b->preferred, servers, error);
    if (code == SL_OK && path)
        code = source_list_path(&b->preferred, path, error);
    if (code == SL_OK && !urls && option_given(b->options, "debuginfod"))
        return sl_fail(error, SL_MALFORMED, "--debuginfod: $DEBUGINFOD_URLS is not set");
    if (code == SL_OK && urls && option_given(b->options, "debuginfod"))
        code = source_list_debuginfod(&b->preferred, urls, error);
    return code;
}

/* Builds b->all, the list for searches by other code (locator_sources): first the sources of the options (b->preferred), then the files of
 * locator_add_files (b->named_files), then `sources` of the configuration. Other code only knows sources, not file indexes; so a root (a
 * directory or file given without a layout) becomes one source that answers from its index, instead of one for each layout tried. */
static enum sl_code join_sources(struct locator *b, struct sl_error *error)
{
    struct source index = {.type = SOURCE_FILESYSTEM, .path = SL_STR("/"), .configured = true};
    bool good = true;
    /* network: with --no-network, the lists that are joined have no servers anyway */
    b->all = (struct locator_source_list){.arena = &b->arena, .network = true};
    /* root_of counts up, and the layouts of one root follow each other: `done` is the last root added */
    for (size_t i = 0, done = 0; i < b->preferred.count; i++) {
        size_t root_number = b->preferred.root_of[i];
        if (!root_number)
            good = good && source_list_add(&b->all, &b->preferred.items[i]);
        if (root_number <= done) /* another layout of the last root: its index has the files of all layouts */
            continue;
        done = root_number;
        index.id = b->preferred.items[i].id;
        index.index = file_index_source(b->indexes[root_number - 1]);
        good = good && source_list_add(&b->all, &index);
    }
    index.id = SL_STR("local:files");
    index.index = b->named_files ? file_index_source(b->named_files) : NULL;
    good = good && (!b->named_files || source_list_add(&b->all, &index));
    for (size_t i = 0; i < b->configured.count; i++)
        good = good && source_list_add(&b->all, &b->configured.items[i]);
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Creates an index of files for each root of `preferred` (a path given without a layout). The first search in an index fills it. */
static enum sl_code make_indexes(struct locator *b, struct sl_error *error)
{
    size_t count = b->preferred.root_count;
    bool good = !count || (b->indexes = calloc(count, sizeof(struct file_index *)));
    for (size_t i = 0; i < count && good; i++)
        /* 1, false: one root, a directory */
        good = (b->indexes[i] = file_index_new(&b->preferred.roots[i], 1, false)) != NULL;
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Fills the lists of sources and creates the indexes. Searched first (b->preferred) are --symbols, `symbols` of the configuration, then the
 * other sources of the command line; `sources` of the configuration come last (b->configured). */
static enum sl_code add_sources(struct locator *b, const char *servers, struct sl_error *error)
{
    size_t count;
    const char *const *symbols = option_values(b->options, "symbols", &count);
    bool network = !server_is_offline(b->options);
    enum sl_code code = SL_OK;
    b->preferred = b->configured = (struct locator_source_list){.arena = &b->arena, .network = network};
    for (size_t i = 0; i < count && code == SL_OK; i++)
        code = source_list_symbols(&b->preferred, symbols[i], error);
    for (size_t i = 0; i < 2 && b->layers[i]; i++)
        for (size_t j = 0; j < b->layers[i]->symbol_count && code == SL_OK; j++)
            code = source_list_symbols(&b->preferred, b->layers[i]->symbols[j].data, error);
    if (code == SL_OK)
        code = add_servers(b, servers, error);
    if (code == SL_OK)
        code = add_files(b, error);
    for (size_t i = 0; i < 2 && b->layers[i] && code == SL_OK; i++)
        code = add_all(&b->configured, b->layers[i], error);
    if (code == SL_OK)
        code = make_indexes(b, error);
    return code == SL_OK ? join_sources(b, error) : code;
}

/* Makes the source the first of `configured`: after the sources of the options, before those of the configuration. False when out of
 * memory. */
bool locator_add_source(struct locator *b, const struct source *source)
{
    struct locator_source_list before = b->configured;
    struct sl_error error;
    b->configured = (struct locator_source_list){.arena = &b->arena, .network = before.network};
    bool good = source_list_add(&b->configured, source);
    for (size_t i = 0; i < before.count; i++)
        good = good && source_list_add(&b->configured, &before.items[i]);
    return good && join_sources(b, &error) == SL_OK;
}

bool locator_add_files(struct locator *b, const char *const *paths, size_t count)
{
    struct sl_error error;
    const char **copied = SL_ARENA_ARRAY(&b->arena, const char *, count + 1);
    for (size_t i = 0; copied && i < count; i++)
        if (!(copied[i] = sl_arena_strndup(&b->arena, paths[i], strlen(paths[i]))))
            return false;
    file_index_free(b->named_files);
    b->named_files = copied ? file_index_new(copied, count, true) : NULL;
    return b->named_files && join_sources(b, &error) == SL_OK;
}

bool locator_find_named(struct locator *b, struct sl_str name, struct object_id *id)
{
    enum name_match found = NAMED_NONE;
    struct object_id best = *id;
    size_t parts = 0;
    for (size_t i = 0; i <= b->preferred.root_count; i++) { /* the last one: the files of locator_add_files */
        struct file_index *index = i < b->preferred.root_count ? b->indexes[i] : b->named_files;
        struct object_id other = {.type = OBJECT_UNKNOWN};
        size_t before = parts; /* number of equal components at the ends of `name` and the best path so far */
        enum name_match here = index ? file_index_find_named(index, name, &other, &parts) : NAMED_NONE;
        if (here == NAMED_NONE)
            continue;
        if (parts > before || found == NAMED_NONE) { /* better than the files of the earlier indexes */
            best = other;
            found = here;
        } else if (here == NAMED_SEVERAL || !object_ids_equal(&best, &other)) {
            found = NAMED_SEVERAL;
        }
    }
    if (found == NAMED_ONE)
        *id = best;
    return found == NAMED_ONE;
}

bool locator_add_file_later(struct locator *b, const char *path)
{
    const char *copied = sl_arena_strndup(&b->arena, path, strlen(path));
    if (!copied || !b->named_files)
        return false;
    file_index_add(b->named_files, copied);
    return true;
}

const struct source *locator_sources(const struct locator *b, size_t *count)
{
    *count = b->all.count;
    return b->all.items;
}

const struct config *locator_config(const struct locator *b)
{
    return b->layers[0];
}

/* ---- reports ---- */

/* Returns the name of a source for messages: its path, its URL without secrets, or its id. */
static struct sl_str source_name(const struct source *source, struct sl_arena *arena)
{
    const char *url = source->type == SOURCE_FILESYSTEM ? NULL : source->url.data;
    const char *shown = url ? fetch_public_url(arena, url) : NULL;
    if (source->type == SOURCE_FILESYSTEM)
        return source->path;
    return shown ? sl_str(shown) : source->id;
}

/* Adds a source to the searched locations of the report; if it is a directory that does not exist, that is added as a failure. */
static void describe_source(const struct source *source, struct missing_report *report)
{
    struct sl_str name = source_name(source, &report->arena);
    missing_add_location(report, name);
    if (source->type == SOURCE_FILESYSTEM && access(source->path.data, F_OK) != 0)
        missing_failure(report, name, SL_STR("no such directory"));
}

void locator_describe(const struct locator *b, struct missing_report *report)
{
    for (size_t i = 0; i < b->preferred.count; i++)
        /* a root (a directory without a layout) has one item for each layout: only the first is described */
        if (!b->preferred.root_of[i] || !i || b->preferred.root_of[i] != b->preferred.root_of[i - 1])
            describe_source(&b->preferred.items[i], report);
    if (b->named_files)
        missing_add_location(report, SL_STR("files that the modules name"));
    for (size_t i = 0; i < b->configured.count; i++)
        describe_source(&b->configured.items[i], report);
    missing_add_failures(report, &b->failures);
}

/* Called for each download that failed because of its server: records the failure, and warns of each server once, unless --quiet. */
static void on_server_failure(void *arg, const char *server, const char *why)
{
    struct locator *b = arg;
    if (missing_failure(&b->failures, sl_str(server), sl_str(why)) && !option_given(b->options, "quiet"))
        print_note("warning: %s: %s\n", server, why);
}

/* ---- loop, cache and downloads ---- */

/* Starts the loop, cache and downloads. Called at the first search, as it takes time that commands without a search do not need. */
static enum sl_code start(struct locator *b, struct sl_error *error)
{
    if (server_log(b->options, b->layers[0], b->verbosity) != 0)
        return sl_fail(error, SL_MALFORMED, "cannot set up the log");
    loop_init(loop_cores() + 1); /* the pool reserves one thread for quick jobs, which are rare here */
    log_start();
    b->running = true;
    enum sl_code code = cache_init(b->layers[0], catalog_kinds, catalog_kind_count, error);
    if (code != SL_OK) {
        log_stop();
        loop_close();
        b->running = false;
        return code;
    }
    output_handle_signal(cache_tmp_abandon); /* a signal removes the cache's temporary files */
    catalog_init(b->layers[0]);
    server_init_fetch(b->layers[0]);
    fetch_on_failure(on_server_failure, b);
    return SL_OK;
}

enum sl_code locator_open(const struct options *o, const char *servers, const char *verbosity, struct locator **locator,
                          struct sl_error *error)
{
    struct locator *b = *locator = calloc(1, sizeof *b);
    if (!b)
        return sl_fail(error, SL_BUSY, "out of memory");
    b->options = o;
    b->verbosity = verbosity;
    progress_begin(&b->progress, o, "fetching");
    enum sl_code code = locator_load_config(o, b->layers, error);
    if (code == SL_OK)
        code = add_sources(b, servers, error);
    if (code != SL_OK) {
        locator_close(b);
        *locator = NULL;
        /* another code, such as SL_NOT_FOUND, would look like the result of a search */
        code = error->code = SL_INTERNAL;
    }
    return code;
}

/* Waits for the cache's computations and pending writes, in a fiber. */
static void locator_finish(void *unused)
{
    (void)unused;
    cache_drain();
}

/* Stops what start() has started. Held files are released first, as they are the cache's. Then locator_finish waits for the cache's pending
 * writes, before downloads and catalog, which these use, are closed. */
static void stop(struct locator *b)
{
    for (struct held_file *at = b->held; at; at = at->next)
        cache_release(at->item);
    loop_run_fiber(locator_finish, NULL);
    fetch_on_failure(NULL, NULL);
    fetch_close();
    catalog_close();
    output_handle_signal(NULL);
    cache_close();
    log_stop();
    loop_close();
}

void locator_close(struct locator *b)
{
    if (!b)
        return;
    if (b->running)
        stop(b);
    for (struct held_file *at = b->held, *next; at; at = next) {
        next = at->next;
        sl_unmap(&at->mapping);
        free(at);
    }
    for (size_t i = 0; b->indexes && i < b->preferred.root_count; i++)
        file_index_free(b->indexes[i]);
    free(b->indexes);
    file_index_free(b->named_files);
    for (size_t i = 0; i < b->file_count; i++)
        config_release(b->files[i]);
    free(b->files);
    config_release(b->layers[0]);
    config_release(b->layers[1]);
    missing_free(&b->failures);
    sl_arena_free(&b->arena);
    free(b);
}

/* ---- getting ---- */

/* Adds an empty entry to the list of files that stay in memory until locator_close; NULL when out of memory. */
static struct held_file *hold_file(struct locator *b)
{
    struct held_file *held = calloc(1, sizeof *held);
    if (held) {
        held->next = b->held;
        b->held = held;
    }
    return held;
}

struct search_job {
    struct locator *locator;
    const struct locator_source_list *list;
    void (*work)(void *arg); /* runs instead of the search; NULL: search the id */
    void *arg;
    const struct object_id *id;
    enum purpose purpose;
    struct sl_arena arena;
    struct file_lookup found;
    struct fetch_progress last; /* the download that was shown last, and how far it was */
};

enum { LOOK_MS = 100 };

/* A fiber that redraws the progress line every LOOK_MS: the file that is downloaded or, while `work` runs without a download, the first
 * argument of the command. Ends when the search ends and cancels it. */
static void watch_downloads(void *arg)
{
    struct search_job *a = arg;
    struct progress *p = &a->locator->progress;
    while (fiber_sleep(LOOK_MS)) {
        bool fetching = fetch_progress(&a->last);
        p->verb = fetching || !a->work ? "fetching" : "symbolicating";
        if (fetching)
            progress_show(p, a->last.item, a->last.stored);
        else if (a->work && a->locator->options->argument_count)
            progress_show(p, path_file_name(sl_str(a->locator->options->arguments[0])).data, 0);
    }
}

/* A fiber: runs the search or, if that is given, `work`, while a second fiber shows the progress. */
static void locator_find_file(void *arg)
{
    struct search_job *a = arg;
    struct fiber_group watching;
    fiber_group_init(&watching, NULL);
    if (a->locator->progress.mode != PROGRESS_NONE)
        fiber_start(&watching, watch_downloads, a);
    if (a->work) {
        a->work(a->arg);
    } else {
        struct search_scope where = {a->list->items, a->list->count, SL_STR("global"), &a->arena};
        search_find_object(&where, a->id, a->purpose, &a->found);
    }
    fiber_group_cancel(&watching);
    fiber_group_wait(&watching);
}

/* Shows a file that was found, with its size, and ends the progress line, because a message may follow on the terminal. */
static void show_found(struct locator *b, const struct search_job *a)
{
    if (a->found.code == SL_OK)
        progress_item(&b->progress, a->last.item, a->found.item->mapping.bytes.size);
    progress_end(&b->progress);
}

/* Searches the sources of `list` for a module. `*bytes` is the file that is found, which stays in memory until locator_close. */
static enum sl_code by_id_search(struct locator *b, const struct locator_source_list *list, const struct object_id *id,
                                 enum purpose purpose, struct sl_bytes *bytes, struct sl_error *error)
{
    struct search_job job = {.locator = b, .list = list, .id = id, .purpose = purpose};
    if (!list->count)
        return sl_fail(error, SL_NOT_FOUND, "not found");
    if (!b->running && start(b, error) != SL_OK)
        return error->code;
    struct sl_str name = id->debug_file.size ? id->debug_file : id->code_id;
    /* shown by the progress line until a download gives its own name */
    snprintf(job.last.item, sizeof job.last.item, SL_STR_FMT, SL_STR_ARG(name));
    /* the number of searches is not known in advance */
    b->progress.total = b->progress.done + 1;
    loop_run_fiber(locator_find_file, &job);
    show_found(b, &job);
    struct held_file *held = job.found.code == SL_OK ? hold_file(b) : NULL;
    *error = job.found.error;
    error->code = job.found.code;
    if (held) {
        held->item = job.found.item;
        *bytes = held->item->mapping.bytes;
    } else if (job.found.code == SL_OK) {
        cache_release(job.found.item);
        sl_fail(error, SL_BUSY, "out of memory");
    }
    sl_arena_free(&job.arena);
    return error->code;
}

enum sl_code locator_run(struct locator *b, void (*work)(void *arg), void *arg, struct sl_error *error)
{
    struct search_job job = {.locator = b, .work = work, .arg = arg};
    if (!b->running && start(b, error) != SL_OK)
        return error->code;
    loop_run_fiber(locator_find_file, &job);
    progress_end(&b->progress);
    return SL_OK;
}

struct symcache_job {
    struct sl_str key;
    const struct local_symcache *own;
    struct cache_item *item;
    enum sl_code code;
    struct sl_error *error;
};

/* A fiber: gets the symcache for locator_symcache. */
static void make_symcache(void *arg)
{
    struct symcache_job *k = arg;
    k->code = local_symcache_get(k->key, k->own, &k->item, k->error);
}

enum sl_code locator_symcache(struct locator *b, struct sl_str key, const struct local_symcache *own,
                              struct sl_bytes *bytes, struct sl_error *error)
{
    struct symcache_job k = {.key = key, .own = own, .error = error};
    struct held_file *held = hold_file(b);
    if (!held)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!b->running && start(b, error) != SL_OK)
        return error->code;
    loop_run_fiber(make_symcache, &k);
    if (k.code != SL_OK) /* `held` stays empty; locator_close frees it */
        return k.code;
    held->item = k.item;
    *bytes = k.item->mapping.bytes;
    return SL_OK;
}

/* Looks the ids up in the index of a root, and maps the file, until locator_close. SL_NOT_FOUND if the index has none. */
static enum sl_code search_index(struct locator *b, struct file_index *index, const struct object_id *id,
                                 enum purpose purpose, struct sl_bytes *bytes, struct sl_error *error)
{
    const char *path = file_index_find(index, id, purpose);
    struct held_file *held = path ? hold_file(b) : NULL;
    if (!held)
        return sl_fail(error, path ? SL_BUSY : SL_NOT_FOUND, "%s", path ? "out of memory" : "");
    enum sl_code code = sl_map_file(path, &held->mapping, error);
    *bytes = held->mapping.bytes;
    return code;
}

/* Searches `preferred` in order: the layouts of each root, then its index. Sets `*first` to the first failure other than
 * "not found", because a source that failed explains a missing file better than the sources that lack it. */
static enum sl_code search_preferred(struct locator *b, const struct object_id *id, enum purpose purpose,
                                     struct sl_bytes *bytes, struct sl_error *error, struct sl_error *first)
{
    enum sl_code code = sl_fail(error, SL_NOT_FOUND, "not found");
    for (size_t i = 0, end; i < b->preferred.count && code != SL_OK; i = end) {
        size_t root_number = b->preferred.root_of[i];
        /* the sources from `i` to `end` are the layouts of one root, searched together */
        for (end = i + 1; end < b->preferred.count && b->preferred.root_of[end] == root_number;)
            end++;
        const struct locator_source_list part = {.items = &b->preferred.items[i], .count = end - i};
        code = by_id_search(b, &part, id, purpose, bytes, error);
        if (code != SL_OK && code != SL_NOT_FOUND && first->code == SL_OK)
            *first = *error;
        if (code != SL_OK && root_number)
            code = search_index(b, b->indexes[root_number - 1], id, purpose, bytes, error);
    }
    return code;
}

/* Sets the final error of a search. If the search ended with SL_NOT_FOUND, but a source had failed otherwise before, that failure (`first`)
 * becomes the error. Gives the error the text that answers of the service have. Returns its code. */
static enum sl_code by_id_finish_error(enum sl_code code, struct sl_error *error, const struct sl_error *first)
{
    struct sl_buf text = {0};
    if (code == SL_NOT_FOUND && first->code != SL_OK) {
        *error = *first;
        code = first->code;
    }
    error->code = code;
    /* not for SL_INTERNAL: its text in answers hides from clients what failed; the user of this command may know */
    if (code != SL_INTERNAL)
        cache_error_text(error, &text);
    if (text.size && !text.failed)
        sl_fail(error, code, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&text)));
    sl_buf_free(&text);
    return code;
}

enum sl_code locator_get(struct locator *b, const struct object_id *id, enum purpose purpose, struct sl_bytes *bytes,
                         struct sl_error *error)
{
    struct sl_error first = {0};
    enum sl_code code = search_preferred(b, id, purpose, bytes, error, &first);
    if (code != SL_OK)
        code = by_id_search(b, &b->configured, id, purpose, bytes, error);
    return code == SL_OK ? SL_OK : by_id_finish_error(code, error, &first);
}

/* Finds and attaches the supplementary file (dwz) that the debug information names by build id. A failure is ignored: only the names and
 * lines that are in that file are missing then. */
static void get_supplementary(struct locator *b, struct input *input)
{
    struct sl_bytes link = input_wants_supplementary(input), bytes;
    struct sl_buf hex = {0};
    struct sl_error error;
    sl_buf_hex(&hex, link.data, link.size);
    struct object_id id = {.code_id = sl_buf_view(&hex)};
    if (link.size && !hex.failed && locator_get(b, &id, PURPOSE_DEBUG, &bytes, &error) == SL_OK)
        input_set_supplementary(input, bytes);
    sl_buf_free(&hex);
}

enum sl_code locator_open_input(struct locator *b, const struct object_id *id, enum purpose purpose, const char *name,
                                struct input *input, struct sl_error *error)
{
    const struct sl_object_wanted wanted = {id->has_debug_id ? &id->debug_id : NULL, id->code_id};
    const struct input_options options = {.wanted = &wanted};
    struct sl_bytes bytes;
    enum sl_code code = locator_get(b, id, purpose, &bytes, error);
    if (code == SL_OK)
        code = input_open_bytes(name, bytes, &options, input, error);
    /* `options` and `wanted` are local variables, which input_open_bytes has stored */
    input->options = NULL;
    if (code == SL_OK)
        get_supplementary(b, input);
    return code;
}

enum sl_code locator_add_debug_info(struct locator *b, struct input *input, struct sl_error *error)
{
    const struct sl_object_info *info = sl_object_info(input->object);
    struct object_id id = {.code_id = info->code_id,
                           .code_file = path_file_name(sl_str(input->path)),
                           .debug_file = path_file_name(info->debug_file),
                           .debug_id = info->debug_id,
                           .has_debug_id = !sl_debug_id_is_nil(&info->debug_id)};
    struct sl_bytes bytes;
    enum sl_code code = locator_get(b, &id, PURPOSE_DEBUG, &bytes, error);
    if (code == SL_OK && !input_set_debug(input, bytes))
        code = sl_fail(error, SL_NOT_FOUND, "not found");
    if (code == SL_OK)
        get_supplementary(b, input);
    return code;
}
