/* Dumps: crash files with registers and memory, whose stacks are walked. Minidumps (minidump.c) and core files (core.c). */
#pragma once

#include "api/crash/crash.h"
#include "api/crash/walk.h"

struct dump_work {
    struct crash_work crash;
    bool details;                  /* the answer has members that only minidumps or cores have (minidump.details) */
    bool compat;                   /* minidumps: answer as Symbolicator does */
    struct minidump_result result; /* of the converter that read a minidump */
    struct sl_minidump dump;
    uint64_t client_count; /* how many stacks the crashed program itself has walked and stored in the dump */
    struct dump_walk walk;
};

/* Members `read` of struct crash_kind, `undo` and `release` of struct job_kind, for requests that are a struct dump_work. */
enum sl_code dump_work_read(struct job *job, void *work, struct sl_error *error) SL_SUSPENDS;
void dump_work_undo(void *work);
void dump_work_release(void *work);
