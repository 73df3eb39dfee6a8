/* Writing the files of table/table.h: section by section, in memory.
 *
 * What fails is remembered (`file.failed`: out of memory; `too_large`), so one look at the end is enough. Equal input gives
 * equal bytes, whatever the number of workers. */
#pragma once

#include "base/parallel.h"
#include "table/table.h"

struct sl_table_writer {
    struct sl_buf file; /* room for the head, then the sections */
    const struct sl_table_format *format;
    const struct sl_parallel *parallel; /* NULL = none */
    struct {
        uint32_t id;
        uint64_t offset, size;
    } sections[SL_TABLE_MAX_SECTIONS];
    uint32_t section_count;
    bool too_large; /* an offset of a unit needs more than 32 bits, or a number more than 56 */
};

/* Memory is the budget's (NULL = none) until the table is finished. False when out of memory. `file` is to be freed, if it does not come to sl_table_finish. */
bool sl_table_writer_init(struct sl_table_writer *writer, const struct sl_table_format *format,
                          const struct sl_parallel *parallel, struct sl_budget *budget);

/* A number of the header, in `size` bytes. */
void sl_table_put(struct sl_table_writer *writer, size_t at, uint64_t value, unsigned size);

/* Begins a section: what is appended to `file` up to the next one. Without section table they come in their order. */
void sl_table_section(struct sl_table_writer *writer, uint32_t id);

/* Numbers as a column has them: `count` values of `width` bits each, in whole bytes. */
void sl_column_pack(uint8_t *at, const uint64_t *values, uint32_t count, unsigned width);

/* The same of values that are each `least` less than these, of at most 32 bits. */
void sl_column_pack_less(uint8_t *at, const uint32_t *values, uint32_t least, uint32_t count, unsigned width);

struct sl_table_column_source {
    /* Puts the values of rows [from, from + count) into values[column]. Called from several threads. */
    void (*fill)(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values);
    const void *arg;
    uint32_t rows;
    unsigned columns;
    uint64_t max[SL_TABLE_MAX_COLUMNS]; /* which no value exceeds: all get the bits that it needs */
};

bool sl_table_add_columns(struct sl_table_writer *writer, uint32_t id, const struct sl_table_column_source *source);

struct sl_table_unit_source {
    void (*write)(const void *arg, size_t unit, struct sl_buf *out); /* appends; called from several threads */
    const void *arg;
    size_t count, per_chunk; /* per_chunk: units that one call of a worker writes */
};

/* Two sections, in the order of their ids. */
bool sl_table_add_units(struct sl_table_writer *writer, uint32_t id, uint32_t offsets_id,
                        const struct sl_table_unit_source *source);

struct sl_table_string_source {
    struct sl_str (*get)(const void *arg, size_t index); /* in byte order; called from several threads */
    const void *arg;
    size_t count;
};

bool sl_table_add_strings(struct sl_table_writer *writer, uint32_t id, uint32_t offsets_id,
                          const struct sl_table_string_source *source);

/* Completes the head and moves the file to the 8-aligned end of `out`. False when something has failed; then nothing is
 * appended. `file` is empty then. */
bool sl_table_finish(struct sl_table_writer *writer, struct sl_buf *out);
