/* Crash files of whoever has no server: what POST /minidump and POST /applecrashreport answer, for commands. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "minidump/minidump.h"
#include "core/fiber.h"
#include "origin/origin.h"

enum crash_file_kind { CRASH_FILE_MINIDUMP, CRASH_FILE_APPLE };

struct crash_file {
    enum crash_file_kind kind;
    struct sl_bytes bytes;
    const struct source *sources; /* where modules are looked for, in their order */
    size_t source_count;
    struct sl_str scope;    /* whose entries of the cache count; data NULL: everybody's */
    const char *rewrite;    /* rewrite_first_module, as JSON; NULL: none */
    bool candidates;        /* the answer tells where files were looked for */
    bool no_source_context; /* and has no lines of source */
    bool variables;         /* but the variables of functions */
    /* Minidumps: told of the dump before it is symbolicated, its threads walked, with the registers of each frame if they are wanted;
     * the dump is gone when this returns. The answer's frames tell then where their lines begin, as `line_addr`. False: out of
     * memory. Pure: pool. NULL: nothing of this. */
    bool (*walked)(void *arg, const struct sl_minidump *dump);
    bool wants_registers;
    void *walked_arg;
};

/* Puts the whole answer, as a request would get it, into `answer`, which is empty and the caller's to free. SL_OK; SL_MALFORMED,
 * SL_UNSUPPORTED of a file that cannot be used: the answer or, when that is empty, `error` says so; SL_BUSY, SL_CANCELLED,
 * SL_INTERNAL. */
enum sl_code crash_file_symbolicate(const struct crash_file *file, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error) SL_SUSPENDS;
