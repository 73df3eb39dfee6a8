/* What the sources have for a module, in their order (listing.c). */
#pragma once

#include "origin/origin.h"

struct listing { /* what one source has for a module */
    const struct source *source;
    struct remote_file *files;
    size_t count;
    enum sl_code code; /* SL_OK, or SL_CANCELLED; a source that fails has nothing */
};
/* Fills the listings of the sources, those that need the network at the same time. SL_OK, SL_CANCELLED, SL_INTERNAL. */
enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings) SL_SUSPENDS;

/* Whether that takes no question to anybody. */
bool lists_at_once(const struct source *sources, size_t source_count);
