/* POST /symbolicate-js: reads the request (read.c), finds files at Sentry, in bundles and on the web (find.c, scrape.c), gets
 * scripts and their source maps (modules.c), resolves frames (frames.c), and writes the answer (write.c). All structs lie in the
 * job's arena; texts are in the arena, or views of the body or of cache entries that are held until the job ends. */
#pragma once

#include "api/answer_limit.h"
#include "api/jobs/jobs.h"
#include "api/lines.h"
#include "api/local_request.h"
#include "api/form_files.h"
#include "api/json_document.h"
#include "api/scraping.h"
#include "base/grow.h"
#include "base/map.h"
#include "config/config.h"
#include "cache_kinds/sources.h"
#include "origin/artifacts.h"

/* ---- files ---- */

enum js_type { JS_MINIFIED_SOURCE, JS_SOURCE_MAP, JS_SOURCE };

struct js_key { /* what a file is looked up by; a request looks up each key once */
    enum js_type type;
    struct sl_str path; /* data NULL: none */
    bool has_id;
    struct sl_debug_id id;
};

enum { JS_AT_ONCE = 16 }; /* files of one request that are looked up concurrently */

/* Where a file was found. JS_BUNDLED: in an artifact bundle; JS_INDIVIDUAL: an artifact of its own; JS_SCRAPED: on the web. */
enum js_origin { JS_NOWHERE, JS_BUNDLED, JS_INDIVIDUAL, JS_SCRAPED, JS_SENT /* it came with the request */ };
struct js_attempt { /* the report of the attempt to download a file from the web */
    /* JS_NO_PATH: the file has no path, or one that is no URL; the answer has no report then */
    enum { JS_NO_PATH, JS_NOT_ATTEMPTED, JS_SUCCESS, JS_FAILURE } status;
    const char *reason; /* JS_FAILURE: one of a few words, "not_found" for example */
    struct sl_str details;
};

struct js_file { /* result of the look-up of a key; scripts and frames with the same key share it */
    struct js_key key;
    size_t number;     /* how many look-ups of the request began before this one */
    enum sl_code code; /* SL_OK: found */
    bool disabled;     /* not found, and scraping is switched off */
    enum js_origin origin;
    enum artifact_match match; /* why the artifact matched; see artifacts.h */
    /* Names the file, or its bundle. Of a scraped file: "<URL>#<start of the URL's current hour>", as it is fetched again each hour. */
    struct sl_str uri;
    const struct sl_bundle_file *entry; /* JS_BUNDLED: the file's entry in the bundle */
    const struct artifact *artifact;    /* JS_INDIVIDUAL */
    struct source_request request;      /* how it is fetched, or read from the cache */
    struct cache_item *item;            /* the contents (a reference); NULL when not found, or found and empty */
    struct js_attempt attempt;
    struct js_file *next;
};

struct js_bundle { /* an artifact bundle that may have files of the request */
    struct js_request *request;
    const struct artifact *artifact;
    bool tried;                  /* open_bundle has been called */
    struct source_object object; /* empty if the fetch failed */
};

struct js_request_text { /* contents of a file of the request, read once for all URLs that name it */
    bool read;
    enum sl_code code;
    struct cache_item *item; /* a reference; NULL unless `code` is SL_OK */
};

/* Look-up table of a source map, made of files sent with the request: once for all modules that use these files. */
struct js_request_table {
    const struct cache_item *script, *map;
    struct sl_str embedded;         /* the embedded map; the same view for every module of the script */
    bool making, made;              /* a fiber is making it; it is made, or failed for good: see `code` */
    struct fiber_wait_list waiting; /* fibers that wait until it is made */
    enum sl_code code;
    struct cache_item *item;           /* a reference; NULL unless `code` is SL_OK */
    bool is_url_checked, is_url_valid; /* whether the data URL `embedded` can be decoded */
    struct js_request_table *next;
};

struct js_finder {         /* all look-ups of one request, and what they share */
    struct js_file *files; /* list of all look-ups */
    /* by_key: struct js_file by the bytes of its key; known: every artifact that a query listed, by URI; by_path: the artifacts that
     * are single files, by path */
    struct sl_map by_key, known, by_path;
    struct js_bundle **bundles; /* in descending order of their URIs */
    size_t file_count, bundle_count, bundle_capacity;
    bool has_release_bundles;                         /* the uploaded bundles of the request's release are known */
    struct js_request_text sent_texts[OWN_FILES_MAX]; /* one for each file of the request, same order */
    struct js_request_table *sent_tables;
    int64_t now_s; /* wall clock at the start of the job */
    /* SL_OK, or why the request ends: SL_CANCELLED, SL_BUSY, SL_INTERNAL (damaged cache file, full disk). */
    enum sl_code stopped;
};

