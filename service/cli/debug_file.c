/* Opens compressed files, and finds separate debug files. */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/temp_dir.h"
#include "fetch/fetch.h"
#include "object/debug_map.h"
#include "symbfile/symbfile.h"

#define MAX_UNPACKED (UINT64_C(15) << 30) /* bytes that a compressed file may unpack to; as for downloads */

/* ---- compressed files ---- */

int temporary_file(void)
{
    return sl_unlinked_file(temp_dir());
}

bool is_zip_of_files(struct sl_bytes bytes)
{
    struct sl_object *object;
    struct sl_object_limits limits = {.identity = true}; /* read no more than the ids */
    if (sl_format_detect(bytes) != SL_FORMAT_SOURCEBUNDLE)
        return false;
    struct sl_archive archive;
    if (sl_archive_open(bytes, &archive, NULL) != SL_OK ||
        sl_archive_object(&archive, 0, &limits, &object, NULL) != SL_OK) /* a ZIP archive, but no source bundle */
        return true;
    sl_object_close(object);
    return false;
}

/* True if the bytes are a file of a known format, which must not be unpacked. sl_format_detect takes every ZIP archive for a source bundle,
 * so is_zip_of_files finds out first whether it really is one. */
static bool is_plain(struct sl_bytes bytes)
{
    struct sl_symcache cache;
    if (is_zip_of_files(bytes))
        return false;
    return sl_format_detect(bytes) != SL_FORMAT_UNKNOWN || sl_symbfile_detect(bytes) ||
           sl_symcache_open(bytes, &cache, NULL) == SL_OK;
}

enum sl_code map_unpacked(struct sl_mapping *mapping, struct sl_error *error)
{
    if (is_plain(mapping->bytes) || !fetch_is_wrapped(mapping->bytes))
        return SL_OK;
    struct sl_mapping unpacked = {0};
    int fd = temporary_file();
    /* "core": the limit of the inflation ratio does not apply to core files, which are mostly zeros */
    enum sl_code code = fd >= 0 && sl_write_all(fd, mapping->bytes)
                            ? fetch_unwrap_core(fd, MAX_UNPACKED, error)
                            : sl_fail(error, SL_INTERNAL, "cannot write a temporary file: %s", strerror(errno));
    if (code == SL_OK)
        code = sl_map_fd(fd, &unpacked, error);
    sl_close(fd);
    if (code != SL_OK)
        return code;
    sl_unmap(mapping);
    *mapping = unpacked;
    return SL_OK;
}

enum sl_code map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error)
{
    enum sl_code code = sl_map_file(path, mapping, error);
    if (code == SL_OK && (code = map_unpacked(mapping, error)) != SL_OK)
        sl_unmap(mapping);
    return code;
}

/* ---- .dSYM bundles ---- */

