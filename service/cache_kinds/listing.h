/* Lists the files that symbol sources may have for a module (listing.c). */
#pragma once

#include "origin/origin.h"

struct listing { /* the files of one source */
    const struct source *source;
    struct remote_file *files;
    size_t count;
    enum sl_code code; /* SL_OK, SL_CANCELLED or SL_BUSY; the listing of a failing source is empty */
    bool failed;       /* the source could not be listed now, so it may have files */
};
/* Fills in one listing per source, in the order of `sources`; those that need the network are asked concurrently. A source that fails gets
 * an empty listing. Returns SL_OK, SL_CANCELLED or SL_BUSY. */
enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings) SL_SUSPENDS;

/* True if list_sources needs no network requests for these sources. */
bool list_needs_no_io(const struct source *sources, size_t source_count);
