/* POST /symbolicate-jvm: what was asked (read.c), the mappings and bundles of its modules and the steps (symbolicate.c), frames as they
 * were before (frames.c), the source around them (context.c), the answer (write.c), and what is
 * counted (count.c). All of it lives in the job's arena;
 * texts are views of the body, of mappings, or in the arena. */
#pragma once

#include "api/answer_limit.h"
#include "api/jobs/jobs.h"
#include "api/lines.h"
#include "api/local_request.h"
#include "api/own_files.h"
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
    bool mapped;                       /* a mapping knows it */
    const struct frame_lines *context; /* instead of what was sent; NULL: none was found */
};

struct jvm_trace {
    struct jvm_exception exception; /* data NULL: none */
    struct jvm_frame *frames;       /* first as sent, then what they were */
    size_t count, capacity;
};

struct jvm_class {
    struct sl_str name, original; /* data NULL: no mapping knows it */
};

struct jvm_own { /* a mapping that came with the request */
    enum sl_code code;
    struct cache_item *item; /* reference; NULL unless SL_OK */
};

struct jvm_request {
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str platform, scope, release_package;
    const struct source *sources;
    size_t source_count;
    struct jvm_exception *exceptions, *mapped; /* as sent, and what they were */
    struct jvm_trace *traces, *results;
    struct jvm_question *modules; /* in the order of the request */
    struct jvm_class *classes;
    size_t exception_count, trace_count, module_count, class_count, frame_count, result_count;
    enum sl_opt_bool apply_source_context, configured_sources;
    bool callee_first;
    struct own_files files;
    struct jvm_own own[OWN_FILES_MAX]; /* of `files` */
    struct sl_jvm_mappers mappers;     /* those that came along, and those that were found */
    const struct local_request *local; /* of a command; NULL: the request came over HTTP */
    struct answer_limit *limit;        /* the writer counts in it too */
    bool out_of_memory, limited;
};

/* ---- read.c ---- */

/* Reads the body, which must outlive the request; memory and `failure` as those of json_document. */
bool jvm_read(struct jvm_request *request, struct sl_str body, struct json_failure *failure);

/* ---- frames.c, context.c: pure, on the pool ---- */

/* Exceptions, frames and classes, by the mappers; `results` are then what the traces came to. */
void jvm_map(struct jvm_request *request);

/* Source lines out of the bundles. */
void jvm_add_context(struct jvm_request *request);

/* ---- count.c ---- */

/* What became of it, in the metrics. */
void jvm_count(const struct jvm_request *request, const char *task);

/* ---- write.c ---- */
void jvm_write(const struct jvm_request *request, struct sl_buf *out);
