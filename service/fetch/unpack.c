/* Replaces the contents of files by the decompressed ones: through a temporary file, so that a file stays as it was if it cannot be
 * decompressed.
 *
 *     file ── unpack_bytes, in a worker or on the pool ──▶ temporary file ── copy_back ──▶ file */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/temp_dir.h"
#include "fetch/impl.h"

enum { COPY_PIECE = 64 << 20 };

static unpack_runner *worker_runner; /* decompresses in a worker process; NULL = on the pool. Loop thread */

void unpack_set_runner(unpack_runner *runner)
{
    worker_runner = runner;
}

/* ---- the steps ---- */

/* True until the deadline in `arg` has passed (unpack_call.may_continue). */
static bool is_in_time(void *arg)
{
    return clock_mono_ns() < *(const uint64_t *)arg;
}

/* Creates a temporary file without a name in the configured directory or, without one, in the system's; -1 on failure. */
static int make_temporary_file(void)
{
    const char *configured = fetch_state.tmp_dir;
    return sl_unlinked_file(configured ? configured : temp_dir());
}

struct unpacking {
    struct unpack_request request;
    struct decode_limits limits;
    int fd; /* the file whose contents are replaced */
};

/* Returns the job of unpacking the file `fd`. The caller's size limit comes before the configured one. The ratio limit is the configured
 * one; 1000 if fetch_init was not called. */
static struct unpacking make_unpacking(int fd, enum unpack_format format, struct sl_str member,
                                       const struct decode_limits *limits)
{
    uint64_t ratio = fetch_state.max_inflate_ratio;
    uint64_t max_size = limits->max_size ? limits->max_size : fetch_state.max_download_size;
    struct unpack_options options = {
        .format = format, .max_size = max_size, .max_ratio = ratio ? ratio : 1000, .for_core = limits->for_core};
    return (struct unpacking){
        .request = {.options = options, .member = member, .in = fd, .out = -1}, .limits = *limits, .fd = fd};
}

/* Creates the temporary file that gets the decompressed contents. */
static enum sl_code make_out(void *arg, struct sl_error *error)
{
    struct unpack_request *request = &((struct unpacking *)arg)->request;
    request->out = make_temporary_file();
    return request->out < 0 ? sl_fail_errno(error, errno, "cannot create a temporary file to decompress to") : SL_OK;
}

/* Unpacks in this process, on the calling thread, from a mapping of the file into the temporary file. SL_TIMEOUT if the time limit
 * passes. */
static enum sl_code unpack_mapped(void *arg, struct sl_error *error)
{
    struct unpacking *u = arg;
    struct sl_mapping mapping;
    enum sl_code code = sl_map_fd(u->fd, &mapping, error);
    if (code != SL_OK)
        return code == SL_BUSY ? code : sl_fail(error, SL_INTERNAL, "cannot map the downloaded file");
    struct unpack_call call = {.in = mapping.bytes,
                               .options = u->request.options,
                               .member = u->request.member,
                               .out = u->request.out,
                               .may_continue = is_in_time,
                               .arg = &u->limits.until_ns};
    code = unpack_bytes(&call, &u->request.result, error);
    sl_unmap(&mapping);
    return code == SL_CANCELLED ? fail_for_time_limit(error, u->limits.timeout_ns) : code; /* is_in_time was false */
}

/* Copies the decompressed file from the offset `at` on through a mapping: when copy_file_range(2) has failed, e.g. as the files are on
 * different file systems. */
static enum sl_code copy_mapped(struct unpacking *u, uint64_t at, struct sl_error *error)
{
    struct sl_mapping mapping;
    enum sl_code code = sl_map_fd(u->request.out, &mapping, error);
    if (code != SL_OK)
        return code;
    while (code == SL_OK && at < mapping.bytes.size) {
        uint64_t left = mapping.bytes.size - at, size = left < COPY_PIECE ? left : COPY_PIECE;
        if (!is_in_time(&u->limits.until_ns))
            code = fail_for_time_limit(error, u->limits.timeout_ns);
        else if (!sl_write_all_at(u->fd, (struct sl_bytes){mapping.bytes.data + at, size}, at))
            code = sl_fail_errno(error, errno, "cannot write the decompressed file");
        at += size;
    }
    sl_unmap(&mapping);
    return code;
}

