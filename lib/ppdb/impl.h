/* What the files of the Portable PDB reader share. Private to this folder. */
#pragma once

#include "ppdb/ppdb.h"

enum { TABLE_COUNT = 64, MAX_COLUMNS = 10 };

enum table_id { /* the ones that are read; all others are only sized */
                TABLE_MODULE = 0x00,
                TABLE_DOCUMENT = 0x30,
                TABLE_METHOD_DEBUG_INFORMATION = 0x31,
                TABLE_CUSTOM_DEBUG_INFORMATION = 0x37,
};

struct table {
    const uint8_t *rows; /* inside the tables stream */
    uint32_t count;
    uint8_t row_size;
    uint8_t widths[MAX_COLUMNS]; /* bytes; 0 behind the last column */
};

struct sl_ppdb {
    struct sl_bytes bytes;
    struct sl_bytes guids, blobs;
    struct sl_budget *budget;         /* the arena's: of all that is made of the file */
    uint32_t referenced[TABLE_COUNT]; /* rows of tables that are in the assembly, not here */
    struct table tables[TABLE_COUNT];
};

/* ---- tables.c ---- */

/* Finds every table in the stream `#~`. */
enum sl_code ppdb_read_tables(struct sl_ppdb *ppdb, struct sl_bytes stream, struct sl_error *error);

/* All columns of a row (counted from 1); false outside of the table. */
bool ppdb_row(const struct sl_ppdb *ppdb, enum table_id table, uint32_t row, uint64_t values[MAX_COLUMNS]);

/* ---- heaps.c ---- */

/* ECMA-335, II.23.2: fails the reader where it is no compressed integer. */
uint32_t ppdb_read_unsigned(struct sl_reader *r);
int32_t ppdb_read_signed(struct sl_reader *r);

/* The blob at an offset of the heap: `invalid blob offset`, `invalid blob data`. Offset 0 is empty. */
enum sl_code ppdb_blob(const struct sl_ppdb *ppdb, uint64_t offset, struct sl_bytes *blob, struct sl_error *error);

/* The GUID (as stored, 16 bytes) with an index from 1; NULL when there is none. */
const uint8_t *ppdb_guid(const struct sl_ppdb *ppdb, uint64_t index);

/* ---- custom.c ---- */

enum custom_kind { CUSTOM_EMBEDDED_SOURCE, CUSTOM_SOURCE_LINK };

/* The next row of this kind behind `*row`, with the parent's tag and row. */
bool ppdb_next_custom(const struct sl_ppdb *ppdb, enum custom_kind kind, uint32_t *row, uint32_t *parent_tag,
                      uint32_t *parent, uint64_t *blob);

/* ---- fold.c ---- */

/* The next code point of the text in lower case (Unicode's simple mapping), moving `*at`. A byte that is no UTF-8 stands
 * for itself, beyond the code points. */
uint32_t links_next_lower(struct sl_str text, size_t *at);

/* Appends it as UTF-8, or such a byte as it was. */
void links_add_code_point(struct sl_buf *out, uint32_t code_point);
