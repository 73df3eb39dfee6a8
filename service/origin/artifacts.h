/* Files of JavaScript releases that a Sentry installation keeps: its artifact look-up. One request names a release with files
 * of it, or debug ids; the answer lists archives that hold such files, and single files. */
#pragma once

#include "origin/origin.h"

enum artifact_match { /* how Sentry came to an artifact */
                      MATCH_UNKNOWN,
                      MATCH_DEBUG_ID,
                      MATCH_URL,
                      MATCH_INDEX,
                      MATCH_RELEASE,
                      MATCH_RELEASE_OLD,
                      MATCH_SCRAPING, /* not at all: it comes from the web */
};
const char *artifact_match_name(enum artifact_match match); /* "debug-id" and so on */

struct artifact {
    struct remote_file file; /* for origin_fetch; of the source that was asked */
    bool is_bundle;
    enum artifact_match match;
    /* of single files */
    struct sl_str abs_path;
    bool has_headers;
    struct sl_str sourcemap; /* of the header "sourcemap", else of "x-sourcemap"; data NULL = neither */
};

struct artifact_query { /* sorted, each once; empty texts = absent */
    struct sl_str release, dist;
    const struct sl_str *stems; /* of URLs of the release */
    size_t stem_count;
    const struct sl_debug_id *debug_ids;
    size_t debug_id_count;
};

/* What the source has for the query; nothing, and nobody is asked, when that names neither a debug id nor a release with stems.
 * Answers are remembered as lists of Sentry are. All of it lies in the arena, and refers to `source`. An answer that is no list
 * is SL_DOWNLOAD_ERROR; elements that do not fit are left out. */
enum sl_code origin_artifacts(const struct source *source, const struct artifact_query *query, struct sl_arena *arena,
                              struct artifact **items, size_t *count, struct sl_error *error) SL_SUSPENDS;
