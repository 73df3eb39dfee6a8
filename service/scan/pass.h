/* State of a pass over a scanned directory, for pass.c. Private. */
#pragma once

#include "scan/impl.h"

struct pass {
    struct scan *scan;
    struct sl_arena arena;
    const char *root; /* path of the scanned directory */
    unsigned kinds;   /* wanted kinds of files, as in struct config_scan */
    uint64_t key;     /* scan->key when the pass began */
    struct scan_walk walk;
    struct scan_index *old;              /* the index when the pass began; NULL: none */
    uint32_t *todo;                      /* files that are to be read: indexes into walk.files */
    size_t todo_count, next;             /* next: index into `todo` of the file that is read next */
    uint64_t kept, read, packages;       /* numbers of files: unchanged since `old`; read; packages among those read */
    struct sl_index_builder builder;     /* of the new index */
    bool builder_is_used;                /* locked by a fiber that may have suspended */
    struct fiber_wait_list builder_free; /* fibers that wait for the lock */
    struct sl_buf out;                   /* the index to be published, as bytes */
    bool is_publishing;                  /* one of the fibers writes the unfinished index (publish_early) */
    uint64_t published_ms, publish_after_ms; /* when the pass last published its index; time until it does so again */
    struct sl_error failure;                 /* why the pass ends early; code SL_OK: it does not */
};

/* Returns the path of a found file, relative to the root. */
static inline const char *pass_path(const struct pass *p, const struct scan_found_file *file)
{
    return (const char *)p->walk.paths.data + file->path;
}
