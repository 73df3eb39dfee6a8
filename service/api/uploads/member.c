/* Members of an uploaded archive: checked first, later converted to the store's format. A deflated member is copied into a gzip
 * frame, as both use the same stream (RFC 1951, RFC 1952): nothing is compressed again. */
#include "api/uploads/uploads.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <zlib.h>

enum { OVERLAP = 256, HEAD_MAX = 8 << 10, WRITE_PIECE = 256 << 10, DROP_PIECE = 2 << 20 };

/* Sequential read of a member of the mapped archive. Pages that were read are dropped from memory, so that a large archive
 * is never in memory as a whole. */
struct member_scan {
    const struct archive *archive;
    struct sl_bytes packed;
    uint64_t dropped;
};

/* Drops the pages of the member from the last dropped one up to offset `to`. */
static void member_scan_drop(struct member_scan *p, uint64_t to)
{
    size_t offset = (size_t)(p->packed.data - p->archive->body.bytes.data);
    sl_mapping_drop(&p->archive->body, offset + p->dropped, to - p->dropped);
    p->dropped = to;
}

/* Called when the member was read up to offset `to`: drops pages in pieces of DROP_PIECE. */
static void member_scan_move(struct member_scan *p, uint64_t to)
{
    if (to - p->dropped >= DROP_PIECE)
        member_scan_drop(p, to);
}

/* Drops all pages of the member once more, from its beginning. */
static void member_scan_end(struct member_scan *p)
{
    p->dropped = 0;
    member_scan_drop(p, p->packed.size);
}

static enum sl_code member_scan_begin(struct member_scan *p, struct member_job *job)
{
    *p = (struct member_scan){.archive = job->archive};
    return sl_zip_packed(&job->archive->zip, job->member->entry, &p->packed, &job->error);
}

/* ---- checking ---- */

struct member_checking {
    struct member_job *job;
    struct member_scan scan;
    EVP_MD_CTX *hash;
    char tail[2 * OVERLAP]; /* end of the pieces before, start of the current one */
    size_t tail_size;
};

/* True, with job->snippet, if the data contains a text that the configuration forbids. */
static bool has_text(struct member_checking *c, const void *data, size_t size)
{
    const struct config_store *config = c->job->archive->config;
    for (size_t i = 0; i < config->disallowed_snippet_count; i++) {
        struct sl_str snippet = config->disallowed_snippets[i];
        if (snippet.size <= size && memmem(data, size, snippet.data, snippet.size)) {
            c->job->snippet = snippet;
            return true;
        }
    }
    return false;
}

/* True if the piece contains no forbidden text. Also searches across the boundaries of pieces, for texts of up to OVERLAP
 * bytes. */
static bool is_allowed(struct member_checking *c, struct sl_bytes piece)
{
    size_t begin = piece.size < OVERLAP ? piece.size : OVERLAP;
    memcpy(c->tail + c->tail_size, piece.data, begin);
    bool bad = has_text(c, piece.data, piece.size) || has_text(c, c->tail, c->tail_size + begin);
    const char *end =
        piece.size < OVERLAP ? c->tail + c->tail_size + piece.size : (const char *)piece.data + piece.size;
    c->tail_size = piece.size < OVERLAP && c->tail_size + piece.size < OVERLAP ? c->tail_size + piece.size : OVERLAP;
    memmove(c->tail, end - c->tail_size, c->tail_size);
    return !bad;
}

/* Called for each decompressed piece: hashes it, and searches it for forbidden texts. False stops. */
static bool check_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_checking *c = arg;
    c->job->member->used = used;
    if (EVP_DigestUpdate(c->hash, piece.data, piece.size) != 1)
        return false;
    member_scan_move(&c->scan, used);
    return !c->job->archive->config->scan_contents || is_allowed(c, piece);
}

void member_check(void *arg)
{
    struct member_job *job = arg;
    struct member_checking c = {.job = job, .hash = EVP_MD_CTX_new()};
    struct sl_zip_sink sink = {check_piece, &c};
    if (!c.hash || EVP_DigestInit_ex(c.hash, EVP_md5(), NULL) != 1)
        job->code = sl_fail(&job->error, SL_BUSY, "out of memory");
    else
        job->code = member_scan_begin(&c.scan, job);
    if (job->code == SL_OK) {
        job->code = sl_zip_stream(&job->archive->zip, job->member->entry, &sink, &job->error);
        member_scan_end(&c.scan);
    }
    if (job->code == SL_CANCELLED)
        job->code = job->snippet.data ? SL_PERMISSION_DENIED : sl_fail(&job->error, SL_BUSY, "out of memory");
    if (job->code == SL_OK && EVP_DigestFinal_ex(c.hash, job->member->md5, NULL) != 1)
        job->code = sl_fail(&job->error, SL_BUSY, "out of memory");
    EVP_MD_CTX_free(c.hash);
}

/* ---- writing ---- */

static bool write_failed(struct member_job *job)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    job->code = full ? sl_fail(&job->error, SL_UNSUPPORTED, "the upload store is full")
                     : sl_fail_errno(&job->error, errno, "cannot write to the upload store");
    return false;
}

static bool write_bytes(struct member_job *job, const void *data, size_t size)
{
    job->meta.size += size;
    return sl_write_all(job->work.fd, (struct sl_bytes){data, size}) || write_failed(job);
}

