/* POST /symbolicate-js: what was asked (read.c), the files that Sentry, bundles and the web have (find.c), scripts with their
 * source maps (modules.c), frames by them (frames.c), and the answer (write.c). All of it lives in the job's arena; texts are
 * views of the body, of cache entries that are held until the end, or in the arena. */
#pragma once

#include "api/answer_limit.h"
#include "api/jobs/jobs.h"
#include "api/lines.h"
#include "api/local_request.h"
#include "api/own_files.h"
#include "api/json_document.h"
#include "api/scraping.h"
#include "base/grow.h"
#include "base/map.h"
#include "config/config.h"
#include "kinds/sources.h"
#include "origin/artifacts.h"

/* ---- files ---- */

enum js_type { JS_MINIFIED_SOURCE, JS_SOURCE_MAP, JS_SOURCE };

struct js_key { /* what a file is looked for by */
    enum js_type type;
    struct sl_str path; /* data NULL: none */
    bool has_id;
    struct sl_debug_id id;
};

enum { JS_AT_ONCE = 16 }; /* files of one request that are asked for side by side */

enum js_origin { JS_NOWHERE, JS_BUNDLED, JS_INDIVIDUAL, JS_SCRAPED, JS_OWN /* it came with the request */ };

struct js_attempt { /* whether the web was asked for a path */
    enum { JS_NO_PATH, JS_NOT_ATTEMPTED, JS_SUCCESS, JS_FAILURE } status;
    const char *reason; /* of a failure */
    struct sl_str details;
};

struct js_file { /* what a look-up came to; the same for all who ask with its key */
    struct js_key key;
    size_t number;     /* of the request's files, as they came to be looked for */
    enum sl_code code; /* SL_OK: it is there */
    bool disabled;     /* it is not there, and the web was not asked because that is switched off */
    enum js_origin origin;
    enum artifact_match match;
    struct sl_str uri; /* of it, or of the bundle that it is in; of the web with the number of its hour */
    const struct sl_bundle_file *entry; /* in that bundle */
    const struct artifact *artifact;    /* JS_INDIVIDUAL */
    struct source_request request;      /* what it was got with */
    struct cache_item *item;            /* reference; NULL when it is not there, or there and empty */
    struct js_attempt attempt;
    struct js_file *next;
};

struct js_bundle {
    struct js_request *request;
    const struct artifact *artifact;
    bool tried;
    struct source_object object; /* nothing when it could not be had */
};

struct js_own_text { /* of a file that came with the request: read once, whatever URLs mean it */
    bool read;
    enum sl_code code;
    struct cache_item *item; /* reference; NULL unless SL_OK */
};

struct js_own_table { /* made of files that came with the request: once for all modules */
    const struct cache_item *script, *map;
    struct sl_str embedded; /* a view that is the same for all that are of the script */
    bool making, made;
    struct fiber_wait_list waiting; /* for the one that makes it */
    enum sl_code code;
    struct cache_item *item; /* reference; NULL unless SL_OK */
    bool is_url_checked, is_url_valid;
    struct js_own_table *next;
};

struct js_finder {                        /* of one request */
    struct js_file *files;                /* all that were looked for */
    struct sl_map by_key, known, by_path; /* of files; of what Sentry told of: by URI, single files by their path */
    struct js_bundle **bundles;           /* the greatest URI first */
    size_t file_count, bundle_count, bundle_capacity;
    struct js_own_text own_texts[OWN_FILES_MAX]; /* of the request's files, in their order */
    struct js_own_table *own_tables;
    int64_t now_s;
    /* SL_OK, or why the request cannot go on: SL_CANCELLED, SL_BUSY, SL_INTERNAL (a damaged file). */
    enum sl_code stopped;
};

/* ---- the request ---- */

struct js_said { /* of what a frame is said to be */
    struct sl_str sourcemap, resolved_with;
    struct sl_str json; /* where the map came from */
};

struct js_frame {
    struct sl_str platform, function, filename, module, abs_path, context_line;
    struct sl_str pre_context, post_context; /* JSON as it was written */
    struct sl_opt_u64 line, column;
    const struct js_said *origin;      /* NULL: nothing is said */
    const struct frame_lines *context; /* instead of what was sent; NULL: none was found */
};

struct js_entry { /* of a list of frames; requests have a million */
    union {
        struct js_frame *frame;
        const char *sent; /* as it was written, when it lacks what a frame must have */
    };
    uint32_t sent_size; /* 0: it is a frame */
    bool symbolicated;
};

struct js_trace {
    struct js_entry *frames;
    size_t count;
};

struct js_debug_id { /* of the request's list */
    struct sl_str code_file;
    struct sl_debug_id id; /* nil when it was no debug id */
};

