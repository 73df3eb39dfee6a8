/* Writes records as messages of a symbfile. Whether a text is put in the string table depends on how often it is used, so records are
 * collected and written in batches: a string table, then the records that refer to it. */
#include "symbfile/symbfile.h"

#include "base/account.h"
#include "base/map.h"

#include <stdlib.h>

enum {
    /* a batch is written when the estimated size of its string table or the memory of its records reaches this many bytes */
    FLUSH_STRINGS = (16 << 20) - (64 << 10), /* less than the limit of a message: the table is written as one */
    FLUSH_RECORDS = 64 << 20,
    STRING_COST = 5, /* estimated bytes of tag and size of a text in the table */
    NO_TEXT = UINT32_MAX,
    RECENT = 8192,  /* entries of the cache of text ids */
    TEXT_STEP = 64, /* one step of the work budget is charged per so many bytes that are compared, hashed or copied */
    TYPE_RANGE = 2,
    TYPE_PAD = 3,
    TYPE_TABLE = 4,
};

struct symbfile_text {
    struct sl_str str;
    uint32_t uses;
    uint32_t index; /* index in the string table; NO_TEXT = inline */
    bool by_pad;    /* a return pad uses it */
};

/* A collected record. Fields that do not depend on the string table are encoded at once, in writer.encoded: head, middle and tail. Texts,
 * and the numbers of pads, are put between them when the batch is written:
 *
 *     range:  head | function | file | middle | call file | tail        pad:  head | three lists of `count` numbers */
struct symbfile_record {
    uint32_t function, file, call_file; /* text ids of a range */
    union {
        uint32_t tail;  /* of a range: bytes of its tail */
        uint32_t count; /* of a return pad: number of frames */
    };
    uint8_t head, middle; /* bytes of head and middle */
    bool is_pad;
};

struct sl_symbfile_writer {
    sl_symbfile_output *output;
    void *arg;
    struct sl_account account;
    bool begun, has_previous;          /* the header was written; `previous` is valid */
    uint64_t previous;                 /* address of the last record */
    uint64_t written, records_written; /* bytes and records passed to the output */
    struct sl_map map;                 /* text -> index + 1 in `texts` */
    struct sl_arena arena;
    struct symbfile_text *texts;
    struct symbfile_record *records;
    struct sl_buf encoded; /* heads, middles and tails of the records */
    uint32_t *numbers;     /* of return pads: triples of function, file, line */
    size_t text_count, text_capacity, record_count, record_capacity, number_count, number_capacity;
    uint64_t string_bytes;   /* estimated size of the string table if all texts of the batch were in it */
    uint32_t recent[RECENT]; /* text ids, by a hash of the address of the text */
    struct sl_buf out;       /* messages that have not been passed to the output yet */
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

/* Returns the error for memory or budget that has run out. */
static enum sl_code symbfile_writer_fail(const struct sl_symbfile_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->account.budget, error);
}

/* ---- fields (Protocol Buffers, "Encoding") ---- */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, MAX_ULEB32 = 5, MAX_ULEB64 = 10 };

/* Writes an unsigned LEB128 number; returns the end. */
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

/* Writes `size` at `size_at`, directly in front of the bytes that it counts, which extend to `end`. One byte is reserved for it; if it
 * needs more, moves the bytes behind it. Returns their new end. */
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

/* Writes the address of a record. Usually that is the difference to the previous record's address (field 1), which is shorter. The address
 * itself is written, in field `set_field`, if there is no previous record or the difference does not fit into a signed 64-bit number. */
static inline uint8_t *put_va(struct sl_symbfile_writer *w, uint8_t *at, uint64_t va, unsigned set_field)
{
    int64_t delta = (int64_t)(va - w->previous);
    bool fits = w->has_previous && (va >= w->previous) == (delta >= 0); /* else its sign shows an overflow */
    w->previous = va;
    w->has_previous = true;
    return fits ? put_number(at, 1, (uint64_t)delta << 1 ^ (uint64_t)(delta >> 63)) : put_number(at, set_field, va);
}

/* ---- collecting ---- */
static uint32_t find_or_add_text(struct sl_symbfile_writer *w, struct sl_str str);

