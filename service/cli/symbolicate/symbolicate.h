/* `symloom symbolicate`: what its files share.
 *
 *     log_input.c ──▶ trace.c                   stack traces of a JVM, or lines as an expression has them
 *     scripts.c                                 stacks of JavaScript
 *     crash.c ─────────────────┐                minidumps and Apple's reports; which microdump of a log
 *     event.c ──▶ request.c ───┤                events and requests, with scripts and source maps of directories (artifacts.c)
 *                              └──▶ answer.c    the service's answer as it is, or for people:
 *                                   frames.c, print.c    stacks of all kinds
 *                                   dump_*.c             minidumps as other tools tell of them
 *     addresses.c ──▶ request.c                 addresses in modules of this machine
 *     names.c                                   names by the thousand: profiles of the Firefox Profiler and reports of `sample` and
 *                                               spindump, written back with names (api/named_file.h); words of stacks
 *     sentry.c                                  events and files of a project of Sentry
 *     tools.c                                   minidump_stackwalk and retrace
 *     common.c                                  what these share; what the input is: api/input_kind.h */
#pragma once

#include "api/crash_file.h"
#include "api/input_kind.h"
#include "base/json_write.h"
#include "cli/cli.h"
#include "cli/missing.h"
#include "cli/options.h"
#include "cli/symbolicate/frames.h"
#include "http/decode.h"

struct local_files;
struct sentry_project;

/* ---- log_input.c ---- */

/* How the text of a log is written down. */
struct log_encoding {
    enum { LOG_BYTES, LOG_UTF16_LITTLE, LOG_UTF16_BIG } units;
    bool known, has_mark; /* has_mark: it begins with a byte order mark */
    bool began_output;
    uint8_t pending_in[4], pending_out[4]; /* parts of characters, until the rest comes */
    size_t pending_in_size, pending_out_size;
    struct sl_buf in, out;
    size_t in_at;
};

/* What is read piece by piece, packed (gzip, zstd) or not, in UTF-16 or not. Zeros and a file descriptor, which stays the caller's, are one at its
 * beginning. */
struct log_input {
    int fd;
    bool begun, ended, opened;
    struct decoder *decoder; /* NULL: it is not packed */
    uint8_t *block;          /* what was read last; `left` is of it */
    struct sl_bytes left;
    struct sl_buf unpacked;
    struct log_encoding encoding;
};

/* The file, or of `-` standard input. False: errno tells, and there is nothing to end. */
bool log_input_open(struct log_input *input, const char *path);
/* Whether more of it comes, or its end, within so many milliseconds. */
bool log_input_waits(const struct log_input *input, int ms);
/* Up to `room` bytes, which may be fewer; 0 at the end, with `*problem` when that came too early. What has come is not held back. */
size_t log_input_read(struct log_input *input, void *data, size_t room, const char **problem);
/* Text that is to be written, in the encoding of the input; a terminal gets UTF-8. A view of it or of what is kept for it. `*ok` is false
 * when out of memory. */
struct sl_str log_input_encode(struct log_input *input, struct sl_str text, bool to_file, bool *ok);
void log_input_end(struct log_input *input);

/* ---- trace.c ---- */

/* A stack trace of a JVM, or a log with such in it, from `path` (`-` is standard input) to where the words say:
 * its frames and exceptions as they were before `mappings`, all other lines as they are. Whatever its size, it passes
 * through; answers to lines that have come are not held back. Returns the status. */
struct trace_words {
    const char *output;             /* NULL: standard output */
    const char *regex;              /* what lines are (trace_pattern.h); NULL: stack traces as the JVM prints them */
    bool verbose;                   /* methods with their types */
    bool all_classes;               /* names of classes wherever they stand */
    struct missing_report *missing; /* is told of frames whose class is in no mapping, but those of the platform */
};
extern const struct missing_words missing_mappings;
int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count,
                      const struct trace_words *words);

/* ---- scripts.c ---- */

