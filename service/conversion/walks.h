/* Walks the stacks of a dump (unwind/walk.h) with CFI caches and symcaches of its modules. A walk that needs a table which it was not given
 * stops; the caller fetches the table and calls again, with the saved state of the walk.
 *
 *     options   struct walk_options
 *     inputs    INPUT_FILE: the bytes of the dump that hold the stacks' memory, INPUT_STACKS: what sl_minidump_pack_stacks has written,
 *               INPUT_WALKS: what walks_write_request has written; tables: the CFI caches and symcaches in that request, in its order
 *     out       the answer, read by walks_read_answer
 *     result    struct walks_result */
#pragma once

#include "conversion/conversion.h"
#include "unwind/walk.h"

extern const struct converter converter_walk;
struct walk_options {
    int64_t steps; /* steps of work that all walks together may still do */
    /* passed on as the members of struct sl_walk_target with these names */
    bool frame_pointer_first, keeps_registers, compat;
};
struct walks_result {
    int64_t steps;    /* steps that are left after the call, at most walk_options.steps */
    bool out_of_work; /* true: the steps were used up, so stacks were cut */
};

/* A table (CFI cache or symcache) that was looked up for a module. */
struct walk_table {
    uint32_t module;
    bool is_symbols;       /* a symcache, else a CFI cache */
    bool is_found;         /* false: the module has no such table */
    bool is_used;          /* a walk has needed it; set by walks_read_answer, never cleared */
    uint64_t ahead;        /* what to add to an address relative to the module before it is looked up in the table */
    struct sl_bytes bytes; /* contents of the table's file */
    const struct file_place *place; /* the file that `bytes` are mapped from, for a worker to open */
};

/* The walk of one thread's stack, between two calls of the converter. */
struct thread_walk {
    size_t thread;
    struct sl_walk_saved saved;
    struct sl_walk_frame *frames;   /* all frames found so far; their member `module` is not set */
    struct sl_registers *registers; /* of each frame, if keeps_registers is set */
    size_t frame_count, capacity, register_capacity;
    enum sl_walk_need need;
    size_t module; /* index of the module whose table `need` asks for; not valid for SL_WALK_DONE */
};

/* Writes the saved states of the walks and the list of tables as the input INPUT_WALKS of a call. Sets `out->failed` when out of memory. */
void walks_write_request(const struct thread_walk *walks, size_t walk_count, const struct walk_table *tables,
                         size_t table_count, struct sl_buf *out);

/* Reads the converter's answer for these walks and tables, which must be those of the request: updates the walks, appends their new frames
 * (allocated in `arena`), and marks the tables that were used. SL_MALFORMED if a number in the answer is impossible; SL_BUSY without
 * memory. */
enum sl_code walks_read_answer(struct sl_bytes answer, struct thread_walk *walks, size_t count,
                               struct walk_table *tables, size_t table_count, size_t module_count, bool keeps_registers,
                               struct sl_arena *arena, struct sl_error *error);
