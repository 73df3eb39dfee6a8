/* Declarations that the files of this folder share: decompression, and the readers of the package formats. Private. */
#pragma once

#include "package/package.h"

/* Compression of a file, by its magic; CODING_STORED: none that is known. */
enum coding { CODING_STORED, CODING_GZIP, CODING_XZ, CODING_ZSTD, CODING_BZIP2 };
enum coding coding_detect(struct sl_bytes bytes);

/* ---- stream.c: decompresses a file, or a part of one, step by step ---- */

struct stream;

/* Opens a stream of the decompressed contents of `packed` from `offset` (in the contents) on. Decompression begins at the last block
 * that begins at or before the offset, and the bytes before the offset are dropped. NULL when out of memory (SL_BUSY). */
struct stream *stream_open(struct sl_bytes packed, uint64_t offset, const struct sl_package_limits *limits,
                           struct sl_error *error);
/* Sets `*piece` to the next bytes of the contents, which are valid until the next call; empty at the end. */
enum sl_code stream_next(struct stream *stream, struct sl_bytes *piece, struct sl_error *error);
void stream_close(struct stream *stream);

/* True if stream_open() reaches an offset without decompressing all before it: `packed` is not compressed, or has several blocks that can
 * be decompressed by themselves. */
bool stream_is_seekable(struct sl_bytes packed);

/* ---- seek.c: blocks that can be decompressed by themselves ---- */

struct block_place {        /* where a block begins */
    uint64_t packed_offset; /* in the compressed file */
    uint64_t offset;        /* in the decompressed contents */
};
/* Finds the last zstd frame (RFC 8878, 3.1) that begins at or before `offset` in the contents; the first one if the offset is beyond the
 * end. The search ends at a frame whose header does not state its decompressed size. */
struct block_place zstd_find_frame(struct sl_bytes packed, uint64_t offset);

/* True if zstd_find_frame() can find a second frame. */
bool zstd_has_frames(struct sl_bytes packed);

/* ---- deb.c, rpm.c ---- */

/* Return the part of a deb or rpm package that is the (compressed) archive of its files; data NULL if there is none that can be read. */
struct sl_bytes deb_payload(struct sl_bytes file);
struct sl_bytes rpm_payload(struct sl_bytes file);
/* Set what a deb or rpm package was built from (sl_package_source); leave `source` empty if that is unknown. */
void deb_source(struct sl_bytes file, struct sl_package_source *source);
void rpm_source(struct sl_bytes file, struct sl_package_source *source);

/* ---- walk.c ---- */
struct member_path {
    char text[SL_PACKAGE_MAX_PATH + 2];
    size_t size;
};
/* Copies a path from an archive, cleaned: it begins with `/`, has no "." components and no control characters, and is UTF-8. False if it
 * has "..", is empty or is too long. */
bool member_path_set(struct member_path *path, struct sl_str text);

/* Calls the visitor for the members of a tar or cpio archive, which may be compressed; arguments and errors as of sl_package_walk(). */
enum sl_code archive_walk(struct sl_bytes packed, uint64_t offset, const struct sl_package_visitor *visitor,
                          const struct sl_package_limits *limits, struct sl_error *error);
/* zip.c: calls the visitor for the members of a ZIP file; arguments and errors as of sl_package_walk(). */
enum sl_code zip_walk(struct sl_bytes file, uint64_t offset, const struct sl_package_visitor *visitor,
                      const struct sl_package_limits *limits, struct sl_error *error);
