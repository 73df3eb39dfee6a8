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
    uint64_t load_address;     /* what the addresses are relative to, for those who ask by addresses of the file */
    bool decorates;            /* C decoration is removed from names of symbols; sl_symcache_convert asks its object */
    struct sl_str module_file; /* optional: the module's file name, kept in a section of its own */
    /* Optional: rewrites a function name or a line's file and line before storing (BCSymbolMap, il2cpp). May be called
     * from several threads. NULL = none. Returned text must live until the writer is finished. */
    struct sl_str (*map_name)(void *arg, struct sl_str name);
    bool (*map_line)(void *arg, const struct sl_file *file, uint32_t line, struct sl_file *new_file,
                     uint32_t *new_line);
    /* Optional: rewrites a file, whatever the line; asked once for each in a unit. */
    void (*map_file)(void *arg, struct sl_file *file);
    void *map_arg;
    /* Optional: an object that says where its files are kept (sl_object_file_origin). A file that `map_line` led to has path
     * and revision of the one that it was led from, but no link: the text behind that is another. */
    struct sl_object *origins;
    /* Optional: what work and memory are taken from, that of the file; sl_symcache_convert takes that of its object. */
    struct sl_budget *budget;
    /* Optional: what the file does not hold is told here. */
    struct sl_symcache_gaps *gaps;
    bool
        positions; /* lines are positions (function/position.h), where the object has columns: for who made the file alone */
    bool variables;     /* functions have their variables, where the object knows some: of DWARF */
    bool written_paths; /* paths are not cleaned (sl_path_written) */
    bool nameless;      /* lines are kept also where neither an entry nor a symbol names the code */
};

/* What could not be read of the debug information: the file is made of the rest, and says so (sl_symcache_is_partial). */
struct sl_symcache_gaps {
    size_t units;          /* or records, dropped as malformed */
    struct sl_error first; /* which was the first, and why; SL_OK when there is none or the format does not say */
    size_t missing_units;  /* whose functions are in a file that was not to be had (sl_function_sink) */
    char first_missing[SL_MISSING_NAME];
};

/* NULL when out of memory. */
struct sl_symcache_writer *sl_symcache_writer_new(const struct sl_symcache_options *options,
                                                  const struct sl_parallel *parallel);
void sl_symcache_writer_free(struct sl_symcache_writer *writer);

/* The sink to hand to sl_object_read_functions, with the `parallel` of the writer or none; owned by the writer. Functions
 * first, in file order... */
struct sl_function_sink *sl_symcache_writer_sink(struct sl_symcache_writer *writer);

/* ...then the symbols, in the order of sl_object_symbols. The names must live until `finish`. */
void sl_symcache_writer_symbols(struct sl_symcache_writer *writer, const struct sl_symbol *symbols, size_t count);

/* After the symbols and before the functions: these come in address order and do not overlap, and are written as they come,
 * which takes less time and memory. Where they do not, the sink refuses one with SL_UNSUPPORTED. False,
 * and without effect, when several workers write: they share the work out when all is known. The file is the same. */
bool sl_symcache_writer_in_order(struct sl_symcache_writer *writer);

/* Builds the file into `out` (appended at its current, 8-aligned end). Equal input gives equal bytes, whatever the
 * number of workers. */
enum sl_code sl_symcache_writer_finish(struct sl_symcache_writer *writer, struct sl_buf *out, struct sl_error *error);

/* The whole conversion: functions, then symbols, of one object. `companions`, `parallel` may be NULL.
 * SL_MALFORMED "bad debug file" when it cannot be converted, or takes more work than a file of its size may; SL_UNSUPPORTED
 * over a limit of its budget; SL_BUSY out of memory. */
enum sl_code sl_symcache_convert(struct sl_object *object, const struct sl_companions *companions,
                                 const struct sl_symcache_options *options, const struct sl_parallel *parallel,
                                 struct sl_buf *out, struct sl_error *error);

/* The same of as little of the object as has to be read for `addresses` (relative, ascending): the file answers for these alone,
 * and for an address where it knows a line, as that of the whole object does. Where it knows none the whole object has to be
 * asked. DWARF is left out unit by unit (sl_function_sink.wanted), other formats are read whole. */
enum sl_code sl_symcache_convert_around(struct sl_object *object, const struct sl_companions *companions,
                                        const struct sl_symcache_options *options, const uint64_t *addresses,
                                        size_t count, const struct sl_parallel *parallel, struct sl_buf *out,
                                        struct sl_error *error);

