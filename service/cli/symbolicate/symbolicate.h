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

/* The text encoding of a log, and the state of converting it to UTF-8 and the output back. */
struct log_encoding {
    enum { LOG_BYTES, LOG_UTF16_LITTLE, LOG_UTF16_BIG } units; /* LOG_BYTES: UTF-8 or any bytes, which are copied */
    bool known;                            /* the first bytes were read: `units` and `has_mark` are set */
    bool has_mark;                         /* the log begins with a byte order mark; so will the output */
    bool began_output;                     /* the output's byte order mark was written, if it has one */
    uint8_t pending_in[4], pending_out[4]; /* bytes of a character whose other bytes have not come yet */
    size_t pending_in_size, pending_out_size;
    struct sl_buf in; /* input as UTF-8; the bytes before `in_at` were returned by log_input_read() */
    size_t in_at;
    struct sl_buf out; /* the last text of log_input_encode() */
};

/* Reads a log block by block, compressed (gzip, zstd) or not, in UTF-8 or UTF-16. Begin with log_input_open(); or set `fd`, which the
 * caller then closes, and zero the rest. */
struct log_input {
    int fd;
    bool begun;                   /* `block` was allocated and compression was detected */
    bool ended;                   /* read() has returned 0 or an error */
    bool opened;                  /* log_input_end() closes `fd` */
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
/* Reads 1 to `capacity` bytes: returns what has arrived instead of waiting for more. 0 at the end, and on an error, which `*problem` then
 * describes: set it to NULL before. */
size_t log_input_read(struct log_input *input, void *data, size_t capacity, const char **problem);
/* Converts output from UTF-8 to the encoding of the input. Output to a terminal stays UTF-8; with `to_file` it goes to a file instead. The
 * result is a view of `text` or of a buffer of `input`. `*ok` is false when out of memory. */
struct sl_str log_input_encode(struct log_input *input, struct sl_str text, bool to_file, bool *ok);
void log_input_end(struct log_input *input);

/* ---- trace.c ---- */

/* What symbolicate_trace() does with the lines. */
struct trace_options {
    const char *regex; /* --regex: what a line with a frame looks like (trace_pattern.c); NULL: as the JVM writes it */
    bool verbose;      /* print methods with return and argument types */
    bool all_classes;  /* restore class names anywhere in the text */
    struct missing_report *missing; /* gets the frames whose class is in no mapping, except classes of the platform */
};
extern const struct missing_words missing_mappings;

/* For `retrace`: copies the log `path` (`-` is standard input) to standard output, and replaces obfuscated names in JVM stack traces by the
 * original ones, with the mapping files `mappings`. Streams input of any size: complete lines appear at once. Returns the exit status. */
int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count,
                      const struct trace_options *options);

struct text_trace; /* the mappings for JVM stack traces in a text */
/* Reads mapping files. Sets `*status`: 0, or not 0 after a report on stderr; close the result also in that case. NULL when out of memory.
 * `missing` gets the frames whose class no mapping has, except classes of Java and Android. */
struct text_trace *text_trace_open(const char *const *mappings, size_t mapping_count, struct missing_report *missing,
                                   int *status);
/* Returns the reader of all lines of the text, for local_text.trace. */
struct sl_jvm_trace *text_trace_reader(struct text_trace *trace);
/* Returns the mappings, and their `*count`, for local_request.mappings. */
const struct local_mapping *text_trace_mappings(const struct text_trace *trace, size_t *count);
/* Adds the number of frames without mapping to `missing`, warns of lines of the text `path` that were left unchanged, and frees `trace`,
 * which may be NULL. */
void text_trace_close(struct text_trace *trace, const char *path);

/* ---- text.c ---- */

/* Symbolicates a text with stacks: `whole`, or if that is NULL the file `path` (`-` is standard input), which is streamed: lines are
 * written when the input pauses. Looks up only frames of the format `only`, or all with SL_TEXT_PLAIN. The options name scripts, source
 * maps and JVM mappings. Returns the exit status. */
