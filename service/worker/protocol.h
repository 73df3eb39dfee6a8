/* Messages between the service, its launcher and its workers: one SOCK_SEQPACKET packet each.
 *
 *     service -> worker   request   magic function serial limits inputs options   + descriptors: inputs, then the output
 *     worker -> service   hello     magic measures                                once, before the first request
 *                         answer    magic code serial ... message result          one for each request, without descriptors
 *
 * A hostile file may have taken over a worker, so its hello and answers are checked like hostile files. Integers are little-endian.
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

enum {
    WORKER_MAX_MESSAGE = 8192 + 1024,                             /* largest answer or hello, in bytes */
    WORKER_MAX_REQUEST = 12 * 1024 + 2 * WORKER_MAX_INLINE + 512, /* largest request, in bytes */
    /* the bytes of an inline input begin at a multiple of this in the message, as converters may read structs there */
    INLINE_ALIGNMENT = 16
};

enum worker_access {                /* how a worker gets an input */
                     ACCESS_NONE,   /* the input is missing */
                     ACCESS_READ,   /* as a descriptor of a file */
                     ACCESS_INLINE, /* its bytes are in the message */
                     ACCESS_WRITE, /* as a descriptor of an empty file that the function writes and reads, a scratch file */
};

struct worker_request {
    uint32_t function; /* index in the launcher's table */
    uint64_t serial;   /* number of the request; the answer repeats it */
    struct worker_limits limits;
    bool has_out; /* the last descriptor is the file for the output */
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
    uint64_t serial;            /* of the request */
    enum sl_code code;          /* of the function */
    enum sl_budget_end end;     /* limit that the job exceeded, if any */
    bool is_trial;              /* the function only inspected the file (conversion.is_trial) */
    uint64_t duration_ns, peak; /* duration of the job; most bytes that it was charged for at a time */
    uint64_t heap;              /* size of the worker's heap in bytes (mallinfo2: arena + hblkhd) */
    struct sl_str message;      /* of the error; empty with SL_OK */
    struct sl_bytes result;     /* the function's result */
};

/* Append a message to `out`; false when out of memory. `limits.max_wall_ns` is not sent, as the service itself enforces it. */
bool worker_request_encode(const struct worker_request *request, struct sl_buf *out);
bool worker_answer_encode(const struct worker_answer *answer, struct sl_buf *out);
void worker_hello_encode(uint32_t measures, struct sl_buf *out);

/* Decode a whole message; false if it is malformed or has trailing bytes. Decoded texts and bytes are views of the message. */
bool worker_request_decode(struct sl_bytes message, struct worker_request *request);
/* Decodes an answer. Also checks that its code is one that a function may return, and that the message of the error is UTF-8 without
 * NUL, fits in a `struct sl_error`, and is empty if and only if the code is SL_OK. */
bool worker_answer_decode(struct sl_bytes message, struct worker_answer *answer);
bool worker_hello_decode(struct sl_bytes message, uint32_t *measures);

/* Returns the number of descriptors that accompany the request. */
size_t worker_request_descriptors(const struct worker_request *request);

/* ---- messages to and from the launcher: plain structs, as the launcher reads no hostile files and is trusted ---- */
enum launcher_message_type {
    /* to the launcher */
    LAUNCHER_START = 1, /* start a worker */
    LAUNCHER_KILL,      /* kill a worker */
    LAUNCHER_SPLIT,     /* fork another launcher; answered by STARTED with its socket, or FAILED */
    /* from the launcher */
    LAUNCHER_STARTED, /* with the descriptors of the worker's socket and report pipe */
    LAUNCHER_FAILED,  /* the worker or launcher could not be started */
    LAUNCHER_DIED     /* a worker has ended */
};

struct launcher_message {
    uint32_t what;                   /* enum launcher_message_type */
    int32_t number;                  /* in FAILED: errno; in DIED: wait status, -1 = unknown */
    uint64_t id;                     /* of the worker: the sender of START chooses it, the other messages repeat it */
    int32_t pid;                     /* in STARTED and DIED: process id of the worker */
    uint32_t threads;                /* in START: limits of the worker, like the next two members */
    uint64_t max_memory, max_mapped; /* in START */
};

enum { WORKER_MAX_DESCRIPTORS = WORKER_MAX_INPUTS + 1 }; /* those of the inputs and of the output */
/* Sends one message with descriptors, without raising SIGPIPE. False with errno. */
bool worker_send(int socket, struct sl_bytes message, const int *fds, size_t fd_count);

/* Receives one message of at most `size` bytes. Returns its size, 0 if the peer has closed the socket, or -1 with errno: EPROTO if the
 * message is longer, or has more descriptors than can be received. `fds` has room for WORKER_MAX_DESCRIPTORS descriptors, which the
 * caller closes; NULL = none are allowed. */
ssize_t worker_receive(int socket, void *message, size_t size, int *fds, size_t *fd_count);
