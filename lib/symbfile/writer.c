/* Records to messages. Which texts go into the string table depends on how often each is used, so records are collected
 * and written a batch at a time: one table, then its records. */
#include "symbfile/symbfile.h"

#include "base/map.h"

#include <stdlib.h>

enum {
    FLUSH_STRINGS = (16 << 20) - (64 << 10), /* estimated size of the table */
    FLUSH_RECORDS = 64 << 20,                /* bytes of collected records */
    STRING_COST = 5,
    NO_TEXT = UINT32_MAX,
    RECENT = 4096,
    TYPE_RANGE = 2,
    TYPE_PAD = 3,
    TYPE_TABLE = 4,
};

struct text {
    struct sl_str str;
    uint32_t uses;
    uint32_t index; /* in the table, NO_TEXT = inline */
    bool by_pad;
};

struct record {
    uint64_t va;
    bool is_pad;
    uint32_t length, depth, call_line;
    uint32_t function, file, call_file; /* texts */
    size_t first, count;                /* in `numbers`: pairs of a range's lines, triples of a pad's places */
};

struct sl_symbfile_writer {
    sl_symbfile_output *output;
    void *arg;
    bool begun, has_previous;
    uint64_t previous, written, records_written;
    struct sl_map map; /* text to its index + 1 in `texts` */
    struct sl_arena arena;
    struct text *texts;
    struct record *records;
    uint32_t *numbers;
    size_t text_count, text_capacity, record_count, record_capacity, number_count, number_capacity;
    uint32_t recent[RECENT]; /* texts, by where they lay when they came */
    uint64_t string_bytes;
    struct sl_buf message, nested, packed, out;
    bool failed; /* out of memory */
};

struct sl_symbfile_writer *sl_symbfile_writer_new(sl_symbfile_output *output, void *arg)
{
    struct sl_symbfile_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->output = output;
    w->arg = arg;
    return w;
}

void sl_symbfile_writer_free(struct sl_symbfile_writer *w)
{
    if (!w)
        return;
    sl_map_free(&w->map);
    sl_arena_free(&w->arena);
    free(w->texts);
    free(w->records);
    free(w->numbers);
    sl_buf_free(&w->message);
    sl_buf_free(&w->nested);
    sl_buf_free(&w->packed);
    sl_buf_free(&w->out);
    free(w);
}

static bool grow(struct sl_symbfile_writer *w, void *pointer, size_t *capacity, size_t need, size_t item)
{
    void **array = pointer;
    if (need <= *capacity)
        return true;
    size_t size = *capacity ? *capacity * 2 : 256;
    size = size < need ? need : size;
    void *grown = realloc(*array, size * item);
    if (!grown) {
        w->failed = true;
        return false;
    }
    *array = grown;
    *capacity = size;
    return true;
}

/* ---- collecting ---- */
/* What lay there before may have been another text: only a comparison tells. */
static uint32_t intern(struct sl_symbfile_writer *w, struct sl_str str, bool by_pad)
{
    uint32_t *recent = &w->recent[((uintptr_t)str.data ^ (uintptr_t)str.data >> 12) % RECENT];
    bool again = *recent < w->text_count && sl_str_equal(w->texts[*recent].str, str);
    uintptr_t index = again ? (uintptr_t)*recent + 1 : (uintptr_t)sl_map_get(&w->map, str);
    if (!index) {
        char *copy = sl_arena_strndup(&w->arena, str.data ? str.data : "", str.size);
        void **slot = copy ? sl_map_slot(&w->map, (struct sl_str){copy, str.size}, NULL) : NULL;
        if (!slot || !grow(w, &w->texts, &w->text_capacity, w->text_count + 1, sizeof *w->texts)) {
            w->failed = true;
            return 0;
        }
        w->texts[w->text_count] = (struct text){.str = {copy, str.size}};
        index = ++w->text_count;
        *slot = (void *)index;
        w->string_bytes += STRING_COST + str.size;
    }
    struct text *text = &w->texts[index - 1];
    text->uses++;
    text->by_pad |= by_pad;
    *recent = (uint32_t)index - 1;
    return *recent;
}

static uint32_t intern_if(struct sl_symbfile_writer *w, struct sl_symbfile_text text)
{
    return text.str.data ? intern(w, text.str, false) : NO_TEXT;
}

