/* The index of a scanned directory: its file, and look-ups by id and by name. */
#include "scan/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/sigbus_guard.h"
#include "function/path.h"
#include "search/search.h"

enum { INDEX_PATH = 1024 };

/* ---- the file ---- */

/* Sets `path` to that of the index file. False if there is no cache_dir, so that the index is only in memory, or the path is too long. */
static bool index_path(uint64_t key, char path[INDEX_PATH])
{
    return scan_config->cache_dir &&
           snprintf(path, INDEX_PATH, "%s/scan/%016" PRIx64 ".slix", scan_config->cache_dir, key) < INDEX_PATH;
}

struct index_opening { /* pool work of background priority, as it reads all of the index */
    const char *path;
    uint64_t key, known_inode; /* known_*: of the index in use, which is not opened again; 0 = none */
    int64_t known_mtime_ns;
    int fd;                   /* an open file instead of `path`; -1 = none */
    struct scan_index *index; /* result; NULL: none, or the known one */
};

/* Reads a byte of each page of an index, so that look-ups on the loop do not wait for the disk. */
static void touch_pages(struct sl_bytes bytes)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < bytes.size; i += 4096)
        sum = (uint8_t)(sum + bytes.data[i]);
}

/* Maps and checks the index in `fd`, and sets o->index to it. Its key must be that of the scan, a hash of the configured path and
 * filters. */
static enum sl_code map_index(struct index_opening *o, int fd, struct sl_error *error)
{
    struct scan_index *index = calloc(1, sizeof *index);
    if (!index)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = sl_map_fd(fd, &index->mapping, error);
    if (code == SL_OK)
        code = sl_index_open(index->mapping.bytes, &index->index, error);
    if (code == SL_OK && index->index.key != o->key)
        code = sl_fail(error, SL_MALFORMED, "the index of scanned files is for another directory or configuration");
    if (code != SL_OK) {
        sl_unmap(&index->mapping);
        free(index);
        return code;
    }
    touch_pages(index->mapping.bytes); /* reads it into memory: look-ups on the loop must not wait for the disk */
    index->references = 1;
    o->index = index;
    return SL_OK;
}

/* Pool work: opens the index at o->path or, if that is given, in o->fd, which stays open, and sets o->index to it. Leaves that NULL if it
 * is the index in use, which its inode and time of change show. SL_NOT_FOUND: there is no file yet. */
