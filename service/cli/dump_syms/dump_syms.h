/* `symloom dump-syms`: opens or downloads a module (module.c, fetch.c), rewrites paths (mapping.c), writes records (dump_syms.c,
 * stack.c). */
#pragma once

#include "cli/locator/locator.h"
#include "cli/cli.h"
#include "cli/options.h"

/* ---- dump_syms.c ---- */

bool dump_warns(const struct options *o); /* true with -w, or -v with a level that includes warnings */

/* ---- mapping.c: rewriting the paths of source files ---- */

struct path_mapping;

/* Reads --mapping-file, --mapping-src, --mapping-dest and --mapping-var. `*mapping` is NULL if none of the first three is given. Returns
 * 0, or the exit status after a report on stderr; the caller frees `*mapping` in either case. */
int path_mapping_read(const struct options *o, struct path_mapping **mapping);
void path_mapping_free(struct path_mapping *mapping); /* may be NULL */

/* Returns the path to write in place of `path`: as the first rule that applies rewrites it, or unchanged without one. It lives as long as
 * the mapping, which is `arg`. */
struct sl_str path_mapping_apply(void *arg, struct sl_str path);

/* ---- module.c: a module and its files ---- */

struct dump_module {
    struct input main;    /* the file that the user named */
    struct input partner; /* the other file of the module: debug file of an executable, PE of a PDB, PDB of a PE */
    struct sl_object *debug, *code; /* the object with the functions, and the executable; may be equal */
    const char *debug_path, *code_path;
    bool has_partner;
    struct sl_debug_id id; /* of the main file; if it has none, a hash of its contents */
};

/* Opens the file and the other file of the module: that of --debug-file or --code-file, or one found in `directories` (ends with NULL) or
 * beside the file. Returns 0, or the exit status after a report on stderr. The caller closes `module` in either case. */
int dump_module_open(struct dump_module *module, const char *path, const char *const *directories,
                     const struct options *o);
bool dump_is_directory(const char *path); /* false for .dSYM bundles */
void dump_module_close(struct dump_module *module);

/* ---- fetch.c ---- */

/* Downloads the module with the ids in --debug-id and --code-id; `name` is its file name. Opens `*locator`, which has the symbol sources,
 * if it is NULL. Returns 0, or the exit status after a report on stderr. The caller closes `module` in either case. */
int dump_module_fetch(struct dump_module *module, const char *name, const struct options *o, struct locator **locator);

struct dump_header {        /* texts of the MODULE and INFO records, in an arena */
    struct sl_str os, name; /* of the MODULE record */
    struct sl_str *infos;   /* the INFO records */
    size_t info_count;
};
/* Makes the texts of the MODULE and INFO records in `arena`. False when out of memory. */
bool dump_header_make(const struct dump_module *module, const struct options *o, struct sl_arena *arena,
                      struct dump_header *header);

/* ---- stack.c: unwind information ---- */

/* Writes the module's STACK records, from its executable, or else from the debug file. `write` returns false to stop. Unreadable parts
 * are left out, with a warning if the options ask for warnings. `*written`: there was at least one record. Fails when memory or the
 * file's work budget runs out. */
enum sl_code dump_stack(const struct dump_module *module, const struct options *o,
                        bool (*write)(void *arg, struct sl_str text), void *arg, bool *written, struct sl_error *error);

struct sl_breakpad_writer;

/* Passes the address ranges of the executable's unwind information to the writer, which adds a FUNC record for each range in which it knows
 * no function. */
enum sl_code dump_write_unwind_ranges(const struct dump_module *module, struct sl_breakpad_writer *writer,
                                      struct sl_error *error);

/* True if the module has unwind information for at least one STACK record. */
bool dump_has_stack(const struct dump_module *module);
