/* Members of packages: their paths in all formats; reads tar and cpio by libarchive. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "package/impl.h"

/* Steps of work that a member costs; bytes of zeros that are passed at once. */
enum { HEADER_STEPS = 64, GAP_PIECE = 64 << 10 };

/* ---- paths ---- */

/* Appends `/` and a part of a path between slashes; control characters become `?`. "" and "." add nothing. False for ".." and for a path
 * that is too long. */
static bool add_component(struct member_path *path, struct sl_str part)
{
    if (part.size == 0 || sl_str_equal(part, SL_STR(".")))
        return true;
    if (sl_str_equal(part, SL_STR("..")) || part.size > SL_PACKAGE_MAX_PATH - path->size)
        return false;
    path->text[path->size++] = '/';
    for (size_t i = 0; i < part.size; i++)
        path->text[path->size++] = (unsigned char)part.data[i] < ' ' || part.data[i] == 127 ? '?' : part.data[i];
    return true;
}

/* Replaces ill-formed UTF-8 by U+FFFD, as paths in old archives may be in any encoding. False if the path becomes too long. */
static bool make_utf8(struct member_path *path)
{
    struct sl_buf text = {0};
    if (sl_str_is_utf8((struct sl_str){path->text, path->size}))
        return true;
    sl_buf_utf8(&text, (struct sl_str){path->text, path->size});
    bool good = !text.failed && text.size <= SL_PACKAGE_MAX_PATH;
    if (good) {
        memcpy(path->text, text.data, text.size);
        path->size = text.size;
    }
    sl_buf_free(&text);
    return good;
}

/* Copies a path: adds `/` in front, removes "." and empty parts, replaces control characters and ill-formed UTF-8. False if it has "..",
 * is empty or is too long. */
bool member_path_set(struct member_path *path, struct sl_str text)
{
    path->size = 0;
    for (size_t at = 0; at <= text.size;) {
        const char *slash = at < text.size ? memchr(text.data + at, '/', text.size - at) : NULL;
        size_t end = slash ? (size_t)(slash - text.data) : text.size;
        if (!add_component(path, (struct sl_str){text.data + at, end - at}))
            return false;
        at = end + 1;
    }
    return path->size > 0 && make_utf8(path);
}

bool sl_package_is_source_path(struct sl_str path)
{
    static const char *const endings[] = {"c",   "h",   "cc", "cpp", "cxx",   "c++",  "hh", "hpp", "hxx",  "inl", "ipp",
                                          "inc", "tcc", "s",  "asm", "rs",    "go",   "f",  "f90", "f95",  "for", "adb",
                                          "ads", "m",   "mm", "d",   "swift", "java", "kt", "cs",  "vala", "pas", "zig",
                                          "y",   "l",   "cu", "def", "ml",    "mli",  "hs", "nim", "cr"};
    size_t dot = path.size;
    while (dot > 0 && path.data[dot - 1] != '.' && path.data[dot - 1] != '/')
        dot--;
    bool has_ending = dot > 0 && path.data[dot - 1] == '.';
    for (size_t i = 0; has_ending && i < sizeof endings / sizeof *endings; i++)
        if (sl_str_equal_nocase((struct sl_str){path.data + dot, path.size - dot}, sl_str(endings[i])))
            return true;
    return sl_str_starts(path, SL_STR("/usr/src/debug/"));
}

/* ---- tar and cpio ---- */

struct archive_walking {
    struct archive *archive;
    struct stream *stream;
    const struct sl_package_visitor *visitor;
    const struct sl_package_limits *limits;
    uint64_t begin;          /* offset in the uncompressed archive where the stream begins */
    struct sl_error failure; /* of the stream or the budget; code SL_OK = none */
    struct member_path path;
};

/* The callback by which libarchive reads: gives it the next bytes of the uncompressed archive. Returns their number, 0 at the end. */
static la_ssize_t read_piece(struct archive *a, void *arg, const void **piece)
{
    struct archive_walking *w = arg;
    struct sl_bytes bytes;
    if (stream_next(w->stream, &bytes, &w->failure) != SL_OK) {
        archive_set_error(a, EIO, "%s", w->failure.message);
        return ARCHIVE_FATAL;
    }
    *piece = bytes.data;
    return (la_ssize_t)bytes.size;
}

/* Returns the error for a failure of libarchive; w->failure if the stream that it reads or the budget failed first. */
static enum sl_code fail_archive(const struct archive_walking *w, struct sl_error *error)
{
    const char *text = archive_error_string(w->archive);
    if (w->failure.code != SL_OK)
        return sl_fail(error, w->failure.code, "%s", w->failure.message);
    if (archive_errno(w->archive) == ENOMEM)
        return sl_fail(error, SL_BUSY, "out of memory");
    return sl_fail(error, SL_MALFORMED, "the package is damaged: %s", text ? text : "corrupt archive");
}

/* Passes a hole of a sparse file to the visitor as `size` zeros. Returns what the visitor said last; SL_PACKAGE_STOP with w->failure set if
 * the budget is used up. */
