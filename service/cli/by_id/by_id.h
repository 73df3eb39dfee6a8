/* Debug files by id, for the commands: a module that is given by its build id, debug id or code id instead of by a path is
 * looked for in directories and at servers, through the origins, the downloads and the cache of the service.
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

/* Rows for the tables of such commands; `--config` is theirs, since one has the letter for itself. */
#define BY_ID_OPTIONS                                                                                                  \
    {"symbols",           0,                                                                                           \
     OPTION_VALUE,        true,                                                                                        \
     "[LAYOUT:]PATH|URL", "where files are by id: a directory, file or server; also @microsoft and the like"},         \
        {"source", 0, OPTION_VALUE, true, "FILE", "files by id: one source or a list of them, in YAML or JSON"},       \
        {"nt-symbol-path", 0, OPTION_OPTIONAL, true, "PATH", "files by id: srv*[DIR*]URL[;..] ($_NT_SYMBOL_PATH)"},    \
        {"debuginfod", 0, OPTION_FLAG, true, NULL, "files by id: the servers of $DEBUGINFOD_URLS"},                    \
    {                                                                                                                  \
        "cache-dir", 0, OPTION_VALUE, false, "DIR", "root of the disk cache; '' disables it"                           \
    }

struct by_id;

/* Reads options and configuration; nothing is asked yet. `servers`: a symbol path beside those of the options, may be NULL.
 * `verbosity`: the level of the log, NULL for warnings. The options must outlive it. SL_INTERNAL for options and configurations
 * that cannot be used, whatever is wrong with them; problems in files are on stderr. */
enum sl_code by_id_open(const struct options *o, const char *servers, const char *verbosity, struct by_id **by_id,
                        struct sl_error *error);
void by_id_close(struct by_id *by_id); /* may be NULL */

/* The best file for a module: PURPOSE_DEBUG, PURPOSE_UNWIND or PURPOSE_FILE. The bytes live until by_id_close; of several
 * objects in them, that of the ids is meant. SL_NOT_FOUND when nobody has it, SL_PERMISSION_DENIED when somebody wants
 * credentials. `error` says it as answers of the service do. */
enum sl_code by_id_get(struct by_id *by_id, const struct object_id *id, enum purpose purpose, struct sl_bytes *bytes,
                       struct sl_error *error);

/* The same as an input, called `name`, with the supplementary file that its debug information needs, if somebody has that;
 * without options. To be closed before by_id_close. */
enum sl_code by_id_open_input(struct by_id *by_id, const struct object_id *id, enum purpose purpose, const char *name,
                              struct input *input, struct sl_error *error);

/* The debug information of an opened file that has none, likewise with its supplementary file. Errors as by_id_get's. */
enum sl_code by_id_complete(struct by_id *by_id, struct input *input, struct sl_error *error);

/* All places where files are looked for, in their order, for look-ups by other means than by_id_get; and the configuration that
 * counts. They live until by_id_close. */
const struct source *by_id_sources(const struct by_id *by_id, size_t *count);
const struct config *by_id_settings(const struct by_id *by_id);
/* One more place, behind those of the options and before those of the configuration. False when out of memory. */
bool by_id_add_source(struct by_id *by_id, const struct source *source);
/* Files of this machine, behind the places of the options: those whose ids are asked for count. False when out of memory. */
bool by_id_add_files(struct by_id *by_id, const char *const *paths, size_t count);
/* A symcache that the cache keeps under the key, or that is made (kinds/objects.h). The bytes live until by_id_close. */
enum sl_code by_id_symcache(struct by_id *by_id, struct sl_str key, const struct own_symcache *own,
                            struct sl_bytes *bytes, struct sl_error *error);
/* Adds the places where files were looked for to a report, with those that are not there and the servers that failed. */
void by_id_describe(const struct by_id *by_id, struct missing_report *report);
/* Runs `work(arg)` in a fiber, with loop, cache and downloads. SL_INTERNAL, SL_MALFORMED when these cannot be had. */
enum sl_code by_id_run(struct by_id *by_id, void (*work)(void *arg), void *arg, struct sl_error *error);

/* ---- sources.c ---- */

struct source_list { /* in the arena */
    struct sl_arena *arena;
    struct source *items;
    size_t count, capacity;
    bool network;        /* others than directories are wanted */
    unsigned local;      /* directories so far */
    const char **places; /* directories and files of layout `auto`: each has an index */
    size_t place_count;
    size_t *place_of; /* of each item: it is a layout of this one, counted from 1; or 0 */
};

/* The layouts of a directory that is given without one, in the order in which they are tried. */
enum { ANY_LAYOUTS = 6 };
extern const enum layout_type any_layouts[ANY_LAYOUTS];
/* Checks the directories and files among symbol paths ([LAYOUT:]PATH; not those of srv*): 0, or 2 after a report of the first that
 * is not there. For what a user has typed, before anything is done. */
int source_paths_check(const char *const *paths, size_t count);
/* What follows the layout in [LAYOUT:]PATH; all of it when there is none. */
const char *source_place(const char *text);
/* Directories become absolute: their names in the cache have to mean the same everywhere. False when out of memory. */
bool source_list_add(struct source_list *list, const struct source *source);
/* [LAYOUT:]PATH, [LAYOUT:]URL, srv*.., @preset. SL_MALFORMED for an unknown preset, SL_INTERNAL. */
enum sl_code source_list_symbols(struct source_list *list, const char *text, struct sl_error *error);
/* A list of them between semicolons. */
enum sl_code source_list_path(struct source_list *list, const char *text, struct sl_error *error);
/* Each word of $DEBUGINFOD_URLS. */
enum sl_code source_list_debuginfod(struct source_list *list, const char *urls, struct sl_error *error);

/* ---- config.c ---- */

/* The configuration of a user's command: the file that the options or the environment name; or else the nearest project
 * file from the working directory upwards, over the user's own, which has the sources after those of the project. The first
 * layer counts for everything else; `layers[1]` may be NULL. Problems are on stderr. The caller frees both. */
enum sl_code by_id_config(const struct options *o, struct config *layers[2], struct sl_error *error);
/* The files of these layers, nearest first; how many. And one of them read, with all its problems: as config_load. */
size_t by_id_config_files(char paths[2][4096]);
enum sl_code by_id_config_read(const char *path, struct config **config, struct value_problems *problems,
                               struct sl_error *error);
/* A file that holds a list of sources, one source, or a map with `sources`. As config_load. */
enum sl_code by_id_source_file(const char *path, struct config **config, struct sl_error *error);

/* ---- index.c ---- */

struct file_index;

/* The debug files at or below the places, found at the first look; the places must stay. `plain`: they are files, and where layouts
 * would have others does not count. NULL when out of memory. */
struct file_index *file_index_new(const char *const *places, size_t count, bool plain);
void file_index_free(struct file_index *index); /* may be NULL */
/* The first file, in the order of the places and by path, with an object of the ids that serves the purpose. NULL when
 * there is none; it lives as long as the index. */
const char *file_index_find(struct file_index *index, const struct object_id *id, enum purpose purpose);
/* The places as a source's index: what their layouts have, and only else all files below them. Paths are relative to the root of
 * the machine. */
const struct source_index *file_index_source(struct file_index *index);
