/* Native symbolication: what was asked (read.c, or filled in by another API), the modules and their symbol files (modules.c,
 * uploads in symbfiles.c), what came out frame by frame (frames.c), its names (names.c), the source around it (sources.c), and
 * the answer (write.c); run.c takes a request through the steps. All of it lives in one arena; texts of the request are views
 * of its body, which lies there too, and have no NUL. */
#pragma once

#include "api/jobs/jobs.h"
#include "api/answer_limit.h"
#include "api/name_memo.h"
#include "api/scraping.h"
#include "base/map.h"
#include "base/ranges.h"
#include "config/config.h"
#include "search/search.h"
#include "symbfile_store/symbfile_store.h"
#include "source/context.h"

#define NATIVE_NO_MODULE UINT32_MAX

struct own_file;

/* Texts of a frame that may have been sent. Those of the last three are JSON as it was written. */
enum native_text {
    SENT_PLATFORM,
    SENT_PACKAGE,
    SENT_LANGUAGE,
    SENT_SYMBOL,
    SENT_FUNCTION,
    SENT_FILENAME,
    SENT_ABS_PATH,
    SENT_CONTEXT_LINE,
    SENT_SOURCE_LINK,
    SENT_VARS,
    SENT_PRE_CONTEXT,
    SENT_POST_CONTEXT,
    SENT_TEXTS
};

enum native_trust {
    TRUST_NONE,
    TRUST_SCAN,
    TRUST_CFI_SCAN,
    TRUST_FP,
    TRUST_CFI,
    TRUST_PREWALKED,
    TRUST_CONTEXT,
    TRUSTS,
};

/* As sent. There may be a million of them, so it is small: of the texts only those are there that were sent. */
struct native_frame {
    uint64_t address;
    uint64_t symbol_address, function_id; /* when set */
    const struct sl_str *texts;           /* of those in `has_text`, in its order */
    uint32_t module;                      /* of "rel:<N>", "file:<N>"; NATIVE_NO_MODULE: the address is absolute */
    uint32_t line;                        /* when set */
    uint16_t has_text;                    /* a bit for each enum native_text */
    uint8_t trust : 3;                    /* enum native_trust */
    uint8_t adjust : 2, in_app : 2;       /* enum sl_opt_bool */
    bool has_symbol_address : 1, has_function_id : 1, has_line : 1;
    bool undefined : 1; /* set by native_match: its module has no address, so none is inside of it */
    bool of_file : 1;   /* "file:<N>": the address is one of the file itself, as its segments have them, and exact */
    bool is_exact : 1;  /* as `adjust` false, but not told again */
    /* set by native_match */
    uint32_t module_index; /* in the order of the request; NATIVE_NO_MODULE: none holds the address */
    uint64_t relative;     /* the address inside of the module */
};

/* A text of the frame; data NULL when it was not sent. */
static inline struct sl_str native_text(const struct native_frame *frame, enum native_text text)
{
    unsigned before = frame->has_text & ((1u << text) - 1);
    return frame->has_text >> text & 1 ? frame->texts[__builtin_popcount(before)] : (struct sl_str){NULL, 0};
}

struct native_register {
    struct sl_str name;
    uint64_t value;
};

struct native_trace {
    uint64_t thread_id; /* when set */
    struct sl_str thread_name;
    struct native_register *registers; /* sorted by name */
    struct native_frame *frames;       /* callee first */
    uint32_t frame_count;
    uint32_t register_count : 29;
    uint32_t is_requesting : 2; /* enum sl_opt_bool */
    uint32_t has_thread_id : 1;
};

struct native_upload { /* what profilers send: uploaded symbols are asked first */
    bool has_file_id, bad_file_id;
    struct sl_file_id file_id;
    struct sl_opt_u64 image_vmaddr; /* what the image's start is in the addresses of its program headers */
};

struct native_found { /* what the look-ups of a module came to */
    struct kinds_found lookup;
    struct symbfile_lookup symbfile; /* answers instead of `lookup` if native_is_upload */
    struct source_lookup sources;    /* when wanted */
    enum sl_code stores;             /* what Mozilla's symbol stores came to, when they were asked */
    bool had_another_id;             /* they have a file of that name, but it is another one */
    bool is_cold;                    /* set with the place of work: pages of the tables may not be in memory */
    struct mozilla_work work;        /* of them */
};

