/* Debug files inside of other files: `lib.a(io.o)`, `base.apk!lib/x86_64/libz.so`, and the only one in a ZIP archive. */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "object/ar.h"

/* Whether a path names a member of a file that is there. */
bool member_is_named(const char *path);
/* Maps the member that the path names; `changed` (may be NULL): when it was, in seconds since 1970, 0 where that is not known.
 * SL_NOT_FOUND when the file has none of that name; the sentence lists some that it has. */
enum sl_code member_map(const char *path, struct sl_mapping *mapping, uint64_t *changed, struct sl_error *error);

/* An archive of object files whose members are taken out one after the other: it is mapped and its names are read once. Zeros are
 * a closed one. */
struct member_archive {
    char *path;
    struct sl_mapping mapping;
    struct sl_ar ar;
    struct sl_map names; /* of members -> struct sl_ar_member, in the arena */
    struct sl_arena arena;
};

/* As member_map; `archive` stays open, until the next call that names another one. */
enum sl_code member_map_of(struct member_archive *archive, const char *path, struct sl_mapping *mapping,
                           uint64_t *changed, struct sl_error *error);
void member_archive_close(struct member_archive *archive);

/* Puts what is in a file that was mapped in its place: the only debug file of an archive of object files or of a ZIP archive with
 * several members, and what that is called, `lib.a(io.o)`, into `*name` (to be freed; NULL when it is no archive); else what is packed
 * (map_unpacked). SL_UNSUPPORTED when an archive has several, or none: the sentence says how to name one. The mapping stays as it is on
 * an error. */
enum sl_code member_unpack(const char *path, struct sl_mapping *mapping, char **name, struct sl_error *error);
