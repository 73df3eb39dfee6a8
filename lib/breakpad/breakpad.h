/* Writes Breakpad symbol files (Breakpad, docs/symbol_files.md), the text format in which crash reporters exchange debug
 * information. The reader is in object/.
 *
 *     functions of one or more objects ──sink──▶ compact records ──finish──▶ sorted text, in parts
 *
 * The text is in address order and depends on the input only, not on the number of threads. Functions and lines that overlap are
 * resolved by the rules of lib/symcache, so the text gives an address the function and line that the object gives it. The format cannot
 * express the end of a symbol without a function, or symbols inside functions; they are lost. Where a symbol nested in another one
 * ends, the outer one gets another PUBLIC record (object/nesting.h).
 *
 *     MODULE Linux x86_64 771E29AE70984DE9808E784491B032790 shapes
 *     FILE 0 shapes.c
 *     FUNC 1106 7 0 square
 *     1106 7 3 0
 *     PUBLIC 2000 0 _start
 *
 * Memory contains the records (a few bytes a line) and every name once, but never the whole text. */
#pragma once

#include "function/function.h"
#include "object/object.h"

struct sl_breakpad_options {
    /* fields of the MODULE record */
    struct sl_str os;   /* "Linux", "mac", "windows" */
    struct sl_str arch; /* sl_arch_name */
    struct sl_str id;   /* the debug id in Breakpad's form */
    struct sl_str name; /* name of the debug file, without directories */

    struct sl_budget *budget; /* budget of the main object, charged for memory; NULL = unlimited */

    struct sl_str unnamed; /* name for code known from unwind information only; see sl_breakpad_writer_unnamed() */

    const struct sl_str *infos; /* text of the INFO records, without `INFO ` */
    size_t info_count;

    uint64_t base;    /* added to every address */
    bool header_only; /* only MODULE and INFO */
    bool inlines;     /* write INLINE_ORIGIN and INLINE records; else inlined lines belong to the outer function */
    bool multiple;    /* mark a record with `m` if symbols at its address or functions with its range differ in name */
    bool prefer_public; /* a symbol at a function's start replaces its name */
    bool decorates;     /* remove C decoration from symbol names, `_f@8`: 8 is the size of the parameters */

    /* Optional: returns the path to write for a file. The result must live until the writer is freed. */
    struct sl_str (*map_path)(void *arg, struct sl_str path);
    void *map_arg;
};

struct sl_breakpad_writer;

/* Creates a writer; `options` and everything it points to must outlive it. NULL when out of memory. */
struct sl_breakpad_writer *sl_breakpad_writer_new(const struct sl_breakpad_options *options);
void sl_breakpad_writer_free(struct sl_breakpad_writer *writer); /* may be NULL */

/* Returns the sink that the caller passes to sl_object_read_functions(), for as many objects as it wants. Owned by the writer. Of several
 * functions with the same range the last one read is kept. */
struct sl_function_sink *sl_breakpad_writer_sink(struct sl_breakpad_writer *writer);

/* Adds symbols, which become PUBLIC records where there is no function. Of several at one address the first one is kept. Names must live
 * until the writer is freed. False when out of memory or above the budget's memory limit. */
bool sl_breakpad_writer_symbols(struct sl_breakpad_writer *writer, const struct sl_symbol *symbols, size_t count);

/* Adds the code of a function that is known from unwind information only. Unless a function has code there or a symbol begins there, it
 * becomes a FUNC record with the name options.unnamed. False when out of memory or above the budget's memory limit. */
bool sl_breakpad_writer_unnamed(struct sl_breakpad_writer *writer, uint64_t address, uint64_t size);

/* Receives the text in parts, which may end within a line. `write` returns false to stop the writer. */
struct sl_breakpad_output {
    bool (*write)(void *arg, struct sl_str text);
    void *arg;
};

/* Writes the file without its STACK records; call it once for each writer. SL_BUSY when out of memory, SL_UNSUPPORTED above the
 * budget's memory limit, SL_CANCELLED when the output stopped the writer. */
enum sl_code sl_breakpad_writer_finish(struct sl_breakpad_writer *writer, const struct sl_breakpad_output *output,
                                       struct sl_error *error);
