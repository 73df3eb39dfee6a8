/* Symbolicates crash files without a server: the answers of POST /minidump, POST /core and POST
 * /applecrashreport, for commands. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "minidump/minidump.h"
#include "core/fiber.h"
#include "origin/origin.h"

enum crash_file_kind { CRASH_FILE_MINIDUMP, CRASH_FILE_APPLE, CRASH_FILE_CORE };

struct crash_file {
    enum crash_file_kind kind;
    struct sl_bytes bytes;
    const struct source *sources; /* searched in this order */
    size_t source_count;
    struct sl_str scope;    /* cache scope; data NULL: the global one */
    const char *rewrite;    /* the form's rewrite_first_module, JSON; NULL: none */
    const char *modules;    /* cores: the form's modules, JSON; NULL: none */
    bool candidates;        /* answer lists the candidates of each module */
    bool no_source_context; /* answer has no source lines */
    bool variables;         /* answer has local variables */
    /* Minidumps and cores: called before the symbolication with the dump, whose threads are walked; frames have their registers if
     * wants_registers. `dump` is freed after the call. With it, frames of the answer also have `line_addr`, the address
     * where their line begins. Returns false when out of memory. Pure: pool. NULL: not called. */
    bool (*walked)(void *arg, const struct sl_minidump *dump);
    bool wants_registers;
    void *walked_arg;
};

/* Writes the answer, as an HTTP client would get it, into `answer`, which must be empty; the caller frees it. SL_OK;
 * SL_MALFORMED or SL_UNSUPPORTED when the file cannot be used: `answer`, or `error` if `answer` is empty, says why; SL_BUSY,
 * SL_CANCELLED, SL_INTERNAL. */
enum sl_code crash_file_symbolicate(const struct crash_file *file, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error) SL_SUSPENDS;
