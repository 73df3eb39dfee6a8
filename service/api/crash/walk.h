/* Walks the stacks of a dump, by a converter (conversion/walks.h): all threads go on until each is over or needs a table of a module,
 * then these are looked up at once, and so on. A module is looked up once. Modules that no stack touches are not looked up.
 *
 * The first round gets some tables more than the walks have asked for, which an earlier search has left in memory, so that most walks are
 * over after it. The converter tells which of them the walks needed; only those count as looked up. */
#pragma once

#include "api/crash/crash.h"
#include "conversion/walks.h"
#include "minidump/minidump.h"

struct walked_module {
    const struct search_result *cfi; /* NULL: neither a frame nor a candidate return address lies in it */
    struct native_unwind unwind;     /* unwind status, as answers report it */
    /* private */
    bool is_asked;
    bool wants[2], has[2]; /* by walk_table.is_symbols: a walk waits for the table; it is among the tables */
};

struct dump_walk {
    struct module_needs needs;     /* sources and ids for the look-ups */
    const struct crash_work *file; /* the crash file */
    struct sl_minidump *dump;      /* the walk fills in the frames of its crash's threads */
    struct walked_module *modules; /* one per module of the crash, same order */
    struct sl_arena *arena;
    bool frame_pointer_first, keeps_registers;
    bool compat;           /* walk as Symbolicator does (unwind/walk.h), at most the innermost 256 frames a stack */
    bool finds_symbols;    /* prefetch: start symbol look-ups of modules with frames while the walk goes on */
    bool wants_variables;  /* also the tables for variables */
    size_t max_frames;     /* of all threads together; beyond it a thread gets only its first frame */
    struct sl_budget work; /* of all threads together; when it is used up, the frames found so far are the result */
    /* private */
    struct sl_arena own;  /* of what only the walks need: also used on the pool, unlike `arena` */
    struct sl_buf stacks; /* INPUT_STACKS */
    struct thread_walk *walks;
    size_t walk_count, live; /* those that are not over are the first ones */
    struct walk_table *tables;
    struct converter_input *inputs;       /* the tables that were found */
    const struct search_result **results; /* of the same indexes: the look-up that found the table */
    size_t table_count, found_count;
    unsigned forgotten; /* how often the tables had to be dropped */
    struct fiber_group ahead;
    struct sl_error error;
};

/* Prepares the walks of the dump's threads; `dump`, `modules` and their count are set. False when out of memory. Pure: pool. */
bool dump_walk_prepare(struct dump_walk *walk);

/* Call dump_walk_release after it, whatever it returns. SL_CANCELLED, SL_BUSY, or SL_INTERNAL when a mapped file could not be
 * read. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error) SL_SUSPENDS;
void dump_walk_release(struct dump_walk *walk);
