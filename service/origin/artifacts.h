/* Files of JavaScript releases in a Sentry installation: its artifact lookup. A request has a release with names of
 * its files, or debug ids; the response lists archives with such files, and single files. */
#pragma once

#include "origin/origin.h"

enum artifact_match { /* how Sentry found an artifact */
                      MATCH_UNKNOWN,
                      MATCH_DEBUG_ID,
                      MATCH_URL,
                      MATCH_INDEX,
                      MATCH_RELEASE,
                      MATCH_RELEASE_OLD,
                      MATCH_FROM_WEB, /* not from Sentry: fetched from the web */
};
const char *artifact_match_name(enum artifact_match match); /* "debug-id" and so on */

struct artifact {
    struct remote_file file; /* for origin_fetch(); its source is the queried one */
    bool is_bundle;
    enum artifact_match match;
    /* single files only */
    struct sl_str abs_path;
    bool has_headers;
    struct sl_str sourcemap; /* value of the header "sourcemap", else "x-sourcemap"; data NULL = neither */
};

struct artifact_query { /* lists are sorted, without duplicates; empty texts = absent */
    struct sl_str release, dist;
    const struct sl_str *stems; /* names of the release's files, from their URLs */
    size_t stem_count;
    const struct sl_debug_id *debug_ids;
    size_t debug_id_count;
};

/* Lists the artifacts that the source has for the query. Makes no request if the query has neither a debug id nor a release with names of
 * files (stems). Responses are cached for sentry_index_ttl_ns of the options. Results lie in the arena and refer to `source`.
 * SL_DOWNLOAD_ERROR if the response is not a list; invalid elements are skipped. */
enum sl_code origin_artifacts(const struct source *source, const struct artifact_query *query, struct sl_arena *arena,
                              struct artifact **items, size_t *count, struct sl_error *error) SL_SUSPENDS;
