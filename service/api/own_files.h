/* Forms (multipart/form-data), and files that come with a request, for it alone: parts `artifact` are such files, called as their
 * file names say. They are kept nowhere. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum { OWN_FILES_MAX = 32 };

struct own_file {
    struct sl_str name; /* may be empty */
    struct sl_str text;
};

struct own_files {
    bool sent;          /* the request is a form */
    bool keeps_folders; /* in names; else these are the last parts of what was sent */
    struct own_file items[OWN_FILES_MAX];
    size_t count;
};

struct form_part { /* of which the last of several counts */
    struct sl_str name;
    uint64_t max;       /* bytes; 0: any */
    struct sl_str text; /* data NULL: it was not sent */
};

/* Splits the form into its files and the texts of these parts, which are views of it; names of files are in the arena.
 * SL_MALFORMED; SL_UNSUPPORTED when a part is too large, as `error` says; SL_BUSY. Pure. */
enum sl_code form_split(struct sl_bytes form, struct sl_str boundary, struct sl_arena *arena, struct own_files *files,
                        struct form_part *parts, size_t count, struct sl_error *error);

/* The first that is called like the last part of this path or URL; NULL when none is. */
const struct own_file *own_files_named(const struct own_files *files, struct sl_str path, const char *suffix);
