/* Scripts, source maps and artifact bundles in directories: what events, requests and texts of JavaScript find on this machine.
 *
 *     *.zip                        artifact bundles: by debug id, and by release, dist and URL paths of files (without suffix)
 *     X.js (.mjs, .jsx, .ts, ..)   by the debug id in its comment, else by the longest common end of path and URL
 *     *.map                        by path; X.js.map for a script that names no map, or names one that does not exist
 *
 * Private to this folder. */
#pragma once

#include "api/local_request.h"

struct local_artifacts;

/* Indexes the files of `paths`: directories, or single files. Warns of ZIP files that are no artifact bundles, and ignores them. NULL: out
 * of memory. */
struct local_artifacts *local_artifacts_new(const char *const *paths, size_t count);
void local_artifacts_free(struct local_artifacts *artifacts); /* may be NULL */

/* Finds the artifact bundles and files that may answer a query for a script, source map or source: the callback local_request.look_up,
 * whose `arg` is the struct local_artifacts. The items point into it and must not outlive it. False when out of memory. */
bool local_artifacts_find(void *arg, const struct local_file_query *query, struct sl_arena *arena,
                          struct artifact **items, size_t *count);

/* Returns the name of the only script, or, if there are only source maps, of the script of the only map: frames that name no script
 * ("f@1:2") belong to it. A view; data NULL: there is no such script, several, or an artifact bundle. */
struct sl_str local_artifacts_only_script(const struct local_artifacts *artifacts);
