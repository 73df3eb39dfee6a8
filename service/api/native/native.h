/* Native symbolication: the request (read.c, or filled in by another API), its modules and symbol files (modules.c, uploads in
 * symbfiles.c), resulting frames (frames.c), names (names.c), source context (sources.c), the answer (write.c); run.c runs the
 * steps. Everything lives in one arena; texts of the request are views of its body, which is in the arena too, and contain no
 * NUL. */
#pragma once

#include "api/jobs/jobs.h"
#include "api/answer_limit.h"
#include "api/form_files.h"
#include "api/name_cache.h"
#include "api/scraping.h"
#include "base/map.h"
#include "base/ranges.h"
#include "config/config.h"
#include "search/search.h"
#include "symbfile_store/symbfile_store.h"
#include "source/context.h"

#define NATIVE_NO_MODULE UINT32_MAX

struct request_file;

/* Optional texts of a frame as sent. The last three are raw JSON. */
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

/* A frame as sent. There may be a million, so it is small: only the texts that were sent are stored. */
struct native_frame {
    uint64_t address;
    uint64_t symbol_address, function_id; /* when set */
    const struct sl_str *texts;           /* one for each bit of `has_text`, in order */
    uint32_t module;                      /* N of "rel:<N>" or "file:<N>"; NATIVE_NO_MODULE: the address is absolute */
    uint32_t line;                        /* when set */
    uint16_t has_text;                    /* one bit per enum native_text */
    uint8_t trust : 3;                    /* enum native_trust */
    uint8_t adjust : 2, in_app : 2;       /* enum sl_opt_bool */
    bool has_symbol_address : 1, has_function_id : 1, has_line : 1;
    /* set by native_assign_modules: its module has no address, so the frame has no relative address */
    bool undefined : 1;
    bool of_file : 1;  /* "file:<N>": an address of the file's own segments, and exact (no return address) */
    bool is_exact : 1; /* treated as `adjust` = false, but not echoed in the answer */
    /* set by native_assign_modules */
    uint32_t module_index; /* in request order; NATIVE_NO_MODULE: no module holds the address */
    uint64_t relative;     /* address relative to the module */
};

/* Returns a text of the frame; data NULL if it was not sent. `texts` has only those that were sent: its index is the number
 * of lower bits in `has_text`. */
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

struct native_upload { /* sent by profilers: uploaded symbols are looked up first */
    bool has_file_id, bad_file_id;
    struct sl_file_id file_id;
    struct sl_opt_u64 image_vmaddr; /* virtual address of the image's start in its program headers */
};

struct native_lookups { /* results of a module's look-ups */
    struct search_result lookup;
    struct symbfile_lookup symbfile; /* used instead of `lookup` if native_has_uploaded_symbols */
    struct source_lookup sources;    /* when wanted */
    enum sl_code stores;             /* result of Mozilla's symbol stores, if they were queried */
    bool has_other_id;               /* they have a file of that name with another id */
    bool is_not_resident;            /* set with the place of work: pages of its tables may not be resident */
    struct mozilla_stats work;       /* statistics of the stores */
};

struct native_unwind { /* result of the look-up for stack walking */
    const char *status;
    struct sl_features features;
    struct candidate_list candidates;
    /* name in the answer, if the file was looked up by another name; data NULL: the module's */
    struct sl_str debug_file;
};

/* A module as sent. There may be far more of them than frames refer to, so it is small: rare members lie elsewhere. */
struct native_module {
    uint64_t image_address, image_size;
    const struct object_id *id;
    const struct native_upload *upload;
    struct native_lookups *found; /* set by native_find_symbols if referenced */
    bool has_image_size : 1;
    bool referenced : 1;                     /* by a frame as sent */
    bool guessed : 1;                        /* its ids were found by its name */
    bool source_wanted : 1, has_sources : 1; /* source_wanted: a resulting frame needs its source */
};

