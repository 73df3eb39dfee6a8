/* Tables for people: columns as wide as their longest cell, two blanks between them, one before. Private to this folder. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { MAX_COLUMNS = 8 };

struct printing;
struct answer_thread;

struct column {
    const char *title; /* NULL ends a list */
    bool right;
    const char
        *label; /* where frames are written as lines: what stands before it; NULL: nothing, it is not written alone */
    /* Of a frame (print.c): adds what it has there to the text of the cell. */
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
