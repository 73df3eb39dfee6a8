/* `symloom symbolicate`: declarations that its files share.
 *
 *     log_input.c ──▶ text.c                    text with stacks of any format (api/local_text.h), with local scripts and source maps
 *                                               (artifacts.c) and mappings of the JVM (trace.c)
 *     log_input.c ──▶ trace.c                   retrace: JVM stack traces, or lines that match --regex (trace_pattern.c)
 *     crash.c, core.c ─────────┐                minidumps, core files and Apple's reports; choosing a microdump of a log
 *     event.c ──▶ request.c ───┤                events and requests, with local scripts and source maps (artifacts.c)
 *                              └──▶ answer.c    the service's answer as JSON, or as text:
 *                                   frames.c, print.c    stacks of all kinds
 *                                   dump_*.c             minidumps in the formats of other tools
 *     addresses.c ──▶ request.c                 addresses in modules of this machine
 *     names.c                                   many addresses at once: profiles of the Firefox Profiler and reports of `sample` and
 *                                               spindump, written back with names (api/named_file.h); stack words
 *     sentry.c                                  events and files of a Sentry project
 *     tools.c                                   minidump_stackwalk and retrace
 *     common.c                                  shared code; api/input_kind.h detects the kind of the input */
#pragma once

#include "api/crash_file.h"
#include "api/input_kind.h"
#include "base/json_write.h"
#include "cli/cli.h"
#include "cli/missing.h"
#include "cli/options.h"
#include "cli/symbolicate/frames.h"
#include "http/decode.h"
#include "text/text.h"

struct local_files;
struct sentry_project;
struct walked_dump;

/* ---- log_input.c ---- */

/* The text encoding of a log. */
struct log_encoding {
    enum { LOG_BYTES, LOG_UTF16_LITTLE, LOG_UTF16_BIG } units;
    bool known, has_mark; /* has_mark: the log begins with a byte order mark */
    bool began_output;
    uint8_t pending_in[4], pending_out[4]; /* incomplete characters */
    size_t pending_in_size, pending_out_size;
    struct sl_buf in, out;
    size_t in_at;
};

/* Reads a log in pieces, compressed (gzip, zstd) or not, in UTF-8 or UTF-16. To begin, set `fd`, which stays the caller's, and zero the
 * rest. */
struct log_input {
    int fd;
    bool begun, ended, opened;
    struct http_decoder *decoder; /* NULL: not compressed */
    uint8_t *block;               /* the last bytes read; `left` is the unused part */
    struct sl_bytes left;
    struct sl_buf unpacked;
    struct log_encoding encoding;
};

/* Opens the file, or standard input for `-`. False with errno: then log_input_end need not be called. */
bool log_input_open(struct log_input *input, const char *path);
/* True if more input, or its end, arrives within `ms` milliseconds. */
bool log_input_waits(const struct log_input *input, int ms);
/* Reads 1 to `capacity` bytes: returns what has arrived instead of waiting for more. 0 at the end; `*problem` is set if the input is
 * truncated. */
size_t log_input_read(struct log_input *input, void *data, size_t capacity, const char **problem);
/* Encodes output text like the input; a terminal gets UTF-8. The result is a view of `text` or of the input's buffer. `*ok` is false
 * when out of memory. */
struct sl_str log_input_encode(struct log_input *input, struct sl_str text, bool to_file, bool *ok);
void log_input_end(struct log_input *input);

/* ---- trace.c ---- */

/* What symbolicate_trace() does with the lines. */
struct trace_options {
    const char *regex;              /* an expression for the lines (trace.c); NULL: the JVM's stack traces */
    bool verbose;                   /* methods with return and argument types */
    bool all_classes;               /* restore class names anywhere in the text */
    struct missing_report *missing; /* gets the frames whose class is in no mapping, except classes of the platform */
};
extern const struct missing_words missing_mappings;

/* For `retrace`: restores the original frames and exceptions of a JVM stack trace, or of a log that contains some, from `path` (`-` is
 * standard input), by the `mappings`; copies all other lines to standard output. Streams input of any size without holding complete lines
 * back. Returns the status. */
int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count,
                      const struct trace_options *options);

/* The mappings for traces in a text. text_trace_open() reports what is wrong, and sets a status; the result is to be closed in any
 * case. `missing` gets frames as above. */
struct text_trace;
struct text_trace *text_trace_open(const char *const *mappings, size_t mapping_count, struct missing_report *missing,
                                   int *status);
