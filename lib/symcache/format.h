/* The symcache file, version 1.0: a table (table/table.h) of these sections. Private to this folder.
 *
 * An entry tells the location (context, file, line) of the code from its address up to the next entry, or that it has no symbol. A
 * context is a link of an inline chain: a function, called at a place of another context.
 *
 * DIRECTORY  first address of every block of 64 entries, ascending (u32, or u64 with FLAG_WIDE)
 * OFFSETS    u32 offset of each block in BLOCKS, and the end of the last
 * BLOCKS     blocks of 64 entries: uleb address delta to the previous entry (not in the first one), control byte, then uleb context,
 *            file and line as the control byte requires
 *
 *     control   7 6 5 4 3     2           1 0
 *               line code     file        context
 *     context   0 hole (no symbol), 1 same as before, 2 zigzag uleb delta to the last one, 3 one more than the block's highest
 *     file      1: uleb file id + 1 follows (0 = none); 0: the context's default file
 *     line      0..30: 15 + delta to the last line in the context's slot; 31: zigzag uleb delta follows
 *
 *     The slots are eight line registers, chosen by the context's low bits. They, the context and the highest context begin at 0 in
 *     every block, so any block decodes alone.
 *
 *     f is 0x1000 to 0x1010 (context 0), with g inlined at 0x1008 (context 1). DIRECTORY: 0x1000. BLOCKS:
 *
 *         C9        0x1000  context as before (0), line 0 + 10: f:10
 *         04 89     0x1004  context as before, line 10 + 2: f:12
 *         04 93     0x1008  new context 1, line 0 + 3 (slot 1): g:3
 *         04 82 01  0x100C  context 1 - 1, line 12 + 1 (slot 0): f:13
 *         04 00     0x1010  hole
 *
 * CONTEXTS   columns function, parent + 1, call file + 1, call line, default file + 1. In the example:
 *            0 = (f, 0, 0, 0, f's file), 1 = (g, 1, file and line of the call in f, g's file)
 * FUNCTIONS  columns name, entry + 1 (0 = inlinee), language; with FLAG_VARIABLES also first variable, number of variables
 * FILES      column path
 * STRINGS    sorted texts, in groups of 16 (table/table.h)
 * GROUPS     u32 offset of each group in STRINGS, and the end of the last
 * MODULE     the module's file name, optional
 * ORIGINS    with FLAG_ORIGINS: columns path + 1, revision + 1, URL + 1 for each file (0 = unknown)
 * VARIABLES  with FLAG_VARIABLES: columns name, type name. A function's variables are consecutive and sorted by name; a name occurs
 *            once. Functions may share them. */
#pragma once

#include "symcache/symcache.h"

enum {
    HEADER_SIZE = 128,
    BLOCK_ENTRIES = 64,
    LINE_SLOTS = 8,
    FLAG_WIDE = 1,
    FLAG_PARTIAL = 2,
    FLAG_ORIGINS = 4,
    FLAG_VARIABLES = 8,
    FLAG_LACKS_UNITS = 16, /* a package or .dwo file was not available */
    /* lines, also those of calls, are positions: line and column in one number (function/position.h) */
    FLAG_POSITIONS = 32,
};

enum symcache_section_id {
    SECTION_DIRECTORY = 1,
    SECTION_OFFSETS,
    SECTION_BLOCKS,
    SECTION_CONTEXTS,
    SECTION_FUNCTIONS,
    SECTION_FILES,
    SECTION_STRINGS,
    SECTION_GROUPS,
    SECTION_MODULE,
    SECTION_ORIGINS,
    SECTION_VARIABLES,
    SECTION_ID_END,
};

enum symcache_column {
    COLUMN_CONTEXT_FUNCTION,
    COLUMN_CONTEXT_PARENT,
    COLUMN_CONTEXT_CALL_FILE,
    COLUMN_CONTEXT_CALL_LINE,
    COLUMN_CONTEXT_FILE,
    COLUMN_FUNCTION_NAME,
    COLUMN_FUNCTION_ENTRY,
    COLUMN_FUNCTION_LANGUAGE,
    COLUMN_FUNCTION_FIRST_VARIABLE,
    COLUMN_FUNCTION_VARIABLES,
    COLUMN_FILE_PATH,
    COLUMN_ORIGIN_PATH,
    COLUMN_ORIGIN_REVISION,
    COLUMN_ORIGIN_URL,
    COLUMN_VARIABLE_NAME,
    COLUMN_VARIABLE_TYPE,
    COLUMN_COUNT
};
_Static_assert((int)COLUMN_COUNT == (int)SL_SYMCACHE_COLUMNS, "as many as a reader has");

/* Returns the number of columns of the section FUNCTIONS; the last two are only in files with variables. */
static inline unsigned function_columns(uint32_t flags)
{
    return (flags & FLAG_VARIABLES ? COLUMN_FUNCTION_VARIABLES : COLUMN_FUNCTION_LANGUAGE) + 1u - COLUMN_FUNCTION_NAME;
}

/* The control byte of an entry, see BLOCKS above. */
enum {
    CONTEXT_HOLE,
    CONTEXT_SAME,
    CONTEXT_DELTA,
    CONTEXT_NEW,
    CONTROL_FILE = 4,
    LINE_SHIFT = 3,
    LINE_BIAS = 15,
    LINE_ESCAPE = 31
};

/* Offsets in the header. */
enum {
    AT_HEADER_SIZE = 8,
    AT_FLAGS = 12,
    AT_ARCH = 16,
    AT_AGE = 20,
    AT_UUID = 24,
    AT_IMAGE_SIZE = 40,
    AT_ENTRIES = 48,
    AT_CONTEXTS = 56,
    AT_FUNCTIONS = 64,
    AT_FILES = 72,
    AT_STRINGS = 80,
    AT_SECTION_COUNT = 88,
    AT_CONTENT_HASH = 96,
    AT_LOAD_ADDRESS = 104,
    AT_VARIABLES = 112,
};

#define SYMCACHE_FORMAT(last_section)                                                                                  \
    {                                                                                                                  \
        .magic = "SLSC", .name = "symcache", .major = 1, .header_size = HEADER_SIZE, .at_header_size = AT_HEADER_SIZE, \
        .at_section_count = AT_SECTION_COUNT, .at_content_hash = AT_CONTENT_HASH, .sections = last_section             \
    }
static const struct sl_table_format symcache_format = SYMCACHE_FORMAT(SECTION_VARIABLES);
/* Format of files without variables, with a smaller section table. */
static const struct sl_table_format symcache_plain_format = SYMCACHE_FORMAT(SECTION_ORIGINS);
