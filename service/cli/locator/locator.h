/* Finds debug files for commands: a module given by build id, debug id or code id is searched in directories and on servers, with the
 * service's code for sources, downloads and cache.
 *
 *     --symbols DIR..   the layouts of symbol stores, then an index of all files below     index.c
 *     --symbols URL, --nt-symbol-path, --debuginfod, --source                              sources.c
 *     `sources` and `symbols` of the configuration                                         config.c */
#pragma once

#include "cli/cli.h"
#include "cli/missing.h"
#include "cli/options.h"
#include "config/config.h"
#include "search/search.h"

/* Rows for the option tables of commands that search symbol sources. Each such command adds `--config` itself, since one uses another
 * letter for it. */
#define LOCATOR_OPTIONS                                                                                                \
    {"symbols",           0,                                                                                           \
     OPTION_VALUE,        true,                                                                                        \
     "[LAYOUT:]PATH|URL", "Search this directory, file or server (also @microsoft, @mozilla, ...)"},                   \
        {"source", 0, OPTION_VALUE, true, "FILE", "Search the source or list of sources in this YAML or JSON file"},   \
        {"nt-symbol-path", 0, OPTION_OPTIONAL, true, "PATH", "Search srv*[DIR*]URL[;...] ($_NT_SYMBOL_PATH)"},         \
        {"debuginfod", 0, OPTION_FLAG, true, NULL, "Search the servers listed in $DEBUGINFOD_URLS"},                   \
    {                                                                                                                  \
        "cache-dir", 0, OPTION_VALUE, false, "DIR", "Keep the disk cache in DIR; '' disables it"                       \
    }

struct locator;

/* Reads options and configuration; no source is contacted yet. `servers`: an additional symbol path, may be NULL. `verbosity`: the log
 * level, NULL for warnings. The options must outlive the locator. SL_INTERNAL for unusable options and configuration files, whose
 * problems are reported on stderr; SL_BUSY when out of memory at the start. */
enum sl_code locator_open(const struct options *o, const char *servers, const char *verbosity, struct locator **locator,
                          struct sl_error *error);
void locator_close(struct locator *locator); /* may be NULL */

/* Finds the best file for a module: PURPOSE_DEBUG, PURPOSE_UNWIND or PURPOSE_ANY_OBJECT. The bytes live until locator_close; if they hold
 * several objects, the one with the id is meant. SL_NOT_FOUND when no source has it, SL_PERMISSION_DENIED when a source requires
 * credentials. The text of `error` is as in answers of the service. */
enum sl_code locator_get(struct locator *locator, const struct object_id *id, enum purpose purpose,
                         struct sl_bytes *bytes, struct sl_error *error);

/* Finds a file as locator_get does, with its errors, and opens it as an input called `name`; attaches the supplementary file (dwz) that its
 * debug information needs, if a source has it. Close the input before locator_close. */
enum sl_code locator_open_input(struct locator *locator, const struct object_id *id, enum purpose purpose,
                                const char *name, struct input *input, struct sl_error *error);

/* Finds the separate debug file of an input without debug information, and the supplementary file (dwz) of that, and attaches both. Errors
 * as for locator_get. */
enum sl_code locator_add_debug_info(struct locator *locator, struct input *input, struct sl_error *error);

/* Return all sources in search order, for searches by other functions than locator_get, and the configuration in force. Both live until
 * locator_close. */
const struct source *locator_sources(const struct locator *locator, size_t *count);
const struct config *locator_config(const struct locator *locator);
/* Adds a source after those of the options and before those of the configuration. False when out of memory. */
bool locator_add_source(struct locator *locator, const struct source *source);
/* Adds files of this machine as one source after those of the options. They are found by the ids in them, whatever their paths are.
 * Replaces the files of an earlier call. False when out of memory. */
bool locator_add_files(struct locator *locator, const char *const *paths, size_t count);
/* Finds the ids of a module by its name or path alone, among the files of the options: the file of this name (with or without `.debug`,
 * `.pdb` or `.sym`), of several the one whose path has the longest common end. False when there is none, or files with different ids fit
 * equally well: a wrong name would be worse than none. The texts of `id` live until locator_close. */
bool locator_find_named(struct locator *locator, struct sl_str name, struct object_id *id);
/* Adds a file to those of locator_add_files, also after searches have begun. False if that was not called, or when out of memory. */
bool locator_add_file_later(struct locator *locator, const char *path);
/* Gets the symcache that is cached under the key, or makes it by own->make: local_symcache_get (cache_kinds/objects.h). The bytes live
 * until locator_close. */
enum sl_code locator_symcache(struct locator *locator, struct sl_str key, const struct local_symcache *own,
                              struct sl_bytes *bytes, struct sl_error *error);
/* Adds the searched sources to a report, with directories that do not exist and servers that failed. */
void locator_describe(const struct locator *locator, struct missing_report *report);
/* Runs `work(arg)` in a fiber, after starting loop, cache and downloads. SL_OK when it ran; else the error with which the start failed. */
enum sl_code locator_run(struct locator *locator, void (*work)(void *arg), void *arg, struct sl_error *error);

