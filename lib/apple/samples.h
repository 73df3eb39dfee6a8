/* Reports of samples: what `sample` and Activity Monitor write (sample(1)), and spindump(8) and the reports of hangs, of processor time
 * and of writes, which have its format.
 *
 *     Call graph:                                                          sample
 *         8 Thread_955462   DispatchQueue_1: com.apple.main-thread  (serial)
 *         + 8 main  (in app) + 12  [0x10000400c]  main.c:7
 *         + ! 5 ???  (in app)  load address 0x100000000 + 0x4020  [0x100004020]
 *
 *     Process:          app [123]                                          spindump
 *       Thread 0x2ca9e    DispatchQueue "com.apple.main-thread"(1)    8 samples (1-8)
 *       8  main + 12 (main.c:7 in app + 16396) [0x10000400c] 1-8
 *         5  ??? (app + 16416) [0x100004020] 1-5
 *          *5  thread_block + 8 (kernel + 100) [0xffffff8000200064] 1-5
 *
 * A row is a call in how many samples it was seen; the column of that number says how deep it is, and a row one deeper is called by it.
 * Each process has its images. What is read are the rows, with where they stand in the text, so that it can be written again with the
 * names that debug information has. All is in proportion to the text. */
#pragma once

#include "crash/crash.h"

#define SL_SAMPLES_NONE UINT32_MAX

struct sl_samples_image {
    uint64_t begin, end; /* the last byte; `begin` when it is not known */
    struct sl_crash_module module;
};

struct sl_samples_row {
    size_t line, line_size;   /* in the text, without the line's end */
    size_t name, name_end;    /* the part that tells the place, "main + 12 (main.c:7 in app + 16396)" */
    size_t tail;              /* what stands behind the address */
    size_t column;            /* of the number */
    uint64_t count, children; /* in samples: of this row, and of those that it calls */
    uint32_t caller;          /* the row; SL_SAMPLES_NONE: it is a thread's first, or of no tree */
    uint32_t thread, process; /* SL_SAMPLES_NONE: of none */
    uint32_t image;
    bool has_address, is_kernel, in_sample;
    bool is_exact;                   /* the address is no return address */
    uint64_t address;                /* the first, of several */
    struct sl_str function;          /* without "???" */
    struct sl_str image_name, place; /* "app", "app + 16396": as they are written */
    struct sl_str offset;            /* "12", "12,8,..."; of the function */
    struct sl_str filename;
    uint32_t source_line; /* 0: not told */
    bool has_several;     /* addresses */
};

struct sl_samples_thread {
    uint64_t id, count; /* of samples */
    bool has_id;
    struct sl_str name;
    uint32_t process;
};

struct sl_samples_process {
    struct sl_str name; /* "app [123]" */
    uint64_t pid;
    bool has_pid;
    size_t first_image, image_count; /* ascending */
};

struct sl_samples {
    struct sl_str text;
    struct sl_samples_row *rows;
    struct sl_samples_thread *threads;
    struct sl_samples_process *processes;
    struct sl_samples_image *images;
    size_t row_count, thread_count, process_count, image_count;
    uint32_t target; /* the process that the report is about; SL_SAMPLES_NONE: of none */
    /* The head's; data NULL: not told. */
    struct sl_str title, os, architecture, hardware, time, event, duration;
};

/* Whether a text looks like such a report. */
bool sl_samples_is(struct sl_str text);

/* Reads a report, which is UTF-8 and must outlive what is read. SL_MALFORMED, SL_BUSY. Pure. */
enum sl_code sl_samples_read(struct sl_str text, struct sl_arena *arena, struct sl_samples *samples,
                             struct sl_error *error);

struct sl_samples_name {
    struct sl_str function; /* data NULL: not known, the row stays */
    struct sl_str file;
    uint64_t line;   /* 0: not known */
    uint64_t offset; /* of the address in the function; when has_offset */
    bool has_offset;
};

/* The text, with a name for each of its rows. False when out of memory. */
bool sl_samples_write(const struct sl_samples *samples, const struct sl_samples_name *names, struct sl_buf *out);
