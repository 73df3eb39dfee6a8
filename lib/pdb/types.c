/* The type and id streams (TPI, IPI): a sequence of records, looked up by type index. */
#include "pdb/impl.h"

/* Only every ANCHOR_STEP-th record has its offset stored, which saves memory: a lookup walks over at most seven records from there.
 * MIN_HEADER, MAX_HEADER: accepted sizes of the stream's header, in bytes. */
enum { ANCHOR_STEP = 8, MIN_HEADER = 56, MAX_HEADER = 1024 };

/* Reads a u16 of a scattered stream; it may lie across two pages. The stream must have two bytes at `offset`. */
static uint16_t paged_u16(const struct msf_stream *s, uint64_t offset)
{
    unsigned shift = s->msf->page_shift;
    uint64_t mask = (UINT64_C(1) << shift) - 1, next = offset + 1;
    const uint8_t *file = s->msf->file.data;
    const uint8_t *low = file + ((uint64_t)s->pages[offset >> shift] << shift) + (offset & mask);
    const uint8_t *high = file + ((uint64_t)s->pages[next >> shift] << shift) + (next & mask);
    return (uint16_t)(*low | *high << 8);
}

/* Returns the size of the record at `at`, which must be within the stream: the number of bytes after its two-byte size field, as that field
 * says. `flat` is the stream's bytes if they are contiguous, else NULL. Returns 0 if the record is truncated or too small for its leaf. */
static inline uint16_t record_size(const struct msf_stream *s, const uint8_t *flat, uint64_t at)
{
    uint64_t left = s->size - at;
    if (left < 2)
        return 0;
    uint16_t size = flat ? (uint16_t)(flat[at] | flat[at + 1] << 8) : paged_u16(s, at);
    return size < 2 || size > left - 2 ? 0 : size;
}

/* Walks at most `max_count` records from the offset t->records on. Adds their number to t->end, the type index after the last record, and
 * stores the offset of every ANCHOR_STEP-th in t->anchors. Stops at the first damaged one. False when out of memory. */
static bool index_records(struct type_table *t, size_t max_count, struct sl_arena *arena)
{
    size_t fitting = (t->stream.size - t->records) / 4; /* the smallest record has four bytes: size and leaf */
    size_t count = max_count < fitting ? max_count : fitting;
    t->anchors = SL_ARENA_ARRAY(arena, uint32_t, count / ANCHOR_STEP + 1);
    if (!t->anchors)
        return false;
    uint64_t at = t->records;
    uint16_t size;
    for (size_t i = 0; i < count && (size = record_size(&t->stream, t->stream.flat, at)); i++) {
        if (i % ANCHOR_STEP == 0)
            t->anchors[i / ANCHOR_STEP] = (uint32_t)at;
        at += 2 + (uint64_t)size;
        t->end++;
    }
    return true;
}

bool type_table_open(const struct msf *msf, uint32_t stream, struct sl_arena *arena, struct type_table *t)
{
    struct sl_bytes bytes;
    *t = (struct type_table){0};
    if (!msf_stream(msf, stream, &t->stream) || !msf_view(&t->stream, 0, 16, arena, &bytes))
        return true;
    struct sl_reader r = sl_reader(bytes, false);
    sl_read_u32(&r);                     /* version */
    t->records = sl_read_u32(&r);        /* the size of the header, behind which the records begin */
    t->begin = t->end = sl_read_u32(&r); /* type index of the first record; index_records() raises `end` */
    uint32_t end = sl_read_u32(&r);      /* type index after the last record, as the header tells it */
    if (t->records < MIN_HEADER || t->records > MAX_HEADER || t->records > t->stream.size || end < t->begin)
        return true;
    return index_records(t, end - t->begin, arena);
}

bool type_table_build(const struct msf *msf, struct sl_bytes records, uint32_t begin, struct sl_arena *arena,
                      struct type_table *t)
{
    *t = (struct type_table){.begin = begin, .end = begin};
    if (!records.size ||
        records.size > UINT32_MAX) /* offsets are u32: larger is malformed, and the table stays empty */
        return true;
    t->stream = (struct msf_stream){.msf = msf, .size = (uint32_t)records.size, .flat = records.data};
    return index_records(t, UINT32_MAX - begin, arena); /* type indexes are u32 */
}

bool type_table_get(const struct type_table *t, uint32_t index, struct sl_arena *arena, struct type_record *record)
{
    const struct msf_stream *stream = &t->stream;
    const uint8_t *flat = stream->flat;
    struct sl_bytes bytes;
    if (index < t->begin || index >= t->end)
        return false;
    /* only the offset of every ANCHOR_STEP-th record is stored: from there on the sizes of the records lead to this one */
    uint64_t at = t->anchors[(index - t->begin) / ANCHOR_STEP];
    for (uint32_t i = (index - t->begin) % ANCHOR_STEP; i; i--)
        at += 2 + (uint64_t)record_size(stream, flat, at);
    if (!msf_view(stream, at + 2, record_size(stream, flat, at), arena, &bytes))
        return false;
    record->data = sl_reader(bytes, false);
    record->leaf = sl_read_u16(&record->data);
    return true;
}
