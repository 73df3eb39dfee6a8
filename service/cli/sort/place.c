/* `symloom sort`: writes objects atomically, and compressed if wanted, with `.meta` files and references beside them.
 *
 *     67/e9247c..f/debuginfo              the object, zstd with -z
 *     67/e9247c..f/debuginfo.meta         {"name":"app.debug","arch":"x86_64","file_format":"elf"}
 *     67/e9247c..f/refs/<bundle id>       empty: the bundle contains this id */
#include "cli/sort/sort.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/json_write.h"
#include "core/files.h"

enum { CHUNK = 256 * 1024 };

/* Sets `path` to `<root>/<below><suffix>`; the root is the output directory. SL_INTERNAL if it is too long. */
static enum sl_code make_output_path(const struct sort *s, const char *below, const char *suffix, char path[4096],
                                     struct sl_error *error)
{
    return snprintf(path, 4096, "%s/%s%s", s->root, below, suffix) < 4096
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "the path of the output file is too long: %s/%s%s", s->root, below,
                         suffix);
}

/* Creates the directories above the file `path`. SL_BUSY when out of memory or descriptors, SL_INTERNAL on other errors. */
static enum sl_code make_directories_of(const char *path, struct sl_error *error)
{
    if (files_make_parents(path, 0777))
        return SL_OK;
    char what[4200];
    int number = errno;
    snprintf(what, sizeof what, "cannot write %s", path);
    return sl_fail_errno(error, number, what);
}

/* ---- existing files ---- */

static bool is_zstd(struct sl_bytes bytes)
{
    return bytes.size >= 4 && memcmp(bytes.data, "\x28\xB5\x2F\xFD", 4) == 0;
}

/* True if the zstd data decompresses to the wanted bytes. Compares a CHUNK at a time, as objects may be larger than the memory. */
static bool unpacks_to(struct sl_bytes packed, struct sl_bytes wanted)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    uint8_t *chunk = malloc(CHUNK);
    ZSTD_inBuffer in = {packed.data, packed.size, 0};
    size_t at = 0, left = 1;
    bool same = stream && chunk;
    /* `left` is 0 at the end of a frame. A round that neither reads nor writes means that the file is truncated. */
    while (same && left) {
        ZSTD_outBuffer out = {chunk, CHUNK, 0};
        size_t before = in.pos;
        left = ZSTD_decompressStream(stream, &out, &in);
        same = !ZSTD_isError(left) && out.pos <= wanted.size - at && memcmp(chunk, wanted.data + at, out.pos) == 0 &&
               (out.pos || in.pos != before || !left);
        at += out.pos;
    }
    free(chunk);
    ZSTD_freeDStream(stream);
    return same && at == wanted.size;
}

/* True if the existing file, decompressed, has these bytes. */
static bool has_contents(const char *path, struct sl_bytes bytes)
{
    struct sl_mapping mapping;
    if (sl_map_file(path, &mapping, NULL) != SL_OK)
        return false;
    /* if the wanted bytes are zstd data themselves, the file is not unpacked to be compared */
    bool same = is_zstd(mapping.bytes) && !is_zstd(bytes)
                    ? unpacks_to(mapping.bytes, bytes)
                    : mapping.bytes.size == bytes.size && memcmp(mapping.bytes.data, bytes.data, bytes.size) == 0;
    sl_unmap(&mapping);
    return same;
}

/* ---- small files ---- */

/* Writes a small file, uncompressed, and the directories above it; leaves a file with the same contents alone. */
static enum sl_code write_whole(const char *path, struct sl_str text, struct sl_error *error)
{
    struct sl_bytes bytes = {(const uint8_t *)text.data, text.size};
    if (has_contents(path, bytes))
        return SL_OK;
    enum sl_code code = make_directories_of(path, error);
    return code == SL_OK ? output_file_put(path, bytes, error) : code;
}

enum sl_code sort_write_small(const struct sort *s, const char *below, struct sl_str text, struct sl_error *error)
{
    char path[4096];
    enum sl_code code = make_output_path(s, below, "", path, error);
    return code == SL_OK ? write_whole(path, text, error) : code;
}

/* ---- the file itself ---- */

/* Writes the bytes uncompressed, in chunks. False if a write failed. */
static bool write_plain(struct output_file *file, struct sl_bytes bytes)
{
    for (size_t at = 0; at < bytes.size; at += CHUNK) {
        size_t size = bytes.size - at < CHUNK ? bytes.size - at : CHUNK;
        if (!output_file_write(file, (struct sl_str){(const char *)bytes.data + at, size}))
            return false;
    }
    return true;
}

/* Writes the bytes compressed with zstd, by `workers` threads if more than one. False if a write failed, or out of memory. */
static bool write_packed(const struct sort *s, struct output_file *file, struct sl_bytes bytes, unsigned workers)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    char *chunk = malloc(CHUNK);
    ZSTD_inBuffer in = {bytes.data, bytes.size, 0};
    bool ok = context && chunk && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, s->level)) &&
              !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, bytes.size));
    if (ok && workers > 1) /* may fail: a libzstd without threads then compresses with one */
        ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, (int)workers);
    for (size_t left = 1; ok && left;) {
        ZSTD_outBuffer out = {chunk, CHUNK, 0};
        left = ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
        ok = !ZSTD_isError(left) && output_file_write(file, (struct sl_str){chunk, out.pos});
    }
    free(chunk);
    ZSTD_freeCCtx(context);
    return ok;
}

