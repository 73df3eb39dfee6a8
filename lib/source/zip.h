/* ZIP archives in memory, for source bundles (APPNOTE.TXT 6.3.10, sections 4.3 and 4.4; ZIP64 for reading only).
 *
 * The directory is read once, into the caller's arena; reading an entry is then a pure function of the bytes, so any
 * number of threads may do it. Entries may be stored or deflated; other methods and encryption are not supported. Local
 * headers are only used to find the data; sizes and checksums come from the directory. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct sl_zip_entry {
    struct sl_str name;    /* as stored, no terminator */
    uint64_t offset;       /* offset of the local header */
    uint64_t packed, size; /* bytes: in the archive, uncompressed */
    uint32_t crc;          /* of the uncompressed bytes */
    uint16_t method;       /* SL_ZIP_ENCRYPTED for encrypted entries of any method */
    bool is_link;          /* a symbolic link, from Unix */
};

enum { SL_ZIP_STORED = 0, SL_ZIP_DEFLATED = 8, SL_ZIP_ENCRYPTED = UINT16_MAX };

struct sl_zip {
    struct sl_bytes bytes; /* offsets are relative to this */
    struct sl_zip_entry *entries;
    size_t count;
};

enum { SL_ZIP_MAX_ENTRIES = 1000000 };

/* Reads the directory. The entries are in the arena, their names point into `bytes`. `skip`: number of bytes in front of the archive,
 * such as a header; offsets in the archive may count them or not. SL_MALFORMED with the reason and the position; SL_BUSY. */
enum sl_code sl_zip_open(struct sl_bytes bytes, size_t skip, struct sl_arena *arena, struct sl_zip *zip,
                         struct sl_error *error);

/* Appends the uncompressed contents of an entry to `out`. SL_UNSUPPORTED if they are larger than `limit`; SL_MALFORMED if they are
 * damaged, encrypted, or do not match size and checksum in the directory; SL_BUSY. On failure the contents of `out` are unchanged. */
enum sl_code sl_zip_read(const struct sl_zip *zip, const struct sl_zip_entry *entry, uint64_t limit, struct sl_buf *out,
                         struct sl_error *error);

/* Sets `*packed` to the bytes of an entry as they are in the archive; a deflate stream in them may be followed by unused bytes.
 * SL_MALFORMED if they are outside of the archive. */
enum sl_code sl_zip_packed(const struct sl_zip *zip, const struct sl_zip_entry *entry, struct sl_bytes *packed,
                           struct sl_error *error);

struct sl_zip_sink { /* receives the contents of an entry piece by piece */
    /* `used`: number of compressed bytes read so far. False: pass no more. */
    bool (*take)(void *arg, struct sl_bytes piece, uint64_t used);
    void *arg;
};

/* Passes the uncompressed contents of an entry to `sink` in pieces; their size is not limited. Size and checksum are checked only at the
 * end: SL_MALFORMED. SL_CANCELLED if sink->take returns false; SL_UNSUPPORTED if the entry is encrypted or of an unknown method; SL_BUSY
 * when out of memory. */
enum sl_code sl_zip_stream(const struct sl_zip *zip, const struct sl_zip_entry *entry, const struct sl_zip_sink *sink,
                           struct sl_error *error);

/* ---- writing: offsets are relative to the beginning of `out`, which may already contain something ---- */

struct sl_zip_writer { /* zero-initialise, then set `out` */
    struct sl_buf *out;
    struct sl_buf directory;
    uint32_t count;
    struct sl_error error; /* the first failure; code SL_OK = no failure */
};

/* Adds an entry with these contents, deflated and dated 1980-01-01. A failure is kept in writer->error. */
void sl_zip_add(struct sl_zip_writer *writer, struct sl_str name, struct sl_bytes contents);

/* Writes the directory and ends the writer. Returns the first error, also of sl_zip_add(): SL_UNSUPPORTED when the archive would need
 * ZIP64; SL_BUSY when out of memory. */
enum sl_code sl_zip_finish(struct sl_zip_writer *writer, struct sl_error *error);