/* Moves `*at` to the next data of the file, over a hole if it is in one. Returns how many bytes to copy from there in one call: not beyond
 * the next hole, and at most COPY_PIECE; 0 at the end of the file. */
static size_t next_piece(int fd, uint64_t size, off_t *at)
{
    off_t data = lseek(fd, *at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) /* only a hole is left */
        data = (off_t)size;
    *at = data < 0 ? *at : data; /* < 0: the file system does not tell holes, so all is copied */
    off_t hole = data < 0 || (uint64_t)data >= size ? -1 : lseek(fd, *at, SEEK_HOLE);
    uint64_t end = hole > *at ? (uint64_t)hole : size, left = end - (uint64_t)*at;
    return (size_t)(left < COPY_PIECE ? left : COPY_PIECE);
}

/* Replaces the contents of the file by the decompressed ones in the temporary file. next_piece() moves `at` over holes, which stay holes;
 * its 0 is the end of the file. From where copy_file_range(2) fails, copy_mapped goes on. */
static enum sl_code copy_back(void *arg, struct sl_error *error)
{
    struct unpacking *u = arg;
    struct stat made;
    off_t at = 0;
    ssize_t n = 1;
    if (fstat(u->request.out, &made) != 0 || ftruncate(u->fd, 0) != 0 || ftruncate(u->fd, made.st_size) != 0 ||
        lseek(u->fd, 0, SEEK_SET) != 0)
        return sl_fail_errno(error, errno, "cannot write the decompressed file");
    while (at < made.st_size && n > 0) {
        size_t size = next_piece(u->request.out, (uint64_t)made.st_size, &at);
        off_t to = at;
        if (!is_in_time(&u->limits.until_ns))
            return fail_for_time_limit(error, u->limits.timeout_ns);
        n = size ? copy_file_range(u->request.out, &at, u->fd, &to, size, 0) : 0;
    }
    return at == made.st_size ? SL_OK : copy_mapped(u, (uint64_t)at, error);
}

/* ---- in a fiber ---- */

/* Returns the kind of pool job for copying a file: a heavy one if it is large or its size is unknown. */
static enum pool_job copy_class(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 || pool_is_heavy((uint64_t)st.st_size) ? POOL_IO | POOL_HEAVY : POOL_IO;
}

/* Unpacks into the temporary file, within the time that is left: by the function that unpack_set_runner has set, else on the pool. */
static enum sl_code run(struct unpacking *u, struct sl_error *error)
{
    uint64_t now = clock_mono_ns(), until = u->limits.until_ns;
    if (!worker_runner)
        return pool_call(POOL_CONVERT, unpack_mapped, u, error);
    if (now >= until)
        return fail_for_time_limit(error, u->limits.timeout_ns);
    u->request.time_ns = until == UINT64_MAX ? UINT64_MAX : until - now;
    enum sl_code code = worker_runner(&u->request, error);
    return code == SL_TIMEOUT ? fail_for_time_limit(error, u->limits.timeout_ns) : code;
}

/* Unpacks into a temporary file, and copies that over the compressed one: so the caller's descriptor now is of the unpacked file. */
static enum sl_code unpack(struct unpacking *u, struct sl_error *error)
{
    enum sl_code code = pool_call(POOL_IO, make_out, u, error);
    if (code == SL_OK)
        code = run(u, error);
    if (code == SL_OK)
        code = pool_call(copy_class(u->request.out), copy_back, u, error); /* a heavy job if the file is large */
    if (u->request.out >= 0)
        close(u->request.out);
    return code;
}

enum sl_code unpack_file(int fd, enum unpack_format format, struct sl_str member, const struct decode_limits *limits,
                         struct sl_error *error)
{
    struct sl_error own;
    struct unpacking u = make_unpacking(fd, format, member, limits);
    return unpack(&u, error ? error : &own);
}

