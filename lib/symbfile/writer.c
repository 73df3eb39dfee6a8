/* Writes records as messages. Whether a text is put in the string table depends on how often it is used, so records
 * are collected and written in batches: one table, then its records. */
#include "symbfile/symbfile.h"

#include "base/account.h"
#include "base/map.h"

#include <stdlib.h>

enum {
    FLUSH_STRINGS = (16 << 20) - (64 << 10), /* estimated size of the string table */
    FLUSH_RECORDS = 64 << 20,                /* bytes of collected records */
    STRING_COST = 5,
    NO_TEXT = UINT32_MAX,
    RECENT = 8192,
    TEXT_STEP = 64, /* bytes compared, hashed or copied */
    TYPE_RANGE = 2,
    TYPE_PAD = 3,
    TYPE_TABLE = 4,
};

struct symbfile_text {
    struct sl_str str;
    uint32_t uses;
    uint32_t index; /* index in the string table; NO_TEXT = inline */
    bool by_pad;
};

/* The fields that do not depend on the string table are encoded at once, one record after the other:
 *
 *     range:  head | function | file | middle | call file | tail        pad:  head | three columns of `count` numbers */
struct symbfile_record {
    uint32_t function, file, call_file; /* text ids of a range */
    union {
        uint32_t tail; /* bytes */
        uint32_t count;
    };
    uint8_t head, middle; /* bytes */
    bool is_pad;
};

struct sl_symbfile_writer {
    sl_symbfile_output *output;
    void *arg;
    struct sl_account account;
    bool begun, has_previous;
    uint64_t previous, written, records_written;
    struct sl_map map; /* text -> index + 1 in `texts` */
    struct sl_arena arena;
    struct symbfile_text *texts;
    struct symbfile_record *records;
    struct sl_buf encoded; /* heads, middles and tails of the records */
    uint32_t *numbers;     /* of return pads: triples of function, file, line */
    size_t text_count, text_capacity, record_count, record_capacity, number_count, number_capacity;
    uint64_t string_bytes;
    uint32_t recent[RECENT]; /* text ids, by a hash of the address of the text */
    struct sl_buf out;
};

struct sl_symbfile_writer *sl_symbfile_writer_new(sl_symbfile_output *output, void *arg, struct sl_budget *budget)
{
    struct sl_symbfile_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->output = output;
    w->arg = arg;
    w->account.budget = budget;
    w->map.budget = w->arena.budget = w->encoded.budget = w->out.budget = budget;
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
    sl_buf_free(&w->encoded);
    free(w->numbers);
    sl_buf_free(&w->out);
    sl_account_release(&w->account);
    free(w);
}

/* Returns the error of a failed writer: all its failures are of memory or budget. */
static enum sl_code symbfile_writer_fail(const struct sl_symbfile_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->account.budget, error);
}

/* ---- fields (Protocol Buffers, "Encoding") ---- */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, MAX_ULEB32 = 5, MAX_ULEB64 = 10 };

