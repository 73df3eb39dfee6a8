/* `symloom sort`: declarations that its files share. A piece is an object to be sorted: a file, a member of a ZIP archive, or a slice of a
 * fat file. The work is done in steps, so that the result depends on the order of the paths alone and not on the number of threads:
 *
 *     inputs.c   walk the inputs; read each file: its objects become pieces, each with its target path
 *     sort.c     of the pieces with one target, choose the first to be written; compare the others with it
 *     place.c    write them, several files at once; compare with existing files
 *     sort.c     report the result of each piece */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

#define SORT_NO_MEMBER SIZE_MAX /* `member` of a piece that is not inside a ZIP archive */

/* What was done with an object. EXISTS: its target has the same contents already; DUPLICATE: its target has other contents, and is kept;
 * SKIPPED: it is no debug file. */
enum sort_action { SORT_WRITTEN, SORT_EXISTS, SORT_DUPLICATE, SORT_SKIPPED, SORT_ERROR };

struct sort_piece {       /* an object, or a file that cannot be sorted */
    const char *name;     /* last component of the file's or the member's name */
    size_t member, slice; /* member: index in a ZIP archive, or SORT_NO_MEMBER; slice: index in a fat file */
    const char *target;   /* path below the root: "67/e9247c..f/debuginfo"; NULL: cannot be sorted */
    const char *alias;    /* a second path for the same file, or NULL */
    const char *id;       /* the id in `target` */
    const char *kind, *arch, *format;
    struct sl_debug_id debug_id;
    bool has_debug, is_source;
    bool first; /* of all pieces with this target, it is the first by path: it is the one written */
    const struct sort_piece *leader; /* if not the first: the piece that is */
    uint64_t size, hash;             /* of its bytes; set in dry runs */
    enum sort_action action;
    const char *reason; /* why it was skipped or failed */
};

/* An input file, or a source bundle that was made here (--with-sources). */
struct sort_file {
    const char *path;
    uint64_t size;
    struct sl_buf made;    /* contents of a source bundle that was made here; data NULL: an input file */
    struct sl_arena arena; /* for its pieces: only one thread uses a file at a time */
    struct sort_piece *pieces;
    size_t piece_count, piece_capacity;
    bool failed; /* out of memory: pieces, or texts of them, are missing */
};

struct sort {
    const struct options *o;
    const struct sl_parallel *parallel;
    char root[4096];       /* DIR[/PREFIX] */
    const char *bundle_id; /* name under which the files are listed in bundles/<id>; NULL: not listed */
    int level;             /* zstd level; 0: uncompressed */
    bool dry_run, force, ignore_errors, quiet, json, verbose, with_sources;

    struct sl_arena arena;
    struct sort_file *files; /* sorted by path */
    size_t file_count, file_capacity;
    size_t *by_size; /* indices of `files`, the largest file first */
    struct progress progress;
    uint64_t total; /* bytes of all files */
    size_t errors;  /* number of pieces that could not be sorted */
    bool failed;    /* out of memory */
};

/* Adds the file `input`, or the regular files below the directory `input` in the order of their paths, to s->files. Reports directories and
 * files that cannot be read on stderr. */
void sort_walk(struct sort *s, const char *input);

/* Reads a file and fills file->pieces: its objects, with the paths where they go. Sets file->failed when out of memory. */
void sort_inspect(struct sort_file *file);

/* Records that an object could not be sorted, and why; `reason` is copied. */
void sort_fail_piece(struct sort_file *file, struct sort_piece *piece, const char *reason);

/* Reads the file again and calls `visit` with the bytes of each of its objects that has a target, in order. Those that cannot be read get
 * the action SORT_ERROR instead. */
void sort_for_each(struct sort_file *file, void (*visit)(void *arg, struct sort_piece *piece, struct sl_bytes bytes),
                   void *arg);

/* Writes an object to its target, unless a file is there that must be kept, and the `.meta` file and reference beside it. Sets its action,
 * and the reason on an error. In a dry run only sets the action. `workers`: threads that may compress it. */
void sort_write_piece(const struct sort *s, struct sort_file *file, struct sort_piece *piece, struct sl_bytes bytes,
                      unsigned workers);

/* Writes a small file below the root atomically, unless it has these contents; creates its directory. */
enum sl_code sort_write_small(const struct sort *s, const char *below, struct sl_str text, struct sl_error *error);

/* sources.c: makes a source bundle for each debug file that has none among the inputs, and adds it to s->files, to be sorted like an input.
 * Returns the number of bundles made; sets s->failed when out of memory. */
size_t sort_sources(struct sort *s);
