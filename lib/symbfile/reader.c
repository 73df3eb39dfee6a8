/* Decodes a symbfile that comes in pieces: framing, messages, and the state that records share (previous address, string table). */
#include "symbfile/symbfile.h"

#include "symbfile/columns.h"

#include <stdlib.h>

enum {
    MAGIC_SIZE = 8,
    MAX_VARINT = 10,
    /* A buffer that has grown beyond this many bytes, or a decoding arena beyond four times as many, is freed after use. */
    KEEP_PENDING = 64 * 1024,
    /* Memory limit for decoding one message: small fields need many times their encoded size. */
    MESSAGE_MEMORY = 256 << 20,
};

struct sl_symbfile_reader {
    struct sl_symbfile_sink *sink;
    struct sl_buf pending; /* the incomplete message */
    uint64_t offset;       /* offset of `pending` in the file */
    uint64_t message;      /* number of the next message; the header is 1 */
    uint64_t records, previous;
    bool magic_seen, has_previous, cut; /* cut: the length of a range was above 32 bits, and reduced */
    struct columns columns;             /* for the message being decoded */
    struct sl_arena scratch;            /* for the message being decoded */
    struct sl_arena table_memory;
    struct sl_str *table; /* the current string table, in table_memory */
    size_t table_size;
    bool scarce; /* memory ran out while the message was decoded, not the limit of its arena */
    enum sl_symbfile_problem problem;
    enum sl_code code; /* of the first failure */
    struct sl_error error;
};

struct sl_symbfile_reader *sl_symbfile_reader_new(struct sl_symbfile_sink *sink)
{
    struct sl_symbfile_reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->sink = sink;
    r->message = 1; /* number of the next message */
    sl_arena_init(&r->scratch, MESSAGE_MEMORY);
    sl_arena_init(&r->table_memory, MESSAGE_MEMORY);
    return r;
}

void sl_symbfile_reader_free(struct sl_symbfile_reader *r)
{
    if (!r)
        return;
    sl_buf_free(&r->pending);
    columns_free(&r->columns);
    sl_arena_free(&r->scratch);
    sl_arena_free(&r->table_memory);
    free(r);
}

enum sl_symbfile_problem sl_symbfile_reader_problem(const struct sl_symbfile_reader *r)
{
    return r->problem;
}

uint64_t sl_symbfile_reader_records(const struct sl_symbfile_reader *r)
{
    return r->records;
}

bool sl_symbfile_reader_is_truncated(const struct sl_symbfile_reader *r)
{
    return r->cut;
}

/* Stores the problem in r->problem and its text in r->error; returns SL_MALFORMED. If the message could not be decoded for lack of memory,
 * returns SL_BUSY instead and stores no problem: the file may be good. */
static enum sl_code symbfile_reader_fail(struct sl_symbfile_reader *r, enum sl_symbfile_problem problem)
{
    static const char *const texts[] = {
        [SL_SYMBFILE_SHORT] = "file is shorter than the magic",
        [SL_SYMBFILE_NO_MAGIC] = "file does not start with the expected magic",
        [SL_SYMBFILE_TRUNCATED] = "file ended prematurely in the middle of a message",
        [SL_SYMBFILE_NO_HEADER] = "the first message is not a header",
        [SL_SYMBFILE_BAD_TYPE] = "message type value is invalid",
        [SL_SYMBFILE_BAD_SIZE] = "message exceeds the maximum of 16777216 bytes",
        [SL_SYMBFILE_BAD_VARINT] = "variable-length integer is too big",
        [SL_SYMBFILE_BAD_MESSAGE] = "message is no valid protobuf, or has text that is not UTF-8",
        [SL_SYMBFILE_BAD_COLUMNS] = "not all parallel lists have the same length",
        [SL_SYMBFILE_BAD_DELTA] = "relative address without an absolute one before it",
        [SL_SYMBFILE_BAD_FIELD] = "message is missing a required field",
        [SL_SYMBFILE_BAD_REFERENCE] = "message contains an invalid string table reference",
        [SL_SYMBFILE_BAD_OFFSET] = "line offset exceeds 32 bits",
    };
    if (r->scarce)
        return sl_fail(&r->error, SL_BUSY, "out of memory");
    r->problem = problem;
    return sl_fail(&r->error, SL_MALFORMED, "%s (message %llu, offset %llu)", texts[problem],
                   (unsigned long long)r->message, (unsigned long long)r->offset);
}

