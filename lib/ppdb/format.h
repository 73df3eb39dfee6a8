/* The look-up table of a Portable PDB, version 1.0: a table (table/table.h) without section table, of these sections.
 * Private to this folder.
 *
 *     DIRECTORY  a u32 per method: offset of its block in POINTS, 0 = no points
 *     DOCUMENTS  36 bytes per document, sorted by name: u8 language, u8 flags, u8 kind of hash, u8 zero, 32 bytes digest
 *     GROUPS     u32 offset in NAMES of each group of 16 strings, and the end of the last
 *     NAMES      names of the documents: the sorted strings of table/table.h
 *     POINTS     a zero byte, so that no block has the offset 0; then a block per method that has points
 *     SOURCES    24 bytes per source, sorted by document: u64 offset in the Portable PDB, u32 document, u32 stored size, u32 size,
 *                u32 flags (1 = deflated)
 *     LINKS      rules in the form of ppdb/links.h
 *
 *     block  := uleb number of points, a pair for every run but the first, runs of 32 points (the last has the rest)
 *     pair   := u32 IL offset at which the run begins, u32 offset of the run from the end of the last pair
 *     run    := uleb IL offset, uleb document, uleb line, point*
 *     point  := uleb IL offset delta, [ 0x00, uleb document ], uleb (zigzag line delta) + 1
 *
 * A line is stored as a delta to that of the point before, plus 1: a zero in its place announces another document. The block of a
 * method with 3 points:
 *
 *     03            number of points; one run
 *     00 00 0A      IL offset 0, document 0, line 10
 *     05 03         IL offset 5, line 11: zigzag(1) + 1
 *     04 00 02 10   IL offset 9, document 2, line 3: zigzag(-8) + 1 */
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
    FLAG_PARTIAL = 1, /* methods or documents that could not be read were left out */
};

enum ppdb_section_id {
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
