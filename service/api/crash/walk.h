/* The stacks of a dump's threads: fibers for a few threads each, which are walked on the pool until they need what is known of a
 * module. That is looked up once, whoever needs it first, and the others wait for it; modules that nobody needs are not looked
 * up. */
#pragma once

#include "api/native/native.h"
#include "minidump/minidump.h"

struct walked_module {
    const struct kinds_found *cfi; /* NULL: no frame, nor what looked like one, lies in it */
    struct native_unwind unwind;   /* as the answer has it */
    /* private */
    bool is_asked;
    struct covered {
        struct sl_walk_symbols base;
        const struct sl_symcache *table;
        uint64_t ahead; /* added to the module's addresses for the table */
    } covered;
};

struct dump_walk {
    struct module_needs needs;     /* where and as what the modules are looked up */
    struct sl_minidump *dump;      /* the threads of its crash get their frames */
    struct walked_module *modules; /* those of the crash, in their order */
    struct sl_arena *arena;
    bool frame_pointer_first, keeps_registers;
    bool compat;           /* as Symbolicator walks (unwind/walk.h), and of each stack the innermost 256 frames alone */
    bool finds_symbols;    /* of modules that frames lie in, while the walk goes on: they are asked for behind it */
    bool wants_variables;  /* of their functions, too */
    size_t max_frames;     /* of all threads together; the rest get none but their first */
    struct sl_budget work; /* of all threads together; what is found when it is used up is all there is */
    /* private */
    struct sl_walk_module *targets;
    size_t next, batch;
    struct fiber_group ahead;
    struct sl_error error;
};

/* What came of it is to be given back in any case. SL_CANCELLED, SL_BUSY, SL_INTERNAL when a mapped file could not be read. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error) SL_SUSPENDS;
void dump_walk_release(struct dump_walk *walk);