static inline uint8_t *put_uleb(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline uint8_t *put_number(uint8_t *at, unsigned field, uint64_t value)
{
    *at++ = (uint8_t)(field << 3 | WIRE_VARINT);
    return put_uleb(at, value);
}

/* Writes a size in front of bytes that are already there. One byte is reserved for it; if it needs more, the bytes
 * are moved. */
static inline uint8_t *put_size(uint8_t *size_at, size_t size, uint8_t *end)
{
    if (size < 0x80) {
        *size_at = (uint8_t)size;
        return end;
    }
    uint8_t encoded[MAX_ULEB64];
    size_t more = (size_t)(put_uleb(encoded, size) - encoded) - 1;
    memmove(size_at + 1 + more, size_at + 1, (size_t)(end - size_at - 1));
    memcpy(size_at, encoded, more + 1);
    return end + more;
}

/* Writes the difference to the previous address, which is shorter, or the address itself if there is none or the difference does not fit
 * into 64 bits with a sign. */
static inline uint8_t *put_va(struct sl_symbfile_writer *w, uint8_t *at, uint64_t va, unsigned set_field)
{
    int64_t delta = (int64_t)(va - w->previous);
    bool fits = w->has_previous && (va >= w->previous) == (delta >= 0);
    w->previous = va;
    w->has_previous = true;
    return fits ? put_number(at, 1, (uint64_t)delta << 1 ^ (uint64_t)(delta >> 63)) : put_number(at, set_field, va);
}

/* ---- collecting ---- */
static uint32_t symbfile_writer_find(struct sl_symbfile_writer *w, struct sl_str str);

/* Finds a text after replacing invalid UTF-8, which readers would reject. Paths in debug information can be in any
 * encoding. */
static uint32_t find_cleaned(struct sl_symbfile_writer *w, struct sl_str str)
{
    struct sl_buf clean = {.budget = w->account.budget};
    sl_buf_utf8(&clean, str);
    w->account.failed |= clean.failed;
    uint32_t index = clean.failed ? NO_TEXT : symbfile_writer_find(w, sl_buf_view(&clean));
    sl_buf_free(&clean);
    return index;
}

/* Returns the index of a text; adds it if it is new. NO_TEXT if out of memory. */
static uint32_t symbfile_writer_find(struct sl_symbfile_writer *w, struct sl_str str)
{
    uintptr_t index = (uintptr_t)sl_map_get(&w->map, str);
    if (!index && !sl_str_is_utf8(str))
        return find_cleaned(w, str);
    if (!index) {
        char *copy = sl_arena_strndup(&w->arena, str.data ? str.data : "", str.size);
        void **slot = copy ? sl_map_find_or_add(&w->map, (struct sl_str){copy, str.size}, NULL) : NULL;
        if (!slot || !sl_account_grow(&w->account, &w->texts, &w->text_capacity, w->text_count + 1, sizeof *w->texts)) {
            w->account.failed = true;
            return NO_TEXT;
        }
        w->texts[w->text_count] = (struct symbfile_text){.str = {copy, str.size}};
        index = ++w->text_count;
        *slot = (void *)index;
        w->string_bytes += STRING_COST + str.size;
    }
    return (uint32_t)index - 1;
}

/* Returns the id of a text. `recent` is only a hint: the memory may hold another text by now, so the text is
 * compared. */
static inline uint32_t intern(struct sl_symbfile_writer *w, struct sl_str str, bool by_pad)
{
    uint32_t *recent = &w->recent[((uintptr_t)str.data >> 4 ^ (uintptr_t)str.data >> 17) % RECENT];
    uint32_t index = *recent;
    sl_account_spend(&w->account, str.size / TEXT_STEP + 1);
    if (index >= w->text_count || !sl_str_equal(w->texts[index].str, str)) {
        index = symbfile_writer_find(w, str);
        if (index == NO_TEXT)
            return index;
        *recent = index;
    }
    w->texts[index].uses++;
    w->texts[index].by_pad |= by_pad;
    return index;
}

/* Like intern(); NO_TEXT for an absent text. */
static uint32_t intern_if(struct sl_symbfile_writer *w, struct sl_symbfile_text text)
{
    return text.str.data ? intern(w, text.str, false) : NO_TEXT;
}

static struct symbfile_record *add_record(struct sl_symbfile_writer *w)
{
    if (!sl_account_grow(&w->account, &w->records, &w->record_capacity, w->record_count + 1, sizeof *w->records))
        return NULL;
    return &w->records[w->record_count++];
}

static enum sl_code symbfile_writer_flush(struct sl_symbfile_writer *w, struct sl_error *error);

static enum sl_code flush_if_full(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->account.failed)
        return symbfile_writer_fail(w, error);
    size_t bytes = w->record_count * sizeof *w->records + w->encoded.size + w->number_count * sizeof *w->numbers;
    return w->string_bytes >= FLUSH_STRINGS || bytes >= FLUSH_RECORDS ? symbfile_writer_flush(w, error) : SL_OK;
}