/* ---- decoding: protobuf-c decodes what columns.c does not, into an arena that is freed as a whole ---- */

/* Allocates for a message, in one of the reader's arenas. Returns NULL if the message needs more than MESSAGE_MEMORY, which makes it a bad
 * message (SL_SYMBFILE_BAD_MESSAGE). Also returns NULL when out of memory, but then sets r->scarce, so that symbfile_reader_fail() reports
 * SL_BUSY instead. */
static void *reader_alloc(struct sl_symbfile_reader *r, struct sl_arena *arena, size_t size)
{
    void *memory = sl_arena_alloc(arena, size ? size : 1, _Alignof(max_align_t));
    r->scarce |= !memory && !arena->over_limit;
    return memory;
}

/* Allocates for protobuf-c, for the message being decoded. */
static void *allocate(void *reader, size_t size)
{
    struct sl_symbfile_reader *r = reader;
    return reader_alloc(r, &r->scratch, size);
}

/* Allocates for protobuf-c, for a string table, which outlives its message. */
static void *allocate_table(void *reader, size_t size)
{
    struct sl_symbfile_reader *r = reader;
    return reader_alloc(r, &r->table_memory, size);
}

/* Frees for protobuf-c: nothing, because arenas are freed as a whole. */
static void free_nothing(void *reader, void *memory)
{
    (void)reader, (void)memory;
}

static ProtobufCAllocator allocator(struct sl_symbfile_reader *r)
{
    return (ProtobufCAllocator){.alloc = allocate, .free = free_nothing, .allocator_data = r};
}

static struct sl_str symbfile_reader_to_text(ProtobufCBinaryData data)
{
    return (struct sl_str){data.data ? (const char *)data.data : "", data.len};
}

/* Reads a text that a message has inline (`inlined`: it is `data`), as a reference to the string table (`referred`: it is entry `ref`), or
 * not at all: absent. */
static enum sl_symbfile_problem get_text(const struct sl_symbfile_reader *r, bool inlined, ProtobufCBinaryData data,
                                         bool referred, uint32_t ref, struct sl_symbfile_text *out)
{
    *out = (struct sl_symbfile_text){{NULL, 0}, SL_SYMBFILE_INLINE};
    if (inlined)
        out->str = symbfile_reader_to_text(data);
    if (!referred)
        return SL_SYMBFILE_FINE;
    if (ref >= r->table_size)
        return SL_SYMBFILE_BAD_REFERENCE;
    *out = (struct sl_symbfile_text){r->table[ref], ref};
    return SL_SYMBFILE_FINE;
}

/* Reads the address of a record: absolute if `set`, the difference to that of the previous record if `delta`. A message must have one of
 * both; it cannot have both, as they are a oneof. */
static enum sl_symbfile_problem get_va(struct sl_symbfile_reader *r, bool set, uint64_t absolute, bool delta,
                                       int64_t difference, uint64_t *va)
{
    if (!set && !delta)
        return SL_SYMBFILE_BAD_FIELD;
    if (delta && !r->has_previous)
        return SL_SYMBFILE_BAD_DELTA;
    *va = set ? absolute : r->previous + (uint64_t)difference;
    r->previous = *va;
    r->has_previous = true;
    return SL_SYMBFILE_FINE;
}

