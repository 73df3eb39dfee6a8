/* Files that are full of addresses and are written back with names: profiles (named_profile.c) and reports of samples
 * (named_samples.c). Who has one looks the addresses up, by whatever means, tells what was found, and writes it:
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

struct named_module { /* as requests have modules; empty texts: absent */
    const char *type;
    char debug_id_text[SL_DEBUG_ID_TEXT]; /* room for the text of `debug_id` */
    struct sl_str debug_id, code_id, debug_file, code_file;
    struct sl_str paths[2]; /* where it was on the machine of the file */
};

struct named_call {
    struct sl_str function;       /* never empty; as for people */
    struct sl_str path, filename; /* of its source; empty: not known */
    uint64_t line;                /* 0: not known */
};

struct named_calls {                /* at one address */
    const struct named_call *items; /* the innermost first */
    size_t count;                   /* at least 1 */
    uint64_t symbol; /* where the function begins that was not inlined, relative to the module; when has_symbol */
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
    /* Relative to its module, inside of the call already. */
    void (*address)(const struct named_file *file, size_t index, uint32_t *module, uint64_t *relative);
    /* Keeps what was found at an address, with copies of the texts. False when out of memory. */
    bool (*take)(struct named_file *file, size_t index, const struct named_calls *calls);
    /* Forgets all that was taken. */
    void (*forget)(struct named_file *file);
    /* Appends the file with the names that were taken; its memory is taken from the budget of `out`, if that has one.
     * SL_MALFORMED, SL_UNSUPPORTED, SL_BUSY. */
    enum sl_code (*write)(const struct named_file *file, struct sl_buf *out, struct sl_error *error);
    void (*end)(struct named_file *file);
};

/* A profile of the Firefox Profiler. As sl_profile_read; named_file_end in any case. */
enum sl_code named_profile_read(struct sl_str text, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* A report of samples of Apple's, in whatever encoding. As sl_samples_read; named_file_end in any case. */
enum sl_code named_samples_read(struct sl_bytes bytes, struct sl_arena *arena, struct named_file *file,
                                struct sl_error *error);

/* What is not in the arena. Zeros are a file without any. */
static inline void named_file_end(struct named_file *file)
{
    if (file->format)
        file->format->end(file);
}
