/* Text with stacks, symbolicated without a server: what POST /symbolicate-text does, for commands. */
#pragma once

#include "base/buf.h"
#include "api/local_request.h"
#include "base/error.h"
#include "config/config.h"
#include "core/fiber.h"
#include "origin/origin.h"
#include "text/text.h"

/* A frame of a script, and whether its source map could be used: it was mapped; its position is not in the map; or there is no map. */
struct local_script_frame {
    struct sl_str url;
    enum { LOCAL_SCRIPT_MAPPED, LOCAL_SCRIPT_NOT_COVERED, LOCAL_SCRIPT_UNMAPPED } outcome;
    /* LOCAL_SCRIPT_UNMAPPED: why there is no usable source map; data NULL: the script was not found. */
    struct sl_str problem;
    uint32_t bad_scopes; /* number of the first malformed item of `scopes` in the source map; 0: none */
};

struct local_text {
    struct sl_str text; /* whole lines; the last one may lack its newline */
    /* Keeps what earlier parts of the text said (modules, the log prefix). Belongs to the caller, who passes the same one for all parts
     * of a text. */
    struct sl_text *reader;
    const struct source *sources; /* searched in this order */
    size_t source_count;
    struct sl_str scope; /* scope of cached files; data NULL: the global one */
    bool wants_json;     /* the answer is the JSON of POST /symbolicate-text; otherwise the text with readable stacks */
    bool candidates;     /* JSON: lists the files that were tried for each module */
    bool is_part;        /* more of the text follows, in another call */
    enum sl_text_format only; /* look up frames of this format, copy others; SL_TEXT_PLAIN: all formats */
    /* Local files and options of the command, for scripts and in JSON answers for the JVM; `kind` and `body` are not used. NULL:
     * frames of scripts are copied. */
    const struct local_request *files;
    struct sl_jvm_trace *trace; /* mappings for a text answer; belongs to the caller; NULL: JVM frames are copied */
    /* Asked for modules of which the text has only a name or path: sets the module's type and ids. False: unknown or ambiguous.
     * NULL: such modules stay unknown. Must not suspend. */
    bool (*find_id)(void *arg, struct sl_str name, struct object_id *id);
    void *find_id_arg;
    /* Called for each module that frames lie in, after its look-up. NULL: not called. */
    void (*on_module)(void *arg, const struct object_id *id, bool found);
    void *on_module_arg;
    /* Called for each frame of a script. NULL: not called. */
    void (*on_script)(void *arg, const struct local_script_frame *frame);
    void *on_script_arg;
    /* frame_count is increased by the number of native frames that have no names in the text, without_module by the number of those
     * whose module is unknown. NULL: not counted. */
    size_t *frame_count, *without_module;
};

/* Writes the answer into `answer`, which must be empty; the caller frees it. SL_UNSUPPORTED: the text exceeds a limit, which `error`
 * names; SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code local_text_symbolicate(const struct local_text *text, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error) SL_SUSPENDS;