/* Converts the line table of a range; NULL: it has none. Offsets are stored as differences; their sum must fit into 32 bits. */
static enum sl_symbfile_problem get_lines(struct sl_symbfile_reader *r, const Symbfile__LineTable *table,
                                          struct sl_symbfile_range *range)
{
    if (!table)
        return SL_SYMBFILE_FINE;
    struct sl_symbfile_line *lines = reader_alloc(r, &r->scratch, table->n_offset * sizeof *lines);
    uint64_t offset = 0;
    if (table->n_offset && !lines)
        return SL_SYMBFILE_BAD_MESSAGE; /* or SL_BUSY when out of memory, see reader_alloc */
    for (size_t i = 0; i < table->n_offset; i++) {
        offset += table->offset[i];
        if (offset > UINT32_MAX)
            return SL_SYMBFILE_BAD_OFFSET;
        lines[i] = (struct sl_symbfile_line){(uint32_t)offset, table->linenumber[i]};
    }
    range->lines = lines;
    range->line_count = table->n_offset;
    return SL_SYMBFILE_FINE;
}

/* True if all inline texts are UTF-8. References need no check: the string table was checked when it was read. */
static bool range_is_utf8(const Symbfile__RangeV1 *m)
{
    return (m->func_case != SYMBFILE__RANGE_V1__FUNC_FUNC_STR || sl_str_is_utf8(symbfile_reader_to_text(m->funcstr))) &&
           (m->file_case != SYMBFILE__RANGE_V1__FILE_FILE_STR || sl_str_is_utf8(symbfile_reader_to_text(m->filestr))) &&
           (m->call_file_case != SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_STR ||
            sl_str_is_utf8(symbfile_reader_to_text(m->callfilestr)));
}

/* Checks the message of a range and converts it to a record. The function is required, files are not. Lengths above 32 bits are reduced. */
static enum sl_symbfile_problem convert_range(struct sl_symbfile_reader *r, const Symbfile__RangeV1 *m,
                                              struct sl_symbfile_range *range)
{
    enum sl_symbfile_problem problem;
    if (!range_is_utf8(m))
        return SL_SYMBFILE_BAD_MESSAGE;
    if (m->linetable && m->linetable->n_offset != m->linetable->n_linenumber)
        return SL_SYMBFILE_BAD_COLUMNS;
    if ((problem = get_va(r, m->elf_va_case == SYMBFILE__RANGE_V1__ELF_VA_SET_ELF_VA, m->setelfva,
                          m->elf_va_case == SYMBFILE__RANGE_V1__ELF_VA_DELTA_ELF_VA, m->deltaelfva, &range->va)))
        return problem;
    if (m->func_case == SYMBFILE__RANGE_V1__FUNC__NOT_SET)
        return SL_SYMBFILE_BAD_FIELD;
    if ((problem = get_text(r, m->func_case == SYMBFILE__RANGE_V1__FUNC_FUNC_STR, m->funcstr,
                            m->func_case == SYMBFILE__RANGE_V1__FUNC_FUNC_REF, m->funcref, &range->function)) ||
        (problem = get_text(r, m->file_case == SYMBFILE__RANGE_V1__FILE_FILE_STR, m->filestr,
                            m->file_case == SYMBFILE__RANGE_V1__FILE_FILE_REF, m->fileref, &range->file)) ||
        (problem = get_text(r, m->call_file_case == SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_STR, m->callfilestr,
                            m->call_file_case == SYMBFILE__RANGE_V1__CALL_FILE_CALL_FILE_REF, m->callfileref,
                            &range->call_file)))
        return problem;
    r->cut |= m->length > UINT32_MAX; /* remembered: the record was changed */
    range->length = m->length > UINT32_MAX ? UINT32_MAX : (uint32_t)m->length;
    range->call_line = m->callline;
    range->depth = m->depth;
    return get_lines(r, m->linetable, range);
}

/* Reads a range and passes it to the sink. Most messages have the usual form, which columns_read_range() decodes without allocation; the
 * others are left to protobuf-c. */
