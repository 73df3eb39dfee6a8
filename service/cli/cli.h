/* Declarations for all sub-commands of `symloom`. Each command is a struct command (options.h) that one file or folder defines. */
#pragma once

#include <stdarg.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "object/archive.h"
#include "symcache/symcache.h"

int version_of_program(void); /* prints what `symloom --version` shows */

/* Exit statuses besides 0 (success), 1 (failure) and 2 (usage error). */
enum {
    STATUS_NOTHING = 3, /* no usable input: unknown format, no such object */
    STATUS_DENIED = 4,  /* a server rejected the credentials, or requires some */
};

/* ---- output.c ---- */

/* Write to standard output, or flush it. False when nothing more can be written, because the reader has gone (EPIPE) or for another reason:
 * the command may then return any status, since output_finish replaces it. */
bool output_write(struct sl_str text);
bool output_flush(void);
/* Flushes the output and returns the exit status: `status`, but 0 after EPIPE and 1 after any other failed write. */
int output_finish(int status);

/* True if standard output is to be coloured, which depends on the terminal's abilities, NO_COLOR, CLICOLOR_FORCE, and `choice`, the value
 * of --color ("auto", "always", "never"; may be NULL). */
bool output_colour(const char *choice);

/* Returns the width of the terminal on standard output in columns; 0 if it is no terminal or the width is unknown. */
unsigned output_width(void);

/* Returns the width of a text in columns: its number of characters. */
int output_columns(struct sl_str text);
/* Appends the text; if it is wider than `columns`, "..." replaces its middle. */
void output_put_trimmed(struct sl_buf *out, struct sl_str text, size_t columns);

/* Tells the signal handler whether a progress line is on the terminal: a signal that ends the program then erases it. */
void output_line_drawn(bool drawn);

/* Sets a function that runs when a signal ends the program, after unfinished output files were removed (cache_tmp_abandon); NULL: none. It
 * must be async-signal-safe. */
void output_handle_signal(void (*clean)(void));

/* Appends text that came from a file, with its control characters escaped so that they cannot reach a terminal. */
void output_put_safe(struct sl_buf *out, struct sl_str text);
/* Appends text with its control characters escaped, except `kept`: '\n' or '\t'. */
void output_put_safe_but(struct sl_buf *out, struct sl_str text, char kept);

/* A file that gets its name only once it is complete: if the program is killed before, nothing appears under that name. FIFOs and
 * devices are written in place. */
struct output_file {
    int fd;
    /* `temporary` is the file's name until it is complete; empty: the file at `path` is written in place */
    char path[4096], temporary[4096];
    struct sl_buf pending;
    int failed; /* errno of the first write that failed */
};
enum sl_code output_file_open(struct output_file *file, const char *path, struct sl_error *error);
/* Creates a file with an unpredictable name, `file->temporary`, in temp_dir(). The caller reads it by that name and removes it. */
enum sl_code output_file_temporary(struct output_file *file, struct sl_error *error);
bool output_file_write(struct output_file *file, struct sl_str text);
/* Publishes the file, or removes it if `publishes` is false. If a write has failed, the file is removed and that error is returned. */
enum sl_code output_file_close(struct output_file *file, bool publishes, struct sl_error *error);
/* Creates a directory for results unless it exists. Returns 0, or an exit status after a report. */
int output_directory(const char *path);
/* Writes a whole file, which gets its name only once it is complete. */
enum sl_code output_file_put(const char *path, struct sl_bytes bytes, struct sl_error *error);

/* Prints "error: <message>" and, unless `cause` is NULL or empty, "  caused by: <cause>" on stderr. Returns `status`. */
int report_error(int status, const char *message, const char *cause);
int report_no_memory(void); /* returns 1 */
/* Prints lines on stderr without a prefix; arguments as for printf. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_note_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
/* Returns the exit status for a file that could not be processed: STATUS_NOTHING if it is malformed or not supported, else 1. */
int status_of_code(enum sl_code code);
/* Reports that a file could not be processed, and why. Returns the exit status. */
int report_file_error(const char *path, enum sl_code code, const struct sl_error *error);

/* ---- debug_file.c, files.c: files ---- */

/* Creates a file in temp_dir() and unlinks it. Returns its descriptor, or -1 with errno set. */
int temporary_file(void);

/* Reads a pipe, standard input or a file of /proc to its end and appends it to `out`. `path` is for error messages. */
enum sl_code read_stream(int fd, const char *path, struct sl_buf *out, struct sl_error *error);

/* Returns the architecture of this machine; SL_ARCH_UNKNOWN if enum sl_arch has no value for it. */
enum sl_arch machine_arch(void);

