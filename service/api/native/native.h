/* Native symbolication: reads the request (read.c; other APIs fill it in), finds modules and their symbol files (modules.c, uploaded
 * files in symbfiles.c), makes the resulting frames (frames.c), names them (names.c), adds source lines (sources.c), writes the
 * answer (write.c); run.c runs the steps. All structs lie in one arena; texts of the request are views of its body, which is in the
 * arena too, and contain no NUL. */
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

#define NATIVE_NO_MODULE UINT32_MAX /* index of no module */

struct request_file;

/* The texts that a request may have for a frame. The last three are kept as raw JSON. */
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
    SENT_TEXTS /* number of them */
};

/* How the client's unwinder found a frame. */
enum native_trust {
    TRUST_NONE,
    TRUST_SCAN,
    TRUST_CFI_SCAN,
    TRUST_FP,
    TRUST_CFI,
    TRUST_PREWALKED,
    TRUST_CONTEXT,
    TRUSTS, /* number of them */
};

/* A frame as sent. Small, as there may be a million: only the texts that were sent are stored. */
struct native_frame {
    uint64_t address;
    uint64_t symbol_address, function_id; /* valid if has_symbol_address, has_function_id */
    const struct sl_str *texts;           /* the texts that were sent, one for each bit of `has_text`, in order */
    uint32_t module;                      /* N of "rel:<N>" or "file:<N>"; NATIVE_NO_MODULE: the address is absolute */
    uint32_t line;                        /* if has_line */
    uint16_t has_text;                    /* bit N: text N of enum native_text was sent */
    uint8_t trust : 3;                    /* enum native_trust */
    uint8_t adjust : 2, in_app : 2;       /* enum sl_opt_bool; adjust: the address is a return address */
    bool has_symbol_address : 1, has_function_id : 1, has_line : 1;
    /* set by native_assign_modules: its module was sent without an address, so `relative` is not one in the module */
    bool undefined : 1;
    bool of_file : 1;  /* "file:<N>": an address as linked in the file, of the instruction itself */
    bool is_exact : 1; /* the address is of the instruction itself, as if `adjust` were false; not in the answer */
    /* set by native_assign_modules */
    uint32_t module_index; /* index in native_request.modules; NATIVE_NO_MODULE: no module has the address */
    uint64_t relative;     /* address relative to the module */
};

/* Returns a text of the frame; data NULL if it was not sent. Only texts that were sent are stored: the index of one is the number of
 * bits set below its own in `has_text`. */
static inline struct sl_str native_text(const struct native_frame *frame, enum native_text text)
{
    unsigned before = frame->has_text & ((1u << text) - 1);
    return frame->has_text >> text & 1 ? frame->texts[__builtin_popcount(before)] : (struct sl_str){NULL, 0};
}

struct native_register { /* a CPU register, as sent */
    struct sl_str name;
    uint64_t value;
};

struct native_trace {   /* a stack trace as sent */
    uint64_t thread_id; /* if has_thread_id */
    struct sl_str thread_name;
    struct native_register *registers; /* sorted by name */
    struct native_frame *frames;       /* callee first */
    uint32_t frame_count;
    uint32_t register_count : 29;
    uint32_t is_requesting : 2; /* enum sl_opt_bool */
    uint32_t has_thread_id : 1;
};

struct native_upload { /* ids that profilers send, by which symbols uploaded for profilers are found */
    bool has_file_id, bad_file_id;
    struct sl_file_id file_id;
    struct sl_opt_u64 image_vmaddr; /* virtual address of the image's start in its program headers */
};

struct native_lookups { /* results of a module's look-ups */
    struct search_result lookup;
    struct symbfile_lookup symbfile; /* result in uploaded symbols; see native_has_uploaded_symbols */
    struct source_lookup sources;    /* source bundles and debug files, if source lines are wanted */
    enum sl_code stores;             /* result in Mozilla's symbol stores; also SL_OK if they were not asked */
    bool has_other_id;               /* a store has a file of that name with another debug id */
    bool is_not_resident;            /* pages of its tables may not be in memory; set by native_results_executor */
    struct mozilla_stats work;       /* what the look-up in Mozilla's stores did */
};

