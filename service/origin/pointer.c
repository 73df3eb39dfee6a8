/* `file.ptr`: a text in a file's directory with the real path of the file ("Symbol storage formats", Microsoft's documentation
 * of SymStore), for example `PATH:\\host\share\a\crash.exe`. It is followed once, and only to the web or to directories that
 * the configuration allows. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "origin/impl.h"

enum { POINTER_MAX = 4096 };

struct sl_str pointer_parse(struct sl_str text)
{
    struct sl_str tag = SL_STR("PATH:");
    if (!sl_str_starts(text, tag))
        return SL_STR(""); /* "MSG:", or unknown */
    struct sl_str path = {text.data + tag.size, text.size - tag.size};
    while (path.size && strchr("\r\n ", path.data[path.size - 1])) /* strchr() also finds NUL */
        path.size--;
    return path;
}

/* ---- local files ---- */

/* True if Windows takes two characters of paths for equal: ASCII case and the kind of slash do not matter. */
static bool same_char(char a, char b)
{
    a = a == '\\' ? '/' : a >= 'A' && a <= 'Z' ? (char)(a + 32) : a;
    b = b == '\\' ? '/' : b >= 'A' && b <= 'Z' ? (char)(b + 32) : b;
    return a == b;
}

static bool slash(char c)
{
    return c == '/' || c == '\\';
}

/* Returns the path after the share and its separator; data NULL if the path is not on the share. */
static struct sl_str on_share(struct sl_str path, struct sl_str share)
{
    struct sl_str none = {NULL, 0};
    while (share.size && slash(share.data[share.size - 1]))
        share.size--;
    if (share.size == 0 || path.size <= share.size || !slash(path.data[share.size]))
        return none;
    for (size_t i = 0; i < share.size; i++)
        if (!same_char(path.data[i], share.data[i]))
            return none;
    return (struct sl_str){path.data + share.size + 1, path.size - share.size - 1};
}

/* Replaces the share of `\\host\share\x` by its mount point; returns other paths unchanged. Data NULL when out of memory. */
static struct sl_str translate(struct sl_arena *arena, struct sl_str path)
{
    for (size_t i = 0; i < origin_options.unc_map_count; i++) {
        const struct text_pair *mapping = &origin_options.unc_map[i];
        struct sl_str rest = on_share(path, mapping->key);
        if (!rest.data)
            continue;
        struct sl_buf text = {0};
        sl_buf_str(&text, mapping->value);
        sl_buf_u8(&text, '/');
        for (size_t c = 0; c < rest.size; c++)
            sl_buf_u8(&text, rest.data[c] == '\\' ? '/' : (uint8_t)rest.data[c]);
        return sl_buf_move_to_arena(&text, arena);
    }
    return path;
}

bool pointer_local(struct sl_arena *arena, struct sl_str path, struct sl_str *root, struct sl_str *relative)
{
    path = translate(arena, path);
    if (path.size == 0 || path.data[0] != '/' || memchr(path.data, '\0', path.size))
        return false;
    for (size_t i = 0; i < origin_options.file_ptr_root_count; i++) {
        struct sl_str r = origin_options.file_ptr_roots[i]; /* "/" becomes the empty text in the next lines */
        while (r.size && r.data[r.size - 1] == '/')
            r.size--;
        if (path.size <= r.size + 1 || !sl_str_starts(path, r) || path.data[r.size] != '/')
            continue;
        *root =
            (struct sl_str){sl_arena_strndup(arena, r.size ? r.data : "/", r.size ? r.size : 1), r.size ? r.size : 1};
        if (!root->data) /* copied, because the configuration may be replaced while the file is read */
            return false;
        *relative = (struct sl_str){path.data + r.size, path.size - r.size};
        while (relative->size && relative->data[0] == '/')
            relative->data++, relative->size--;
        return relative->size > 0;
    }
    return false;
}

/* ---- following ---- */

/* Downloads the file at the URL that a `file.ptr` contains, without the credentials of the pointer's source. A URL with a NUL counts as
 * missing. */
static enum sl_code fetch_url(struct sl_arena *arena, const struct remote_file *file, struct sl_str url, int fd,
                              struct sl_error *error)
{
    if (memchr(url.data, '\0', url.size))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    struct fetch_request request = {.url = sl_arena_strndup(arena, url.data, url.size),
                                    .deny_list = true,
                                    .source = origin_label(arena, file->source),
                                    .max_size = file->max_size,
                                    .refuse_empty = true,
                                    .refuse_pages = true};
    if (!request.url || !request.source)
        return sl_fail(error, SL_BUSY, "out of memory");
    return fetch_get(&request, fd, error);
}

/* Gets the file at `path`, which a `file.ptr` contains: from the web, or from an allowed directory. Anything else counts as missing. */
static enum sl_code follow(struct sl_arena *arena, const struct remote_file *file, struct sl_str path, int fd,
                           struct sl_error *error)
{
    struct sl_str scheme = {path.data, path.size < 8 ? path.size : 8};
    bool http = sl_str_equal_nocase(scheme, SL_STR("https://")) ||
                (scheme.size >= 7 && sl_str_equal_nocase((struct sl_str){path.data, 7}, SL_STR("http://")));
    if (http)
        return fetch_url(arena, file, path, fd, error);
    struct source local = {.id = file->source->id, .type = SOURCE_FILESYSTEM};
    struct remote_file there = {.source = &local, .max_size = file->max_size};
    if (!path.size || !pointer_local(arena, path, &local.path, &there.location))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    return filesystem_fetch(&there, fd, error);
}

/* Downloads the pointer `file` into memory, then the file that it names into `fd`. */
enum sl_code pointer_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    char text[POINTER_MAX];
    struct sl_arena arena = {0};
    struct remote_file pointer = *file;
    int body = memfd_create("file.ptr", MFD_CLOEXEC);
    if (body < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a download");
    pointer.pointer = false; /* so that origin_fetch gets the pointer itself */
    pointer.max_size = sizeof text;
    pointer.may_be_empty = true; /* pointer_parse finds no path in it then */
    enum sl_code code = origin_fetch(&pointer, body, error);
    ssize_t size = code == SL_OK ? pread(body, text, sizeof text, 0) : 0;
    close(body);
    if (code == SL_OK)
        code = follow(&arena, file, pointer_parse((struct sl_str){text, size > 0 ? (size_t)size : 0}), fd, error);
    sl_arena_free(&arena);
    return code;
}
