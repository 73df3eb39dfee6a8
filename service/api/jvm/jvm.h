/* POST /symbolicate-jvm: reads the request (read.c), looks up mappings and source bundles and runs the steps (symbolicate.c),
 * deobfuscates frames (frames.c), adds source lines (context.c), writes the answer (write.c), counts metrics (count.c). All structs
 * lie in the job's arena; texts are in the arena, or views of the body or of mappings. */
#pragma once

#include "api/answer_limit.h"
#include "api/jobs/jobs.h"
#include "api/lines.h"
#include "api/local_request.h"
#include "api/form_files.h"
#include "api/json_document.h"
#include "config/config.h"
#include "jvm/stack.h"
#include "search/search.h"

struct jvm_exception {
    struct sl_str type, module;
};

struct jvm_frame {
    struct sl_str platform, function, filename, module, abs_path, context_line, signature;
    struct sl_str pre_context, post_context; /* JSON as it was written */
    struct sl_opt_u64 line, index;
    enum sl_opt_bool in_app, synthesized;
    bool mapped;                       /* its class is in a mapping */
    const struct frame_lines *context; /* source lines that were found, which replace those that were sent; or NULL */
};

struct jvm_trace {
    struct jvm_exception exception; /* type.data NULL: the trace has none */
    struct jvm_frame *frames;       /* as sent in `traces`, deobfuscated in `results` */
    size_t count, capacity;
};

struct jvm_class {                /* an element of the request's `classes`: a class name to deobfuscate */
    struct sl_str name, original; /* `original` is empty (data NULL) if no mapping has the class */
};

struct jvm_sent_mapping { /* a mapping sent with the request */
    enum sl_code code;
    struct cache_item *item; /* a reference; NULL unless `code` is SL_OK */
};

struct jvm_request {
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str platform, scope, release_package;
    const struct source *sources;
    size_t source_count;
    struct jvm_exception *exceptions, *mapped; /* as sent; the same ones deobfuscated */
    struct jvm_trace *traces, *results;
    struct jvm_query
        *modules; /* mappings and bundles, in the order of the request; with the results of their look-up */
    struct jvm_class *classes;
    size_t exception_count, trace_count, module_count, class_count, frame_count, result_count;
    enum sl_opt_bool apply_source_context, configured_sources;
    bool callee_first;
    struct request_files files;
    struct jvm_sent_mapping sent_mappings[OWN_FILES_MAX]; /* one for each item of `files` */
    struct sl_jvm_mappers mappers;                        /* sent with the request; of `modules`; the command's */
    const struct local_request *local;                    /* the command's request; NULL: an HTTP request */
    struct answer_limit *limit;                           /* size limit of the answer; the writer updates it, too */
    bool out_of_memory, limited; /* limited: frames were omitted because of max_response_frames */
};

/* ---- read.c ---- */

/* Reads the body into the request, which keeps views of it. False: `failure` says why. */
bool jvm_read(struct jvm_request *request, struct sl_str body, struct json_failure *failure);

/* ---- frames.c, context.c: run on the pool ---- */

/* Deobfuscates exceptions, frames and classes; fills in `results`. */
void jvm_map(struct jvm_request *request);

/* Adds source lines from the bundles to the frames in `results`. */
void jvm_add_context(struct jvm_request *request);

/* ---- count.c ---- */

/* Counts the request's results as metrics with the label `task`. */
void jvm_count(const struct jvm_request *request, const char *task);

/* ---- write.c ---- */
void jvm_write(const struct jvm_request *request, struct sl_buf *out); /* the JSON answer */
