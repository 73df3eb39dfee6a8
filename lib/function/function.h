/* The stream of functions: readers of debug formats produce it, writers of cache files consume it.
 *
 *     reader ──batches of struct sl_function, in file order──▶ sink (symcache writer, Breakpad writer, symbfile writer)
 *
 * A reader delivers *batches*, usually one per compilation unit. Batches may be built on several threads. The sink's `prepare`
 * (optional) is called on such a thread for work that needs no order; `consume` is called in file order, one at a time, on
 * any of the threads. Everything a batch points to is valid until `consume` returns; text is valid longer if `lasting` is set.
 *
 * Addresses are relative to the object's load address. Within one function, lines are sorted by address and do not
 * overlap; where an inlined call covers code, the caller's lines have a record with the *call* line for that range
 * (function/assemble.h makes this form from flat records). */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"

enum sl_language {
    SL_LANG_UNKNOWN,
    SL_LANG_C,
    SL_LANG_CPP,
    SL_LANG_D,
    SL_LANG_GO,
    SL_LANG_OBJC,
    SL_LANG_OBJCPP,
    SL_LANG_RUST,
    SL_LANG_SWIFT,
    SL_LANG_CSHARP,
    SL_LANG_VISUALBASIC,
    SL_LANG_FSHARP,
};
const char *sl_language_name(enum sl_language language); /* "unknown", "c", "cpp" ... */
bool sl_language_parse(struct sl_str name, enum sl_language *language);

/* A source file as the debug information splits it; any part may be empty. The full path is
 * sl_path_clean(join(join(comp_dir, directory), name)) of function/path.h. */
struct sl_file {
    struct sl_str comp_dir, directory, name;
    uint32_t number; /* a small id of the file, the same in all batches of the object that are `lasting`; 0 = none */
};

/* Where the text of a source file can be fetched, according to the debug information. Any part may be empty. */
struct sl_file_origin {
    struct sl_str path, revision; /* in a version control system */
    struct sl_str url;            /* http or https; not verified */
};

#define SL_NO_FILE UINT32_MAX

/* A parameter or local variable: its name and the name of its type, as indices into the batch's `variable_texts`. */
struct sl_variable {
    uint32_t name, type;
};

/* The variables of a function, in the order of the debug information. Of several with one name the last one counts. */
struct sl_variables {
    const struct sl_variable *items;
    uint32_t count;
};

struct sl_line {
    uint64_t address;
    uint64_t size; /* bytes; 0 = unknown */
    uint32_t file; /* index into the batch's files, SL_NO_FILE = none */
    uint32_t line; /* 1-based, 0 = unknown */
};

struct sl_function {
    uint64_t address, size;
    struct sl_str name; /* as in the file, possibly mangled; may be empty */
    enum sl_language language;
    uint32_t number; /* a small id of name and language, the same in all `lasting` batches of the object; 0 = none */
    const struct sl_line *lines;
    const struct sl_function *inlinees; /* sorted by address; their `address`/`size` are the inlined range */
    uint32_t line_count, inlinee_count;
    uint32_t call_file, call_line; /* inlinee: where its parent calls it (also in the parent's lines) */
    /* Breakpad's FUNC records, 0 elsewhere: bytes of parameters; the function has several names (`m`). */
    uint32_t parameters : 31, multiple : 1;
    uint32_t variables; /* number of a list of the batch, from 1; 0 = none. Batches with lists are not `lasting` */
};

/* The inlined calls of an outermost function as a flat list (function/assemble.h), in any order. The function's lines are sorted, may
 * overlap, and do not include the calls; its `inlinees` is empty. */
struct sl_flat {
    const struct sl_flat_inlinee *inlinees;
    size_t inlinee_count; /* 0 = the function is in the assembled form */
};

struct sl_function_batch {
    const struct sl_file *files;
    const struct sl_function *functions; /* outermost ones, in file order */
    const struct sl_flat *flats;         /* one per function, only if the sink has `accepts_flat`; may be NULL */
    size_t file_count, function_count;
    const struct sl_variables *variables; /* the lists, if the sink takes them; equal lists are mostly stored once */
    const struct sl_str *variable_texts;
    size_t variables_count, variable_text_count;
    struct sl_str producer; /* DW_AT_producer or the like; may be empty */
    void *prepared;         /* result of the sink's `prepare` */
    /* All text is in memory that does not change while the object is open: a sink may keep it without a copy, and equal pointers mean
     * equal text. */
    bool lasting;
};

enum { SL_MISSING_NAME = 256 }; /* bytes, with the NUL: longer names are cut */

struct sl_function_sink {
    /* Called after the batch was built; may be NULL. `arena` belongs to the batch and lives until `consume` has returned.
     * `worker` is the number of the worker thread (base/parallel.h). */
    void (*prepare)(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                    unsigned worker);
    /* Called in file order. Any code but SL_OK stops the reader, which then returns it. */
    enum sl_code (*consume)(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error);
    bool accepts_flat;     /* takes inlined calls as flat lists (`flats`), and makes trees of them if it has to */
    bool debug_info_only;  /* wants only functions and names of the debug information, without symbols */
    bool accepts_nameless; /* DWARF: wants lines that no symbol covers, as functions without name */
    bool needs_positions;  /* wants lines, also of calls, as positions (function/position.h) if there are columns */
    bool needs_variables;  /* DWARF: wants variables of functions and inlined calls */
    /* Optional: only functions at these addresses (ascending) are needed. A reader may skip units that have none of them; the
     * DWARF reader does. */
    const uint64_t *wanted;
    size_t wanted_count;
    size_t skipped_units;          /* set by the reader: units (or records) dropped as malformed */
    struct sl_error first_skipped; /* the first of them, and why; the message may be empty */
    /* Set by the DWARF reader: units with code whose package or .dwo file was not available. */
    size_t missing_units;
    char first_missing[SL_MISSING_NAME]; /* DW_AT_dwo_name of the first of them */
};

/* Adds skipped and missing units of `from`, a sink that wraps `into`, to `into`. */
void sl_function_sink_add_gaps(struct sl_function_sink *into, const struct sl_function_sink *from);
