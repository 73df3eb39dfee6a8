/* The look-up table of a Portable PDB (`SLPP`): (method, IL offset) -> document, line; and the positions of sources.
 *
 * Written once from an opened Portable PDB, used in place from a mapping: opening checks a fixed header, a lookup
 * finds the block of delta-coded points by an array indexed by method. Little-endian on every host; the layout is in
 * format.h. A damaged file yields no result, never a crash. Any number of threads may share a table. */
#pragma once

#include "ppdb/ppdb.h"
#include "table/table.h"

/* ---- writing ---- */

/* Appends the table to `out`; equal input gives equal bytes. Methods and documents that cannot be read are left out and
 * counted in `*dropped` (may be NULL). SL_BUSY when out of memory, SL_MALFORMED if the table would be too large; the error of
 * sl_budget_fail() if the budget of `ppdb` is exhausted. */
enum sl_code sl_ppdb_table_build(const struct sl_ppdb *ppdb, const struct sl_ppdb_info *info, struct sl_buf *out,
                                 size_t *dropped, struct sl_error *error);

/* ---- reading ---- */

struct sl_ppdb_table {
    struct sl_debug_id debug_id;
    uint32_t method_count, document_count, source_count;
    struct sl_table table;         /* private */
    struct sl_table_strings names; /* private */
    struct sl_ppdb_links links;    /* Source Link rules */
};

/* Checks the header; SL_MALFORMED if it is bad. `table` points into `bytes`, which must outlive it. */
enum sl_code sl_ppdb_table_open(struct sl_bytes bytes, struct sl_ppdb_table *table, struct sl_error *error);

/* Checks the whole table by decoding everything once, for new and for untrusted files. SL_MALFORMED with the first problem. */
enum sl_code sl_ppdb_table_verify(const struct sl_ppdb_table *table, struct sl_error *error);

struct sl_ppdb_location {
    uint32_t document; /* id of the document in this table */
    uint32_t line;
};

/* Finds the last visible point of `method` (MethodDef row) at or before `il_offset`. False if there is none, and for UINT32_MAX, which
 * clients send for an unknown offset. */
bool sl_ppdb_table_lookup(const struct sl_ppdb_table *table, uint32_t method, uint32_t il_offset,
                          struct sl_ppdb_location *location);

struct sl_ppdb_table_document {
    struct sl_ppdb_document properties;
    bool embedded, linked; /* it has an embedded source; a Source Link rule matches its name */
};
/* Reads a document. False, with all members 0, if the id is bad. Unknown values of damaged tables become SL_LANG_UNKNOWN and
 * SL_PPDB_HASH_NONE. */
bool sl_ppdb_table_document(const struct sl_ppdb_table *table, uint32_t id, struct sl_ppdb_table_document *document);

/* Appends the name of the document with this id, verbatim, or nothing if there is no such id. */
void sl_ppdb_table_name(const struct sl_ppdb_table *table, uint32_t id, struct sl_buf *name);

/* Finds the first document with exactly this name; documents with the same name and another language have the ids after `*id`. False if
 * there is none. */
bool sl_ppdb_table_find(const struct sl_ppdb_table *table, struct sl_str name, uint32_t *id);

/* Finds the embedded source of a document with exactly this name, for sl_ppdb_source_text with the Portable PDB that the table was
 * made from; source->document is an id of this table. False if there is none: sl_ppdb_links_resolve() with `table->links` may then know a
 * URL of the text. */
bool sl_ppdb_table_source(const struct sl_ppdb_table *table, struct sl_str name, struct sl_ppdb_source *source);