/* Copies the compressed bytes of a deflated member. */
static bool write_packed(struct member_job *job, struct member_scan *scan)
{
    for (uint64_t at = 0; at < job->member->used;) {
        uint64_t left = job->member->used - at, size = left < WRITE_PIECE ? left : WRITE_PIECE;
        if (!write_bytes(job, scan->packed.data + at, size))
            return false;
        at += size;
        member_scan_move(scan, at);
    }
    return true;
}

struct member_deflate {
    struct member_job *job;
    struct member_scan *scan;
    z_stream z;
    uint8_t *out;
};

/* Compresses a piece and writes the output, until the compressor has no more of it. */
static bool deflate_some(struct member_deflate *d, struct sl_bytes piece, int flush)
{
    d->z.next_in = (Bytef *)piece.data;
    d->z.avail_in = (uInt)piece.size; /* pieces are small */
    do {
        d->z.next_out = d->out;
        d->z.avail_out = WRITE_PIECE;
        deflate(&d->z, flush);
        if (!write_bytes(d->job, d->out, WRITE_PIECE - d->z.avail_out))
            return false;
    } while (!d->z.avail_out);
    return true;
}

static bool deflate_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_deflate *d = arg;
    bool good = deflate_some(d, piece, Z_NO_FLUSH);
    member_scan_move(d->scan, used);
    return good;
}

static bool stream_to(struct member_job *job, bool (*take)(void *arg, struct sl_bytes piece, uint64_t used), void *arg)
{
    struct sl_zip_sink sink = {take, arg};
    enum sl_code code = sl_zip_stream(&job->archive->zip, job->member->entry, &sink, &job->error);
    if (code != SL_OK && code != SL_CANCELLED)
        job->code = code; /* SL_CANCELLED: the sink has set it */
    return code == SL_OK;
}

/* Compresses a member that is not compressed in the archive. */
static bool write_deflated(struct member_job *job, struct member_scan *scan)
{
    struct member_deflate d = {.job = job, .scan = scan, .out = malloc(WRITE_PIECE)};
    if (!d.out || deflateInit2(&d.z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(d.out);
        job->code = sl_fail(&job->error, SL_BUSY, "out of memory");
        return false;
    }
    bool good = stream_to(job, deflate_piece, &d) && deflate_some(&d, (struct sl_bytes){d.out, 0}, Z_FINISH);
    deflateEnd(&d.z);
    free(d.out);
    return good;
}

/* Writes the gzip form: header, compressed data, CRC and size. A deflated member is copied as it is. */
static bool write_gzip(struct member_job *job, struct member_scan *scan)
{
    const struct sl_zip_entry *entry = job->member->entry;
    uint8_t head[STORE_GZIP_HEADER_SIZE], end[8];
    store_gzip_header_write(entry->size, job->member->md5, head);
    for (int i = 0; i < 4; i++) {
        end[i] = (uint8_t)(entry->crc >> 8 * i);
        end[4 + i] = (uint8_t)(entry->size >> 8 * i);
    }
    return write_bytes(job, head, sizeof head) &&
           (entry->method == SL_ZIP_DEFLATED ? write_packed(job, scan) : write_deflated(job, scan)) &&
           write_bytes(job, end, sizeof end);
}

struct copying {
    struct member_job *job;
    struct member_scan *scan;
};

static bool copy_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct copying *c = arg;
    bool good = write_bytes(c->job, piece.data, piece.size);
    member_scan_move(c->scan, used);
    return good;
}

/* ---- metadata of a symbol file ---- */

struct member_head {
    char text[HEAD_MAX];
    size_t size;
};

/* Keeps the first HEAD_MAX bytes; false stops the decompression then. */
static bool keep_beginning(void *arg, struct sl_bytes piece, uint64_t used)
{
    struct member_head *b = arg;
    size_t room = HEAD_MAX - b->size, size = piece.size < room ? piece.size : room;
    (void)used;
    memcpy(b->text + b->size, piece.data, size);
    b->size += size;
    return b->size < HEAD_MAX;
}

/* Reads the properties at the beginning of a symbol file. SL_CANCELLED only means that enough was read. */
static void read_info(struct member_job *job)
{
    struct member_head begin = {.size = 0};
    struct sl_zip_sink sink = {keep_beginning, &begin};
    struct sl_error error;
    enum sl_code code = sl_zip_stream(&job->archive->zip, job->member->entry, &sink, &error);
    if (code == SL_OK || code == SL_CANCELLED)
        codeinfo_read((struct sl_str){begin.text, begin.size}, job->member->key, job->arena, &job->info, job->names);
}

void member_write(void *arg)
{
    struct member_job *job = arg;
    const struct archive_member *member = job->member;
    struct member_scan scan;
    job->meta = (struct store_meta){.is_packed = member->is_packed, .original_size = member->entry->size};
    memcpy(job->meta.md5, member->md5, sizeof job->meta.md5);
    job->meta.has_original = true;
    job->code = member_scan_begin(&scan, job);
    if (job->code == SL_OK)
        job->code = store_tmp_file_create(&job->work, &job->error);
    if (job->code != SL_OK)
        return;
    struct copying copying = {job, &scan};
    bool good = member->is_packed ? write_gzip(job, &scan) : stream_to(job, copy_piece, &copying);
    if (good && sl_str_ends(member->key, SL_STR(".sym")))
        read_info(job);
    member_scan_end(&scan);
    if (!good)
        store_tmp_file_discard(&job->work);
}