/* Adds a text that is not UTF-8 with its ill-formed bytes replaced, because readers would reject it, and returns its id; NO_TEXT if out of
 * memory. Such texts occur: paths in debug information can be in any encoding. */
static uint32_t add_cleaned_text(struct sl_symbfile_writer *w, struct sl_str str)
{
    struct sl_buf clean = {.budget = w->account.budget};
    sl_buf_utf8(&clean, str);
    w->account.failed |= clean.failed;
    uint32_t index = clean.failed ? NO_TEXT : find_or_add_text(w, sl_buf_view(&clean));
    sl_buf_free(&clean);
    return index;
}

/* Returns the id of a text, its index in w->texts; adds it if it is new. NO_TEXT if out of memory. */
static uint32_t find_or_add_text(struct sl_symbfile_writer *w, struct sl_str str)
{
    uintptr_t index = (uintptr_t)sl_map_get(&w->map, str);
    if (!index && !sl_str_is_utf8(str))
        return add_cleaned_text(w, str);
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

/* Returns the id of a text and counts a use of it. Looks first in w->recent, by the address of the text; as there may be another text by
 * now at this address, the text is compared. `by_pad`: a return pad uses it, so it must be in the string table. NO_TEXT if out of
 * memory. */
static inline uint32_t intern(struct sl_symbfile_writer *w, struct sl_str str, bool by_pad)
{
    uint32_t *recent = &w->recent[((uintptr_t)str.data >> 4 ^ (uintptr_t)str.data >> 17) % RECENT];
    uint32_t index = *recent;
    sl_account_spend(&w->account, str.size / TEXT_STEP + 1); /* flush_if_full() reports a failure */
    if (index >= w->text_count || !sl_str_equal(w->texts[index].str, str)) {
        index = find_or_add_text(w, str);
        if (index == NO_TEXT)
            return index;
        *recent = index;
    }
    w->texts[index].uses++;
    w->texts[index].by_pad |= by_pad;
    return index;
}

/* Returns the id of a text and counts a use of it; NO_TEXT for an absent text or if out of memory. */
static uint32_t intern_optional(struct sl_symbfile_writer *w, struct sl_symbfile_text text)
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

/* Writes the batch if its string table or its records have reached their limits. Reports a failure of memory or budget since the last
 * call. */
static enum sl_code flush_if_full(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->account.failed)
        return symbfile_writer_fail(w, error);
    size_t bytes = w->record_count * sizeof *w->records + w->encoded.size + w->number_count * sizeof *w->numbers;
    return w->string_bytes >= FLUSH_STRINGS || bytes >= FLUSH_RECORDS ? symbfile_writer_flush(w, error) : SL_OK;
}

/* Writes the line table: field 8, a message of two packed lists, offsets (each as the difference to the one before) and lines:
 *
 *     tag 8 | size | tag 1 | size | offsets... | tag 2 | size | lines...
 *
 * A byte is reserved for each size, which is written when it is known. Returns the end. */
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
    /* FIELDS: address, length, call line, depth; SIZES: of the line table and its two lists. Each has a tag and a number. */
    enum { FIELDS = 4, SIZES = 3 };
    for (size_t i = 1; i < range->line_count; i++)
        if (range->lines[i].offset < range->lines[i - 1].offset)
            return sl_fail(error, SL_MALFORMED, "the line table of a function is not sorted by offset");
    size_t bound = (FIELDS + SIZES) * (1 + MAX_ULEB64) + 2 * MAX_ULEB32 * range->line_count;
    if (bound > UINT32_MAX || !sl_buf_reserve(&w->encoded, bound))
        return symbfile_writer_fail(w, error);
    /* Three parts, each up to its pointer; put_record() writes the texts of functions and files between them. The numbers of the fields
     * are those of proto/symbfile.proto. */
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
        .file = intern_optional(w, range->file),
        .call_file = intern_optional(w, range->call_file),
        .head = (uint8_t)(head - start),
        .middle = (uint8_t)(middle - head),
        .tail = (uint32_t)(tail - middle),
    };
    w->encoded.size += (size_t)(tail - start);
    return flush_if_full(w, error);
}

