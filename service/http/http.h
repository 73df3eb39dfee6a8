/* The HTTP/1.1 server: connections, framing, limits and timeouts over llhttp; each request is a fiber that runs the
 * handler of its route (RFC 9110, RFC 9112; what is stricter than llhttp is listed in parse.c and head.c).
 *
 * A handler reads the request (head is complete when it starts; the body is read by http_body), fills the response and
 * returns; the answer is written afterwards. The exchange and its arena live until the answer is out. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_write.h"
#include "core/content.h"
#include "core/fiber.h"
#include "core/memory.h"
#include "core/pool.h"

struct http_header {
    struct sl_str name; /* lower case */
    struct sl_str value;
};

struct http_query {
    struct sl_str key, value; /* decoded */
};

enum { HTTP_MAX_CAPTURES = 8 };

struct http_exchange {
    struct sl_arena arena;
    struct fiber_group group; /* cancelled when the client resets the connection */

    /* request */
    struct sl_str method, target, path; /* path: raw, before the first '?' */
    struct http_header *headers;
    size_t header_count;
    struct http_query *query;
    size_t query_count;
    struct sl_str captures[HTTP_MAX_CAPTURES]; /* decoded segments of the route's {..}; the rest for a {rest..} */
    size_t capture_count;
    int64_t content_length; /* -1 when chunked or absent */
    bool has_body;
    struct sl_str client; /* address after trusted proxies */
    struct sl_str request_id;
    struct sl_str key_id; /* of the access key it showed; empty = none */
    const char *refused;  /* why that does not open this route, for the log; NULL = it does, or none is needed */
    uint64_t waited_ns;   /* in queues, so far: for memory, for the pool; what works for it elsewhere adds to it */
    bool key_has_scopes;  /* the only ones that it may name */
    char job_id[37];      /* of the job whose answer this is, or empty: for the log */
    const struct http_route *route;
    void *service;              /* of the server's options */
    struct memory_share memory; /* of the body and what is read out of it; given back at the end, or moved on */

    /* response; a handler sets these through the functions below */
    int status;
    struct http_header *response_headers;
    size_t response_header_count;
    struct sl_buf body;      /* owned; freed after writing */
    struct content *content; /* instead of body; held */
    struct sl_mapping *file; /* instead of body: answered with ranges and validators (http_reply_file) */
    int64_t file_modified_s;
    void (*file_release)(void *arg); /* called when the answer is out; may be NULL */
    void *file_arg;

    void *connection; /* private to the server */
};

struct job_kind; /* of whoever has routes that start jobs */

typedef void http_handler(struct http_exchange *x) SL_SUSPENDS;

struct http_route {
    const char *method;  /* "GET" also serves HEAD */
    const char *pattern; /* "/requests/{id}", "/proxy/{rest..}"; a name in braces is one segment */
    http_handler *handler;
    bool health;     /* exempt from access log, limits and draining */
    bool takes_work; /* refused with 503 while draining */
    /* Checks made on the head before any body byte is read, in this order: `check` (query, media type, slots) may answer
     * itself by setting x->status; may be NULL. Does not suspend. */
    void (*check)(struct http_exchange *x);
    uint64_t (*body_limit)(const struct http_exchange *x); /* bytes; NULL = 64 KiB and the body is discarded */
    unsigned body_weight;       /* memory that reading a collected body takes, in its sizes; 0 = not counted */
    const char *const *rights;  /* one of them is needed; ends with NULL. NULL = open, or the handler's business */
    bool operators;             /* only on the listeners for operators, where there are any */
    bool immediate;             /* the handler does not suspend and answers little: it runs without a fiber */
    bool page_view;             /* counted as Mozilla's services count what is looked at (METRIC_ELIOT_PAGEVIEW) */
    const struct job_kind *job; /* the kind of jobs that it starts; NULL = none */
    /* Whether the path, whose segments are captured, is one of this route at all; if not, it is as if there was no such route.
     * NULL = always. Does not suspend. */
    bool (*there)(const struct http_exchange *x);
    const struct http_family *family; /* set by the server */
};

