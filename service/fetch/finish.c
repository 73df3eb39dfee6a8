/* Finishes a file after its download: removes the content coding, unpacks it if it is compressed, and checks it. */
#include <unistd.h>

#include "core/loop.h"
#include "core/pool.h"
#include "fetch/impl.h"

struct download_finish {
    int fd;
    bool keep_wrapper, refuse_empty, refuse_pages, is_html;
    enum unpack_format wrapper; /* set by look_at_file */
};

/* True if the text contains the word, in upper or lower case. */
static bool has_word(struct sl_str text, struct sl_str word)
{
    for (size_t i = 0; i + word.size <= text.size; i++)
        if (sl_str_equal_nocase((struct sl_str){text.data + i, word.size}, word))
            return true;
    return false;
}

/* True if a file that begins with `head` is a web page: an HTML document of any Content-Type, or any markup that the server calls HTML
 * (`is_html`) except XML. */
static bool is_page(struct sl_str head, bool is_html)
{
    static const struct sl_str mark = SL_STR("\xEF\xBB\xBF"); /* UTF-8 byte order mark */
    if (sl_str_starts(head, mark))
        head = (struct sl_str){head.data + mark.size, head.size - mark.size};
    head = sl_str_trimmed(head);
    if (!sl_str_starts(head, SL_STR("<")))
        return false;
    return has_word(head, SL_STR("<!doctype html")) || has_word(head, SL_STR("<html")) ||
           (is_html && !sl_str_starts(head, SL_STR("<?xml")));
}

/* Fails if the file is empty or a web page, where the request refuses these. */
static enum sl_code check_contents(const struct download_finish *f, struct sl_error *error)
{
    char head[1024];
    ssize_t size = f->refuse_empty || f->refuse_pages ? pread(f->fd, head, sizeof head, 0) : -1;
    if (size == 0 && f->refuse_empty)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "the server sent an empty file");
    if (size > 0 && f->refuse_pages && is_page((struct sl_str){head, (size_t)size}, f->is_html))
        return sl_fail(error, SL_DOWNLOAD_ERROR,
                       "the server sent a web page instead of the file; it may require a login");
    return SL_OK;
}

/* On the pool: finds out whether the file is compressed (`wrapper`). If not, checks it; else that is done after it is unpacked. */
static enum sl_code look_at_file(void *arg, struct sl_error *error)
{
    struct download_finish *f = arg;
    f->wrapper = f->keep_wrapper ? UNPACK_NONE : detect_wrapper(f->fd);
    return f->wrapper == UNPACK_NONE ? check_contents(f, error) : SL_OK;
}

static enum sl_code check_unpacked(void *arg, struct sl_error *error)
{
    return check_contents(arg, error);
}

/* Unpacks the file if it is compressed, and fails if it is empty or a web page, where the request refuses these. */
static enum sl_code unpack_and_check(struct download_finish *f, const struct decode_limits *limits,
                                     struct sl_error *error) SL_SUSPENDS
{
    enum sl_code code = pool_call(POOL_IO, look_at_file, f, error);
    if (code != SL_OK || f->wrapper == UNPACK_NONE)
        return code;
    count_wrapper(f->wrapper);
    code = unpack_file(f->fd, f->wrapper, SL_STR(""), limits, error);
    return code == SL_OK && (f->refuse_empty || f->refuse_pages) ? pool_call(POOL_IO, check_unpacked, f, error) : code;
}

enum sl_code download_finish(struct fetch_download *d, struct sl_error *error)
{
    const struct fetch_request *request = d->request;
    struct download_finish f = {.fd = d->fd,
                                .keep_wrapper = request->keep_wrapper,
                                .refuse_empty = request->refuse_empty,
                                .refuse_pages = request->refuse_pages,
                                .is_html = d->is_html};
    struct decode_limits limits = {.max_size = d->max_size, .timeout_ns = d->limit.ns};
    /* in time of clock_mono_ns, which is loop_now_ms in nanoseconds */
    limits.until_ns = d->limit.until_ms < UINT64_MAX / MS_NS ? d->limit.until_ms * MS_NS : UINT64_MAX;
    enum sl_code code = d->coding == UNPACK_NONE ? SL_OK : decode_file(d->fd, d->coding, &limits, error);
    bool is_finished = code != SL_OK || (f.keep_wrapper && !f.refuse_empty && !f.refuse_pages);
    return is_finished ? code : unpack_and_check(&f, &limits, error);
}
