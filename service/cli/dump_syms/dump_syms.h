/* `symloom dump-syms`: declarations that its files share. */
#pragma once

#include "cli/locator/locator.h"
#include "cli/cli.h"
#include "cli/options.h"

/* ---- dump_syms.c ---- */

bool dump_warns(const struct options *o); /* true with -w, or -v with a level that includes warnings */

/* ---- mapping.c: rewriting the paths of source files ---- */

struct path_mapping;

/* Reads --mapping-file, --mapping-src, --mapping-dest and --mapping-var. `*mapping` is NULL when there is nothing to
 * rewrite. 0, or the exit status after a report on stderr. */
int path_mapping_read(const struct options *o, struct path_mapping **mapping);
void path_mapping_free(struct path_mapping *mapping); /* may be NULL */

/* Returns the path to write in place of `path`; it lives as long as the mapping. `arg` is the mapping. */
struct sl_str path_mapping_apply(void *arg, struct sl_str path);

/* ---- module.c: one input with what belongs to it ---- */

struct dump_module {
    struct input main;
    struct input partner;           /* debug file of an executable, PE of a PDB, PDB of a PE */
    struct sl_object *debug, *code; /* the one with the functions, and the executable; may be equal */
    const char *debug_path, *code_path;
    bool has_partner;
    struct sl_debug_id id; /* the file's, or a hash of its contents */
};

/* Opens the file and its partner: from --debug-file or --code-file, the directories (ends with NULL), or beside it. 0, or the exit
 * status after a report on stderr. The caller closes `module` in either case. */
int dump_module_open(struct dump_module *module, const char *path, const char *const *directories,
                     const struct options *o);
bool dump_is_directory(const char *path); /* false for .dSYM bundles */
void dump_module_close(struct dump_module *module);

/* ---- fetch.c ---- */

/* Fetches the module with the ids of the options from the sources of locator.h; `name` is its file's name. Opens `*locator` at the first
 * use. Otherwise like dump_module_open. */
int dump_module_fetch(struct dump_module *module, const char *name, const struct options *o, struct locator **locator);

/* Makes the text of the MODULE and INFO records in `arena`. */
struct dump_header {
    struct sl_str os, name;
    struct sl_str *infos;
    size_t info_count;
};
bool dump_header_make(const struct dump_module *module, const struct options *o, struct sl_arena *arena,
                      struct dump_header *header);

/* ---- stack.c: unwind information ---- */

/* Writes the module's STACK records, from its executable, or else from the debug file. `write` returns false to stop. Unreadable parts
 * are left out, with a warning if the options ask for warnings. `*written`: there was at least one record. Fails when memory or the
 * file's work budget runs out. */
enum sl_code dump_stack(const struct dump_module *module, const struct options *o,
                        bool (*write)(void *arg, struct sl_str text), void *arg, bool *written, struct sl_error *error);

struct sl_breakpad_writer;

/* Passes the address ranges of the executable's unwind information to the writer, which adds functions for those without a name. */
enum sl_code dump_write_unwind_ranges(const struct dump_module *module, struct sl_breakpad_writer *writer,
                                      struct sl_error *error);

/* True if there is at least one STACK record. */
bool dump_has_stack(const struct dump_module *module);