/* ---- the request ---- */

struct js_frame_origin { /* which map a frame was resolved with: the member `data` of a frame */
    struct sl_str sourcemap, resolved_with;
    struct sl_str json; /* where the map was found: the value of `sourcemap_origin`, JSON */
};

struct js_frame {
    struct sl_str platform, function, filename, module, abs_path, context_line;
    struct sl_str pre_context, post_context; /* JSON as it was written */
    struct sl_opt_u64 line, column;
    const struct js_frame_origin *origin; /* NULL: none was sent or found */
    const struct frame_lines
        *context; /* source lines that were found, written instead of those that were sent; or NULL */
};

/* Type of all frames of a request with `is_of_text`, whose frames api/text has read from the lines of a text. */
struct js_text_frame {
    struct js_frame frame;
    /* Input: what the line of the text says. */
    bool is_apart;    /* the next frame of the trace is not the caller */
    bool is_alone;    /* the line has nothing but the frame: it may be left out */
    bool wants_calls; /* functions that were inlined become frames of their own */
    /* Output. */
    bool is_hidden;        /* the source map marks the function as hidden */
    bool is_left_out;      /* not written: is_hidden, and the frame that called it is in the trace */
    bool knows_function;   /* the source map says in which function the position is */
    struct js_frame *call; /* the frame into which this one was inlined; NULL: not inlined, or not `wants_calls` */
};

struct js_entry { /* one frame; small, as requests may have a million */
    union {
        struct js_frame *frame;
        const char *sent; /* the frame's JSON as sent, when a required member is missing */
    };
    uint32_t sent_size; /* 0: `frame` is set */
    bool symbolicated;  /* resolved with a source map */
};

struct js_trace {
    struct js_entry *frames;
    size_t count;
};

struct js_debug_id { /* an element of the request's `modules`: the debug id of a script */
    struct sl_str code_file;
    struct sl_debug_id id; /* nil if it was malformed */
};

enum js_problem { /* in the order in which answers list them */
                  JS_INVALID_LOCATION,
                  JS_MISSING_SOURCE_CONTENT,
                  JS_MISSING_SOURCE,
                  JS_MALFORMED_SOURCEMAP,
                  JS_MISSING_SOURCEMAP,
                  JS_SCRAPING_DISABLED,
};

struct js_error { /* an element of the answer's `errors` */
    struct sl_str abs_path;
    enum js_problem problem;
    struct sl_opt_u64 line, column;  /* JS_INVALID_LOCATION */
    struct sl_str source, sourcemap; /* JS_MISSING_SOURCE_CONTENT; JS_MALFORMED_SOURCEMAP has `sourcemap` alone */
};

struct js_reference {  /* a script's reference to its source map */
    struct sl_str map; /* URL of the map; data NULL: none, or it is embedded in the script's comment */
    bool is_embedded;  /* the map is a data URL: `map`, or the one in the script's comment */
    bool has_id;
    struct sl_debug_id id;
};

struct js_module { /* a script named by frames */
    struct js_request *request;
    struct js_module *next; /* in js_request.modules */
    struct sl_str abs_path;
    bool has_id; /* the request gives its debug id */
    struct sl_debug_id id;
    bool wanted;                    /* a frame with a line number names it */
    const struct js_file *minified; /* the script; NULL: not wanted */
    struct js_reference reference;
    bool has_map;              /* the script refers to a map or has a debug id */
    bool embedded;             /* the map is embedded in the script */
    const struct js_file *map; /* NULL: no map, or an embedded one */
    enum sl_code code;         /* result of getting the map, if has_map; SL_OK otherwise */
    struct sl_str label;       /* URL or name of the map, against which the source paths in it are resolved */
    struct sl_str origin;      /* origin of the map, JSON */
    /* Requests of texts: why the map is malformed; data NULL: it is not, or another module has the text already. */
    struct sl_str problem;
    enum artifact_match match;
    struct cache_item *item; /* the look-up table made of the map (a reference); NULL unless SL_OK */
    /* The lines around line `context_line` of the script (0 = none yet): most minified scripts are one long line, so that most
     * frames have the same. */
    uint64_t context_line;
    bool has_context; /* the script has that line */
    struct sl_context context;
};

