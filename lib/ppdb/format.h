/* The look-up table of a Portable PDB, version 1.0: a table (table/table.h) without section table, of these sections.
 * Private to this folder.
 *
 *     DIRECTORY  a u32 a method: where its block begins in POINTS, 0 = no points
 *     DOCUMENTS  36 bytes a document, in the order of their names: u8 language, u8 flags, u8 kind of hash, u8 zero,
 *                32 bytes digest
 *     GROUPS     of NAMES
 *     NAMES      strings
 *     POINTS     a zero byte, then the blocks
 *     SOURCES    24 bytes a source, by document: u64 offset in the Portable PDB, u32 document, u32 stored size, u32 size,
 *                u32 flags (1 = deflated)
 *     LINKS      as ppdb/links.h has them
 *
 *     block  := uleb number of points, { u32 IL offset, u32 where it begins behind this table } of every run but the
 *               first, runs of 32 points
 *     run    := uleb IL offset, uleb document, uleb line, point*
 *     point  := uleb IL offset delta, [ 0x00, uleb document ], uleb (zigzag line delta) + 1
 *
 * A line is a delta to the last one, a zero in its place announces another document. */
#pragma once

#include "ppdb/table.h"

enum {
    HEADER_SIZE = 64,
    DOCUMENT_SIZE = 36,
    SOURCE_SIZE = 24,
    RUN_POINTS = 32,
    RESTART_SIZE = 8,
    DOCUMENT_EMBEDDED = 1,
    DOCUMENT_LINKED = 2,
    SOURCE_DEFLATED = 1,
    FLAG_PARTIAL = 1, /* something could not be read and was left out */
};

enum section_id {
    SECTION_DIRECTORY = 1,
    SECTION_DOCUMENTS,
    SECTION_GROUPS,
    SECTION_NAMES,
    SECTION_POINTS,
    SECTION_SOURCES,
    SECTION_LINKS,
    SECTION_ID_END,
};

/* Offsets in the header. */
enum {
    AT_FLAGS = 8,
    AT_UUID = 12,
    AT_AGE = 28,
    AT_METHODS = 32,
    AT_DOCUMENTS = 36,
    AT_NAMES_SIZE = 40,
    AT_POINTS_SIZE = 44,
    AT_SOURCES = 48,
    AT_LINKS_SIZE = 52,
};

static const struct sl_table_format ppdb_table_format = {
    .magic = "SLPP", .name = "look-up table of a Portable PDB", .major = 1, .header_size = HEADER_SIZE};
