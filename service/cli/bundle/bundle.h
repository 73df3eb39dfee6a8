/* What the parts of `symloom bundle` share: which sources an object names (files.c), packing them (pack.c),
 * the sources of JVM projects (jvm.c). */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "source/bundle.h"

/* ---- files.c ---- */

struct source_path {
    struct sl_str path;
    struct sl_bytes text; /* embedded in the object; data NULL = not */
};

struct source_paths { /* sorted by path, each once; all in the arena or the object */
    struct sl_arena arena;
    struct sl_map known; /* path -> struct source_path */
    struct source_path *items;
    size_t count;
    bool failed; /* out of memory */
};

/* The sources that the input's object names, also those of a Portable PDB that it is or has inside. An object without debug
 * information names none. */
enum sl_code source_paths_read(struct input *input, struct source_paths *paths, struct sl_error *error);
void source_paths_free(struct source_paths *paths);

/* ---- pack.c ---- */

struct root { /* sources below `from` are now below `to` */
    struct sl_str from, to;
};

struct packing {
    /* options */
    const struct root *roots;
    size_t root_count;
    uint64_t max_size; /* bytes of a file */
    bool embedded, il2cpp;
    bool verbose; /* tell on stderr what is skipped */
    /* the result */
    struct sl_bundle_writer *writer; /* NULL: only count */
    struct sl_arena arena;
    struct sl_map seen;    /* paths that were dealt with */
    struct sl_str *packed; /* their paths, in order */
    size_t packed_count, packed_capacity;
    struct skipped {
        struct sl_str path;
        const char *reason;
    } * skipped;
    size_t skipped_count, skipped_capacity;
    struct sl_buf scratch; /* the file at hand */
    bool failed;           /* out of memory */
};

void pack_sources(struct packing *p, const struct source_paths *paths);
void packing_free(struct packing *p);

/* Reads the regular file `path` into `out`, which is emptied. NULL, or why it cannot be had. */
const char *read_source(const char *path, uint64_t max_size, struct sl_buf *out);

/* The il2cpp line mapping of the sources (the format of source/il2cpp.h) as JSON: false when there is nothing in it. */
bool pack_line_mapping(struct packing *p, const struct source_paths *paths, const struct sl_debug_id *id,
                       struct sl_buf *json);

/* ---- jvm.c ---- */

/* Packs the sources of the project below `directory` with the URLs that JVM stack traces have; `exclude`: globs of paths
 * below it. 0, or the exit status after a report. */
int bundle_jvm(const char *directory, const char *const *exclude, size_t exclude_count, uint64_t max_size, bool verbose,
               struct sl_bundle_writer *writer, size_t *count);
