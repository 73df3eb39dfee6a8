/* Symbolicates crash files for commands, without an HTTP server, with the same answers as POST /minidump, POST /core and POST
 * /applecrashreport. */
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
    const char *rewrite;    /* JSON, like the form's part rewrite_first_module; NULL: none */
    const char *modules;    /* cores: JSON, like the form's part modules; NULL: none */
    bool candidates;        /* answer lists for each module the locations that were searched */
    bool no_source_context; /* answer has no source lines */
    bool variables;         /* answer has local variables */
    /* Minidumps and cores: called with the dump after its stacks were walked and before symbolication, on a pool thread; `dump` is freed
     * after the call. Frames have their registers if wants_registers. Returns false when out of memory. NULL: not called. If it is set,
     * frames of the answer also have `line_addr`, the address where their line begins. */
    bool (*walked)(void *arg, const struct sl_minidump *dump);
    bool wants_registers;
    void *walked_arg;
};

/* Symbolicates a crash file and writes the answer, as an HTTP client would get it, into `answer`, which must be empty; the caller frees it.
 * SL_MALFORMED or SL_UNSUPPORTED when the file cannot be used: `answer` or, if that is empty, `error` says why. Else SL_OK, SL_BUSY,
 * SL_CANCELLED or SL_INTERNAL. */
enum sl_code crash_file_symbolicate(const struct crash_file *file, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error) SL_SUSPENDS;
