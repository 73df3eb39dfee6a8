/* The look-up table of a Portable PDB, version 1.0. Little-endian; private to this folder.
 *
 *     HEADER     64 bytes
 *     DIRECTORY  a u32 a method: where its block begins in POINTS, 0 = no points
 *     DOCUMENTS  36 bytes a document, in the order of their names: u8 language, u8 flags, u8 kind of hash, u8 zero,
 *                32 bytes digest
 *     GROUPS     a u32 for every 16 names, and one more: where in NAMES they begin
 *     NAMES      the first of a group whole, the others as uleb shared prefix, uleb rest, bytes; the first as uleb size,
 *                bytes
 *     POINTS     a zero byte, then the blocks
 *     SOURCES    24 bytes a source, by document: u64 offset in the Portable PDB, u32 document, u32 stored size, u32 size,
 *                u32 flags (1 = deflated)
 *     LINKS      as ppdb/links.h has them
 *
 * They follow each other without gaps, so their sizes are all the header needs to have.
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
    FORMAT_MAJOR = 1,
    FORMAT_MINOR = 0,
    DOCUMENT_SIZE = 36,
    SOURCE_SIZE = 24,
    GROUP_NAMES = 16,
    RUN_POINTS = 32,
    RESTART_SIZE = 8,
    DOCUMENT_EMBEDDED = 1,
    DOCUMENT_LINKED = 2,
    SOURCE_DEFLATED = 1,
    FLAG_PARTIAL = 1, /* something could not be read and was left out */
};

/* Offsets in the header. */
enum {
    AT_MAGIC = 0,
    AT_MAJOR = 4,
    AT_MINOR = 6,
    AT_FLAGS = 8,
    AT_UUID = 12,
    AT_AGE = 28,
    AT_METHODS = 32,
    AT_DOCUMENTS = 36,
    AT_NAMES_SIZE = 40,
    AT_POINTS_SIZE = 44,
    AT_SOURCES = 48,
    AT_LINKS_SIZE = 52,
    AT_HEADER_HASH = 56,
};