int symbolicate_text(const struct options *o, const struct sentry_project *project, const char *path,
                     const struct sl_str *whole, enum sl_text_format only);

/* ---- crash.c ---- */

/* Symbolicates a minidump or an Apple report as the options say. Returns the exit status. */
int symbolicate_crash(const struct options *o, const struct sentry_project *project, enum crash_file_kind kind,
                      struct sl_bytes bytes);

/* Symbolicates an ELF core file. `modules`: JSON with the build ids of modules that the core lacks (crash_file.modules), or NULL. Returns
 * the exit status. */
int symbolicate_core_with_ids(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes,
                              const char *modules);

/* Symbolicates a minidump, or the microdump of a log that --microdump selects. Returns the exit status. */
int symbolicate_minidump(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);

/* ---- core.c ---- */

/* Symbolicates an ELF core file, or with --trim writes a smaller one. Returns the exit status. */
int symbolicate_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);

/* ---- names.c ---- */

/* Symbolicates an Apple report: a crash report, or a report of `sample` or spindump, which is written back with names unless the options
 * ask for another format than text. Returns the exit status. */
int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);
/* Writes a profile of the Firefox Profiler back with the names of its functions. Returns the exit status. */
int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text);

/* ---- request.c ---- */

/* Symbolicates a Sentry event, a request body or a request of Mozilla's API (`kind`: INPUT_EVENT, INPUT_REQUEST, INPUT_MOZILLA), and prints
 * the answer. With --local-debug-info, adds the files that its modules name to `local`. Returns the exit status. */
int symbolicate_request(const struct options *o, const struct sentry_project *project, struct local_files *local,
                        struct sl_str text, enum input_kind kind);

/* ---- addresses.c ---- */

/* Symbolicates addresses from the arguments or standard input, in the modules that the options name. Returns the exit status. */
int symbolicate_addresses(const struct options *o, const struct sentry_project *project);

/* ---- answer.c ---- */

/* What an answer is for: a minidump or core, an Apple report, or a request for native code, JavaScript, the JVM or in Mozilla's format. */
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
    bool needs_walk;               /* needs data of the stack walk that answers lack: the walk must run here */
    bool needs_registers;          /* with needs_walk: also the registers of each frame */
    bool needs_facts;              /* with needs_walk: also the result of sl_minidump_read_facts */
    bool skips_writer;             /* leaves out the thread that wrote the dump, and does not number it */
    bool is_json;                  /* `print` writes JSON, always with all threads */
    bool needs_candidates;         /* needs the status of each file that was searched for a module */
};

/* Returns the format that the options select for this kind of answer; NULL after a report of a usage error. */
const struct answer_format *answer_format_choose(const struct options *o, enum answer_kind sort);

/* Prints the complete answer `text`, which it overwrites, to --output or standard output. Then prints the line about missing symbols on
 * stderr: for text formats, and with --fail-on-missing for all formats. `walked` is NULL unless the format needs_walk; `missing` holds the
 * searched locations. Returns the exit status. */
int answer_print_notes(const struct options *o, const struct answer_format *format, enum answer_kind sort,
                       const struct walked_dump *walked, struct missing_report *missing, struct sl_buf *text);

/* Texts of the line about missing symbols, for native modules. */
extern const struct missing_words missing_symbols;
extern const struct missing_words missing_core_symbols; /* for core files, without --local-debug-info */
/* Adds the modules whose debug information was wanted but not found, and the failures of their candidate files. */
void answer_describe_missing(const struct symbolicated_answer *answer, struct missing_report *report);

/* ---- common.c ---- */

/* Returns the output format: the value of --format, or `json` with --json; `usual` if neither is given. */
const char *symbolicate_format(const struct options *o, const char *usual);

/* Maps the input, decompressed; `-` is standard input. Errors as for map_file(). */
enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error);

/* True if the program runs as Sentry's symbolicli: JSON on terminals too, and a more verbose log. */
bool symbolicate_as_symbolicli(void);

/* True if the arguments are addresses: because of --module, --maps, --pid or --type. */
bool symbolicate_takes_addresses(const struct options *o);

