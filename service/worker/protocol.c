/* Encodes and decodes the messages between service and workers, and sends and receives messages with descriptors. */
#include "worker/protocol.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST = 0x51574C53, ANSWER = 0x41574C53, HELLO = 0x48574C53 }; /* magic: "SLWQ", "SLWA", "SLWH" */
enum { HAS_OUT = 1, IS_TRIAL = 1 };                                     /* flags: of a request; of an answer */

_Static_assert(WORKER_MAX_OPTIONS + 24 * WORKER_MAX_INPUTS + 2 * WORKER_MAX_INLINE + 512 <= WORKER_MAX_REQUEST,
               "a request fits");
_Static_assert(WORKER_MAX_RESULT + sizeof(struct sl_error) + 512 <= WORKER_MAX_MESSAGE, "an answer fits");

/* ---- requests ---- */
/* Returns how many zeros follow `size` bytes of a request up to the next multiple of INLINE_ALIGNMENT. */
static size_t padding(size_t size)
{
    return (INLINE_ALIGNMENT - size % INLINE_ALIGNMENT) % INLINE_ALIGNMENT;
}

bool worker_request_encode(const struct worker_request *request, struct sl_buf *out)
{
    sl_buf_u32(out, REQUEST);
    sl_buf_u32(out, request->function);
    sl_buf_u64(out, request->serial);
    sl_buf_u64(out, request->limits.max_memory);
    sl_buf_u64(out, request->limits.max_time_ns);
    sl_buf_u64(out, request->limits.input_size);
    sl_buf_u32(out, request->limits.threads);
    sl_buf_u32(out, request->has_out ? HAS_OUT : 0);
    sl_buf_u32(out, (uint32_t)request->input_count);
    sl_buf_u32(out, (uint32_t)request->options.size);
    for (size_t i = 0; i < request->input_count; i++) {
        sl_buf_u32(out, request->inputs[i].role);
        sl_buf_u32(out, request->inputs[i].access);
        sl_buf_u64(out, request->inputs[i].size);
        sl_buf_u64(out, request->inputs[i].offset);
    }
    sl_buf_add(out, request->options.data, request->options.size);
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].access != ACCESS_INLINE)
            continue;
        /* aligned in the message, as converters may read structs there */
        sl_buf_add(out, (const uint8_t[INLINE_ALIGNMENT]){0}, padding(out->size));
        sl_buf_add(out, request->inputs[i].bytes, request->inputs[i].size);
    }
    return !out->failed;
}

/* Sets the views of the inputs whose bytes are in the message, behind the options. */
static void read_inline_inputs(struct sl_reader *r, size_t message_size, struct worker_request *request)
{
    for (size_t i = 0; i < request->input_count && !r->failed; i++) {
        if (request->inputs[i].access != ACCESS_INLINE)
            continue;
        sl_read_bytes(r, padding(message_size - sl_reader_left(r)));
        request->inputs[i].bytes = sl_read_bytes(r, request->inputs[i].size).data;
    }
}

bool worker_request_decode(struct sl_bytes message, struct worker_request *request)
{
    struct sl_reader r = sl_reader(message, false); /* false: little-endian */
    *request = (struct worker_request){0};
    bool good = sl_read_u32(&r) == REQUEST;
    request->function = sl_read_u32(&r);
    request->serial = sl_read_u64(&r);
    request->limits.max_memory = sl_read_u64(&r);
    request->limits.max_time_ns = sl_read_u64(&r);
    request->limits.input_size = sl_read_u64(&r);
    request->limits.threads = sl_read_u32(&r);
    uint32_t flags = sl_read_u32(&r), count = sl_read_u32(&r), options = sl_read_u32(&r);
    good = good && flags <= HAS_OUT && count <= WORKER_MAX_INPUTS && options <= WORKER_MAX_OPTIONS &&
           request->limits.threads <= WORKER_MAX_THREADS;
    if (!good)
        return false;
    request->has_out = flags & HAS_OUT;
    request->input_count = count;
    for (size_t i = 0; i < count; i++) {
        request->inputs[i].role = sl_read_u32(&r);
        uint32_t access = sl_read_u32(&r);
        request->inputs[i].access = (enum worker_access)access;
        uint64_t size = request->inputs[i].size = sl_read_u64(&r), offset = request->inputs[i].offset = sl_read_u64(&r);
        good = good && access <= ACCESS_WRITE && (access != ACCESS_NONE || size == 0) &&
               (offset == 0 || (access == ACCESS_READ && offset <= INT64_MAX && size <= INT64_MAX - offset));
    }
    request->options = sl_read_bytes(&r, options);
    read_inline_inputs(&r, message.size, request);
    return good && !r.failed && sl_reader_left(&r) == 0;
}

size_t worker_request_descriptors(const struct worker_request *request)
{
    size_t count = request->has_out;
    for (size_t i = 0; i < request->input_count; i++)
        count += request->inputs[i].access == ACCESS_READ || request->inputs[i].access == ACCESS_WRITE;
    return count;
}

