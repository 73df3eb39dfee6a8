/* Walks the stacks of a dump in rounds. In a round, a converter in a worker process (conversion/walks.h) walks the stacks of all threads
 * until each is over or needs a table of a module: its CFI cache or its symbols. Then these tables are searched, all at once, and the next
 * round begins. A module that no stack touches is not searched, others once.
 *
 * The first round also gets tables that no walk has asked for yet, if an earlier search has left them in memory, so that most walks are
 * over after it. The converter tells which of them the walks needed; only those count as searched. */
#pragma once

#include "api/crash/crash.h"
#include "conversion/walks.h"
#include "minidump/minidump.h"

struct walked_module {
    const struct search_result *cfi; /* NULL: neither a frame nor a candidate return address lies in it */
    struct native_unwind unwind;     /* unwind status, as answers report it */
    /* private; the arrays have an element for the CFI cache (0) and one for the symbols (1) */
    bool is_asked; /* a walk has needed the CFI cache, so prefetching its symbols has begun */
    bool wants[2]; /* used while the tables that walks wait for are collected: this one is among them already */
    bool has[2];   /* the next round gets the table, or is told that there is none */
};

struct dump_walk {
    struct module_needs needs;     /* symbol sources and the ids of modules, for searches */
    const struct crash_work *file; /* the crash file */
    struct sl_minidump *dump;      /* the walk fills in the frames of its crash's threads */
    struct walked_module *modules; /* one per module of the crash, same order */
    struct sl_arena *arena;
    bool frame_pointer_first, keeps_registers; /* as in struct sl_walk_target */
    bool compat;          /* walk as Symbolicator does (unwind/walk.h), at most the innermost 256 frames a stack */
    bool finds_symbols;   /* prefetch: search symbols of modules with frames while the walk goes on */
    bool wants_variables; /* symbols must include local variables */
    size_t max_frames;    /* of all threads together; when they are reached, other threads get only their first frame */
    struct sl_budget work; /* for all threads together; when it is used up, the frames found so far are the result */
    /* private */
    struct sl_arena own;  /* memory that only the walks need; used on the pool too, unlike `arena` */
    struct sl_buf stacks; /* the converter's INPUT_STACKS */
    struct thread_walk *walks;
    size_t walk_count, live;              /* all walks; the first `live` ones are not over */
    struct walk_table *tables;            /* tables that the next round gets, or is told that there are none */
    const struct search_result **results; /* of each table: the search for it */
    struct converter_input *inputs;       /* the tables that were found */
    size_t table_count, found_count;      /* number of `tables` and `results`; of `inputs` */
    unsigned forgotten;                   /* how often the tables had to be dropped because they were too many */
    struct fiber_group ahead;             /* prefetches of symbols */
    struct sl_error error;                /* of a search that ends the whole walk; code 0: none */
};

/* Prepares the walks of the dump's threads, on the pool; `dump`, `modules` and their count are set. False when out of memory. */
bool dump_walk_prepare(struct dump_walk *walk);

/* Walks all threads: sets the frames of the dump's threads, and ids and unwind status of its modules. May suspend. Other codes than SL_OK:
 * SL_CANCELLED; SL_BUSY; SL_INTERNAL when a mapped file could not be read; SL_UNSUPPORTED when the stacks touch too many modules;
 * SL_MALFORMED when the worker process gives a wrong answer. Call dump_walk_release() after it, whatever it returns. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error) SL_SUSPENDS;
void dump_walk_release(struct dump_walk *walk);
