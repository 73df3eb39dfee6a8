/* The CFI cache, version 1.0: a table (table/table.h) with these sections. Private to the cfi files.
 *
 * ROWS        columns address, 1 + index in SETS of the byte string with the rules (0: no rules from there on), whether a range begins;
 *             sorted by address. Of several rows at one address the last is in effect
 * BUCKETS     column: number of rows before address i << shift, for each i, and one more for the end
 * SETS        byte strings (units), each the rules of one or more rows: a byte of flags, then rules, that of the CFA first:
 *
 *                 u8 kind (enum sl_unwind_kind), uleb register, then base and sleb offset, or uleb size and bytes of a program
 *
 *             Registers and bases are 0 for .cfa, 1 for .ra, 2 for one whose name follows as uleb size and bytes, N + 3 for
 *             the DWARF register N
 * SET_OFFSETS offsets of the units of SETS
 * WINDOWS     columns start, size, prolog, epilog, params, saved, locals, max_stack: STACK WIN records, first those of type 0,
 *             then those of type 4, each by address
 * PROGRAM_IDS column: the program of each record
 * PROGRAMS    units: text of a program
 * PROGRAM_OFFSETS  offsets of the units of PROGRAMS
 * MODULE      name of the PDB that a PE file names, else absent
 *
 * Example for x86-64, where rsp is register 7:
 *
 *     STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^
 *     STACK CFI 1001 .cfa: $rsp 16 +
 *
 *     ROWS    1000, 1, 1    1001, 2, 0    1010, 0, 0
 *     set 0   00   03 00 0a 08   04 01 00 78        .cfa = rsp + 8 (SL_UNWIND_OFFSET), .ra = word at .cfa - 8 (SL_UNWIND_MEMORY)
 *     set 1   00   03 00 0a 10   04 01 00 78 */
#pragma once

#include "unwind/cfi.h"

enum {
    CFI_HEADER_SIZE = 64,
    CFI_ROWS_PER_BUCKET = 4,  /* average number of rows in a bucket, for which the width of buckets is chosen */
    CFI_FLAG_BIG_ENDIAN = 1,  /* of the header: byte order of DWARF expressions */
    CFI_FLAG_PDB20 = 2,       /* of the header: the debug id is that of a PDB 2.0 */
    CFI_SET_SIGNAL_FRAME = 1, /* of a unit of SETS: sl_unwind_range.signal_frame */
    CFI_SET_BEYOND_TEXT = 2,  /* of a unit of SETS: sl_unwind_row.not_in_text */
};

enum cfi_register { CFI_REGISTER_CFA, CFI_REGISTER_RA, CFI_REGISTER_NAMED, CFI_REGISTER_FIRST };

enum cfi_section {
    CFI_ROWS = 1,
    CFI_BUCKETS,
    CFI_SETS,
    CFI_SET_OFFSETS,
    CFI_WINDOWS,
    CFI_PROGRAM_IDS,
    CFI_PROGRAMS,
    CFI_PROGRAM_OFFSETS,
    CFI_MODULE,
    CFI_SECTION_END,
};

enum cfi_row_column { CFI_ROW_ADDRESS, CFI_ROW_SET, CFI_ROW_BEGINS, CFI_ROW_COLUMNS };

enum cfi_win_column {
    CFI_WIN_START,
    CFI_WIN_SIZE,
    CFI_WIN_PROLOG,
    CFI_WIN_EPILOG,
    CFI_WIN_PARAMS,
    CFI_WIN_SAVED,
    CFI_WIN_LOCALS,
    CFI_WIN_MAX_STACK,
    CFI_WIN_COLUMNS, /* PROGRAM is a column in a section of its own */
    CFI_WIN_PROGRAM = CFI_WIN_COLUMNS,
};

/* Byte offsets of the header's fields. */
enum {
    CFI_AT_FLAGS = 8,
    CFI_AT_ARCH = 10,
    CFI_AT_SECTION_COUNT = 12,
    CFI_AT_UUID = 16,
    CFI_AT_AGE = 32,
    CFI_AT_ROWS = 36,
    CFI_AT_SETS = 40,
    CFI_AT_WIN_0 = 44,
    CFI_AT_WIN_4 = 48,
    CFI_AT_SHIFT = 52,
};

static const struct sl_table_format cfi_format = {.magic = "SLCF",
                                                  .name = "CFI cache",
                                                  .major = 1,
                                                  .header_size = CFI_HEADER_SIZE,
                                                  .at_section_count = CFI_AT_SECTION_COUNT,
                                                  .sections = CFI_SECTION_END - 1};
