/* `symloom inspect`: what its files share.
 *
 *     file ──▶ its objects ──read.c──▶ struct findings ──print.c──▶ text or JSON */
#pragma once

#include "base/json_write.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"

struct finding_lists { /* which ones are wanted */
    bool sections, symbols, functions, files, sources, cfi;
};

/* What reading everything tells. */
struct counts {
    uint64_t files, functions, inlinees, lines, symbols, cfi;
    size_t skipped; /* units that could not be read */
};

struct findings {
    const struct options *options;
    const char *path;
    struct input *input; /* with the object, or the symcache */
    size_t index, count; /* of the object in the file */
    struct sl_buf *json_variants;
    struct finding_lists lists;
    bool complete; /* the counts are known */
    struct counts counts;
    const char *problem; /* NULL: usable */
    const char *note;    /* may be NULL */
    struct sl_buf hints; /* each ends in '\n' */
    struct sl_arena arena;
    struct sl_symbol *symbols;
    struct sl_map files;      /* the paths of source files */
    struct sl_map embedded;   /* those that are in the file themselves */
    struct sl_buf links;      /* Source Link rules (ppdb/links.h) */
    struct sl_bundle *bundle; /* of a source bundle that was read; else NULL */
    struct sl_map producers;  /* compilers, to the number of their units */
    struct sl_buf functions;  /* the list, as text or JSON; made while reading */
    struct sl_json_writer function_writer;
    bool json;
};

/* ---- read.c ---- */

/* Looks at the object: problem, note and hints, and with --verify or a list everything in it. */
void findings_make(struct findings *f);
void findings_free(struct findings *f);

/* Keys of a map, in their order. The caller frees the array. */
struct sl_str *findings_sorted(const struct sl_map *map);

/* The URL of a source file by the rules of Source Link, appended; nothing when there is none. */
void findings_link(const struct findings *f, struct sl_str path, struct sl_buf *url);

/* The file of an artifact bundle that has this URL, and no path; NULL when there is none. */
const struct sl_bundle_file *findings_artifact(const struct findings *f, struct sl_str path);

/* Every STACK record of the object, with its line's end; `write` returns false when it wants no more. Returns their number. */
uint64_t findings_cfi(struct findings *f, bool (*write)(void *arg, struct sl_str line), void *arg);

/* ---- print.c ---- */

/* "17.0 KiB" */
void inspect_put_size(struct sl_buf *out, uint64_t size);

void findings_print(struct findings *f, struct sl_buf *out);
void findings_json(struct findings *f, struct sl_json_writer *w);
/* Of a function while reading: a line of the list, indented by its depth. */
void findings_add_function(struct findings *f, const struct sl_function *function, struct sl_str name,
                           struct sl_str place, unsigned depth);
/* One of `variants`. */
void findings_variant(struct sl_json_writer *w, const struct sl_object_info *info);
/* "dsym", "elf" ...: the names that scripts know. */
const char *findings_type(enum sl_format format);

/* ---- mapping.c, minidump.c, sourcemap.c, symbfile.c: files that hold no objects ---- */

struct inspected {
    const char *path;
    struct sl_bytes bytes;
    const struct options *options;
    const struct sl_debug_id *wanted; /* NULL: any */
    struct sl_json_writer *w;         /* NULL: it is shown as text */
    struct sl_buf *out;
    bool other_id; /* it is not the wanted one: nothing was shown */
    bool unusable; /* some of it cannot be read */
};

/* Shows the file, if it is of the kind, or was meant to be. False when it is of another, and nothing was shown. */
typedef bool inspect_kind(struct inspected *file);
inspect_kind inspect_mapping, inspect_minidump, inspect_sourcemap, inspect_symbfile;
