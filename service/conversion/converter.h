/* Converters: what makes something of files and needs nothing but them.
 *
 * A converter is a pure function of its inputs and options: it writes `out`, fills its result, and does nothing else. It reads no clock
 * and no configuration, opens no file, logs and counts nothing, and knows no fiber, so that it can run in any thread or process.
 * What is to be logged or counted, it tells in its result. */
#pragma once

#include "core/cpu_clock.h"
#include "object/object.h"

enum { CONVERTER_MAX_INPUTS = 6, CONVERTER_MAX_OPTIONS = 256, CONVERTER_MAX_RESULT = 2048 };

enum input_role {
    INPUT_FILE,       /* what is converted */
    INPUT_DWP,        /* DWARF package of split units */
    INPUT_DWZ,        /* supplementary file */
    INPUT_SYMBOL_MAP, /* BCSymbolMap */
    INPUT_LINE_MAP,   /* lines of C# in Unity builds */
    INPUT_SCRIPT,
    INPUT_SOURCE_MAP,
    INPUT_DATA_URL, /* with a source map in it */
    INPUT_CODE_ID,  /* text: that of the wanted object */
    INPUT_LENGTHS,  /* numbers of 8 bytes: lengths of the pieces that INPUT_FILE consists of */
    INPUT_SCRATCH,  /* not read: an empty file that is open for writing, for what does not fit in memory */
};

struct converter_input {
    struct sl_bytes bytes; /* data NULL: `fd` is to be mapped */
    int fd;                /* of a file that holds these bytes alone; -1: there is none, or none that is open */
    enum input_role role;  /* each at most once in a call */
};

/* Everything is plain: no pointer leads out of it but to inputs and options. */
struct converter_call {
    struct converter_input inputs[CONVERTER_MAX_INPUTS];
    size_t input_count;
    struct sl_bytes options; /* the converter's own struct, without pointers */
    int out;                 /* the file to write, which is empty; -1: nothing is written */
};

/* What is common to all converters: the limits of one conversion. */
struct conversion {
    struct sl_budget budget; /* for everything that is read and made */
    struct cpu_clock clock;
    struct cpu_parallel parallel;
    bool is_trial;       /* set by the converter: it was only a look at the file, and is not counted */
    uint64_t written_ns; /* time that conversion_write took */
};

struct converter {
    const char *name; /* no other has it */
    size_t options_size, result_size;
    /* Every byte of the result is zero before; it counts also beside an error. A pool thread, or another process. */
    enum sl_code (*convert)(struct conversion *conversion, const struct converter_call *call, void *result,
                            struct sl_error *error);
};

/* Limits of the readers of objects that are configured (struct sl_object_limits), for options. */
struct reader_limits {
    uint64_t max_section_size, max_unwind_chain;
};

/* ---- for converters ---- */

/* The call's options, of the size that the converter tells. */
static inline const void *converter_options(const struct converter_call *call)
{
    return call->options.data;
}

/* The input, and its bytes; NULL, and data NULL, when it was not given. */
const struct converter_input *converter_input(const struct converter_call *call, enum input_role role);
struct sl_bytes converter_input_bytes(const struct converter_call *call, enum input_role role);

static inline struct sl_object_limits make_object_limits(const struct reader_limits *limits, struct sl_budget *budget)
{
    return (struct sl_object_limits){
        .max_section_size = limits->max_section_size, .max_unwind_chain = limits->max_unwind_chain, .budget = budget};
}

/* Opens a file on the conversion's budget, which a companion adds its size to. */
enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, const struct reader_limits *limits,
                             struct sl_object **object, struct sl_error *error);

/* Writes what was made, which counts as memory, to the call's file. */
enum sl_code conversion_write(struct conversion *conversion, const struct converter_call *call,
                              const struct sl_buf *made, struct sl_error *error);

/* ---- for callers ---- */

/* The bytes of a struct, as options. */
#define CONVERTER_OPTIONS(value) ((struct sl_bytes){(const uint8_t *)&(value), sizeof(value)})

/* Adds an input; one of no descriptor is bytes in memory, one of a descriptor alone is mapped for the converter. */
void converter_add_bytes(struct converter_call *call, enum input_role role, struct sl_bytes bytes);
void converter_add_text(struct converter_call *call, enum input_role role, struct sl_str text);
void converter_add_file(struct converter_call *call, enum input_role role, int fd);
