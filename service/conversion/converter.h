/* Converters: pure functions that make a file and a small result from input files, e.g. a symcache from a debug file.
 *
 * A converter depends on its inputs and options only; it writes `out` and fills its result. It reads no clock and no configuration,
 * opens no file, writes no log or metric and uses no fiber, so it can run in any thread or process. Its result contains whatever the
 * caller logs or counts.
 *
 * Example of a call (cache_kinds/sourcemaps.c):
 *     options   struct sourcemap_options
 *     inputs    INPUT_SCRIPT: mapped script, INPUT_SOURCE_MAP: mapped source map
 *     out       descriptor of an empty temporary file: gets the lookup table
 *     result    struct sourcemap_result: which item of `scopes` is malformed; the caller logs it */
#pragma once

#include "core/files.h"
#include "object/object.h"
#include "worker/worker.h"

enum { CONVERTER_MAX_INPUTS = 6, CONVERTER_MAX_OPTIONS = 256, CONVERTER_MAX_RESULT = 2048, CONVERTER_MAX_TABLES = 240 };

enum input_role {
    INPUT_FILE,       /* the file to convert */
    INPUT_DWP,        /* DWARF package of split units */
    INPUT_DWZ,        /* supplementary file */
    INPUT_SYMBOL_MAP, /* BCSymbolMap */
    INPUT_LINE_MAP,   /* il2cpp line mapping of a Unity build: C++ lines to C# lines */
    INPUT_SCRIPT,
    INPUT_SOURCE_MAP,
    INPUT_DATA_URL, /* contains a source map */
    INPUT_CODE_ID,  /* code id of the wanted object, as text */
    INPUT_NAME, /* text; each converter defines which: name of INPUT_FILE, of a section or member in it, or path of a source */
    INPUT_TEXTS,   /* texts to be searched for: size (uint32_t) and bytes of each */
    INPUT_LENGTHS, /* array of uint64_t: INPUT_FILE is several files one after the other, of these lengths */
    INPUT_STACKS,  /* threads, modules and memory of a dump (minidump/pack.h) */
    INPUT_WALKS,   /* stack walks of the dump in INPUT_STACKS, and the tables for them (walks.h) */
    INPUT_CODE,    /* program or library that a core file was written of: has the code that the core lacks */
    INPUT_TABLE,   /* lookup table; those of converter_call.tables have this role */
    INPUT_SCRATCH, /* not an input: empty file, open for writing, for data that does not fit in memory */
};

struct converter_input {
    struct sl_bytes bytes; /* data NULL = conversion_run maps `fd` */
    int fd;                /* open file whose content is exactly `bytes`, or has them at `offset`; -1 = none */
    enum input_role role;  /* at most one input of each role in a call */
    /* the file that all of `bytes` are mapped from: a worker is given a descriptor of it; NULL = a worker gets `fd`, or a copy of
     * `bytes` */
    const struct file_place *place;
    uint64_t offset; /* of `bytes` in `fd`; if it is not 0, a converter in a worker sees no `fd` */
};

/* The arguments of a converter. They refer to nothing but the bytes of inputs and options, so that a worker process can get copies of
 * them. */
struct converter_call {
    struct converter_input inputs[CONVERTER_MAX_INPUTS];
    size_t input_count;
    const struct converter_input *tables; /* further inputs, with bytes; at most CONVERTER_MAX_TABLES */
    size_t table_count;
    struct sl_bytes options; /* the converter's own struct, without pointers */
    int out;                 /* empty file to write; -1 = the converter writes nothing */
};

struct converter {
    const char *name; /* unique among converters */
    size_t options_size, result_size;
    /* `result` is zeroed before the call and valid on errors, too. Runs on a pool thread or in another process. */
    enum sl_code (*convert)(struct conversion *conversion, const struct converter_call *call, void *result,
                            struct sl_error *error);
    /* False if a result is invalid: it came from a worker, which a hostile file may have taken over. Required if there is a result. Checks
     * that each bool, enum, text and count has a valid value, as plain bytes, since to load an invalid bool or enum is undefined. Callers
     * check that sizes and offsets fit a file. */
    bool (*check_result)(const void *result);
};

/* Configured limits of object readers (struct sl_object_limits), to be put into a converter's options. */
struct reader_limits {
    uint64_t max_section_size, max_unwind_chain;
};

/* ---- for converter.check_result: true if a member of a result is a valid value of its type ---- */
bool converter_bool_is_valid(const bool *value);
bool converter_arch_is_valid(const enum sl_arch *arch);
bool converter_text_is_valid(const char *text, size_t size); /* UTF-8 that ends within its array of `size` bytes */
bool converter_error_is_valid(const struct sl_error *error);

/* ---- for converters ---- */

/* Returns the options: a struct of the converter's `options_size`. */
static inline const void *converter_options(const struct converter_call *call)
{
    return call->options.data;
}

/* Return the input of that role, or its bytes. NULL, or bytes with data NULL, if the call has no such input. */
const struct converter_input *converter_input(const struct converter_call *call, enum input_role role);
struct sl_bytes converter_input_bytes(const struct converter_call *call, enum input_role role);

static inline struct sl_object_limits make_object_limits(const struct reader_limits *limits, struct sl_budget *budget)
{
    return (struct sl_object_limits){
        .max_section_size = limits->max_section_size, .max_unwind_chain = limits->max_unwind_chain, .budget = budget};
}

/* Opens an object file, charging its memory and work to the conversion's budget. */
enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, const struct reader_limits *limits,
                             struct sl_object **object, struct sl_error *error);

/* Writes `made` to the call's `out`, and charges its capacity to the budget meanwhile. If memory or the budget ran out while `made` was
 * filled (made->failed), returns that error. */
enum sl_code conversion_write(struct conversion *conversion, const struct converter_call *call,
                              const struct sl_buf *made, struct sl_error *error);

/* ---- for callers ---- */

/* Runs a converter in the calling thread: for commands and tests, which have no fibers. Only its work is limited, in proportion to the
 * sizes of its inputs. Inputs must have bytes. `result` has room for converter->result_size bytes and is zeroed first. */
enum sl_code converter_run_here(const struct converter *converter, const struct converter_call *call, void *result,
                                struct sl_error *error);

/* Views a struct as the options of a call; it must outlive the call. */
#define CONVERTER_OPTIONS(value) ((struct sl_bytes){(const uint8_t *)&(value), sizeof(value)})

/* Add an input. _bytes and _text: from memory (data NULL = an empty input). _mapped: mapped from the file `place`. _part: mapped from an
 * open file, from an offset on. _file: an open file, which conversion_run maps. The caller keeps memory, mapping and descriptor until the
 * call ends. */
void converter_add_bytes(struct converter_call *call, enum input_role role, struct sl_bytes bytes);
void converter_add_text(struct converter_call *call, enum input_role role, struct sl_str text);
void converter_add_mapped(struct converter_call *call, enum input_role role, struct sl_bytes bytes,
                          const struct file_place *place);
void converter_add_part(struct converter_call *call, enum input_role role, struct sl_bytes bytes, int fd,
                        uint64_t offset);
void converter_add_file(struct converter_call *call, enum input_role role, int fd);
