/* Walks the stacks of a minidump's threads. Each fiber walks a few threads on the pool and suspends when it needs the CFI of a
 * module. A module is looked up once, for the first fiber that needs it; others join that look-up. Modules that no stack
 * touches are not looked up. */
#pragma once

#include "api/native/native.h"
#include "minidump/minidump.h"

struct walked_module {
    const struct search_result *cfi; /* NULL: neither a frame nor a candidate return address lies in it */
    struct native_unwind unwind;     /* unwind status, as answers report it */
    /* private */
    bool is_asked;
    struct dump_coverage {
        struct sl_walk_symbols base;
        const struct sl_symcache *table;
        uint64_t ahead; /* add it to an address of the module to get the table's */
    } covered;
};

struct dump_walk {
    struct module_needs needs;     /* sources and ids for the look-ups */
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
    struct sl_walk_module *targets;
    size_t next, batch;
    struct fiber_group ahead;
    struct sl_error error;
};

/* Call dump_walk_release after it, whatever it returns. SL_CANCELLED, SL_BUSY, or SL_INTERNAL when a mapped file could not be
 * read. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error) SL_SUSPENDS;
void dump_walk_release(struct dump_walk *walk);
