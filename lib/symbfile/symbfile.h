/* Symbfiles: the symbols of one executable as profilers upload them (proto/symbfile.proto describes the format).
 *
 *     debug file ──extract──▶ ranges, return pads ──writer──▶ symbfile ──reader──▶ index builder ──▶ index file
 *
 * A *range* is code of one function at one depth of inlining; a *return pad* is one address ("return address minus one")
 * with its whole chain of calls. Addresses are ELF virtual addresses, as in the program headers: not relative to the
 * lowest one.
 *
 * A file with one text and one range; each message follows its size and type (unsigned LEB128):
 *
 *     "symbfile"
 *     00 01                                      0 bytes, type 1: header
 *     05 04  0a 03 "a.c"                         5 bytes, type 4: string table, entry 0 = "a.c"
 *     19 02  60 c0 0c  10 24  1a 04 "main"       25 bytes, type 2: range at 0x640, 0x24 bytes, function "main",
 *            50 00                               file = entry 0 of the string table,
 *            42 0a  0a 03 00 08 10               lines begin at offsets 0, 8 and 8 + 16 = 24:
 *                   12 03 26 27 29               lines 38, 39 and 41 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/parallel.h"
#include "symcache/symcache.h"

enum { SL_SYMBFILE_MAX_MESSAGE = 16 << 20, SL_SYMBFILE_MAX_DEPTH = 1023 };

#define SL_SYMBFILE_INLINE UINT32_MAX /* the text is not in the string table */

struct sl_symbfile_text {
    struct sl_str str; /* data NULL = absent */
    uint32_t ref;      /* reading: index in the current string table, or SL_SYMBFILE_INLINE; writing: ignored */
};

struct sl_symbfile_line {
    uint32_t offset; /* bytes from the start of the range; sorted */
    uint32_t line;   /* 0 = unknown */
};

struct sl_symbfile_range {
    uint64_t va;
    uint32_t length;
    uint32_t depth;                          /* of inlining; 0 = the function itself */
    struct sl_symbfile_text function;        /* readable; may be empty */
    struct sl_symbfile_text file, call_file; /* absent or empty: unknown */
    uint32_t call_line;                      /* 0 = unknown */
    const struct sl_symbfile_line *lines;
    size_t line_count;
};

struct sl_symbfile_frame {
    struct sl_symbfile_text function, file; /* an empty file is unknown */
    uint32_t line;                          /* 0 = unknown */
};

struct sl_symbfile_pad {
    uint64_t va;
    const struct sl_symbfile_frame
        *frames; /* outermost first; each but the last has the place where it calls the next */
    size_t count;
};

/* Receives the records in file order. Pointers in records are valid only during the call. A callback that returns
 * anything but SL_OK ends the reading with that code. */
struct sl_symbfile_sink {
    enum sl_code (*range)(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range, struct sl_error *error);
    enum sl_code (*pad)(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error);
    void (*table)(
        struct sl_symbfile_sink *sink); /* a new string table begins: each `ref` has a new meaning; may be NULL */
};

/* ---- reading ---- */

/* Errors in a file; the numbers are part of the upload protocol (1200 + n). */
enum sl_symbfile_problem {
    SL_SYMBFILE_FINE = 0,
    SL_SYMBFILE_SHORT = 1,          /* shorter than the magic */
    SL_SYMBFILE_NO_MAGIC = 2,       /* wrong magic */
    SL_SYMBFILE_TRUNCATED = 3,      /* ends inside a message */
    SL_SYMBFILE_NO_HEADER = 4,      /* the first message is not a header */
    SL_SYMBFILE_BAD_TYPE = 5,       /* type 0, beyond 31 bits, or a second header */
    SL_SYMBFILE_BAD_SIZE = 6,       /* above 16 MiB */
    SL_SYMBFILE_BAD_VARINT = 7,     /* more than ten bytes */
    SL_SYMBFILE_BAD_MESSAGE = 8,    /* not protobuf, or a text is not UTF-8 */
    SL_SYMBFILE_BAD_COLUMNS = 9,    /* parallel lists of different lengths */
    SL_SYMBFILE_BAD_DELTA = 10,     /* a delta without a previous address */
    SL_SYMBFILE_BAD_FIELD = 11,     /* a field is missing */
    SL_SYMBFILE_BAD_REFERENCE = 12, /* beyond the string table */
    SL_SYMBFILE_BAD_OFFSET = 13,    /* a line offset beyond 32 bits */
};

struct sl_symbfile_reader;

/* Creates a reader that takes a file in pieces and uses bounded memory: one message and one string table. The sink
 * must outlive the reader. Returns NULL if out of memory; free with sl_symbfile_reader_free(). */
struct sl_symbfile_reader *sl_symbfile_reader_new(struct sl_symbfile_sink *sink);
void sl_symbfile_reader_free(struct sl_symbfile_reader *reader);

