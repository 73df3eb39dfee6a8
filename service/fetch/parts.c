/* Downloads the rest of a large file: while its beginning still arrives, up to MAX_PARTS further ranges (RFC 9110, 14) are
 * requested, each written at its own offset. All transfers belong to the one fiber that waits here. */
#include <errno.h>
#include <unistd.h>

#include "fetch/impl.h"

enum { MAX_EXCHANGES = 1 + MAX_PARTS };

/* Called when the head of a response for a further range is complete. The body is stored only if it is exactly the requested range of a
 * file of the same size, in the same content coding as that of the first response: any other body would damage the file. */
static enum body_action decide_part(struct transfer *t)
{
    struct exchange *e = t->arg;
    struct byte_range got;
    enum unpack_format coding;
    if (t->status >= 400) {
        e->verdict = BAD_STATUS;
        return BODY_STOP;
    }
    bool as_asked = t->status == 206 && t->has_content_range && byte_range_parse(t->content_range, &got) &&
                    got.start == e->range.start && got.end == e->range.end && got.total == e->range.total &&
                    exchange_coding(e, &coding, NULL) && coding == e->download->coding;
    e->verdict = as_asked ? PARTIAL : REFUSED;
    return as_asked ? BODY_STORE : BODY_STOP;
}

/* Requests one range. If the file has changed since the first response, which had this ETag, If-Range makes the server send the whole file,
 * which decide_part refuses. */
static enum sl_code start_part(struct exchange *e, const char *etag, struct sl_error *error)
{
    char range[64];
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)e->range.start,
             (unsigned long long)e->range.end);
    e->transfer.spool.offset = e->range.start;
    e->transfer.limit = e->range.end - e->range.start + 1;
    e->transfer.head = time_limit(fetch_state.options.head_timeout_ns);
    e->transfer.decide = decide_part;
    bool strong = etag[0] == '"'; /* a weak one does not guarantee equal bytes (RFC 9110, 13.1.5) */
    return exchange_start(e, NULL, range, strong ? etag : NULL, error);
}

/* True if nothing more is to be received for the exchange of a range: it has ended, or its response is of no use (decide_part). */
static bool over(const struct exchange *e)
{
    return e->transfer.done || (e->transfer.head_complete && e->verdict != PARTIAL);
}

/* Returns SL_OK if an exchange that is over has stored its whole range, else sets and returns the error. */
static enum sl_code outcome(const struct exchange *e, struct sl_error *error)
{
    if (e->transfer.head_complete && e->verdict == BAD_STATUS)
        return exchange_status(e, error);
    if (e->transfer.head_complete && e->verdict != PARTIAL)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "the server did not answer a range request with that range");
    if (e->transfer.too_long)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "the response is longer than the requested range");
    enum sl_code code = transfer_failure(&e->transfer, error);
    if (code == SL_OK && e->transfer.stored != e->range.end - e->range.start + 1)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the response is shorter than the requested range");
    return code;
}

/* Waits until the ranges of all exchanges are received and stored. If one fails, returns its error at once; the caller ends the others. */
static enum sl_code wait_all(struct exchange *const *all, size_t count, struct sl_error *error)
{
    for (;;) {
        struct transfer *running[MAX_EXCHANGES];
        size_t left = 0;
        for (size_t i = 0; i < count; i++) {
            if (!over(all[i])) /* more is to be received for it */
                running[left++] = &all[i]->transfer;
            else if (transfer_store_rest(&all[i]->transfer, error) != SL_OK || outcome(all[i], error) != SL_OK)
                return error->code;
        }
        if (left == 0)
            return SL_OK;
        enum sl_code code = transfer_wait(running, left, all[0]->download->limit, error);
        if (code != SL_OK)
            return code;
    }
}

enum sl_code parts_get(struct exchange *first, struct sl_error *error)
{
    struct fetch_download *d = first->download;
    struct byte_range ranges[MAX_PARTS];
    struct exchange parts[MAX_PARTS], *all[MAX_EXCHANGES] = {first};
    /* allocates no blocks: each range is written at its place in the file */
    if (ftruncate(d->fd, (off_t)first->range.total) != 0)
        return sl_fail_errno(error, errno, "cannot extend the downloaded file to its full size");
    size_t count = byte_range_split(&first->range, fetch_state.options.split_size, ranges), started = 0;
    enum sl_code code = SL_OK;
    while (code == SL_OK && started < count) {
        struct exchange *part = &parts[started];
        *part = (struct exchange){.download = d, .hop = first->hop, .range = ranges[started]};
        all[++started] = part;
        code = start_part(part, first->transfer.etag, error);
    }
    if (code == SL_OK)
        code = wait_all(all, 1 + started, error);
    for (size_t i = 0; i < started; i++) /* without `first`, which the caller ends */
        exchange_end(&parts[i]);
    return code;
}
