/* Artifact bundles of JavaScript releases in the store of uploaded debug files: archives with scripts, source maps and sources.
 *
 *     objects/artifacts/<aa>/<sha1>            the bundle
 *     uploads/js/ids/<debug id>/<entry>        the bundles with a file of that debug id (32 hex digits)
 *     uploads/js/releases/<key>/<entry>        the bundles of a release and distribution, by their SHA-1
 *
 * An entry is an empty object "{}" named "<time>-<sha1>", so that names sort by the time of the upload. */
#pragma once

#include "debug_file_store/debug_file_store.h"

struct artifact_release { /* empty texts = none */
    struct sl_str release, dist;
};

/* Stores a bundle, whose file is consumed, and lists it by its debug ids and its release. SL_MALFORMED: refused; `error` says why, for
 * the client. */
enum sl_code artifact_bundle_add(struct store_tmp_file *file, struct sl_str sha1,
                                 const struct artifact_release *release, struct sl_error *error) SL_SUSPENDS;
/* Lists a bundle that is stored already for one more release. SL_NOT_FOUND if it is not. */
enum sl_code artifact_bundle_link(struct sl_str sha1, const struct artifact_release *release,
                                  struct sl_error *error) SL_SUSPENDS;

enum { MAX_FOUND_BUNDLES = 32 };
struct found_bundle {
    struct remote_file file; /* for origin_fetch() */
    bool by_id;              /* else by release */
};
/* Finds the bundles with a debug id (NULL: none is known) or of a release, newest first, at most MAX_FOUND_BUNDLES of each. */
enum sl_code artifact_bundles_find(const struct artifact_release *release, const struct sl_debug_id *debug_id,
                                   struct sl_arena *arena, struct found_bundle **bundles, size_t *count,
                                   struct sl_error *error) SL_SUSPENDS;
