/* Messages between the service, its launcher and its workers: one SOCK_SEQPACKET packet each.
 *
 *     service -> worker   request   magic function serial limits inputs options   + descriptors: inputs, then the output
 *     worker -> service   hello     magic measures                                once, before the first request
 *                         answer    magic code serial ... message result          one for each request, without descriptors
 *
 * A hostile file may have taken over the worker: hellos and answers are decoded as hostile input. Integers are little-endian.
 *
 * hello      53 4C 57 48  "SLWH"      81 00 00 00  measures: MEASURE_FILTER | MEASURE_NO_NEW_PRIVS
 *
 * request    53 4C 57 51  "SLWQ"      u32 function, u64 serial, u64 max_memory, u64 max_time_ns, u64 input_size, u32 threads,
 *                                     u32 flags (1: has an output), u32 number of inputs, u32 size of options
 *            per input                u32 role, u32 access (enum worker_access), u64 size, u64 offset in the descriptor's file
 *            options
 *            per inline input         zeros up to a multiple of 16 bytes of the message, its bytes
 * answer     53 4C 57 41  "SLWA"      u32 code, u64 serial, u64 duration_ns, u64 peak, u64 heap, u32 end, u32 flags (1: trial),
 *                                     u32 size of message, u32 size of result
 *            message, result */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "worker/worker.h"

/* Bytes of an answer or hello, and of a request; worker_receive fails for a longer message. */
enum {
    WORKER_MAX_MESSAGE = 8192 + 1024,
    WORKER_MAX_REQUEST = 12 * 1024 + 2 * WORKER_MAX_INLINE + 512,
    INLINE_ALIGNMENT = 16 /* of the bytes of inputs from the begin of the message, as converters may need for structs */
};

enum worker_access {
    ACCESS_NONE, /* the input is missing */
    ACCESS_READ,
    ACCESS_INLINE, /* its bytes are in the message */
    ACCESS_WRITE,  /* a scratch file */
};

struct worker_request {
    uint32_t function; /* index in the launcher's table */
    uint64_t serial;   /* number of the request; the answer repeats it */
    struct worker_limits limits;
    bool has_out;
    size_t input_count;
    struct {
        uint32_t role;
        enum worker_access access;
        const uint8_t *bytes;  /* ACCESS_INLINE: `size` of them; decoded: a view of the message */
        uint64_t size, offset; /* offset: ACCESS_READ only, else 0; both together at most INT64_MAX */
    } inputs[WORKER_MAX_INPUTS];
    struct sl_bytes options; /* a view of the message */
};

struct worker_answer {
    uint64_t serial;
    enum sl_code code;
    enum sl_budget_end end;
    bool is_trial;
    uint64_t duration_ns, peak;
    uint64_t heap; /* size of the worker's heap in bytes (mallinfo2: arena + hblkhd) */
    struct sl_str message;
    struct sl_bytes result;
};

/* False when out of memory. `limits.max_wall_ns` is not sent: the sender enforces it. */
bool worker_request_encode(const struct worker_request *request, struct sl_buf *out);
bool worker_answer_encode(const struct worker_answer *answer, struct sl_buf *out);
void worker_hello_encode(uint32_t measures, struct sl_buf *out);

/* Decode a whole message; false if it is malformed or has trailing bytes. */
bool worker_request_decode(struct sl_bytes message, struct worker_request *request);
/* Also checks that the code is one that a function may return, and that the text is UTF-8 without NUL, fits in a `struct sl_error`
 * and is empty if and only if the code is SL_OK. */
bool worker_answer_decode(struct sl_bytes message, struct worker_answer *answer);
bool worker_hello_decode(struct sl_bytes message, uint32_t *measures);

/* Returns the number of descriptors that accompany the request. */
size_t worker_request_descriptors(const struct worker_request *request);

/* ---- the launcher: plain structs, since it reads no hostile files ---- */
enum launcher_message_type {
    LAUNCHER_START = 1,
    LAUNCHER_KILL,
    LAUNCHER_SPLIT, /* fork another launcher; answered by STARTED with its socket, or FAILED */
    LAUNCHER_STARTED,
    LAUNCHER_FAILED,
    LAUNCHER_DIED
};

struct launcher_message {
    uint32_t what;
    int32_t number; /* FAILED: errno; DIED: wait status, -1 = unknown */
    uint64_t id;    /* of the worker: chosen by START, repeated by all others */
    int32_t pid;    /* STARTED, DIED */
    uint32_t threads;
    uint64_t max_memory, max_mapped; /* START: limits of the worker */
};

/* Sends one message with descriptors, without raising SIGPIPE. False: errno is set. */
enum { WORKER_MAX_DESCRIPTORS = WORKER_MAX_INPUTS + 1 };
bool worker_send(int socket, struct sl_bytes message, const int *fds, size_t fd_count);

/* Receives one message of at most `size` bytes. Returns its size, 0 if the peer closed the socket, or -1 with errno set: EPROTO if the
 * message is longer or has more descriptors than fit. `fds` has WORKER_MAX_DESCRIPTORS elements, which the caller closes; NULL = no
 * descriptors are allowed. */
ssize_t worker_receive(int socket, void *message, size_t size, int *fds, size_t *fd_count);
