/* Shared by the files of this folder. Private. */
#pragma once

#include "package/package.h"

enum coding { CODING_STORED, CODING_GZIP, CODING_XZ, CODING_ZSTD, CODING_BZIP2 };
enum coding coding_detect(struct sl_bytes bytes);

/* ---- stream.c: the decompressed contents of a part of a file, in pieces ---- */

struct stream;

/* Opens the contents from the uncompressed `offset` on. A compressed stream is decompressed from the last block that begins
 * at or before it, and what lies between is dropped. NULL with the error set: SL_MALFORMED, SL_BUSY. */
struct stream *stream_open(struct sl_bytes packed, uint64_t offset, const struct sl_package_limits *limits,
                           struct sl_error *error);
/* Returns the next piece, valid until the next call; empty at the end. */
enum sl_code stream_next(struct stream *stream, struct sl_bytes *piece, struct sl_error *error);
void stream_close(struct stream *stream);

/* True if the contents consist of several blocks that can be decompressed by themselves. */
bool stream_is_seekable(struct sl_bytes packed);

/* ---- seek.c: blocks that can be decompressed by themselves ---- */

struct block_place {
    uint64_t packed_offset; /* in the file */
    uint64_t offset;        /* of its first byte, uncompressed */
};
/* Finds the last zstd frame (RFC 8878, 3.1) that begins at or before `offset`; frames that do not say their size end the
 * search. */
struct block_place zstd_find_frame(struct sl_bytes packed, uint64_t offset);

/* True if there is a second frame. */
bool zstd_has_frames(struct sl_bytes packed);

/* ---- deb.c, rpm.c ---- */

/* Finds the compressed archive of the members; data NULL if the package has none that can be read. */
struct sl_bytes deb_payload(struct sl_bytes file);
struct sl_bytes rpm_payload(struct sl_bytes file);
void deb_source(struct sl_bytes file, struct sl_package_source *source);
void rpm_source(struct sl_bytes file, struct sl_package_source *source);

/* ---- walk.c ---- */
struct member_path {
    char text[SL_PACKAGE_MAX_PATH + 2];
    size_t size;
};
/* Copies a path from an archive in the form that members have. False if it has "..", is empty or is too long. */
bool member_path_set(struct member_path *path, struct sl_str text);

/* Calls the visitor for the members of a tar or cpio archive. */
enum sl_code archive_walk(struct sl_bytes packed, uint64_t offset, const struct sl_package_visitor *visitor,
                          const struct sl_package_limits *limits, struct sl_error *error);
/* Calls the visitor for the members of a ZIP file (zip.c). */
enum sl_code zip_walk(struct sl_bytes file, uint64_t offset, const struct sl_package_visitor *visitor,
                      const struct sl_package_limits *limits, struct sl_error *error);