struct native_unwind {  /* result of the look-up of a module for unwinding */
    const char *status; /* the word for "unwind_status" in the answer */
    struct sl_features features;
    struct candidate_list candidates;
    /* debug file name in the answer, if the module was looked up by another name; data NULL: the one that was sent */
    struct sl_str debug_file;
};

/* A module as sent. There may be far more of them than frames refer to, so it is small: what only some have is in other structs. */
struct native_module {
    uint64_t image_address, image_size;
    const struct object_id *id;
    const struct native_upload *upload;
    struct native_lookups *found; /* set by native_find_symbols if `referenced`, otherwise NULL */
    bool has_image_size : 1;
    bool referenced : 1;                     /* some frame that was sent lies in it */
    bool guessed : 1;                        /* no id was sent, but found by the module's name */
    bool source_wanted : 1, has_sources : 1; /* some resulting frame lies in it; sources of it were found */
};

struct native_options {
    enum sl_opt_bool dif_candidates, apply_source_context, extract_variables;
    enum sl_opt_bool all_frames;         /* minidumps: walk stacks as the command does, whatever minidump.compat says */
    enum sl_opt_bool configured_sources; /* search the configured sources as well, before those of the request */
    bool caller_first;
};

/* What became of a frame: it was symbolicated; its module has no symbol for it; it lies in no module; the file of its module could not be
 * got; or that file is malformed. */
enum native_status {
    FRAME_SYMBOLICATED,
    FRAME_MISSING_SYMBOL,
    FRAME_UNKNOWN_IMAGE,
    FRAME_MISSING,
    FRAME_MALFORMED,
    FRAME_STATUSES /* number of them */
};

/* Which table of its module a resulting frame was found in. Uploaded symbols may consist of two files. */
enum native_table {
    TABLE_SYMCACHE,
    TABLE_RANGES,          /* file of ranges: address ranges of functions */
    TABLE_RANGES_PADS,     /* file of ranges: return pads (addresses to which calls return) */
    TABLE_RETURNPADS,      /* file of return pads: address ranges of functions */
    TABLE_RETURNPADS_PADS, /* file of return pads: return pads */
};

struct native_names {               /* names of a function */
    struct sl_str symbol, function; /* as in the symbol table; demangled, or the same text */
};

