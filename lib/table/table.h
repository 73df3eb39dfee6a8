/* What cache files are made of: a header, sections, and in the sections columns of packed numbers, units of any size, and
 * sorted strings. Used in place from a mapping: opening looks at the header and at the bounds of the sections, all else is
 * checked where it is used. A damaged file yields nothing, never a crash. Reading is pure: any number of threads may share
 * a table. Writing: table/writer.h.
 *
 *     +----------------+ 0
 *     | header         |  magic, u16 major, u16 minor, what the format adds, u64 hash of the header
 *     +----------------+
 *     | section table  |  24 bytes a section: u32 id, u32 zero, u64 offset, u64 size
 *     +----------------+
 *     | sections       |  each 8-aligned
 *     +----------------+
 *
 * A small format does without section table: its sections lie in a fixed order without gaps, and what the header says gives
 * their sizes. Numbers are little-endian on every host.
 *
 * columns   eight bytes: the width in bits of each column, at most 56; the columns, each 8-aligned and with eight bytes of
 *           tail: room to read eight bytes at any value
 * units     one behind the other; in a section of their own the u32 offset of each, and one more: where the last ends
 * strings   units of 16, sorted: the first as uleb size, bytes; the others as uleb shared prefix, uleb rest, bytes */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    SL_TABLE_MAX_HEADER = 256,
    SL_TABLE_SECTION_ENTRY = 24,
    SL_TABLE_MAX_SECTIONS = 16,
    SL_TABLE_MAX_COLUMNS = 8,
    SL_TABLE_MAX_WIDTH = 56,
    SL_TABLE_GROUP = 16,
};

/* Bytes in front of the first section. */
#define SL_TABLE_HEAD_SIZE(header_size, sections) ((header_size) + (sections)*SL_TABLE_SECTION_ENTRY)

/* The places in the header are offsets in bytes; 0: the format has no such field. */
struct sl_table_format {
    char magic[5];
    const char *name; /* in messages */
    uint16_t major, minor;
    uint16_t header_size;      /* at most SL_TABLE_MAX_HEADER; the last eight bytes are the hash */
    uint16_t at_header_size;   /* u32 */
    uint16_t at_section_count; /* u32; 0: no section table, and its hash is that of what is in front of it only */
    uint16_t at_content_hash;  /* u64, of all that is behind the section table */
    uint16_t sections;         /* the entries of the section table that a writer leaves room for */
};

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

/* Numbers of both signs, small ones small; modulo 2^64, so that what damaged files hold may overflow. */
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
    size_t head_size;                                /* of header and section table */
    struct sl_bytes sections[SL_TABLE_MAX_SECTIONS]; /* by id; of higher ones nothing is known */
};

/* Magic, version, hash of the header, bounds of the sections; O(1). SL_MALFORMED otherwise. `table` points into `bytes`. */
enum sl_code sl_table_open(struct sl_bytes bytes, const struct sl_table_format *format, struct sl_table *table,
                           struct sl_error *error);

/* The hash of a header and the section table behind it, `size` bytes together, as if its own field were 0. */
uint64_t sl_table_head_hash(const struct sl_table_format *format, const uint8_t *head, size_t size);

/* Without section table: sizes[i] is that of section i + 1. False when the sections are not all that is behind the header. */
bool sl_table_place(struct sl_table *table, const uint64_t *sizes, size_t count);

/* Whether the hash of the contents is right; for formats that have it. Reads all. */
bool sl_table_intact(const struct sl_table *table);

/* ---- columns ---- */

struct sl_column { /* bit-packed numbers */
    const uint8_t *data;
    uint8_t width;
};

/* The columns of a section, of so many rows each; false when they are not inside. */
bool sl_table_columns(struct sl_bytes section, uint64_t rows, unsigned count, struct sl_column *columns);

/* `row` is one of the column. */
static inline uint64_t sl_column_get(const struct sl_column *column, uint64_t row)
{
    uint64_t bit = row * column->width;
    return sl_table_u64(column->data + bit / 8) >> (bit & 7) & ((UINT64_C(1) << column->width) - 1);
}

/* ---- units ---- */

struct sl_table_units {
    struct sl_bytes offsets, bytes;
};

/* False when there are not `count` of them. */
bool sl_table_units(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_units *units);

/* `index` is less than `count` above. Data NULL when it is not inside. */
static inline struct sl_bytes sl_table_unit(const struct sl_table_units *units, uint64_t index)
{
    const uint8_t *at = units->offsets.data + index * 4;
    uint32_t begin = sl_table_u32(at), end = sl_table_u32(at + 4);
    bool inside = begin <= end && end <= units->bytes.size && units->bytes.data;
    return inside ? (struct sl_bytes){units->bytes.data + begin, end - begin} : (struct sl_bytes){NULL, 0};
}

/* ---- strings ---- */

struct sl_table_strings {
    struct sl_table_units groups;
    uint32_t count;
};

bool sl_table_strings(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_strings *strings);

/* Appends the string; nothing when the id is bad. */
void sl_table_string(const struct sl_table_strings *strings, uint32_t id, struct sl_buf *out);

/* How many are before the text in byte order. */
uint32_t sl_table_strings_before(const struct sl_table_strings *strings, struct sl_str text);

/* Whether all can be read and are in byte order. */
bool sl_table_strings_sorted(const struct sl_table_strings *strings);
