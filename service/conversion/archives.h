/* Converters of uploaded archives: list the entries of an archive, check each entry and store it. Archives are ZIP files (APPNOTE.TXT
 * 6.3.10); a file that is uploaded alone may be a gzip file (RFC 1952).
 *
 *     archive_list ── converter_archive_list ──> entries ── archive_read_entries ──> struct sl_zip
 *     for each entry: converter_member_check, then converter_member_write */
#pragma once

#include "conversion/conversion.h"
#include "source/zip.h"

/* Which part of INPUT_FILE is the archive: a request body can have other data around it. */
struct archive_window {
    uint64_t offset, size; /* bytes */
};

/* An entry of an archive: struct sl_zip_entry without pointers, so that a worker process can write it to a file. */
struct archive_entry {
    uint64_t offset, packed, size;
    uint64_t name_offset; /* where the archive has the entry's name */
    uint32_t name_size, crc;
    uint32_t method, is_link;
};

/* Reads the archive's central directory; `out` gets a struct archive_entry for each entry. Options: struct archive_window. */
extern const struct converter converter_archive_list;

/* Runs converter_archive_list on the archive in the window of the file `fd`; if `fd` is -1, on `archive` in memory. `*entries` is a new
 * file in memory with the entries, which the caller closes; -1 on failure. SL_MALFORMED: not a ZIP archive; other codes as for
 * conversion_run(). */
enum sl_code archive_list(int fd, const struct archive_window *window, struct sl_bytes archive, int *entries,
                          struct sl_error *error) SL_SUSPENDS;
/* Reads the file `entries` of archive_list() into `zip`, whose names point into `archive`. A worker that a hostile file has taken over can
 * have written it, so it is checked: SL_MALFORMED if it is damaged or a name lies outside of the archive. Blocks: run it on the pool. */
enum sl_code archive_read_entries(int entries, struct sl_bytes archive, struct sl_arena *arena, struct sl_zip *zip,
                                  struct sl_error *error);

/* Returns the entry with its name as an offset in the archive instead of a pointer, so that another process can read it. */
struct archive_entry archive_pack_entry(const struct sl_zip *zip, const struct sl_zip_entry *entry);

/* Decompresses an entry; the result has its MD5, and whether it contains one of the forbidden texts INPUT_TEXTS (optional; see
 * archive_put_text). SL_MALFORMED if its size or CRC differs from that of the entry. */
extern const struct converter converter_member_check;
struct member_check_options {
    struct archive_window window;
    struct archive_entry entry;
};
struct member_check_result {
    uint8_t md5[16];
    uint64_t used;     /* bytes of the archive that the compressed data takes */
    bool is_forbidden; /* the entry contains a forbidden text: the rest of it was not read, and `md5` is not set */
    uint32_t text;     /* index of that text in INPUT_TEXTS */
};
/* Appends a forbidden text to the bytes of INPUT_TEXTS: its size (uint32_t), then its bytes. */
void archive_put_text(struct sl_buf *texts, struct sl_str text);

/* Writes an entry that was checked by converter_member_check: its contents, or with a head_size a gzip file of them. The compressed bytes
 * of a deflated entry are copied into the gzip file, which has the same format of data: nothing is compressed again. SL_UNSUPPORTED: the
 * disk is full. */
extern const struct converter converter_member_write;
struct member_write_options {
    struct archive_window window;
    struct archive_entry entry;
    uint64_t used;       /* member_check_result.used */
    uint32_t head_size;  /* size of `head`; 0 = the contents are written as they are */
    uint8_t head[64];    /* gzip header */
    uint64_t max_output; /* 0 = all; else at most so many bytes of the contents are written */
};

/* Checks a gzip file: CRC and size, and that only one member is in it. `out`, if the call has one, gets the first `head_size` bytes of the
 * contents. */
extern const struct converter converter_gzip_check;
struct gzip_check_options {
    uint64_t max_size;  /* most bytes that the contents may have; more is SL_MALFORMED */
    uint64_t head_size; /* bytes of the contents to write to `out`; at most 64 KiB */
    bool is_plain;      /* not a gzip file: the contents are the file */
};
struct gzip_check_result {
    uint64_t header_size, size; /* sizes of the gzip header and of the contents */
    uint8_t md5[16];            /* of the contents */
};