static enum sl_code read_range(struct sl_symbfile_reader *r, struct sl_bytes body)
{
    ProtobufCAllocator memory = allocator(r); /* r->scratch, which read_message() resets */
    Symbfile__RangeV1 usual;
    const Symbfile__RangeV1 *m = columns_read_range(&r->columns, body, &usual)
                                     ? &usual
                                     : symbfile__range_v1__unpack(&memory, body.size, body.data);
    struct sl_symbfile_range range = {0};
    enum sl_symbfile_problem problem = m ? convert_range(r, m, &range) : SL_SYMBFILE_BAD_MESSAGE;
    if (problem)
        return symbfile_reader_fail(r, problem);
    r->records++;
    return r->sink->range(r->sink, &range, &r->error);
}

/* Checks the message of a return pad and converts it to a record. It has three lists of equal length: functions, files and lines of the
 * frames. */
static enum sl_symbfile_problem convert_pad(struct sl_symbfile_reader *r, const Symbfile__ReturnPadV1 *m,
                                            struct sl_symbfile_pad *pad)
{
    enum sl_symbfile_problem problem;
    if (m->n_func != m->n_file || m->n_func != m->n_line)
        return SL_SYMBFILE_BAD_COLUMNS;
    if ((problem = get_va(r, m->elf_va_case == SYMBFILE__RETURN_PAD_V1__ELF_VA_SET_ELF_VA, m->setelfva,
                          m->elf_va_case == SYMBFILE__RETURN_PAD_V1__ELF_VA_DELTA_ELF_VA, m->deltaelfva, &pad->va)))
        return problem;
    struct sl_symbfile_frame *frames = reader_alloc(r, &r->scratch, m->n_func * sizeof *frames);
    if (m->n_func && !frames)
        return SL_SYMBFILE_BAD_MESSAGE; /* or SL_BUSY when out of memory, see reader_alloc */
    for (size_t i = 0; i < m->n_func; i++) {
        uint32_t file = m->file[i], function = m->func[i];
        if (file >= r->table_size || function >= r->table_size)
            return SL_SYMBFILE_BAD_REFERENCE;
        frames[i] = (struct sl_symbfile_frame){{r->table[function], function}, {r->table[file], file}, m->line[i]};
    }
    pad->frames = frames;
    pad->count = m->n_func;
    return SL_SYMBFILE_FINE;
}

/* Reads a return pad and passes it to the sink. Most messages have the usual form, which columns_read_pad() decodes without allocation; the
 * others are left to protobuf-c. */
static enum sl_code read_pad(struct sl_symbfile_reader *r, struct sl_bytes body)
{
    ProtobufCAllocator memory = allocator(r); /* r->scratch, which read_message() resets */
    Symbfile__ReturnPadV1 usual;
    const Symbfile__ReturnPadV1 *m = columns_read_pad(&r->columns, body, &usual)
                                         ? &usual
                                         : symbfile__return_pad_v1__unpack(&memory, body.size, body.data);
    struct sl_symbfile_pad pad = {0};
    enum sl_symbfile_problem problem = m ? convert_pad(r, m, &pad) : SL_SYMBFILE_BAD_MESSAGE;
    if (problem)
        return symbfile_reader_fail(r, problem);
    r->records++;
    return r->sink->pad(r->sink, &pad, &r->error);
}

/* Reads a string table. It replaces the one before it, so references of later records have new meanings. */
static enum sl_code read_table(struct sl_symbfile_reader *r, struct sl_bytes body)
{
    sl_arena_free(&r->table_memory);
    sl_arena_init(&r->table_memory, MESSAGE_MEMORY);
    ProtobufCAllocator memory = {.alloc = allocate_table, .free = free_nothing, .allocator_data = r};
    const Symbfile__StringTableV1 *m = symbfile__string_table_v1__unpack(&memory, body.size, body.data);
    r->table = m ? reader_alloc(r, &r->table_memory, m->n_strings * sizeof *r->table) : NULL;
    r->table_size = 0;
    if (!m || (m->n_strings && !r->table))
        return symbfile_reader_fail(r, SL_SYMBFILE_BAD_MESSAGE);
    for (size_t i = 0; i < m->n_strings; i++) {
        r->table[i] = symbfile_reader_to_text(m->strings[i]);
        if (!sl_str_is_utf8(r->table[i]))
            return symbfile_reader_fail(r, SL_SYMBFILE_BAD_MESSAGE);
    }
    r->table_size = m->n_strings;
    if (r->sink->table)
        r->sink->table(r->sink);
    return SL_OK;
}

