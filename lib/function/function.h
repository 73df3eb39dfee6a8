/* The stream of functions: what every debug format is read into and every cache is written from.
 *
 *     reader ──batches of struct sl_function, in file order──▶ sink (symcache writer, Breakpad writer, symbfile writer)
 *
 * A reader delivers *batches*: usually one per compilation unit. Batches may be built on several threads; `prepare` of
 * the sink (optional) is called on such a thread and does the sink's share of the work that needs no order; `consume` is
 * called in file order, one at a time, on any of the threads. Everything a batch points to is valid until `consume`
 * returns; its text longer, if `lasting` says so.
 *
 * Addresses are relative to the object's load address. Within one function, lines are sorted by address and do not
 * overlap; where an inlined call covers code, the caller's lines hold a record with the *call* line for that range
 * (this is what function/assemble.h makes from flat records). */
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
    uint32_t number; /* not 0: that of the file in all lasting batches of the object, small */
};

/* Where the text of a source file is kept, as debug information says. Any part may be empty. */
struct sl_file_origin {
    struct sl_str path, revision; /* in a version control system */
    struct sl_str url;            /* of http or https; a claim, not a fact */
};

#define SL_NO_FILE UINT32_MAX

/* A parameter or local variable: its name, and that of its type as debug information writes it. Both are indices into the
 * batch's `variable_texts`. */
struct sl_variable {
    uint32_t name, type;
};

/* Those of a function, in the order of the debug information: of equal names the last counts. */
struct sl_variables {
    const struct sl_variable *items;
    uint32_t count;
};

struct sl_line {
    uint64_t address;
    uint64_t size; /* bytes; 0 = not known */
    uint32_t file; /* index into the batch's files, SL_NO_FILE = none */
    uint32_t line; /* 1-based, 0 = not known */
};

struct sl_function {
    uint64_t address, size;
    struct sl_str name; /* as stored, mangled if the file has it so; may be empty */
    enum sl_language language;
    uint32_t number; /* not 0: of the name and language in all lasting batches of the object, small */
    const struct sl_line *lines;
    const struct sl_function *inlinees; /* sorted by address; their `address`/`size` are the inlined range */
    uint32_t line_count, inlinee_count;
    uint32_t call_file, call_line; /* of an inlinee: where its parent calls it (already in the parent's lines) */
    /* Of Breakpad's FUNC records, 0 elsewhere: bytes of parameters; whether it has more names than this one. */
    uint32_t parameters : 31, multiple : 1;
    uint32_t variables; /* which of the batch's lists, counted from 1; 0: none. Batches with lists do not last */
};

/* The inlined calls of an outermost function as a list (function/assemble.h), in any order. Its lines are sorted, may
 * overlap, and hold none of the calls; it has no `inlinees`. */
struct sl_flat {
    const struct sl_flat_inlinee *inlinees;
    size_t inlinee_count; /* 0: the function is as described above */
};

struct sl_function_batch {
    const struct sl_file *files;
    const struct sl_function *functions; /* outermost ones, in file order */
    const struct sl_flat *flats;         /* one a function, only if the sink takes them; may be NULL */
    size_t file_count, function_count;
    const struct sl_variables *variables; /* the lists, if the sink takes them; equal ones are one, mostly */
    const struct sl_str *variable_texts;
    size_t variables_count, variable_text_count;
    struct sl_str producer; /* the compiler, as the unit names it; may be empty */
    void *prepared;         /* what the sink's `prepare` made of it */
    /* All text is in memory that stays as it is while the object is open: a sink may keep it without a copy, and where
     * the pointers are equal, so is the text. */
    bool lasting;
};

enum { SL_MISSING_NAME = 256 }; /* bytes, with the NUL: longer names are cut */

struct sl_function_sink {
    /* After the batch was built; may be NULL. `arena` belongs to the batch and lives until
     * `consume` has returned. `worker` as in base/parallel.h. */
    void (*prepare)(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                    unsigned worker);
    /* In file order. Anything but SL_OK stops the reader, which then returns that code. */
    enum sl_code (*consume)(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error);
    bool takes_flat;       /* the sink assembles functions itself, if it has to */
    bool takes_no_symbols; /* functions and names are those of the debug information alone */
    bool takes_nameless;   /* lines of code that no symbol covers are of a function without a name: DWARF */
    bool takes_positions;  /* lines, also those of calls, are positions (function/position.h), where there are any */
    bool takes_variables;  /* functions and inlined calls come with their variables: DWARF */
    /* Optional: of the functions only those at these addresses matter, ascending. What is known to be elsewhere before it is
     * read may be left out: units of DWARF. */
    const uint64_t *wanted;
    size_t wanted_count;
    size_t skipped_units;          /* set by the reader: units (or records) dropped as malformed */
    struct sl_error first_skipped; /* which was the first, and why; the message may be empty */
    /* Set by the reader of DWARF: units with code whose functions are in a package or .dwo file that was not to be had. */
    size_t missing_units;
    char first_missing[SL_MISSING_NAME]; /* the .dwo file of the first of them, as its unit names it */
};

/* Adds what the reader could not read for `from`, a sink that hands on to `into`. */
void sl_function_sink_add_gaps(struct sl_function_sink *into, const struct sl_function_sink *from);