/* Returns the reader of all lines of the text, for local_text.trace. */
struct sl_jvm_trace *text_trace_reader(struct text_trace *trace);
/* Returns the mappings for a request to the JVM's API. */
const struct local_mapping *text_trace_mappings(const struct text_trace *trace, size_t *count);
void text_trace_close(struct text_trace *trace, const char *path); /* may be NULL */

/* ---- text.c ---- */

/* Symbolicates a text with stacks: the text of `whole`, or if that is NULL what the file `path` holds (`-` is standard input), which is
 * streamed: lines are written when the input pauses. Reads frames of one format `only`, or of all (SL_TEXT_PLAIN). Scripts and mappings are
 * those of the options. Returns the status. */
int symbolicate_text(const struct options *o, const struct sentry_project *project, const char *path,
                     const struct sl_str *whole, enum sl_text_format only);

/* ---- crash.c ---- */

/* Symbolicates a minidump or an Apple report as the options say. Returns the status. */
int symbolicate_crash(const struct options *o, const struct sentry_project *project, enum crash_file_kind kind,
                      struct sl_bytes bytes);

/* The same for a core; `modules` are the ids that it lacks (struct crash_file), or NULL. */
int symbolicate_core_with_ids(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes,
                              const char *modules);

/* Symbolicates a minidump, or the microdump of a log that --microdump selects. Returns the status. */
int symbolicate_minidump(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);

/* ---- core.c ---- */

/* Symbolicates an ELF core file, or with --trim writes a smaller one. Returns the status. */
int symbolicate_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);

/* ---- names.c ---- */

/* Symbolicates an Apple report. A sampling report is written back with names, unless the options ask for another format. Returns the
 * status. */
int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);
/* Writes a profile back with names. Returns the status. */
int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text);

/* ---- request.c ---- */

/* Symbolicates a Sentry event, a request body, a Mozilla request (INPUT_EVENT, INPUT_REQUEST, INPUT_MOZILLA) or a request made from
 * addresses, as the options say. Adds files of this machine to `local`. Returns the status. */
int symbolicate_request(const struct options *o, const struct sentry_project *project, struct local_files *local,
                        struct sl_str text, enum input_kind kind);

/* ---- addresses.c ---- */

/* Symbolicates addresses from the arguments or standard input, in the modules of the options. Returns the status. */
int symbolicate_addresses(const struct options *o, const struct sentry_project *project);

/* ---- answer.c ---- */

/* The kinds of answers. */
enum answer_kind { SORT_DUMP, SORT_REPORT, SORT_NATIVE, SORT_JS, SORT_JVM, SORT_MOZILLA };

/* Prints an answer to `out`. False when out of memory. */
typedef bool answer_print(const struct symbolicated_answer *answer, const struct answer_style *style,
                          struct sl_buf *out);

/* An output format: a value of --format. */
struct answer_format {
    const char *name;
    unsigned sorts;                /* a bit for each enum answer_kind that it can print */
    answer_print *print;           /* NULL: copy the JSON */
    const struct frame_view *view; /* columns of frames; NULL if `print` does not use one */
    bool crashed_only;             /* prints only the crashed thread, unless the options name another */
    bool needs_walk;               /* needs data that answers lack: the result of the stack walk; in addition .. */
    bool needs_registers;          /* .. the registers of each frame */
    bool needs_facts;              /* .. the result of sl_minidump_read_facts */
    bool skips_writer;             /* leaves out the thread that wrote the dump, and does not number it */
    bool is_json;                  /* `print` writes JSON, always with all threads */
    bool needs_candidates;         /* needs the status of each candidate file */
};

/* Returns the format that the options select for this kind of answer; NULL after a report of a usage error. */
const struct answer_format *answer_format_choose(const struct options *o, enum answer_kind sort);

/* Prints a complete answer, whose text it consumes, and then the line about missing symbols (text formats, and all formats with
 * --fail-on-missing). `walked` is NULL unless the format needs it; `missing` holds the searched locations. Returns the status. */
int answer_print_notes(const struct options *o, const struct answer_format *format, enum answer_kind sort,
                       const struct walked_dump *walked, struct missing_report *missing, struct sl_buf *text);

/* Texts of the line about missing symbols, for native modules. */
extern const struct missing_words missing_symbols;
extern const struct missing_words missing_core_symbols; /* for core files, without --local-debug-info */
/* Adds the modules whose debug information was wanted but not found, and the failures of their candidate files. */
void answer_describe_missing(const struct symbolicated_answer *answer, struct missing_report *report);