/* A stack of JavaScript, or a log with such in it, to standard output or `output` (may be NULL): that of `stack`, or when it is
 * NULL of the file `path` (`-` is standard input), which passes through; what has come is not held back. Each frame as the source map
 * of its script says. The script is the one below `places` (directories, or files themselves) whose path ends most like the
 * frame's; its map is where it says, or beside it, or alone there. All else stays as it is; `missing` is told of the frames that do,
 * but those of the engine. Returns the status. */
int symbolicate_scripts(const char *path, const struct sl_str *stack, const char *const *places, size_t place_count,
                        const char *output, struct missing_report *missing);
extern const struct missing_words missing_maps;

/* ---- crash.c ---- */

/* A minidump or a report of Apple's, as the options say. Returns the status. */
int symbolicate_crash(const struct options *o, const struct sentry_project *project, enum crash_file_kind kind,
                      struct sl_bytes bytes);

/* A minidump, or of a log with microdumps the one that --microdump says. Returns the status. */
int symbolicate_minidump(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);

/* ---- names.c ---- */

/* A report of Apple's. One of samples is written back with names, unless another format is asked for. Returns the status. */
int symbolicate_report(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes);
/* A profile: written back with names. Returns the status. */
int symbolicate_profile(const struct options *o, const struct sentry_project *project, struct sl_str text);

/* ---- request.c ---- */

/* An event of Sentry, the body of a request, or one of Mozilla's (INPUT_EVENT, INPUT_REQUEST, INPUT_MOZILLA), or a request made of
 * addresses; as the options say. Files of this machine are added to `local`. Returns the status. */
int symbolicate_request(const struct options *o, const struct sentry_project *project, struct local_files *local,
                        struct sl_str text, enum input_kind kind);

/* ---- addresses.c ---- */

/* Addresses, which the arguments or standard input have, in the modules of the options. Returns the status. */
int symbolicate_addresses(const struct options *o, const struct sentry_project *project);

/* ---- answer.c ---- */

/* What an answer is about. */
enum answer_sort { SORT_DUMP, SORT_REPORT, SORT_NATIVE, SORT_JS, SORT_JVM, SORT_MOZILLA };

/* False when out of memory. */
typedef bool answer_print(const struct answer *answer, const struct answer_style *style, struct sl_buf *out);

/* How an answer is written: a value of --format. */
struct answer_format {
    const char *name;
    unsigned sorts;                /* a bit for each sort of answer that it is for */
    answer_print *print;           /* NULL: the answer as it is */
    const struct frame_view *view; /* what is shown of frames; NULL where `print` knows it */
    bool crashed_only;             /* unless other threads are asked for */
    bool needs_walk;               /* what answers do not tell: the dump as it was walked; of that .. */
    bool needs_registers;          /* .. those of each frame */
    bool needs_facts;              /* .. sl_minidump_read_facts */
    bool skips_writer;             /* the thread that wrote the dump, and does not count it */
    bool is_json;                  /* what `print` writes; it has all threads */
    bool needs_candidates;         /* what became of each file that was looked for */
};

/* How the options want such an answer; NULL after a report of what is wrong with them. */
const struct answer_format *answer_format_of(const struct options *o, enum answer_sort sort);

/* Writes a complete answer, whose text is used up, and behind it the line about what is missing (text formats, and all with
 * --fail-on-missing). `walked` is NULL unless the format needs it; `missing` has the places that were searched. Returns the
 * status. */
struct walked_dump;
int answer_tell(const struct options *o, const struct answer_format *format, enum answer_sort sort,
                const struct walked_dump *walked, struct missing_report *missing, struct sl_buf *text);

/* The words for modules of programs. */
extern const struct missing_words missing_symbols;
/* Adds the modules whose debug information was wanted, and what became of the files that might have been theirs. */
void answer_describe_missing(const struct answer *answer, struct missing_report *report);

/* ---- common.c ---- */

