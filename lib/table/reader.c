/* Reads tables (table.h) in place. */
#include "table/table.h"

#include "base/map.h"
#include "base/search.h"

/* Returns the hash that belongs into the last eight bytes of the header. With a section table it covers header and section table, with
 * zeros in place of the hash itself; else the part of the header before the hash. */
uint64_t sl_table_head_hash(const struct sl_table_format *format, const uint8_t *head, size_t size)
{
    uint8_t copy[SL_TABLE_MAX_HEADER + SL_TABLE_MAX_SECTIONS * SL_TABLE_SECTION_ENTRY];
    size_t at = format->header_size - sizeof(uint64_t);
    if (!format->at_section_count)
        return sl_hash(head, at);
    memcpy(copy, head, size);
    memset(copy + at, 0, sizeof(uint64_t));
    return sl_hash(copy, size);
}

/* Finds the sections by the section table; false if one is not inside the file or not 8-aligned. Sections with an unknown id, of later
 * versions, are ignored. */
static bool find_sections(struct sl_table *t, uint32_t count)
{
    const uint8_t *entry = t->bytes.data + t->format->header_size;
    for (uint32_t i = 0; i < count; i++, entry += SL_TABLE_SECTION_ENTRY) {
        uint32_t id = sl_table_u32(entry);
        uint64_t offset = sl_table_u64(entry + 8);
        bool inside;
        struct sl_bytes section = sl_bytes_slice(t->bytes, offset, sl_table_u64(entry + 16), &inside);
        if (!inside || offset % 8)
            return false;
        if (id < SL_TABLE_MAX_SECTIONS)
            t->sections[id] = section;
    }
    return true;
}

enum sl_code sl_table_open(struct sl_bytes bytes, const struct sl_table_format *f, struct sl_table *t,
                           struct sl_error *error)
{
    const uint8_t *h = bytes.data;
    *t = (struct sl_table){.format = f, .bytes = bytes};
    if (bytes.size < f->header_size || memcmp(h, f->magic, 4) != 0)
        return sl_fail(error, SL_MALFORMED, "not a %s", f->name);
    if ((sl_table_u32(h + 4) & UINT16_MAX) != f->major || /* the minor version, in the upper half, may differ */
        (f->at_header_size && sl_table_u32(h + f->at_header_size) != f->header_size))
        return sl_fail(error, SL_MALFORMED, "unsupported version of %s", f->name);
    uint32_t count = f->at_section_count ? sl_table_u32(h + f->at_section_count) : 0;
    t->head_size = SL_TABLE_HEAD_SIZE(f->header_size, (size_t)count);
    if (count > SL_TABLE_MAX_SECTIONS || t->head_size > bytes.size)
        return sl_fail(error, SL_MALFORMED, "%s: the section table has too many entries or is cut off", f->name);
    if (sl_table_head_hash(f, h, t->head_size) != sl_table_u64(h + f->header_size - 8))
        return sl_fail(error, SL_MALFORMED, "%s: the header does not match its checksum", f->name);
    if (!find_sections(t, count))
        return sl_fail(error, SL_MALFORMED, "%s: a section is not aligned or extends beyond the file", f->name);
    return SL_OK;
}

bool sl_table_locate_sections(struct sl_table *t, const uint64_t *sizes, size_t count)
{
    struct sl_reader r = sl_reader(t->bytes, false);
    sl_reader_skip(&r, t->head_size);
    for (size_t i = 0; i < count; i++)
        t->sections[i + 1] = sl_read_bytes(&r, sizes[i]);
    return !r.failed && !sl_reader_left(&r);
}

bool sl_table_is_intact(const struct sl_table *t)
{
    const uint8_t *file = t->bytes.data;
    return sl_hash(file + t->head_size, t->bytes.size - t->head_size) ==
           sl_table_u64(file + t->format->at_content_hash);
}

/* The section has eight bytes with the width of each column in bits, then the columns, each aligned to 8 bytes and followed by 8 spare
 * bytes, so that a value can be read as a whole word. */
bool sl_table_columns(struct sl_bytes section, uint64_t rows, unsigned count, struct sl_column *columns)
{
    uint64_t at = 8;
    if (section.size < 8 || rows > UINT32_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        uint8_t width = section.data[i];
        uint64_t size = (rows * width + 7) / 8 + 8;
        at = (at + 7) & ~UINT64_C(7);
        if (width > SL_TABLE_MAX_WIDTH || at > section.size || size > section.size - at)
            return false;
        columns[i] = (struct sl_column){section.data + at, width};
        at += size;
    }
    return true;
}

bool sl_table_units(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_units *units)
{
    *units = (struct sl_table_units){offsets, bytes};
    return count <= UINT32_MAX && offsets.size / 4 == count + 1;
}

/* ---- strings ---- */

/* Returns the number of groups of SL_TABLE_GROUP strings. */
static uint64_t group_count(uint64_t strings)
{
    return (strings + SL_TABLE_GROUP - 1) / SL_TABLE_GROUP;
}

bool sl_table_strings(struct sl_bytes offsets, struct sl_bytes bytes, uint64_t count, struct sl_table_strings *strings)
{
    strings->count = (uint32_t)count;
    return count <= UINT32_MAX && sl_table_units(offsets, bytes, group_count(count), &strings->groups);
}