/* Writes an object to `path`, compressed if a level was given (-z), and the directories above it. On an error there is no file. */
static enum sl_code write_target(const struct sort *s, const char *path, struct sl_bytes bytes, unsigned workers,
                                 struct sl_error *error)
{
    struct output_file file;
    enum sl_code code = make_directories_of(path, error);
    if (code == SL_OK)
        code = output_file_open(&file, path, error);
    if (code != SL_OK)
        return code;
    bool ok = s->level ? write_packed(s, &file, bytes, workers) : write_plain(&file, bytes);
    /* output_file_close returns the error of a failed write; otherwise the compression failed */
    bool broken = !ok && !file.failed;
    code = output_file_close(&file, !broken, error);
    return broken ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

/* ---- files beside the object ---- */

/* Writes `<target>.meta`, with name, architecture and format of the object. */
static enum sl_code write_meta(const struct sort *s, const struct sort_piece *piece, const char *target,
                               struct sl_error *error)
{
    struct sl_buf text = {0};
    char path[4096];
    struct sl_json_writer w = sl_json_writer(&text);
    const char *const members[][2] = {{"name", piece->name}, {"arch", piece->arch}, {"file_format", piece->format}};
    sl_json_begin_object(&w);
    for (size_t i = 0; i < 3; i++)
        sl_json_member_str(&w, members[i][0], sl_str(members[i][1]));
    sl_json_end_object(&w);
    enum sl_code code = make_output_path(s, target, ".meta", path, error);
    if (code == SL_OK)
        code = write_whole(path, sl_buf_view(&text), error);
    sl_buf_free(&text);
    return code;
}

/* Writes the empty file `refs/<bundle id>` in the target's directory, which says that the bundle contains this id. Does nothing without a
 * bundle id. */
static enum sl_code write_reference(const struct sort *s, const char *target, struct sl_error *error)
{
    char below[4096];
    const char *slash = strrchr(target, '/');
    if (!s->bundle_id)
        return SL_OK;
    snprintf(below, sizeof below, "%.*s/refs/%s", (int)(slash - target), target, s->bundle_id);
    return sort_write_small(s, below, SL_STR(""), error);
}

/* Puts the object, written to `path`, at its second target (piece->alias) too, if it has one: as a hard link if the file system allows
 * that, otherwise as a copy; with a `.meta` file and reference beside it. */
static enum sl_code write_alias(const struct sort *s, const struct sort_piece *piece, const char *path,
                                struct sl_bytes bytes, struct sl_error *error)
{
    char other[4096];
    if (!piece->alias)
        return SL_OK;
    enum sl_code code = make_output_path(s, piece->alias, "", other, error);
    if (code == SL_OK)
        code = make_directories_of(other, error);
    bool is_linked = code == SL_OK && link(path, other) == 0;
    if (code == SL_OK && !is_linked && errno == EEXIST &&
        s->force) { /* `other` may still be a link to the old contents, which --force has replaced at `path` */
        unlink(other);
        is_linked = link(path, other) == 0;
    }
    if (code == SL_OK && !is_linked && errno != EEXIST) /* EEXIST: a file is there already, and is kept */
        code = write_target(s, other, bytes, 0, error);
    if (code == SL_OK)
        code = write_meta(s, piece, piece->alias, error);
    return code == SL_OK ? write_reference(s, piece->alias, error) : code;
}

/* In a dry run, stores an object's size and hash. If another object would be written to the same target first (piece->leader), compares
 * both and corrects the action: SORT_EXISTS if they are equal, else SORT_DUPLICATE. */
static void predict_action(struct sort_piece *piece, struct sl_bytes bytes)
{
    const struct sort_piece *leader = piece->leader;
    piece->size = bytes.size;
    piece->hash = sl_hash(bytes.data, bytes.size);
    if (leader && leader->action == SORT_WRITTEN)
        piece->action = leader->size == piece->size && leader->hash == piece->hash ? SORT_EXISTS : SORT_DUPLICATE;
}

void sort_write_piece(const struct sort *s, struct sort_file *file, struct sort_piece *piece, struct sl_bytes bytes,
                      unsigned workers)
{
    char path[4096];
    struct sl_error error = {0};
    enum sl_code code = make_output_path(s, piece->target, "", path, &error);
    if (code != SL_OK) {
        sort_fail_piece(file, piece, error.message);
        return;
    }
    /* --force replaces a file of an earlier command, but not one that this command wrote (then piece->first is false). The files beside the
     * object are written even if the same object exists, because an interrupted command may have left them out */
    bool there = access(path, F_OK) == 0, same = there && has_contents(path, bytes);
    piece->action = same ? SORT_EXISTS : there && !(s->force && piece->first) ? SORT_DUPLICATE : SORT_WRITTEN;
    if (s->dry_run)
        predict_action(piece, bytes);
    if (piece->action == SORT_DUPLICATE || s->dry_run)
        return;
    if (!same)
        code = write_target(s, path, bytes, workers, &error);
    if (code == SL_OK && piece->first) /* the name in `.meta` is that of the first input */
        code = write_meta(s, piece, piece->target, &error);
    if (code == SL_OK)
        code = write_reference(s, piece->target, &error);
    if (code == SL_OK)
        code = write_alias(s, piece, path, bytes, &error);
    if (code != SL_OK)
        sort_fail_piece(file, piece, error.message);
}
