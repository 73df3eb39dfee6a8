/* Symbfiles: the symbols of one executable as profilers upload them (the format is described in proto/symbfile.proto).
 *
 *     debug file ──extract──▶ ranges, return pads ──writer──▶ symbfile ──reader──▶ index builder ──▶ index file
 *
 * A *range* is code of one function at one depth of inlining; a *return pad* is one address ("return address minus one")
 * with its whole chain of calls. Addresses are ELF virtual addresses: those of the program headers, not relative to the
 * lowest one. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/parallel.h"
#include "symcache/symcache.h"

enum { SL_SYMBFILE_MAX_MESSAGE = 16 << 20, SL_SYMBFILE_MAX_DEPTH = 1023 };

#define SL_SYMBFILE_INLINE UINT32_MAX /* the text is no reference to the string table */

struct sl_symbfile_text {
    struct sl_str str; /* data NULL = absent */
    uint32_t ref;      /* reading: index in the string table in force, or SL_SYMBFILE_INLINE; writing: not looked at */
};

struct sl_symbfile_line {
    uint32_t offset; /* bytes from the start of the range; ascending */
    uint32_t line;   /* 0 = not known */
};

struct sl_symbfile_range {
    uint64_t va;
    uint32_t length;
    uint32_t depth;                          /* 0 = the function itself */
    struct sl_symbfile_text function;        /* readable; may be empty */
    struct sl_symbfile_text file, call_file; /* absent, or maybe empty: not known */
    uint32_t call_line;                      /* 0 = not known */
    const struct sl_symbfile_line *lines;
    size_t line_count;
};

struct sl_symbfile_place {
    struct sl_symbfile_text function, file; /* an empty file is not known */
    uint32_t line;                          /* 0 = not known */
};

struct sl_symbfile_pad {
    uint64_t va;
    const struct sl_symbfile_place *places; /* outermost first; each but the last: where the next one is called */
    size_t count;
};

/* Who gets the records, in the order of the file. What they point to is valid during the call. Anything but SL_OK ends
 * the reading with that code. */
struct sl_symbfile_sink {
    enum sl_code (*range)(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range, struct sl_error *error);
    enum sl_code (*pad)(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error);
    void (*table)(struct sl_symbfile_sink *sink); /* references mean other texts from now on; may be NULL */
};

/* ---- reading ---- */

/* What is wrong with a file; the numbers are part of the upload protocol (1200 + n). */
enum sl_symbfile_problem {
    SL_SYMBFILE_FINE = 0,
    SL_SYMBFILE_SHORT = 1,          /* not even a magic */
    SL_SYMBFILE_NO_MAGIC = 2,       /* another magic */
    SL_SYMBFILE_TRUNCATED = 3,      /* ends inside a message */
    SL_SYMBFILE_NO_HEADER = 4,      /* the first message is no header */
    SL_SYMBFILE_BAD_TYPE = 5,       /* type 0, beyond 31 bits, or a second header */
    SL_SYMBFILE_BAD_SIZE = 6,       /* above 16 MiB */
    SL_SYMBFILE_BAD_VARINT = 7,     /* more than ten bytes */
    SL_SYMBFILE_BAD_MESSAGE = 8,    /* no protobuf, no UTF-8 */
    SL_SYMBFILE_BAD_COLUMNS = 9,    /* parallel lists of different lengths */
    SL_SYMBFILE_BAD_DELTA = 10,     /* relative to nothing */
    SL_SYMBFILE_BAD_FIELD = 11,     /* a field is missing */
    SL_SYMBFILE_BAD_REFERENCE = 12, /* beyond the string table */
    SL_SYMBFILE_BAD_OFFSET = 13,    /* a line offset beyond 32 bits */
};

struct sl_symbfile_reader;

/* Reads a file piece by piece in bounded memory: one message and one string table. NULL when out of memory. The sink must
 * outlive the reader. */
struct sl_symbfile_reader *sl_symbfile_reader_new(struct sl_symbfile_sink *sink);
void sl_symbfile_reader_free(struct sl_symbfile_reader *reader);

/* The next bytes of the file, any number of them. SL_MALFORMED with the reason, the number of the message and its offset;
 * or what the sink answered. After a failure every call fails alike. */