struct native_unwind { /* what the look-up for walking stacks came to */
    const char *status;
    struct sl_features features;
    struct candidate_list candidates;
    struct sl_str debug_file; /* as it is told, when another name was looked up; data NULL: as of the module */
};

/* As sent. There may be far more than frames refer to, so it is small: what few have lies elsewhere. */
struct native_module {
    uint64_t image_address, image_size;
    const struct object_id *id;
    const struct native_upload *upload;
    struct native_found *found; /* when referenced; set by native_find_symbols */
    bool has_image_size : 1;
    bool referenced : 1;                     /* by a frame that was sent */
    bool source_wanted : 1, has_sources : 1; /* wanted: by a resulting frame */
};

struct native_options {
    enum sl_opt_bool dif_candidates, apply_source_context, extract_variables;
    enum sl_opt_bool
        all_frames; /* of minidumps: stacks are walked as the command does, whatever minidump.compat says */
    enum sl_opt_bool configured_sources; /* the sources of the request are asked behind those of the configuration */
    bool caller_first;
};

enum native_status {
    FRAME_SYMBOLICATED,
    FRAME_MISSING_SYMBOL,
    FRAME_UNKNOWN_IMAGE,
    FRAME_MISSING,
    FRAME_MALFORMED,
    FRAME_STATUSES
};

/* Where a resulting frame's ids are looked up. */
enum native_table {
    TABLE_SYMCACHE,
    TABLE_RANGES, /* of uploaded ranges, return pads */
    TABLE_RANGES_PADS,
    TABLE_RETURNPADS, /* the ranges, pads that were uploaded as return pads */
    TABLE_RETURNPADS_PADS,
};

struct native_names {
    struct sl_str symbol, function;
};

