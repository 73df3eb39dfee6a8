/* Scripts, source maps and artifact bundles below directories: what serves a request for frames of JavaScript without Sentry.
 *
 *     *.zip                        artifact bundles: by debug id, and by release, dist and the stem of their files' URLs
 *     X.js (.mjs, .jsx, .ts, ..)   by the debug id in its comment, else by the path that ends most like the one asked for
 *     *.map                        by path; of a script that names none the one called X.js.map beside it, and of one that is not there
 *
 * Private to this folder. */
#pragma once

#include "api/local_request.h"

struct local_artifacts;

/* Looks through the places: directories, or files themselves. What is no archive is warned of. NULL: out of memory. */
struct local_artifacts *local_artifacts_new(const char *const *places, size_t count);
void local_artifacts_free(struct local_artifacts *artifacts); /* may be NULL */

/* As look_up of struct local_request; `arg` is the artifacts. What it finds must not outlive them. */
bool local_artifacts_look_up(void *arg, const struct local_file_query *query, struct sl_arena *arena,
                             struct artifact **items, size_t *count);

/* The URL without the parameters that React Native writes behind `//&`, which others write behind a question mark. */
struct sl_str url_without_parameters(struct sl_str url);

/* Appends the path of a URL as files have it: without host and query, and with what percent signs stand for. */
void put_url_path(struct sl_str url, struct sl_buf *out);

/* How many parts of two paths are equal at their ends. */
size_t path_common_parts(struct sl_str a, struct sl_str b);

/* Whether the file is called like a script, like a source map. */
bool path_is_script(const char *path);
bool path_is_map(const char *path);