/* ---- common.c ---- */

/* Returns the value of --format, or `usual`. */
const char *symbolicate_format(const struct options *o, const char *usual);

/* Maps the input, decompressed; `-` is standard input. Errors as for map_file(). */
enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error);

/* True if the program runs as Sentry's symbolicli: JSON on terminals too, and a more verbose log. */
bool symbolicate_as_symbolicli(void);

/* True if the arguments are addresses: because of --module, --maps, --pid or --type. */
bool symbolicate_takes_addresses(const struct options *o);

/* The arguments after the input: symbol paths. */
const char *const *symbolicate_symbol_paths(const struct options *o, size_t *count);

/* Checks that these paths and those of --symbols exist: 0, or 2 after a report. */
int symbolicate_check_symbol_paths(const struct options *o);

/* Files of this machine that a crash or a profile names; allocated in the arena. */
struct local_files {
    struct sl_arena *arena;
    const char **items;
    size_t count, capacity;
};
/* Adds the file at this absolute path, if it exists, and its separate debug files, searched as `lookup` does. Only with
 * --local-debug-info. False when out of memory. */
bool local_files_add(struct local_files *files, struct sl_str path);
/* Adds the separate debug file of a build id (lower-case hex) under the same conditions. */
bool local_files_add_build_id(struct local_files *files, struct sl_str code_id);

/* The configuration and sources for lookups in this process. */
struct locator;
struct search_inputs {
    struct locator *locator;
    const struct config *config;
    const struct source *sources;
    size_t source_count;
    struct sl_str scope; /* cache scope: --scope, else the Sentry project, else the global one */
};

/* Fills `inputs` from the options, the symbol paths among the arguments and, after these, `local` (may be NULL), for any number of
 * calls of symbolicate_in_time(). Close it if the status is 0; other statuses come after a report. */
int search_inputs_open(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                       struct search_inputs *inputs);
/* Closes the locator, and adds what was searched to `missing` (may be NULL). */
void search_inputs_close(struct search_inputs *inputs, struct missing_report *missing);
/* Fills `inputs` from the options, the symbol paths among the arguments and, after these, `local` (may be NULL); then runs `work(arg)`
 * like symbolicate_in_time. Adds the searched locations to `missing` (may be NULL). Returns a status, after a report unless 0. */
int symbolicate_here(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                     struct missing_report *missing, struct search_inputs *inputs, void (*work)(void *arg), void *arg);

/* Runs `work(arg)` in a fiber with loop, cache and downloads, for at most the time of --timeout. Returns a status, after a report unless
 * 0. */
int symbolicate_in_time(const struct options *o, struct locator *locator, void (*work)(void *arg), void *arg);

struct remote_part { /* a part of a multipart form */
    const char *name;
    struct sl_bytes bytes;
};

/* Posts a JSON body, or with parts a form, to the service at --server and waits for its answer. Returns a status, after a report unless
 * 0. */
int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer);

/* Strips the `status` from the answer, in place: `{` overwrites the last byte of the removed part. With `indent` the result is formatted
 * in `out`. `*json` is the text to write. False when out of memory. */
bool answer_write_json(struct sl_buf *answer, bool indent, struct sl_buf *out, struct sl_str *json);

/* Writes a string member of a request, unless the text is empty. */
static inline void put_member(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.size)
        sl_json_member_str(w, key, text);
}

/* Appends JSON in indented lines. */
void put_indented(struct sl_str json, struct sl_buf *out);

/* Writes to --output, else to standard output. Returns the status. */
int symbolicate_write(const struct options *o, struct sl_str text);

/* ---- print.c ---- */

struct answer_style {
    int64_t thread;    /* the index of the only thread to print; ALL_THREADS */
    int64_t exception; /* the index of the thread with the last exception's stack, printed first; ALL_THREADS: none */
    uint64_t context;  /* source lines above and below the frame's line */
    bool colour;
    bool unused, candidates;             /* also print unreferenced modules; the candidate files */
    bool brief;                          /* stackwalk: print only the frames of the thread */
    bool stack_contents, stack_pointers; /* stackwalk: print stack memory too; print only stack words */
    const struct frame_view *view;       /* of the selected format */
    const struct walked_dump *walked;    /* for formats of other tools; else NULL */
};

answer_print answer_print_compact, answer_print_pretty, answer_print_full, answer_print_markdown;

/* ---- dump_text.c, dump_json.c: minidumps ---- */

answer_print answer_print_machine, answer_print_stackwalk, answer_print_minidump_json;
