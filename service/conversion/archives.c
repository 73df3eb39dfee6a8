/* Members of uploaded archives: listed, checked and written. */
#include "conversion/archives.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* Sizes in bytes. OVERLAP: the longest forbidden text that is found if it begins in one decompressed piece and ends in the next.
 * WRITE_PIECE: bytes per write. DROP_PIECE: how much of the archive is read before its pages are dropped from memory. */
enum { OVERLAP = 256, WRITE_PIECE = 256 << 10, DROP_PIECE = 2 << 20 };

/* Returns the part of INPUT_FILE that is the archive; data NULL if the window lies outside of the file. */
static struct sl_bytes find_archive(const struct converter_call *call, const struct archive_window *window)
{
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    if (window->offset > file.size || window->size > file.size - window->offset)
        return (struct sl_bytes){NULL, 0};
    return (struct sl_bytes){file.data + window->offset, window->size};
}

/* Reports a window that find_archive() refuses: an error of the caller, not of the uploaded file. */
static enum sl_code fail_window(struct sl_error *error)
{
    return sl_fail(error, SL_INTERNAL, "the archive lies outside of its file");
}

/* ---- the directory ---- */

struct archive_entry archive_pack_entry(const struct sl_zip *zip, const struct sl_zip_entry *entry)
{
    return (struct archive_entry){.offset = entry->offset,
                                  .packed = entry->packed,
                                  .size = entry->size,
                                  .name_offset = (uint64_t)((const uint8_t *)entry->name.data - zip->bytes.data),
                                  .name_size = (uint32_t)entry->name.size,
                                  .crc = entry->crc,
                                  .method = entry->method,
                                  .is_link = entry->is_link};
}

/* Implements converter_archive_list: writes a struct archive_entry for each entry of the archive to the call's output. The options are the
 * window: where in the file the archive is. There is no `result`. */
static enum sl_code list_entries(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    (void)result;
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_buf out = {.budget = &conversion->budget};
    struct sl_zip zip;
    struct sl_bytes archive = find_archive(call, converter_options(call));
    if (!archive.data)
        return fail_window(error);
    enum sl_code code = sl_zip_open(archive, 0, &arena, &zip, error); /* 0: nothing precedes the archive */
    for (size_t i = 0; code == SL_OK && i < zip.count; i++) {
        const struct archive_entry entry = archive_pack_entry(&zip, &zip.entries[i]);
        sl_buf_add(&out, &entry, sizeof entry);
    }
    if (code == SL_OK)
        code = conversion_write(conversion, call, &out, error);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return code;
}

const struct converter converter_archive_list = {"archive_list", sizeof(struct archive_window), 0, list_entries};

enum sl_code archive_list(int fd, const struct archive_window *window, struct sl_bytes archive, int *entries,
                          struct sl_error *error)
{
    const struct archive_window whole = {0, archive.size};
    struct conversion_description about = {.size = archive.size, .location = SL_STR("an archive")};
    struct converter_call call = {.options = CONVERTER_OPTIONS(whole)};
    if (fd >= 0) {
        /* a worker gets the whole file; the window says which part of it is the archive */
        call.options = CONVERTER_OPTIONS(*window);
        converter_add_file(&call, INPUT_FILE, fd);
    } else {
        converter_add_bytes(&call, INPUT_FILE, archive);
    }
    call.out = *entries = conversion_new_output("entries");
    if (call.out < 0)
        return sl_fail_errno(error, errno, "cannot create a file in memory for the list of the archive's entries");
    enum sl_code code = conversion_run(&about, &converter_archive_list, &call, NULL, error);
    if (code != SL_OK) {
        close(*entries);
        *entries = -1;
    }
    return code;
}

/* Turns an entry back into struct sl_zip_entry, with a pointer to its name in the archive. False if that is not possible: a worker has
 * written the entry, and a hostile file may have taken the worker over. */
