/* Portable PDB: debug information of .NET compilers about methods, source lines and source files.
 *
 * The container is CLI metadata (ECMA-335, partition II, section 24); the tables are those of the Portable PDB
 * Format Specification v1.0. `sl_ppdb_open` reads headers and sizes the tables; all else is decoded on demand. Rows count
 * from 1, as in metadata; a MethodDebugInformation row has the number of the MethodDef row of the assembly. A defect in one
 * method, document or embedded source never affects another.
 *
 * The source text of a .NET frame is the embedded source of the document whose name equals the frame's path, else the text
 * at the URL that the Source Link rules give for the path. ppdb/table.h has an index for both, without a scan. */
#pragma once

#include "function/function.h"
#include "id/id.h"
#include "ppdb/links.h"

enum sl_ppdb_hash { SL_PPDB_HASH_NONE, SL_PPDB_HASH_SHA1, SL_PPDB_HASH_SHA256 };

struct sl_ppdb_info {
    struct sl_debug_id debug_id; /* nil without a #Pdb stream */
    uint64_t
        id_offset; /* offset of the id's 20 bytes in the file; 0 = none. A checksum of the file takes them as zeros */
    uint64_t file_size;
    uint32_t document_count;
    uint32_t method_count; /* rows of MethodDebugInformation */
    bool has_sources;      /* a readable embedded source, or Source Link rules and documents */
};

struct sl_ppdb;

/* Opens a file. `*ppdb` lives in the arena and points into `bytes`. Work and memory are charged to the arena's budget, if it has one.
 * SL_MALFORMED with the reason; SL_BUSY; the error of sl_budget_fail() if the budget is exhausted. */
enum sl_code sl_ppdb_open(struct sl_bytes bytes, struct sl_arena *arena, struct sl_ppdb **ppdb,
                          struct sl_ppdb_info *info, struct sl_error *error);

/* ---- documents ---- */

#define SL_PPDB_MAX_NAME (32u << 10) /* bytes of a document's name */

struct sl_ppdb_document {
    enum sl_language language; /* SL_LANG_UNKNOWN also for an unknown GUID */
    enum sl_ppdb_hash hash;    /* kind of `digest`; SL_PPDB_HASH_NONE if absent or of the wrong size */
    uint8_t digest[32];        /* of the raw bytes of the source file */
    uint32_t work; /* steps that reading it took, to be charged if many are read: rows may share a long name */
};

/* Reads a document and appends its name, verbatim, to `name`. SL_MALFORMED if there is no such row or its name is damaged; SL_BUSY when out
 * of memory. After an error `name` is unchanged, and only `work` of `*document` is set: the steps to charge to a budget. */
enum sl_code sl_ppdb_document(const struct sl_ppdb *ppdb, uint32_t row, struct sl_ppdb_document *document,
                              struct sl_buf *name, struct sl_error *error);

/* ---- sequence points ---- */

struct sl_ppdb_point {
    uint32_t il_offset; /* bytes from the start of the method's IL */
    uint32_t document;  /* row of the Document table; in a damaged file it may be any number */
    uint32_t line, end_line;
    uint32_t column, end_column;
    bool hidden; /* lines and columns are 0 */
};

struct sl_ppdb_points { /* iterator; only `failed` is public */
    struct sl_reader blob;
    uint32_t il_offset, document, line, column; /* of the last point; line, column: of the last visible one */
    bool any, any_visible;                      /* a point has been read; a visible point has been read */
    bool failed;                                /* the rest of the method could not be decoded */
};

/* Begins before the first point of a method, a row of MethodDebugInformation; there are none if it has no points or is not in the table. */
void sl_ppdb_points_begin(const struct sl_ppdb *ppdb, uint32_t method, struct sl_ppdb_points *points);
/* Reads the next point; IL offsets never decrease. False at the end, and at a damaged point: `failed`. */
bool sl_ppdb_points_next(struct sl_ppdb_points *points, struct sl_ppdb_point *point);

/* ---- embedded sources ---- */

struct sl_ppdb_source { /* position of a document's text in the file */
    uint64_t offset;    /* of the content, in bytes from the start of the Portable PDB */
    uint32_t document;  /* row */
    uint32_t stored;    /* bytes in the file */
    uint32_t size;      /* bytes of the text, inflated */
    bool deflated;
};

/* Finds the next readable embedded source after `*cursor` (start with 0); false at the end. */
bool sl_ppdb_next_source(const struct sl_ppdb *ppdb, uint32_t *cursor, struct sl_ppdb_source *source);

/* Sets `*text` to the source's bytes as they were embedded: in any encoding, possibly with a byte order mark. `file` is the whole Portable
 * PDB. `*text` is a view of it or, if the source is compressed, inflated into the arena to at most `limit` bytes. SL_MALFORMED, with the
 * reason, if it is larger or damaged; SL_BUSY when out of memory. */
enum sl_code sl_ppdb_source_text(struct sl_bytes file, const struct sl_ppdb_source *source, uint64_t limit,
                                 struct sl_arena *arena, struct sl_bytes *text, struct sl_error *error);

/* ---- Source Link ---- */

/* Appends the rules of all Source Link blobs to `links`, in the stored form of ppdb/links.h; nothing if none can be read. SL_BUSY if memory
 * or budget runs out: call sl_budget_fail() with the file's budget for the error and its message. */
enum sl_code sl_ppdb_read_links(const struct sl_ppdb *ppdb, struct sl_buf *links);
