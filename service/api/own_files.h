/* Files that come with a request, for it alone: it is a form then (multipart/form-data), whose part `request` is the JSON and
 * whose parts `artifact` are the files, called as their file names say. They are kept nowhere. */
#pragma once

#include "api/json_body.h"

enum { OWN_FILES_MAX = 32 };

struct own_file {
    struct sl_str name; /* without folders; may be empty */
    struct sl_str text;
};

struct own_files {
    bool sent; /* the request is such a form */
    struct own_file items[OWN_FILES_MAX];
    size_t count;
};

/* Of routes that take JSON or such a form; the limit of a form is that of JSON. */
void check_json_or_form(struct http_exchange *x);

/* json_body_read, of a form too: files and JSON lie in the body's arena. `files->sent` is known when the JSON is read. */
bool own_files_read(struct http_exchange *x, const struct json_body *body, struct own_files *files) SL_SUSPENDS;

/* The first that is called like the last part of this path or URL; NULL when none is. */
const struct own_file *own_files_named(const struct own_files *files, struct sl_str path, const char *suffix);