/* Checks that the header can be decoded; it has no fields. */
static enum sl_code symbfile_reader_read_header(struct sl_symbfile_reader *r, struct sl_bytes body)
{
    ProtobufCAllocator memory = allocator(r);
    return symbfile__header__unpack(&memory, body.size, body.data) ? SL_OK
                                                                   : symbfile_reader_fail(r, SL_SYMBFILE_BAD_MESSAGE);
}

/* Reads a message; those of unknown types are ignored. Afterwards the memory for decoding is reused, or freed if it has grown large. */
static enum sl_code read_message(struct sl_symbfile_reader *r, uint64_t type, struct sl_bytes body)
{
    static const uint8_t nothing = 0;
    enum sl_code code = SL_OK;
    body.data = body.data ? body.data : &nothing; /* an empty body gets a valid pointer, too */
    switch (type) {
    case SYMBFILE__MESSAGE_TYPE__MT_HEADER: code = symbfile_reader_read_header(r, body); break;
    case SYMBFILE__MESSAGE_TYPE__MT_RANGE_V1: code = read_range(r, body); break;
    case SYMBFILE__MESSAGE_TYPE__MT_RETURN_PAD_V1: code = read_pad(r, body); break;
    case SYMBFILE__MESSAGE_TYPE__MT_STRING_TABLE_V1: code = read_table(r, body); break;
    default: break; /* of a later version: ignored */
    }
    if (r->scratch.used > KEEP_PENDING * 4) /* do not keep the memory of an exceptionally large message */
        sl_arena_free(&r->scratch), sl_arena_init(&r->scratch, MESSAGE_MEMORY);
    else
        sl_arena_reset(&r->scratch);
    return code;
}

/* ---- framing ---- */
/* STEP_MORE: the bytes end within the number or message; it is read again from its beginning when more bytes have come. */
enum symbfile_step { STEP_DONE, STEP_MORE, STEP_FAILED };

/* Reads a number of protobuf and advances `*at`; STEP_MORE if the bytes end within it; STEP_FAILED, with r->error, if it has more than ten
 * bytes. */
static enum symbfile_step read_varint(struct sl_symbfile_reader *r, struct sl_bytes bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < MAX_VARINT; i++) {
        if (*at >= bytes.size)
            return STEP_MORE;
        uint8_t byte = bytes.data[(*at)++];
        /* Ten groups of seven bits: those beyond bit 63 are lost, as in protobuf. 7 * i is at most 63; the condition, always true, only
         * shows that the shift is in range. */
        *value |= (uint64_t)(byte & 0x7F) << (7 * i < 64 ? 7 * i : 0);
        if (byte < 0x80)
            return STEP_DONE;
    }
    symbfile_reader_fail(r, SL_SYMBFILE_BAD_VARINT);
    return STEP_FAILED;
}

/* Reads the size and the type in front of a message body and advances `*at`. The first message must be a header (type 1), no other may be;
 * there is no type 0. STEP_MORE if the bytes end within them; STEP_FAILED, with r->error, if they are invalid. */
static enum symbfile_step read_prefix(struct sl_symbfile_reader *r, struct sl_bytes bytes, size_t *at, uint64_t *size,
                                      uint64_t *type)
{
    enum symbfile_step step = read_varint(r, bytes, at, size);
    if (step != STEP_DONE)
        return step;
    if (*size > SL_SYMBFILE_MAX_MESSAGE) {
        symbfile_reader_fail(r, SL_SYMBFILE_BAD_SIZE);
        return STEP_FAILED;
    }
    step = read_varint(r, bytes, at, type);
    if (step != STEP_DONE)
        return step;
    bool first = r->message == 1;
    if (*type > INT32_MAX || (!first && *type <= SYMBFILE__MESSAGE_TYPE__MT_HEADER)) {
        symbfile_reader_fail(r, SL_SYMBFILE_BAD_TYPE);
        return STEP_FAILED;
    }
    if (first && *type != SYMBFILE__MESSAGE_TYPE__MT_HEADER) {
        symbfile_reader_fail(r, SL_SYMBFILE_NO_HEADER);
        return STEP_FAILED;
    }
    return STEP_DONE;
}