/* The routes of one API and what they have in common. `service` is that of the server's options. */
struct http_family {
    const struct http_route *routes; /* ends with a NULL method */
    /* In front of all its paths; as long as the call. NULL = nothing. Asked for at the start and by http_server_configure. */
    const char *(*prefix)(const void *service);
    /* Whether there is such an API now; as long as not, its paths are unknown ones. NULL = always. */
    bool (*enabled)(const void *service);
    const char *group; /* what access is granted to as one; NULL = open */
    bool browsed;      /* people look at it: who has no key is asked for one in the way of browsers */
    /* Which pages of browsers may ask, of a family that says so itself, and sets the headers itself: as http_origin_allowed.
     * NULL = those of the server's `cors_origins`. */
    bool (*origin_allowed)(const struct http_exchange *x, struct sl_str *origin);
    bool guarded; /* only for holders of keys, whatever else is open */
    /* An error that the server meets, in the API's form: the status is set and the body empty. `detail` may be NULL; of 404
     * and 405 it is. NULL = the server's form: {"detail":...}, nothing for 404 and 405, a text for 413. */
    void (*error)(struct http_exchange *x, int status, const char *detail);
    const char *allow_separator; /* between the methods of Allow; NULL = "," */
    /* How long a body may be silent. NULL = as of all, and then no body may be slower than the server's lowest rate; else
     * the rate is the handlers' business. Asked for at the start and by http_server_configure. */
    uint64_t (*body_timeout_ms)(const void *service);
};

struct http_options {
    const char *const *bind; /* "IP:PORT", "[IPv6]:PORT", "unix:/path", "systemd" */
    size_t bind_count;
    const char *const *bind_https; /* the same, with TLS */
    size_t bind_https_count;
    const char *const *admin_bind; /* the same: the only ones for operators, if there are any */
    size_t admin_bind_count;
    const char *certificate_path, *key_path, *client_ca_path; /* of TLS; the last may be NULL */
    const char *unix_group;                                   /* of sockets in the file system; NULL = the process's */
    const struct http_family *const
        *families; /* ends with NULL; of all routes the first match wins, literal before pattern */
    void *service;
    void (*authorize)(struct http_exchange *x); /* of routes with rights: answers if access is denied; may be NULL */
    const char *tmp_dir;                        /* for large bodies */
    int backlog;
    uint64_t max_request_line, max_head_bytes, compress_min;
    unsigned max_header_fields, max_bodies_in_flight, max_connections, max_connections_per_ip, keepalive_requests;
    uint64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms, write_timeout_ms, min_rate;
    const char *const *allowed_hosts; /* values of Host; none = any, but see loopback_hosts */
    size_t allowed_host_count;
    bool loopback_hosts; /* without allowed_hosts, listeners on loopback addresses take names of this machine only */
    const char *const *trusted_proxies;
    size_t trusted_proxy_count;
    bool server_header;
    bool reuseport;                  /* other processes may listen on the same addresses (socket(7), SO_REUSEPORT) */
    bool leaves_others;              /* and go on when this one drains: it listens no more then */
    const char *neighbours;          /* path of a Unix socket for the other processes of the service; NULL = none */
    uint64_t file_max_age_s;         /* how long clients may keep a file */
    const char *const *cors_origins; /* that scripts of browsers may ask from; "*": any */
    size_t cors_origin_count;
    bool access_combined; /* the classic line instead of fields */
    enum { HTTP_ACCESS_ALL, HTTP_ACCESS_ERRORS, HTTP_ACCESS_OFF } access;
};

struct http_server;

/* Fills in the defaults. */
void http_options_default(struct http_options *options);

/* Binds every listener and begins to accept. Errors name the address. */
enum sl_code http_server_start(const struct http_options *options, struct http_server **server, struct sl_error *error);

/* The address the i-th listener is bound to ("127.0.0.1:3021"), for logs and tests with port 0; empty behind the last. */
const char *http_server_address(struct http_server *server, size_t index);
const char *http_server_protocol(struct http_server *server, size_t index); /* "HTTP", "HTTPS", "admin" */

/* Tells in the log when the certificate ends soon or has ended; once a day is enough. */
void http_server_check_certificate(const struct http_server *server);

/* Limits, timeouts, hosts and proxies of other options from now on; listeners, routes and service stay. */
void http_server_configure(struct http_server *server, const struct http_options *options);

/* Drain: sockets that a manager holds, or addresses that others listen on, are not listened on any more, idle connections are closed, answers carry `Connection: close`, routes that take work answer 503. */
void http_server_drain(struct http_server *server);
size_t http_server_connections(struct http_server *server);
size_t http_server_active(struct http_server *server); /* requests being handled */
/* Closes everything at once; suspends until all fibers are gone, then frees. */
void http_server_stop(struct http_server *server) SL_SUSPENDS;