enum js_problem { /* in the order of answers */
                  JS_INVALID_LOCATION,
                  JS_MISSING_SOURCE_CONTENT,
                  JS_MISSING_SOURCE,
                  JS_MALFORMED_SOURCEMAP,
                  JS_MISSING_SOURCEMAP,
                  JS_SCRAPING_DISABLED,
};

struct js_error {
    struct sl_str abs_path;
    enum js_problem problem;
    struct sl_opt_u64 line, column;  /* JS_INVALID_LOCATION */
    struct sl_str source, sourcemap; /* JS_MISSING_SOURCE_CONTENT; the latter of JS_MALFORMED_SOURCEMAP too */
};

struct js_reference {  /* what a script says of its map */
    struct sl_str map; /* data NULL: none, or in the script */
    bool is_embedded;  /* a data URL: `map`, or that of the script's comment */
    bool has_id;
    struct sl_debug_id id;
};

struct js_module { /* a script that frames name */
    struct js_request *request;
    struct js_module *next;
    struct sl_str abs_path;
    bool has_id;
    struct sl_debug_id id;
    bool wanted;                    /* for a frame that has a line */
    const struct js_file *minified; /* NULL: it is not wanted */
    struct js_reference reference;
    bool has_map;              /* it refers to one, or has a debug id */
    bool embedded;             /* it holds its map itself */
    const struct js_file *map; /* NULL: it has none, or holds it itself */
    enum sl_code code;         /* of the map, when there should be one */
    struct sl_str label;       /* what the map is called; what paths in it are relative to */
    struct sl_str origin;      /* JSON: where the map came from */
    enum artifact_match match;
    struct cache_item *item; /* reference: the table made of the map; NULL unless SL_OK */
    /* Most scripts are one long line: what was found around `context_line` last; 0 = nothing yet. */
    uint64_t context_line;
    bool has_context;
    struct sl_context context;
};

struct js_request {
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str platform, scope, release, dist;
    struct source source; /* without an id: there is none */
    struct own_files files;
    struct scraping scraping;
    enum sl_opt_bool allow_scraping, apply_source_context;
    bool callee_first;
    struct js_trace *raw, *results;
    struct js_debug_id *ids;
    size_t trace_count, id_count, frame_count;
    struct js_finder finder;
    struct js_module *modules; /* a list */
    struct sl_map modules_by_path;
    struct js_error *errors;
    struct js_want *wants;
    size_t error_count, error_capacity, want_count, want_capacity;
    struct answer_limit *limit; /* the writer counts in it too */
    bool out_of_memory;
    const struct local_request *local; /* of a command; NULL: the request came over HTTP */
};

/* ---- read.c ---- */

/* Reads the body, which must outlive the request; memory and `failure` as those of json_document. */
bool js_read(struct js_request *request, struct sl_str body, struct json_failure *failure);

/* ---- find.c ---- */

const char *js_type_name(enum js_type type); /* as bundles have it */

/* The files of the keys, in their order: what the request found before, or what it finds now, all of them side by side. False
 * when the request cannot go on. */
bool js_find(struct js_request *request, const struct js_key *keys, size_t count,
             const struct js_file **found) SL_SUSPENDS;

/* Runs `run` for the items, some of them at the same time. False when the request cannot go on: not for all then. */
bool js_for_each(struct js_request *request, void (*run)(void *item), void **items, size_t count) SL_SUSPENDS;
void js_finder_end(struct js_finder *finder);

/* ---- scrape.c ---- */

/* Asks the web for the file of the key, within the request's rules, and notes the attempt. */
void js_scrape(struct js_request *request, struct js_file *file) SL_SUSPENDS;

/* ---- modules.c ---- */

/* The scripts that the frames name, none of them fetched yet, and room for the results; false when out of memory. */
bool js_prepare(struct js_request *request);

/* Gets those that frames are in, and then their maps, side by side. False: the request cannot go on, as its finder says. */
bool js_fetch_modules(struct js_request *request) SL_SUSPENDS;
void js_release_modules(struct js_request *request);

/* ---- frames.c: pure, on the pool ---- */

struct js_want { /* a frame whose source its map does not hold */
    struct js_frame *frame;
    struct sl_str abs_path, path, sourcemap; /* of the frame as it came; of the source; of the map */
    const struct js_file *file;              /* once it was looked for */
};

/* `results` become what the frames are; what is left to look for is in `wants`. */
void js_resolve(struct js_request *request);
/* The lines of sources that were found since. */
void js_add_sources(struct js_request *request);

/* ---- write.c ---- */
void js_write(const struct js_request *request, struct sl_buf *out);
/* {"bundled":[...]} and so on, in the arena; data NULL when out of memory. */
struct sl_str js_origin_json(const struct js_file *file, struct sl_arena *arena);
