/* `symloom inspect`: reads a file and prints what is in it.
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

/* Totals of an object whose contents were read (inspect_results.complete). */
struct inspect_counts {
    uint64_t files, functions, inlinees, lines, symbols, cfi;
    size_t skipped; /* compilation units that could not be read */
};

struct inspect_results {
    const struct options *options;
    const char *path;
    struct input *input;          /* holds the object, or the symcache */
    size_t index, count;          /* number of the object in the file, from 0, and how many there are */
    struct sl_buf *json_variants; /* JSON text about all objects of the file, for the member `variants` */
    struct finding_lists lists;
    bool complete; /* the contents were read, as far as they are readable, so `counts` are set */
    struct inspect_counts counts;
    const char *problem; /* NULL: usable */
    const char *note;    /* what a usable object lacks; NULL: nothing to say */
    struct sl_buf hints; /* what the user could do about it; each ends in '\n' */
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

/* Fills `problem`, `note` and `hints` for the object; with --verify or an option for a list, reads the whole object and fills the lists. */
void findings_make(struct inspect_results *f);
void findings_free(struct inspect_results *f);

/* Returns the sorted keys of a map; NULL when out of memory. The caller frees the array. */
struct sl_str *findings_sorted(const struct sl_map *map);

/* Appends the URL from which the source file `path` can be downloaded: by the source bundle, the Source Link rules or what else the object
 * says of its files; nothing when there is none. */
void findings_link(const struct inspect_results *f, struct sl_str path, struct sl_buf *url);

/* Returns the file of a source bundle whose URL is `path`; NULL when no file has this URL, or when the bundle has a file whose path is
 * `path`. */
const struct sl_bundle_file *findings_artifact(const struct inspect_results *f, struct sl_str path);

/* Passes every STACK record of the object, with its line end, to `write`, which returns false to stop. Returns their number. */
uint64_t findings_cfi(struct inspect_results *f, bool (*write)(void *arg, struct sl_str line), void *arg);

/* ---- print.c ---- */

/* Appends a number of bytes for people: "17.0 KiB". */
void inspect_put_size(struct sl_buf *out, uint64_t size);
/* Appends the first two lines about a file without objects: its path, with control characters escaped, then its format and size, without
 * the line end. */
void inspect_put_head(struct sl_buf *out, const char *path, const char *format, uint64_t size);
/* Appends the line of --check about a file: "Usable: yes  PATH", or "Usable: no (PROBLEM)  PATH" unless `problem` is NULL. */
void inspect_put_usable(struct sl_buf *out, const char *path, const char *problem);

void findings_print(struct inspect_results *f, struct sl_buf *out);
void findings_json(struct inspect_results *f, struct sl_json_writer *w);
/* Adds a function or inlined call to the list of functions: a line, indented by `depth` (0: function), or with --json the beginning of an
 * object. The caller adds the inlined calls and ends the array `inlinees` and the object. */
void findings_add_function(struct inspect_results *f, const struct sl_function *function, struct sl_str name,
                           struct sl_str location, unsigned depth);
/* Writes one element of the JSON array `variants`: the ids and architecture of an object of the file. */
void findings_variant(struct sl_json_writer *w, const struct sl_object_info *info);
/* Returns the name of a format in the JSON output and for --type: "dsym", "elf" ... */
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
    bool unusable; /* the file is damaged or of no use, which its "Usable" line explains */
};

/* Shows a file of one kind, also if it is damaged. False, showing nothing, for files of other kinds. */
typedef bool inspect_kind(struct inspected_file *file);
inspect_kind inspect_mapping, inspect_minidump, inspect_sourcemap, inspect_symbfile;