/* Collects a return pad. Its address is encoded now; the functions, files and lines of its frames are encoded when the batch is written. */
enum sl_code sl_symbfile_write_pad(struct sl_symbfile_writer *w, const struct sl_symbfile_pad *pad,
                                   struct sl_error *error)
{
    struct symbfile_record *r = pad->count <= UINT32_MAX ? add_record(w) : NULL;
    if (!r || !sl_buf_reserve(&w->encoded, 1 + MAX_ULEB64) ||
        !sl_account_grow(&w->account, &w->numbers, &w->number_capacity, w->number_count + 3 * pad->count,
                         sizeof *w->numbers))
        return symbfile_writer_fail(w, error);
    /* 5: the field of an absolute address */
    uint8_t *start = w->encoded.data + w->encoded.size, *head = put_va(w, start, pad->va, 5);
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

/* Passes the messages in w->out to the output. */
static enum sl_code send_out(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (w->out.failed)
        return symbfile_writer_fail(w, error);
    enum sl_code code = w->out.size ? w->output(w->arg, sl_buf_bytes(&w->out), error) : SL_OK;
    w->written += w->out.size;
    sl_buf_clear(&w->out);
    return code;
}

/* Writes a text. If it is in the string table, writes a reference to it as field `ref_field`, else the text itself as field `inline_field`;
 * if it is absent, nothing. Returns the end. */
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

/* Writes one of the three lists of a return pad (functions, files, lines) as a packed list. `number` points to its first number; the lists
 * are interleaved, so every third number belongs to it. `texts`: the numbers are text ids, to be replaced by indexes in the string
 * table. */
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

/* Copies `size` bytes from `*encoded`, which it moves, to `at`; returns the end. For speed it always copies BLOCK bytes or more: both
 * buffers have BLOCK spare bytes at their end. */
static inline uint8_t *put_encoded(uint8_t *at, const uint8_t **encoded, size_t size)
{
    memcpy(at, *encoded, BLOCK);
    if (size > BLOCK)
        memcpy(at + BLOCK, *encoded + BLOCK, size - BLOCK);
    *encoded += size;
    return at + size;
}

/* The collected data of a batch that have not been written yet: parts of messages, and numbers of return pads. */
struct symbfile_position {
    const uint8_t *encoded;
    const uint32_t *numbers;
};

/* Writes the body of a record's message: the parts that were encoded before, and texts or lists between them. `from` is where the encoded
 * parts and the numbers of this record are; moves it to those of the next. Field numbers are those of proto/symbfile.proto. Returns the
 * end. */
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
    from->numbers += r->count ? 3 * (size_t)r->count : 0; /* without any numbers the pointer is NULL */
    return at;
}

/* Decides which texts of the batch are in the string table, and writes it. A text that is used once is written inline, which is shorter
 * than an entry and a reference. Return pads can only refer to the table, so their texts are always in it. Returns the end. */
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

/* Returns an upper bound of the bytes that a text takes in a message. */
static size_t text_bound(const struct sl_symbfile_writer *w, uint32_t id)
{
    return id == NO_TEXT ? 0 : 1 + MAX_ULEB64 + w->texts[id].str.size;
}

/* Returns an upper bound of the bytes of a record's message. */
static size_t record_bound(const struct sl_symbfile_writer *w, const struct symbfile_record *r)
{
    if (r->is_pad)
        return r->head + 3 * (1 + MAX_ULEB64 + MAX_ULEB32 * (size_t)r->count);
    return (size_t)r->head + r->middle + r->tail + text_bound(w, r->function) + text_bound(w, r->file) +
           text_bound(w, r->call_file);
}

/* Appends a message with its size and type to w->out: the message of `record`, whose data are at `from`, or the string table if `record` is
 * NULL. Passes w->out to the output when it is large. */
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

/* Writes the batch: the string table and the collected records; then empties both. The first call writes the magic and an empty header
 * message before. */
static enum sl_code symbfile_writer_flush(struct sl_symbfile_writer *w, struct sl_error *error)
{
    if (!w->begun)
        sl_buf_add(&w->out, "symbfile\0\1", 10); /* the message has size 0 and type 1 */
    w->begun = true;
    if (!sl_buf_reserve(&w->encoded, BLOCK)) /* put_encoded() reads beyond the end */
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
