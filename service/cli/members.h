/* Debug files inside other files: `lib.a(io.o)`, `base.apk!lib/x86_64/libz.so`, and the only debug file of a ZIP archive. */
#pragma once

#include "base/map.h"
#include "cli/cli.h"
#include "object/ar.h"

/* True if a path names a member (`file(member)`, `file!member`) of a file that exists. */
bool member_is_named(const char *path);
/* Maps the member that the path names. `changed` (may be NULL) gets its time of modification in seconds since 1970, 0 if unknown.
 * SL_NOT_FOUND when the file has no such member; the message lists some that it has. */
enum sl_code member_map(const char *path, struct sl_mapping *mapping, uint64_t *changed, struct sl_error *error);

/* An open archive of object files, for taking out many members: it is mapped and indexed once. Zero-initialise. */
struct member_archive {
    char *path;
    struct sl_mapping mapping;
    struct sl_ar ar;
    struct sl_map names; /* member name -> struct sl_ar_member, in the arena */
    struct sl_arena arena;
};

/* Maps the object file that `path` names, `lib.a(io.o)` or `file!member`. Keeps the file open in `archive` until a call names another one,
 * so that thousands of members are found quickly. `*changed` (not NULL) gets the member's modification time in seconds since 1970, 0 if
 * unknown. SL_NOT_FOUND when the file has no such member. */
enum sl_code member_map_object(struct member_archive *archive, const char *path, struct sl_mapping *mapping,
                               uint64_t *changed, struct sl_error *error);
void member_archive_close(struct member_archive *archive);

/* Replaces the mapping of a static library, or of a ZIP archive with several members, by one of its only debug file; `*name` is then
 * `lib.a(io.o)` (the caller frees), else NULL. Replaces that of a compressed file by one of its contents (map_unpacked). SL_UNSUPPORTED
 * when an archive holds several debug files, or none: the message says how to name one. On an error the mapping stays as it is. */
enum sl_code member_unpack(const char *path, struct sl_mapping *mapping, char **name, struct sl_error *error);