static enum sl_package_choice pass_gap(struct archive_walking *w, uint64_t size)
{
    static const uint8_t zeros[GAP_PIECE];
    enum sl_package_choice choice = SL_PACKAGE_READ;
    while (size && choice == SL_PACKAGE_READ) {
        size_t part = size < GAP_PIECE ? (size_t)size : GAP_PIECE;
        if (w->limits->budget && !sl_budget_spend(w->limits->budget, part / 64 + 1)) { /* a step per 64 bytes */
            sl_budget_fail(w->limits->budget, &w->failure);
            return SL_PACKAGE_STOP;
        }
        choice = w->visitor->piece(w->visitor->arg, (struct sl_bytes){zeros, part});
        size -= part;
    }
    return choice;
}

/* Passes the contents of the current member to the visitor: exactly `size` bytes, with zeros for holes, unless the visitor wants no more.
 * `*choice` becomes what the visitor said last. */
static enum sl_code pass_contents(struct archive_walking *w, uint64_t size, enum sl_package_choice *choice,
                                  struct sl_error *error)
{
    const void *piece;
    size_t count;
    la_int64_t offset;
    uint64_t passed = 0;
    int status = ARCHIVE_OK;
    while (*choice == SL_PACKAGE_READ && passed < size &&
           ((status = archive_read_data_block(w->archive, &piece, &count, &offset)) == ARCHIVE_OK ||
            status == ARCHIVE_WARN)) {
        if (offset < 0 || (uint64_t)offset < passed || (uint64_t)offset > size || count > size - (uint64_t)offset)
            return sl_fail(error, SL_MALFORMED, "the package is damaged: parts of a file overlap or are outside of it");
        *choice = pass_gap(w, (uint64_t)offset - passed);
        if (*choice == SL_PACKAGE_READ && count)
            *choice = w->visitor->piece(w->visitor->arg, (struct sl_bytes){piece, count});
        passed = (uint64_t)offset + count;
    }
    if (w->failure.code != SL_OK || (status != ARCHIVE_OK && status != ARCHIVE_WARN && status != ARCHIVE_EOF))
        return fail_archive(w, error);
    if (*choice == SL_PACKAGE_READ && passed < size)
        *choice = pass_gap(w, size - passed);
    return w->failure.code == SL_OK ? SL_OK : fail_archive(w, error);
}

/* Passes the current entry to the visitor if it is a regular file with a usable path; leaves it out otherwise (SL_OK). A hard link without
 * contents is left out, too: it is another name of a member that came before. */
static enum sl_code visit_entry(struct archive_walking *w, struct archive_entry *entry, enum sl_package_choice *choice,
                                struct sl_error *error)
{
    const char *name = archive_entry_pathname(entry);
    la_int64_t size = archive_entry_size(entry);
    if (!name) /* it cannot be converted to the locale's encoding */
        name = archive_entry_pathname_utf8(entry);
    if (!name || archive_entry_filetype(entry) != AE_IFREG || size < 0 ||
        (archive_entry_hardlink(entry) && size == 0) || !member_path_set(&w->path, sl_str(name)))
        return SL_OK;
    struct sl_package_member member = {.path = {w->path.text, w->path.size},
                                       .size = (uint64_t)size,
                                       /* of its header in the decompressed archive, which is read from w->begin on */
                                       .offset = w->begin + (uint64_t)archive_read_header_position(w->archive),
                                       .mode = (uint32_t)archive_entry_perm(entry)};
    *choice = w->visitor->begin(w->visitor->arg, &member);
    enum sl_code code = *choice == SL_PACKAGE_READ ? pass_contents(w, member.size, choice, error) : SL_OK;
    if (code == SL_OK && *choice == SL_PACKAGE_READ)
        *choice = w->visitor->end(w->visitor->arg);
    return code;
}

/* Calls the visitor for each entry until the end, or until it returns SL_PACKAGE_STOP. Entries with a warning (ARCHIVE_WARN) are usable. */
static enum sl_code visit_entries(struct archive_walking *w, struct sl_error *error)
{
    struct archive_entry *entry;
    enum sl_package_choice choice = SL_PACKAGE_READ;
    int status;
    while ((status = archive_read_next_header(w->archive, &entry)) == ARCHIVE_OK || status == ARCHIVE_WARN) {
        if (w->limits->budget && !sl_budget_spend(w->limits->budget, HEADER_STEPS))
            return sl_budget_fail(w->limits->budget, error);
        enum sl_code code = visit_entry(w, entry, &choice, error);
        if (code != SL_OK || choice == SL_PACKAGE_STOP)
            return code;
    }
    return status == ARCHIVE_EOF ? SL_OK : fail_archive(w, error);
}

enum sl_code archive_walk(struct sl_bytes packed, uint64_t offset, const struct sl_package_visitor *visitor,
                          const struct sl_package_limits *limits, struct sl_error *error)
{
    struct archive_walking w = {.visitor = visitor, .limits = limits, .begin = offset};
    w.stream = stream_open(packed, offset, limits, error);
    if (!w.stream)
        return error->code;
    w.archive = archive_read_new();
    enum sl_code code;
    if (!w.archive || archive_read_support_format_tar(w.archive) != ARCHIVE_OK ||
        archive_read_support_format_cpio(w.archive) != ARCHIVE_OK)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (archive_read_open(w.archive, &w, NULL, read_piece, NULL) != ARCHIVE_OK)
        code = fail_archive(&w, error);
    else
        code = visit_entries(&w, error);
    archive_read_free(w.archive);
    stream_close(w.stream);
    return code;
}
