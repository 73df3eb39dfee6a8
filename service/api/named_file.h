/* Files with addresses that are written again with names: Firefox profiles (named_profile.c) and Apple's sample reports
 * (named_samples.c). The caller gets the modules and addresses from the file, looks them up, stores each result with `take`, and
 * writes the file:
 *
 *     named_profile_read ──▶ module, address ──▶ (look-up) ──▶ take ──▶ write ──▶ end
 *
 * All structs lie in the arena; they keep views of the text, which must outlive them. Nothing here suspends. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "id/id.h"

struct named_module { /* what requests need to know of a module; texts that the file lacks are empty */
    const char *type;
    char debug_id_text[SL_DEBUG_ID_TEXT]; /* buffer for the text of `debug_id` */
    struct sl_str debug_id, code_id, debug_file, code_file;
    struct sl_str paths[2]; /* paths of the module on the machine that wrote the file */
};

struct named_call {               /* one of the functions at an address */
    struct sl_str function;       /* display name, never empty */
    struct sl_str path, filename; /* of the source file; empty: unknown */
    uint64_t line;                /* 0: unknown */
};

struct named_calls {                /* the functions at one address: inlined ones, then the one around them */
    const struct named_call *items; /* innermost first */
    size_t count;                   /* at least 1 */
    uint64_t symbol; /* start of the outermost (not inlined) function, relative to the module; valid if has_symbol */
    bool has_symbol;
};

struct named_file { /* a file that was read */
    struct sl_arena *arena;
    size_t module_count, address_count;
    /* private */
    const struct named_format *format;
    void *of_format; /* the data of that format */
};

struct named_format { /* functions of a file format */
    void (*module)(const struct named_file *file, size_t index, struct named_module *module);
    /* Sets `*module` to an index of a module, and `*relative` to the address to look up, relative to that module; for return
     * addresses an address inside of the call. */
    void (*address)(const struct named_file *file, size_t index, uint32_t *module, uint64_t *relative);
    /* Stores the functions found for address `index`; copies the texts. False when out of memory. */
    bool (*take)(struct named_file *file, size_t index, const struct named_calls *calls);
    /* Drops all results that `take` has stored. */
    void (*forget)(struct named_file *file);
    /* Appends the file with the stored names; the memory is charged to the budget of `out`, if that has one. SL_MALFORMED,
     * SL_UNSUPPORTED, SL_BUSY. */
    enum sl_code (*write)(const struct named_file *file, struct sl_buf *out, struct sl_error *error);
    void (*end)(struct named_file *file);
};

/* Reads a profile of the Firefox Profiler. SL_MALFORMED; SL_UNSUPPORTED for older versions and for profiles that the browser's own
 * profiler writes; SL_BUSY when out of memory. Call named_file_end also after an error. */
enum sl_code named_profile_read(struct sl_str text, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* Reads a sample report of Apple's tools, in any text encoding. SL_MALFORMED if it has no rows; SL_BUSY when out of memory. Call
 * named_file_end also after an error. */
enum sl_code named_samples_read(struct sl_bytes bytes, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* Frees what is not in the arena. Does nothing for a zeroed struct, or after a read that failed. */
static inline void named_file_end(struct named_file *file)
{
    if (file->format)
        file->format->end(file);
}