/* Feeds the next bytes of the file, any number of them. SL_MALFORMED with the reason, the number of the message and
 * its offset, or the code of a sink callback. After a failure all calls return the same error. */
enum sl_code sl_symbfile_reader_feed(struct sl_symbfile_reader *reader, struct sl_bytes bytes, struct sl_error *error);

/* Ends the file. SL_MALFORMED if it is incomplete. */
enum sl_code sl_symbfile_reader_finish(struct sl_symbfile_reader *reader, struct sl_error *error);

/* Returns the defect in the file that a call reported as SL_MALFORMED; SL_SYMBFILE_FINE if there was none. */
enum sl_symbfile_problem sl_symbfile_reader_problem(const struct sl_symbfile_reader *reader);
uint64_t sl_symbfile_reader_records(const struct sl_symbfile_reader *reader); /* ranges and return pads so far */
/* True if the length of a range was above 32 bits, and reduced to the largest number of 32 bits. */
bool sl_symbfile_reader_is_truncated(const struct sl_symbfile_reader *reader);

/* Reads a whole file in memory. */
enum sl_code sl_symbfile_read(struct sl_bytes file, struct sl_symbfile_sink *sink, struct sl_error *error);

static inline bool sl_symbfile_detect(struct sl_bytes file)
{
    return file.size >= 8 && memcmp(file.data, "symbfile", 8) == 0;
}

/* ---- writing ---- */

struct sl_symbfile_writer;

/* Receives the bytes of the file in order. A result other than SL_OK ends the writing with that code. */
typedef enum sl_code sl_symbfile_output(void *arg, struct sl_bytes bytes, struct sl_error *error);

/* Creates a writer. Equal records give equal bytes; invalid UTF-8 in texts becomes U+FFFD. Work and memory are
 * charged to `budget` (NULL = no limit). Returns NULL if out of memory. */
struct sl_symbfile_writer *sl_symbfile_writer_new(sl_symbfile_output *output, void *arg, struct sl_budget *budget);
void sl_symbfile_writer_free(struct sl_symbfile_writer *writer);

/* Add a record. SL_UNSUPPORTED if its message would exceed SL_SYMBFILE_MAX_MESSAGE, SL_MALFORMED if the lines are not sorted, SL_BUSY
 * if out of memory, the code of sl_budget_fail(), or that of the output. */
enum sl_code sl_symbfile_write_range(struct sl_symbfile_writer *writer, const struct sl_symbfile_range *range,
                                     struct sl_error *error);
enum sl_code sl_symbfile_write_pad(struct sl_symbfile_writer *writer, const struct sl_symbfile_pad *pad,
                                   struct sl_error *error);
/* Writes all that was collected, also a file without records: it has only a header. Then call only sl_symbfile_writer_free(). */
enum sl_code sl_symbfile_writer_finish(struct sl_symbfile_writer *writer, struct sl_error *error);

/* Returns the approximate size of the file if it were finished now. */
uint64_t sl_symbfile_writer_size(const struct sl_symbfile_writer *writer);
uint64_t sl_symbfile_writer_records(const struct sl_symbfile_writer *writer); /* ranges and return pads so far */

/* ---- the index, which is used for lookups ---- */

struct sl_symbfile_builder;

/* Creates a builder for the records of all files of one executable. Large arrays are stored in the file `scratch` (-1: in memory),
 * which is empty, open for writing, and must outlive the builder. Returns NULL if out of memory. */
struct sl_symbfile_builder *sl_symbfile_builder_new(int scratch);
/* Charges work and memory to `budget`. Call before the first record; `budget` must outlive the builder. */
void sl_symbfile_builder_limit(struct sl_symbfile_builder *builder, struct sl_budget *budget);
void sl_symbfile_builder_free(struct sl_symbfile_builder *builder);
struct sl_symbfile_sink *sl_symbfile_builder_sink(struct sl_symbfile_builder *builder);

/* Builds the index into the empty `out`: symcache of the ranges, symcache of the return pads, trailer (builder.c).
 * SL_MALFORMED if ranges overlap too much to be indexed. */
enum sl_code sl_symbfile_builder_finish(struct sl_symbfile_builder *builder, struct sl_buf *out,
                                        struct sl_error *error);

struct sl_symbfile_index {
    struct sl_symcache ranges, pads; /* addresses are relative to `base` */
    uint64_t base;
    bool has_lines, has_functions;
};

/* Validates the headers in O(1). `bytes` must outlive the index and be 8-aligned. */
enum sl_code sl_symbfile_index_open(struct sl_bytes bytes, struct sl_symbfile_index *index, struct sl_error *error);

/* Find the call chain of the code that contains `va`, or of the return pad at exactly `va`: innermost function first. Store at most
 * `capacity` elements in `chain` and return their full number, which may be larger; 0 = none. The ids in the chain are those of
 * the symcache index->ranges or index->pads. */
size_t sl_symbfile_lookup_range(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                                size_t capacity);
size_t sl_symbfile_lookup_pad(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                              size_t capacity);