static struct record *add_record(struct sl_symbfile_writer *w, size_t numbers)
{
    if (!grow(w, &w->records, &w->record_capacity, w->record_count + 1, sizeof *w->records) ||
        !grow(w, &w->numbers, &w->number_capacity, w->number_count + numbers, sizeof *w->numbers))
        return NULL;
    struct record *record = &w->records[w->record_count++];
    *record = (struct record){.first = w->number_count};
    return record;
}

static enum sl_code flush(struct sl_symbfile_writer *w, struct sl_error *error);

static enum sl_code flush_if_full(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->failed)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    size_t bytes = w->record_count * sizeof *w->records + w->number_count * sizeof *w->numbers;
    return w->string_bytes >= FLUSH_STRINGS || bytes >= FLUSH_RECORDS ? flush(w, error) : SL_OK;
}

enum sl_code sl_symbfile_write_range(struct sl_symbfile_writer *w, const struct sl_symbfile_range *range,
                                     struct sl_error *error)
{
    for (size_t i = 1; i < range->line_count; i++)
        if (range->lines[i].offset < range->lines[i - 1].offset)
            return sl_fail(error, SL_MALFORMED, "line table is not sorted by offset");
    struct record *r = add_record(w, 2 * range->line_count);
    if (!r)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    r->va = range->va;
    r->length = range->length;
    r->depth = range->depth;
    r->call_line = range->call_line;
    r->function = intern(w, range->function.str, false);
    r->file = intern_if(w, range->file);
    r->call_file = intern_if(w, range->call_file);
    r->count = range->line_count;
    for (size_t i = 0; i < range->line_count; i++) {
        w->numbers[w->number_count++] = range->lines[i].offset - (i ? range->lines[i - 1].offset : 0);
        w->numbers[w->number_count++] = range->lines[i].line;
    }
    return flush_if_full(w, error);
}

enum sl_code sl_symbfile_write_pad(struct sl_symbfile_writer *w, const struct sl_symbfile_pad *pad,
                                   struct sl_error *error)
{
    struct record *r = add_record(w, 3 * pad->count);
    if (!r)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    r->va = pad->va;
    r->is_pad = true;
    r->count = pad->count;
    for (size_t i = 0; i < pad->count; i++) {
        w->numbers[w->number_count++] = intern(w, pad->places[i].function.str, true);
        w->numbers[w->number_count++] = intern(w, pad->places[i].file.str, true);
        w->numbers[w->number_count++] = pad->places[i].line;
    }
    return flush_if_full(w, error);
}

uint64_t sl_symbfile_writer_size(const struct sl_symbfile_writer *w)
{
    enum { RECORD_COST = 20 };
    return w->written + w->string_bytes + w->record_count * RECORD_COST + w->number_count * 2;
}

uint64_t sl_symbfile_writer_records(const struct sl_symbfile_writer *w)
{
    return w->records_written + w->record_count;
}

/* ---- messages (Protocol Buffers, "Encoding") ---- */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, OUT_STEP = 256 * 1024 };

static enum sl_code send_out(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->out.failed || w->message.failed || w->nested.failed)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    enum sl_code code = w->out.size ? w->output(w->arg, sl_buf_bytes(&w->out), error) : SL_OK;
    w->written += w->out.size;
    sl_buf_clear(&w->out);
    return code;
}

/* The message that was built, behind its size and type. */
static enum sl_code send_message(struct sl_symbfile_writer *w, unsigned type, struct sl_error *error)
{
    if (w->message.size > SL_SYMBFILE_MAX_MESSAGE)
        return sl_fail(error, SL_UNSUPPORTED, "message of size %zu exceeds maximum of %d", w->message.size,
                       SL_SYMBFILE_MAX_MESSAGE);
    sl_buf_uleb(&w->out, w->message.size);
    sl_buf_uleb(&w->out, type);
    sl_buf_add(&w->out, w->message.data, w->message.size);
    sl_buf_clear(&w->message);
    return w->out.size >= OUT_STEP ? send_out(w, error) : SL_OK;
}

/* Most numbers are small. */
static inline void put_uleb(struct sl_buf *out, uint64_t value)
{
    if (value < 0x80)
        sl_buf_u8(out, (uint8_t)value);
    else
        sl_buf_uleb(out, value);
}

static void put_number(struct sl_buf *out, unsigned field, uint64_t value)
{
    put_uleb(out, field << 3 | WIRE_VARINT);
    put_uleb(out, value);
}

