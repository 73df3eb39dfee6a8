/* A running service instead of this process: --server. Private to this folder. */
#pragma once

#include "cli/symbolicate/symbolicate.h"

struct remote_part { /* of a form */
    const char *name;
    struct sl_bytes bytes;
};

/* The answer of the service at --server to a JSON body, or to a form when there are parts; waits for it. Returns a status, after a
 * report unless 0. */
int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer);
