/* Finds uploaded files by name.
 *
 *     uploads/names/<module>/<time>-<sha1><suffix>     an entry: the file with this SHA-1 was uploaded under this name
 *     uploads/names.json                               exists when every record has an entry
 *
 * The base name of a file is <module><suffix>, as sl_path_module_name() splits it: "app" and ".debug". In <module> bytes that names of
 * objects cannot have are written as in quoted-printable text (RFC 2045, 6.7): "=2F". <time> counts down, so that the newest entry
 * of a module sorts first. The contents of an entry are "{}".
 *
 * An entry only leads to the record of the file, which has the ids, and the file must still be stored. So an entry that is out of date
 * gives no answer. Entries are written before records; records written by versions of symloom without entries get them when a process
 * starts and once a day. Until that has been done once, answers say that they are incomplete. Loop thread. */
#pragma once

#include "debug_file_store/debug_file_store.h"
#include "package/index.h"

/* A program, library or debug file that was uploaded under a name. A fat file counts once for each of its ids. */
struct uploaded_file {
    struct sl_str name; /* base name; in the arena that the caller of the search gives */
    struct sl_index_id id;
    enum sl_format format; /* ELF, Mach-O, PE, PDB or WASM */
    bool is_executable;    /* the file has the module's code, not only debug information about it */
    uint64_t created_s;    /* first upload, since the epoch */
};

struct uploaded_files {
    struct uploaded_file *items; /* in the arena that the caller of the search gives */
    size_t count;
    bool complete; /* false: there may be more files, as a limit was reached or the store could not be read */
};

/* Finds the files with the name of a module (the last part of `path`). Stops when two have different ids, as then the name does not tell
 * which is meant; with `newest`, after the file that was uploaded last. Stops at the time `end_ns` of clock_mono_ns. */
void uploaded_files_of_module(struct sl_str path, bool newest, uint64_t end_ns, struct sl_arena *arena,
                              struct uploaded_files *found) SL_SUSPENDS;

/* Finds the files whose base name with a slash in front matches a pattern: fnmatch(3) with FNM_PATHNAME, or exactly. */
struct uploaded_name_query {
    struct sl_str pattern;
    bool is_glob;
    size_t max_count;
    uint64_t end_ns; /* time of clock_mono_ns at which the search ends */
};
void uploaded_files_by_name(const struct uploaded_name_query *query, struct sl_arena *arena,
                            struct uploaded_files *found) SL_SUSPENDS;