/* Returns a reader of a group of strings. In a group, each string but the first shares a prefix with the one before it. */
static struct sl_reader open_group(const struct sl_table_strings *s, uint32_t group)
{
    return sl_reader(sl_table_unit(&s->groups, group), false);
}

/* Reads the next string of a group: replaces the previous one, which is in `out` from `start` on. False if it is damaged, or when out of
 * memory. */
static bool next_string(struct sl_reader *r, bool first, struct sl_buf *out, size_t start)
{
    uint64_t shared = first ? 0 : sl_read_uleb(r), rest = sl_read_uleb(r);
    if (r->failed || shared > out->size - start || rest > sl_reader_left(r))
        return false;
    out->size = start + (size_t)shared;
    sl_buf_add(out, r->at, (size_t)rest);
    r->at += rest;
    return !out->failed;
}

void sl_table_string(const struct sl_table_strings *s, uint32_t id, struct sl_buf *out)
{
    size_t start = out->size;
    if (id >= s->count)
        return;
    struct sl_reader r = open_group(s, id / SL_TABLE_GROUP);
    for (uint32_t i = 0; i <= id % SL_TABLE_GROUP; i++)
        if (!next_string(&r, i == 0, out, start)) {
            out->size = start;
            return;
        }
}

/* Returns the first string of a group, which is stored whole; empty if the group is damaged. */
static struct sl_str first_of_group(const struct sl_table_strings *s, uint32_t group)
{
    struct sl_reader r = open_group(s, group);
    struct sl_bytes text = sl_read_bytes(&r, sl_read_uleb(&r));
    return (struct sl_str){(const char *)text.data, text.size};
}

/* The comparison of the current string of a group with a text. The string, stored in parts, is not built for that: no memory is needed. */
struct string_match {
    size_t size;    /* of the string */
    size_t matched; /* bytes at the start that both have in common */
    int order;      /* as sl_str_compare(string, text) */
};

/* Returns how many bytes both texts have in common at their start. */
static size_t common_prefix(const uint8_t *a, size_t a_size, struct sl_str b)
{
    size_t most = a_size < b.size ? a_size : b.size, i = 0;
    while (i < most && a[i] == (uint8_t)b.data[i])
        i++;
    return i;
}

/* Reads the next string of a group and compares it with the text. It is stored as the number of bytes that it shares with the string before
 * it, and the rest. If it shares more than that string has in common with the text (m->matched), both differ from the text at the same
 * byte, and m->order stays. False if it is damaged. */
static bool match_next(struct sl_reader *r, bool first, struct sl_str text, struct string_match *m)
{
    uint64_t shared = first ? 0 : sl_read_uleb(r), rest = sl_read_uleb(r);
    if (r->failed || shared > m->size || rest > sl_reader_left(r))
        return false;
    if (shared <= m->matched) {
        struct sl_str left = {text.data + shared, text.size - (size_t)shared};
        m->order = sl_str_compare((struct sl_str){(const char *)r->at, (size_t)rest}, left);
        m->matched = (size_t)shared + common_prefix(r->at, (size_t)rest, left);
    }
    m->size = (size_t)(shared + rest);
    r->at += rest;
    return true;
}

bool sl_table_string_is(const struct sl_table_strings *s, uint32_t id, struct sl_str text)
{
    struct string_match match = {0};
    if (id >= s->count)
        return false;
    struct sl_reader r = open_group(s, id / SL_TABLE_GROUP);
    for (uint32_t i = 0; i <= id % SL_TABLE_GROUP; i++)
        if (!match_next(&r, i == 0, text, &match))
            return false;
    return match.order == 0;
}

/* Returns the number of strings less than the text: a binary search for the group by its first string, then a walk through the group. */
uint32_t sl_table_strings_before(const struct sl_table_strings *s, struct sl_str text)
{
    uint32_t low = SL_PARTITION_POINT(middle, 0, (uint32_t)group_count(s->count),
                                      sl_str_compare(first_of_group(s, middle), text) < 0);
    if (low == 0)
        return 0;
    struct sl_reader r = open_group(s, low - 1);
    struct string_match match = {0};
    uint32_t first = (low - 1) * SL_TABLE_GROUP, left = s->count - first, i = 0;
    for (; i < SL_TABLE_GROUP && i < left; i++)
        if (!match_next(&r, i == 0, text, &match) || match.order >= 0)
            break;
    return first + i;
}

bool sl_table_strings_sorted(const struct sl_table_strings *s)
{
    struct sl_buf text = {0}, last = {0};
    struct sl_reader r = {0};
    bool ok = true;
    for (uint32_t id = 0; ok && id < s->count; id++) {
        bool first = id % SL_TABLE_GROUP == 0;
        if (first) {
            r = open_group(s, id / SL_TABLE_GROUP);
            sl_buf_clear(&text);
        }
        ok = next_string(&r, first, &text, 0) && sl_str_compare(sl_buf_view(&last), sl_buf_view(&text)) <= 0;
        sl_buf_clear(&last);
        sl_buf_str(&last, sl_buf_view(&text));
    }
    sl_buf_free(&text);
    sl_buf_free(&last);
    return ok;
}