/* True for a ZIP archive whose members are files to read, such as compressed debug files. False for a source bundle: that is a ZIP archive
 * too, but is opened as one object. */
bool is_zip_of_files(struct sl_bytes bytes);

/* Maps a file. A compressed one (gzip, zstd, zlib, xz, zip, cabinet: the formats of downloads) is unpacked into an unlinked file first.
 * SL_MALFORMED if the compressed data are damaged; other errors as for sl_map_file. */
enum sl_code map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error);
/* Replaces the mapping of a compressed file by one of its contents. On an error the mapping stays as it is. */
enum sl_code map_unpacked(struct sl_mapping *mapping, struct sl_error *error);

bool path_is_directory(const char *path);
/* True if both paths name one regular file, perhaps through links; equal paths do, even if there is no such file. */
bool is_same_file(const char *a, const char *b);
/* Returns the DWARF file in a .dSYM bundle: of several, the first by name. NULL if there is none; the caller frees. */
char *find_dsym_file(const char *directory);

/* A separate file with an object's debug information. */
struct debug_file {
    char *path;
    struct sl_mapping mapping;
    struct sl_object *object; /* NULL: none was found */
};

struct input;

/* Searches for the debug information of an object that was read from `path`. For Mach-O: in the .dSYM bundles `dsym_hints`, then beside the
 * file; for ELF: by build id and debug link, also below `directories` (NULL: /usr/lib/debug); for PE and WASM: beside the file. Both lists
 * end with NULL or are NULL. False when no file belongs to the object: the notes of `input` (may be NULL) then say what was searched, or
 * why a file that was found is not the right one. The caller closes `file` in either case. */
bool debug_file_find(const struct sl_object *object, const char *path, const char *const *directories,
                     const char *const *dsym_hints, struct debug_file *file, struct input *input);
void debug_file_close(struct debug_file *file);
/* Builds the path of a build id's debug file (lower-case hex) below a directory, `.build-id/ab/cdef...debug` (GDB manual, "Separate
 * Debug Files"). False when the id is too short, or the path too long. */
bool build_id_path(const char *directory, struct sl_str id, char path[4096]);
extern const char *const usual_debug_directories[]; /* /usr/lib/debug; ends with NULL */
/* Opens the object in the file `bytes` that has the debug information of `object`, as `*debug`; false when there is none. */
bool debug_file_select_object(const struct sl_object *object, struct sl_bytes bytes, struct sl_object **debug);

/* ---- files.c: inputs ---- */

/* Returns the last component of a path; both `\` and `/` separate. */
struct sl_str path_file_name(struct sl_str path);

/* How to open a file. Every member may be NULL or false. */
struct input_options {
    const char *arch;                      /* architecture of the wanted object, in a file with several */
    const struct sl_object_wanted *wanted; /* ids that the object must have */
    const char *const *debug_directories;  /* where separate debug files are searched; ends with NULL */
    const char *const *dsym_hints;         /* .dSYM bundles that are searched for a debug file; ends with NULL */
    const char *dwp, *supplementary;       /* DWARF package and dwz file; NULL: search those that the input names */
    bool find_debug;                       /* use the separate debug file of a file without debug information */
    bool positions;                        /* convert columns as well */
    bool nameless_lines;                   /* convert lines of code outside of every function, too */
    bool written_paths;                    /* keep `..` in paths */
    bool relative_names;                   /* leave out the compilation directory */
};

/* An opened debug file, symbfile or symcache; converted to a symcache on demand. */
struct input {
    char *path; /* of the opened file: for a .dSYM directory, the file in it */
    struct sl_mapping mapping;
    struct sl_buf read; /* the contents, instead of the mapping, if it is no regular file */
    struct sl_archive archive;
    struct sl_object *object; /* NULL for a symcache and a symbfile */
    struct debug_file debug;  /* the separate debug file of an object without debug information, if found */
    struct sl_object *companions[2];
    struct sl_mapping companion_mappings[2];
    struct sl_buf converted;
    struct sl_symcache cache;
    bool has_cache, is_symbfile;
    /* `cache` has the frames that a symbfile gives for single return addresses: a nameless function, not shown, encloses all others */
    bool has_root;
    bool has_dwo;        /* the conversion read .dwo files or object files of a debug map, or looked for some */
    bool alone;          /* downloaded, or a member of a library: do not look for companion files beside it */
    struct sl_buf notes; /* lines that say which debug information is missing, and where it was searched */
    const struct input_options *options;
};