/* Returns the arguments after the input, which are symbol paths, and sets `*count` to their number. */
const char *const *symbolicate_symbol_paths(const struct options *o, size_t *count);

/* Checks that the symbol paths among the arguments and those of --symbols exist. Returns 0, or 2 after a report. */
int symbolicate_check_symbol_paths(const struct options *o);

/* Files of this machine that a crash or a profile names; allocated in the arena. */
struct local_files {
    struct sl_arena *arena;
    const char **items;
    size_t count, capacity;
};
/* Adds the file at this absolute path and its separate debug files; nothing if the path is relative or no regular file. Callers check
 * --local-debug-info. False when out of memory. */
bool local_files_add(struct local_files *files, struct sl_str path);
/* Adds the file of the system's debug directory (/usr/lib/debug/.build-id/..) for a build id in lower-case hex, if there is one. Callers
 * check --local-debug-info. False when out of memory. */
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

/* Fills `inputs` with the sources of the options, of the symbol paths among the arguments, of the Sentry project and of `local` (may be
 * NULL). They serve any number of calls of symbolicate_in_time(). Returns an exit status: 0, then call search_inputs_close(); or another
 * one after a report. */
int search_inputs_open(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                       struct search_inputs *inputs);
/* Closes the locator, and adds what was searched to `missing` (may be NULL). */
void search_inputs_close(struct search_inputs *inputs, struct missing_report *missing);
/* Opens `inputs` as search_inputs_open() does, runs `work(arg)` in a fiber for at most the time of --timeout, and closes `inputs`. Adds the
 * searched locations to `missing` (may be NULL). Returns an exit status, after a report unless 0. */
int symbolicate_here(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                     struct missing_report *missing, struct search_inputs *inputs, void (*work)(void *arg), void *arg);

/* Runs `work(arg)` in a fiber with loop, cache and downloads, for at most the time of --timeout. Returns an exit status, after a report
 * unless 0. */
int symbolicate_in_time(const struct options *o, struct locator *locator, void (*work)(void *arg), void *arg);

struct remote_part { /* a field of a form (multipart/form-data) */
    const char *name;
    struct sl_bytes bytes;
};

/* Posts `json`, or a form if part_count is not 0, to `path` of the service at --server, and waits for its answer. Returns an exit status,
 * after a report unless 0. */
int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer);

/* Removes the member `status`, which stands first in an answer, in place: `{` overwrites the last byte of the removed part. With `indent`
 * the result is formatted in `out`. `*json` is the text to write. False when out of memory. */
bool answer_write_json(struct sl_buf *answer, bool indent, struct sl_buf *out, struct sl_str *json);

/* Writes a string member of a request, unless the text is empty. */
static inline void put_member(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.size)
        sl_json_member_str(w, key, text);
}

/* Appends JSON in indented lines. */
void put_indented(struct sl_str json, struct sl_buf *out);

/* Writes to --output, else to standard output. Returns the exit status. */
int symbolicate_write(const struct options *o, struct sl_str text);

/* ---- print.c ---- */

struct answer_style {
    int64_t thread;    /* the index of the only thread to print; ALL_THREADS */
    int64_t exception; /* the index of the thread with the last exception's stack, printed first; ALL_THREADS: none */
    uint64_t context;  /* format full: number of source lines above and below the frame's line; 0: none */
    bool colour;
    bool unused, candidates;             /* full: also print modules without a frame; the files searched for modules */
    bool brief;                          /* stackwalk: print only the titles of threads and their frames */
    bool stack_contents, stack_pointers; /* stackwalk: print stack memory too; print only stack words */
    const struct frame_view *view;       /* columns of the selected format */
    const struct walked_dump *walked;    /* for formats with needs_walk; else NULL */
};

answer_print answer_print_compact, answer_print_pretty, answer_print_full, answer_print_markdown;

/* ---- dump_text.c, dump_json.c: minidumps ---- */

answer_print answer_print_machine, answer_print_stackwalk, answer_print_minidump_json;
