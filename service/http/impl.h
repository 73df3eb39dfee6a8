/* Shared by the files of http.
 *
 * A connection is in one state; each state has one timeout, kept in a list per kind, so that a timer costs a few pointers. A
 * request is created when a head is complete and lives until its response is written and its fibers have ended.
 *
 *     bytes -> connection.c (cuts heads, feeds bodies) -> parse.c (llhttp, checks) -> router.c -> fiber in exchange.c:
 *     handler -> send.c (conditions, compression, writing) -> back to connection.c (next request, linger or close)
 *
 * Requests refused by their head, and health checks, are answered without a fiber; small bodies are received without one. */
#pragma once

#include <llhttp.h>
#include <netinet/in.h>
#include <uv.h>

#include "base/list.h"
#include "base/map.h"
#include "core/metrics.h"
#include "core/network.h"
#include "core/loop_slice.h"
#include "http/decode.h"
#include "http/http.h"
#include "tls/tls.h"

enum {
    READ_BUFFER = 64 * 1024,      /* shared by all connections */
    READ_LATE = 4 * 1024,         /* how much of READ_BUFFER is used once the loop's time slice is used up */
    BODY_WINDOW = 256 * 1024,     /* most bytes of a body that are received before the handler reads them */
    BODY_IN_MEMORY = 1024 * 1024, /* larger bodies go to an unlinked file */
    BODY_WHOLE = 64 * 1024,       /* bodies of up to this known length are received without a fiber, always in memory */
    BODY_FREE = 16 * 1024,        /* bodies up to this size cost no more than a head: they do not count as in flight */
    OUTPUT_MAX = 1024 * 1024,     /* most bytes of a response in the connection's memory until they are sent */
    DISCARD_LIMIT = 64 * 1024,    /* most bytes of a body that are received only to drop them */
    PIPELINE_LIMIT = 16 * 1024,   /* most bytes of next requests that are received while one runs */
    CHUNK_CREDIT = 16 * 1024,  /* bytes of chunk framing that a body may have whatever its content is (check_framing) */
    RESERVE_CLASS = 64,        /* connections accepted above max_connections, which may only send health checks */
    ADDRESS_MAX = 46,          /* the text of an IPv6 address, and its NUL */
    PLAIN_BUFFER = 16 * 1024,  /* a TLS record */
    MAX_ENCRYPTED = 64 * 1024, /* most bytes that are encrypted ahead of the socket */
    MAX_HANDSHAKES = 1024,     /* concurrent TLS handshakes; beyond it the oldest is closed */
};

enum http_request_state {
    STATE_IDLE, /* no byte of a next request was received */
    STATE_HANDSHAKE,
    STATE_HEAD,   /* receives a head */
    STATE_BODY,   /* receives a body; its handler may run already */
    STATE_WORK,   /* the request is received: its response is made and written */
    STATE_LINGER, /* the response is written: drops what the client still sends */
    STATE_CLOSING,
    STATES
};

/* The groups of states by which metrics count connections; those of GAUGE_NONE are not reported. */
enum connection_gauge { GAUGE_IDLE, GAUGE_READING, GAUGE_WORKING, GAUGE_WRITING, GAUGE_HANDSHAKE, GAUGE_NONE, GAUGES };

enum connection_timeout {
    TIMEOUT_NONE,
    TIMEOUT_HANDSHAKE,
    TIMEOUT_HEADER,
    TIMEOUT_RESERVE, /* header timeout of a connection accepted above max_connections */
    TIMEOUT_BODY,
    TIMEOUT_DISCARD, /* rest of a body after an early response */
    TIMEOUT_IDLE,
    TIMEOUT_WRITE,
    TIMEOUT_LINGER,
    TIMEOUT_PROBE,  /* of a client that sends nothing while its request runs: checks if it is still connected */
    TIMEOUT_FAMILY, /* body timeout of the first of http_options.families; those of the others follow */
};

/* ---- head.c: finds the end of a head and checks what llhttp does not ---- */
enum head_result { HEAD_MORE, HEAD_COMPLETE, HEAD_BAD, HEAD_LINE_TOO_LONG, HEAD_TOO_LARGE };

struct head_scan {
    size_t offset;     /* how many bytes are scanned: up to the start of a line or into one */
    size_t line_start; /* offset of the current line */
    size_t start;      /* offset of the request line, after skipped empty lines */
    unsigned lines;    /* complete lines: request line and fields */
};

/* Scans all bytes of a head received so far; `*size` is its length once it is complete. Counts lines; line folding and bare
 * line feeds are HEAD_BAD. */
enum head_result head_scan(struct head_scan *scan, struct sl_bytes data, const struct http_options *limits,
                           size_t *size);

