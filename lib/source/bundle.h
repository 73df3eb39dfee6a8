/* Source bundles: the sources of one build in an archive, found by the paths and URLs the build knew them by.
 *
 *     "SYSB" | u32 version, not looked at | ZIP archive, offsets from the beginning of the file
 *
 * Its entry manifest.json describes the others:
 *
 *     {"files": {"files/src/a.c": {"type": "source", "path": "/src/a.c", "url": "...", "headers": {...}}, ...},
 *      "source_links": {"C:\\src\\*": "https://..."}, "debug_id": "...", "code_id": "...", "arch": "...", ...}
 *
 * Opening reads the archive's directory and the manifest once; entries are inflated when they are asked for. An open
 * bundle is immutable: any number of threads may share one. It points into the bytes it was opened on. */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/error.h"
#include "id/id.h"

enum sl_bundle_type {
    SL_BUNDLE_SOURCE,
    SL_BUNDLE_MINIFIED_SOURCE,
    SL_BUNDLE_SOURCE_MAP,
    SL_BUNDLE_INDEXED_RAM_BUNDLE,
};
const char *sl_bundle_type_name(enum sl_bundle_type type); /* as in the manifest */

struct sl_bundle_header {
    struct sl_str name, value; /* the name in lower case */
};

struct sl_bundle_file {
    struct sl_str name; /* of the archive's entry */
    struct sl_str path; /* as the build knew it, with slashes; may be empty */
    struct sl_str url;  /* may be empty */
    enum sl_bundle_type type;
    struct sl_debug_id debug_id; /* of the header "debug-id"; nil without one */
    const struct sl_bundle_header *headers;
    size_t header_count;
    const struct sl_zip_entry *entry; /* NULL: the manifest names what the archive has not */
};

struct sl_bundle_attributes {
    struct sl_debug_id debug_id;              /* nil when absent or not to be parsed */
    struct sl_str code_id, arch, object_name; /* as written; may be empty */
    struct sl_str release, dist;              /* of scripts; likewise */
};

struct sl_bundle;

/* `*bundle` is the caller's: sl_bundle_close. What opening takes is taken from `budget` (NULL = no limit) and given back to it in
 * the end: what an open bundle holds, sl_bundle_memory, is the caller's to count. SL_MALFORMED "malformed zip archive: ...",
 * "failed to read source bundle manifest: ..."; SL_UNSUPPORTED when the budget has less memory. */
enum sl_code sl_bundle_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bundle **bundle,
                            struct sl_error *error);
void sl_bundle_close(struct sl_bundle *bundle); /* may be NULL */

const struct sl_bundle_attributes *sl_bundle_attributes(const struct sl_bundle *bundle);
size_t sl_bundle_memory(const struct sl_bundle *bundle);    /* bytes it takes */
bool sl_bundle_has_sources(const struct sl_bundle *bundle); /* files or links */

/* The files in the order of their names. */
size_t sl_bundle_count(const struct sl_bundle *bundle);
const struct sl_bundle_file *sl_bundle_file(const struct sl_bundle *bundle, size_t index);

/* Of the archive's entry of this name; NULL when the manifest has none. */
const struct sl_bundle_file *sl_bundle_by_name(const struct sl_bundle *bundle, struct sl_str name);

/* NULL when there is none; of several the one with the greatest name. By path: separators do not matter, and for Windows
 * paths neither does the case if only one file fits then. */
const struct sl_bundle_file *sl_bundle_by_path(const struct sl_bundle *bundle, struct sl_str path);
const struct sl_bundle_file *sl_bundle_by_url(const struct sl_bundle *bundle, struct sl_str url);
const struct sl_bundle_file *sl_bundle_by_debug_id(const struct sl_bundle *bundle, const struct sl_debug_id *id,
                                                   enum sl_bundle_type type);

/* What the bundle's source links say of the path; as sl_ppdb_links_resolve of
 * ppdb/links.h, whose rules they are. */
bool sl_bundle_link(const struct sl_bundle *bundle, struct sl_str path, struct sl_buf *url);

/* Appends the file's bytes to `out`. `limit`: greatest inflated size. SL_UNSUPPORTED "the source file exceeded the size
 * limit", SL_MALFORMED, SL_NOT_FOUND when the archive has no such entry. */
enum sl_code sl_bundle_read(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t limit,
                            struct sl_buf *out, struct sl_error *error);

/* ---- writing ---- */

struct sl_bundle_writer;

struct sl_bundle_attribute {
    struct sl_str name, value;
};

/* Writes to the end of `out`, which must be empty. NULL when out of memory. Equal calls give equal bytes. */
struct sl_bundle_writer *sl_bundle_writer_new(struct sl_buf *out);
void sl_bundle_writer_free(struct sl_bundle_writer *writer);

/* Adds the text of the file `path` under a name made of its path, or of its URL if the path is empty; `url` may be empty.
 * False, and nothing added, if it is not UTF-8. */
bool sl_bundle_add(struct sl_bundle_writer *writer, enum sl_bundle_type type, struct sl_str path, struct sl_str url,
                   struct sl_bytes text);

/* Adds the manifest with these attributes, and ends the file. SL_NOT_FOUND "nothing written" when no file was added;
 * SL_UNSUPPORTED when it is too large. */
enum sl_code sl_bundle_finish(struct sl_bundle_writer *writer, const struct sl_bundle_attribute *attributes,
                              size_t count, struct sl_error *error);
