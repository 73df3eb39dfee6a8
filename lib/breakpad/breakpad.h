/* Writing Breakpad symbol files (Breakpad, docs/symbol_files.md): the text form of a debug file that crash reporters
 * exchange. Reading them is object/.
 *
 *     functions of one or more objects ──sink──▶ compact records ──finish──▶ sorted text, piece by piece
 *
 * The text is ordered by address and depends on the input alone, not on the number of threads. What lines of code belong
 * to follows the rules of the symcache, so that a file read back answers as the one it was made from; what the format
 * cannot say is lost: the end of a symbol without a function, and symbols inside functions. Where a symbol inside of another one
 * ends there is a record of the outer one (object/nesting.h).
 *
 * In memory are the records (a few bytes a line) and every name once; the text itself never is. */
#pragma once

#include "function/function.h"
#include "object/object.h"

struct sl_breakpad_options {
    /* MODULE */
    struct sl_str os;   /* "Linux", "mac", "windows" */
    struct sl_str arch; /* sl_arch_name */
    struct sl_str id;   /* Breakpad form of the debug id */
    struct sl_str name; /* of the debug file, without directories */

    struct sl_budget *budget; /* what memory is taken from, of the main object; NULL = none */

    struct sl_str unnamed; /* name of code that has none: sl_breakpad_writer_unnamed */

    const struct sl_str *infos; /* what stands behind `INFO ` on each line of the header */
    size_t info_count;

    uint64_t base;      /* added to every address */
    bool header_only;   /* MODULE and INFO alone */
    bool inlines;       /* INLINE_ORIGIN and INLINE records; without them inlined lines belong to the function around */
    bool multiple;      /* mark with `m` what has several names: symbols, or functions of one range */
    bool prefer_public; /* where a symbol stands at a function's start, its name is the function's */
    bool decorates;     /* C decoration is removed from the names of symbols, and tells the size of parameters */

    /* Optional: the path to write in place of a file's. The result must live until the writer is freed. */
    struct sl_str (*map_path)(void *arg, struct sl_str path);
    void *map_arg;
};

struct sl_breakpad_writer;

/* `options` and what they point to must outlive the writer. NULL when out of memory. */
struct sl_breakpad_writer *sl_breakpad_writer_new(const struct sl_breakpad_options *options);
void sl_breakpad_writer_free(struct sl_breakpad_writer *writer); /* may be NULL */

/* The sink to hand to sl_object_read_functions, any number of times; owned by the writer. Of functions that several
 * inputs have at the same place, the last one stays. */
struct sl_function_sink *sl_breakpad_writer_sink(struct sl_breakpad_writer *writer);

/* Symbols that become PUBLIC records where no function is. Of several at one address the first one stays. The names must
 * live until the writer is freed. False when out of memory. */
bool sl_breakpad_writer_symbols(struct sl_breakpad_writer *writer, const struct sl_symbol *symbols, size_t count);

/* Code of which only unwind information knows: it becomes a FUNC record with the name of the options where neither function nor
 * symbol is. False when out of memory. */
bool sl_breakpad_writer_unnamed(struct sl_breakpad_writer *writer, uint64_t address, uint64_t size);

/* Where the text goes, in pieces that end anywhere. False stops the writer. */
struct sl_breakpad_output {
    bool (*write)(void *arg, struct sl_str text);
    void *arg;
};

/* Writes the file, but for its STACK records; once for each writer. SL_BUSY when out of memory, SL_UNSUPPORTED over the budget's,
 * SL_CANCELLED when the
 * output wanted no more. */
enum sl_code sl_breakpad_writer_finish(struct sl_breakpad_writer *writer, const struct sl_breakpad_output *output,
                                       struct sl_error *error);