/* ---- requests ---- */
struct request_body {
    struct sl_buf window; /* received, still encoded; filled by the connection */
    struct sl_buf raw;    /* being decoded; its first `raw_at` bytes are decoded already */
    size_t raw_at;
    struct sl_buf piece; /* handed to the handler */
    struct http_decoder *decoder;
    bool held_back; /* the decoder may have more output without more input */
    enum content_coding coding;
    uint64_t limit; /* highest number of received bytes, and of decoded bytes */
    /* bytes of the body without chunk framing; the same decoded; with all framing and trailers; number of chunks; bytes of trailers */
    uint64_t received, decoded, raw_bytes, chunks, trailer_bytes;
    uint64_t started_ms;
    size_t trailer_line;            /* bytes of the current line of the trailers */
    uint8_t trailer_last;           /* its last byte */
    bool in_trailers, trailers_end; /* after the last chunk; after the empty line that ends the trailers */
    int failed_status;              /* status of the response if reading has failed, such as 413; 0 = it has not */
    const char *failed_detail;
    bool discard;                        /* nobody reads it: bytes are counted and dropped */
    size_t here;                         /* bytes that were received with the head */
    struct client_address *in_flight_of; /* the address whose counter `halves` includes this body; NULL = none */
    bool is_counted;                     /* against max_bodies_in_flight */
    struct fiber *reader;                /* waits for bytes of the body; NULL = none does */
    struct sl_mapping spool;             /* a large body, in an unlinked file */
};

struct request {
    struct http_exchange x; /* first, so that a pointer to an exchange is one to its request, too */
    struct http_server *server;
    struct connection *connection;
    llhttp_t parser;
    struct request_body body;
    struct sl_str host, expect, accept_encoding, trace, baggage;
    unsigned host_count, coding_count;
    size_t header_capacity;
    bool chunked, bad_transfer_encoding, has_transfer_encoding;
    bool head_done;    /* later fields are trailers */
    bool message_done; /* the last byte of the request was parsed */
    bool close;        /* close the connection after the response */
    /* head_only: the method is HEAD; interim_due: the client waits for 100 Continue; started: its handler or response has begun */
    bool http10, head_only, interim_due, framing_error, started;
    bool discarding; /* answered; the rest of the body is read without a fiber */
    unsigned route_index;
    uint64_t start_ns;
    uint64_t bytes_out;
    /* what went wrong on the connection, for the log and a metric: "reset", "slow" ..; NULL = nothing */
    const char *aborted;
    uv_write_t write;
    int write_status;
    bool write_done;
    struct sl_buf encrypted; /* encrypted bytes being written, with TLS */
    struct fiber *writer;
    struct loop_waiter turn; /* queued until it starts */
    char id[40];
    struct request *next_free;
};

struct client_address {           /* counters of one client address */
    unsigned connections, bodies; /* open connections; bodies that count against max_bodies_in_flight */
    unsigned halves;              /* bodies that are incomplete, including those too small to be counted in `bodies` */
    struct sl_str address;
};

struct connection {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct http_server *server;
    struct sl_link link, timer; /* in the server's connections; in the queue of its timeout */
    enum connection_timeout timeout;
    enum http_request_state state;
    uint64_t due_ms, linger_end_ms, state_since_ms, paused_ms;
    struct request *request;
    struct sl_buf pending; /* received, but not yet parsed */
    struct tls *tls;       /* NULL: no TLS */
    bool tls_begun;        /* the first bytes were received */
    bool operators;        /* may use operators' routes */
    bool loopback;         /* accepted by a loopback listener */
    struct head_scan scan;
    size_t unsent;      /* bytes queued in libuv when last checked */
    size_t answer_size; /* bytes of the response in the running write */
    uint64_t write_started_ms, write_progress_ms;
    struct loop_waiter turn; /* queued to read more of a body */
    unsigned requests;       /* that have ended */
    /* reserve: accepted above max_connections; eof: the client has ended its stream; probed: probe_client has sent its interim response;
     * processing: connection_consume runs */
    bool unix_socket, reserve, reading, eof, probed, processing;
    bool dead; /* being closed; freed after `closed` and the end of the request */
    bool closed;
    struct client_address *ip; /* whose counter includes this connection; NULL = none */
    char peer[ADDRESS_MAX];    /* empty until needed */
};

struct http_listener {
    struct http_server *server;
    uv_poll_t poll;
    int fd;
    bool unix_socket;
    bool paused; /* does not accept for a while, as the server is full or there are no free descriptors */
    bool tls, admin;
    bool loopback;     /* on a loopback address */
    bool bound;        /* has a socket file to unlink */
    bool passed;       /* from the service manager, which continues to listen */
    char address[128]; /* as bound; for a Unix socket "unix:" and its path */
};

enum { SERIES_PER_ROUTE = 6 };
struct route_series { /* cached series of one route */
    struct metric_series *duration, *bytes_in, *bytes_out;
    struct {
        int status;
        const char *method;
        struct metric_series *series;
    } requests[SERIES_PER_ROUTE];
};

