/* Writes files of table/table.h in memory, section by section.
 *
 * Failures are sticky (`file.failed`: out of memory; `too_large`), so one check at the end suffices. Equal input gives equal bytes,
 * whatever the number of workers. */
#pragma once

#include "base/parallel.h"
#include "table/table.h"

struct sl_table_writer {
    struct sl_buf file; /* reserved head, then the sections */
    const struct sl_table_format *format;
    const struct sl_parallel *parallel; /* may be NULL */
    struct {
        uint32_t id;
        uint64_t offset, size;
    } sections[SL_TABLE_MAX_SECTIONS];
    uint32_t section_count;
    bool too_large; /* an offset needs more than 32 bits, or a number in a column more than 56 */
};

/* Starts a file with space for its header and section table. Memory is charged to the budget (may be NULL) until sl_table_finish(). False
 * when out of memory. The caller frees `file` if it does not call sl_table_finish(). */
bool sl_table_writer_init(struct sl_table_writer *writer, const struct sl_table_format *format,
                          const struct sl_parallel *parallel, struct sl_budget *budget);

/* Stores a number of `size` bytes at offset `at` of the header. */
void sl_table_put(struct sl_table_writer *writer, size_t at, uint64_t value, unsigned size);

/* Begins a section: all bytes appended to `file` from now until the next call belong to it. In formats without section table the sections
 * must come in order of ids. */
void sl_table_section(struct sl_table_writer *writer, uint32_t id);

/* Packs `count` values of `width` bits each, as in a column; pads the last byte. */
void sl_column_pack(uint8_t *at, const uint64_t *values, uint32_t count, unsigned width);

/* Packs the differences values[i] - least with `width` bits each, as in a column; pads the last byte. */
void sl_column_pack_relative(uint8_t *at, const uint32_t *values, uint32_t least, uint32_t count, unsigned width);

struct sl_table_column_source {
    /* Fills values[column] with the values of rows [from, from + count). Called from several threads. */
    void (*fill)(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values);
    const void *arg;
    uint32_t rows;
    unsigned columns;
    uint64_t max[SL_TABLE_MAX_COLUMNS]; /* upper bounds of the values, which give the widths */
};

/* Adds a section of columns whose widths fit their largest values, packed in parallel. False when a value is too wide (`too_large`) or when
 * out of memory. */
bool sl_table_add_columns(struct sl_table_writer *writer, uint32_t id, const struct sl_table_column_source *source);

struct sl_table_unit_source {
    void (*write)(const void *arg, size_t unit, struct sl_buf *out); /* appends; called from several threads */
    const void *arg;
    size_t count, per_chunk; /* per_chunk: units per work item of a thread */
};

/* Adds two sections in the order of their ids: units (byte sequences of any size) and their u32 offsets. False when out of memory, or if
 * the units have more than 4 GiB (`too_large`). */
bool sl_table_add_units(struct sl_table_writer *writer, uint32_t id, uint32_t offsets_id,
                        const struct sl_table_unit_source *source);

struct sl_table_string_source {
    struct sl_str (*get)(const void *arg, size_t index); /* in byte order; called from several threads */
    const void *arg;
    size_t count;
};

/* Adds two sections in the order of their ids: sorted strings in groups, without the prefix that each shares with the one before, and the
 * offsets of the groups. False when out of memory, or if the strings need more than 4 GiB (`too_large`). */
bool sl_table_add_strings(struct sl_table_writer *writer, uint32_t id, uint32_t offsets_id,
                          const struct sl_table_string_source *source);

/* Completes the head, pads `out` to a multiple of 8 bytes and appends the file. False, with nothing appended, if anything has failed.
 * `file` is freed in any case. */
bool sl_table_finish(struct sl_table_writer *writer, struct sl_buf *out);
