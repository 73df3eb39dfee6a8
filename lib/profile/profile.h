/* Profiles of the Firefox Profiler, as its front end saves them and samply writes them ("processed" profiles, from version 41 of the
 * format on): which addresses want names, and the same profile with these names.
 *
 *     sl_profile_read ──▶ libraries, addresses ──▶ (look-up) ──▶ names ──▶ sl_profile_write
 *
 * A profile is tables of columns, in each thread or shared by all. Nothing is built of what nobody asks for: the writer copies the
 * text of the profile, and only the columns that names change are others. An address in an inlined function is one frame before and
 * several behind: the outermost stays where it was, the inlined ones are appended, and stacks grow by as many entries.
 *
 * Frames that have a symbol already, of JavaScript and labels stay as they are. Addresses are those of the profile: relative to
 * their library, of callers already inside the call. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

struct sl_profile_lib { /* empty texts: absent */
    struct sl_str name, path, debug_name, debug_path, debug_id, code_id, arch;
};

struct sl_profile_address {
    uint64_t address; /* relative to the library */
    uint32_t lib;
};

struct profile_set;

struct sl_profile { /* in the arena, with views of the text */
    struct sl_str text;
    struct sl_arena *arena;
    struct sl_str platform; /* "Macintosh", "Windows" or of Linux whatever it is; empty: absent */
    struct sl_profile_lib *libs;
    size_t lib_count;
    struct sl_profile_address *addresses; /* that want a name: by library and address, each once */
    size_t address_count;
    /* private */
    struct sl_str meta;
    struct profile_scope *scopes; /* what is shared, then the threads */
    size_t scope_count;
    struct profile_set *sets;
    size_t set_count;
    bool uneven; /* columns that belong together differ in length */
};

/* The text must outlive the profile. SL_MALFORMED; SL_UNSUPPORTED for older versions and for what the profiler of the browser itself
 * writes; SL_BUSY. */
enum sl_code sl_profile_read(struct sl_str text, struct sl_arena *arena, struct sl_profile *profile,
                             struct sl_error *error);

struct sl_profile_call {
    struct sl_str function; /* never empty */
    struct sl_str file;     /* empty: not known */
    uint32_t line;          /* 0: not known */
};

struct sl_profile_name {
    uint64_t symbol;                     /* where the function begins that was not inlined, relative to the library */
    const struct sl_profile_call *calls; /* the innermost first; UTF-8 */
    size_t count;                        /* 0: no name was found */
};

/* Appends the profile with a name for each of its addresses. The writer's own memory is taken from the budget of `out`, too, if that has
 * one. SL_MALFORMED when columns that belong together differ in length, SL_UNSUPPORTED when inlined calls would make it larger out of all
 * proportion, or than the budget allows; SL_BUSY. */
enum sl_code sl_profile_write(const struct sl_profile *profile, const struct sl_profile_name *names, struct sl_buf *out,
                              struct sl_error *error);
