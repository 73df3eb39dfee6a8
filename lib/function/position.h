/* A position: line and column in one number of 30 bits, for sinks that want columns (`needs_positions`):
 *
 *     0 | line: 29                       without column, or if line or column are too large for the other form
 *     1 | line: 18        | column: 11   line 3, column 5: 0x20001805
 *
 * 0 = unknown, as for lines. */
#pragma once

#include <stdint.h>

enum { SL_POSITION_LINE_BITS = 18, SL_POSITION_COLUMN_BITS = 11, SL_POSITION_HAS_COLUMN = 1 << 29 };

/* Packs line and column into a position. The column is left out if it is 0, or if line or column are too large for this form; 0 if the line
 * alone is too large. */
static inline uint32_t sl_position(uint32_t line, uint64_t column)
{
    if (line && column && line < 1u << SL_POSITION_LINE_BITS && column < 1u << SL_POSITION_COLUMN_BITS)
        return SL_POSITION_HAS_COLUMN | line << SL_POSITION_COLUMN_BITS | (uint32_t)column;
    return line < SL_POSITION_HAS_COLUMN ? line : 0;
}

/* Returns the line of a position; 0 = unknown. */
static inline uint32_t sl_position_line(uint32_t position)
{
    return position & SL_POSITION_HAS_COLUMN ? (position & ~SL_POSITION_HAS_COLUMN) >> SL_POSITION_COLUMN_BITS
                                             : position;
}

/* Returns the column of a position; 0 = unknown. */
static inline uint32_t sl_position_column(uint32_t position)
{
    return position & SL_POSITION_HAS_COLUMN ? position & ((1u << SL_POSITION_COLUMN_BITS) - 1) : 0;
}
