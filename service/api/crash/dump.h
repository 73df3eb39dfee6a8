/* Crash files with registers and memory, whose stacks are walked: minidumps (minidump.c) and core files (core.c). */
#pragma once

#include "api/crash/crash.h"
#include "api/crash/walk.h"

struct dump_work {
    struct crash_work crash;
    bool details, compat;
    struct minidump_result result;
    struct sl_minidump dump;
    uint64_t client_count; /* stacks that the client walked */
    struct dump_walk walk;
};

/* Members of struct job_kind and struct crash_kind; their requests are a struct dump_work. */
enum sl_code dump_work_read(struct job *job, void *work, struct sl_error *error) SL_SUSPENDS;
void dump_work_undo(void *work);
void dump_work_release(void *work);
