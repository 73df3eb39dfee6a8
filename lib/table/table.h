/* Tables, the common format of cache files: a header and sections; sections contain columns of packed numbers, units (byte sequences of
 * any size), or sorted strings. A table is used in place from a mapping: opening checks the header and the bounds of sections; all else is
 * checked where it is used. A damaged file yields no result, never a crash. Any number of threads may share a table. Writing:
 * table/writer.h.
 *
 *     +----------------+ 0
 *     | header         |  magic, u16 major, u16 minor, fields of the format, u64 hash of header and section table
 *     +----------------+
 *     | section table  |  24 bytes per section: u32 id, u32 zero, u64 offset, u64 size
 *     +----------------+
 *     | sections       |  each 8-aligned
 *     +----------------+
 *
 * A small format may have no section table: its sections lie in a fixed order without gaps, and follow in size from fields of the
 * header. Numbers are little-endian on every host.
 *
 * columns   eight bytes with the width in bits of each column, at most 56; then the columns, bit-packed from the lowest bit on. Each is
 *           8-aligned and has a tail of eight bytes, so that eight bytes can be read at any value
 *
 *               03 00 00 00 00 00 00 00   one column of 3 bits
 *               D1 00                     values 1, 2, 3: 001 + 010 << 3 + 011 << 6 = 0xD1
 *               00 00 00 00 00 00 00 00   tail
 *
 * units     one after the other; a second section has the u32 offset of each, and the end of the last
 * strings   sorted, in units of 16: the first as uleb size, bytes; the others as uleb shared prefix, uleb rest, bytes
 *
 *               03 "a.c"   02 01 "h"   03 01 "h"     "a.c", "a.h", "a.hh" */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    SL_TABLE_MAX_HEADER = 256,
    SL_TABLE_SECTION_ENTRY = 24,
    SL_TABLE_MAX_SECTIONS = 16,
    SL_TABLE_MAX_COLUMNS = 8,
    SL_TABLE_MAX_WIDTH = 56, /* bits of a number */
    SL_TABLE_GROUP = 16,     /* strings stored together; only the first of them is stored whole */
};

/* Size of header and section table. */
#define SL_TABLE_HEAD_SIZE(header_size, sections) ((header_size) + (sections)*SL_TABLE_SECTION_ENTRY)

/* Members `at_...` are byte offsets in the header; 0 = the format has no such field. */
struct sl_table_format {
    char magic[5];
    const char *name; /* in messages */
    uint16_t major, minor;
    uint16_t header_size;      /* at most SL_TABLE_MAX_HEADER; the last eight bytes are the hash */
    uint16_t at_header_size;   /* u32 */
    uint16_t at_section_count; /* u32; 0 = no section table, and the hash covers only the header in front of the hash */
    uint16_t at_content_hash;  /* u64: hash of all bytes after the section table */
    uint16_t sections;         /* entries that a writer reserves in the section table */
};

/* Read a little-endian number, at any alignment. */
static inline uint32_t sl_table_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap32(value) : value;
}

static inline uint64_t sl_table_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(value) : value;
}

/* Zigzag coding of signed numbers, so that small ones have short LEB128 codes: 0, -1, 1, -2 become 0, 1, 2, 3. Decoding is defined for all
 * values, as numbers of damaged files may be any. */
static inline uint64_t sl_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline uint64_t sl_unzigzag(uint64_t v)
{
    return v >> 1 ^ (UINT64_C(0) - (v & 1));
}

struct sl_table {
    const struct sl_table_format *format;
    struct sl_bytes bytes;
    size_t head_size;                                /* bytes of header and section table */
    struct sl_bytes sections[SL_TABLE_MAX_SECTIONS]; /* by id; sections with higher ids are ignored */
};

/* Checks magic, version, hash of the header and bounds of sections in O(1); SL_MALFORMED if they are bad. `table` points into `bytes`. */
enum sl_code sl_table_open(struct sl_bytes bytes, const struct sl_table_format *format, struct sl_table *table,
                           struct sl_error *error);

/* Returns the hash that the header has in its last eight bytes: of header and section table, `size` bytes together, with zeros in place of
 * the hash; in formats without section table, of the header in front of the hash. */
uint64_t sl_table_head_hash(const struct sl_table_format *format, const uint8_t *head, size_t size);

/* For formats without section table: sizes[i] is the size of section i + 1. False unless the sections fill the file exactly. */
bool sl_table_locate_sections(struct sl_table *table, const uint64_t *sizes, size_t count);

/* True if the hash of the contents is right; for formats with at_content_hash. Reads the whole file. */
bool sl_table_is_intact(const struct sl_table *table);

/* ---- columns ---- */

struct sl_column { /* bit-packed numbers */
    const uint8_t *data;
    uint8_t width;
};

/* Finds the `count` columns of a section, of `rows` rows each; false if they are not inside the section. */
bool sl_table_columns(struct sl_bytes section, uint64_t rows, unsigned count, struct sl_column *columns);

/* Reads a value; `row` must be less than the number of rows given to sl_table_columns(). */
static inline uint64_t sl_column_get(const struct sl_column *column, uint64_t row)
{
    uint64_t bit = row * column->width;
    return sl_table_u64(column->data + bit / 8) >> (bit & 7) & ((UINT64_C(1) << column->width) - 1);
}

/* ---- units ---- */

struct sl_table_units { /* a section of units, byte sequences of any size, and the section of their offsets */
    struct sl_bytes offsets, bytes;
};

/* Opens sections as `count` units and their offsets. False if the section of offsets has another size than that number needs. */
bool sl_table_units(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_units *units);

/* Returns the bytes of a unit; `index` must be less than the count given to sl_table_units(). Data NULL if its offsets are not inside the
 * section. */
static inline struct sl_bytes sl_table_unit(const struct sl_table_units *units, uint64_t index)
{
    const uint8_t *at = units->offsets.data + index * 4;
    uint32_t begin = sl_table_u32(at), end = sl_table_u32(at + 4);
    bool inside = begin <= end && end <= units->bytes.size && units->bytes.data;
    return inside ? (struct sl_bytes){units->bytes.data + begin, end - begin} : (struct sl_bytes){NULL, 0};
}

/* ---- strings ---- */

struct sl_table_strings {         /* sorted strings; their indexes are their ids */
    struct sl_table_units groups; /* of SL_TABLE_GROUP strings */
    uint32_t count;
};

/* Opens sections as `count` strings and the offsets of their groups. False if the section of offsets has another size than that number
 * needs. */
bool sl_table_strings(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_strings *strings);

/* Appends the string with this id to `out`; nothing if there is none or it is damaged. */
void sl_table_string(const struct sl_table_strings *strings, uint32_t id, struct sl_buf *out);

/* True if the string with this id is the text. Needs no memory. */
bool sl_table_string_is(const struct sl_table_strings *strings, uint32_t id, struct sl_str text);

/* Returns the number of strings that are less than the text in byte order: the text's id if it is one of them. Needs no memory. */
uint32_t sl_table_strings_before(const struct sl_table_strings *strings, struct sl_str text);

/* True if all strings can be read and are in byte order. */
bool sl_table_strings_sorted(const struct sl_table_strings *strings);
