/* ZIP archives in memory, as source bundles are (APPNOTE.TXT 6.3.10, sections 4.3 and 4.4; ZIP64 in reading).
 *
 * The directory is read once, into the caller's arena; reading an entry is then a pure function of the bytes, so any
 * number of threads may do it. Entries are stored or deflated; others, and encrypted ones, are unreadable. Local headers
 * say nothing that is believed but where the data begin. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct sl_zip_entry {
    struct sl_str name; /* as stored, no terminator */
    uint64_t offset;    /* of the local header */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method; /* SL_ZIP_ENCRYPTED when it is, however it was packed */
    bool is_link;    /* a symbolic link of a Unix system */
};

enum { SL_ZIP_STORED = 0, SL_ZIP_DEFLATED = 8, SL_ZIP_ENCRYPTED = UINT16_MAX };

struct sl_zip {
    struct sl_bytes bytes; /* what offsets count in */
    struct sl_zip_entry *entries;
    size_t count;
};

enum { SL_ZIP_MAX_ENTRIES = 1000000 };

/* Names and entries point into `bytes` and the arena. Offsets may count from the beginning or from `skip`. SL_MALFORMED
 * tells what is wrong and where. */
enum sl_code sl_zip_open(struct sl_bytes bytes, size_t skip, struct sl_arena *arena, struct sl_zip *zip,
                         struct sl_error *error);

/* Appends the contents to `out`: at most `limit` bytes, of the size and checksum that the directory promises.
 * SL_UNSUPPORTED over the limit, else SL_MALFORMED. On failure `out` is as it was. */
enum sl_code sl_zip_read(const struct sl_zip *zip, const struct sl_zip_entry *entry, uint64_t limit, struct sl_buf *out,
                         struct sl_error *error);

/* What an entry's contents are packed into: all of it, of which a deflated stream may leave some unused. SL_MALFORMED when it
 * is outside of the archive. */
enum sl_code sl_zip_packed(const struct sl_zip *zip, const struct sl_zip_entry *entry, struct sl_bytes *packed,
                           struct sl_error *error);

/* As sl_zip_read, but the contents are given piece by piece, however large they are; whether they are what the directory
 * promises is known at the end. `used` tells how much of the packed bytes was used so far. SL_CANCELLED when `take` says false;
 * SL_UNSUPPORTED: encrypted, or packed in an unknown way. */
struct sl_zip_sink {
    bool (*take)(void *arg, struct sl_bytes piece, uint64_t used);
    void *arg;
};
enum sl_code sl_zip_stream(const struct sl_zip *zip, const struct sl_zip_entry *entry, const struct sl_zip_sink *sink,
                           struct sl_error *error);

/* ---- writing: local headers count from the beginning of `out`, which may hold something before ---- */

struct sl_zip_writer {
    struct sl_buf *out;
    struct sl_buf directory;
    uint32_t count;
    struct sl_error error; /* of the first failure; code SL_OK = none */
};

/* Deflates one entry, dated 1980-01-01. */
void sl_zip_add(struct sl_zip_writer *writer, struct sl_str name, struct sl_bytes contents);

/* Writes the directory and ends the writer. SL_UNSUPPORTED when the archive would need ZIP64. */
enum sl_code sl_zip_finish(struct sl_zip_writer *writer, struct sl_error *error);
