/* Tables for people: columns as wide as their longest cell, two blanks between them, one before. And what of an answer is put into
 * them. Private to this folder. */
#pragma once

#include "cli/symbolicate/answer.h"

enum { MAX_COLUMNS = 8 };

struct answer_style;
struct printing;

struct column {
    const char *title; /* NULL ends a list */
    bool right;
    /* Where frames are written as lines: what stands before it; NULL: it is not written, or behind the one before. */
    const char *label;
    /* Of a frame: adds what it has there to the text of the cell. */
    void (*put)(struct printing *p, const struct answer_thread *thread, size_t index);
};

struct row {
    struct sl_str cells[MAX_COLUMNS];
    struct sl_str below; /* whole lines */
};

struct table {
    const struct column *columns; /* ends with NULL as title */
    struct sl_arena arena;
    struct row *rows;
    size_t count, capacity;
    bool failed;
};

struct row *table_add(struct table *t); /* NULL when out of memory */

/* What was written to the buffer as a cell's text, safe for terminals; the buffer is empty again. */
struct sl_str table_text(struct table *t, struct sl_buf *buf);

/* Tables fit into so many columns from now on: of long cells the middle is left out. 0, at first: they are as wide as they get. */
void table_fit(unsigned columns);

void table_put(const struct table *t, bool colour, struct sl_buf *out);

/* ---- frames ---- */

/* What is shown of a frame. */
struct frame_view {
    bool is_request; /* of scripts and of a JVM: they have no threads and no modules */
    struct column columns[MAX_COLUMNS + 1];
};
extern const struct frame_view view_program, view_program_full, view_js, view_js_full, view_jvm, view_jvm_full,
    view_request_lines;

/* An answer that is printed. */
struct printing {
    const struct answer *answer;
    const struct answer_style *style; /* symbolicate.h */
    struct table table;
    struct sl_buf buf; /* of one cell */
};

struct printing printing_of(const struct answer *answer, const struct answer_style *style);
bool printing_end(struct printing *p, const struct sl_buf *out); /* false when anything ran out of memory */

/* A text as that of a cell, safe for terminals. */
struct sl_str printing_text(struct printing *p, struct sl_str text);
/* What the column has of the frame. */
struct sl_str printing_cell(struct printing *p, const struct column *column, const struct answer_thread *thread,
                            size_t index);
/* A row of the table for the frame; NULL when out of memory. */
struct row *printing_add_frame(struct printing *p, const struct answer_thread *thread, size_t index);
/* The number of frames from `index` on that repeat others (answer_fold_cycle): they are a line below the row before them. */
size_t printing_fold(struct printing *p, const struct answer_thread *thread, size_t index);
