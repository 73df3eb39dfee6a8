/* Scripts, source maps and artifact bundles in directories: the local replacement of Sentry's artifact lookup for JavaScript.
 *
 *     *.zip                        artifact bundles: by debug id, and by release, dist and the stem of their files' URLs
 *     X.js (.mjs, .jsx, .ts, ..)   by the debug id in its comment, else by the longest common end of path and URL
 *     *.map                        by path; X.js.map for a script that names no map, or names one that does not exist
 *
 * Private to this folder. */
#pragma once

#include "api/local_request.h"

struct local_artifacts;

/* Indexes the files of `paths`: directories, or single files. Warns of files that are broken archives. NULL: out of memory. */
struct local_artifacts *local_artifacts_new(const char *const *paths, size_t count);
void local_artifacts_free(struct local_artifacts *artifacts); /* may be NULL */

/* The look_up callback of struct local_request; `arg` is the artifacts. The items point into the artifacts and must not outlive them. */
bool local_artifacts_find(void *arg, const struct local_file_query *query, struct sl_arena *arena,
                          struct artifact **items, size_t *count);

/* Strips the parameters that React Native's packager appends after `//&`; those after `?` stay. */
struct sl_str url_without_parameters(struct sl_str url);

/* Appends the path of a URL as a file path: without host and query, percent signs decoded. */
void put_url_path(struct sl_str url, struct sl_buf *out);

/* The number of equal components at the ends of two paths. */
size_t path_common_parts(struct sl_str a, struct sl_str b);

/* Whether the file has the extension of a script, or of a source map. */
bool path_is_script(const char *path);
bool path_is_map(const char *path);
