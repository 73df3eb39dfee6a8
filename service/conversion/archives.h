/* Converters of uploaded archives: their directory is listed, their members are checked and stored. Archives are ZIP files
 * (APPNOTE.TXT 6.3.10); a file that is uploaded alone may be a gzip file (RFC 1952).
 *
 *     archive_list ── converter_archive_list ──> entries ── archive_read_entries ──> struct sl_zip
 *     for each entry: converter_member_check, then converter_member_write */
#pragma once

#include "conversion/conversion.h"
#include "source/zip.h"

/* Where an archive lies in INPUT_FILE. */
struct archive_window {
    uint64_t offset, size; /* bytes */
};

/* An entry of an archive: struct sl_zip_entry without pointers. */
struct archive_entry {
    uint64_t offset, packed, size;
    uint64_t name_offset; /* of the name in the archive */
    uint32_t name_size, crc;
    uint32_t method, is_link;
};

/* Reads the directory; `out` gets one struct archive_entry for each entry. Options: struct archive_window. */
extern const struct converter converter_archive_list;

/* Runs it on the archive in the file `fd`, or in memory if `fd` is -1. `*entries` is a new file in memory, which the caller closes.
 * SL_MALFORMED: not a ZIP archive. */
enum sl_code archive_list(int fd, const struct archive_window *window, struct sl_bytes archive, int *entries,
                          struct sl_error *error) SL_SUSPENDS;
/* Makes the directory from the entries; names point into the archive. The entries are distrusted: SL_MALFORMED if a name lies outside
 * of the archive. Blocks: pool work. */
enum sl_code archive_read_entries(int entries, struct sl_bytes archive, struct sl_arena *arena, struct sl_zip *zip,
                                  struct sl_error *error);

/* Returns the entry as plain data. */
struct archive_entry archive_pack_entry(const struct sl_zip *zip, const struct sl_zip_entry *entry);

/* Decompresses an entry: its MD5, and whether it contains one of the texts INPUT_TEXTS (archive_put_text; optional). Size and
 * checksum must be those of the directory: SL_MALFORMED. */
extern const struct converter converter_member_check;
struct member_check_options {
    struct archive_window window;
    struct archive_entry entry;
};
struct member_check_result {
    uint8_t md5[16];
    uint64_t used;     /* bytes of the archive that the compressed data takes */
    bool is_forbidden; /* it contains a text, so the rest of it was not read */
    uint32_t text;     /* index of that text */
};
/* Appends a text to the texts of INPUT_TEXTS: its size (uint32_t), its bytes. */
void archive_put_text(struct sl_buf *texts, struct sl_str text);

/* Writes an entry that was checked: its contents, or a gzip file of them with this header. A deflated entry is copied into the gzip
 * file, as both use the same stream: nothing is compressed again. SL_UNSUPPORTED: the disk is full. */
extern const struct converter converter_member_write;
struct member_write_options {
    struct archive_window window;
    struct archive_entry entry;
    uint64_t used;       /* as checked */
    uint32_t head_size;  /* of `head`; 0 = the contents are written as they are */
    uint8_t head[64];    /* gzip header */
    uint64_t max_output; /* 0 = all; else at most so many bytes of the contents are written */
};

/* Checks a gzip file of one member: CRC and size, and that nothing follows. `out` gets the first `head_size` bytes of the contents. */
extern const struct converter converter_gzip_check;
struct gzip_check_options {
    uint64_t max_size;  /* of the contents; more is SL_MALFORMED */
    uint64_t head_size; /* at most 64 KiB */
    bool is_plain;      /* not a gzip file: the contents are the file */
};
struct gzip_check_result {
    uint64_t header_size, size; /* of the gzip header; of the contents */
    uint8_t md5[16];            /* of the contents */
};