struct native_context { /* lines of source, trimmed */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

struct native_source {                    /* what was found for a frame's path */
    struct sl_str link;                   /* data NULL: none */
    const struct native_context *context; /* NULL: none, what was sent stays */
};

struct native_result_frame {
    const struct native_frame *sent;
    const struct native_names *names;   /* NULL: those that were sent */
    const struct native_source *source; /* NULL: nothing is known of its path */
    uint64_t address, symbol_address;
    uint32_t index;              /* original_index */
    uint32_t module;             /* in the order of the request; NATIVE_NO_MODULE = none matches */
    struct sl_location location; /* when symbolicated; `file` of a .NET frame is a document of its module's table */
    uint8_t status;              /* enum native_status */
    uint8_t language;            /* enum sl_language */
    uint8_t table;               /* enum native_table: what `location` refers to */
    bool outermost;              /* of its expansion: has a symbol address */
    bool is_dotnet;              /* symbolicated: all that was sent stays but for language, file and line */
};

struct native_result_trace {
    struct native_result_frame *frames;
    size_t count;
};

struct native_counts { /* of resulting frames and traces */
    size_t statuses[FRAME_STATUSES], frames, scanned_frames;
    size_t missed[TRUSTS]; /* frames without a symbol */
    size_t short_traces, truncated_traces, bad_traces;
};

struct native_request;
/* Writes members of the answer into the open object. Pure: loop or pool. */
typedef void native_writer(const struct native_request *request, struct sl_json_writer *w, const void *arg);

struct native_request {
    struct sl_arena *arena;
    const char *origin; /* what it came out of, for metrics; NULL: for those of somebody else, and nothing is counted */
    struct sl_str platform, scope;
    struct sl_opt_u64 signal;
    const struct source *sources;
    uint64_t sources_number; /* source_list_number; 0 = none */
    bool
        asks_store; /* the store of Mozilla's symbol server comes behind them whatever mozilla.store.serve_native says */
    struct source *with_store; /* native_where: the sources and that store; NULL = not made */
    size_t with_store_count;
    size_t source_count;
    struct native_options options;
    struct own_objects *own;                                 /* files that came with it; NULL: none */
    bool srcsrv_frames, srcsrv_links, inlines_without_lines; /* as configured */
    const struct config *stores; /* its Mozilla's symbol stores are asked before the sources; NULL = they are not */
    bool tells_work;             /* of them */
    bool tells_line_starts;      /* frames say at which address their line begins */
    bool nests_modules; /* modules may overlap: an address belongs to the smallest that holds it and has an id */
    bool maps_at_zero;  /* absolute addresses may be in a module whose address is 0: of commands */
    bool nearest;       /* addresses without a symbol are those of the function in front of them */
    struct scraping scraping;
    struct native_trace *traces;
    size_t trace_count, frame_count; /* frames of all of them */
    struct native_module *modules;   /* in the order of the request */
    size_t module_count;
    uint32_t *by_address;           /* their indices, by image address */
    struct sl_range_map module_map; /* when nests_modules: owners are places in `by_address` */
    /* filled by the steps */
    struct native_result_trace *results; /* one per trace */
    size_t result_count;                 /* frames of all of them */
    struct native_counts counts;
    struct native_link *links;  /* sources that are to be downloaded */
    size_t variables;           /* how many of them the answer tells */
    struct answer_limit *limit; /* writers count in it too */
    bool out_of_memory;
    native_writer *writer; /* of the answer; NULL: it has a form of its own */
    const void *writer_arg;
    job_step *then; /* done behind the names, where these are made, if no source context is wanted. NULL: nothing */
    const struct native_unwind **unwind; /* by module; NULL: no stacks were walked */
};

/* ---- read.c ---- */

/* Sources, scraping and links as configured, as long as the request does not say otherwise. */
void native_configure(struct native_request *request, const struct config *config);

/* Reads the body of POST /symbolicate, which must outlive the request, in one pass; memory and `failure` as those of
 * json_document. The configuration counts as in native_configure. */
bool native_read(struct native_request *request, struct sl_str body, const struct config *config,
                 struct json_failure *failure);

/* Adds files that came with the request; their texts stay the caller's. False when out of memory. Pure. */
bool native_add_own(struct native_request *request, const struct own_file *files, size_t count);

/* Adds the sources of the configuration if the options say so. False when out of memory. */
bool native_add_configured(struct native_request *request, const struct config *config);

/* The member "options" of requests, into struct native_options. A sl_field_read. */
bool native_read_options(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* ---- run.c: as kinds of jobs have it, whose requests begin with a native one ---- */

/* Of struct job_kind: arena, limit and scope are the job's. */
void native_open(struct job *job, void *request);

/* Makes ready what was read or filled in: to be done once, before it runs. False when out of memory. Pure: loop or pool. */
bool native_prepare(struct native_request *request);

/* Takes the request from its frames to results with names, and sources around them if they are wanted. A job_step. */
enum sl_code native_run(struct job *job, void *request, struct sl_error *error) SL_SUSPENDS;

/* The place of work that looks into the request's tables, and is about the frames that came out: the loop when these and the
 * modules are few and the pages of the tables are in memory, else the pool. */
unsigned native_place_of_results(void *request);
/* Behind such work: on the pool it has read pages that were not in memory, so the loop may find them there now. */
void native_look_at_pages(const struct native_request *request);

/* Of struct job_kind: writes {"status":"completed"} with what the request's writer adds as the answer. */
enum sl_code native_write_answer(struct job *job, void *request, struct sl_error *error);
uint64_t native_answer_memory(const void *request);
unsigned native_place_of_answer(void *request);

/* Of struct job_kind. */
bool native_is_allowed(struct http_exchange *x, const void *request);
void native_reset(void *request);
void native_release(void *request);

/* ---- modules.c ---- */

/* Sorts the modules and fills in sizes that were not sent. False when out of memory. */
bool native_sort_modules(struct native_request *request);

/* Finds the module of every frame; the modules must be sorted. Pure: loop or pool. */
void native_match(struct native_request *request);

/* Where the request's modules are looked for. */
struct kinds_search native_where(struct native_request *request);

/* Adds the build id of an ELF file of which only the debug id is known, and a code file, when a source knows it. */
bool native_complete_id(const struct kinds_search *where, struct object_id *id) SL_SUSPENDS;

/* Finds the symbol files of all modules that frames refer to. False when cancelled, or out of memory (`out_of_memory`). */
bool native_find_symbols(struct native_request *request) SL_SUSPENDS;

/* The look-ups for source context of the modules that resulting frames refer to. False when cancelled. */
bool native_find_sources(struct native_request *request) SL_SUSPENDS;

static inline bool native_is_upload(const struct native_module *module)
{
    return module->found->symbfile.indexes[0] || module->found->symbfile.indexes[1];
}

const struct sl_symcache *native_table(const struct native_module *module, enum native_table table);

/* The address that entries of the table of the module (found) are relative to. */
uint64_t native_table_base(const struct native_module *module);
const char *native_lookup_status(enum sl_code code);
const char *native_module_status(const struct native_module *module);

/* ---- needs.c ---- */

struct module_needs {            /* of the walks over the stacks of one crash */
    struct kinds_search where;   /* its arena belongs to the loop thread as long as walks ask */
    const struct object_id *ids; /* the modules, as they are looked up */
    size_t count;
    struct module_need **first; /* private: by module; zero at first */
};

/* What the use makes of a module, for whoever walks over a stack and comes to it: looked for once, by the first of the
 * fibers that ask, which the others join. The answer is there until module_needs_release, when none of them may be left.
 * SL_CANCELLED of a fiber that is; SL_BUSY, which also those get who waited, and which is asked anew the next time; else as
 * kinds_find. */
const struct kinds_found *module_need(struct module_needs *needs, size_t module,
                                      const struct kinds_use *use) SL_SUSPENDS;
void module_needs_release(struct module_needs *needs);

/* ---- frames.c ---- */

/* The frames from this one on are left out, those of later traces too. */
void native_omit(struct native_request *request, size_t trace, size_t frame);

/* Frames to resulting frames, without names. Pure: loop or pool. */
void native_symbolicate(struct native_request *request, uint64_t max_frames);

/* When the names are known: removes the frame behind `_start`, and counts. Pure: loop or pool. */
void native_finish(struct native_request *request);

const char *native_frame_status(enum native_status status);
const char *native_trust_name(enum native_trust trust);

/* ---- count.c ---- */

/* Into the request's counts. Pure: loop or pool. */
void native_count_results(struct native_request *request);
/* As metrics: what the request had, and what it came to. Loop thread. */
void native_count(const struct native_request *request);

/* ---- symbfiles.c ---- */

struct native_hit { /* what answers an address */
    enum native_table table;
    size_t count; /* of the chain; 0 = no symbol */
    bool has_symbol_address;
    uint64_t address, symbol_address; /* relative to the module */
};

/* Looks `relative` up in the module's uploads: of callers (`caller`) the return pads first, then the ranges at `adjusted`,
 * which lies inside of the call. */
struct native_hit native_symbfile_lookup(const struct native_module *module, uint64_t relative, uint64_t adjusted,
                                         bool caller, struct sl_location *chain, size_t capacity);

/* ---- names.c ---- */

/* Gives the resulting frames their names: on the loop, with those of the memo, of which the pool makes what is not there; or all at
 * once, without memo: pure, and on the stack of a pool thread. */
enum sl_code native_name(struct native_request *request, struct name_memo *memo, struct sl_error *error) SL_SUSPENDS;
void native_name_at_once(struct native_request *request);

/* ---- sources.c ---- */

/* The path and line of a resulting frame, the path in `scratch` or sent; false when it lacks one. */
bool native_frame_place(const struct native_request *request, const struct native_result_frame *frame,
                        struct sl_buf *scratch, struct sl_str *path, uint64_t *line);

/* Where the file of a resulting frame is kept, by the symcache `*table`; false when nothing is known of it. */
bool native_frame_origin(const struct native_request *request, const struct native_result_frame *frame,
                         const struct sl_symcache **table, struct sl_symcache_origin *origin);

/* Source context out of the objects that native_find_sources found; what only has a link is left for
 * native_download_sources. Pure: loop or pool. */
void native_apply_sources(struct native_request *request);

enum sl_code native_download_sources(struct native_request *request, struct sl_error *error) SL_SUSPENDS;

/* ---- write.c ---- */

/* How many variables the answer tells. */
size_t native_count_variables(const struct native_request *request);

/* The members "stacktraces" and "modules", with "signal" before them; `unused` is NULL. A native_writer. */
void native_write(const struct native_request *request, struct sl_json_writer *w, const void *unused);
