/* Layout of the look-up table of a source map, version 1.0: a table (table/table.h) with these sections. Private to this folder.
 *
 *     TEXT       names of sources and their contents
 *     SOURCES    20 bytes a source: u32 offset and u32 size of the name in TEXT, the same of the content (size NONE: no content),
 *                u32 its first row in LINES
 *     LINES      for each 4096 bytes of a content but the first, u32 number of line feeds before them
 *     NAMES      names of tokens, one after the other; their u32 offsets, and the end of the last, are in NAME_OFFSETS
 *     BLOCKS     the tokens in order of line and column, 64 a block, see below; eight zero bytes after the last block
 *     KEYS       u64 a block: line << 32 | column of its first token
 *     PLACES     u32 a block: its offset in BLOCKS, in units of eight bytes
 *     FUNCTIONS  names of functions, one after the other; their offsets, as for NAMES, are in FUNCTION_OFFSETS
 *     SCOPES     u32 a scope: 0 = anonymous, else 1 + the number of its name in FUNCTIONS
 *
 * and these if the map has `scopes` (a "node" is one of their generated ranges); FUNC is 1 + the number of a name, or one of ORIGINAL_*:
 *
 *     SOURCE_STARTS  8 bytes a source: u32 first row in STARTS, u32 end of its rows
 *     STARTS         u64 a row: line << 32 | column of the source where the innermost function changes; then
 *                    u32 a row: FUNC
 *     BOUNDARIES     u64 a row: line << 32 | column of the script where the innermost node changes; then
 *                    u32 a row: 1 + the node, 0 = none
 *     NODES          24 bytes a generated range: u32 FUNC; for an inlined call u32 1 + source, u32 line, u32 column of the call and
 *                    u32 1 + the node around the call (a smaller number), else zeros; u32 1 if its frames are hidden
 *
 *     block  := u8 number of tokens, u8 width of each of six columns, u8 width of the generated column (part of column 0),
 *               u32 minimum of each of six columns, the columns, each beginning at a byte
 *
 * A column contains the values of the tokens minus the column's minimum, packed: (generated line - line of the block) << width |
 * generated column, of which the minimum is subtracted; 1 + source, or with the flag RANGES (1 + source) << 1 | range; source
 * line; source column; 1 + name; 1 + scope. For the values with "1 +", 0 means none.
 *
 * The mappings "AAAA,SACSA" (0:0 -> a.js 0:0, and 0:9 -> a.js 1:9 named "add") are one block:
 *
 *     02                    two tokens
 *     04 00 01 04 01 00     widths: key, source, line, column, name, scope (all equal: no bits)
 *     04                    generated columns take 4 bits, the line takes none
 *     00000000 01000000 00000000 00000000 00000000 00000000     minimums: both tokens have 1 + source = 1
 *     90                    keys 0, 9 (the first value in the low bits)
 *     02                    source lines 0, 1
 *     90                    source columns 0, 9
 *     02                    1 + name: 0, 1; then zeros up to a multiple of eight bytes */
#pragma once

#include "js/smcache.h"

enum {
    HEADER_SIZE = 64,
    BLOCK_TOKENS = 64,
    BLOCK_HEAD = 32,
    SOURCE_SIZE = 20,
    NODE_SIZE = 24,
    STARTS_ROW = 12, /* also the size of a row of BOUNDARIES */
    LINES_STEP = 4096,
    FLAG_RANGES = 1,
    KEY_WIDTH = 56, /* maximum */
};

enum block_column { COLUMN_KEY, COLUMN_SOURCE, COLUMN_LINE, COLUMN_COLUMN, COLUMN_NAME, COLUMN_SCOPE, BLOCK_COLUMNS };

#define NO_CONTENT UINT32_MAX

/* Special function numbers (FUNC in the layout of the table); any other is 1 + the number of a name. */
#define ORIGINAL_UNKNOWN   UINT32_C(0)
#define ORIGINAL_ANONYMOUS UINT32_MAX
#define ORIGINAL_TOP_LEVEL (UINT32_MAX - 1) /* outside of all functions */

enum smcache_section_id {
    SECTION_TEXT = 1,
    SECTION_SOURCES,
    SECTION_LINES,
    SECTION_NAMES,
    SECTION_NAME_OFFSETS,
    SECTION_BLOCKS,
    SECTION_KEYS,
    SECTION_PLACES,
    SECTION_FUNCTIONS,
    SECTION_FUNCTION_OFFSETS,
    SECTION_SCOPES,
    SECTION_SOURCE_STARTS,
    SECTION_STARTS,
    SECTION_BOUNDARIES,
    SECTION_NODES,
    SECTION_ID_END,
};

/* Offsets in the header. */
enum {
    AT_HEADER_SIZE = 8,
    AT_SECTION_COUNT = 12,
    AT_CONTENT_HASH = 16,
    AT_FLAGS = 24,
    AT_SOURCES = 28,
    AT_NAMES = 32,
    AT_BLOCKS = 36,
    AT_TOKENS = 40,     /* u64 */
    AT_BAD_SCOPES = 48, /* number of the malformed item in the map's scopes, from 1; 0 = none */
};

static const struct sl_table_format smcache_format = {
    .magic = "SLSM",
    .name = "source map cache",
    .major = 1,
    .header_size = HEADER_SIZE,
    .at_header_size = AT_HEADER_SIZE,
    .at_section_count = AT_SECTION_COUNT,
    .at_content_hash = AT_CONTENT_HASH,
    .sections = SECTION_ID_END - 1,
};

/* For a token that is a range: it maps every character up to the next token. Moves the source position, at first that of the token, as far
 * as (line, column) in the script is from the token. False when the result is not a valid position. */
static inline bool js_move_range(uint32_t token_line, uint32_t token_column, uint32_t line, uint32_t column,
                                 uint32_t *source_line, uint32_t *source_column)
{
    uint64_t moved_line = (uint64_t)*source_line + line - token_line;
    uint64_t moved_column = line == token_line ? (uint64_t)*source_column + column - token_column : column;
    *source_line = (uint32_t)moved_line;
    *source_column = (uint32_t)moved_column;
    return !(moved_line >> 31) && !(moved_column >> 31);
}

/* A token of the map. Its name may be the original name of the identifier at its position. */
struct smcache_token {
    uint32_t line, column;
    uint64_t source; /* 0 = none */
    uint32_t source_line, source_column;
    struct sl_str name;
};

/* Finds the first token at this position of the script, or else the last one before it on the same line; false if there is none. */
bool smcache_find(const struct sl_smcache *cache, uint32_t line, uint32_t column, struct smcache_token *token);
