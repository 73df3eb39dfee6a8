/* Walks the stacks of a dump (unwind/walk.h) with tables of its modules, as far as the tables suffice. The caller gets what is wanted
 * and calls again, with what the walks have to remember.
 *
 *     options   struct walk_options
 *     inputs    INPUT_FILE: bytes that the dump's memory lies in, INPUT_STACKS: sl_minidump_pack_stacks,
 *               INPUT_WALKS: walks_write_request; tables: CFI caches and symcaches that the request names, in its order
 *     out       an answer, for walks_read_answer
 *     result    struct walks_result */
#pragma once

#include "conversion/conversion.h"
#include "unwind/walk.h"

extern const struct converter converter_walk;
struct walk_options {
    int64_t steps;                                     /* work that is left for all walks */
    bool frame_pointer_first, keeps_registers, compat; /* as in struct sl_walk_target */
};
struct walks_result {
    int64_t steps;    /* work that is left now, at most as before */
    bool out_of_work; /* it was used up: walks have ended where they were */
};

/* A table that was looked up for a module. */
struct walk_table {
    uint32_t module;
    bool is_symbols;                /* a symcache, else a CFI cache */
    bool is_found;                  /* else there is none */
    bool is_used;                   /* a walk has needed it; set by walks_read_answer, never cleared */
    uint64_t ahead;                 /* add it to an address relative to the module to look it up in the table */
    struct sl_bytes bytes;          /* of the file */
    const struct file_place *place; /* as in struct converter_input */
};

/* A walk that is not over. */
struct thread_walk {
    size_t thread;
    struct sl_walk_saved saved;
    struct sl_walk_frame *frames;   /* all that were found; `module` is not set */
    struct sl_registers *registers; /* of each frame, if they are kept */
    size_t frame_count, capacity, register_capacity;
    enum sl_walk_need need;
    size_t module; /* that it needs something of */
};

/* Writes the walks and the tables as bytes. `out->failed` when out of memory. */
void walks_write_request(const struct thread_walk *walks, size_t walk_count, const struct walk_table *tables,
                         size_t table_count, struct sl_buf *out);

/* Reads what the converter has written for these walks and tables, which are those of the request; checks every number. Adds the frames,
 * in the arena. SL_MALFORMED, SL_BUSY. */
enum sl_code walks_read_answer(struct sl_bytes answer, struct thread_walk *walks, size_t count,
                               struct walk_table *tables, size_t table_count, size_t module_count, bool keeps_registers,
                               struct sl_arena *arena, struct sl_error *error);
