/* Source bundles: the sources of one build in an archive, found by the paths and URLs of the build.
 *
 *     "SYSB" | u32 version, ignored | ZIP archive, offsets from the beginning of the file
 *
 * The archive's entry manifest.json describes the others:
 *
 *     {"files": {"files/src/a.c": {"type": "source", "path": "/src/a.c", "url": "...", "headers": {...}}, ...},
 *      "source_links": {"C:\\src\\*": "https://..."}, "debug_id": "...", "code_id": "...", "arch": "...", ...}
 *
 * Opening reads the archive's directory and the manifest; entries are inflated when they are read. An open bundle is
 * immutable: any number of threads may share it. It points into the bytes it was opened on. */
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
    struct sl_str name; /* name of the archive's entry */
    struct sl_str path; /* path in the build, with slashes; may be empty */
    struct sl_str url;  /* may be empty */
    enum sl_bundle_type type;
    struct sl_debug_id debug_id; /* from the header "debug-id"; nil if it is absent */
    const struct sl_bundle_header *headers;
    size_t header_count;
    const struct sl_zip_entry *entry; /* NULL: the manifest lists the file, but the archive does not contain it */
};

struct sl_bundle_attributes {
    struct sl_debug_id debug_id;              /* nil if absent or malformed */
    struct sl_str code_id, arch, object_name; /* as written; may be empty */
    struct sl_str release, dist;              /* release and distribution of scripts; as written; may be empty */
};

struct sl_bundle;

/* Opens a bundle; the caller closes it with sl_bundle_close(). Memory is charged to `budget` (NULL = no limit) only while opening, and
 * credited back at the end: the caller accounts for sl_bundle_memory() of an open bundle. SL_MALFORMED "malformed zip archive: ...",
 * "failed to read source bundle manifest: ..."; SL_UNSUPPORTED if the budget is too small. */
enum sl_code sl_bundle_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bundle **bundle,
                            struct sl_error *error);
void sl_bundle_close(struct sl_bundle *bundle); /* may be NULL */

const struct sl_bundle_attributes *sl_bundle_attributes(const struct sl_bundle *bundle);
size_t sl_bundle_memory(const struct sl_bundle *bundle);    /* bytes */
bool sl_bundle_has_sources(const struct sl_bundle *bundle); /* files or source links */

/* Files sorted by name. */
size_t sl_bundle_count(const struct sl_bundle *bundle);
const struct sl_bundle_file *sl_bundle_file(const struct sl_bundle *bundle, size_t index);

/* Returns the file that the manifest describes under this name of an archive entry; NULL if the manifest does not list it. */
const struct sl_bundle_file *sl_bundle_by_name(const struct sl_bundle *bundle, struct sl_str name);

/* Find a file by its path, its URL, or its debug id and type. NULL if no file matches; if several do, the one with the greatest name. In
 * paths a slash matches a backslash. Windows paths also match in another case, unless several files would match then. */
const struct sl_bundle_file *sl_bundle_by_path(const struct sl_bundle *bundle, struct sl_str path);
const struct sl_bundle_file *sl_bundle_by_url(const struct sl_bundle *bundle, struct sl_str url);
const struct sl_bundle_file *sl_bundle_by_debug_id(const struct sl_bundle *bundle, const struct sl_debug_id *id,
                                                   enum sl_bundle_type type);

/* Appends to `url` the URL that the bundle's source links give for the path; with NULL, only checks whether a link matches. False if none
 * does, if the URL would exceed 64 KiB, or when out of memory. */
bool sl_bundle_link(const struct sl_bundle *bundle, struct sl_str path, struct sl_buf *url);

/* Appends the file's bytes to `out`. SL_UNSUPPORTED "the source file exceeded the size limit" if they are more than `limit`;
 * SL_MALFORMED if the entry is damaged; SL_NOT_FOUND if the archive does not contain it. */
enum sl_code sl_bundle_read(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t limit,
                            struct sl_buf *out, struct sl_error *error);

/* ---- writing ---- */

struct sl_bundle_writer;

struct sl_bundle_attribute {
    struct sl_str name, value;
};

/* Returns a writer that appends to `out`, which must be empty; NULL if out of memory. Equal calls give equal bytes. */
struct sl_bundle_writer *sl_bundle_writer_new(struct sl_buf *out);
void sl_bundle_writer_free(struct sl_bundle_writer *writer);

/* Adds the text of the file `path` to the archive. The name of its entry is made from the path, or from the URL if the path is empty; `url`
 * may be empty. False, and nothing added, if the text is not UTF-8. Lack of memory is reported by sl_bundle_finish(). */
bool sl_bundle_add(struct sl_bundle_writer *writer, enum sl_bundle_type type, struct sl_str path, struct sl_str url,
                   struct sl_bytes text);

/* Adds the manifest with these attributes and ends the file. SL_NOT_FOUND "the source bundle would have no files" if no file was added;
 * SL_UNSUPPORTED if it is too large; SL_BUSY if memory ran out here or in sl_bundle_add(). */
enum sl_code sl_bundle_finish(struct sl_bundle_writer *writer, const struct sl_bundle_attribute *attributes,
                              size_t count, struct sl_error *error);
