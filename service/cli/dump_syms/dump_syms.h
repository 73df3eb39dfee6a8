/* `symloom dump-syms`: what its files share. */
#pragma once

#include "cli/by_id/by_id.h"
#include "cli/cli.h"
#include "cli/options.h"

/* ---- dump_syms.c ---- */

bool dump_warns(const struct options *o); /* whether warnings are wanted: -v with a level that has them, -w */

/* ---- mapping.c: rewriting the paths of source files ---- */

struct path_mapping;

/* Reads --mapping-file, --mapping-src, --mapping-dest and --mapping-var. `*mapping` is NULL when there is nothing to
 * rewrite. 0, or the exit status after a report on stderr. */
int path_mapping_read(const struct options *o, struct path_mapping **mapping);
void path_mapping_free(struct path_mapping *mapping); /* may be NULL */

/* The path to write in place of `path`; it lives as long as the mapping. `arg` is the mapping. */
struct sl_str path_mapping_apply(void *arg, struct sl_str path);

/* ---- module.c: one input with what belongs to it ---- */

struct dump_module {
    struct input main;
    struct input partner;           /* debug file of an executable, PE of a PDB, PDB of a PE */
    struct sl_object *debug, *code; /* which of them has the functions, and which is the executable; may be equal */
    const char *debug_path, *code_path;
    bool has_partner;
    struct sl_debug_id id; /* the file's, or made of its contents */
};

/* Opens the file, and its partner: given by --debug-file or --code-file, in the directories (ends with NULL), or beside it. 0, or
 * the exit status after a report on stderr; to be closed in any case. */
int dump_module_open(struct dump_module *module, const char *path, const char *const *directories,
                     const struct options *o);
bool dump_is_directory(const char *path); /* and no bundle */
void dump_module_close(struct dump_module *module);

/* ---- fetch.c ---- */

/* The module of the ids that the options give, `name` being that of its file, from where by_id.h has files; `*by_id` is
 * opened at the first use. Otherwise as dump_module_open. */
int dump_module_fetch(struct dump_module *module, const char *name, const struct options *o, struct by_id **by_id);

/* Text of the MODULE and INFO records, into `arena`. */
struct dump_header {
    struct sl_str os, name;
    struct sl_str *infos;
    size_t info_count;
};
bool dump_header_make(const struct dump_module *module, const struct options *o, struct sl_arena *arena,
                      struct dump_header *header);

/* ---- stack.c: unwind information ---- */

/* Writes the module's STACK records: those of its executable, or else of the debug file. `write` returns false when it
 * wants no more. What cannot be read is left out, with a warning if the options ask for warnings. `*written`: there were any.
 * Fails when memory or the work that the file may take ended before the records did. */
enum sl_code dump_stack(const struct dump_module *module, const struct options *o,
                        bool (*write)(void *arg, struct sl_str text), void *arg, bool *written, struct sl_error *error);

struct sl_breakpad_writer;

/* Tells the writer which code the executable's unwind information knows. */
enum sl_code dump_unnamed(const struct dump_module *module, struct sl_breakpad_writer *writer, struct sl_error *error);

/* Whether there is any record to write. */
bool dump_has_stack(const struct dump_module *module);
