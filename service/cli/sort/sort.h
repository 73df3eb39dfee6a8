/* `symloom sort`: declarations that its files share. The work is done in passes, so that the result depends on the order of the paths
 * alone and not on the number of threads:
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

enum sort_action { SORT_WRITTEN, SORT_EXISTS, SORT_DUPLICATE, SORT_SKIPPED, SORT_ERROR };

struct sort_piece {       /* an object, or a file that cannot be sorted */
    const char *name;     /* last component of the file's or the member's name */
    size_t member, slice; /* index in a ZIP archive, or SORT_NO_MEMBER; in a fat file */
    const char *target;   /* path below the root: "67/e9247c..f/debuginfo"; NULL: cannot be sorted */
    const char *alias;    /* a second path for the same file, or NULL */
    const char *id;       /* the id in `target` */
    const char *kind, *arch, *format;
    struct sl_debug_id debug_id;
    bool has_debug, is_source;
    bool first;                      /* the first piece with this target */
    const struct sort_piece *leader; /* for the others: that first piece */
    uint64_t size, hash;             /* of its bytes; set in dry runs */
    enum sort_action action;
    const char *reason; /* why it was skipped or failed */
};

struct sort_file {
    const char *path;
    uint64_t size;
    struct sl_buf made;    /* contents of a generated file; else data is NULL */
    struct sl_arena arena; /* for its pieces: only one thread uses a file at a time */
    struct sort_piece *pieces;
    size_t piece_count, piece_capacity;
    bool failed; /* out of memory: pieces, or texts of them, are missing */
};

struct sort {
    const struct options *o;
    const struct sl_parallel *parallel;
    char root[4096];       /* DIR[/PREFIX] */
    const char *bundle_id; /* NULL: none */
    int level;             /* zstd level; 0: uncompressed */
    bool dry_run, force, ignore_errors, quiet, json, verbose, with_sources;

    struct sl_arena arena;
    struct sort_file *files; /* sorted by path */
    size_t file_count, file_capacity;
    size_t *by_size; /* indices of `files`, the largest file first */
    struct progress progress;
    uint64_t total; /* bytes of all files */
    size_t errors;
    bool failed; /* out of memory */
};

/* Adds the regular files below `input`, sorted by path; reports unreadable ones on stderr. */
void sort_walk(struct sort *s, const char *input);

/* Reads the file and fills its pieces; sets file->failed when out of memory. */
void sort_inspect(struct sort_file *file);

/* Marks the piece as one that could not be sorted, for a reason that is copied. */
void sort_fail_piece(struct sort_file *file, struct sort_piece *piece, const char *reason);

/* Calls `visit` with the bytes of each piece that has a target, in order. */
void sort_for_each(struct sort_file *file, void (*visit)(void *arg, struct sort_piece *piece, struct sl_bytes bytes),
                   void *arg);

/* Writes the piece to its target, with the files that go beside it; sets its action and reason. `workers`: threads that this call may
 * use. */
void sort_write_piece(const struct sort *s, struct sort_file *file, struct sort_piece *piece, struct sl_bytes bytes,
                      unsigned workers);

/* Writes a small file below the root atomically, unless it has these contents; creates its directory. */
enum sl_code sort_write_small(const struct sort *s, const char *below, struct sl_str text, struct sl_error *error);

/* sources.c: makes a source bundle for each id with debug information that has none; the bundles become pieces to sort. Returns their
 * number; sets s->failed when out of memory. */
size_t sort_sources(struct sort *s);
