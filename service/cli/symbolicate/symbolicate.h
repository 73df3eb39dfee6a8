/* `symloom symbolicate`: what its files share.
 *
 *     log_input.c ──▶ trace.c                   stack traces of a JVM, line by line
 *     scripts.c                                 stacks of JavaScript
 *     crash.c ──▶ answer.c ──▶ print.c          minidumps and Apple's reports: the service's answer, or that for people */
#pragma once

#include "api/crash_file.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/symbolicate/answer.h"
#include "http/decode.h"

/* ---- log_input.c ---- */

/* What is read piece by piece, packed (gzip, zstd) or not. Zeros and a file descriptor are one at its beginning. */
struct log_input {
    int fd;
    bool begun, ended;
    struct decoder *decoder; /* NULL: it is not packed */
    uint8_t *block;          /* what was read last; `left` is of it */
    struct sl_bytes left;
    struct sl_buf unpacked;
};

/* Up to `room` bytes, which may be fewer; 0 at the end, with `*problem` when that came too early. What has come is not held back. */
size_t log_input_read(struct log_input *input, void *data, size_t room, const char **problem);
void log_input_end(struct log_input *input);

/* ---- trace.c ---- */

/* A stack trace of a JVM, or a log with such in it, from `path` (`-` is standard input) to standard output or `output` (may be
 * NULL): its frames and exceptions as they were before `mappings`, all other lines as they are. Whatever its size, it passes
 * through; answers to lines that have come are not held back. Returns the status. */
int symbolicate_trace(const char *path, const char *const *mappings, size_t mapping_count, const char *output);

/* ---- scripts.c ---- */

/* A stack of JavaScript, or a log with such in it, from `path` (`-` is standard input) to standard output or `output` (may be NULL): each
 * frame as the source map of its script says. The script is the one below `places` (directories, or files themselves) whose path
 * ends most like the frame's; its map is where it says, or beside it. All other lines stay as they are. Returns the status. */
int symbolicate_scripts(const char *path, const char *const *places, size_t place_count, const char *output);

/* ---- crash.c ---- */

/* Maps the input, unpacked; `-` is standard input. As map_file(). */
enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error);

/* A minidump or a report of Apple's from `path` (`-` is standard input), as the options say. Returns the status. */
int symbolicate_crash(const struct options *o, const char *path);

/* ---- print.c ---- */

enum { ALL_THREADS = -1 };

struct answer_style {
    int64_t thread;   /* the index of the only one to be told of; ALL_THREADS */
    uint64_t context; /* lines of source above and below */
    bool colour;
    bool unused, candidates; /* modules that played no part; where files were looked for */
};

/* The thread that crashed, else the first; ALL_THREADS when there is none. */
int64_t answer_crashed_thread(const struct answer *answer);

/* False when out of memory. */
typedef bool answer_print(const struct answer *answer, const struct answer_style *style, struct sl_buf *out);
answer_print answer_print_compact, answer_print_pretty, answer_print_full;
