/* Sampling reports of `sample` and Activity Monitor (sample(1)), and of spindump(8). The system's reports of hangs, processor time and
 * disk writes have the format of spindump.
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
 * A row is a call and the number of samples that contain it; the column of that number is the depth: a deeper row is called by the last
 * row before it with a smaller column. Each process has its own images. Rows keep their position in the text, so that the report can be
 * written again with names from debug information. Memory is proportional to the text. */
#pragma once

#include "crash/crash.h"

#define SL_SAMPLES_NONE UINT32_MAX

struct sl_samples_image {
    uint64_t begin, end; /* `end`: the last byte; equals `begin` if unknown */
    struct sl_crash_module module;
};

struct sl_samples_row {
    size_t line, line_size;   /* range in the text, without the line end */
    size_t name, name_end;    /* range in the line of the location, "main + 12 (main.c:7 in app + 16396)" */
    size_t tail;              /* offset in the line of the text after the address */
    size_t column;            /* offset in the line of the number of samples */
    uint64_t count, children; /* samples: of this row, and the sum of its callees */
    uint32_t caller;          /* row index; SL_SAMPLES_NONE: first row of a thread, or not in a tree */
    uint32_t thread, process; /* indexes; SL_SAMPLES_NONE: in no thread or process */
    uint32_t image;           /* index; SL_SAMPLES_NONE: in no known image */
    bool has_address, is_kernel;
    bool in_sample;                             /* has the form of sample(1), not that of spindump */
    bool is_exact;                              /* the address is not a return address */
    uint64_t address;                           /* the first one if the row has several */
    struct sl_str function;                     /* data NULL: unknown ("???") */
    struct sl_str image_name, image_and_offset; /* "app", "app + 16396": as written in the report */
    struct sl_str offset;                       /* offset in the function: "12" or "12,8,..." */
    struct sl_str filename;
    uint32_t source_line; /* 0: unknown */
    bool has_several;     /* the row has several addresses */
};

struct sl_samples_thread {
    uint64_t id, count; /* `count`: number of samples */
    bool has_id;
    struct sl_str name;
    uint32_t process;
};

struct sl_samples_process {
    struct sl_str name; /* "app [123]" */
    uint64_t pid;
    bool has_pid;
    size_t first_image, image_count; /* images sorted by address */
};

struct sl_samples {
    struct sl_str text;
    struct sl_samples_row *rows;
    struct sl_samples_thread *threads;
    struct sl_samples_process *processes;
    struct sl_samples_image *images;
    size_t row_count, thread_count, process_count, image_count;
    uint32_t target; /* index of the process that the report is about; SL_SAMPLES_NONE: unknown */
    /* From the lines in front of the first process; data NULL: unknown. */
    struct sl_str title, os, architecture, hardware, time, event, duration;
};

/* True if a text looks like a sampling report. */
bool sl_samples_is_text(struct sl_str text);

/* Reads a sampling report. `text` must be UTF-8 and outlive `samples`. SL_MALFORMED if it has no rows; SL_BUSY if out of memory. Pure
 * function. */
enum sl_code sl_samples_read(struct sl_str text, struct sl_arena *arena, struct sl_samples *samples,
                             struct sl_error *error);

struct sl_samples_name {
    struct sl_str function; /* data NULL: unknown; then the row stays as the report has it */
    struct sl_str file;
    uint64_t line;   /* 0: unknown */
    uint64_t offset; /* offset of the address in the function; valid if has_offset */
    bool has_offset;
};

/* Writes the report with the functions, source positions and offsets of `names`, which has an item for each row, instead of its own.
 * Returns false if out of memory. */
bool sl_samples_write(const struct sl_samples *samples, const struct sl_samples_name *names, struct sl_buf *out);