/* ---- answers ---- */

/* Appends an answer, laid out as protocol.h shows, to `out`. False when out of memory. */
bool worker_answer_encode(const struct worker_answer *answer, struct sl_buf *out)
{
    sl_buf_u32(out, ANSWER);
    sl_buf_u32(out, (uint32_t)answer->code);
    sl_buf_u64(out, answer->serial);
    sl_buf_u64(out, answer->duration_ns);
    sl_buf_u64(out, answer->peak);
    sl_buf_u64(out, answer->heap);
    sl_buf_u32(out, (uint32_t)answer->end);
    sl_buf_u32(out, answer->is_trial ? IS_TRIAL : 0);
    sl_buf_u32(out, (uint32_t)answer->message.size);
    sl_buf_u32(out, (uint32_t)answer->result.size);
    sl_buf_str(out, answer->message);
    sl_buf_add(out, answer->result.data, answer->result.size);
    return !out->failed;
}

/* True for the codes with which a worker may answer. Others, such as SL_CANCELLED, are conditions of the service's process; a worker
 * that sends one has broken the protocol. */
static bool worker_may_answer(uint32_t code)
{
    switch (code) {
    case SL_OK:
    case SL_NOT_FOUND:
    case SL_MALFORMED:
    case SL_UNSUPPORTED:
    case SL_INTERNAL:
    case SL_BUSY: return true;
    default: return false;
    }
}

bool worker_answer_decode(struct sl_bytes message, struct worker_answer *answer)
{
    struct sl_reader r = sl_reader(message, false); /* false: little-endian */
    bool good = sl_read_u32(&r) == ANSWER;
    uint32_t code = sl_read_u32(&r);
    *answer = (struct worker_answer){.serial = sl_read_u64(&r)};
    answer->duration_ns = sl_read_u64(&r);
    answer->peak = sl_read_u64(&r);
    answer->heap = sl_read_u64(&r);
    uint32_t end = sl_read_u32(&r), flags = sl_read_u32(&r), text = sl_read_u32(&r), result = sl_read_u32(&r);
    good = good && !r.failed && worker_may_answer(code) && end <= SL_BUDGET_TIME && flags <= IS_TRIAL &&
           text < sizeof((struct sl_error *)0)->message && result <= WORKER_MAX_RESULT &&
           (code == SL_OK) == (text == 0);
    if (!good)
        return false;
    answer->code = (enum sl_code)code;
    answer->end = (enum sl_budget_end)end;
    answer->is_trial = flags & IS_TRIAL;
    struct sl_bytes bytes = sl_read_bytes(&r, text);
    answer->message = (struct sl_str){(const char *)bytes.data, bytes.size};
    answer->result = sl_read_bytes(&r, result);
    return !r.failed && sl_reader_left(&r) == 0 && sl_str_is_utf8(answer->message) &&
           (!text || !memchr(answer->message.data, '\0', text));
}

void worker_hello_encode(uint32_t measures, struct sl_buf *out)
{
    sl_buf_u32(out, HELLO);
    sl_buf_u32(out, measures);
}

bool worker_hello_decode(struct sl_bytes message, uint32_t *measures)
{
    struct sl_reader r = sl_reader(message, false);
    bool good = sl_read_u32(&r) == HELLO;
    *measures = sl_read_u32(&r);
    return good && !r.failed && sl_reader_left(&r) == 0;
}

/* ---- sockets ---- */
union worker_control {
    struct cmsghdr head;
    char space[CMSG_SPACE(WORKER_MAX_DESCRIPTORS * sizeof(int))];
};

/* Sends one message with copies of the descriptors; false with errno. The socket keeps message boundaries, so sendmsg() sends the whole
 * message or nothing. */
bool worker_send(int socket, struct sl_bytes message, const int *fds, size_t fd_count)
{
    union worker_control control = {.space = {0}};
    struct iovec part = {(void *)message.data, message.size};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count) {
        head.msg_control = &control;
        head.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        control.head = (struct cmsghdr){CMSG_LEN(fd_count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &head, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)message.size;
}

ssize_t worker_receive(int socket, void *message, size_t size, int *fds, size_t *fd_count)
{
    union worker_control control;
    struct iovec part = {message, size};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        head.msg_control = &control;
        head.msg_controllen = sizeof control;
        *fd_count = 0;
    }
    ssize_t got;
    do
        got = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *first = got >= 0 && fds ? CMSG_FIRSTHDR(&head) : NULL;
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS) {
        *fd_count = (first->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(first), *fd_count * sizeof(int));
    }
    /* the message was cut, or the kernel has closed descriptors that did not fit */
    if (got >= 0 && head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (size_t i = 0; fds && i < *fd_count; i++)
            close(fds[i]);
        errno = EPROTO;
        return -1;
    }
    return got;
}
