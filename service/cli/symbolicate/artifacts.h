/* Scripts, source maps and artifact bundles in directories: what events, requests and texts of JavaScript find on this machine.
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

/* Returns the name of the script of frames that name none ("f@1:2"): the only script, or that of the only map. A view; data NULL: there
 * are others too, or none. */
struct sl_str local_artifacts_only_script(const struct local_artifacts *artifacts);