/* ---- request ---- */
struct sl_str http_header(const struct http_exchange *x, const char *name); /* first value, data NULL when absent */
size_t http_query_count(const struct http_exchange *x, const char *key);
struct sl_str http_query(const struct http_exchange *x, const char *key); /* data NULL when absent */

/* The whole decoded body (Content-Encoding undone), at most the route's limit. Bodies above 1 MiB are spooled to an
 * unlinked file and mapped. By the route's weight, memory is had for it then (x->memory). On failure the response is already
 * set (400, 408, 413, 415, 503) or the client is gone (SL_CANCELLED). */
enum sl_code http_body(struct http_exchange *x, struct sl_bytes *body) SL_SUSPENDS;

/* The whole decoded body as an unlinked file, to outlive the exchange; `*fd` is the caller's. At most the route's limit. On
 * failure as http_body. */
enum sl_code http_body_take(struct http_exchange *x, int *fd) SL_SUSPENDS;

/* The next piece of the decoded body, at most 256 KiB, valid until the next call; empty at the end. For uploads that
 * are not collected. */
enum sl_code http_body_read(struct http_exchange *x, struct sl_bytes *piece) SL_SUSPENDS;

/* Whether the client already has the version that this quoted tag names (If-None-Match): then the answer is 304. */
bool http_has_tag(const struct http_exchange *x, struct sl_str tag);
/* Whether an answer may be sent in gzip, whatever the client likes best. */
bool http_takes_gzip(const struct http_exchange *x);
/* The pairs of a form (application/x-www-form-urlencoded) or a query, in their order; decoded, in the arena. NULL without
 * any, or when out of memory. */
struct http_query *http_form(struct sl_arena *arena, struct sl_str text, size_t *count);

/* True once the client has gone (reset). */
bool http_client_gone(const struct http_exchange *x);
/* pool_run for what only this client wants: it ends early, with SL_CANCELLED, when that is gone. */
enum sl_code http_pool_run(struct http_exchange *x, enum pool_job kind, void (*fn)(void *arg), void *arg,
                           struct sl_error *error) SL_SUSPENDS;

/* ---- response ---- */
/* Replaces a header of the same name. Names and values must live as long as the exchange (literals, or its arena). A value
 * with control bytes is left out: it could forge headers. */
void http_set_header(struct http_exchange *x, const char *name, struct sl_str value);
void http_add_vary(struct http_exchange *x, struct sl_str name); /* one more header that the answer depends on */
/* Whether scripts of the request's origin may read the answer: `*origin` is what Access-Control-Allow-Origin says then. "*"
 * among the origins: any. (Fetch Standard, "CORS protocol") */
bool http_origin_allowed(const struct http_exchange *x, const char *const *origins, size_t count,
                         struct sl_str *origin);
void http_reply(struct http_exchange *x, int status, const char *content_type, struct sl_str body); /* copies */
void http_reply_empty(struct http_exchange *x, int status);
/* The JSON in `json` becomes the body; the buffer is taken over. */
void http_reply_json(struct http_exchange *x, int status, struct sl_buf *json);
/* The content becomes the body; the caller's hold goes over. */
void http_reply_content(struct http_exchange *x, int status, const char *content_type, struct content *content);
/* In the form of the route's family. */
void http_reply_error(struct http_exchange *x, int status, const char *detail);
/* 503: what fails with SL_BUSY. */
void http_reply_no_memory(struct http_exchange *x);
/* {"detail":detail,"causes":[cause]}; `cause` may be NULL. */
void http_reply_detail(struct http_exchange *x, int status, const char *detail, const char *cause);

/* Answers 200 with a file, or, as the request's conditions and Range ask (RFC 9110, 13 and 14), 206, 304 or 416.
 * `etag` is a quoted strong tag (copied; NULL = none), `modified_s` seconds since the epoch (0 = none). The mapping must
 * live until `release(arg)` is called, once the answer is out; it may be NULL. Cache-Control becomes
 * "private, max-age=.." of the options, unless it was set before; "public" stays and gets the age. The file is read on the pool, never on the loop. */
void http_reply_file(struct http_exchange *x, const char *content_type, struct sl_mapping *file, const char *etag,
                     int64_t modified_s, void (*release)(void *arg), void *arg);