static bool unpack_entry(struct archive_entry entry, struct sl_bytes archive, struct sl_zip_entry *to)
{
    if (entry.name_offset > archive.size || entry.name_size > archive.size - entry.name_offset ||
        entry.method > UINT16_MAX || entry.is_link > 1)
        return false;
    *to = (struct sl_zip_entry){.name = {(const char *)archive.data + entry.name_offset, entry.name_size},
                                .offset = entry.offset,
                                .packed = entry.packed,
                                .size = entry.size,
                                .crc = entry.crc,
                                .method = (uint16_t)entry.method,
                                .is_link = entry.is_link};
    return true;
}

/* Makes `zip` of the array of struct archive_entry that list_entries() wrote. SL_MALFORMED if it is no array of whole entries, or the name
 * of one lies outside of the archive. */
static enum sl_code read_entries(struct sl_bytes listed, struct sl_bytes archive, struct sl_arena *arena,
                                 struct sl_zip *zip, struct sl_error *error)
{
    size_t count = listed.size / sizeof(struct archive_entry);
    if (listed.size % sizeof(struct archive_entry) || count > SL_ZIP_MAX_ENTRIES)
        return sl_fail(error, SL_MALFORMED, "the list of the archive's entries is damaged");
    /* + 1: an empty array is not NULL, which would mean that memory is used up */
    *zip = (struct sl_zip){archive, SL_ARENA_ARRAY(arena, struct sl_zip_entry, count + 1), count};
    if (!zip->entries)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct archive_entry entry;
        memcpy(&entry, listed.data + i * sizeof entry, sizeof entry);
        if (!unpack_entry(entry, archive, &zip->entries[i]))
            return sl_fail(error, SL_MALFORMED, "the list of the archive's entries is damaged");
    }
    return SL_OK;
}

enum sl_code archive_read_entries(int entries, struct sl_bytes archive, struct sl_arena *arena, struct sl_zip *zip,
                                  struct sl_error *error)
{
    struct sl_mapping listed;
    enum sl_code code = sl_map_fd(entries, &listed, error);
    if (code != SL_OK)
        return code;
    code = read_entries(listed.bytes, archive, arena, zip, error);
    sl_unmap(&listed);
    return code;
}

/* ---- reading a member ---- */

/* The state of reading a member of a mapped archive from begin to end. Pages that were read are dropped from memory, so that a large
 * archive is never in memory as a whole. */
struct member_scan {
    struct conversion *conversion;
    const struct converter_input *file;
    struct sl_zip zip; /* the archive, as if it had only this member */
    struct sl_zip_entry entry;
    struct sl_bytes packed; /* the member's compressed bytes */
    uint64_t dropped;       /* the pages of `packed` before this offset were dropped */
};

/* Drops the pages of the compressed bytes before offset `to` from memory, as they are not needed again. Does nothing if the archive is not
 * mapped from a file. */
static void scan_drop(struct member_scan *scan, uint64_t to)
{
    const struct sl_mapping mapping = {.bytes = scan->file->bytes, .mapped = scan->file->bytes.size};
    size_t offset = (size_t)(scan->packed.data - mapping.bytes.data);
    if (scan->file->fd >= 0) /* a copy in memory, without a file, would lose its contents */
        sl_mapping_drop(&mapping, offset + scan->dropped, to - scan->dropped);
    scan->dropped = to;
}

/* Call it when the member's compressed bytes were read up to offset `to`: drops their pages whenever DROP_PIECE bytes have accumulated.
 * False when the conversion has used up its time. */
static bool scan_move(struct member_scan *scan, uint64_t to)
{
    if (to - scan->dropped >= DROP_PIECE)
        scan_drop(scan, to);
    return sl_budget_spend(&scan->conversion->budget, 1);
}

/* Drops all pages of the member at its end: those that scan_move() has not dropped yet, and those that the kernel has mapped again by
 * reading ahead. */
static void scan_end(struct member_scan *scan)
{
    scan->dropped = 0;
    scan_drop(scan, scan->packed.size);
}