enum sl_code sl_symbfile_reader_feed(struct sl_symbfile_reader *reader, struct sl_bytes bytes, struct sl_error *error);

/* The file ends here. SL_MALFORMED when it must not. */
enum sl_code sl_symbfile_reader_finish(struct sl_symbfile_reader *reader, struct sl_error *error);

enum sl_symbfile_problem sl_symbfile_reader_problem(const struct sl_symbfile_reader *reader);
uint64_t sl_symbfile_reader_records(const struct sl_symbfile_reader *reader); /* ranges and pads so far */
bool sl_symbfile_reader_cut(const struct sl_symbfile_reader *reader);         /* a length above 32 bits was cut */

/* All of a file in memory. */
enum sl_code sl_symbfile_read(struct sl_bytes file, struct sl_symbfile_sink *sink, struct sl_error *error);

static inline bool sl_symbfile_detect(struct sl_bytes file)
{
    return file.size >= 8 && memcmp(file.data, "symbfile", 8) == 0;
}

/* ---- writing ---- */

struct sl_symbfile_writer;

/* Takes the bytes of the file as they come. */
typedef enum sl_code sl_symbfile_output(void *arg, struct sl_bytes bytes, struct sl_error *error);

/* Equal records give equal bytes. What is not UTF-8 in a text becomes U+FFFD. Work and memory are the budget's (NULL = no
 * limit). NULL when out of memory. */
struct sl_symbfile_writer *sl_symbfile_writer_new(sl_symbfile_output *output, void *arg, struct sl_budget *budget);
void sl_symbfile_writer_free(struct sl_symbfile_writer *writer);

/* SL_UNSUPPORTED for a record that is too large for a message, SL_MALFORMED when the lines are not sorted, SL_BUSY
 * when out of memory, what sl_budget_fail() says, or what the output answered. */
enum sl_code sl_symbfile_write_range(struct sl_symbfile_writer *writer, const struct sl_symbfile_range *range,
                                     struct sl_error *error);
enum sl_code sl_symbfile_write_pad(struct sl_symbfile_writer *writer, const struct sl_symbfile_pad *pad,
                                   struct sl_error *error);
enum sl_code sl_symbfile_writer_finish(struct sl_symbfile_writer *writer, struct sl_error *error);

/* About how large the file would be if it were finished now; and the records in it. */
uint64_t sl_symbfile_writer_size(const struct sl_symbfile_writer *writer);
uint64_t sl_symbfile_writer_records(const struct sl_symbfile_writer *writer);

/* ---- the index: what answers lookups ---- */

struct sl_symbfile_builder;

/* Collects the records of all files of one executable; when there are many, in unlinked files in `directory` (NULL: in
 * memory), which must outlive the builder. NULL when out of memory. */
struct sl_symbfile_builder *sl_symbfile_builder_new(const char *directory);
/* What work and memory are taken from, before the first record; it outlives the builder. */
void sl_symbfile_builder_limit(struct sl_symbfile_builder *builder, struct sl_budget *budget);
void sl_symbfile_builder_free(struct sl_symbfile_builder *builder);
struct sl_symbfile_sink *sl_symbfile_builder_sink(struct sl_symbfile_builder *builder);

/* Builds the index into the empty `out`: a symcache of the ranges, one of the pads, a trailer. SL_MALFORMED when ranges
 * overlap so much that no index can be made of them. */
enum sl_code sl_symbfile_builder_finish(struct sl_symbfile_builder *builder, struct sl_buf *out,
                                        struct sl_error *error);

struct sl_symbfile_index {
    struct sl_symcache ranges, pads; /* their addresses are relative to `base` */
    uint64_t base;
    bool has_lines, has_functions;
};

/* Validates the headers, O(1). `bytes` must outlive the index and be 8-aligned. */
enum sl_code sl_symbfile_index_open(struct sl_bytes bytes, struct sl_symbfile_index *index, struct sl_error *error);

/* As sl_symcache_lookup, ids of index->ranges or index->pads: the code that holds `va`; the pad at exactly `va`. */
size_t sl_symbfile_lookup_range(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                                size_t capacity);
size_t sl_symbfile_lookup_pad(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                              size_t capacity);
