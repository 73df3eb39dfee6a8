/* Forms (multipart/form-data) with symbol files that are used for this request only and not stored: each part `artifact` is a file, named
 * by its `filename`. A body of POST /symbolicate with a symbol file:
 *
 *     --B
 *     Content-Disposition: form-data; name="request"
 *
 *     {"stacktraces": [...], "modules": [...]}
 *     --B
 *     Content-Disposition: form-data; name="artifact"; filename="app.debug"
 *
 *     ...
 *     --B-- */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum { OWN_FILES_MAX = 32 };

struct request_file {
    struct sl_str name; /* may be empty */
    struct sl_str text;
};

struct request_files {
    bool sent;          /* the request is a form */
    bool keeps_folders; /* names keep their folders; otherwise they are reduced to the last path component */
    struct request_file items[OWN_FILES_MAX];
    size_t count;
};

struct form_part { /* a part whose text the caller wants; of several with this name the last one counts */
    struct sl_str name;
    uint64_t max;       /* limit in bytes; 0: none */
    struct sl_str text; /* data NULL: not sent */
};

/* Splits the form: fills `files` with its parts named `artifact`, and the texts of the `count` parts in `parts`, whose names are set.
 * Contents and texts are views of the form; file names are in the arena. SL_MALFORMED if it is no form with this boundary or has more than
 * OWN_FILES_MAX files; SL_UNSUPPORTED when a part is larger than its limit; SL_BUSY when out of memory. */
enum sl_code form_split(struct sl_bytes form, struct sl_str boundary, struct sl_arena *arena,
                        struct request_files *files, struct form_part *parts, size_t count, struct sl_error *error);

/* Returns the first file whose name is the last component of `path` followed by `suffix` (".map", or ""); NULL if there is none. `path` may
 * be a URL, whose query and fragment do not count. */
const struct request_file *files_of_form(const struct request_files *files, struct sl_str path, const char *suffix);