/* Begins to read the member: finds its compressed bytes in the archive. SL_INTERNAL if the window or the entry's name lies outside of the
 * file, SL_MALFORMED if the member does. */
static enum sl_code scan_begin(struct member_scan *scan, struct conversion *conversion,
                               const struct converter_call *call, const struct archive_window *window,
                               const struct archive_entry *entry, struct sl_error *error)
{
    struct sl_bytes archive = find_archive(call, window);
    *scan = (struct member_scan){
        .conversion = conversion, .file = converter_input(call, INPUT_FILE), .zip = {archive, &scan->entry, 1}};
    if (!archive.data || !unpack_entry(*entry, archive, &scan->entry))
        return fail_window(error);
    return sl_zip_packed(&scan->zip, &scan->entry, &scan->packed, error);
}

/* ---- checking ---- */

void archive_put_text(struct sl_buf *texts, struct sl_str text)
{
    sl_buf_u32(texts, (uint32_t)text.size);
    sl_buf_str(texts, text);
}

struct member_checking {
    struct member_scan scan;
    EVP_MD_CTX *hash;
    struct sl_bytes texts; /* INPUT_TEXTS: each forbidden text after its size; empty: none */
    struct member_check_result *result;
    char tail[2 * OVERLAP]; /* the last bytes before the current piece; then also the first bytes of it */
    size_t tail_size;       /* number of bytes before the current piece */
};

/* Searches the bytes for each forbidden text; sets result->text and result->is_forbidden to the first that occurs. A text whose size
 * exceeds the rest of the list, which is then damaged, is passed over. */
static bool has_text(struct member_checking *c, const void *data, size_t size)
{
    struct sl_reader r = sl_reader(c->texts, false);
    for (uint32_t i = 0; sl_reader_left(&r); i++) {
        uint32_t length = sl_read_u32(&r);
        struct sl_bytes text = sl_read_bytes(&r, length);
        if (!r.failed && text.size <= size && memmem(data, size, text.data, text.size)) {
            c->result->text = i;
            return c->result->is_forbidden = true;
        }
    }
    return false;
}

/* True if the decompressed piece contains none of the forbidden texts; texts of up to OVERLAP bytes are also found where they begin in a
 * piece before it. */
static bool is_allowed(struct member_checking *c, struct sl_bytes piece)
{
    size_t begin = piece.size < OVERLAP ? piece.size : OVERLAP;
    /* append the first bytes of the piece to `tail`, so that it holds every text that begins before the piece */
    memcpy(c->tail + c->tail_size, piece.data, begin);
    bool bad = has_text(c, piece.data, piece.size) || has_text(c, c->tail, c->tail_size + begin);
    /* keep the last OVERLAP bytes for the next piece: they end in this piece, or, if it is shorter than that, in `tail` */
    const char *end =
        piece.size < OVERLAP ? c->tail + c->tail_size + piece.size : (const char *)piece.data + piece.size;
    c->tail_size = piece.size < OVERLAP && c->tail_size + piece.size < OVERLAP ? c->tail_size + piece.size : OVERLAP;
    memmove(c->tail, end - c->tail_size, c->tail_size);
    return !bad;
}

/* Hashes a decompressed piece and searches it for the forbidden texts (sl_zip_sink.take); `used` compressed bytes were read so far. False,
 * which ends the decompression: a text was found, the time is used up, or hashing failed. */
static bool check_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_checking *c = arg;
    c->result->used = used;
    if (EVP_DigestUpdate(c->hash, piece.data, piece.size) != 1 || !scan_move(&c->scan, used))
        return false;
    return !c->texts.size || is_allowed(c, piece);
}

/* Decompresses the member, hashes it and searches it for forbidden texts. check_piece() ends the decompression (SL_CANCELLED) if it has
 * found a text, which is a complete result, or if the time is used up, which is an error. */
