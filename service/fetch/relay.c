/* fetch_relay: one request to a peer process. fetch_text: a download into memory. */
#include "fetch/impl.h"
#include "fetch/libcurl.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Called when the head of the response is complete: refuses a body whose Content-Length exceeds the limit before it is received. */
static enum body_action relay_decide(struct transfer *t)
{
    return t->content_length > 0 && (uint64_t)t->content_length > t->limit ? BODY_STOP : BODY_STORE;
}

/* Appends the headers of the request to `*list`. False when out of memory. The caller frees the list in any case. */
static bool add_headers(struct curl_slist **list, const struct fetch_relay *relay)
{
    for (size_t i = 0; i < relay->header_count; i++)
        if (!libcurl_add_header(list, relay->headers[i].name, secret_open(relay->headers[i].value)))
            return false;
    return true;
}

/* Appends the first `size` bytes of the file to `body`. False when out of memory, or if the file is shorter. */
static bool take_body(int fd, uint64_t size, struct sl_buf *body)
{
    if (size == 0)
        return true;
    if (size > SIZE_MAX || !sl_buf_reserve(body, (size_t)size))
        return false;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, body->data + body->size, (size_t)size - done, (off_t)done);
        if (n <= 0)
            return false;
        body->size += (size_t)n;
        done += (size_t)n;
    }
    return true;
}

/* Sends the request and waits until the whole response is stored in t->fd; t->head is the time limit for all of it. SL_OK with any HTTP
 * status. */
static enum sl_code relay_exchange(const struct fetch_relay *relay, struct transfer *t, struct sl_error *error)
{
    if (!add_headers(&t->headers, relay) || !transfer_start(t))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = transfer_wait_end(t, t->head, error);
    /* BODY_STOP: relay_decide has refused the Content-Length */
    if (code == SL_OK && (t->too_long || (t->head_complete && t->action == BODY_STOP)))
        code = fetch_too_large(error);
    if (code == SL_OK)
        code = transfer_failure(t, error);
    if (code == SL_OK && !t->head_complete)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "the server ended its response before the headers were complete");
    return code;
}

enum sl_code fetch_relay(const struct fetch_relay *relay, int *status, struct sl_buf *body, struct sl_error *error)
{
    enum sl_code code = fetch_start(error);
    if (code != SL_OK)
        return code;
    struct fiber_wait_list events = {0};
    struct transfer t = {.url = relay->url,
                         .socket = relay->socket,
                         .pool = DRIVER_OWN,
                         .limit = relay->max_size,
                         .head = time_limit(relay->timeout_ns), /* here the limit for the whole response */
                         .decide = relay_decide,
                         .method = relay->method,
                         .body = {(const char *)relay->body.data, relay->body.size},
                         .field = relay->field,
                         .field_arg = relay->arg,
                         .events = &events};
    t.fd = memfd_create("answer", MFD_CLOEXEC); /* transfers write to a file: this one is in memory */
    if (t.fd < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a download");
    code = relay_exchange(relay, &t, error);
    *status = (int)t.status;
    if (code == SL_OK && !take_body(t.fd, t.stored, body))
        code = sl_fail(error, SL_BUSY, "out of memory");
    transfer_end(&t);
    curl_slist_free_all(t.headers);
    close(t.fd);
    return code;
}

/* fetch_get writes to a file, here one in memory. `piece` is wiped, as the response may be credentials. */
enum sl_code fetch_text(const struct fetch_request *request, struct sl_buf *body, struct sl_error *error)
{
    char piece[4096];
    int fd = memfd_create("answer", MFD_CLOEXEC);
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a download");
    enum sl_code code = fetch_get(request, fd, error);
    off_t at = 0;
    for (ssize_t n; code == SL_OK && (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        sl_buf_add(body, piece, (size_t)n);
    explicit_bzero(piece, sizeof piece);
    close(fd);
    return code == SL_OK && body->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}
