/* Files full of addresses that are written back with names: profiles (named_profile.c) and sample reports (named_samples.c).
 * The caller looks up the addresses, stores the results with `take`, and writes the file:
 *
 *     named_profile_read ──▶ module, address ──▶ (look-up) ──▶ take ──▶ write ──▶ end
 *
 * Everything lies in the arena, with views of the text, which must outlive it. Pure. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "id/id.h"

struct named_module { /* fields of a module in requests; empty texts: absent */
    const char *type;
    char debug_id_text[SL_DEBUG_ID_TEXT]; /* buffer for the text of `debug_id` */
    struct sl_str debug_id, code_id, debug_file, code_file;
    struct sl_str paths[2]; /* paths of the module on the machine that wrote the file */
};

struct named_call {
    struct sl_str function;       /* display name, never empty */
    struct sl_str path, filename; /* of the source file; empty: unknown */
    uint64_t line;                /* 0: unknown */
};

struct named_calls {                /* calls at one address */
    const struct named_call *items; /* innermost first */
    size_t count;                   /* at least 1 */
    uint64_t symbol; /* start of the outermost (not inlined) function, relative to the module; valid if has_symbol */
    bool has_symbol;
};

struct named_file {
    struct sl_arena *arena;
    size_t module_count, address_count;
    /* private */
    const struct named_format *format;
    void *of_format;
};

struct named_format {
    void (*module)(const struct named_file *file, size_t index, struct named_module *module);
    /* Address relative to its module; return addresses are already moved into the call. */
    void (*address)(const struct named_file *file, size_t index, uint32_t *module, uint64_t *relative);
    /* Stores the calls of an address; copies the texts. False when out of memory. */
    bool (*take)(struct named_file *file, size_t index, const struct named_calls *calls);
    /* Drops everything stored by `take`. */
    void (*forget)(struct named_file *file);
    /* Appends the file with the stored names; its memory is charged to the budget of `out`, if there is one. SL_MALFORMED,
     * SL_UNSUPPORTED, SL_BUSY. */
    enum sl_code (*write)(const struct named_file *file, struct sl_buf *out, struct sl_error *error);
    void (*end)(struct named_file *file);
};

/* Reads a profile of the Firefox Profiler. Errors as sl_profile_read; call named_file_end in any case. */
enum sl_code named_profile_read(struct sl_str text, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* Reads a sample report of Apple's tools, in any text encoding. Errors as sl_samples_read; call named_file_end in any case. */
enum sl_code named_samples_read(struct sl_bytes bytes, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* Frees what is not in the arena. A zeroed file is allowed. */
static inline void named_file_end(struct named_file *file)
{
    if (file->format)
        file->format->end(file);
}