static enum sl_code check_contents(struct member_checking *c, struct sl_error *error)
{
    struct sl_zip_sink sink = {check_piece, c};
    enum sl_code code = sl_zip_stream(&c->scan.zip, &c->scan.entry, &sink, error);
    scan_end(&c->scan);
    if (code == SL_CANCELLED && c->result->is_forbidden)
        return SL_OK;
    if (code == SL_CANCELLED)
        return sl_budget_fail(&c->scan.conversion->budget, error);
    if (code == SL_OK && EVP_DigestFinal_ex(c->hash, c->result->md5, NULL) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    return code;
}

/* Implements converter_member_check: computes the MD5 of a member's contents and searches them for forbidden texts. */
static enum sl_code check_member(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    const struct member_check_options *options = converter_options(call);
    struct member_checking c = {
        .hash = EVP_MD_CTX_new(), .texts = converter_input_bytes(call, INPUT_TEXTS), .result = result};
    enum sl_code code = c.hash && EVP_DigestInit_ex(c.hash, EVP_md5(), NULL) == 1
                            ? scan_begin(&c.scan, conversion, call, &options->window, &options->entry, error)
                            : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = check_contents(&c, error);
    EVP_MD_CTX_free(c.hash);
    return code;
}

/* True if the result, which came from a worker, has no invalid value (converter.check_result): any numbers are valid. */
static bool check_result(const void *result)
{
    return converter_bool_is_valid(&((const struct member_check_result *)result)->is_forbidden);
}

const struct converter converter_member_check = {"member_check", sizeof(struct member_check_options),
                                                 sizeof(struct member_check_result), check_member, check_result};

/* ---- writing ---- */

struct member_writing {
    struct member_scan scan;
    const struct member_write_options *options;
    int out;                /* the file to write */
    uint64_t written;       /* bytes of the contents written so far */
    struct sl_error *error; /* its code is 0 until something fails */
    z_stream z;             /* for a gzip file of a member that is not compressed in the archive */
    uint8_t *deflated;      /* output of `z`: WRITE_PIECE bytes */
};

/* Writes to the output, a file of the upload store. False with `w->error`: SL_UNSUPPORTED stands for a full disk, which callers answer with
 * 507. */
static bool write_bytes(struct member_writing *w, const void *data, size_t size)
{
    if (sl_write_all(w->out, (struct sl_bytes){data, size}))
        return true;
    if (errno == ENOSPC || errno == EDQUOT)
        sl_fail(w->error, SL_UNSUPPORTED, "the upload store is full");
    else
        sl_fail_errno(w->error, errno, "cannot write to the upload store");
    return false;
}

/* Call it when the compressed bytes were read up to offset `to`. False, with w->error set, if the conversion has used up its time. */
static bool move_on(struct member_writing *w, uint64_t to)
{
    if (scan_move(&w->scan, to))
        return true;
    sl_budget_fail(&w->scan.conversion->budget, w->error);
    return false;
}

/* Copies the compressed bytes of a deflated member; as many as the decompressor used when the member was checked, since an entry can
 * contain further bytes. */
static bool write_packed(struct member_writing *w)
{
    uint64_t used = w->options->used < w->scan.packed.size ? w->options->used : w->scan.packed.size;
    for (uint64_t at = 0; at < used;) {
        uint64_t left = used - at, size = left < WRITE_PIECE ? left : WRITE_PIECE;
        if (!write_bytes(w, w->scan.packed.data + at, size))
            return false;
        at += size;
        if (!move_on(w, at))
            return false;
    }
    return true;
}

/* Compresses a piece and writes what the compressor returns, until that is less than a full buffer. `flush`: Z_NO_FLUSH, or
 * Z_FINISH to end the compressed data. */
static bool deflate_some(struct member_writing *w, struct sl_bytes piece, int flush)
{
    w->z.next_in = (Bytef *)piece.data;
    w->z.avail_in = (uInt)piece.size; /* pieces are small */
    do {
        w->z.next_out = w->deflated;
        w->z.avail_out = WRITE_PIECE;
        /* cannot fail: the stream is set up, and there is room for output */
        deflate(&w->z, flush);
        if (!write_bytes(w, w->deflated, WRITE_PIECE - w->z.avail_out))
            return false;
    } while (!w->z.avail_out);
    return true;
}

/* Compresses and writes a decompressed piece (sl_zip_sink.take). False on failure. */
static bool deflate_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_writing *w = arg;
    return deflate_some(w, piece, Z_NO_FLUSH) && move_on(w, used);
}