enum sl_code decode_file(int fd, enum unpack_format format, const struct decode_limits *limits, struct sl_error *error)
{
    struct stat st;
    struct unpacking u = make_unpacking(fd, format, (struct sl_str){NULL, 0}, limits);
    if (fstat(fd, &st) == 0 && st.st_size == 0) /* no body, so it is not encoded */
        return SL_OK;
    enum sl_code code = unpack(&u, error);
    if (code == SL_MALFORMED && !u.request.result.over_limit) /* the transfer, not the file, was damaged */
        error->code = code = SL_DOWNLOAD_ERROR;
    return code;
}

/* ---- wrapped files ---- */

enum unpack_format detect_wrapper(int fd)
{
    uint8_t head[6];
    ssize_t size = pread(fd, head, sizeof head, 0);
    return unpack_detect((struct sl_bytes){head, size < 0 ? 0 : (size_t)size});
}

bool fetch_is_wrapped_file(int fd)
{
    return detect_wrapper(fd) != UNPACK_NONE;
}

void count_wrapper(enum unpack_format format)
{
    static const char *const names[UNPACK_FORMATS] = {
        [UNPACK_GZIP] = "gz", [UNPACK_DEFLATE] = "zlib", [UNPACK_ZSTD] = "zstd",
        [UNPACK_XZ] = "xz",   [UNPACK_ZIP] = "zip",      [UNPACK_CAB] = "cab"};
    metric_add(METRIC_DOWNLOAD_COMPRESSION, 1, names[format], NULL, NULL);
}

/* Returns the limits for unpacking that begins now: the deadline is max_download_timeout from now. */
static struct decode_limits get_limits(uint64_t max_size, bool for_core)
{
    uint64_t ns = fetch_state.max_download_timeout_ns, now = clock_mono_ns();
    struct decode_limits limits = {
        .max_size = max_size, .until_ns = UINT64_MAX, .timeout_ns = ns, .for_core = for_core};
    if (ns && ns < UINT64_MAX - now) /* 0: fetch_init was not called, as in commands without downloads */
        limits.until_ns = now + ns;
    return limits;
}

struct wrapper_detection {
    int fd;
    enum unpack_format format;
};

/* On the pool: finds the compressed format of the file by its first bytes. */
static void detect(void *arg)
{
    struct wrapper_detection *d = arg;
    d->format = detect_wrapper(d->fd);
}

/* Unpacks the file if its first bytes are those of a compressed format; other files stay as they are. */
static enum sl_code unpack_wrapped(int fd, uint64_t max_size, bool for_core, struct sl_error *error) SL_SUSPENDS
{
    struct decode_limits limits = get_limits(max_size, for_core);
    struct wrapper_detection d = {.fd = fd};
    enum sl_code code = pool_run(POOL_IO, detect, &d, error);
    if (code != SL_OK || d.format == UNPACK_NONE)
        return code;
    count_wrapper(d.format);
    return unpack_file(fd, d.format, (struct sl_str){NULL, 0}, &limits, error);
}

enum sl_code fetch_unpack(int fd, uint64_t max_size, struct sl_error *error)
{
    return unpack_wrapped(fd, max_size, false, error);
}

enum sl_code fetch_unpack_core(int fd, uint64_t max_size, struct sl_error *error)
{
    return unpack_wrapped(fd, max_size, true, error);
}

enum sl_code fetch_take_member(int fd, struct sl_str member, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size, false);
    return unpack_file(fd, UNPACK_TAR, member, &limits, error);
}

/* ---- without a fiber ---- */

enum sl_code unwrap_file(int fd, const struct decode_limits *limits, struct sl_error *error)
{
    struct sl_error own;
    struct unpacking u = make_unpacking(fd, detect_wrapper(fd), (struct sl_str){NULL, 0}, limits);
    if (u.request.options.format == UNPACK_NONE)
        return SL_OK;
    error = error ? error : &own;
    enum sl_code code = make_out(&u, error);
    if (code == SL_OK)
        code = unpack_mapped(&u, error);
    if (code == SL_OK)
        code = copy_back(&u, error);
    if (u.request.out >= 0)
        close(u.request.out);
    return code;
}

enum sl_code fetch_unwrap(int fd, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size, false);
    return unwrap_file(fd, &limits, error);
}

enum sl_code fetch_unwrap_core(int fd, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size, true);
    return unwrap_file(fd, &limits, error);
}
