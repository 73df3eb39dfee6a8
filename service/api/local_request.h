/* Symbolication requests without a server, for commands: the answers of POST /symbolicate, /symbolicate-jvm, /symbolicate-js
 * and /symbolicate/v5. Commands may add local files. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "core/fiber.h"
#include "jvm/mapper.h"
#include "origin/artifacts.h"

enum local_request_kind { LOCAL_JVM, LOCAL_JS, LOCAL_NATIVE, LOCAL_MOZILLA };

struct local_mapping { /* a JVM mapping that the command has opened */
    struct sl_debug_id id;
    const struct sl_jvm_mapper *mapper;
    bool only_by_id; /* true: for modules with this id only; false: also for a module whose mapping is missing */
};

struct local_file_query { /* what a script, a source map or a source is looked up by */
    struct sl_str path;   /* data NULL: none */
    bool is_map;
    const struct sl_debug_id *id;      /* NULL: none */
    struct sl_str stem, release, dist; /* `stem`: of `path`, without host, query and file suffix; data NULL: unknown */
};

struct local_request {
    enum local_request_kind kind;
    struct sl_str body;           /* as of the HTTP request */
    struct sl_str scope;          /* scope of cached files; data NULL: the global one. Mozilla's API has none */
    const struct source *sources; /* of debug files, JVM mappings and bundles; searched in this order */
    size_t source_count;
    bool own_sources; /* the sources that the body names are asked as well, after `sources` */
    bool no_scraping, no_source_context;
    bool candidates;                      /* native: the answer lists the files that were tried for each module */
    bool variables;                       /* native: frames have local variables */
    bool line_starts;                     /* native: frames have `line_addr`, the address where their line begins */
    const struct local_mapping *mappings; /* JVM: replace mappings that the sources have */
    size_t mapping_count;
    /* JavaScript: finds local files. With it the source that the body names is not asked, unless own_sources. Sets `*items` to the
     * `*count` files that match the query, in the arena. Must not suspend. False when out of memory. NULL: no local files. */
    bool (*look_up)(void *arg, const struct local_file_query *query, struct sl_arena *arena, struct artifact **items,
                    size_t *count);
    void *look_up_arg;
    struct sl_str only_script; /* texts: the script of frames that name none, as "f@1:2"; data NULL: unknown */
};

/* Builds the list of sources in the arena: those of the command, then with own_sources those of the body. `*sources` and `*count`
 * are the body's on entry, and the list on return. False when out of memory. */
bool local_request_sources(const struct local_request *local, struct sl_arena *arena, const struct source **sources,
                           size_t *count);

/* Runs the request and writes the whole answer into `answer`, which must be empty; the caller frees it. SL_MALFORMED: the body is
 * not a valid request, `error` says why; SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code local_request_symbolicate(const struct local_request *request, const struct config *config,
                                       struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
