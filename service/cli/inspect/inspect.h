/* `symloom inspect`: declarations that its files share.
 *
 *     file ──▶ its objects ──read.c──▶ struct inspect_results ──print.c──▶ text or JSON */
#pragma once

#include "base/json_write.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"

struct finding_lists { /* the lists that the options ask for */
    bool sections, symbols, functions, files, sources, cfi;
};

/* Totals of a complete read. */
struct inspect_counts {
    uint64_t files, functions, inlinees, lines, symbols, cfi;
    size_t skipped; /* units that could not be read */
};

struct inspect_results {
    const struct options *options;
    const char *path;
    struct input *input; /* holds the object, or the symcache */
    size_t index, count; /* the object's place among those of the file */
    struct sl_buf *json_variants;
    struct finding_lists lists;
    bool complete; /* the counts are known */
    struct inspect_counts counts;
    const char *problem; /* NULL: usable */
    const char *note;    /* may be NULL */
    struct sl_buf hints; /* each ends in '\n' */
    struct sl_arena arena;
    struct sl_symbol *symbols;
    struct sl_map files;      /* the paths of source files */
    struct sl_map embedded;   /* paths of embedded source files */
    struct sl_buf links;      /* Source Link rules (ppdb/links.h) */
    struct sl_bundle *bundle; /* a source bundle, once read; else NULL */
    struct sl_map producers;  /* compiler -> number of its units */
    struct sl_buf functions;  /* the list of functions, as text or JSON; filled while reading */
    struct sl_json_writer function_writer;
    bool json;
};

/* ---- read.c ---- */

/* Fills problem, note and hints; with --verify or a list, reads the whole object. */
void findings_make(struct inspect_results *f);
void findings_free(struct inspect_results *f);

/* Returns the sorted keys of a map. The caller frees the array. */
struct sl_str *findings_sorted(const struct sl_map *map);

/* Appends the URL of a source file by the Source Link rules; nothing when no rule matches. */
void findings_link(const struct inspect_results *f, struct sl_str path, struct sl_buf *url);

/* Returns the file of a bundle with the URL `path`; NULL when there is none, or when a file has this path. */
const struct sl_bundle_file *findings_artifact(const struct inspect_results *f, struct sl_str path);

/* Passes every STACK record of the object, with its line end, to `write`, which returns false to stop. Returns their number. */
uint64_t findings_cfi(struct inspect_results *f, bool (*write)(void *arg, struct sl_str line), void *arg);

/* ---- print.c ---- */

/* Appends a size for people, "17.0 KiB". */
void inspect_put_size(struct sl_buf *out, uint64_t size);

void findings_print(struct inspect_results *f, struct sl_buf *out);
void findings_json(struct inspect_results *f, struct sl_json_writer *w);
/* Adds a function to the list while reading: a line, indented by its depth. */
void findings_add_function(struct inspect_results *f, const struct sl_function *function, struct sl_str name,
                           struct sl_str location, unsigned depth);
/* Writes one element of `variants`. */
void findings_variant(struct sl_json_writer *w, const struct sl_object_info *info);
/* "dsym", "elf" ...: the format's name in the JSON output. */
const char *findings_type(enum sl_format format);

/* ---- mapping.c, minidump.c, sourcemap.c, symbfile.c: files that hold no objects ---- */

struct inspected_file {
    const char *path;
    struct sl_bytes bytes;
    const struct options *options;
    const struct sl_debug_id *wanted; /* NULL: any */
    struct sl_json_writer *w;         /* NULL: text output */
    struct sl_buf *out;
    bool other_id; /* the id is not the wanted one: nothing was shown */
    bool unusable; /* a part of the file cannot be read */
};

/* Shows the file if it is of this kind, or a damaged file of it. False, showing nothing, for other kinds. */
typedef bool inspect_kind(struct inspected_file *file);
inspect_kind inspect_mapping, inspect_minidump, inspect_sourcemap, inspect_symbfile;
