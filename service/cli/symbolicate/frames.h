/* Text tables: columns as wide as their longest cell, a margin of one blank, two blanks between columns; and the columns for frames of
 * an answer. Private to this folder. */
#pragma once

#include "cli/symbolicate/answer.h"

enum { MAX_COLUMNS = 8 };

struct answer_style;
struct answer_printer;

struct print_column {
    const char *title; /* "": an offset, which belongs to the column before it; NULL ends a list of columns */
    bool right;        /* a number: align right, and never shorten */
    /* Format pretty, which has a line per value instead of a table: the text before the value. NULL: no line of its own. */
    const char *label;
    /* Appends the column's value for a frame to the text of the cell. */
    void (*put)(struct answer_printer *p, const struct answer_thread *thread, size_t index);
};

struct print_row {
    struct sl_str cells[MAX_COLUMNS];
    struct sl_str below; /* complete lines below the row */
};

struct print_table {
    const struct print_column *columns; /* ends with a NULL title */
    struct sl_arena arena;
    struct print_row *rows;
    size_t count, capacity;
    bool failed;
};

/* Adds an empty row, valid until the next one is added; NULL when out of memory, with t->failed set. */
struct print_row *table_add(struct print_table *t);

/* Moves the buffer's text, which must be safe for terminals, into the table as a cell's text; empties the buffer. */
struct sl_str table_text(struct print_table *t, struct sl_buf *buf);

/* Sets the width of all tables that are printed from now on: the middle of long cells is left out. 0 (initially): unlimited. */
void table_fit(unsigned columns);

/* Appends the table, its titles bold with `colour`. */
void table_put(const struct print_table *t, bool colour, struct sl_buf *out);

/* ---- frames ---- */

/* The columns of a format. */
struct frame_view {
    bool is_request; /* for answers to JavaScript and JVM requests, which have neither threads nor modules */
    struct print_column columns[MAX_COLUMNS + 1];
};
extern const struct frame_view view_program, view_program_full, view_js, view_js_full, view_jvm, view_jvm_full,
    view_request_lines;

/* An answer while it is printed. */
struct answer_printer {
    const struct symbolicated_answer *answer;
    const struct answer_style *style; /* symbolicate.h */
    struct print_table table;
    struct sl_buf buf; /* text of the current cell */
};

/* Begins to print an answer in a format with the columns of style->view. */
struct answer_printer printing_make(const struct symbolicated_answer *answer, const struct answer_style *style);
/* Frees the printer. False if memory ran out for its tables or for `out`. */
bool printing_end(struct answer_printer *p, const struct sl_buf *out);

/* Returns a copy of the text in the table's memory, safe for terminals, as a cell's text. */
struct sl_str printing_text(struct answer_printer *p, struct sl_str text);
/* Returns the cell's text of a frame in a column. */
struct sl_str printing_cell(struct answer_printer *p, const struct print_column *column,
                            const struct answer_thread *thread, size_t index);
/* Adds the frame's row to the table; NULL when out of memory. */
struct print_row *printing_add_frame(struct answer_printer *p, const struct answer_thread *thread, size_t index);
/* Folds recursion (answer_fold_cycle): returns how many frames from `index` on repeat those before them, to be skipped, and adds a line
 * that says so below the table's last row. 0: the frame at `index` is no repetition. */
size_t printing_fold(struct answer_printer *p, const struct answer_thread *thread, size_t index);