struct timer_queue {
    struct sl_list connections; /* ordered by due time */
    uint64_t ms;
};

struct http_server {
    struct http_options options;
    struct sl_arena arena;
    struct http_listener *listeners;
    size_t listener_count;
    struct http_route *routes;              /* of all families; ends with a NULL method */
    enum connection_timeout *body_timeouts; /* by route */
    size_t route_count;
    struct route_series *series; /* route_count + 1: the last is for requests without a route */
    struct sl_list connections;
    size_t connection_count, closing; /* all connections; those of them whose descriptors are closed */
    size_t active, bodies, counts[GAUGES];
    struct metric_series *gauges[GAUGES]; /* series of `counts` */
    struct timer_queue *queues;           /* by enum connection_timeout */
    size_t queue_count;
    uv_timer_t tick;
    uint64_t next_accept_warning_ms, next_fiber_warning_ms, refused_without_fiber;
    struct request *free_requests;
    unsigned free_request_count;
    struct sl_map ips;
    struct network *proxies;
    size_t proxy_count;
    bool trust_unix, draining, stopping, failed;
    unsigned open_handles; /* listeners and `tick`, until closed */
    struct fiber *stopper; /* fiber in http_server_stop */
    uint64_t random[4];
    time_t date_second;
    char date[40];
    struct tls_context *tls; /* for new connections; NULL = none */
    bool has_admin;          /* there are admin listeners */
    char read_buffer[READ_BUFFER];
    /* one TLS record each: decrypted bytes being parsed; plain bytes to be encrypted */
    uint8_t opened[PLAIN_BUFFER], to_seal[PLAIN_BUFFER];
};

/* ---- origin.c: checks Host and Origin ---- */
/* True if the request's Host is one of this service's names; else sets the response (421). */
bool origin_check_host(struct request *r);
/* True if the request's origin may post forms; else sets the response (403). */
bool origin_check_form(struct request *r);
/* Sets the CORS headers, for routes that do not do so themselves. True if the request is a preflight: its response is set, too.
 * `wrong_method`: no route of the path has this method, as is the case with the OPTIONS of preflights. */
bool origin_allow(struct request *r, bool wrong_method);

/* ---- listener.c ---- */
enum { MAX_PASSED_LISTENERS = 64 };

/* Binds and listens; `*listener` must be zeroed except for its server. */
enum sl_code listener_open(struct http_listener *listener, const char *address, struct sl_error *error);
void listener_close(struct http_listener *listener);

/* Stores the descriptors that the service manager passed under `name` ("https", "admin", or "http", which includes all other
 * names); returns how many. */
size_t listeners_get_passed(const char *name, int fds[MAX_PASSED_LISTENERS]);
/* Unsets LISTEN_FDS and its companions, so that child processes do not take the passed sockets for theirs. */
void listeners_unset_environment(void);
/* Prepares a listener for a socket that the service manager passed, which listens already. */
enum sl_code listener_adopt(struct http_listener *listener, int fd, struct sl_error *error);

/* ---- certificates.c ---- */

/* Reads certificate, key and the CA of clients as the options name them. Code and error are those of tls_context_server. */
enum sl_code server_load_certificate(const struct http_options *options, struct tls_context **context,
                                     struct sl_error *error);
/* Reads certificate, key and the CA of clients again, after a reload. If they are invalid, the server keeps the old ones. */
void server_renew_certificate(struct http_server *server);

/* ---- server.c ---- */
/* Starts the connection's only timeout anew, replacing one in progress; TIMEOUT_NONE stops it. */
void server_timer(struct connection *c, enum connection_timeout timeout);
void server_add_connection(struct connection *c);          /* a new connection */
void server_remove_connection(struct connection *c);       /* a connection is closed */
bool server_is_full(const struct http_server *server);     /* true beyond max_connections */
void server_count(const struct connection *c, int change); /* adds `change` to the gauge of c's state */
void server_bound_handshakes(struct http_server *server);  /* closes the oldest handshake beyond MAX_HANDSHAKES */
void server_free(struct http_server *server);
/* Builds the routes and their data; called before any other function of the server. False when out of memory. */
bool server_take_routes(struct http_server *server);

/* ---- connection.c ---- */
void connection_accept(struct http_listener *listener, int fd);             /* takes over the accepted socket */
void connection_state(struct connection *c, enum http_request_state state); /* sets the state, and updates the gauges */
void connection_abort(struct connection *c, bool reset);                    /* closes at once and cancels its request */
void connection_handle_timeout(struct connection *c);
void connection_read(struct connection *c, bool on);
/* Sends a few bytes, before all that is written later; false if the connection is unusable or memory is out. */
bool connection_send(struct connection *c, struct sl_str text);
/* Called when the connection's request has ended. `close`: no further request is read. `whole`: all of the request was parsed, so
 * no more bytes of it can follow. */
