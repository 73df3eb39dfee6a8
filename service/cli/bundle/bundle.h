/* `symloom bundle`: lists the sources that an object names (files.c), packs them (pack.c), and packs sources of JVM projects (jvm.c). */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "source/bundle.h"

/* ---- files.c ---- */

struct source_path {
    struct sl_str path;
    struct sl_bytes text; /* embedded in the object; data NULL: not embedded */
};

struct source_paths { /* the sources that an object names, sorted by path; texts are in the arena or the object */
    struct sl_arena arena;
    struct sl_map known; /* path -> struct source_path */
    struct source_path *items;
    size_t count;
    bool failed; /* out of memory */
};

/* Lists the source paths in the debug information of the input's object, also in a Portable PDB, which it may be or contain. None without
 * debug information. */
enum sl_code source_paths_read(struct input *input, struct source_paths *paths, struct sl_error *error);
void source_paths_free(struct source_paths *paths);

/* ---- pack.c ---- */

struct path_prefix_rule { /* a path prefix to replace: sources below `from` have moved to `to` */
    struct sl_str from, to;
};

struct bundle_packing {
    /* options */
    const struct path_prefix_rule *roots;
    size_t root_count;
    uint64_t max_size; /* limit for one file in bytes */
    bool embedded, il2cpp;
    bool verbose; /* report skipped files on stderr */
    /* results */
    struct sl_bundle_writer *writer; /* NULL: only list what would be packed */
    struct sl_arena arena;
    struct sl_map seen;    /* paths that were packed or skipped; C# files named by il2cpp's C++ are packed only once */
    struct sl_str *packed; /* paths of the packed files, in order */
    size_t packed_count, packed_capacity;
    struct skipped {
        struct sl_str path;
        const char *reason;
    } * skipped;
    size_t skipped_count, skipped_capacity;
    struct sl_buf scratch; /* contents of the current file */
    bool failed;           /* out of memory */
};

/* Reads the sources with these paths and adds them to p->writer; with p->il2cpp also the C# files that they refer to. Records each path in
 * p->packed or p->skipped; sets p->failed when out of memory. */
void pack_sources(struct bundle_packing *p, const struct source_paths *paths);
void packing_free(struct bundle_packing *p); /* all but the writer */

/* Reads the regular file `path`, which must be UTF-8, into `out`, which is emptied first. Returns NULL, or why it cannot be used: a text
 * that is not to be freed. */
const char *read_source(const char *path, uint64_t max_size, struct sl_buf *out);

/* Writes the il2cpp line mapping of the sources (source/il2cpp.h) as JSON: the C# line of each line of generated C++. `id` is the program's
 * debug id. False if no source refers to C# lines. */
bool pack_line_mapping(struct bundle_packing *p, const struct source_paths *paths, const struct sl_debug_id *id,
                       struct sl_buf *json);

/* ---- jvm.c ---- */

/* Packs the sources of a project under URLs that follow from the package and file name of a JVM stack frame (`~/com/example/Main.jvm`).
 * `exclude`: globs of paths below `directory`. `*count`: number of packed files. Returns 0, or the exit status after a report. */
int bundle_jvm(const char *directory, const char *const *exclude, size_t exclude_count, uint64_t max_size, bool verbose,
               struct sl_bundle_writer *writer, size_t *count);
