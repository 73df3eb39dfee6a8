/* Files with several objects: fat Mach-O files, which hold one program for several processors, a slice each (Apple, <mach-o/fat.h>).
 *
 * Every file can be opened as an archive: one that is not fat has one object, the whole file. An archive is a view: nothing is
 * allocated, and the bytes must outlive it and the objects opened from it. */
#pragma once

#include "object/object.h"

struct sl_archive {
    struct sl_bytes bytes;
    size_t count; /* objects, at least 1 */
    bool is_fat;
    bool is_64bit; /* fat: offsets and sizes of 64 bits */
};

/* Detects the format and reads only the header of a fat file. SL_MALFORMED "unsupported object file format", or "invalid MachO file: ..."
 * if the header is damaged or slices overlap. */
enum sl_code sl_archive_open(struct sl_bytes bytes, struct sl_archive *archive, struct sl_error *error);

/* Sets `bytes` to those of object `index`, counted in file order: a complete object file, or its first part if the archive is truncated.
 * False if there is no such object, or if it is empty or begins beyond the end of the archive. */
bool sl_archive_slice(const struct sl_archive *archive, size_t index, struct sl_bytes *bytes);

/* Opens object `index` with sl_object_open(); SL_NOT_FOUND past the last one. If `limits` has no budget, the object makes one by the
 * size of its slice. */
enum sl_code sl_archive_object(const struct sl_archive *archive, size_t index, const struct sl_object_limits *limits,
                               struct sl_object **object, struct sl_error *error);

/* The id of the wanted object: the debug id if it is set, else the code id (lower-case hex; may be empty). */
struct sl_object_wanted {
    const struct sl_debug_id *debug_id; /* may be NULL */
    struct sl_str code_id;
};

/* True if the object has the wanted id: UUIDs equal and age at least the wanted one; without a wanted debug id, equal code
 * ids. An id that is empty or all zeros matches nothing. The build id of a WASM file matches with and without its length
 * prefix. */
bool sl_object_matches(const struct sl_object_info *info, const struct sl_object_wanted *wanted);

/* Opens the object that matches `wanted`. A file that is not fat has one object, which is opened whatever its ids are. In a fat file
 * it is the first slice that matches, or the first readable one if no id is wanted; unreadable slices are skipped. `index` (may be NULL)
 * receives the number of the slice. If no slice matches: the error of the first unreadable slice, else SL_NOT_FOUND. */
enum sl_code sl_archive_find(const struct sl_archive *archive, const struct sl_object_wanted *wanted,
                             const struct sl_object_limits *limits, struct sl_object **object, size_t *index,
                             struct sl_error *error);