struct native_context { /* source lines; long ones are cut */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

struct native_source {                    /* the source found for a frame's path */
    struct sl_str link;                   /* URL of the file; data NULL: none */
    const struct native_context *context; /* NULL: no lines; the frame keeps those that were sent */
};

struct native_result_frame { /* a frame of the answer; inlined functions make several of one that was sent */
    const struct native_frame *sent;
    const struct native_names *names;   /* NULL: the names that were sent */
    const struct native_source *source; /* NULL: no source was found for its path */
    uint64_t address, symbol_address;
    uint32_t index;  /* index of `sent` in its trace: "original_index" in the answer */
    uint32_t module; /* index in native_request.modules; NATIVE_NO_MODULE = none */
    /* The members below, except `status`, are set if symbolicated. Of a .NET frame, location.file is the index of a document in its
     * module's table. */
    struct sl_location location;
    uint8_t status;   /* enum native_status */
    uint8_t language; /* enum sl_language */
    uint8_t table;    /* enum native_table of `location` */
    bool outermost;   /* it is the function that was not inlined, and symbol_address is known */
    bool is_dotnet;   /* .NET: only language, file and line are replaced, the rest stays as sent */
};

struct native_result_trace {
    struct native_result_frame *frames;
    size_t count;
};

struct native_counts { /* counts of resulting frames and traces */
    size_t statuses[FRAME_STATUSES], frames, scanned_frames;
    size_t missed[TRUSTS]; /* frames that were not symbolicated, by enum native_trust */
    size_t short_traces, truncated_traces, bad_traces;
};

struct native_request;
/* Writes members into the answer, whose JSON object is open. Runs on the loop or the pool. */
typedef void native_writer(const struct native_request *request, struct sl_json_writer *w, const void *arg);

struct native_request {
    struct sl_arena *arena;
    const char *origin; /* who sent it, as a metric label; NULL: not counted here, as another API counts it */
    struct sl_str platform, scope;
    struct sl_opt_u64 signal;
    const struct source *sources;
    uint64_t sources_number; /* source_list_number of `sources`; 0: none, so searches are not cached */
    /* search Mozilla's symbol store as well, even without mozilla.store.serve_native */
    bool includes_symbol_store;
    struct source *with_store; /* set by native_search_scope: the sources and this service's stores; NULL = not yet */
    size_t with_store_count;
    size_t source_count;
    struct native_options options;
    const struct request_file *files; /* sent with the request; NULL: none */
    size_t file_count;
    struct supplied_objects *own; /* objects that native_read_files found in `files`; NULL: none, or not read yet */
    bool srcsrv_frames, srcsrv_links, inlines_without_lines; /* as configured */
    /* configuration of Mozilla's symbol stores, which are asked before the sources; NULL = not asked */
    const struct config *stores;
    bool reports_work;        /* count what look-ups in Mozilla's stores did (struct mozilla_stats) */
    bool reports_line_starts; /* frames have `line_addr`, the address where their line begins */
    bool wants_columns;       /* use tables that have columns besides lines; those have no variables */
    bool nests_modules;       /* modules may overlap: an address belongs to the smallest one around it that has an id */
    bool maps_at_zero;        /* absolute addresses may belong to a module with address 0; set for commands */
    bool nearest;             /* addresses outside of every symbol get the function before them */
    struct scraping scraping;
    struct native_trace *traces;
    size_t trace_count, frame_count; /* frames of all traces */
    struct native_module *modules;   /* in request order */
    size_t module_count;
    uint32_t *by_address;           /* indexes of `modules`, sorted by image address */
    struct sl_range_map module_map; /* if nests_modules: finds an index of `by_address` */
    /* filled by the steps */
    struct native_result_trace *results; /* one per trace */
    size_t result_count;                 /* frames of all traces */
    struct native_counts counts;
    struct native_source_link *links; /* list of sources to download */
    size_t variables;                 /* number of variables in the answer */
    struct answer_limit *limit;       /* size limit of the answer; also updated by writers */
    bool out_of_memory;
    native_writer *writer; /* adds the members of the answer; NULL: the API writes an answer of its own */
    const void *writer_arg;
    /* NULL, or a step that runs when the tables of the modules were found, before frames are looked up in them; it may change
     * addresses of frames. Runs on the pool. */
    job_step *locate;
    /* NULL, or a step that runs after the names were made, in the same pool job; only for requests without source lines */
    job_step *then;
    const struct native_unwind **unwind; /* one for each module; NULL: no stacks were walked */
};

/* ---- read.c ---- */

/* Sets sources, scraping and options for source links from the configuration; the request may replace them. */
void native_configure(struct native_request *request, const struct config *config);

/* Calls native_configure, then reads the body of POST /symbolicate in one pass. The request keeps views of the body. False: `failure`
 * says why. */
bool native_read(struct native_request *request, struct sl_str body, const struct config *config,
                 struct json_failure *failure);

/* Puts the configured sources before those of the request, if the request's options ask for that. False when out of memory. */
bool native_add_configured(struct native_request *request, const struct config *config);

/* Reads the member "options" of a request into a struct native_options. Has the type sl_field_read. */
bool native_read_options(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* ---- run.c: for job kinds whose requests begin with struct native_request ---- */

/* Reads the files that were sent with the request (`files`); later calls do nothing. native_run calls it; stack walks, which come
 * before, need it earlier. SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code native_read_files(struct native_request *request, struct sl_error *error) SL_SUSPENDS;
/* Adds one more file to those that native_read_files has read; the caller keeps its contents. Does not suspend outside of fibers.
 * SL_BUSY, SL_CANCELLED, SL_INTERNAL. */
enum sl_code native_add_file(struct native_request *request, const struct request_file *file,
                             struct sl_error *error) SL_SUSPENDS;

/* Member of struct job_kind: gives the request the job's arena, limit and scope. */
void native_open(struct job *job, void *request);

/* Completes a request that was read or filled in: sorts its modules and finds that of each frame. Call once, before native_run. False when
 * out of memory. Runs on the loop or the pool. */
bool native_prepare(struct native_request *request);

/* Symbolicates the frames: makes results and names, and adds source lines if wanted. A job_step. */
enum sl_code native_run(struct job *job, void *request, struct sl_error *error) SL_SUSPENDS;

/* Returns where job_work should run a step that reads the tables of all resulting frames: on the loop if there are few frames and
 * modules and their tables are in memory, otherwise on the pool. */
unsigned native_results_executor(void *request);
/* Call after a step that read the tables: checks which pages are in memory now, so that the loop may read them from now on. */
void native_check_residency(const struct native_request *request);

/* Members of struct job_kind: the answer is {"status":"completed"} and what the request's `writer` adds. Its memory is estimated; the
 * executor is chosen as by native_results_executor. */
enum sl_code native_write_answer(struct job *job, void *request, struct sl_error *error);
uint64_t native_answer_memory(const void *request);
unsigned native_answer_executor(void *request);

/* Members of struct job_kind: checks if the client may use the sources; restores the state before native_run; releases all results. */
bool native_is_allowed(struct http_exchange *x, const void *request);
void native_reset(void *request);
void native_release(void *request);

/* ---- modules.c ---- */

/* Sorts the modules by address. A module that was sent without a size gets one: up to the next module. False when out of memory. */
bool native_sort_modules(struct native_request *request);

/* Sets module_index and relative of every frame, and `referenced` of their modules, which must be sorted. Runs on the loop or the pool. */
void native_assign_modules(struct native_request *request);

/* Returns the list of sources to search for the request's modules: its own, uploaded debug files, and the symbol store if the
 * request or the configuration wants it. */
struct search_scope native_search_scope(struct native_request *request);

/* For a module whose `id` has a debug id only: asks the sources for an ELF file with a build id that begins with it, and sets the build
 * id, and code_file if that is empty. SL_NOT_FOUND: no source has one; SL_BUSY, SL_CANCELLED: not found, as memory or descriptors were
 * short, or the job was cancelled. `id` is then not changed. */
enum sl_code native_add_build_id(const struct search_scope *where, struct object_id *id) SL_SUSPENDS;

/* Finds the symbol files of all modules that frames refer to. False when cancelled or out of memory; lack of memory during the look-ups
 * only sets `out_of_memory`. */
bool native_find_symbols(struct native_request *request) SL_SUSPENDS;

/* Looks up sources for the modules in which resulting frames lie. False when cancelled; lack of memory sets `out_of_memory`. */
bool native_find_sources(struct native_request *request) SL_SUSPENDS;

/* True if symbols that were uploaded for profilers were found; they are then used instead of `lookup`. */
static inline bool native_has_uploaded_symbols(const struct native_module *module)
{
    return module->found->symbfile.indexes[0] || module->found->symbfile.indexes[1];
}

/* Returns one of the tables of a module that was found. `table` is one in which a frame was found, or TABLE_SYMCACHE: for the latter
 * returns NULL if the module has no symcache. */
const struct sl_symcache *native_table(const struct native_module *module, enum native_table table);

/* Returns the address of the running process to which entries of the module's table are relative. The module must be found. */
uint64_t native_table_base(const struct native_module *module);
const char *native_lookup_status(enum sl_code code); /* the word for answers, for example "found" */
/* Returns the word for the result of a module's look-up; "unused" if no frame lies in it. */
const char *native_module_status(const struct native_module *module);

/* ---- needs.c ---- */

struct module_needs {            /* look-ups of modules during the stack walks of one crash */
    struct search_scope where;   /* its arena is used by the loop thread, while the walks wait for a look-up */
    const struct object_id *ids; /* ids of the modules */
    size_t count;
    struct module_need **first; /* private: for each module the list of its look-ups; NULL at first */
};

/* Looks up a module for a stack walk. Fibers that ask while the same look-up runs wait for its result, and later ones get the same
 * result, which is valid until module_needs_release; all fibers must have ended before that. SL_CANCELLED: the calling fiber was
 * cancelled. SL_BUSY is not kept: the next call looks up again. Other results are those of search_find. */
const struct search_result *module_needs_get(struct module_needs *needs, size_t module,
                                             const struct search_target *use) SL_SUSPENDS;
/* Returns the result if an earlier module_needs_get has got it, or the cache of searches has it; else NULL. Never suspends. */
const struct search_result *module_needs_peek(struct module_needs *needs, size_t module,
                                              const struct search_target *use);
void module_needs_release(struct module_needs *needs); /* releases all results */

/* ---- frames.c ---- */

/* Removes the resulting frames from number `frame` of `trace` on, in all later traces as well, and counts them as omitted. */
void native_drop_frames(struct native_request *request, size_t trace, size_t frame);

/* Makes at most `max_frames` resulting frames, without names. Runs on the loop or the pool. */
void native_symbolicate(struct native_request *request, uint64_t max_frames);

/* Call after names were set: removes the bogus caller of `_start` that unwinders report, and counts frames and traces
 * (request->counts). Runs on the loop or the pool. */
void native_finish(struct native_request *request);

const char *native_frame_status(enum native_status status); /* the words for answers */
const char *native_trust_name(enum native_trust trust);

/* ---- count.c ---- */

/* Counts the resulting frames and traces in request->counts. Runs on the loop or the pool. */
void native_count_results(struct native_request *request);
/* Adds the request's modules and counts to the metrics. Loop thread. */
void native_count(const struct native_request *request);

/* ---- symbfiles.c ---- */

struct native_lookup_result { /* result of a look-up in uploaded symbols */
    enum native_table table;
    size_t count; /* functions at the address, with inlined ones; 0 = not found */
    bool has_symbol_address;
    uint64_t address, symbol_address; /* the address found, and the start of the function, relative to the module */
};

/* Looks up `relative` in the module's uploaded symbols. A return address (`caller`) is searched in the return pads; if it is not
 * there, `adjusted`, an address in the call, is searched in the ranges. Sets `chain` to the functions found, innermost first, as far
 * as `capacity` allows. */
struct native_lookup_result native_symbfile_lookup(const struct native_module *module, uint64_t relative,
                                                   uint64_t adjusted, bool caller, struct sl_location *chain,
                                                   size_t capacity);

/* ---- names.c ---- */

/* Both set the names of the resulting frames. native_name runs on the loop: it takes names from a cache, and has the others demangled on
 * the pool. native_name_at_once, for pool threads, uses no cache and demangles in place. */
enum sl_code native_name(struct native_request *request, struct name_cache *name_cache,
                         struct sl_error *error) SL_SUSPENDS;
void native_name_at_once(struct native_request *request);

/* ---- sources.c ---- */

/* Sets path and line of a resulting frame's source; the path lies in `scratch`, or is the one that was sent. False if path or line
 * is not known. */
bool native_frame_location(const struct native_request *request, const struct native_result_frame *frame,
                           struct sl_buf *scratch, struct sl_str *path, uint64_t *line);

/* Finds out where a resulting frame's file is in version control, as its symcache says. False if that is not known: `*table` and
 * `*origin` are not valid then. */
bool native_frame_origin(const struct native_request *request, const struct native_result_frame *frame,
                         const struct sl_symcache **table, struct sl_symcache_origin *origin);

/* Adds the lines of sources that native_find_sources found. Sources of which only a URL is known are listed in `links`, for
 * native_download_sources. Runs on the loop or the pool. */
void native_apply_sources(struct native_request *request);

/* Downloads the sources in `links` and adds their lines; sources that cannot be downloaded are no error. SL_CANCELLED, or a code of
 * pool_run. */
enum sl_code native_download_sources(struct native_request *request, struct sl_error *error) SL_SUSPENDS;

/* ---- write.c ---- */

/* Returns the number of variables that native_write will write. */
size_t native_count_variables(const struct native_request *request);

/* Writes the members "signal", "stacktraces" and "modules". A native_writer; `unused` is its argument. */
void native_write(const struct native_request *request, struct sl_json_writer *w, const void *unused);
