/* The type and id streams: records in a row, found by number. */
#include "pdb/impl.h"

enum { ANCHOR_STEP = 8, MIN_HEADER = 56, MAX_HEADER = 1024 };

/* A 16-bit number that may lie across two pages. */
static bool read_u16(const struct msf_stream *s, uint64_t offset, uint16_t *value)
{
    unsigned shift = s->msf->page_shift;
    if (offset > s->size || s->size - offset < 2)
        return false;
    const uint8_t *file = s->msf->file.data;
    const uint8_t *low, *high;
    if (s->flat) {
        low = s->flat + offset;
        high = low + 1;
    } else {
        uint64_t mask = (UINT64_C(1) << shift) - 1, next = offset + 1;
        low = file + ((uint64_t)s->pages[offset >> shift] << shift) + (offset & mask);
        high = file + ((uint64_t)s->pages[next >> shift] << shift) + (next & mask);
    }
    *value = (uint16_t)(*low | *high << 8);
    return true;
}

/* Moves from one record to the next; a length below 2 (no room for the leaf) ends the stream. */
static bool skip_record(const struct type_table *t, uint64_t *at)
{
    uint16_t size;
    if (!read_u16(&t->stream, *at, &size) || size < 2 || size > t->stream.size - *at - 2)
        return false;
    *at += 2 + (uint64_t)size;
    return true;
}

bool type_table_open(const struct msf *msf, uint32_t stream, struct sl_arena *arena, struct type_table *t)
{
    struct sl_bytes bytes;
    *t = (struct type_table){0};
    if (!msf_stream(msf, stream, &t->stream) || !msf_view(&t->stream, 0, 16, arena, &bytes))
        return true;
    struct sl_reader r = sl_reader(bytes, false);
    sl_read_u32(&r);
    t->records = sl_read_u32(&r);
    t->begin = t->end = sl_read_u32(&r);
    uint32_t end = sl_read_u32(&r);
    if (t->records < MIN_HEADER || t->records > MAX_HEADER || t->records > t->stream.size || end < t->begin)
        return true;
    size_t most = (t->stream.size - t->records) / 4;
    size_t count = end - t->begin < most ? end - t->begin : most;
    t->anchors = SL_ARENA_ARRAY(arena, uint32_t, count / ANCHOR_STEP + 1);
    if (!t->anchors)
        return false;
    uint64_t at = t->records;
    for (size_t i = 0; i < count; i++) {
        if (i % ANCHOR_STEP == 0)
            t->anchors[i / ANCHOR_STEP] = (uint32_t)at;
        if (!skip_record(t, &at))
            break;
        t->end++;
    }
    return true;
}

bool type_table_get(const struct type_table *t, uint32_t index, struct sl_arena *arena, struct type_record *record)
{
    uint16_t size;
    struct sl_bytes bytes;
    if (index < t->begin || index >= t->end)
        return false;
    uint64_t at = t->anchors[(index - t->begin) / ANCHOR_STEP];
    for (uint32_t i = (index - t->begin) % ANCHOR_STEP; i; i--)
        if (!skip_record(t, &at))
            return false;
    if (!read_u16(&t->stream, at, &size) || !msf_view(&t->stream, at + 2, size, arena, &bytes))
        return false;
    record->data = sl_reader(bytes, false);
    record->leaf = sl_read_u16(&record->data);
    return true;
}
