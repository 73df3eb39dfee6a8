/* The ZIP directory of an uploaded archive: reads it, checks it, and selects the members to store. */
#include "api/uploads/uploads.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/map.h"

struct archive_window archive_window_of(const struct archive *archive)
{
    if (!archive->bytes.size) /* bytes.data may be NULL: no subtraction */
        return (struct archive_window){0, 0};
    return (struct archive_window){(uint64_t)(archive->bytes.data - archive->body.bytes.data), archive->bytes.size};
}

bool archive_fail(struct archive *archive, int status, const char *format, ...)
{
    va_list args;
    char text[1200];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = sl_arena_strndup(archive->arena, text, strlen(text));
    archive->failure = (struct uploads_failure){kept ? status : 503, kept ? sl_str(kept) : SL_STR("out of memory")};
    return false;
}

/* Returns a name in single quotes, with backslash escapes as in Python strings, as Mozilla's service writes names in its errors. Cut at
 * 1000 bytes, as archive_fail has space for 1200. Empty quotes when out of memory. */
static const char *quoted(struct archive *archive, struct sl_str name)
{
    struct sl_buf out = {0};
    sl_buf_u8(&out, '\'');
    for (size_t i = 0; i < name.size && out.size < 1000; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c == '\\' || c == '\'')
            sl_buf_printf(&out, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            sl_buf_printf(&out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (c < 0x20 || c == 0x7F)
            sl_buf_printf(&out, "\\x%02x", c);
        else
            sl_buf_u8(&out, c);
    }
    sl_buf_cstr(&out, "'");
    const char *text = sl_buf_move_to_arena(&out, archive->arena).data;
    return text ? text : "''";
}

static struct sl_str last_component(struct sl_str name)
{
    const char *slash = name.size ? memrchr(name.data, '/', name.size) : NULL;
    return slash ? (struct sl_str){slash + 1, (size_t)(name.data + name.size - slash - 1)} : name;
}

static bool ends_nocase(struct sl_str text, struct sl_str suffix)
{
    return text.size >= suffix.size &&
           sl_str_equal_nocase((struct sl_str){text.data + text.size - suffix.size, suffix.size}, suffix);
}

/* True for the name of a list of symbol files, which Mozilla's builds put into their archives. */
static bool is_list_of_symbols(struct sl_str name)
{
    return ends_nocase(name, SL_STR("-symbols.txt"));
}

/* True, with `failure`, if the name contains a text that the configuration forbids. */
static bool has_snippet(struct archive *archive, struct sl_str name)
{
    for (size_t i = 0; i < archive->config->disallowed_snippet_count; i++) {
        struct sl_str snippet = archive->config->disallowed_snippets[i];
        if (memmem(name.data, name.size, snippet.data, snippet.size)) {
            /* "Content": Mozilla's service has one text for names and contents */
            archive_fail(archive, 400,
                         "Content of archive file contains the snippet '" SL_STR_FMT "' which is not allowed",
                         SL_STR_ARG(snippet));
            return true;
        }
    }
    return false;
}

/* True if the member is to be stored; sets `key`, its name in the store. False without a failure for members that are ignored:
 * directories, .DS_Store and lists of symbol files. False with archive->failure for members that make the archive invalid: a name that
 * contains a forbidden snippet or has another form than a key, a symbolic link, an unknown compression. */
static bool archive_wants(struct archive *archive, const struct sl_zip_entry *entry, struct sl_str *key)
{
    struct sl_str name = entry->name;
    if (sl_str_ends(name, SL_STR("/")))
        return false;
    if (has_snippet(archive, name))
        return false;
    if (sl_str_equal(last_component(name), SL_STR(".DS_Store")))
        return false;
    if (!memchr(name.data, '/', name.size) && is_list_of_symbols(name))
        return false;
    bool is_key = uploads_normalize_key(archive->arena, name, key);
    if (!is_key && key->size) /* the size is set although there is no key: so uploads_normalize_key says it */
        return archive_fail(archive, 503, "out of memory");
    if (!is_key)
        return archive_fail(archive, 400,
                            "Unrecognized file pattern. Should only be <module>/<hex>/<file> or <name>-symbols.txt and "
                            "nothing else. (First unrecognized pattern was %s)",
                            quoted(archive, name));
    if (is_list_of_symbols(name)) /* one whose name has the form of a key */
        return false;
    if (entry->is_link)
        return archive_fail(archive, 400, "Archive member %s is a symbolic link", quoted(archive, name));
    if (entry->method != SL_ZIP_STORED && entry->method != SL_ZIP_DEFLATED)
        return archive_fail(archive, 400, "Archive member %s is encrypted or compressed in an unknown way",
                            quoted(archive, name));
    return true;
}

/* Adds a member to store; `is_packed`: it is stored gzip-compressed. Of two with the same key the later one is stored; their sizes must be
 * equal. `seen`: the members so far, by key. False: `failure` is set. */
static bool archive_add(struct archive *archive, struct sl_map *seen, const struct sl_zip_entry *entry,
                        struct sl_str key)
{
    bool fresh;
    void **slot = sl_map_find_or_add(seen, key, &fresh);
    if (!slot)
        return archive_fail(archive, 503, "out of memory");
    if (fresh)
        *slot = &archive->members[archive->count++];
    struct archive_member *member = *slot;
    if (!fresh && member->entry->size != entry->size)
        return archive_fail(archive, 400,
                            "The zipfile buffer contains two files both called " SL_STR_FMT
                            " and they have difference sizes (%llu != %llu)",
                            SL_STR_ARG(entry->name), (unsigned long long)entry->size,
                            (unsigned long long)member->entry->size);
    *member = (struct archive_member){.entry = entry, .key = key, .is_packed = uploads_is_packed(archive->config, key)};
    return true;
}

/* Refuses archives with too many members or too many decompressed bytes, and zip bombs. A zip bomb is an archive whose members'
 * compressed sizes add up to more than the archive, so that some overlap, or one with a member of more than SMALL bytes that is
 * compressed by more than MAX_RATIO. False: `failure` is set. */
static bool check_sizes(struct archive *archive)
{
    enum { SMALL = 1 << 20, MAX_RATIO = 1000 };
    uint64_t packed = 0, unpacked = 0;
    if (archive->zip.count > archive->config->max_members)
        return archive_fail(archive, 400, "Archive file has more than %llu members",
                            (unsigned long long)archive->config->max_members);
    for (size_t i = 0; i < archive->zip.count; i++) {
        const struct sl_zip_entry *e = &archive->zip.entries[i];
        if (__builtin_add_overflow(packed, e->packed, &packed) || packed > archive->bytes.size ||
            __builtin_add_overflow(unpacked, e->size, &unpacked) ||
            (e->size > SMALL && e->size / MAX_RATIO > e->packed))
            return archive_fail(archive, 400, "Archive member %s is a zip bomb", quoted(archive, e->name));
    }
    return unpacked <= archive->config->max_unpacked_size || archive_fail(archive, 413, "Upload is too large");
}

/* Lists the entries of the archive to store as its members, and all others, except directories, as ignored. False: `failure` is set. */
static bool archive_select(struct archive *archive)
{
    struct sl_map seen = {0};
    bool good = true;
    archive->members = SL_ARENA_ARRAY(archive->arena, struct archive_member, archive->zip.count + 1);
    archive->ignored = SL_ARENA_ARRAY(archive->arena, struct sl_str, archive->zip.count + 1);
    if (!archive->members || !archive->ignored)
        return archive_fail(archive, 503, "out of memory");
    for (size_t i = 0; good && i < archive->zip.count; i++) {
        const struct sl_zip_entry *entry = &archive->zip.entries[i];
        struct sl_str key;
        if (archive_wants(archive, entry, &key))
            good = archive_add(archive, &seen, entry, key);
        else if (archive->failure.status)
            good = false;
        else if (!sl_str_ends(entry->name, SL_STR("/")))
            archive->ignored[archive->ignored_count++] = entry->name;
    }
    sl_map_free(&seen);
    return good;
}

/* False, with `failure`, if the file name of the archive does not end in ".zip". */
static bool check_filename(struct archive *archive)
{
    if (ends_nocase(archive->filename, SL_STR(".zip")))
        return true;
    const char *dot = archive->filename.size ? memrchr(archive->filename.data, '.', archive->filename.size) : NULL;
    struct sl_str last = {dot, dot ? (size_t)(archive->filename.data + archive->filename.size - dot) : 0};
    return archive_fail(archive, 400, "Unrecognized archive file extension \"" SL_STR_FMT "\"", SL_STR_ARG(last));
}

bool archive_list_directory(struct archive *archive, int *entries)
{
    struct sl_error error;
    *entries = -1;
    if (!check_filename(archive))
        return false;
    const struct archive_window window = archive_window_of(archive);
    enum sl_code code = archive_list(archive->fd, &window, archive->bytes, entries, &error);
    if (code == SL_BUSY || code == SL_INTERNAL || code == SL_CANCELLED)
        return archive_fail(archive, code == SL_INTERNAL ? 500 : 503,
                            code == SL_BUSY ? "out of memory" : "Internal Server Error");
    return code == SL_OK || archive_fail(archive, 400, "File is not a zip file");
}

bool archive_read_directory(struct archive *archive, int entries)
{
    struct sl_error error;
    if (archive_read_entries(entries, archive->bytes, archive->arena, &archive->zip, &error) != SL_OK)
        return archive_fail(archive, error.code == SL_BUSY ? 503 : 500,
                            error.code == SL_BUSY ? "out of memory" : "Internal Server Error");
    return check_sizes(archive) && archive_select(archive);
}
