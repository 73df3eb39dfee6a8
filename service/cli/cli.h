/* What the sub-commands share: each is a row (options.h) in one file or folder. */
#pragma once

#include <stdarg.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "object/archive.h"
#include "symcache/symcache.h"

int version_of_program(void); /* --version without a command */

/* The statuses of the commands, beside 0, 1 and 2. */
enum {
    STATUS_NOTHING = 3, /* nothing to work on: unknown format, no such object */
    STATUS_DENIED = 4,  /* a server wants other credentials, or any */
};

/* ---- output.c ---- */

/* Standard output. A reader that went away ends a command quietly: its status is 0; any other failing write is an error.
 * False when nothing more can be written: the command then ends as it likes, and its status comes from output_finish. */
bool output_write(struct sl_str text);
bool output_flush(void);
/* Writes what is left and returns the status to end with: `status`, or 0 or 1 when something could not be written. */
int output_finish(int status);

/* Whether standard output is to be coloured: a terminal that can, NO_COLOR, CLICOLOR_FORCE; `choice` is the value of
 * --color ("auto", "always", "never"; may be NULL). */
bool output_colour(const char *choice);

/* The columns of the terminal that standard output is; 0: it is none, or nobody knows. */
unsigned output_width(void);

/* The columns that a text takes: its characters. */
int output_columns(struct sl_str text);
/* Text without its middle, so that it takes at most so many columns (characters); "..." stands for what is left out. */
void output_put_trimmed(struct sl_buf *out, struct sl_str text, size_t columns);

/* Whether there is a line of a progress on the terminal, which a signal that ends the program has to erase. */
void output_line_drawn(bool drawn);

/* What else is to be done when a signal ends the program, before the cache's ends; NULL: nothing any more. It has to be
 * async-signal-safe. */
void output_at_signal(void (*clean)(void));

/* Text of a file; its control characters must not reach a terminal. */
void output_put_safe(struct sl_buf *out, struct sl_str text);
/* The same, but for one of them, which may be there: a line end or a tab. */
void output_put_safe_but(struct sl_buf *out, struct sl_str text, char kept);

/* A file that appears under its name when it is complete, and not at all when the program is ended before. FIFOs and
 * devices are written as they are. */
struct output_file {
    int fd;
    char path[4096], temporary[4096]; /* temporary empty: written in place */
    struct sl_buf pending;
    int failed; /* errno of the first write that failed */
};
enum sl_code output_file_open(struct output_file *file, const char *path, struct sl_error *error);
/* A file with a name that nobody can have guessed, `file->temporary`, in temp_dir(): to be read by that name and removed. */
enum sl_code output_file_temporary(struct output_file *file, struct sl_error *error);
bool output_file_write(struct output_file *file, struct sl_str text);
/* Publishes the file, or (`keep` false) removes it. A file to keep of which a write failed is removed, and that is the
 * error. */
enum sl_code output_file_close(struct output_file *file, bool keep, struct sl_error *error);
/* Makes a directory for results, if it is not there. 0, or a status after a report. */
int output_directory(const char *path);
/* All of it at once. */
enum sl_code output_file_put(const char *path, struct sl_bytes bytes, struct sl_error *error);

/* "error: <message>", and "  caused by: <cause>" (may be NULL), on stderr. Returns `status`. */
int report(int status, const char *message, const char *cause);
int report_no_memory(void); /* with status 1 */
/* Another line on stderr, or more, as printf. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
void remark_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
/* The status for a file that could not be opened or read. */
int report_status(enum sl_code code);
/* Reports that a file could not be processed, and why. Returns the status. */
int report_file(const char *path, enum sl_code code, const struct sl_error *error);

/* ---- debug_file.c ---- */

/* An unlinked file in temp_dir(); -1: errno tells. */
int temporary_file(void);

/* Appends what comes of a pipe, standard input or a file of the kernel, to its end; `path` is for the error. */
enum sl_code read_stream(int fd, const char *path, struct sl_buf *out, struct sl_error *error);

