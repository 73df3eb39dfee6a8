/* Members of static libraries and ZIP archives. A member is copied or unpacked into an unlinked temporary file, which is mapped. */
#include "cli/members.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object/ar.h"
#include "source/zip.h"

/* At most MAX_LOOKED_INTO members of a ZIP archive are checked for debug files; error messages list at most MAX_NAMES members. */
enum { MAX_LOOKED_INTO = 4096, MAX_NAMES = 8 };

/* ---- paths ---- */

/* Splits `lib.a(io.o)` or `base.apk!lib/x86_64/libz.so`, also with `!/` as on Android, into an existing file and a member. Of several `!`
 * the first after an existing file counts. False for other paths, and if a file has the whole path as its name. */
static bool split_path(const char *path, char file[PATH_MAX], struct sl_str *member)
{
    struct stat st;
    size_t length = strlen(path);
    if (length >= PATH_MAX || stat(path, &st) == 0)
        return false;
    const char *open = length && path[length - 1] == ')' ? strrchr(path, '(') : NULL;
    for (const char *at = open ? open : strchr(path, '!'); at; at = open ? NULL : strchr(at + 1, '!')) {
        snprintf(file, PATH_MAX, "%.*s", (int)(at - path), path);
        *member = (struct sl_str){at + 1, length - (size_t)(at + 1 - path) - (open != NULL)};
        if (!open && member->size && member->data[0] == '/')
            *member = (struct sl_str){member->data + 1, member->size - 1};
        if (member->size && stat(file, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

bool member_is_named(const char *path)
{
    char file[PATH_MAX];
    struct sl_str member;
    return split_path(path, file, &member);
}

/* ---- extracting a member ---- */

/* Copies the bytes, a member of an archive, to an unlinked temporary file and maps that: the mapping outlives the archive's. */
static enum sl_code map_copy(struct sl_bytes bytes, struct sl_mapping *mapping, struct sl_error *error)
{
    int fd = temporary_file();
    enum sl_code code = fd >= 0 && sl_write_all(fd, bytes)
                            ? sl_map_fd(fd, mapping, error)
                            : sl_fail(error, SL_INTERNAL, "cannot write a temporary file: %s", strerror(errno));
    sl_close(fd);
    return code;
}

struct zip_copy {
    int fd;
    bool failed;
};

/* Called by sl_zip_stream with each piece of an unpacked entry: writes it to the temporary file. False, if that fails, ends the unpacking
 * with SL_CANCELLED. */
static bool copy_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct zip_copy *copy = arg;
    (void)used;
    copy->failed = !sl_write_all(copy->fd, piece);
    return !copy->failed;
}

/* Unpacks an entry of a ZIP archive into an unlinked file and maps it. */
static enum sl_code map_entry(const struct sl_zip *zip, const struct sl_zip_entry *entry, struct sl_mapping *mapping,
                              struct sl_error *error)
{
    struct zip_copy copy = {.fd = temporary_file()};
    if (copy.fd < 0)
        return sl_fail(error, SL_INTERNAL, "cannot write a temporary file: %s", strerror(errno));
    enum sl_code code = sl_zip_stream(zip, entry, &(struct sl_zip_sink){copy_piece, &copy}, error);
    if (code == SL_CANCELLED)
        code = sl_fail(error, SL_INTERNAL, "cannot write a temporary file: %s", strerror(errno));
    if (code == SL_OK)
        code = sl_map_fd(copy.fd, mapping, error);
    close(copy.fd);
    return code;
}

/* ---- choosing a member ---- */

/* What is known of an archive's members: for error messages, and the time of the chosen member. */
struct member_names {
    struct sl_buf text;    /* "a.o, b.o": the first MAX_NAMES debug files */
    size_t count;          /* number of all debug files */
    uint64_t changed;      /* modification time of the chosen member, if there is one */
    struct sl_buf import;  /* the DLL of the first import: a member of a Windows import library, without code */
    size_t imports;        /* number of imports */
    bool has_more_imports; /* some are of another DLL than `import` */
};

/* Counts a debug file of the archive, and lists its name unless MAX_NAMES are listed already. */
static void add_name(struct member_names *names, struct sl_str name)
{
    if (names->count++ < MAX_NAMES)
        sl_buf_printf(&names->text, "%s" SL_STR_FMT, names->text.size ? ", " : "", SL_STR_ARG(name));
}

/* True if `wanted` names the member whose path is `own`: by this path, or by its file name alone. */
static bool has_name(struct sl_str own, struct sl_str wanted)
{
    return sl_str_equal(own, wanted) || sl_str_equal(path_file_name(own), wanted);
}

/* Maps a member of the static library `path`. A thin archive only names its members' files, relative to its own directory: maps that
 * file. */
static enum sl_code map_member(const char *path, const struct sl_ar *ar, const struct sl_ar_member *m,
                               struct sl_mapping *mapping, struct sl_error *error)
{
    char full[PATH_MAX];
    if (!ar->thin)
        return map_copy(m->bytes, mapping, error);
    struct sl_str file = sl_str(path);
    int directory = m->name.data[0] == '/' ? 0 : (int)(file.size - path_file_name(file).size);
    if (snprintf(full, sizeof full, "%.*s" SL_STR_FMT, directory, path, SL_STR_ARG(m->name)) >= (int)sizeof full)
        return sl_fail(error, SL_UNSUPPORTED, "the path of a member of the thin archive %s is too long", path);
    return sl_map_file(full, mapping, error);
}

/* True if a member of a static library is an object file. Members of import libraries that only name a function of a DLL are none. All
 * members of a thin archive are taken for object files: their bytes are in other files. */
static bool is_object(const struct sl_ar *ar, const struct sl_ar_member *m)
{
    struct sl_str library;
    return ar->thin || (sl_format_detect(m->bytes) != SL_FORMAT_UNKNOWN && !sl_coff_import(m->bytes, &library));
}

/* If the member is an import, which only names a function of a DLL, counts it and keeps the name of the first DLL. */
static void add_import(struct member_names *names, const struct sl_ar_member *m)
{
    struct sl_str library;
    if (!sl_coff_import(m->bytes, &library))
        return;
    if (!names->import.size)
        sl_buf_str(&names->import, library);
    names->has_more_imports =
        names->has_more_imports || (library.size && !sl_str_equal(sl_buf_view(&names->import), library));
    names->imports++;
}

/* Called by sl_zip_stream with the first piece of an unpacked entry: sets the bool `*arg` if it begins a debug file. Returns false, which
 * ends the unpacking: the rest is not needed. */
static bool look_at_begin(void *arg, struct sl_bytes piece, uint64_t used)
{
    (void)used;
    enum sl_format format = sl_format_detect(piece);
    *(bool *)arg = format != SL_FORMAT_UNKNOWN && format != SL_FORMAT_SOURCEBUNDLE;
    return false;
}

/* True if an entry of a ZIP archive is a debug file. Source bundles are none: they name no code by address. */
static bool is_debug_file(const struct sl_zip *zip, const struct sl_zip_entry *entry)
{
    bool found = false;
    if (entry->size && !entry->is_link)
        sl_zip_stream(zip, entry, &(struct sl_zip_sink){look_at_begin, &found}, NULL);
    return found;
}

/* Maps the member `wanted` of a static library; if `wanted` is NULL, its only object file. `*name` is then the member's name. SL_NOT_FOUND
 * with `name->data` NULL and no message in `error` when there is no such member: the caller makes the message from `names`. */
static enum sl_code map_from_ar(const char *path, struct sl_bytes bytes, const struct sl_str *wanted,
                                struct sl_mapping *mapping, struct sl_str *name, struct member_names *names,
                                struct sl_error *error)
{
    struct sl_ar ar;
    struct sl_ar_member m, found = {0}, last = {0};
    sl_ar_open(bytes, &ar);
    while (wanted && !found.name.data && sl_ar_next(&ar, &m))
        if (has_name(m.name, *wanted) && is_object(&ar, &m))
            found = m;
    /* not found by name: reads the archive again, to list its object files for the message, or to find the only one */
    if (!found.name.data)
        sl_ar_open(bytes, &ar);
    while (!found.name.data && sl_ar_next(&ar, &m))
        if (is_object(&ar, &m)) {
            last = m;
            add_name(names, m.name);
        } else if (!wanted || has_name(m.name, *wanted)) {
            add_import(names, &m);
        }
    if (!wanted && names->count == 1)
        found = last;
    if (!found.name.data)
        return SL_NOT_FOUND;
    *name = found.name;
    names->changed = found.changed;
    return map_member(path, &ar, &found, mapping, error);
}

/* Maps the entry of a ZIP archive whose whole path is `wanted`; if `wanted` is NULL, its only debug file. `*name` is then the entry's name.
 * SL_NOT_FOUND with `name->data` NULL and no message in `error` when there is no such entry: the caller makes the message from `names`. */
static enum sl_code map_from_zip(struct sl_bytes bytes, const struct sl_str *wanted, struct sl_arena *arena,
                                 struct sl_mapping *mapping, struct sl_str *name, struct member_names *names,
                                 struct sl_error *error)
{
    struct sl_zip zip;
    const struct sl_zip_entry *found = NULL, *last = NULL;
    enum sl_code code = sl_zip_open(bytes, 0, arena, &zip, error);
    if (code != SL_OK)
        return code;
    for (size_t i = 0; wanted && !found && i < zip.count; i++)
        found = sl_str_equal(zip.entries[i].name, *wanted) ? &zip.entries[i] : NULL;
    /* not found by name: lists the debug files for the message, or finds the only one */
    for (size_t i = 0; !found && i < zip.count && i < MAX_LOOKED_INTO; i++)
        if (is_debug_file(&zip, &zip.entries[i])) {
            last = &zip.entries[i];
            add_name(names, last->name);
        }
    if (!wanted && names->count == 1)
        found = last;
    *name = found ? found->name : (struct sl_str){NULL, 0};
    return found ? map_entry(&zip, found, mapping, error) : SL_NOT_FOUND;
}

/* Maps the member `wanted` of a static library or ZIP archive; if `wanted` is NULL, its only debug file. On an error `error` lists the
 * members to choose from. `*name` (may be NULL) becomes `lib.a(io.o)` or `base.apk!libz.so`, which the caller frees; NULL when out of
 * memory. `*changed` (may be NULL): the member's modification time, 0 if unknown. */
static enum sl_code map_from_archive(const char *path, struct sl_bytes bytes, const struct sl_str *wanted,
                                     struct sl_mapping *mapping, char **name, uint64_t *changed, struct sl_error *error)
{
    struct member_names names = {.count = 0};
    struct sl_arena arena = {0};
    struct sl_str found = {NULL, 0};
    bool is_ar = sl_ar_detect(bytes);
    enum sl_code code = is_ar ? map_from_ar(path, bytes, wanted, mapping, &found, &names, error)
                              : map_from_zip(bytes, wanted, &arena, mapping, &found, &names, error);
    const char *open = is_ar ? "(" : "!", *close = is_ar ? ")" : "";
    const char *more = names.count > MAX_NAMES ? ", ..." : "";
    /* SL_NOT_FOUND with found.data: a thin archive has the member, but its file is missing, which `error` says already. The first message
     * is for an import that the user named, or an archive with imports only. */
    if (code == SL_NOT_FOUND && !found.data && names.imports && (wanted || !names.count))
        code = sl_fail(error, SL_UNSUPPORTED, "%s%s" SL_STR_FMT "%s: %s no code",
                       wanted ? "an import" : "an import library", names.import.size ? " of " : "",
                       SL_STR_ARG(sl_buf_view(&names.import)), names.has_more_imports ? " and other libraries" : "",
                       wanted ? "it contains" : "its members contain");
    else if (code == SL_NOT_FOUND && !found.data && wanted)
        sl_fail(error, code, "no member " SL_STR_FMT " in %s; it has debug files: " SL_STR_FMT "%s",
                SL_STR_ARG(*wanted), path, SL_STR_ARG(sl_buf_view(&names.text)), more);
    else if (code == SL_NOT_FOUND && !found.data && names.count)
        code = sl_fail(error, SL_UNSUPPORTED,
                       "an archive of %zu debug files; choose one with %s%sMEMBER%s: " SL_STR_FMT "%s", names.count,
                       path, open, close, SL_STR_ARG(sl_buf_view(&names.text)), more);
    else if (code == SL_NOT_FOUND && !found.data)
        code = sl_fail(error, SL_UNSUPPORTED, "an archive without debug files");
    if (code == SL_OK && name && asprintf(name, "%s%s" SL_STR_FMT "%s", path, open, SL_STR_ARG(found), close) < 0)
        *name = NULL;
    if (changed)
        *changed = names.changed;
    sl_buf_free(&names.text);
    sl_buf_free(&names.import);
    sl_arena_free(&arena);
    return code;
}

enum sl_code member_map(const char *path, struct sl_mapping *mapping, uint64_t *changed, struct sl_error *error)
{
    char file[PATH_MAX];
    struct sl_str member;
    struct sl_mapping archive;
    *mapping = (struct sl_mapping){{NULL, 0}, 0};
    if (!split_path(path, file, &member))
        return sl_fail(error, SL_NOT_FOUND, "no such file: %s", path);
    enum sl_code code = sl_map_file(file, &archive, error);
    if (code != SL_OK)
        return code;
    code = map_from_archive(file, archive.bytes, &member, mapping, NULL, changed, error);
    sl_unmap(&archive);
    return code;
}

/* ---- several members of one archive ---- */

/* Adds a member to the index by `name`; of several members of that name the first is kept. False when out of memory. */
static bool index_name(struct member_archive *a, struct sl_str name, struct sl_ar_member *m)
{
    bool is_new;
    void **slot = sl_map_find_or_add(&a->names, name, &is_new);
    if (slot && is_new)
        *slot = m;
    return slot;
}

/* Opens the archive `file` in place of the one that was open in `a`. The object files of a static library are indexed by name, because a
 * debug map names thousands of them. */
static enum sl_code open_archive(struct member_archive *a, const char *file, struct sl_error *error)
{
    struct sl_ar_member m;
    member_archive_close(a);
    enum sl_code code = sl_map_file(file, &a->mapping, error);
    if (code != SL_OK)
        return code;
    bool ok = (a->path = strdup(file)) != NULL;
    if (sl_ar_detect(a->mapping.bytes)) {
        sl_ar_open(a->mapping.bytes, &a->ar);
        while (ok && sl_ar_next(&a->ar, &m)) {
            struct sl_ar_member *copy = is_object(&a->ar, &m) ? SL_ARENA_NEW(&a->arena, struct sl_ar_member) : NULL;
            ok = copy || !is_object(&a->ar, &m);
            if (copy) {
                *copy = m;
                /* a debug map may name the member by its whole path, or by the file name alone */
                ok = index_name(a, m.name, copy) && index_name(a, path_file_name(m.name), copy);
            }
        }
    }
    return ok ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

enum sl_code member_map_object(struct member_archive *a, const char *path, struct sl_mapping *mapping,
                               uint64_t *changed, struct sl_error *error)
{
    char file[PATH_MAX];
    struct sl_str member;
    enum sl_code code = SL_OK;
    if (!split_path(path, file, &member))
        return member_map(path, mapping, changed, error); /* fails, too: it makes the error message */
    if (!a->path || strcmp(a->path, file) != 0)
        code = open_archive(a, file, error);
    if (code != SL_OK)
        return code;
    if (!sl_ar_detect(a->mapping.bytes)) /* a ZIP archive: it is not indexed */
        return member_map(path, mapping, changed, error);
    const struct sl_ar_member *m = sl_map_get(&a->names, member);
    if (!m)
        return sl_fail(error, SL_NOT_FOUND, "no member " SL_STR_FMT " in %s", SL_STR_ARG(member), file);
    *changed = m->changed;
    return map_member(file, &a->ar, m, mapping, error);
}

void member_archive_close(struct member_archive *a)
{
    sl_map_free(&a->names);
    sl_arena_free(&a->arena);
    sl_unmap(&a->mapping);
    free(a->path);
    *a = (struct member_archive){.path = NULL};
}

/* True for an archive of several files. A ZIP archive with one member is only a compressed file, which map_unpacked unpacks. */
static bool is_archive(struct sl_bytes bytes)
{
    struct sl_arena arena = {0};
    struct sl_zip zip;
    bool several = is_zip_of_files(bytes) && sl_zip_open(bytes, 0, &arena, &zip, NULL) == SL_OK && zip.count > 1;
    sl_arena_free(&arena);
    return several || sl_ar_detect(bytes);
}

enum sl_code member_unpack(const char *path, struct sl_mapping *mapping, char **name, struct sl_error *error)
{
    struct sl_mapping member = {{NULL, 0}, 0};
    *name = NULL;
    if (!is_archive(mapping->bytes))
        return map_unpacked(mapping, error);
    enum sl_code code = map_from_archive(path, mapping->bytes, NULL, &member, name, NULL, error);
    if (code != SL_OK)
        return code;
    sl_unmap(mapping);
    *mapping = member;
    return SL_OK;
}