char *find_dsym_file(const char *directory)
{
    char inner[4096], *found = NULL;
    struct dirent **names;
    if (snprintf(inner, sizeof inner, "%s/Contents/Resources/DWARF", directory) >= (int)sizeof inner)
        return NULL;
    int count = scandir(inner, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (!found && names[i]->d_name[0] != '.' && asprintf(&found, "%s/%s", inner, names[i]->d_name) < 0)
            found = NULL;
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return found;
}

bool path_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* ---- separate debug files ---- */

struct finder {
    const struct sl_object *object; /* the object without debug information */
    const char *path;               /* its file */
    struct debug_file *file;
    struct input *input; /* gets notes about what was not found; may be NULL */
    bool refused;        /* a file was found that is not the debug file; `input` has a note that says why */
};

/* True if the file `bytes` has the checksum in the debug link of an object (`info`). Only for an ELF or PE object without id: with an id,
 * that identifies the debug file (GDB manual, "Separate Debug Files"). */
static bool has_checksum(const struct sl_object_info *info, struct sl_bytes bytes)
{
    uLong sum = crc32(0, NULL, 0);
    if (!info->debug_link.size ||
        !(info->format == SL_FORMAT_ELF ? !info->code_id.size
                                        : info->format == SL_FORMAT_PE && sl_debug_id_is_nil(&info->debug_id)))
        return false;
    for (size_t at = 0, piece; at < bytes.size; at += piece) {
        /* in pieces, as crc32 takes an unsigned int */
        piece = bytes.size - at < INT_MAX ? bytes.size - at : INT_MAX;
        sum = crc32(sum, bytes.data + at, (uInt)piece);
    }
    return sum == info->debug_link_crc;
}

/* True if both objects have a debug id, and the same one. */
static bool same_id(const struct sl_object_info *a, const struct sl_object_info *b)
{
    return !sl_debug_id_is_nil(&a->debug_id) && sl_debug_id_equal(&a->debug_id, &b->debug_id);
}

/* Returns the code section of a WASM module; empty if there is none. */
static struct sl_bytes wasm_code(struct sl_object *object)
{
    struct sl_section_info s;
    for (size_t i = 0; sl_object_section_info(object, i, &s); i++)
        if (sl_str_equal(s.name, SL_STR("code")))
            return sl_bytes_slice(sl_object_file(object), s.offset, s.size, NULL);
    return (struct sl_bytes){NULL, 0};
}

/* True if both objects are WASM modules without ids and have the same code: then one is the debug file of the other. */
static bool has_same_code(const struct sl_object *object, struct sl_object *other)
{
    if (sl_object_info(object)->format != SL_FORMAT_WASM || sl_object_info(other)->format != SL_FORMAT_WASM ||
        sl_object_info(object)->code_id.size || sl_object_info(other)->code_id.size)
        return false;
    struct sl_bytes own = wasm_code((struct sl_object *)object), theirs = wasm_code(other);
    return own.size && own.size == theirs.size && memcmp(own.data, theirs.data, own.size) == 0;
}

bool debug_file_select_object(const struct sl_object *object, struct sl_bytes bytes, struct sl_object **debug)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_archive archive;
    bool checked = false, sum_matches = false;
    if (sl_archive_open(bytes, &archive, NULL) != SL_OK)
        return false;
    for (size_t i = 0; i < archive.count; i++) {
        if (sl_archive_object(&archive, i, NULL, debug, NULL) != SL_OK)
            continue;
        const struct sl_object_info *other = sl_object_info(*debug);
        bool usable = other->features.has_debug_info && other->format != SL_FORMAT_PORTABLEPDB;
        /* the checksum is that of the whole file, so it is computed once for all objects in it */
        if (usable && !checked && !same_id(info, other)) {
            checked = true;
            sum_matches = has_checksum(info, bytes);
        }
        if (usable && (same_id(info, other) || sum_matches || has_same_code(object, *debug))) {
            sl_object_align_addresses(*debug, object); /* it may have been linked to other addresses */
            return true;
        }
        sl_object_close(*debug);
    }
    *debug = NULL;
    return false;
}

/* Returns the directory of a path, with its slash; empty for a bare file name. */
static struct sl_str get_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct sl_str){path, slash ? (size_t)(slash - path) + 1 : 0};
}

/* Adds a note to f->input that says why an existing file is not the object's debug file: it cannot be read, has no debug information, or
 * does not match by id, checksum or code. Sets f->refused. */
static void note_refused(struct finder *f, const char *path, struct sl_bytes bytes)
{
    const struct sl_object_info *info = sl_object_info(f->object), *other;
    char own_id[SL_DEBUG_ID_TEXT], other_id[SL_DEBUG_ID_TEXT];
    struct sl_archive archive;
    struct sl_object *object = NULL;
    struct sl_error error = {0};
    f->refused = true;
    if (!f->input)
        return;
    if (sl_archive_open(bytes, &archive, &error) != SL_OK ||
        sl_archive_object(&archive, 0, NULL, &object, &error) != SL_OK) {
        input_note(f->input, "cannot read %s: %s", path, error.message);
        return;
    }
    other = sl_object_info(object);
    sl_debug_id_format(&info->debug_id, own_id);
    sl_debug_id_format(&other->debug_id, other_id);
    if (same_id(info, other))
        input_note(f->input, "%s has no debug information", path);
    else if (info->format == SL_FORMAT_WASM && !info->code_id.size && !other->code_id.size)
        input_note(f->input, "%s does not match: neither file has an id, and their code differs", path);
    else if (sl_debug_id_is_nil(&info->debug_id) || sl_debug_id_is_nil(&other->debug_id))
        input_note(f->input, "%s cannot be matched: %s", path,
                   sl_debug_id_is_nil(&info->debug_id) && info->debug_link.size
                       ? "its checksum differs from the debug link"
                       : "one of the two files has no id");
    else
        input_note(f->input, "%s%s has a different id: %s instead of %s", path,
                   sl_str_equal(get_directory(path), get_directory(f->input->path)) ? " beside it" : "", other_id,
                   own_id);
    sl_object_close(object);
}