/* The processor of this machine; SL_ARCH_UNKNOWN when it has no name here. */
enum sl_arch machine_arch(void);

/* A ZIP archive is a source bundle, or a file that is packed: whether it is one of these. */
bool is_packed_zip(struct sl_bytes bytes);

/* Maps a file; a packed one (gzip, zstd, zlib, xz, zip, cabinet: as downloads) unpacked, in an unlinked file. SL_MALFORMED
 * for a packed one that is damaged; else as sl_map_file. */
enum sl_code map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error);
/* Puts a packed file's contents in its place; on an error the mapping stays as it is. */
enum sl_code map_unpacked(struct sl_mapping *mapping, struct sl_error *error);

bool path_is_directory(const char *path);
/* The file in a .dSYM bundle; of several, the first by name. NULL if there is none; the caller frees. */
char *file_of_dsym(const char *directory);

/* The file with the debug information of another one. */
struct debug_file {
    char *path;
    struct sl_mapping mapping;
    struct sl_object *object; /* NULL: none was found */
};

struct input;

/* Looks for the debug information of an object that was read from `path`: in a .dSYM bundle, by build id and debug link, or
 * the PDB beside a PE. Lists end with NULL and may be NULL; without directories /usr/lib/debug. False when none belongs to the
 * object: then the notes of `input` (may be NULL) say what was looked for, and why what was found is not it. The file is to be
 * closed in any case. */
bool debug_file_find(const struct sl_object *object, const char *path, const char *const *directories,
                     const char *const *dsym_hints, struct debug_file *file, struct input *input);
void debug_file_close(struct debug_file *file);
/* Where the debug file of a build id (lower-case hex) lies below a directory, as debuggers look for it (GDB manual, "Separate Debug
 * Files"). False when the id is too short, or the path too long. */
bool build_id_path(const char *directory, struct sl_str id, char path[4096]);
extern const char *const usual_debug_directories[]; /* /usr/lib/debug; ends with NULL */
/* The object among `bytes` that holds the debug information of `object`; false when there is none. */
bool debug_file_take(const struct sl_object *object, struct sl_bytes bytes, struct sl_object **debug);

/* ---- files.c ---- */

/* The last part of a path of either kind, `\` or `/`. */
struct sl_str path_file_name(struct sl_str path);

/* How a file is opened. All may be NULL or empty. */
struct input_options {
    const char *arch;                      /* of a file with several objects */
    const struct sl_object_wanted *wanted; /* ids of the object */
    const char *const *debug_directories;  /* where debug companions are looked for, ends with NULL */
    const char *const *dsym_hints;         /* likewise, .dSYM bundles */
    const char *dwp, *supplementary;       /* used instead of the files beside */
    bool find_debug;                       /* use the debug companion of a file without debug information */
    bool positions;                        /* what is converted has positions for lines, where there are columns */
    bool nameless_lines;                   /* what is converted has the lines of code that nothing names */
    bool written_paths;                    /* what is converted has paths as they are written, with `..` */
    bool relative_names;                   /* what is converted names files without the compilation directory */
};

/* A debug file, a symbfile or a symcache given by name, converted if need be. */
struct input {
    char *path; /* of what was opened: for a .dSYM directory, the file in it */
    struct sl_mapping mapping;
    struct sl_buf read; /* instead of the mapping, of what is no regular file */
    struct sl_archive archive;
    struct sl_object *object; /* NULL for a symcache and a symbfile */
    struct debug_file debug;  /* of an object without debug information, where it was found */
    struct sl_object *companions[2];
    struct sl_mapping companion_mappings[2];
    struct sl_buf converted;
    struct sl_symcache cache;
    bool has_cache, is_symbfile;
    bool has_root;       /* chains of the cache end with an element that stands for nothing */
    bool has_dwo;        /* a unit of what was converted is in a file of its own, or should be */
    bool alone;          /* nothing lies beside it: it was fetched */
    struct sl_buf notes; /* what of its debug information is missing, and where it was looked for: lines */
    const struct input_options *options;
};