void connection_end_request(struct connection *c, bool close, bool whole);
const char *connection_peer(struct connection *c);

/* ---- exchange.c: the life of a request ---- */
struct request *request_new(struct connection *c);
void request_free(struct request *r);
/* Answers at once if no fiber is needed, else runs the request's fiber until it suspends; now, or in a later turn of the loop. */
void request_start(struct request *r);
/* For requests without a fiber: called when the response is written, or the connection dead. */
void request_answered(struct request *r);
/* For requests without a fiber: called when all of it is over, successfully or not. */
void request_finish(struct request *r);

/* ---- parse.c ---- */
void parse_init(void);
/* Copies and parses a complete head of `lines` lines, finds the route, and checks the request. Sets a response (x.status) if the head
 * alone decides it. */
void parse_head(struct request *r, struct sl_bytes head, unsigned lines);
/* Answers a request with an invalid head: 400, 408, 414, 431 ... */
void parse_refuse(struct request *r, int status, const char *detail);
/* Feeds body bytes; returns how many belong to this request: all, after an error in the framing. */
size_t parse_body(struct request *r, struct sl_bytes data);

/* ---- router.c ---- */
/* Sets x->route, its `*index` in `routes`, and x->captures. Returns 0, or the status of the response, with Allow set for 405. */
int route_find(struct http_exchange *x, const struct http_route *routes, unsigned *index);
/* Sets Allow to the methods of all routes, whatever their paths. */
void route_allow_all(struct http_exchange *x, const struct http_route *routes);
/* Percent-decodes into the arena; false for a bad escape, a NUL or invalid UTF-8, and, with data NULL, when out of memory. */
bool percent_decode(struct sl_arena *arena, struct sl_str text, struct sl_str *out);

/* ---- body.c ---- */
#define BODY_NO_MEMORY "not enough memory for this request"
/* True if one more body may be in flight; counts it then. To be called before body_init. */
bool body_reserve(struct request *r);
void body_init(struct request *r);             /* after the head's checks */
bool body_is_awaited(const struct request *r); /* true if the handler need not run before the body is complete */
void body_receive(struct request *r, struct sl_bytes data);
void body_fail(struct request *r, int status, const char *detail); /* wakes the reader */
/* For the fiber that reads the body: fails the body (body_fail), sets the response, and returns the code that http_body returns. */
enum sl_code body_refuse(struct request *r, int status, const char *detail);
void body_complete(struct request *r);                 /* the last byte of the request was parsed: wakes the reader */
bool body_discard_rest(struct request *r) SL_SUSPENDS; /* true if the connection can be used for another request */
void body_finish(struct request *r);                   /* frees */

/* ---- response.c ---- */
bool header_is_set(const struct http_exchange *x, const char *name, struct sl_str *value);

/* ---- file.c: conditions and ranges (RFC 9110, 13 and 14) ---- */
struct file_part {
    uint64_t offset, size;
};
/* Decides how to send the file of `x`: sets the status (200, 206, 304, 416) and headers, returns the part to send. */
struct file_part file_evaluate_conditions(struct http_exchange *x);
bool http_date_parse(struct sl_str text, int64_t *seconds);

/* ---- encode.c ---- */
enum content_coding encode_choose(struct sl_str accept_encoding); /* CODING_IDENTITY, _GZIP or _ZSTD */
void encode_body(struct request *r) SL_SUSPENDS;                  /* compresses x.body if that makes it smaller */

/* ---- send.c ---- */
void send_answer(struct request *r) SL_SUSPENDS;
void send_now(struct request *r);     /* a small response, without a fiber; then calls request_answered */
void send_interim(struct request *r); /* 100 Continue */
/* Resets the connection instead of sending a response with 429, 500 or 503 if the route's API prefers that for this client
 * (http_family.prefers_reset). True if it did. */
bool send_reset(struct request *r);
const char *server_date(struct http_server *server);

/* ---- address.c ---- */
/* Sets x.client to the client's address and x.request_id to the X-Request-Id of a trusted proxy, else to a new UUID. */
void set_client_and_request_id(struct request *r);
/* Counts the connection for its client's address, once; false if there are too many. */
bool address_add_connection(struct request *r);
void address_remove_connection(struct connection *c);
/* Returns the counters of an address, new ones if it has none; NULL when out of memory. */
struct client_address *address_entry(struct http_server *server, struct sl_str address);
/* Frees the counters of an address if all are zero. */
void address_remove_entry(struct http_server *server, struct client_address *entry);
void random_uuid(struct http_server *server, char out[37]);

/* ---- access.c ---- */
void access_record(struct request *r); /* log line and metrics of a finished request */