/* The format that the options name, else `usual`. */
const char *symbolicate_format(const struct options *o, const char *usual);

/* Maps the input, unpacked; `-` is standard input. As map_file(). */
enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error);

/* Whether the program is Sentry's tool: JSON on terminals too, and a log that tells more. */
bool symbolicate_as_symbolicli(void);

/* Whether the arguments are addresses: --module, --maps, --pid or the type say so. */
bool symbolicate_takes_addresses(const struct options *o);

/* The arguments that are symbol paths: those behind the input. */
const char *const *symbolicate_places(const struct options *o, size_t *count);

/* Whether all of these and of --symbols are there: 0, or 2 after a report. */
int symbolicate_check_places(const struct options *o);

/* Files of this machine that a crash or a profile names; in the arena. */
struct local_files {
    struct sl_arena *arena;
    const char **items;
    size_t count, capacity;
};
/* Adds the file, if there is one with this absolute path, with the files that have its debug information, where `lookup` looks for
 * them; with --local-debug-info. False when out of memory. */
bool local_files_add(struct local_files *files, struct sl_str path);
/* Likewise the separate debug file of a build id, in lower-case hex. */
bool local_files_add_build_id(struct local_files *files, struct sl_str code_id);

/* Where this process looks for files. */
struct search_place {
    const struct config *config;
    const struct source *sources;
    size_t source_count;
    struct sl_str scope; /* whose entries of the cache count: --scope, else the project of Sentry, else everybody's */
};

struct by_id;
/* Fills `place`: what the options say of it, symbol paths among the arguments too, and `local` (may be NULL) behind them. Then runs
 * `work(arg)` as symbolicate_in_time; `missing` (may be NULL) hears of the places. Returns a status, after a report unless 0. */
int symbolicate_here(const struct options *o, const struct sentry_project *project, const struct local_files *local,
                     struct missing_report *missing, struct search_place *place, void (*work)(void *arg), void *arg);

/* Runs `work(arg)` with loop, cache and downloads, for as long as --timeout says. Returns a status, after a report unless 0. */
int symbolicate_in_time(const struct options *o, struct by_id *by_id, void (*work)(void *arg), void *arg);

struct remote_part { /* of a form */
    const char *name;
    struct sl_bytes bytes;
};

/* The answer of the service at --server to a JSON body, or to a form when there are parts; waits for it. Returns a status, after a
 * report unless 0. */
int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer);

/* The answer without its status as a line, in place: `{` takes the place of the last byte that is left out. With `indent` in
 * `out`. `*json` is what is to be written. False when out of memory. */
bool put_answer_json(struct sl_buf *answer, bool indent, struct sl_buf *out, struct sl_str *json);

/* A member of a request that is a text; none when it is empty. */
static inline void put_member(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.size)
        sl_json_member_str(w, key, text);
}

/* JSON in lines. */
void put_indented(struct sl_str json, struct sl_buf *out);

/* To where --output says. Returns the status. */
int symbolicate_write(const struct options *o, struct sl_str text);

/* ---- print.c ---- */

struct answer_style {
    int64_t thread;    /* the index of the only one to be told of; ALL_THREADS */
    int64_t exception; /* the index of where the last exception was thrown, which comes first; ALL_THREADS: none */
    uint64_t context;  /* lines of source above and below */
    bool colour;
    bool unused, candidates;             /* modules that played no part; where files were looked for */
    bool brief;                          /* stackwalk: only the frames of the thread */
    bool stack_contents, stack_pointers; /* stackwalk: also what stacks hold, or only that */
    const struct frame_view *view;       /* of the format */
    const struct walked_dump *walked;    /* of formats that other tools have; NULL for others */
};

answer_print answer_print_compact, answer_print_pretty, answer_print_full, answer_print_markdown;

/* ---- dump_text.c, dump_json.c: of minidumps ---- */

answer_print answer_print_machine, answer_print_stackwalk, answer_print_minidump_json;
