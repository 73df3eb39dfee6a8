/* Artifact bundles of JavaScript releases in the store of uploaded debug files: archives with scripts, source maps and sources.
 *
 *     objects/artifacts/<aa>/<sha1>            the bundle; <aa> are the first two digits of <sha1>
 *     uploads/js/ids/<debug id>/<entry>        lists a bundle with a file of that debug id (32 hex digits)
 *     uploads/js/releases/<key>/<entry>        lists a bundle of a release and distribution; <key> is the SHA-1 of these two
 *
 * An entry is named "<time>-<sha1 of the bundle>", so that names sort by the time of the upload; its contents are "{}". */
#pragma once

#include "debug_file_store/debug_file_store.h"

struct artifact_release { /* empty texts = none */
    struct sl_str release, dist;
};

/* Stores a bundle and lists it by its debug ids and its release (`release`; without one, the release of its manifest). Consumes `file` in
 * any case. SL_MALFORMED: the bundle is refused; `error` says why, for the client. */
enum sl_code artifact_bundle_add(struct store_tmp_file *file, struct sl_str sha1,
                                 const struct artifact_release *release, struct sl_error *error) SL_SUSPENDS;
/* Lists a stored bundle for one more release. SL_NOT_FOUND if there is no such bundle. */
enum sl_code artifact_bundle_link(struct sl_str sha1, const struct artifact_release *release,
                                  struct sl_error *error) SL_SUSPENDS;

enum { MAX_FOUND_BUNDLES = 32 };
struct found_bundle {
    struct remote_file file; /* for origin_fetch() */
    bool by_id;              /* found by the debug id; false: by the release */
};
/* Finds three lists of bundles, which follow each other: those with a file of the debug id (NULL: none is known), those of the release and
 * distribution, and those of the release without a distribution. Each list has the newest first, and at most MAX_FOUND_BUNDLES. */
enum sl_code artifact_bundles_find(const struct artifact_release *release, const struct sl_debug_id *debug_id,
                                   struct sl_arena *arena, struct found_bundle **bundles, size_t *count,
                                   struct sl_error *error) SL_SUSPENDS;
