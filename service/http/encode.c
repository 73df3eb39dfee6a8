/* Compresses responses according to Accept-Encoding (RFC 9110, 12.5.3). */
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "core/pool.h"
#include "http/blank.h"
#include "http/impl.h"

/* Bodies up to these sizes are compressed on the loop: passing them to the pool would take as long. */
enum { GZIP_ON_LOOP = 4 * 1024, ZSTD_ON_LOOP = 16 * 1024 };

/* Returns the weight of a list item "name;q=0.5" in thousandths; 1000 without q, 0 if malformed. Digits after the third count 0. */
static unsigned parse_weight(struct sl_str parameters)
{
    const char *q = memmem(parameters.data, parameters.size, "q=", 2);
    if (!q)
        q = memmem(parameters.data, parameters.size, "Q=", 2);
    if (!q)
        return 1000;
    const char *end = parameters.data + parameters.size;
    q += 2;
    if (q == end || (*q != '0' && *q != '1'))
        return 0;
    unsigned weight = (unsigned)(*q - '0') * 1000, scale = 100;
    for (q += q + 1 < end && q[1] == '.' ? 2 : 1; q < end && *q >= '0' && *q <= '9'; q++, scale /= 10)
        weight += (unsigned)(*q - '0') * scale;
    return weight > 1000 ? 1000 : weight;
}

struct coding_weights {
    int gzip, zstd; /* 0 = not accepted */
};

/* Parses Accept-Encoding: how much the client prefers each coding, 0 = not accepted. `*` stands for those that are not named
 * (RFC 9110, 12.5.3). */
static struct coding_weights parse_weights(struct sl_str accept)
{
    int gzip = -1, zstd = -1, any = -1; /* any: of `*`; -1 = not named */
    for (size_t at = 0; at < accept.size;) {
        const char *comma = memchr(accept.data + at, ',', accept.size - at);
        size_t end = comma ? (size_t)(comma - accept.data) : accept.size;
        while (at < end && http_is_blank(accept.data[at]))
            at++;
        size_t name_end = at;
        while (name_end < end && accept.data[name_end] != ';' && !http_is_blank(accept.data[name_end]))
            name_end++;
        struct sl_str name = {accept.data + at, name_end - at};
        int weight = (int)parse_weight((struct sl_str){accept.data + name_end, end - name_end});
        if (sl_str_equal_nocase(name, SL_STR("gzip")) || sl_str_equal_nocase(name, SL_STR("x-gzip")))
            gzip = weight;
        else if (sl_str_equal_nocase(name, SL_STR("zstd")))
            zstd = weight;
        else if (sl_str_equal(name, SL_STR("*")))
            any = weight;
        at = end + 1;
    }
    if (gzip < 0)
        gzip = any;
    if (zstd < 0)
        zstd = any;
    return (struct coding_weights){gzip > 0 ? gzip : 0, zstd > 0 ? zstd : 0};
}

enum content_coding encode_choose(struct sl_str accept)
{
    struct coding_weights wanted = parse_weights(accept);
    /* zstd, which is faster, if the client does not prefer gzip */
    if (wanted.zstd > 0 && wanted.zstd >= wanted.gzip)
        return CODING_ZSTD;
    return wanted.gzip > 0 ? CODING_GZIP : CODING_IDENTITY;
}

bool http_accepts_gzip(const struct http_exchange *x)
{
    struct sl_str accept = http_header(x, "accept-encoding");
    return accept.data && parse_weights(accept).gzip > 0;
}

/* True for types of text, which compress well. */
static bool type_compresses(struct sl_str type)
{
    static const char *const types[] = {"application/json",
                                        "text/plain",
                                        "text/html",
                                        "text/css",
                                        "text/javascript",
                                        "application/javascript",
                                        "application/openmetrics-text"};
    const char *semicolon = memchr(type.data, ';', type.size);
    if (semicolon)
        type.size = (size_t)(semicolon - type.data);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sl_str_equal_nocase(type, sl_str(types[i])))
            return true;
    return false;
}

struct encode_job {
    enum content_coding coding;
    struct sl_bytes in;
    struct sl_buf out;
};

/* Compresses at the lowest level, as clients wait for it. On failure sets job->out.failed. */
static void encode_gzip(struct encode_job *job)
{
    z_stream z = {0};
    /* zlib counts in 32 bits, and the result may be larger than the input; window bits: 15 is the largest window, 16 more stand for a gzip
     * header; 8 is zlib's default memory level */
    if (job->in.size > UINT32_MAX / 2 || deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        job->out.failed = true;
        return;
    }
    size_t bound = deflateBound(&z, job->in.size);
    if (sl_buf_reserve(&job->out, bound)) {
        z.next_in = (Bytef *)(uintptr_t)job->in.data;
        z.avail_in = (uInt)job->in.size;
        z.next_out = job->out.data;
        z.avail_out = (uInt)bound;
        if (deflate(&z, Z_FINISH) == Z_STREAM_END)
            job->out.size = bound - z.avail_out;
        else
            job->out.failed = true;
    }
    deflateEnd(&z);
}

/* Compresses job->in to job->out; runs on the pool, or on the loop if the body is small. On failure sets job->out.failed. */
static void http_encode(void *arg)
{
    struct encode_job *job = arg;
    if (job->coding == CODING_GZIP) {
        encode_gzip(job);
        return;
    }
    size_t bound = ZSTD_compressBound(job->in.size);
    if (!sl_buf_reserve(&job->out, bound)) /* sets job->out.failed */
        return;
    /* 1: a low level, as clients wait for it */
    size_t size = ZSTD_compress(job->out.data, bound, job->in.data, job->in.size, 1);
    if (ZSTD_isError(size))
        job->out.failed = true;
    else
        job->out.size = size;
}

/* Compresses the response if the client accepts it, the type and size are worth it, and the result is smaller; without memory or a free
 * pool the response stays as it is. Adds Accept-Encoding to Vary, unless the handler has set a Vary other than the "Origin" of CORS. */
void encode_body(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct sl_str type, set;
    size_t size =
        x->content ? shared_blob_size(x->content) : x->body.size; /* content: a shared body, may be in a file */
    if (r->http10 || !r->accept_encoding.size || x->file || size < r->server->options.compress_min ||
        !header_is_set(x, "Content-Type", &type) || !type_compresses(type) ||
        header_is_set(x, "Content-Encoding", &set))
        return;
    struct encode_job job = {encode_choose(r->accept_encoding), sl_buf_bytes(&x->body), {0}};
    if (job.coding == CODING_IDENTITY)
        return;
    if (x->content && !(job.in = shared_blob_pin(x->content)).data)
        return; /* in a file: sent from there uncompressed */
    if (size <= (job.coding == CODING_GZIP ? GZIP_ON_LOOP : ZSTD_ON_LOOP))
        http_encode(&job);
    else if (pool_run(POOL_COMPRESS, http_encode, &job, NULL) != SL_OK)
        job.out.failed = true;
    if (x->content)
        shared_blob_unpin(x->content);
    if (job.out.failed || job.out.size >= size) { /* out of memory, or nothing is saved */
        sl_buf_free(&job.out);
        return;
    }
    shared_blob_release(x->content);
    x->content = NULL;
    sl_buf_free(&x->body);
    x->body = job.out;
    http_set_header(x, "Content-Encoding", job.coding == CODING_GZIP ? SL_STR("gzip") : SL_STR("zstd"));
    if (!header_is_set(x, "Vary", &set) || sl_str_equal(set, SL_STR("Origin")))
        http_add_vary(x, SL_STR("Accept-Encoding"));
}
