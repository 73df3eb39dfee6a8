/* The look-up table of a source map, version 1.0: a table (table/table.h) with these sections. Private to this folder.
 *
 *     TEXT       names of sources and their contents
 *     SOURCES    20 bytes a source: u32 offset and u32 size of the name in TEXT, the same of the content (size NONE: no content),
 *                u32 row of LINES that is its first
 *     LINES      for each 4096 bytes of a content but the first, the number of line feeds in front of them, u32
 *     NAMES      units, NAME_OFFSETS
 *     BLOCKS     the tokens in order of line and column, 64 a block, see below; eight bytes of zeros behind the last
 *     KEYS       u64 a block: line << 32 | column of its first token
 *     PLACES     u32 a block: where it begins in BLOCKS, in units of eight bytes
 *     FUNCTIONS  units, FUNCTION_OFFSETS: names
 *     SCOPES     u32 a scope: 0 = anonymous, else 1 + its function
 *
 * and these, when the map has scopes of its own (`scopes`); FUNC is 1 + a name, or one of ORIGINAL_*:
 *
 *     SOURCE_STARTS  8 bytes a source: u32 first row of STARTS, u32 the row behind its last
 *     STARTS         u64 a row: line << 32 | column of the source where another function begins to be the innermost one; then
 *                    u32 a row: FUNC
 *     BOUNDARIES     u64 a row: line << 32 | column of the script where another node begins to be the innermost one; then
 *                    u32 a row: 1 + the node, 0 = none
 *     NODES          24 bytes a generated range: u32 FUNC; of an inlined call u32 1 + source, u32 line, u32 column of the call and
 *                    u32 1 + the node around the call, which comes before, zeros of others; u32 1 if calls of it are hidden
 *
 *     block  := u8 number of tokens, u8 width of each of six columns, u8 width of the generated column,
 *               u32 least value of each of six columns, the columns, each beginning at a byte
 *
 * Columns have the tokens' values minus the least, packed: (generated line - that of the block) << width | generated column, which is
 * less the least one; 1 + source, or with the flag RANGES (1 + source) << 1 | range; source line; source column; 1 + name; 1 +
 * scope. In the sums 0 is none. */
#pragma once

#include "js/smcache.h"

enum {
    HEADER_SIZE = 64,
    BLOCK_TOKENS = 64,
    BLOCK_HEAD = 32,
    SOURCE_SIZE = 20,
    NODE_SIZE = 24,
    STARTS_ROW = 12, /* also of BOUNDARIES */
    LINES_STEP = 4096,
    FLAG_RANGES = 1,
    KEY_WIDTH = 56, /* at most */
};

enum block_column { COLUMN_KEY, COLUMN_SOURCE, COLUMN_LINE, COLUMN_COLUMN, COLUMN_NAME, COLUMN_SCOPE, BLOCK_COLUMNS };

#define NO_CONTENT UINT32_MAX

/* The function at a place, where it is no name. */
#define ORIGINAL_UNKNOWN   UINT32_C(0)
#define ORIGINAL_ANONYMOUS UINT32_MAX
#define ORIGINAL_TOP_LEVEL (UINT32_MAX - 1) /* in no function */

enum section_id {
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
    AT_BAD_SCOPES = 48, /* item of the map's scopes that has an error, from 1; 0 = none */
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

/* Moves the original position of a range's token to that of a place in the range, which is told character by character. False where there
 * are no such positions. */
static inline bool js_move_range(uint32_t token_line, uint32_t token_column, uint32_t line, uint32_t column,
                                 uint32_t *source_line, uint32_t *source_column)
{
    uint64_t moved_line = (uint64_t)*source_line + line - token_line;
    uint64_t moved_column = line == token_line ? (uint64_t)*source_column + column - token_column : column;
    *source_line = (uint32_t)moved_line;
    *source_column = (uint32_t)moved_column;
    return !(moved_line >> 31) && !(moved_column >> 31);
}

/* A token, as names are looked for by it. */
struct smcache_token {
    uint32_t line, column;
    uint64_t source; /* 0 = none */
    uint32_t source_line, source_column;
    struct sl_str name;
};

/* The first token at this place, or else the last before it on its line. */
bool smcache_find(const struct sl_smcache *cache, uint32_t line, uint32_t column, struct smcache_token *token);