/* ---- reading ---- */

enum { SL_SYMCACHE_COLUMNS = 16 };

struct sl_symcache {
    struct sl_table table; /* this and what follows up to the id: private to reader.c */
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

/* Validates header and section table, O(1). SL_MALFORMED otherwise. `cache` points into `bytes`, which must outlive it
 * and be 8-aligned. */
enum sl_code sl_symcache_open(struct sl_bytes bytes, struct sl_symcache *cache, struct sl_error *error);

/* Checks the hash of the contents and that every entry decodes; for files from outside. */
enum sl_code sl_symcache_verify(const struct sl_symcache *cache, struct sl_error *error);

/* Whether some of the debug information it was made from could not be read. */
bool sl_symcache_is_partial(const struct sl_symcache *cache);
/* Whether functions and inlined calls of some units are in packages or .dwo files that were not to be had. */
bool sl_symcache_lacks_units(const struct sl_symcache *cache);

#define SL_SYMCACHE_NONE UINT32_MAX

struct sl_location {
    uint32_t function; /* id for sl_symcache_function */
    uint32_t file;     /* id for sl_symcache_file, SL_SYMCACHE_NONE = none */
    uint32_t line;     /* 0 = not known; of an outer element: the call's line */
};

/* The chain at `address`, innermost first, the real function last: at most `capacity` elements are stored, the number
 * of elements is returned (may be larger). 0 = no symbol. */
size_t sl_symcache_lookup(const struct sl_symcache *cache, uint64_t address, struct sl_location *chain,
                          size_t capacity);

#define SL_SYMCACHE_MAX_CHAIN 1024

/* From which address on the chain is the one at `address`. False when it has none. */
bool sl_symcache_start(const struct sl_symcache *cache, uint64_t address, uint64_t *start);

/* Of an address that has no symbol: the real function of what begins last in front of it. Its file and line are none. False
 * when there is nothing in front. */
bool sl_symcache_nearest(const struct sl_symcache *cache, uint64_t address, struct sl_location *function);

struct sl_symcache_function {
    uint32_t name; /* string id */
    enum sl_language language;
    uint64_t entry; /* UINT64_MAX for an inlinee */
};
bool sl_symcache_function(const struct sl_symcache *cache, uint32_t id, struct sl_symcache_function *function);

/* The parameters and local variables of a function, when the file was written with them: how many there are, and the number of
 * the first. Those of an inlined call are those that it has there. */
uint32_t sl_symcache_variables(const struct sl_symcache *cache, uint32_t function, uint32_t *first);

struct sl_symcache_variable { /* string ids */
    uint32_t name;            /* they ascend within a function */
    uint32_t type;            /* as C writes it, without the namespaces around names: `char*` */
};
bool sl_symcache_variable(const struct sl_symcache *cache, uint32_t number, struct sl_symcache_variable *variable);

/* How many bytes from its entry on are the function's, inlined calls among them. 0: it is not known. */
uint64_t sl_symcache_function_size(const struct sl_symcache *cache, uint32_t id);

/* Appends the text to `out`; nothing when the id is bad. A file's text is its full, cleaned path. */
void sl_symcache_string(const struct sl_symcache *cache, uint32_t string_id, struct sl_buf *out);
void sl_symcache_file(const struct sl_symcache *cache, uint32_t file_id, struct sl_buf *out);

/* Where the file is kept, as ids for sl_symcache_string; SL_SYMCACHE_NONE = none. False when nothing is known. */
struct sl_symcache_origin {
    uint32_t path, revision; /* in a version control system */
    uint32_t url;
};
bool sl_symcache_origin(const struct sl_symcache *cache, uint32_t file_id, struct sl_symcache_origin *origin);

/* The module's file name of the writer's options; empty when none. */
struct sl_str sl_symcache_module_file(const struct sl_symcache *cache);

/* All entries ascending: address and whether a hole begins there. For tools, tests and merging. */
struct sl_symcache_cursor {
    uint64_t index, address;
    bool hole;
    uint64_t block; /* private */
};
void sl_symcache_first(const struct sl_symcache *cache, struct sl_symcache_cursor *cursor);
bool sl_symcache_next(const struct sl_symcache *cache, struct sl_symcache_cursor *cursor);
