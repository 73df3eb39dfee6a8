/* Symcaches (`SLSC`): address -> chain of (function, file, line), innermost inlinee first.
 *
 * Written from the function stream of one object and its symbols; used in place from a mapping: opening validates a
 * fixed header and the section table, a lookup decodes at most one block of 64 entries and allocates nothing.
 * Little-endian and position independent on every host; the layout is in format.h. A damaged file yields "no symbol",
 * never a crash. Lookups are pure reads: any number of threads may share one. */
#pragma once

#include "base/buf.h"
#include "function/function.h"
#include "object/object.h"
#include "table/table.h"

/* ---- writing ---- */

struct sl_symcache_writer;

struct sl_symcache_options {
    enum sl_arch arch;
    struct sl_debug_id debug_id;
    uint64_t image_size;
    uint64_t load_address; /* what was subtracted from the object's addresses; stored for lookups by those addresses */
    bool decorates;        /* strip C decoration from names of symbols; sl_symcache_convert sets it from its object */
    struct sl_str module_file; /* optional: the module's file name, stored in a section of its own */
    /* Optional: rewrite a function name, or a line's file and line, before storing (BCSymbolMap, il2cpp). Called from several
     * threads. Returned text must live until the writer is finished. */
    struct sl_str (*map_name)(void *arg, struct sl_str name);
    bool (*map_line)(void *arg, const struct sl_file *file, uint32_t line, struct sl_file *new_file,
                     uint32_t *new_line);
    /* Optional: rewrites the path of a source file; called once per file and unit. */
    void (*map_file)(void *arg, struct sl_file *file);
    void *map_arg;
    /* Optional: the object that gives the origin of source files (sl_object_file_origin). A file that `map_line` returns gets path
     * and revision of the original file, but no URL: the URL leads to the text of the original. */
    struct sl_object *origins;
    /* Optional: is charged for work and memory; sl_symcache_convert sets that of its object. */
    struct sl_budget *budget;
    /* Optional: receives what could not be read. */
    struct sl_symcache_gaps *gaps;
    bool positions;     /* store columns, too (DWARF only); not together with map_line */
    bool variables;     /* store variables of functions (DWARF only) */
    bool written_paths; /* do not clean paths (sl_path_written) */
    bool nameless;      /* keep lines of code that neither a subprogram nor a symbol names */
};

/* The parts of the debug information that could not be read. The file has the rest, and is marked as partial (sl_symcache_is_partial). */
struct sl_symcache_gaps {
    size_t units;          /* units or records dropped as malformed */
    struct sl_error first; /* the first of them, and why; SL_OK if there is none or the format does not report it */
    size_t missing_units;  /* units whose split DWARF file was not available (sl_function_sink) */
    char first_missing[SL_MISSING_NAME];
};

/* Creates a writer. `options` are copied. NULL when out of memory. */
struct sl_symcache_writer *sl_symcache_writer_new(const struct sl_symcache_options *options,
                                                  const struct sl_parallel *parallel);
void sl_symcache_writer_free(struct sl_symcache_writer *writer);

/* Returns the sink to pass to sl_object_read_functions, with the writer's `parallel` or NULL; the writer owns it. Pass the functions in
 * file order, before the symbols are added. */
struct sl_function_sink *sl_symcache_writer_sink(struct sl_symcache_writer *writer);

/* Adds the symbols, in the order of sl_object_symbols: after the functions or, for sl_symcache_writer_in_order(), before them. Their names
 * must live until sl_symcache_writer_finish. */
void sl_symcache_writer_symbols(struct sl_symcache_writer *writer, const struct sl_symbol *symbols, size_t count);

/* Call it after the symbols and before the functions, if functions come in address order and do not overlap: they are then written
 * as they come, which takes less time and memory. If one is out of order the sink fails with SL_UNSUPPORTED. Returns false, without
 * effect, if the writer has several workers: these divide the work at the end. The file is the same. Lack of memory is reported later, by
 * the sink or sl_symcache_writer_finish(). */
bool sl_symcache_writer_in_order(struct sl_symcache_writer *writer);

/* Pads `out` to a multiple of 8 bytes and appends the file. Equal input gives equal bytes, whatever the number of workers. */
enum sl_code sl_symcache_writer_finish(struct sl_symcache_writer *writer, struct sl_buf *out, struct sl_error *error);

/* Converts functions and symbols of one object. `companions` and `parallel` may be NULL. SL_MALFORMED "bad debug file" if it cannot be
 * converted or its work budget is exhausted; SL_UNSUPPORTED if the memory limit of its budget is exceeded; SL_BUSY when out of memory. */
enum sl_code sl_symcache_convert(struct sl_object *object, const struct sl_companions *companions,
                                 const struct sl_symcache_options *options, const struct sl_parallel *parallel,
                                 struct sl_buf *out, struct sl_error *error);

/* Converts only the part of the object that `addresses` (relative, ascending) need. The file is valid only for these addresses: where
 * it has a line, the answer is that of the whole object's file; where it has none, convert the whole object. Of DWARF, units elsewhere
 * are not read (sl_function_sink.wanted); other formats are read whole. */
enum sl_code sl_symcache_convert_around(struct sl_object *object, const struct sl_companions *companions,
                                        const struct sl_symcache_options *options, const uint64_t *addresses,
                                        size_t count, const struct sl_parallel *parallel, struct sl_buf *out,
                                        struct sl_error *error);

/* ---- reading ---- */

enum { SL_SYMCACHE_COLUMNS = 16 };

