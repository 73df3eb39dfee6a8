/* Receives chunks of files: a form whose parts are named `file`, or `file_gzip` if they are compressed; the file name of a part is
 * the SHA-1 of its uncompressed bytes. */
#include "api/sentry/sentry.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <zlib.h>

#include "core/log.h"
#include "core/pool.h"
#include "http/multipart.h"
#include "store/store.h"

struct chunk { /* a chunk of a file, one part of the form */
    struct sl_str sha1;
    struct sl_bytes bytes; /* as sent: a view of the body */
    bool is_packed;
};

struct chunk_form { /* state while a form is split */
    struct sl_bytes body;
    struct sl_str boundary;
    struct sl_arena *arena;
    struct multipart *multipart;
    struct chunk chunks[SENTRY_MAX_CHUNKS];
    size_t count;
    struct chunk *open; /* the part that is being read; NULL: one that is not a chunk */
};

/* ---- the form ---- */

/* Called at the beginning of each part: adds a chunk; a part with another name is ignored. */
static enum sl_code begin_chunk(void *arg, struct sl_str name, struct sl_error *error)
{
    struct chunk_form *form = arg;
    struct sl_str called = multipart_file_name(form->multipart);
    bool is_packed = sl_str_equal(name, SL_STR("file_gzip"));
    form->open = NULL;
    if (!is_packed && !sl_str_equal(name, SL_STR("file")))
        return SL_OK;
    if (form->count == SENTRY_MAX_CHUNKS)
        return sl_fail(error, SL_MALFORMED, "Too many chunks");
    if (!sentry_is_sha1(called))
        return sl_fail(error, SL_MALFORMED, "Checksum mismatch: the name of a chunk is not a SHA-1");
    const char *kept = sl_arena_strndup(form->arena, called.data, called.size);
    if (!kept)
        return sl_fail(error, SL_BUSY, "out of memory");
    form->open = &form->chunks[form->count++];
    *form->open = (struct chunk){.sha1 = {kept, called.size}, .is_packed = is_packed};
    return SL_OK;
}

/* Called for each piece of a part's contents. The pieces follow each other in the body, so the chunk is one view of the body, which
 * grows. The size of a compressed chunk is checked when it is decompressed. */
static enum sl_code add_to_chunk(void *arg, struct sl_bytes data, struct sl_error *error)
{
    struct chunk_form *form = arg;
    if (!form->open)
        return SL_OK;
    if (!form->open->bytes.size)
        form->open->bytes.data = data.data;
    form->open->bytes.size += data.size;
    return form->open->is_packed || form->open->bytes.size <= SENTRY_CHUNK_SIZE
               ? SL_OK
               : sl_fail(error, SL_MALFORMED, "Chunk size too large");
}

/* Pool work: splits the form into its chunks. */
static enum sl_code split_form(void *arg, struct sl_error *error)
{
    struct chunk_form *form = arg;
    const struct multipart_callbacks callbacks = {.begin = begin_chunk, .data = add_to_chunk, .arg = form};
    if (!(form->multipart = multipart_new(form->arena, form->boundary, &callbacks)))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = multipart_feed(form->multipart, form->body, error);
    return code == SL_OK ? multipart_finish(form->multipart, error) : code;
}

/* ---- one chunk ---- */

struct chunk_job { /* state of write_chunk */
    const struct chunk *chunk;
    struct store_tmp_file file;
    EVP_MD_CTX *hash;
    uint64_t size; /* uncompressed bytes so far */
};

/* Hashes uncompressed bytes of a chunk and writes them to its file. SL_MALFORMED: the chunk is larger than the limit that clients
 * were told. */