/* Reads the complete messages in `bytes`; the caller passes the rest again, with what follows. Returns the number of bytes that were read,
 * or SIZE_MAX on failure (r->error). */
static size_t read_messages(struct sl_symbfile_reader *r, struct sl_bytes bytes)
{
    size_t done = 0;
    if (!r->magic_seen) {
        if (bytes.size < MAGIC_SIZE)
            return 0;
        if (!sl_symbfile_detect(bytes)) {
            symbfile_reader_fail(r, SL_SYMBFILE_NO_MAGIC);
            return SIZE_MAX;
        }
        r->magic_seen = true;
        done = MAGIC_SIZE;
        r->offset = MAGIC_SIZE;
    }
    while (done < bytes.size) {
        uint64_t size = 0, type = 0;
        size_t at = done;
        enum symbfile_step step = read_prefix(r, bytes, &at, &size, &type);
        if (step == STEP_FAILED)
            return SIZE_MAX;
        if (step == STEP_MORE || size > bytes.size - at)
            break;
        enum sl_code code = read_message(r, type, (struct sl_bytes){bytes.data + at, (size_t)size});
        if (code != SL_OK) {
            r->error.code = code; /* a callback of the sink may fail without filling the error */
            return SIZE_MAX;
        }
        r->offset += at + size - done;
        done = at + (size_t)size;
        r->message++;
    }
    return done;
}

/* Copies the failure in r->error to the caller's `error` (may be NULL), returns its code, and makes it permanent: later calls return it
 * again. */
static enum sl_code copy_failure(struct sl_symbfile_reader *r, struct sl_error *error)
{
    r->code = r->error.code;
    if (error)
        *error = r->error;
    return r->code;
}

enum sl_code sl_symbfile_reader_feed(struct sl_symbfile_reader *r, struct sl_bytes bytes, struct sl_error *error)
{
    if (r->code != SL_OK)
        return copy_failure(r, error);
    bool joined = r->pending.size > 0; /* an incomplete message is left from the last call: the new bytes continue it */
    if (joined) {
        sl_buf_add(&r->pending, bytes.data, bytes.size);
        bytes = sl_buf_bytes(&r->pending);
    }
    size_t done = r->pending.failed ? SIZE_MAX : read_messages(r, bytes);
    if (r->pending.failed)
        sl_fail(&r->error, SL_BUSY, "out of memory");
    if (done == SIZE_MAX)
        return copy_failure(r, error);
    size_t left = bytes.size - done;
    if (!joined)
        sl_buf_add(&r->pending, bytes.data + done, left);
    else if (left && done)
        memmove(r->pending.data, r->pending.data + done, left);
    r->pending.size = left;
    if (!left && r->pending.capacity > KEEP_PENDING)
        sl_buf_free(&r->pending);
    return SL_OK;
}

enum sl_code sl_symbfile_reader_finish(struct sl_symbfile_reader *r, struct sl_error *error)
{
    if (r->code != SL_OK)
        return copy_failure(r, error);
    if (r->magic_seen && !r->pending.size && r->message > 1) /* > 1: the header was read */
        return SL_OK;
    symbfile_reader_fail(r, r->magic_seen ? SL_SYMBFILE_TRUNCATED : SL_SYMBFILE_SHORT);
    return copy_failure(r, error);
}

enum sl_code sl_symbfile_read(struct sl_bytes file, struct sl_symbfile_sink *sink, struct sl_error *error)
{
    struct sl_symbfile_reader *r = sl_symbfile_reader_new(sink);
    if (!r)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = sl_symbfile_reader_feed(r, file, error);
    if (code == SL_OK)
        code = sl_symbfile_reader_finish(r, error);
    sl_symbfile_reader_free(r);
    return code;
}