static void put_bytes(struct sl_buf *out, unsigned field, struct sl_bytes bytes)
{
    put_uleb(out, field << 3 | WIRE_BYTES);
    put_uleb(out, bytes.size);
    sl_buf_add(out, bytes.data, bytes.size);
}

static void put_text(struct sl_symbfile_writer *w, uint32_t id, unsigned inline_field, unsigned ref_field)
{
    if (id == NO_TEXT)
        return;
    const struct text *text = &w->texts[id];
    if (text->index == NO_TEXT)
        put_bytes(&w->message, inline_field, (struct sl_bytes){(const uint8_t *)text->str.data, text->str.size});
    else
        put_number(&w->message, ref_field, text->index);
}

static void put_va(struct sl_symbfile_writer *w, uint64_t va, unsigned set_field)
{
    int64_t delta = (int64_t)(va - w->previous);
    bool fits = w->has_previous && (va >= w->previous) == (delta >= 0);
    if (fits)
        put_number(&w->message, 1, (uint64_t)delta << 1 ^ (uint64_t)(delta >> 63));
    else
        put_number(&w->message, set_field, va);
    w->previous = va;
    w->has_previous = true;
}

/* Every `step`th of the record's numbers, packed. */
static void put_column(struct sl_symbfile_writer *w, const struct record *r, struct sl_buf *out, unsigned field,
                       unsigned first, unsigned step, bool texts)
{
    sl_buf_clear(&w->packed);
    for (size_t i = 0; i < r->count; i++) {
        uint32_t number = w->numbers[r->first + i * step + first];
        put_uleb(&w->packed, texts ? w->texts[number].index : number);
    }
    if (w->packed.failed)
        w->failed = true;
    else if (r->count)
        put_bytes(out, field, sl_buf_bytes(&w->packed));
}

static enum sl_code send_range(struct sl_symbfile_writer *w, const struct record *r, struct sl_error *error)
{
    put_va(w, r->va, 12);
    if (r->length)
        put_number(&w->message, 2, r->length);
    put_text(w, r->function, 3, 9);
    put_text(w, r->file, 4, 10);
    if (r->call_line)
        put_number(&w->message, 5, r->call_line);
    put_text(w, r->call_file, 6, 11);
    if (r->depth)
        put_number(&w->message, 7, r->depth);
    if (r->count) {
        sl_buf_clear(&w->nested);
        put_column(w, r, &w->nested, 1, 0, 2, false);
        put_column(w, r, &w->nested, 2, 1, 2, false);
        put_bytes(&w->message, 8, sl_buf_bytes(&w->nested));
    }
    return send_message(w, TYPE_RANGE, error);
}

static enum sl_code send_pad(struct sl_symbfile_writer *w, const struct record *r, struct sl_error *error)
{
    put_va(w, r->va, 5);
    put_column(w, r, &w->message, 2, 0, 3, true);
    put_column(w, r, &w->message, 3, 1, 3, true);
    put_column(w, r, &w->message, 4, 2, 3, false);
    return send_message(w, TYPE_PAD, error);
}

static enum sl_code send_table(struct sl_symbfile_writer *w, struct sl_error *error)
{
    uint32_t next = 0;
    for (size_t i = 0; i < w->text_count; i++) {
        struct text *text = &w->texts[i];
        text->index = text->uses > 1 || text->by_pad ? next++ : NO_TEXT;
        if (text->index != NO_TEXT)
            put_bytes(&w->message, 1, (struct sl_bytes){(const uint8_t *)text->str.data, text->str.size});
    }
    return send_message(w, TYPE_TABLE, error);
}

static enum sl_code flush(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (!w->begun)
        sl_buf_add(&w->out, "symbfile\0\1", 10);
    w->begun = true;
    enum sl_code code = send_table(w, error);
    for (size_t i = 0; i < w->record_count && code == SL_OK; i++) {
        const struct record *record = &w->records[i];
        code = record->is_pad ? send_pad(w, record, error) : send_range(w, record, error);
    }
    if (code == SL_OK)
        code = w->failed ? sl_fail(error, SL_INTERNAL, "out of memory") : send_out(w, error);
    sl_map_free(&w->map);
    sl_arena_free(&w->arena);
    w->records_written += w->record_count;
    w->text_count = w->record_count = w->number_count = 0;
    w->string_bytes = 0;
    return code;
}

enum sl_code sl_symbfile_writer_finish(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->failed)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    return w->record_count || !w->begun ? flush(w, error) : SL_OK;
}
