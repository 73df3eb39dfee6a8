/* Requests of whoever has no server: what POST /symbolicate, /symbolicate-jvm, /symbolicate-js and /symbolicate/v5 answer to a
 * body, for commands, which may have files of their own. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "core/fiber.h"
#include "jvm/mapper.h"
#include "origin/artifacts.h"

enum local_request_kind { LOCAL_JVM, LOCAL_JS, LOCAL_NATIVE, LOCAL_MOZILLA };

struct local_mapping {
    struct sl_debug_id id;
    const struct sl_jvm_mapper *mapper;
    bool only_by_id; /* it is of no use for other modules than its own */
};

struct local_file_query { /* what a script, a source map or a source is looked for by */
    struct sl_str path;   /* data NULL: none */
    bool is_map;
    const struct sl_debug_id *id; /* NULL: none */
    struct sl_str stem, release, dist;
};

struct local_request {
    enum local_request_kind kind;
    struct sl_str body;
    struct sl_str scope;          /* whose entries of the cache count, but for Mozilla's API; data NULL: everybody's */
    const struct source *sources; /* of debug files, and of mappings and bundles of JVM programs; in their order */
    size_t source_count;
    bool own_sources; /* those that the body names count too, behind these */
    bool no_scraping, no_source_context;
    bool candidates;                      /* native: the answer tells where files were looked for */
    bool variables;                       /* native: frames have the variables of their functions */
    bool line_starts;                     /* native: frames tell where their lines begin, as `line_addr` */
    const struct local_mapping *mappings; /* count before those of sources */
    size_t mapping_count;
    /* Instead of the source of a request for JavaScript, unless own_sources, before which it counts: the files that serve a
     * query, in the arena, `*count` of them. Pure. False when out of memory. NULL: there are none. */
    bool (*look_up)(void *arg, const struct local_file_query *query, struct sl_arena *arena, struct artifact **items,
                    size_t *count);
    void *look_up_arg;
};

/* The local sources, and with own_sources those of the body behind them, which `*sources` has at first; in the arena. False when
 * out of memory. */
bool local_request_sources(const struct local_request *local, struct sl_arena *arena, const struct source **sources,
                           size_t *count);

/* Puts the whole answer into `answer`, which is empty and the caller's to free. SL_MALFORMED: the body is no such request, as `error` says; SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code local_request_symbolicate(const struct local_request *request, const struct config *config,
                                       struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