/* Writes a decompressed piece (sl_zip_sink.take), cut so that the output has at most `max_output` bytes (0 = no limit). `used` compressed
 * bytes were read so far. False, which ends the decompression, on a failure, or once `max_output` bytes are written. */
static bool copy_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_writing *w = arg;
    uint64_t most = w->options->max_output;
    uint64_t size = most && piece.size > most - w->written ? most - w->written : piece.size;
    if (!write_bytes(w, piece.data, size))
        return false;
    w->written += size;
    return move_on(w, used) && (!most || w->written < most);
}

/* Decompresses the member and passes its pieces to `take`. True if all of it was passed, or if `take` has returned false without setting
 * w->error: then `max_output` bytes were written. */
static bool stream_member(struct member_writing *w, bool (*take)(void *arg, struct sl_bytes piece, uint64_t used))
{
    struct sl_zip_sink sink = {take, w};
    struct sl_error failure = {0};
    enum sl_code code = sl_zip_stream(&w->scan.zip, &w->scan.entry, &sink, &failure);
    if (code != SL_OK && code != SL_CANCELLED)
        *w->error = failure;
    return code == SL_OK || (code == SL_CANCELLED && !w->error->code);
}

/* Compresses a member that is not compressed in the archive, and writes the result. False with w->error. */
static bool write_deflated(struct member_writing *w)
{
    w->deflated = malloc(WRITE_PIECE);
    /* -MAX_WBITS: raw deflate, without zlib's header */
    if (!w->deflated || deflateInit2(&w->z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(w->deflated);
        sl_fail(w->error, SL_BUSY, "out of memory");
        return false;
    }
    /* an empty piece with Z_FINISH writes what the compressor still holds */
    bool good = stream_member(w, deflate_piece) && deflate_some(w, (struct sl_bytes){w->deflated, 0}, Z_FINISH);
    deflateEnd(&w->z);
    free(w->deflated);
    return good;
}

/* Writes a gzip file of the member: header, compressed data (raw deflate, without zlib's header), CRC and size. False with w->error. */
static bool write_gzip(struct member_writing *w)
{
    const struct archive_entry *entry = &w->options->entry;
    uint8_t end[8];
    for (int i = 0; i < 4; i++) {
        end[i] = (uint8_t)(entry->crc >> 8 * i);
        end[4 + i] = (uint8_t)(entry->size >> 8 * i);
    }
    return write_bytes(w, w->options->head, w->options->head_size) &&
           (entry->method == SL_ZIP_DEFLATED ? write_packed(w) : write_deflated(w)) && write_bytes(w, end, sizeof end);
}

/* Implements converter_member_write: writes a gzip file if the options have a gzip header, else the decompressed contents. */
static enum sl_code write_member(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    (void)result;
    const struct member_write_options *options = converter_options(call);
    struct sl_error failure = {0};
    struct member_writing w = {.options = options, .out = call->out, .error = &failure};
    if (options->head_size > sizeof options->head)
        return sl_fail(error, SL_INTERNAL, "the gzip header is too large");
    enum sl_code code = scan_begin(&w.scan, conversion, call, &options->window, &options->entry, error);
    if (code != SL_OK)
        return code;
    bool good = options->head_size ? write_gzip(&w) : stream_member(&w, copy_piece);
    scan_end(&w.scan);
    if (good)
        return SL_OK;
    *error = failure; /* set by the function that failed */
    return failure.code ? failure.code : sl_fail(error, SL_INTERNAL, "cannot write a file of the archive");
}

const struct converter converter_member_write = {"member_write", sizeof(struct member_write_options), 0, write_member};