/* Writes the line table: field 8, a message of two packed lists, offsets (each as the difference to the one before) and lines. The sizes
 * in front are written last, when they are known. */
static uint8_t *put_lines(uint8_t *at, const struct sl_symbfile_range *range)
{
    const struct sl_symbfile_line *lines = range->lines;
    *at = 8 << 3 | WIRE_BYTES;
    uint8_t *table = at + 1, *column = at + 3, *end = at + 4;
    uint32_t previous = 0;
    at[2] = 1 << 3 | WIRE_BYTES;
    for (size_t i = 0; i < range->line_count; previous = lines[i++].offset)
        end = put_uleb(end, lines[i].offset - previous);
    end = put_size(column, (size_t)(end - column - 1), end);
    *end = 2 << 3 | WIRE_BYTES;
    column = end + 1;
    end += 2;
    for (size_t i = 0; i < range->line_count; i++)
        end = put_uleb(end, lines[i].line);
    end = put_size(column, (size_t)(end - column - 1), end);
    return put_size(table, (size_t)(end - table - 1), end);
}

/* Collects a range. All but its texts is encoded now; the texts are encoded when the batch is written, because only then it is decided
 * which of them are in the string table. */
enum sl_code sl_symbfile_write_range(struct sl_symbfile_writer *w, const struct sl_symbfile_range *range,
                                     struct sl_error *error)
{
    enum { FIELDS = 4, SIZES = 3 }; /* without texts and lines */
    for (size_t i = 1; i < range->line_count; i++)
        if (range->lines[i].offset < range->lines[i - 1].offset)
            return sl_fail(error, SL_MALFORMED, "the line table of a function is not sorted by offset");
    size_t bound = (FIELDS + SIZES) * (1 + MAX_ULEB64) + 2 * MAX_ULEB32 * range->line_count;
    if (bound > UINT32_MAX || !sl_buf_reserve(&w->encoded, bound))
        return symbfile_writer_fail(w, error);
    uint8_t *start = w->encoded.data + w->encoded.size;
    uint8_t *head = put_va(w, start, range->va, 12);
    if (range->length)
        head = put_number(head, 2, range->length);
    uint8_t *middle = range->call_line ? put_number(head, 5, range->call_line) : head;
    uint8_t *tail = range->depth ? put_number(middle, 7, range->depth) : middle;
    tail = range->line_count ? put_lines(tail, range) : tail;
    struct symbfile_record *r = add_record(w);
    if (!r)
        return symbfile_writer_fail(w, error);
    *r = (struct symbfile_record){
        .function = intern(w, range->function.str, false),
        .file = intern_if(w, range->file),
        .call_file = intern_if(w, range->call_file),
        .head = (uint8_t)(head - start),
        .middle = (uint8_t)(middle - head),
        .tail = (uint32_t)(tail - middle),
    };
    w->encoded.size += (size_t)(tail - start);
    return flush_if_full(w, error);
}

enum sl_code sl_symbfile_write_pad(struct sl_symbfile_writer *w, const struct sl_symbfile_pad *pad,
                                   struct sl_error *error)
{
    struct symbfile_record *r = pad->count <= UINT32_MAX ? add_record(w) : NULL;
    if (!r || !sl_buf_reserve(&w->encoded, 1 + MAX_ULEB64) ||
        !sl_account_grow(&w->account, &w->numbers, &w->number_capacity, w->number_count + 3 * pad->count,
                         sizeof *w->numbers))
        return symbfile_writer_fail(w, error);
    uint8_t *start = w->encoded.data + w->encoded.size, *head = put_va(w, start, pad->va, 5);
    /* the first bytes, with the address, are encoded now; the 3 numbers of a frame when the record is flushed */
    *r = (struct symbfile_record){.is_pad = true, .count = (uint32_t)pad->count, .head = (uint8_t)(head - start)};
    w->encoded.size += r->head;
    for (size_t i = 0; i < pad->count; i++) {
        w->numbers[w->number_count++] = intern(w, pad->frames[i].function.str, true);
        w->numbers[w->number_count++] = intern(w, pad->frames[i].file.str, true);
        w->numbers[w->number_count++] = pad->frames[i].line;
    }
    return flush_if_full(w, error);
}