static enum sl_code open_index(void *arg, struct sl_error *error)
{
    struct index_opening *o = arg;
    struct stat st;
    int fd = o->fd >= 0 ? o->fd : open(o->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? sl_fail(error, SL_NOT_FOUND, "%s", "")
                               : sl_fail_errno(error, errno, "cannot open the index of scanned files");
    enum sl_code code =
        fstat(fd, &st) == 0 ? SL_OK : sl_fail_errno(error, errno, "cannot examine the index of scanned files");
    int64_t mtime_ns = code == SL_OK ? files_mtime_ns(&st) : 0;
    bool known = code == SL_OK && st.st_ino == o->known_inode && mtime_ns == o->known_mtime_ns;
    if (code == SL_OK && !known)
        code = map_index(o, fd, error);
    if (o->index) {
        o->index->inode = st.st_ino;
        o->index->mtime_ns = mtime_ns;
    }
    if (o->fd < 0)
        close(fd);
    return code;
}

/* ---- use ---- */

struct scan_index *scan_index_retain(struct scan *scan)
{
    if (scan->index)
        scan->index->references++;
    return scan->index;
}

static void free_index(void *arg)
{
    struct scan_index *index = arg;
    sl_unmap(&index->mapping);
    free(index);
}

void scan_index_release(struct scan_index *index)
{
    if (index && --index->references == 0)
        pool_run_detached(free_index, NULL, index);
}

/* Takes over the reference to another index, or NULL, and uses it from now on. Clears the cache of search results, which may be from the
 * old one. */
static void use_index(struct scan *scan, struct scan_index *index)
{
    scan_index_release(scan->index);
    scan->index = index;
    scan->state.ids = index ? index->index.object_count : 0;
    scan->state.indexed_files = index ? index->index.file_count : 0;
    scan->state.index_bytes = index ? index->mapping.bytes.size : 0;
    metric_set(METRIC_SCAN_IDS, (double)scan->state.ids, scan->id, NULL, NULL);
    search_cache_clear();
}

void scan_index_forget(struct scan *scan)
{
    if (scan->index)
        use_index(scan, NULL);
}

bool scan_index_refresh(struct scan *scan)
{
    char path[INDEX_PATH];
    struct sl_error error;
    struct index_opening opening = {.path = path,
                                    .key = scan->key,
                                    .known_inode = scan->index ? scan->index->inode : 0,
                                    .known_mtime_ns = scan->index ? scan->index->mtime_ns : 0,
                                    .fd = -1};
    if (!index_path(scan->key, path))
        return false;
    enum sl_code code = pool_call(POOL_IO | POOL_BACKGROUND, open_index, &opening, &error);
    if (code != SL_OK && code != SL_NOT_FOUND && code != SL_CANCELLED && loop_minutely(&scan->next_warning_ms))
        log_warn("scan",
                 code == SL_MALFORMED
                     ? "cannot use the index of a scanned directory; it is made anew when the directory is scanned next"
                     : "cannot open the index of a scanned directory",
                 LOG_STR("scan", scan->id), LOG_STR("path", path), LOG_ERR(&error));
    /* The configuration may have changed while the pool worked. */
    bool is_current = scan->exists && scan->key == opening.key;
    if (opening.index && is_current)
        use_index(scan, opening.index);
    else
        scan_index_release(opening.index);
    return opening.index && is_current;
}

/* ---- publishing ---- */

struct index_writing { /* pool work */
    struct sl_bytes bytes;
    const char *path; /* NULL: into memory */
    int fd;           /* result, if it is in memory */
};

static enum sl_code write_in_memory(struct index_writing *w, struct sl_error *error)
{
    w->fd = memfd_create("scan.slix", MFD_CLOEXEC);
    return w->fd >= 0 && sl_write_all(w->fd, w->bytes)
               ? SL_OK
               : sl_fail_errno(error, errno, "cannot write the index of scanned files to memory");
}

/* Pool work: writes the index to a temporary file and renames that, so that other processes see the old index or the whole new one.
 * Without a path, writes it to a file in memory, w->fd. */
static enum sl_code write_index(void *arg, struct sl_error *error)
{
    struct index_writing *w = arg;
    char tmp[INDEX_PATH + 64], directory[INDEX_PATH];
    if (!w->path)
        return write_in_memory(w, error);
    snprintf(directory, sizeof directory, "%s", w->path);
    *strrchr(directory, '/') = '\0';
    int fd = files_temp(directory, "new-", 0750, tmp, sizeof tmp); /* makes the directory, with this mode, if need be */
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create the index of scanned files");
    bool good = sl_write_all(fd, w->bytes) && files_publish(fd, tmp, w->path, FILES_CONTENTS);
    int number = errno;
    close(fd);
    if (!good)
        unlink(tmp);
    return good ? SL_OK : sl_fail_errno(error, number, "cannot write the index of scanned files");
}

enum sl_code scan_index_publish(struct scan *scan, uint64_t key, struct sl_bytes bytes, struct sl_error *error)
{
    char path[INDEX_PATH];
    struct index_writing writing = {.bytes = bytes, .path = index_path(key, path) ? path : NULL, .fd = -1};
    enum sl_code code = pool_call(POOL_IO | POOL_BACKGROUND, write_index, &writing, error);
    /* The new index is opened from its file like every other, which also checks it. */
    struct index_opening opening = {.path = writing.path, .key = key, .fd = writing.fd};
    if (code == SL_OK)
        code = pool_call(POOL_IO | POOL_BACKGROUND, open_index, &opening, error);
    sl_close(writing.fd);
    if (code == SL_OK && scan->exists && scan->key == key)
        use_index(scan, opening.index);
    else
        scan_index_release(opening.index);
    return code;
}

/* ---- look-ups ---- */

struct index_search {
    const struct sl_index *index;
    const struct object_id *id;
    enum file_type type;
    struct sl_arena *arena;
    struct indexed_file *files;
    size_t count;
    bool no_memory;
};

/* True if a search for this file type wants the object. An ELF or Mach-O program that contains its debug information is both a code file
 * and a debug file. */
static bool is_listed_as(const struct sl_index_object *object, enum file_type type)
{
    static const struct {
        enum sl_format format;
        uint8_t any_of; /* bits of enum sl_index_content; 0: no condition */
    } rows[FILE_TYPES] = {
        [FILE_PE] = {SL_FORMAT_PE, 0},
        [FILE_PDB] = {SL_FORMAT_PDB, 0},
        [FILE_PORTABLEPDB] = {SL_FORMAT_PORTABLEPDB, 0},
        [FILE_MACH_DEBUG] = {SL_FORMAT_MACHO, SL_INDEX_DEBUG},
        [FILE_MACH_CODE] = {SL_FORMAT_MACHO, SL_INDEX_CODE},
        [FILE_ELF_DEBUG] = {SL_FORMAT_ELF, SL_INDEX_DEBUG | SL_INDEX_SYMBOLS},
        [FILE_ELF_CODE] = {SL_FORMAT_ELF, SL_INDEX_CODE},
        [FILE_WASM_DEBUG] = {SL_FORMAT_WASM, SL_INDEX_DEBUG},
        [FILE_WASM_CODE] = {SL_FORMAT_WASM, 0},
        [FILE_BREAKPAD] = {SL_FORMAT_BREAKPAD, 0},
        [FILE_SOURCEBUNDLE] = {SL_FORMAT_SOURCEBUNDLE, 0},
    };
    return rows[type].format != SL_FORMAT_UNKNOWN && object->format == rows[type].format &&
           (!rows[type].any_of || object->content & rows[type].any_of);
}

/* True if the object can belong to a module of this type, such as a PDB to a PE file: equal ids in formats of different systems are a
 * coincidence. Unknown types and formats fit all. */
static bool is_of_system(const struct sl_index_object *object, enum object_type type)
{
    enum sl_format wanted = object_type_format(type),
                   program = sl_format_traits((enum sl_format)object->format)->program;
    return wanted == SL_FORMAT_UNKNOWN || program == SL_FORMAT_UNKNOWN || wanted == program;
}

/* Adds an indexed object to the results if it is a file of the wanted type. Returns false to end the search: enough are found, or memory is
 * used up. */
static bool add_found(struct index_search *f, const struct sl_index_object *object)
{
    struct sl_index_file file;
    struct sl_buf member = {0};
    /* format > SL_FORMAT_COFF, the last one: a newer version of symloom has written the index */
    if (object->format > SL_FORMAT_COFF || !is_listed_as(object, f->type) || !is_of_system(object, f->id->type) ||
        !sl_index_file(f->index, object->file, &file))
        return true;
    sl_index_member_path(object, &member);
    bool good = !member.failed && scan_place_format(&file, sl_buf_view(&member), object->offset, object->size, f->arena,
                                                    &f->files[f->count]);
    /* the size is stated only for files that surely have what is wanted, as indexed_file.size requires */
    bool fits = (f->type == FILE_ELF_DEBUG && object->content & SL_INDEX_DEBUG) || f->type == FILE_ELF_CODE;
    f->files[f->count].size = !fits ? 0 : member.size ? object->size : file.size;
    sl_buf_free(&member);
    f->count += good;
    f->no_memory |= !good;
    return good && f->count < LAYOUT_MAX_PATHS;
}

/* Adds the objects of the wanted type whose id begins with the first `size` bytes of `id`; `whole`: only those with exactly this id. */
static void find_by_id(struct index_search *f, const struct sl_index_id *id, size_t size, bool whole)
{
    enum { MAX_LOOKED_AT = 1000 }; /* bounds the search when very many objects have this id */
    struct sl_index_object object;
    size_t first, count = sl_index_find(f->index, id, size, &first);
    bool more = f->count < LAYOUT_MAX_PATHS;
    for (size_t i = 0; more && i < count && i < MAX_LOOKED_AT; i++)
        if (sl_index_object(f->index, first + i, &object) && (!whole || object.id.size == id->size))
            more = add_found(f, &object);
}

/* Searches the build ids (code ids) by the module's debug id, which has the first 16 bytes of the build id: with the first three fields in
 * the other byte order or, for some formats, as they are. */
static void find_by_debug_id_of_build_id(struct index_search *f)
{
    enum { UUID = 16 };
    /* swapping the fields a second time restores them */
    struct sl_debug_id swapped = sl_debug_id_from_build_id((struct sl_bytes){f->id->debug_id.uuid, UUID}, false);
    struct sl_index_id id = sl_index_id(SL_INDEX_CODE_ID, (struct sl_bytes){swapped.uuid, UUID}),
                       plain = sl_index_id(SL_INDEX_CODE_ID, (struct sl_bytes){f->id->debug_id.uuid, UUID});
    find_by_id(f, &id, UUID, false);
    if (memcmp(id.bytes, plain.bytes, UUID) != 0) /* big-endian programs, Mach-O, WASM */
        find_by_id(f, &plain, UUID, false);
}

/* Searches the index by code id, then by debug id, until one finds something. If neither does and the code id has 32 hex digits, it may
 * be a file id (symbfile/fileid.h): searches by that, too. Reads the mapping, so it runs under the SIGBUS guard. */
static void find_all(void *arg)
{
    struct index_search *f = arg;
    struct sl_str code_id = f->id->code_id;
    struct sl_index_id id;
    f->count = 0;
    if (sl_code_id_is_set(code_id)) {
        id = sl_index_code_id(code_id);
        find_by_id(f, &id, id.size, true);
    }
    if (f->count == 0 && f->id->has_debug_id && sl_debug_id_has_uuid(&f->id->debug_id)) {
        id = sl_index_debug_id(&f->id->debug_id);
        find_by_id(f, &id, id.size, true);
        if (!code_id.size && f->count == 0)
            find_by_debug_id_of_build_id(f);
    }
    uint8_t bytes[16];
    size_t size;
    if (f->count == 0 && code_id.size == 32 && sl_hex_decode(code_id, bytes, sizeof bytes, &size)) {
        id = sl_index_id(SL_INDEX_FILE_ID, (struct sl_bytes){bytes, size});
        find_by_id(f, &id, id.size, true);
    }
}

size_t scan_find(const struct source_index *source, const struct object_id *id, enum file_type type,
                 struct sl_arena *arena, struct indexed_file *files)
{
    struct scan *scan = (struct scan *)(uintptr_t)source; /* its first member */
    struct scan_index *index = scan_index_retain(scan);
    if (!index)
        return 0;
    struct index_search finding = {.index = &index->index, .id = id, .type = type, .arena = arena, .files = files};
    bool good = sigbus_guard_run(find_all, &finding);
    scan_index_release(index);
    return !good ? INDEX_UNREADABLE /* SIGBUS */ : finding.no_memory ? INDEX_BUSY : finding.count;
}

/* ---- files beside a file ---- */

struct companion_search {
    const struct sl_index *index;
    struct sl_str package, path; /* of the wanted file; package empty: a file by itself */
    struct sl_arena *arena;
    struct indexed_file *found;
    size_t count; /* as scan_find_companion returns it */
};

/* Looks for the file with the path s->path in s->package. The index can only be searched by the last component of a path, so this
 * compares all files of that name. Sets s->count to 1 if it is found, 0 if not, SIZE_MAX when out of memory. Reads the mapping, so it
 * runs under the SIGBUS guard. */
static void find_beside(void *arg)
{
    enum { MAX_LOOKED_AT = 10000 }; /* bounds the search when very many packages have a file of this name */
    struct companion_search *s = arg;
    struct sl_str directory, name;
    struct sl_index_object object;
    struct sl_index_file file;
    size_t first;
    sl_path_split(s->path, &directory, &name);
    struct sl_index_id id = sl_index_name(name);
    size_t count = sl_index_find(s->index, &id, id.size, &first);
    s->count = 0;
    for (size_t i = 0; i < count && i < MAX_LOOKED_AT && !s->count; i++) {
        if (!sl_index_object(s->index, first + i, &object) || !sl_index_file(s->index, object.file, &file))
            continue;
        bool same = s->package.size ? sl_str_equal(file.path, s->package) && sl_str_equal(object.member, s->path)
                                    : !object.member.size && sl_str_equal(file.path, s->path);
        if (!same)
            continue;
        s->found->size = object.size;
        s->count =
            scan_place_format(&file, object.member, object.offset, object.size, s->arena, s->found) ? 1 : SIZE_MAX;
    }
}

/* Looks for the file `path` + `suffix`; sets s->count to 0 or 1. When out of memory, or if the index cannot be read, s->count is SIZE_MAX
 * (INDEX_BUSY). */
static void find_suffixed(struct companion_search *s, struct sl_str path, const char *suffix)
{
    struct sl_buf text = {0};
    sl_buf_str(&text, path);
    sl_buf_cstr(&text, suffix);
    s->path = sl_buf_move_to_arena(&text, s->arena);
    s->count = SIZE_MAX; /* remains so if there was no memory for the path */
    if (s->path.data && !sigbus_guard_run(find_beside, s))
        s->count = SIZE_MAX;
}

/* Looks for `file` with the suffix or, if that is not there, for "app" with the suffix if the file is "app.debug": debuggers look for the
 * DWARF package of "app.debug" as "app.debug.dwp" and as "app.dwp". Returns 0, 1, or INDEX_BUSY. */
size_t scan_find_companion(const struct source_index *source, const struct remote_file *file, const char *suffix,
                           struct sl_arena *arena, struct indexed_file *found)
{
    struct scan *scan = (struct scan *)(uintptr_t)source; /* its first member */
    struct scan_place place;
    struct sl_str path = file->path, debug = SL_STR(".debug");
    struct companion_search s = {.arena = arena, .found = found};
    if (!scan_place_parse(file->checksum, &place))
        return 0;
    if (place.is_member) {
        if (place.package_path_size >= path.size)
            return 0;
        s.package = (struct sl_str){path.data, (size_t)place.package_path_size};
        path = (struct sl_str){path.data + s.package.size + 1, path.size - s.package.size - 1}; /* 1: the '!' */
    }
    struct scan_index *index = scan_index_retain(scan);
    if (!index)
        return 0;
    s.index = &index->index;
    find_suffixed(&s, path, suffix);
    if (!s.count && sl_str_ends(path, debug))
        find_suffixed(&s, (struct sl_str){path.data, path.size - debug.size}, suffix);
    scan_index_release(index);
    return s.count;
}