/* Opens the file (`-` is standard input); `options` (may be NULL) must outlive the input. SL_MALFORMED: no known format. SL_NOT_FOUND:
 * no such file, or no object with the wanted ids. SL_UNSUPPORTED: no object of the wanted architecture, or several objects and none of
 * this machine's. The caller closes `*input` in either case. */
enum sl_code input_open(const char *path, const struct input_options *options, struct input *input,
                        struct sl_error *error);

/* Opens a file that was downloaded, with the options and errors of input_open. `bytes` stay the caller's and must outlive the input;
 * messages and headings call it `name`. */
enum sl_code input_open_bytes(const char *name, struct sl_bytes bytes, const struct input_options *options,
                              struct input *input, struct sl_error *error);

/* Maps the file and opens it as an archive, but none of its objects: the caller can then open one after the other in input->object. A
 * symcache is opened, too, and sets `has_cache`. */
enum sl_code input_open_archive(const char *path, struct input *input, struct sl_error *error);

/* Returns the object with the debug information: the separate debug file if one was found, else the file itself. */
struct sl_object *input_debug(const struct input *input);

/* Attaches a separate debug file. False when it belongs to another object, or the object has debug information already. The bytes stay
 * the caller's. */
bool input_set_debug(struct input *input, struct sl_bytes bytes);

/* Returns the build id of the supplementary file that the debug information names (DWARF 5, 7.3.6; .gnu_debugaltlink); empty when it
 * names none. input_set_supplementary attaches that file, whose bytes stay the caller's. */
struct sl_bytes input_wants_supplementary(const struct input *input);
void input_set_supplementary(struct input *input, struct sl_bytes bytes);
/* Sets `path` to that of the supplementary file; false when none is named, or the path is not usable on this machine. */
bool input_supplementary_path(const struct input *input, char path[4096]);

/* Passes every function of the debug information to the sink. Also reads `<file>.dwp`, the .dwo files and the supplementary file (dwz) that
 * the input names, where they exist. */
enum sl_code input_read_functions(struct input *input, const struct sl_parallel *parallel,
                                  struct sl_function_sink *sink, struct sl_error *error);

/* Adds a line (printf arguments) to input->notes, unless it is there already. */
void input_note(struct input *input, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Checks the first `most` compilation units: adds a line to input->notes for each split unit whose DWARF package or .dwo file is
 * missing. */
void input_add_note_split_units(struct input *input, size_t most);

/* Sets input->cache: converts the input and its companion files to a symcache, with `jobs` threads (0 = all cores). */
enum sl_code input_convert(struct input *input, unsigned jobs, struct sl_error *error);

/* Converts only what the given addresses need (sl_symcache_convert_around) to the symcache `cache` in `bytes`, which the caller frees. Only
 * if input_has_parts. Each call raises the work limit by the file's size, because it may read the same parts of the file again. */
enum sl_code input_convert_around(struct input *input, const uint64_t *addresses, size_t count, unsigned jobs,
                                  struct sl_buf *bytes, struct sl_symcache *cache, struct sl_error *error);
/* True if the functions at some addresses can be read without all others. */
bool input_has_parts(const struct input *input);

/* True if the converted symcache has columns. */
bool input_has_positions(const struct input *input);
/* Closes the object, its separate debug file and its companion files, so that another object of the file can be opened. */
void input_close_object(struct input *input);
void input_close(struct input *input);

/* Appends the architectures of a file's objects: "x86_64, arm64". */
void input_list_archs(const struct sl_archive *archive, struct sl_buf *out);

/* ---- bundle/bundle.c ---- */

/* Packs the sources that the opened object of `path` names, if they are on this machine, into a source bundle in `bytes`. `*some`: at least
 * one was packed; otherwise there is no bundle. `tell`: report on stderr what was left out. */
enum sl_code bundle_object_sources(const char *path, struct input *input, bool tell, struct sl_buf *bytes, bool *some,
                                   struct sl_error *error);

/* ---- key.c ---- */

/* Writes the credentials that follow "APIKey " in an Authorization header: base64 as issued, or encoded from "id:key". False if `size`
 * is too small. */
bool access_key_encode(const char *key, char *out, size_t size);

/* ---- heap.c ---- */

/* Tunes malloc for a process that does one job and ends: freed memory is kept for reuse, and the heap uses huge pages, which saves page
 * faults. Call it before any thread starts. */
void heap_configure_for_one_job(void);

/* ---- threads.c ---- */

/* Returns a sl_parallel with `jobs` threads of its own (0 = $SYMLOOM_JOBS, else as many as usable cores). It lives as long as the
 * process. */
const struct sl_parallel *threads_parallel(unsigned jobs);
