/* The HTTP/1.1 server: connections, framing, limits and timeouts over llhttp; each request is a fiber that runs the handler of
 * its route (RFC 9110, RFC 9112; rules stricter than llhttp's are listed in parse.c and head.c).
 *
 * A handler reads the request (its head is complete; the body is read by http_body), fills in the response and returns; the
 * response is written afterwards. The exchange and its arena live until the response is written. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_write.h"
#include "core/shared_blob.h"
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
    struct sl_str captures[HTTP_MAX_CAPTURES]; /* decoded segments of the route's {..}, or the rest for {rest..} */
    size_t capture_count;
    int64_t content_length; /* -1 when chunked or absent */
    bool has_body;
    struct sl_str client; /* the client's address; behind trusted proxies the one that they state */
    struct sl_str request_id;
    struct sl_str key_id; /* id of the access key that the client sent; empty = none */
    /* why that key gives no access to this route, for the log; NULL = access is given, or no key is needed */
    const char *refused;
    uint64_t waited_ns;  /* time that all fibers of the request have waited for memory and for the pool */
    bool key_has_scopes; /* the key has scopes: the request may use only those */
    char job_id[37];     /* id of the job that is answered, or empty; for the log */
    const struct http_route *route;
    void *service; /* from the server's options */
    /* for the body and what is parsed out of it; released when the request ends, unless the handler has moved it to a longer-lived owner */
    struct memory_reservation memory;

    /* response; a handler sets these through the functions below */
    int status;
    struct http_header *response_headers;
    size_t response_header_count;
    bool header_lost;   /* out of memory for a header: the response is not sent, as it may be wrong without it */
    struct sl_buf body; /* owned; freed after it is written */
    struct shared_blob *content; /* instead of `body`; the exchange owns one reference */
    struct sl_mapping *file;     /* instead of body: sent with ranges and validators (http_reply_file) */
    int64_t file_modified_s;
    bool file_is_resident; /* all its pages are in memory: a small file is sent from the mapping, without the pool */
    void (*file_release)(void *arg); /* called when the response is written; may be NULL */
    void *file_arg;

    void *connection; /* private to the server */
};

struct job_kind; /* defined by the module whose routes start jobs */

typedef void http_handler(struct http_exchange *x) SL_SUSPENDS;

struct http_route {
    const char *method;  /* "GET" also serves HEAD */
    const char *pattern; /* "/requests/{id}", "/proxy/{rest..}"; a name in braces is one segment */
    http_handler *handler;
    bool health;     /* a health check: exempt from limits and draining; its access log line has the level trace */
    bool takes_work; /* refused with 503 while draining */
    /* Runs after the head, before any body byte is read: may answer by setting x->status, for example because of the query, the
     * media type or a lack of slots. May be NULL. Must not suspend. */
    void (*check)(struct http_exchange *x);
    /* Maximum size of the body in bytes. NULL = the handler reads no body: one of up to 64 KiB is received and dropped. */
    uint64_t (*body_limit)(const struct http_exchange *x);
    unsigned body_weight; /* http_body reserves this multiple of the body's size as memory for parsing it; 0 = none */
    const char *const
        *rights;    /* the client's access key needs one of these; ends with NULL. NULL = the server checks none */
    bool operators; /* for operators: served by the admin listeners only, if there are any */
    bool immediate; /* the handler does not suspend and its response is small: it runs without a fiber */
    bool page_view; /* counted as a page view (METRIC_ELIOT_PAGEVIEW), as Mozilla's services do */
    const struct job_kind *job; /* the kind of jobs that the route starts; NULL = none */
    /* True if the object that the path names (x->captures) exists; if not, the response is that for a path without a route.
     * NULL = always. Must not suspend. */
    bool (*there)(const struct http_exchange *x);
    const struct http_family *family; /* set by the server */
};

/* The routes of one API and their common properties. Its functions get http_options.service as `service`. */
struct http_family {
    const struct http_route *routes; /* ends with a NULL method */
    /* Prefix of all its paths; valid during the call. NULL = none. Called at the start and by http_server_configure. */
    const char *(*prefix)(const void *service);
    /* False while the API is disabled: its paths are unknown then. NULL = always enabled. */
    bool (*enabled)(const void *service);
    const char *group;      /* name of its group of access rights; NULL = open to everyone */
    bool offers_basic_auth; /* used by browsers: a client without a key is asked for one by WWW-Authenticate */
    /* For an API that sets the CORS headers itself: true if the request's origin may make cross-origin requests; sets `*origin` to
     * the value for Access-Control-Allow-Origin. NULL = the server sets the headers, for its `cors_origins`. */
    bool (*origin_allowed)(const struct http_exchange *x, struct sl_str *origin);
    bool key_in_query;        /* clients send the key as ?key=, too */
    bool always_requires_key; /* clients need a key, even where the other APIs are open to everyone */
    /* Fills in the body of an error response of the server, in the API's format: the status is set and the body empty. `detail`
     * may be NULL; for 404 and 405 it is. NULL = the server's format: {"detail":...}, nothing for 404 and 405, a text for 413. */
    void (*error)(struct http_exchange *x, int status, const char *detail);
    /* True if the connection is to be reset instead of sending 429, 500 or 503 (of a handler or of the server itself), because this
     * client takes any status as final and retries only after a reset. NULL = never. Must not suspend. */
    bool (*prefers_reset)(const struct http_exchange *x);
    const char *allow_separator; /* separates the methods in Allow; NULL = "," */
    /* Maximum time without a byte of the body; the server does not check the rate of such bodies, handlers do. NULL = the server's
     * body_timeout_ms and min_rate apply. Called at the start and by http_server_configure. */
    uint64_t (*body_timeout_ms)(const void *service);
};