static enum sl_code take_plain(struct chunk_job *job, struct sl_bytes bytes, struct sl_error *error)
{
    job->size += bytes.size;
    if (job->size > SENTRY_CHUNK_SIZE)
        return sl_fail(error, SL_MALFORMED, "Chunk size too large");
    if (EVP_DigestUpdate(job->hash, bytes.data, bytes.size) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    return sl_write_all(job->file.fd, bytes) ? SL_OK : store_fail_write(error, errno, "the upload store");
}

/* Decompresses a chunk: one gzip stream, without bytes after its end. */
static enum sl_code take_packed(struct chunk_job *job, struct sl_error *error)
{
    enum { BUFFER = 256 << 10, GZIP_WINDOW = 15 + 16 }; /* zlib: a window of 2^15 bytes; + 16: the format is gzip */
    z_stream z = {.next_in = (Bytef *)(uintptr_t)job->chunk->bytes.data, .avail_in = (uInt)job->chunk->bytes.size};
    uint8_t *buffer = malloc(BUFFER);
    int status = buffer && inflateInit2(&z, GZIP_WINDOW) == Z_OK ? Z_OK : Z_MEM_ERROR;
    if (status == Z_MEM_ERROR) {
        free(buffer);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    enum sl_code code = SL_OK;
    while (code == SL_OK && status == Z_OK) {
        z.next_out = buffer;
        z.avail_out = BUFFER;
        status = inflate(&z, Z_NO_FLUSH);
        if (status == Z_OK || status == Z_STREAM_END)
            code = take_plain(job, (struct sl_bytes){buffer, BUFFER - z.avail_out}, error);
    }
    if (code == SL_OK && (status != Z_STREAM_END || z.avail_in))
        code = sl_fail(error, SL_MALFORMED, "Checksum mismatch: a chunk is not one gzip stream");
    inflateEnd(&z);
    free(buffer);
    return code;
}

/* Pool work: writes the uncompressed bytes of a chunk to a file, and compares their SHA-1 with the chunk's name. */
static enum sl_code write_chunk(void *arg, struct sl_error *error)
{
    struct chunk_job *job = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct sl_buf hex = {0};
    enum sl_code code = SL_OK;
    job->hash = EVP_MD_CTX_new();
    if (!job->hash || EVP_DigestInit_ex(job->hash, EVP_sha1(), NULL) != 1)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = job->chunk->is_packed ? take_packed(job, error) : take_plain(job, job->chunk->bytes, error);
    unsigned size = 0;
    if (code == SL_OK && EVP_DigestFinal_ex(job->hash, digest, &size) != 1)
        code = sl_fail(error, SL_BUSY, "out of memory");
    sl_buf_hex(&hex, digest, size);
    if (code == SL_OK && !sl_str_equal(sl_buf_view(&hex), job->chunk->sha1))
        code = sl_fail(error, SL_MALFORMED, "Checksum mismatch");
    sl_buf_free(&hex);
    EVP_MD_CTX_free(job->hash);
    return code;
}

/* Checks a chunk and stores it under its SHA-1. If the store has it already, it is stored again, as chunks are removed a day after
 * they were stored. */
static enum sl_code store_chunk(const struct chunk *chunk, struct sl_arena *arena, struct sl_error *error)
{
    struct chunk_job job = {.chunk = chunk, .file = {.fd = -1}};
    struct sl_str name = sentry_chunk_name(arena, chunk->sha1);
    enum sl_code code = name.data ? debug_file_tmp(&job.file, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = pool_call(POOL_COMPRESS | POOL_HEAVY, write_chunk, &job, error);
    struct store_meta meta = {.size = job.size, .original_size = job.size};
    if (code == SL_OK)
        code = store_area_put(debug_files_area(), name, &job.file, &meta, "application/octet-stream", error);
    store_tmp_file_discard_on_pool(&job.file); /* does nothing if the store has taken the file */
    return code;
}

/* ---- the request ---- */

/* Refuses a request by its length before the body is received; 1 MiB is left for the form around the chunks. */
void sentry_check_chunks(struct http_exchange *x)
{
    if (x->content_length > SENTRY_MAX_REQUEST + (1 << 20))
        sentry_reply_error(x, 400, "Request too large");
}

/* Stores the chunks of a form one after the other; the first one that fails ends the request. Those before it stay stored. */
void sentry_receive_chunks(struct http_exchange *x)
{
    struct chunk_form *form = SL_ARENA_NEW(&x->arena, struct chunk_form);
    struct sl_error error = {.code = SL_OK};
    if (!form) {
        http_reply_no_memory(x);
        return;
    }
    *form = (struct chunk_form){.arena = &x->arena};
    if (!multipart_boundary(http_header(x, "content-type"), &form->boundary)) {
        sentry_reply_error(x, 400, "the body is not multipart/form-data");
        return;
    }
    if (http_body(x, &form->body) != SL_OK)
        return;
    enum sl_code code = pool_call(POOL_JSON, split_form, form, &error);
    for (size_t i = 0; code == SL_OK && i < form->count; i++)
        code = store_chunk(&form->chunks[i], &x->arena, &error);
    if (code == SL_OK) {
        http_reply_empty(x, 200);
    } else if (code != SL_CANCELLED) {
        if (code == SL_INTERNAL)
            log_error("uploads", "cannot store a chunk of a file that sentry-cli uploads; the client gets an error",
                      LOG_ERR(&error));
        int status = debug_file_status(code);
        sentry_reply_error(x, status, status == 500 ? "Internal error" : error.message);
    }
}