uint64_t sl_symbfile_writer_size(const struct sl_symbfile_writer *w)
{
    enum { RECORD_COST = 10 }; /* average bytes for sizes and references */
    return w->written + w->string_bytes + w->encoded.size + w->record_count * RECORD_COST + w->number_count * 2;
}

uint64_t sl_symbfile_writer_records(const struct sl_symbfile_writer *w)
{
    return w->records_written + w->record_count;
}

/* ---- messages ---- */
/* OUT_STEP: bytes after which output is passed on. BLOCK: bytes that a short copy moves (put_encoded). */
enum { OUT_STEP = 256 * 1024, BLOCK = 16 };

/* Passes the finished bytes to the output. */
static enum sl_code send_out(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->out.failed)
        return symbfile_writer_fail(w, error);
    enum sl_code code = w->out.size ? w->output(w->arg, sl_buf_bytes(&w->out), error) : SL_OK;
    w->written += w->out.size;
    sl_buf_clear(&w->out);
    return code;
}

/* Writes a text inline or as a reference to the string table; an absent one is left out. */
static inline uint8_t *put_text(const struct sl_symbfile_writer *w, uint8_t *at, uint32_t id, unsigned inline_field,
                                unsigned ref_field)
{
    if (id == NO_TEXT)
        return at;
    const struct symbfile_text *text = &w->texts[id];
    if (text->index != NO_TEXT)
        return put_number(at, ref_field, text->index);
    *at++ = (uint8_t)(inline_field << 3 | WIRE_BYTES);
    at = put_uleb(at, text->str.size);
    memcpy(at, text->str.data, text->str.size);
    return at + text->str.size;
}

/* Writes a column of a return pad as a packed list: every third of its numbers. */
static inline uint8_t *put_column(const struct sl_symbfile_writer *w, uint8_t *at, unsigned field,
                                  const uint32_t *number, size_t count, bool texts)
{
    if (!count)
        return at;
    *at = (uint8_t)(field << 3 | WIRE_BYTES);
    uint8_t *size_at = at + 1, *end = at + 2;
    for (size_t i = 0; i < count; i++, number += 3)
        end = put_uleb(end, texts ? w->texts[*number].index : *number);
    return put_size(size_at, (size_t)(end - size_at - 1), end);
}

/* Copies `size` bytes, at least BLOCK: buffers on both sides have BLOCK spare bytes, so that short copies have a
 * fixed size. */
static inline uint8_t *put_encoded(uint8_t *at, const uint8_t **encoded, size_t size)
{
    memcpy(at, *encoded, BLOCK);
    if (size > BLOCK)
        memcpy(at + BLOCK, *encoded + BLOCK, size - BLOCK);
    *encoded += size;
    return at + size;
}

/* Position in the collected data of a batch. */
struct symbfile_position {
    const uint8_t *encoded;
    const uint32_t *numbers;
};

/* Writes the body of a message: the parts that were encoded before, and the texts between them. */
static uint8_t *put_record(const struct sl_symbfile_writer *w, uint8_t *at, const struct symbfile_record *r,
                           struct symbfile_position *from)
{
    at = put_encoded(at, &from->encoded, r->head);
    if (!r->is_pad) {
        at = put_text(w, at, r->function, 3, 9);
        at = put_text(w, at, r->file, 4, 10);
        at = put_encoded(at, &from->encoded, r->middle);
        at = put_text(w, at, r->call_file, 6, 11);
        return put_encoded(at, &from->encoded, r->tail);
    }
    for (unsigned i = 0; i < 3 && r->count; i++)
        at = put_column(w, at, 2 + i, from->numbers + i, r->count, i < 2);
    from->numbers += r->count ? 3 * (size_t)r->count : 0;
    return at;
}

