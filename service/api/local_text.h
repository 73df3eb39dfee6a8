/* Text with stacks, symbolicated without a server: what POST /symbolicate-text does, for commands. */
#pragma once

#include "base/buf.h"
#include "api/local_request.h"
#include "base/error.h"
#include "config/config.h"
#include "core/fiber.h"
#include "origin/origin.h"
#include "text/text.h"

/* A frame of a script, and what became of it. */
struct local_script_frame {
    struct sl_str url;
    enum { LOCAL_SCRIPT_MAPPED, LOCAL_SCRIPT_NOT_COVERED /* by the source map */, LOCAL_SCRIPT_UNMAPPED } outcome;
    struct sl_str problem; /* why the script's source map could not be used; data NULL: there is no script */
    uint32_t bad_scopes;   /* number of the first malformed item of `scopes` in the source map; 0: none */
};

struct local_text {
    struct sl_str text; /* whole lines; the last one may lack its end */
    /* the caller's, for all parts of one text: stores modules and the log prefix between them */
    struct sl_text *reader;
    const struct source *sources; /* searched in this order */
    size_t source_count;
    struct sl_str scope;      /* cache scope; data NULL: the global one */
    bool wants_json;          /* the answer is the JSON of POST /symbolicate-text; else the text */
    bool candidates;          /* JSON: lists the candidates of each module */
    bool is_part;             /* more of the text follows */
    enum sl_text_format only; /* frames of other formats are copied; SL_TEXT_PLAIN: all are read */
    /* For scripts and, in JSON answers, the JVM: local files and options of the command, without its kind and body. NULL: frames of scripts
     * are copied. */
    const struct local_request *files;
    struct sl_jvm_trace
        *trace; /* for texts: the caller's, for all parts of one text; NULL: the JVM's frames are copied */
    /* Sets type and ids of a module of which the text has only the name or path; false: unknown or ambiguous. NULL: not asked.
     * Pure. */
    bool (*find_id)(void *arg, struct sl_str name, struct object_id *id);
    void *find_id_arg;
    /* Called for each module on the stacks, when these were looked up. NULL: not called. */
    void (*on_module)(void *arg, const struct object_id *id, bool found);
    void *on_module_arg;
    /* Called for each frame of a script. NULL: not called. */
    void (*on_script)(void *arg, const struct local_script_frame *frame);
    void *on_script_arg;
    /* Raised by the number of native frames without names in the text, and of those whose module is unknown. NULL: not counted. */
    size_t *frame_count, *without_module;
};

/* Writes the answer into `answer`, which must be empty; the caller frees it. SL_UNSUPPORTED: too large, `error` says which limit;
 * SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code local_text_symbolicate(const struct local_text *text, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error) SL_SUSPENDS;