/* Opens the file (`-` is standard input); `options` (may be NULL) must outlive the input. SL_MALFORMED when it is neither; SL_NOT_FOUND also when
 * it has no object of the wanted architecture or ids, or several and none of this machine. `*input` is to be closed in any
 * case. */
enum sl_code input_open(const char *path, const struct input_options *options, struct input *input,
                        struct sl_error *error);

/* As input_open, for a file that was fetched: `bytes` stay the caller's and must outlive the input; `name` is what messages
 * and headers call it. */
enum sl_code input_open_bytes(const char *name, struct sl_bytes bytes, const struct input_options *options,
                              struct input *input, struct sl_error *error);

/* Only maps and opens the archive, for looking at each object in turn; `has_cache` for a symcache. */
enum sl_code input_open_archive(const char *path, struct input *input, struct sl_error *error);

/* The object with the debug information: the companion where one was found, else the file itself. */
struct sl_object *input_debug(const struct input *input);

/* Debug information that was found elsewhere. False when it is not the object's, or it has some; the bytes stay the
 * caller's. */
bool input_set_debug(struct input *input, struct sl_bytes bytes);

/* The build id of the supplementary file that the debug information names (DWARF 5, 7.3.6; .gnu_debugaltlink); empty when there
 * is none. And that file, when it was found; the bytes stay the caller's. */
struct sl_bytes input_wants_supplementary(const struct input *input);
void input_set_supplementary(struct input *input, struct sl_bytes bytes);
/* Where that file should lie; false when none is named, or not on this machine. */
bool input_supplementary_path(const struct input *input, char path[4096]);

/* Streams the functions. Beside the file, `<file>.dwp`, the .dwo files and the supplementary file that it names are used
 * where they exist. */
enum sl_code input_read_functions(struct input *input, const struct sl_parallel *parallel,
                                  struct sl_function_sink *sink, struct sl_error *error);

/* Adds a line to the notes, unless it is there. */
void input_note(struct input *input, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a note of split units whose package or .dwo file is not there, of the first `most` units. */
void input_note_split_units(struct input *input, size_t most);

/* Makes `cache` usable, converting with `jobs` threads (0 = all cores) and the same companions. */
enum sl_code input_convert(struct input *input, unsigned jobs, struct sl_error *error);

/* The same of what is around the given addresses alone (sl_symcache_convert_around), into `bytes`, which are the caller's. For
 * files of which a part can be read; what it reads is paid for anew each time. */
enum sl_code input_convert_around(struct input *input, const uint64_t *addresses, size_t count, unsigned jobs,
                                  struct sl_buf *bytes, struct sl_symcache *cache, struct sl_error *error);
bool input_has_parts(const struct input *input);

/* Whether lines of what was converted are positions (function/position.h). */
bool input_has_positions(const struct input *input);
/* Closes the object and its companions, so that another one of the archive can take its place. */
void input_close_object(struct input *input);
void input_close(struct input *input);

/* "x86_64, arm64": the architectures of a file's objects. */
void input_list_archs(const struct sl_archive *archive, struct sl_buf *out);

/* ---- bundle/bundle.c ---- */

/* The sources that the opened object of `path` names, as far as they are on this machine, as a source bundle; `*some`: there were
 * any. `tell`: say on stderr what was left out. */
enum sl_code bundle_object_sources(const char *path, struct input *input, bool tell, struct sl_buf *bytes, bool *some,
                                   struct sl_error *error);

/* ---- key.c ---- */

/* What follows "APIKey " of a key: base64 as it was issued, or made of "id:key". False: there is no room for it. */
bool key_as_sent(const char *key, char *out, size_t size);

/* ---- heap.c ---- */

/* For a process that does one job and ends: free memory is kept for what comes next, and most of the heap is made of huge
 * pages, of which there are fewer to be had one after the other. Before there are threads. */
void heap_for_one_job(void);

/* ---- threads.c ---- */

/* A sl_parallel over `jobs` threads of its own (0 = $SYMLOOM_JOBS, else usable cores); lives as long as the process. */
const struct sl_parallel *threads_parallel(unsigned jobs);