/* Opens the file at `path` in f->file if it has the debug information of the object; otherwise false, with a note if it exists. */
static bool try_path(struct finder *f, const char *path)
{
    struct debug_file *file = f->file;
    if (map_file(path, &file->mapping, NULL) != SL_OK)
        return false;
    if (debug_file_select_object(f->object, file->mapping.bytes, &file->object) && (file->path = strdup(path)))
        return true;
    if (!is_same_file(path, f->path)) /* a debug link may name its own file */
        note_refused(f, path, file->mapping.bytes);
    debug_file_close(file);
    return false;
}

static bool try_format(struct finder *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls try_path for the path that printf makes of the arguments; false also when the path would be too long. */
static bool try_format(struct finder *f, const char *format, ...)
{
    char path[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return length < (int)sizeof path && try_path(f, path);
}

/* Opens the DWARF file in a .dSYM bundle in f->file; false if it is not there or belongs to another object. */
static bool try_dsym(struct finder *f, const char *bundle)
{
    char *file = path_is_directory(bundle) ? find_dsym_file(bundle) : NULL;
    bool found = file && try_path(f, file);
    free(file);
    return found;
}

/* Searches the .dSYM bundles of --dsym-hint (`hint`, ends with NULL), then `<path>.dSYM`. True if the debug file was found. */
static bool find_dsym(struct finder *f, const char *path, const char *const *hint)
{
    char beside[PATH_MAX];
    for (; hint && *hint; hint++)
        if (try_dsym(f, *hint))
            return true;
    return snprintf(beside, sizeof beside, "%s.dSYM", path) < (int)sizeof beside && try_dsym(f, beside);
}

const char *const usual_debug_directories[] = {"/usr/lib/debug", NULL};

bool build_id_path(const char *directory, struct sl_str id, char path[4096])
{
    return id.size > 2 && snprintf(path, 4096, "%s/.build-id/%.2s/%.*s.debug", directory, id.data, (int)id.size - 2,
                                   id.data + 2) < 4096;
}

/* Searches for the file that .gnu_debuglink names, in the places of GDB: the directory of `path`, the directory to which its symbolic links
 * lead, and .debug/ in each; then, below each of `directories`, both of these directories (the real one first) and the top, such as
 * /usr/lib/debug/usr/bin/NAME and /usr/lib/debug/NAME. A name with a slash is not used, as it could name any file. */
static bool find_link(struct finder *f, const char *path, const char *const *directories)
{
    struct sl_str link = sl_object_info(f->object)->debug_link;
    char real[PATH_MAX];
    struct sl_str own_directories[] = {get_directory(path), get_directory(realpath(path, real) ? real : path)};
    if (!link.size || memchr(link.data, '/', link.size))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (try_format(f, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(own_directories[i]), SL_STR_ARG(link)) ||
            try_format(f, SL_STR_FMT ".debug/" SL_STR_FMT, SL_STR_ARG(own_directories[i]), SL_STR_ARG(link)))
            return true;
    for (const char *const *d = directories; *d; d++)
        if (try_format(f, "%s/" SL_STR_FMT SL_STR_FMT, *d, SL_STR_ARG(own_directories[1]), SL_STR_ARG(link)) ||
            try_format(f, "%s/" SL_STR_FMT SL_STR_FMT, *d, SL_STR_ARG(own_directories[0]), SL_STR_ARG(link)) ||
            try_format(f, "%s/" SL_STR_FMT, *d, SL_STR_ARG(link)))
            return true;
    return false;
}

/* Searches for the debug file of an ELF object: by build id below `directories`, then by debug link. True if it was found. */
static bool find_elf(struct finder *f, const char *path, const char *const *directories)
{
    struct sl_str id = sl_object_info(f->object)->code_id;
    char named[4096];
    for (const char *const *d = directories; *d; d++)
        if (build_id_path(*d, id, named) && try_path(f, named))
            return true;
    return find_link(f, path, directories);
}

/* Searches the PE file's directory for the PDB that it names, then for `<name>.pd_`, as symbol stores call a compressed PDB. True if found.
 * */
static bool find_pdb(struct finder *f, const char *path)
{
    struct sl_str name = path_file_name(sl_object_info(f->object)->debug_file), directory = get_directory(path);
    if (!name.size)
        return false;
    return try_format(f, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(directory), SL_STR_ARG(name)) ||
           try_format(f, SL_STR_FMT "%.*s_", SL_STR_ARG(directory), (int)name.size - 1, name.data);
}

/* Returns the URL of a WASM module's external_debug_info up to its query or fragment. */
static struct sl_str external_path(const struct sl_object_info *info)
{
    struct sl_str url = info->debug_link;
    size_t size = 0;
    while (size < url.size && url.data[size] && url.data[size] != '?' && url.data[size] != '#')
        size++;
    return (struct sl_str){url.data, size};
}

/* Searches for the file that external_debug_info names (WASM tool conventions, "ExternalDWARF"), without network access. If that is a
 * relative path, tries it below the module's directory first. Then, also for a URL, tries its last component in that directory. True if the
 * file was found. */
static bool find_external(struct finder *f, const char *path)
{
    struct sl_str url = external_path(sl_object_info(f->object)), name = path_file_name(url);
    struct sl_str directory = get_directory(path);
    bool is_path = url.size && url.data[0] != '/' && !memmem(url.data, url.size, "://", 3);
    /* name.size < url.size: the path has a directory. A bare name is tried once only, by the last line */
    if (is_path && name.size && name.size < url.size &&
        try_format(f, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(directory), SL_STR_ARG(url)))
        return true;
    return name.size && try_format(f, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(directory), SL_STR_ARG(name));
}

/* Adds a note to f->input that says which debug file was searched for, and where. Adds none if a wrong file was found, because another note
 * reports that. */
static void note_searched(struct finder *f, const char *path, const char *const *directories)
{
    const struct sl_object_info *info = sl_object_info(f->object);
    struct sl_buf where = {0}, name = {0};
    /* with a debug map, reading the object files that it names adds notes about those that are missing */
    if (!f->input || f->refused || sl_object_has_debug_map(f->object))
        return;
    for (const char *const *d = directories; *d && info->format != SL_FORMAT_MACHO; d++)
        sl_buf_printf(&where, "%s%s", d == directories ? "" : ", ", *d);
    sl_buf_u8(&where, '\0');
    if (info->format == SL_FORMAT_MACHO)
        sl_buf_printf(&name, "%s.dSYM was not found", path);
    else if (info->format == SL_FORMAT_PE && path_file_name(info->debug_file).size)
        sl_buf_printf(&name, SL_STR_FMT " was not found beside it", SL_STR_ARG(path_file_name(info->debug_file)));
    else if (info->format == SL_FORMAT_WASM && info->debug_link.size)
        sl_buf_printf(&name, SL_STR_FMT " was not found beside it (it names " SL_STR_FMT ")",
                      SL_STR_ARG(path_file_name(external_path(info))), SL_STR_ARG(info->debug_link));
    else if (info->debug_link.size)
        sl_buf_printf(&name, SL_STR_FMT " was not found beside it, in .debug there and below %s",
                      SL_STR_ARG(info->debug_link), (const char *)where.data);
    else if (info->format == SL_FORMAT_ELF && info->code_id.size)
        sl_buf_printf(&name, "no file with its build id below %s", (const char *)where.data);
    if (name.size && !name.failed && !where.failed)
        input_note(f->input, "no debug information: " SL_STR_FMT, SL_STR_ARG(sl_buf_view(&name)));
    sl_buf_free(&where);
    sl_buf_free(&name);
}

bool debug_file_find(const struct sl_object *object, const char *path, const char *const *directories,
                     const char *const *dsym_hints, struct debug_file *file, struct input *input)
{
    struct finder f = {.object = object, .path = path, .file = file, .input = input};
    const char *const *searched = directories && *directories ? directories : usual_debug_directories;
    bool found = false;
    *file = (struct debug_file){0};
    switch (sl_object_info(object)->format) {
    case SL_FORMAT_MACHO: found = find_dsym(&f, path, dsym_hints); break;
    case SL_FORMAT_ELF: found = find_elf(&f, path, searched); break;
    case SL_FORMAT_PE: found = find_pdb(&f, path) || find_link(&f, path, searched); break;
    case SL_FORMAT_WASM: found = find_external(&f, path); break;
    default: return false; /* no separate debug files in this format */
    }
    if (!found)
        note_searched(&f, path, searched);
    return found;
}

void debug_file_close(struct debug_file *file)
{
    sl_object_close(file->object);
    sl_unmap(&file->mapping);
    free(file->path);
    *file = (struct debug_file){0};
}