struct http_options {
    const char *const *bind; /* "IP:PORT", "[IPv6]:PORT", "unix:/path", "systemd" */
    size_t bind_count;
    const char *const *bind_https; /* same syntax, with TLS */
    size_t bind_https_count;
    const char *const *admin_bind; /* same syntax; if there are any, operators' routes are served by these only */
    size_t admin_bind_count;
    const char *certificate_path, *key_path, *client_ca_path; /* for TLS; the last may be NULL */
    const char *unix_group;                                   /* group of socket files; NULL = the process's */
    const struct http_family *const
        *families; /* ends with NULL; the first matching route wins, one without {..} before one with it */
    void *service;
    /* for routes with rights: responds if access is denied; may be NULL */
    void (*authorize)(struct http_exchange *x);
    const char *tmp_dir; /* for large bodies */
    int backlog;
    /* bytes; compress_min: size from which on responses are compressed; keepalive_requests: most requests of one connection;
     * min_rate: lowest average rate of a body or response, in bytes per second, after a grace period */
    uint64_t max_request_line, max_head_bytes, compress_min;
    unsigned max_header_fields, max_bodies_in_flight, max_connections, max_connections_per_ip, keepalive_requests;
    uint64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms, write_timeout_ms, min_rate;
    const char *const *allowed_hosts; /* accepted values of Host; none = any, but see loopback_hosts */
    size_t allowed_host_count;
    bool loopback_hosts; /* without allowed_hosts, loopback listeners accept only names of this machine */
    const char *const *trusted_proxies; /* addresses or networks; "unix": all clients of Unix sockets */
    size_t trusted_proxy_count;
    bool server_header;    /* responses have the header Server */
    bool reuseport;        /* several processes of the service listen on the same addresses (socket(7), SO_REUSEPORT) */
    bool shares_listeners; /* while this process drains it stops listening, as others listen on its addresses */
    const char
        *peer_socket; /* path of a Unix socket on which the service's other processes reach this one; NULL = none */
    uint64_t file_max_age_s;         /* max-age of sent files, in their header Cache-Control */
    const char *const *cors_origins; /* origins allowed by CORS; "*": any */
    size_t cors_origin_count;
    bool access_combined; /* access lines in the combined log format instead of fields */
    enum { HTTP_ACCESS_ALL, HTTP_ACCESS_ERRORS, HTTP_ACCESS_OFF } access;
};

struct http_server;

/* Sets the defaults. */
void http_options_default(struct http_options *options);

/* Binds every listener and starts accepting. Errors name the address. */
enum sl_code http_server_start(const struct http_options *options, struct http_server **server, struct sl_error *error);

/* Address that the i-th listener is bound to ("127.0.0.1:3021"), for logs and tests with port 0; empty after the last. */
const char *http_server_address(struct http_server *server, size_t index);
const char *http_server_protocol(struct http_server *server, size_t index); /* "HTTP", "HTTPS", "admin" */

/* Logs if the certificate has expired or expires soon; call once a day. */
void http_server_check_certificate(const struct http_server *server);

/* Applies limits, timeouts, hosts, proxies and path prefixes of new options and reads the certificate again; listeners, routes
 * and `service` stay. */
void http_server_configure(struct http_server *server, const struct http_options *options);

/* Drains: stops listening on sockets of the service manager and on addresses shared with others, closes idle connections, sends
 * `Connection: close`, and answers 503 on routes that take work. */
void http_server_drain(struct http_server *server);
size_t http_server_connections(struct http_server *server);
size_t http_server_active(struct http_server *server); /* requests being handled */
/* Closes everything at once; suspends until all fibers have ended, then frees the server. */
void http_server_stop(struct http_server *server) SL_SUSPENDS;

/* ---- request ---- */
struct sl_str http_header(const struct http_exchange *x, const char *name); /* first value; data NULL if absent */
size_t http_query_count(const struct http_exchange *x, const char *key);
struct sl_str http_query(const struct http_exchange *x, const char *key); /* data NULL if absent */

