/* Profiles of the Firefox Profiler, as its front end saves and samply writes them ("processed" profiles, format version 41 and later):
 * lists the addresses that need names, and writes the same profile with the names.
 *
 *     sl_profile_read ──▶ libraries, addresses ──▶ (lookup) ──▶ names ──▶ sl_profile_write
 *
 * A profile consists of tables of columns, in each thread or shared by all. The writer copies the text of the profile and replaces
 * only the columns that names change. An address in an inlined function is one frame before and several after: the outermost call
 * keeps the row of the frame, inlined calls are appended, and each stack grows by as many entries.
 *
 *     frames  0: address 0x1010                  0: main             symbolicated: f was inlined into main
 *                                                1: f, depth 1       appended
 *     stacks  0: frame 0, prefix null            0: frame 0, prefix null
 *                                                1: frame 1, prefix 0
 *
 * Frames that have a symbol, JavaScript frames and labels are not changed. Addresses are those of the profile: relative to
 * their library, and for callers inside of the call instruction. */
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

struct sl_profile { /* a profile that was read: what it points to is in the arena or in the text */
    struct sl_str text;
    struct sl_arena *arena;
    struct sl_str platform; /* "Macintosh", "Windows", or any text on Linux; empty: absent */
    struct sl_profile_lib *libs;
    size_t lib_count;
    struct sl_profile_address *addresses; /* the ones that need a name: sorted by library and address, no duplicates */
    size_t address_count;
    /* private */
    struct sl_str meta;
    struct profile_scope *scopes; /* the shared tables, then those of the threads */
    size_t scope_count;
    struct profile_set *sets;
    size_t set_count;
    bool has_uneven_columns; /* columns of a table differ in length */
};

/* Reads a profile. The text must outlive it. SL_MALFORMED; SL_UNSUPPORTED for older versions and for profiles that
 * the browser's own profiler writes; SL_BUSY if out of memory. */
enum sl_code sl_profile_read(struct sl_str text, struct sl_arena *arena, struct sl_profile *profile,
                             struct sl_error *error);

struct sl_profile_call {
    struct sl_str function; /* never empty */
    struct sl_str file;     /* empty: unknown */
    uint32_t line;          /* 0: unknown */
};

struct sl_profile_name {
    uint64_t symbol;                     /* begin of the outermost function, relative to the library */
    const struct sl_profile_call *calls; /* innermost first; UTF-8 */
    size_t count;                        /* 0: no name was found */
};

/* Appends the profile with names: names[i] is for profile->addresses[i]. The writer's own memory is also charged to the budget of
 * `out`, if it has one. SL_MALFORMED if columns of a table differ in length; SL_UNSUPPORTED if inlined calls would enlarge the
 * profile excessively or beyond the budget; SL_BUSY if out of memory. */
enum sl_code sl_profile_write(const struct sl_profile *profile, const struct sl_profile_name *names, struct sl_buf *out,
                              struct sl_error *error);
