/* Structures shared by the files of the Portable PDB reader. Private to this folder. */
#pragma once

#include "ppdb/ppdb.h"

enum { TABLE_COUNT = 64, MAX_COLUMNS = 10 };

/* The tables that are read; others are skipped by their size. */
enum table_id {
    TABLE_MODULE = 0x00,
    TABLE_DOCUMENT = 0x30,
    TABLE_METHOD_DEBUG_INFORMATION = 0x31,
    TABLE_CUSTOM_DEBUG_INFORMATION = 0x37,
};

struct ppdb_metadata_table {
    const uint8_t *rows; /* inside the tables stream */
    uint32_t count;
    uint8_t row_size;
    uint8_t widths[MAX_COLUMNS]; /* bytes; 0 after the last column */
};

struct sl_ppdb {
    struct sl_bytes bytes;
    struct sl_bytes guids, blobs;
    struct sl_budget *budget;         /* of the arena given to sl_ppdb_open(); may be NULL */
    uint32_t referenced[TABLE_COUNT]; /* row counts of tables of the assembly, another file, to which rows here refer */
    struct ppdb_metadata_table tables[TABLE_COUNT];
};

/* ---- tables.c ---- */

/* Finds every table in the stream `#~` and sets ppdb->tables. ppdb->referenced must be set. SL_MALFORMED if the stream is too short. */
enum sl_code ppdb_read_tables(struct sl_ppdb *ppdb, struct sl_bytes stream, struct sl_error *error);

/* Reads all columns of a row (rows count from 1); false outside the table. */
bool ppdb_row(const struct sl_ppdb *ppdb, enum table_id table, uint32_t row, uint64_t values[MAX_COLUMNS]);

/* ---- heaps.c ---- */

/* Read a compressed integer (ECMA-335, II.23.2); set r->failed if it is malformed. */
uint32_t ppdb_read_unsigned(struct sl_reader *r);
int32_t ppdb_read_signed(struct sl_reader *r);

/* Sets `*blob` to the item (blob) at an offset of the #Blob heap; offset 0 is the empty one. SL_MALFORMED if the offset is outside of the
 * heap or the item is cut off. */
enum sl_code ppdb_blob(const struct sl_ppdb *ppdb, uint64_t offset, struct sl_bytes *blob, struct sl_error *error);

/* Returns the GUID (16 bytes as stored) with an index from 1, or NULL. */
const uint8_t *ppdb_guid(const struct sl_ppdb *ppdb, uint64_t index);

/* ---- custom.c ---- */

enum custom_kind { CUSTOM_EMBEDDED_SOURCE, CUSTOM_SOURCE_LINK };

/* Finds the next row of this kind after `*row` (0 to begin), and sets `*row`, the parent's tag (which table) and row, and the offset of the
 * row's value in the blob heap. False if there is none. */
bool ppdb_next_custom(const struct sl_ppdb *ppdb, enum custom_kind kind, uint32_t *row, uint32_t *parent_tag,
                      uint32_t *parent, uint64_t *blob);

/* ---- fold.c ---- */

/* Returns the next code point of the text in lower case (Unicode's simple mapping) and moves `*at`. A byte that is not valid UTF-8 is
 * returned as 0x110000 + byte. */
uint32_t ppdb_next_lower(struct sl_str text, size_t *at);

/* Appends a result of ppdb_next_lower: a code point as UTF-8, an invalid byte as it was. */
void links_add_code_point(struct sl_buf *out, uint32_t code_point);