/* ---- sources.c ---- */

struct locator_source_list { /* allocated in the arena */
    struct sl_arena *arena;
    struct source *items;
    size_t count, capacity;
    bool network;       /* false: add only directories (--no-network) */
    unsigned local;     /* number of directories so far */
    const char **roots; /* directories and files of layout `auto`: each gets an index of the files below it */
    size_t root_count;
    size_t *root_of; /* per item: number of its root, from 1; a root has an item for each layout; 0: it has no root */
};

/* The layouts tried, in order, for a directory given without one. */
enum { ANY_LAYOUTS = 6 };
extern const enum layout_type any_layouts[ANY_LAYOUTS];
/* Checks that the directories and files among the values of --symbols exist ([LAYOUT:]PATH; not the directories of srv*). Returns 0, or 2
 * after a report of the first that does not. */
int source_paths_check(const char *const *paths, size_t count);
/* Returns the part of [LAYOUT:]PATH after the layout; the whole text when there is none. */
const char *source_path_without_layout(const char *text);
/* Adds a source; leaves out one on the network if list->network is false. Paths are made absolute, since cache keys contain them. False
 * when out of memory. */
bool source_list_add(struct locator_source_list *list, const struct source *source);
/* Adds the sources of [LAYOUT:]PATH, [LAYOUT:]URL, srv*.. or @preset. SL_MALFORMED for an unknown preset or an unusable URL, SL_BUSY when
 * out of memory. */
enum sl_code source_list_symbols(struct locator_source_list *list, const char *text, struct sl_error *error);
/* Adds the sources of a symbol path: texts for source_list_symbols, separated by semicolons or line ends. */
enum sl_code source_list_path(struct locator_source_list *list, const char *text, struct sl_error *error);
/* Adds a source for each URL in `urls`, the value of $DEBUGINFOD_URLS. SL_MALFORMED for an unusable URL. */
enum sl_code source_list_debuginfod(struct locator_source_list *list, const char *urls, struct sl_error *error);

/* ---- config.c ---- */

/* Reads the configuration of a user's command: the file that the options or the environment name; or else the nearest project file from the
 * working directory upwards (layers[0]), and the user's own file (layers[1]). Of the second file only `sources` and `symbols` are used,
 * after those of the first. `layers[1]` may be NULL. Problems are reported on stderr. The caller releases both. */
enum sl_code locator_load_config(const struct options *o, struct config *layers[2], struct sl_error *error);
/* Finds the project file and the user's own file, in this order, and returns how many there are. locator_read_config reads one of them,
 * with its errors and warnings in `problems`; the result is that of config_load. */
size_t locator_config_files(char paths[2][4096]);
enum sl_code locator_read_config(const char *path, struct config **config, struct value_problems *problems,
                                 struct sl_error *error);
/* Reads a file that contains a list of sources, one source, or a map with `sources`; they become the sources of `*config`. Prints problems
 * on stderr. Errors as for config_load. */
enum sl_code locator_read_source_file(const char *path, struct config **config, struct sl_error *error);

/* ---- index.c ---- */

struct file_index;

/* Returns an index of the debug files at or below the roots, built at the first search; the roots must outlive it. `plain`: the
 * roots are files and are not searched by directory layouts. NULL when out of memory. */
struct file_index *file_index_new(const char *const *roots, size_t count, bool plain);
void file_index_free(struct file_index *index); /* may be NULL */
/* Returns the path of the best file for the purpose that has an object with the ids: debug information before symbols alone, other formats
 * before Breakpad's, which lacks variables; of equal ones the first by root and path. NULL when there is none; the path lives as long as
 * the index. */
const char *file_index_find(struct file_index *index, const struct object_id *id, enum purpose purpose);
/* True if two objects have the same code id or, unless both have one, the same debug id. */
bool object_ids_equal(const struct object_id *a, const struct object_id *b);
enum name_match { NAMED_NONE, NAMED_ONE, NAMED_SEVERAL };

/* Finds the files of one index that `name`, a module's name or path, may mean: those of this name whose paths have the most components at
 * the end in common with it. `*parts` becomes the number of these components; files with fewer than its initial value do not count.
 * NAMED_ONE: they have the same ids, which are set in `id`; NAMED_SEVERAL: they have different ids; NAMED_NONE: there are none. */
enum name_match file_index_find_named(struct file_index *index, struct sl_str name, struct object_id *id,
                                      size_t *parts);
/* Adds a file to an index, after the files of its roots, which are read now if they were not. */
void file_index_add(struct file_index *index, const char *path);
/* Returns the index for use as source.index: a search tries the paths of symbol store layouts below each root first, and only then all
 * files. Its paths are relative to `/`. */
const struct source_index *file_index_source(struct file_index *index);