struct native_options {
    enum sl_opt_bool dif_candidates, apply_source_context, extract_variables;
    enum sl_opt_bool all_frames;         /* minidumps: walk stacks as the command does, ignoring minidump.compat */
    enum sl_opt_bool configured_sources; /* search the configured sources too, before those of the request */
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

/* The table that a resulting frame's ids refer to. */
enum native_table {
    TABLE_SYMCACHE,
    TABLE_RANGES,          /* ranges of functions, from the uploaded file of ranges */
    TABLE_RANGES_PADS,     /* return pads (addresses to which calls return), from the same file */
    TABLE_RETURNPADS,      /* ranges, from the uploaded file of return pads */
    TABLE_RETURNPADS_PADS, /* return pads, from the same file */
};

struct native_names {
    struct sl_str symbol, function;
};

struct native_context { /* source lines, trimmed */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

struct native_source {                    /* source of a frame's path */
    struct sl_str link;                   /* data NULL: none */
    const struct native_context *context; /* NULL: none; lines that were sent stay */
};

struct native_result_frame {
    const struct native_frame *sent;
    const struct native_names *names;   /* NULL: the names that were sent */
    const struct native_source *source; /* NULL: no source for its path */
    uint64_t address, symbol_address;
    uint32_t index;  /* original_index */
    uint32_t module; /* in request order; NATIVE_NO_MODULE = none */
    /* if symbolicated; `file` of a .NET frame indexes the documents of its module's table */
    struct sl_location location;
    uint8_t status;   /* enum native_status */
    uint8_t language; /* enum sl_language */
    uint8_t table;    /* enum native_table of `location` */
    bool outermost;   /* the function that is not inlined: has a symbol address */
    bool is_dotnet;   /* if symbolicated: keeps what was sent except language, file and line */
};

struct native_result_trace {
    struct native_result_frame *frames;
    size_t count;
};

struct native_counts { /* counts of resulting frames and traces */
    size_t statuses[FRAME_STATUSES], frames, scanned_frames;
    size_t missed[TRUSTS]; /* frames without a symbol */
    size_t short_traces, truncated_traces, bad_traces;
};

struct native_request;
/* Writes members into the open object of the answer. Pure: loop or pool. */
typedef void native_writer(const struct native_request *request, struct sl_json_writer *w, const void *arg);

struct native_request {
    struct sl_arena *arena;
    const char *origin; /* origin of the request, as a metric label; NULL: not counted (another API counts it) */
    struct sl_str platform, scope;
    struct sl_opt_u64 signal;
    const struct source *sources;
    uint64_t sources_number; /* source_list_number; 0 = none */
    /* append the store of Mozilla's symbol server, even without mozilla.store.serve_native */
    bool includes_symbol_store;
    struct source *with_store; /* set by native_search_scope: the sources and that store; NULL = not made yet */
    size_t with_store_count;
    size_t source_count;
    struct native_options options;
    const struct request_file *files; /* sent with the request; NULL: none */
    size_t file_count;
    struct supplied_objects *own; /* what native_read_files found in them; NULL: none, or not read yet */
    bool srcsrv_frames, srcsrv_links, inlines_without_lines; /* as configured */
    /* configuration with Mozilla's symbol stores, which are queried before the sources; NULL = not queried */
    const struct config *stores;
    bool reports_work;        /* answers report what the stores did */
    bool reports_line_starts; /* frames have `line_addr`, the address where their line begins */
    bool wants_columns;       /* tables have the columns of lines; then they have no variables */
    bool nests_modules; /* modules may overlap: an address belongs to the smallest that contains it and has an id */
    bool maps_at_zero;  /* absolute addresses may belong to a module with address 0 (commands) */
    bool nearest;       /* addresses outside of every symbol get the function before them */
    struct scraping scraping;
    struct native_trace *traces;
    size_t trace_count, frame_count; /* frames of all traces */
    struct native_module *modules;   /* in request order */
    size_t module_count;
    uint32_t *by_address;           /* module indices, sorted by image address */
    struct sl_range_map module_map; /* if nests_modules: owners are indexes of `by_address` */
    /* filled by the steps */
    struct native_result_trace *results; /* one per trace */
    size_t result_count;                 /* frames of all traces */
    struct native_counts counts;
    struct native_source_link *links; /* sources to download */
    size_t variables;                 /* number of variables in the answer */
    struct answer_limit *limit;       /* also updated by writers */
    bool out_of_memory;
    native_writer *writer; /* writes the answer; NULL: the API writes its own format */
    const void *writer_arg;
    /* optional: runs when the tables of the modules were found, before frames are looked up in them; may change addresses of
     * frames. Pure, on the pool. */
    job_step *locate;
    /* optional continuation after the names, run where these are made; only for requests without source context */
    job_step *then;
    const struct native_unwind **unwind; /* one per module; NULL: no stacks were walked */
};

/* ---- read.c ---- */

/* Sets sources, scraping and source links from the configuration; the request may override them. */
void native_configure(struct native_request *request, const struct config *config);

/* Reads the body of POST /symbolicate, which must outlive the request, in one pass; arena use and `failure` as in
 * json_document. Calls native_configure first. */
bool native_read(struct native_request *request, struct sl_str body, const struct config *config,
                 struct json_failure *failure);

/* Adds the configured sources if the options ask for them. False when out of memory. */
bool native_add_configured(struct native_request *request, const struct config *config);

/* Reads the member "options" of requests into struct native_options. A sl_field_read. */
bool native_read_options(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* ---- run.c: for job kinds whose requests begin with struct native_request ---- */

/* Reads the files that were sent with the request (`files`), once. native_run does, too; call this before if stacks are walked.
 * SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code native_read_files(struct native_request *request, struct sl_error *error) SL_SUSPENDS;
/* Adds one more file, whose contents the caller keeps; call native_read_files before. Outside of fibers it does not suspend. Same codes. */
enum sl_code native_add_file(struct native_request *request, const struct request_file *file,
                             struct sl_error *error) SL_SUSPENDS;

/* Member of struct job_kind: arena, limit and scope are the job's. */
void native_open(struct job *job, void *request);

/* Prepares the request after it was read or filled in; once, before native_run. False when out of memory. Pure: loop or pool. */
bool native_prepare(struct native_request *request);

/* Symbolicates the frames: results, names, and source context if wanted. A job_step. */
enum sl_code native_run(struct job *job, void *request, struct sl_error *error) SL_SUSPENDS;

/* Returns where job_work should run a step that reads the tables and handles the resulting frames: on the loop if frames and
 * modules are few and the tables are in memory, otherwise on the pool. */
unsigned native_results_executor(void *request);
/* Call after such a step: on the pool it has read pages that were not resident; this checks them, so that the loop may use
 * them from now on. */
void native_check_residency(const struct native_request *request);

/* Members of struct job_kind: write {"status":"completed"} and what the request's writer adds. */
enum sl_code native_write_answer(struct job *job, void *request, struct sl_error *error);
uint64_t native_answer_memory(const void *request);
unsigned native_answer_executor(void *request);

/* Members of struct job_kind. */
bool native_is_allowed(struct http_exchange *x, const void *request);
void native_reset(void *request);
void native_release(void *request);

/* ---- modules.c ---- */

/* Sorts the modules and fills in sizes that were not sent. False when out of memory. */
bool native_sort_modules(struct native_request *request);

/* Sets module_index and relative of every frame; the modules must be sorted. Pure: loop or pool. */
void native_assign_modules(struct native_request *request);

/* Returns the sources to search for the modules of the request, with the symbol store if that belongs to them. */
struct search_scope native_search_scope(struct native_request *request);

/* For an ELF module with only a debug id: adds the build id (and a code file name) if a source has it. SL_NOT_FOUND: not
 * changed, as no source has it; SL_BUSY, SL_CANCELLED: not changed, as memory or descriptors were short, or the job was cancelled. */
enum sl_code native_add_build_id(const struct search_scope *where, struct object_id *id) SL_SUSPENDS;

/* Finds the symbol files of all modules that frames refer to. False when cancelled, or out of memory (`out_of_memory`). */
bool native_find_symbols(struct native_request *request) SL_SUSPENDS;

/* Looks up sources for the modules of resulting frames. False when cancelled; lack of memory sets `out_of_memory`. */
bool native_find_sources(struct native_request *request) SL_SUSPENDS;

static inline bool native_has_uploaded_symbols(const struct native_module *module)
{
    return module->found->symbfile.indexes[0] || module->found->symbfile.indexes[1];
}

const struct sl_symcache *native_table(const struct native_module *module, enum native_table table);

/* Returns the address to which entries of the (found) module's table are relative. */
uint64_t native_table_base(const struct native_module *module);
const char *native_lookup_status(enum sl_code code);
const char *native_module_status(const struct native_module *module);

/* ---- needs.c ---- */

struct module_needs {            /* look-ups for the stack walks of one crash */
    struct search_scope where;   /* its arena belongs to the loop thread while walks wait */
    const struct object_id *ids; /* ids of the modules */
    size_t count;
    struct module_need **first; /* private: one list per module; zero at first */
};

/* Looks up a module for a stack walk: once, for the first fiber that asks; the others join that look-up. The result is
 * valid until module_needs_release, which must come after the last of these fibers. SL_CANCELLED when the calling fiber is
 * cancelled. SL_BUSY is also returned to the fibers that joined, but not cached: the next call looks up again. Other
 * results are those of search_find. */
const struct search_result *module_needs_get(struct module_needs *needs, size_t module,
                                             const struct search_target *use) SL_SUSPENDS;
/* Returns the result if it is known or the cache of finished searches has it, else NULL. Never suspends. */
const struct search_result *module_needs_peek(struct module_needs *needs, size_t module,
                                              const struct search_target *use);
void module_needs_release(struct module_needs *needs);

/* ---- frames.c ---- */

/* Leaves out the frames from this one on, and all later traces. */
void native_drop_frames(struct native_request *request, size_t trace, size_t frame);

/* Makes the resulting frames, without names. Pure: loop or pool. */
void native_symbolicate(struct native_request *request, uint64_t max_frames);

/* Call after the names are set: removes a bogus caller of `_start`, and counts. Pure: loop or pool. */
void native_finish(struct native_request *request);

const char *native_frame_status(enum native_status status);
const char *native_trust_name(enum native_trust trust);

/* ---- count.c ---- */

/* Fills in the request's counts. Pure: loop or pool. */
void native_count_results(struct native_request *request);
/* Updates the metrics with the request's contents and results. Loop thread. */
void native_count(const struct native_request *request);

/* ---- symbfiles.c ---- */

struct native_lookup_result { /* result of a look-up in uploads */
    enum native_table table;
    size_t count; /* frames in the chain; 0 = no symbol */
    bool has_symbol_address;
    uint64_t address, symbol_address; /* relative to the module */
};

/* Looks up `relative` in the module's uploads: for return addresses (`caller`) first in the return pads, then in the ranges at
 * `adjusted`, which lies inside the call. */
struct native_lookup_result native_symbfile_lookup(const struct native_module *module, uint64_t relative,
                                                   uint64_t adjusted, bool caller, struct sl_location *chain,
                                                   size_t capacity);

/* ---- names.c ---- */

/* Name the resulting frames. native_name runs on the loop and uses a name cache; names that are not cached are demangled
 * on the pool. native_name_at_once demangles all of them, without a cache; pure, on a pool thread. */
enum sl_code native_name(struct native_request *request, struct name_cache *name_cache,
                         struct sl_error *error) SL_SUSPENDS;
void native_name_at_once(struct native_request *request);

/* ---- sources.c ---- */

/* Sets path and line of a resulting frame; the path is in `scratch` or as sent. False if one of them is not known. */
bool native_frame_location(const struct native_request *request, const struct native_result_frame *frame,
                           struct sl_buf *scratch, struct sl_str *path, uint64_t *line);

/* Sets the origin of a resulting frame's file in version control, from the symcache `*table`. False if it is not known; then
 * both are not set. */
bool native_frame_origin(const struct native_request *request, const struct native_result_frame *frame,
                         const struct sl_symcache **table, struct sl_symcache_origin *origin);

/* Adds source context from the objects that native_find_sources found; sources that only have a link are left to
 * native_download_sources. Pure: loop or pool. */
void native_apply_sources(struct native_request *request);

enum sl_code native_download_sources(struct native_request *request, struct sl_error *error) SL_SUSPENDS;

/* ---- write.c ---- */

/* Returns the number of variables in the answer. */
size_t native_count_variables(const struct native_request *request);

/* Writes "signal", "stacktraces" and "modules"; `unused` is NULL. A native_writer. */
void native_write(const struct native_request *request, struct sl_json_writer *w, const void *unused);