struct sl_symcache {
    struct sl_table table; /* this and the members up to block_count: private to reader.c */
    struct sl_table_units blocks;
    struct sl_column columns[SL_SYMCACHE_COLUMNS];
    struct sl_table_strings strings;
    uint64_t block_count;
    struct sl_debug_id debug_id;
    enum sl_arch arch;
    uint32_t flags;
    uint64_t image_size, load_address;
    uint64_t entry_count, function_count, file_count, context_count, string_count, variable_count;
};

/* Validates header and section table in O(1); SL_MALFORMED if they are bad. `cache` points into `bytes`, which must outlive it and
 * be 8-aligned. */
enum sl_code sl_symcache_open(struct sl_bytes bytes, struct sl_symcache *cache, struct sl_error *error);

/* Checks the hash of the contents and that every entry decodes; for untrusted files. */
enum sl_code sl_symcache_verify(const struct sl_symcache *cache, struct sl_error *error);

/* True if some debug information could not be read. */
bool sl_symcache_is_partial(const struct sl_symcache *cache);
/* True if functions and inlined calls of some units are missing, because their package or .dwo file was not available. */
bool sl_symcache_lacks_units(const struct sl_symcache *cache);

#define SL_SYMCACHE_NONE UINT32_MAX

struct sl_location {
    uint32_t function; /* id for sl_symcache_function */
    uint32_t file;     /* id for sl_symcache_file, SL_SYMCACHE_NONE = none */
    uint32_t line;     /* 0 = unknown; for an outer function the line of the call */
    uint32_t column;   /* 0 = unknown, or the file was written without columns */
};

/* Looks up the inline chain at `address`, innermost first, the outermost function last. Stores at most `capacity` elements and
 * returns their full number, which may be larger. 0 = no symbol. */
size_t sl_symcache_lookup(const struct sl_symcache *cache, uint64_t address, struct sl_location *chain,
                          size_t capacity);

#define SL_SYMCACHE_MAX_CHAIN 1024

/* Sets `start` to the first address of the entry that covers `address`. False if `address` has no symbol. */
bool sl_symcache_entry_start(const struct sl_symcache *cache, uint64_t address, uint64_t *start);

/* Sets `function` to the outermost function at `address` or, if `address` has no symbol, to the last one in front of it. Its file and line
 * are left unknown. False if there is none. */
bool sl_symcache_function_before(const struct sl_symcache *cache, uint64_t address, struct sl_location *function);

struct sl_symcache_function {
    uint32_t name; /* string id */
    enum sl_language language;
    uint64_t entry; /* UINT64_MAX for an inlinee */
};
/* Reads function `id`; false if there is none with this id. */
bool sl_symcache_function(const struct sl_symcache *cache, uint32_t id, struct sl_symcache_function *function);

/* Returns how many parameters and local variables a function has, and sets `*first` to the number of the first one for
 * sl_symcache_variable(); the others follow. 0 if the file was written without variables. An inlined call has its own variables. */
uint32_t sl_symcache_variables(const struct sl_symcache *cache, uint32_t function, uint32_t *first);

struct sl_symcache_variable {
    uint32_t name; /* string id; ascending within a function */
    uint32_t type; /* string id; as C writes it, without enclosing namespaces: `char*` */
};
/* Reads variable `number`; false if there is none, or if the file is damaged so that a text of it is missing. */
bool sl_symcache_variable(const struct sl_symcache *cache, uint32_t number, struct sl_symcache_variable *variable);

/* Returns the number of bytes from the function's entry to the first code that is not part of it; calls inlined in it are part of it. 0 =
 * unknown: an inlined function, one without entry, or a damaged file. */
uint64_t sl_symcache_function_size(const struct sl_symcache *cache, uint32_t id);

struct sl_symcache_named { /* a name to look for, and the result */
    struct sl_str name;
    size_t item;     /* for the caller, who recognizes the item by it after sorting; not used here */
    uint64_t entry;  /* of a function with this name */
    unsigned found;  /* 0: no function has it; 1: `entry` is the only address; 2: there are several */
    uint32_t string; /* private */
};

/* Finds functions by their names, as they are stored: those of C++ and Rust are usually mangled. Sets `entry` and `found` of each item
 * of `named`, and sorts the items. Takes O(functions + names). False when out of memory. */
bool sl_symcache_find_named(const struct sl_symcache *cache, struct sl_symcache_named *named, size_t count);

/* Append the text to `out`, or nothing if the id is bad. A file's text is its full, cleaned path. */
void sl_symcache_string(const struct sl_symcache *cache, uint32_t string_id, struct sl_buf *out);
void sl_symcache_file(const struct sl_symcache *cache, uint32_t file_id, struct sl_buf *out);

/* Where the text of a source file can be fetched: ids for sl_symcache_string; SL_SYMCACHE_NONE = none. */
struct sl_symcache_origin {
    uint32_t path, revision; /* in a version control system */
    uint32_t url;
};

/* Reads the origin of a source file. False if it is unknown. */
bool sl_symcache_origin(const struct sl_symcache *cache, uint32_t file_id, struct sl_symcache_origin *origin);

/* Returns the module's file name from the writer's options; may be empty. */
struct sl_str sl_symcache_module_file(const struct sl_symcache *cache);

/* Iterates over the entries of the address map, in address order: each begins at `address`, and is a `hole` if the code from there on has
 * no symbol. For tools and tests. */
struct sl_symcache_cursor {
    uint64_t index, address;
    bool hole;
    uint64_t block; /* private */
};
void sl_symcache_first(const struct sl_symcache *cache, struct sl_symcache_cursor *cursor);
/* Moves to the next entry; false after the last one, or if it cannot be decoded. */
bool sl_symcache_next(const struct sl_symcache *cache, struct sl_symcache_cursor *cursor);
