/* What the parts of `symloom sort` share. It works in steps, so that what is written depends on the order of paths alone, however
 * many threads there are:
 *
 *   inputs.c   walk the inputs; look at each file: its objects become pieces, each with the place where it belongs
 *   sort.c     of pieces for one place the first is to be written, the others are compared with it
 *   place.c    write them, several files at once; what is there already is compared
 *   sort.c     tell what became of each */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

enum sort_action { SORT_WRITTEN, SORT_EXISTS, SORT_DUPLICATE, SORT_SKIPPED, SORT_ERROR };

struct sort_piece {       /* an object, or what is wrong with a file */
    const char *name;     /* last part of the file's or the member's name */
    size_t member, slice; /* of an archive; of a fat file */
    const char *target;   /* below the root: "67/e9247c..f/debuginfo"; NULL: it has no place */
    const char *alias;    /* a second place for the same, or NULL */
    const char *id;       /* by which it is filed */
    const char *kind, *arch, *format;
    struct sl_debug_id debug_id;
    bool has_debug, is_source;
    bool first;                      /* of the pieces with this target */
    const struct sort_piece *leader; /* that first one, of the others */
    uint64_t size, hash;             /* of its bytes, where nothing is written */
    enum sort_action action;
    const char *reason; /* why it was not sorted */
};

struct sort_file {
    const char *path;
    uint64_t size;
    struct sl_buf made;    /* its bytes, where it was made here; else data is NULL */
    struct sl_arena arena; /* of its pieces: a file belongs to one thread at a time */
    struct sort_piece *pieces;
    size_t piece_count, piece_capacity;
};

struct sort {
    const struct options *o;
    const struct sl_parallel *parallel;
    char root[4096];       /* DIR[/PREFIX] */
    const char *bundle_id; /* NULL: none */
    int level;             /* of zstd; 0: stored */
    bool dry_run, force, ignore_errors, quiet, json, verbose, with_sources;

    struct sl_arena arena;
    struct sort_file *files; /* in the order of their paths */
    size_t file_count, file_capacity;
    size_t *by_size; /* numbers of files, the largest first */
    struct progress progress;
    uint64_t total; /* bytes of all files */
    size_t errors;
    bool failed; /* out of memory */
};

/* Adds the regular files below `input`, in the order of their paths; what cannot be read is told on stderr. */
void sort_walk(struct sort *s, const char *input);

/* Looks at the file: fills its pieces. */
void sort_look(struct sort_file *file);

/* Adds a piece, whose texts are the caller's; NULL when out of memory. */
struct sort_piece *sort_add_piece(struct sort_file *file, const char *name);

/* Calls `visit` with the bytes of each piece that has a place, in order. */
void sort_each(struct sort_file *file, void (*visit)(void *arg, struct sort_piece *piece, struct sl_bytes bytes),
               void *arg);

/* Puts the piece where it belongs, with what lies beside it; sets its action and reason. `workers`: threads for it alone. */
void sort_place(const struct sort *s, struct sort_file *file, struct sort_piece *piece, struct sl_bytes bytes,
                unsigned workers);

/* A small file below the root, as a whole; its directory is made. */
enum sl_code sort_write_small(const struct sort *s, const char *below, struct sl_str text, struct sl_error *error);

/* sources.c: source bundles of the files with debug information, for each id that has none; they become pieces that are
 * sorted. Returns how many. */
size_t sort_sources(struct sort *s);