struct js_request {
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str platform, scope, release, dist;
    struct source source; /* of artifacts; id.data NULL: none */
    struct request_files files;
    struct scraping scraping;
    enum sl_opt_bool allow_scraping, apply_source_context;
    bool callee_first; /* traces begin with the innermost frame */
    bool is_of_text;   /* frames are struct js_text_frame; frames of the answer have the `index` of the one sent */
    bool skips_answer; /* no JSON is written, the caller reads `results` */
    struct js_trace *raw, *results; /* as sent; after resolving. Both have trace_count elements */
    struct js_debug_id *ids;
    size_t trace_count, id_count, frame_count;
    struct js_finder finder;
    struct js_module *modules; /* linked list */
    struct sl_map modules_by_path;
    struct js_error *errors;
    struct js_missing_source *wants; /* sources that still have to be looked up */
    size_t error_count, error_capacity, want_count, want_capacity;
    struct answer_limit *limit; /* size limit of the answer; the writer updates it, too */
    bool out_of_memory;
    const struct local_request *local; /* the command's request; NULL: an HTTP request */
};

/* ---- read.c ---- */

/* Reads the body into the request, which keeps views of it. False: `failure` says why. */
bool js_read(struct js_request *request, struct sl_str body, struct json_failure *failure);

/* ---- find.c ---- */

const char *js_type_name(enum js_type type); /* the name in bundles' manifests */

/* Sets found[i] to the file of keys[i]. Keys that the request looked up before are not looked up again, the others are looked up
 * concurrently. False when the request cannot go on: finder.stopped says why. */
bool js_find(struct js_request *request, const struct js_key *keys, size_t count,
             const struct js_file **found) SL_SUSPENDS;

/* Calls `run` for every item, several concurrently. False when the request cannot go on (finder.stopped); some items may then be
 * skipped. */
bool js_for_each(struct js_request *request, void (*run)(void *item), void **items, size_t count) SL_SUSPENDS;
void js_finder_end(struct js_finder *finder); /* releases all files and bundles, and empties the finder */

/* ---- scrape.c ---- */

/* Downloads the file if its path is a URL that the request's scraping rules allow. Sets file->code, `item` and `attempt`. */
void js_scrape(struct js_request *request, struct js_file *file) SL_SUSPENDS;

/* ---- modules.c ---- */

/* Makes a module for each script that frames name, and allocates the results. Fetches nothing. False when out of memory. */
bool js_prepare(struct js_request *request);

/* Fetches all scripts whose frames have a line, concurrently, then their maps. False when the request cannot go on (finder.stopped). */
bool js_fetch_modules(struct js_request *request) SL_SUSPENDS;
void js_release_modules(struct js_request *request); /* releases their look-up tables, and forgets the modules */

/* ---- frames.c: runs on the pool ---- */

/* Returns the struct js_text_frame that `frame` is a member of; NULL if the request's frames were not read from a text. */
struct js_text_frame *js_text_frame(const struct js_request *request, const struct js_frame *frame);
/* Returns the frame into which this one was inlined and which follows it; NULL if there is none. */
const struct js_frame *js_next_call(const struct js_request *request, const struct js_frame *frame);
/* True if the frame is not written into the answer: the source map hides its function. */
bool js_is_left_out(const struct js_request *request, const struct js_frame *frame);

struct js_missing_source { /* a frame whose source is not in its map */
    struct js_frame *frame;
    struct sl_str abs_path, path, sourcemap; /* abs_path of the frame as sent; path of the source; name of the map */
    const struct js_file *file;              /* set by the look-up */
};

/* Resolves the frames into `results`. Sources that their map does not contain are added to `wants`, to be looked up. */
void js_resolve(struct js_request *request);
/* Adds the source lines to the frames in `wants`, once their files were looked up. */
void js_add_sources(struct js_request *request);

/* ---- write.c ---- */
void js_write(const struct js_request *request, struct sl_buf *out); /* the JSON answer */
/* Returns the file's origin as JSON ({"bundled":[...]} etc.), in the arena; data NULL when out of memory. */
struct sl_str js_origin_json(const struct js_file *file, struct sl_arena *arena);