/* Writes the string table and decides which texts are in it. A text that is used once is written inline, which is shorter than an entry and
 * a reference. Return pads can only refer to the table, so their texts are always in it. */
static uint8_t *put_table(struct sl_symbfile_writer *w, uint8_t *at)
{
    uint32_t next = 0;
    for (size_t i = 0; i < w->text_count; i++) {
        struct symbfile_text *text = &w->texts[i];
        bool inlined = text->uses == 1 && !text->by_pad;
        text->index = inlined ? NO_TEXT : next++;
        if (inlined)
            continue;
        *at++ = 1 << 3 | WIRE_BYTES;
        at = put_uleb(at, text->str.size);
        memcpy(at, text->str.data, text->str.size);
        at += text->str.size;
    }
    return at;
}

/* Returns an upper bound of the size of a text in a message. */
static size_t text_bound(const struct sl_symbfile_writer *w, uint32_t id)
{
    return id == NO_TEXT ? 0 : 1 + MAX_ULEB64 + w->texts[id].str.size;
}

/* Returns an upper bound of the message size. */
static size_t record_bound(const struct sl_symbfile_writer *w, const struct symbfile_record *r)
{
    if (r->is_pad)
        return r->head + 3 * (1 + MAX_ULEB64 + MAX_ULEB32 * (size_t)r->count);
    return (size_t)r->head + r->middle + r->tail + text_bound(w, r->function) + text_bound(w, r->file) +
           text_bound(w, r->call_file);
}

/* Writes a message with its size and type; `record` NULL: the string table. */
static enum sl_code send_message(struct sl_symbfile_writer *w, const struct symbfile_record *record,
                                 struct symbfile_position *from, struct sl_error *error)
{
    size_t bound = record ? record_bound(w, record) : w->string_bytes + w->text_count * (1 + MAX_ULEB64);
    if (!sl_buf_reserve(&w->out, bound + 2 * MAX_ULEB64 + BLOCK))
        return symbfile_writer_fail(w, error);
    /* one byte is reserved for the size and one for the type */
    uint8_t *start = w->out.data + w->out.size, *body = start + 2;
    start[1] = !record ? TYPE_TABLE : record->is_pad ? TYPE_PAD : TYPE_RANGE;
    uint8_t *end = record ? put_record(w, body, record, from) : put_table(w, body);
    if (end - body > SL_SYMBFILE_MAX_MESSAGE)
        return sl_fail(error, SL_UNSUPPORTED,
                       "a message of the symbfile would have %zu bytes, more than the maximum of %d",
                       (size_t)(end - body), SL_SYMBFILE_MAX_MESSAGE);
    end = put_size(start, (size_t)(end - body), end);
    w->out.size = (size_t)(end - w->out.data);
    return w->out.size >= OUT_STEP ? send_out(w, error) : SL_OK;
}

/* Writes the string table and the collected records, and empties both. The first call writes the magic number and an empty header message
 * before. */
static enum sl_code symbfile_writer_flush(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (!w->begun)
        sl_buf_add(&w->out, "symbfile\0\1", 10); /* the message has size 0 and type 1 */
    w->begun = true;
    if (!sl_buf_reserve(&w->encoded, BLOCK))
        return symbfile_writer_fail(w, error);
    struct symbfile_position from = {w->encoded.data, w->numbers};
    enum sl_code code = send_message(w, NULL, NULL, error);
    for (size_t i = 0; i < w->record_count && code == SL_OK; i++)
        code = send_message(w, &w->records[i], &from, error);
    if (code == SL_OK)
        code = send_out(w, error);
    sl_map_free(&w->map);
    sl_arena_free(&w->arena);
    w->records_written += w->record_count;
    w->text_count = w->record_count = w->number_count = 0;
    w->string_bytes = 0;
    sl_buf_clear(&w->encoded);
    return code;
}

enum sl_code sl_symbfile_writer_finish(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->account.failed)
        return symbfile_writer_fail(w, error);
    return w->record_count || !w->begun ? symbfile_writer_flush(w, error) : SL_OK;
}