/* Reads the whole decoded body (Content-Encoding removed), at most the route's limit. Bodies above 1 MiB are spooled to an
 * unlinked file and mapped. Reserves memory for parsing it in x->memory (http_route.body_weight). On failure the response is set
 * (status 4xx or 5xx) or the client is gone (SL_CANCELLED). */
enum sl_code http_body(struct http_exchange *x, struct sl_bytes *body) SL_SUSPENDS;

/* Reads the whole decoded body into an unlinked file that outlives the exchange; the caller closes `*fd`. Errors are those of http_body. */
enum sl_code http_body_take(struct http_exchange *x, int *fd) SL_SUSPENDS;

/* Reads the next part of the decoded body, at most 256 KiB, valid until the next call; empty at the end. For handlers that process
 * a body while it arrives. Errors are those of http_body. */
enum sl_code http_body_read(struct http_exchange *x, struct sl_bytes *piece) SL_SUSPENDS;

/* True if the client already has the version with this quoted tag (If-None-Match): respond with 304. */
bool http_has_tag(const struct http_exchange *x, struct sl_str tag);
/* True if the client accepts gzip, even if it prefers another coding. */
bool http_accepts_gzip(const struct http_exchange *x);
/* Parses a form (application/x-www-form-urlencoded) or a query into decoded pairs, in order; their strings are in the arena or
 * point into `text`. NULL, with `*count` 0, for an empty text, or when out of memory. */
struct http_query *http_form(struct sl_arena *arena, struct sl_str text, size_t *count);

/* Appends the URL by which the client addressed the service: "https://HOST/" if the connection has TLS or a proxy in front of it says so
 * (X-Forwarded-Proto), else "http://HOST/". */
void http_put_base_url(const struct http_exchange *x, struct sl_buf *out);

/* True if the peer of the connection is a trusted proxy, so that the client does not see how the connection ends. */
bool http_is_proxied(const struct http_exchange *x);

/* True after the client has reset the connection. */
bool http_client_gone(const struct http_exchange *x);
/* Runs fn(arg) on the pool, for work that only this client needs. SL_CANCELLED if the client goes before it has ended: its result must not
 * be used then. Other errors are those of pool_run. */
enum sl_code http_pool_run(struct http_exchange *x, enum pool_job kind, void (*fn)(void *arg), void *arg,
                           struct sl_error *error) SL_SUSPENDS;

/* ---- response ---- */
/* Sets a header, replacing one of the same name. Names and values must live as long as the exchange (literals, or its arena).
 * Ignores values with control bytes, which could forge headers. */
void http_set_header(struct http_exchange *x, const char *name, struct sl_str value);
void http_add_vary(struct http_exchange *x, struct sl_str name); /* adds a request header to Vary */
/* True if CORS lets the request's origin read the response: `*origin` is the value for Access-Control-Allow-Origin. "*" among
 * `origins` matches any. (Fetch Standard, "CORS protocol") */
bool http_origin_allowed(const struct http_exchange *x, const char *const *origins, size_t count,
                         struct sl_str *origin);
/* Sets the whole response; copies `body`. `content_type` may be NULL. */
void http_reply(struct http_exchange *x, int status, const char *content_type, struct sl_str body);
void http_reply_empty(struct http_exchange *x, int status);
/* Sends the text in `json`, or 503 if the buffer ran out of memory; takes over the buffer. */
void http_reply_json(struct http_exchange *x, int status, struct sl_buf *json);
/* Sends the shared buffer `content` as the body; takes over the caller's reference. */
void http_reply_content(struct http_exchange *x, int status, const char *content_type, struct shared_blob *content);
/* Sets an error response in the format of the route's API (http_family.error), else in the server's; `detail` may be NULL. */
void http_reply_error(struct http_exchange *x, int status, const char *detail);
/* Sets a 503 response that says that memory is short. */
void http_reply_no_memory(struct http_exchange *x);
/* Replies with the body {"detail":detail,"causes":[cause]}; `cause` may be NULL. */
void http_reply_detail(struct http_exchange *x, int status, const char *detail, const char *cause);

/* Sends a file with 200 or, depending on the request's conditions and Range (RFC 9110, 13 and 14), responds 206, 304 or 416.
 * `etag` is a quoted strong tag (copied; NULL = none), `modified_s` seconds since the epoch (0 = none). The mapping must live
 * until `release(arg)` is called, after the response is written; `release` may be NULL. Cache-Control becomes "private, max-age=.."
 * of the options, unless it was set before; "public" is kept and gets the age. The file is read on the pool, unless
 * x->file_is_resident allows to send it from the mapping. */
void http_reply_file(struct http_exchange *x, const char *content_type, struct sl_mapping *file, const char *etag,
                     int64_t modified_s, void (*release)(void *arg), void *arg);
