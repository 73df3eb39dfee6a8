/* Downloads: libcurl's multi-socket interface on the loop, one fiber per download.
 *
 * fetch_get is one whole download: deny list, three attempts unless more are asked for, time limits, redirects checked hop by hop,
 * address checks on the socket actually opened, range-parallel parts, content decoding, size limits, and the removal of
 * a compression wrapper (gzip, zlib, zstd, xz, zip, CAB) from the finished file. Errors are those of the cache:
 * not found, permission denied, timeout, download error, malformed. HTTP is RFC 9110 (ranges: section 14). */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/secret.h"

struct fetch_header {
    struct sl_str name;
    struct sl_secret value;
};

struct fetch_options { /* of the process; what it points to must outlive fetch_close */
    uint64_t connect_timeout_ns, head_timeout_ns, max_download_timeout_ns, stall_timeout_ns;
    uint64_t max_download_size; /* UINT64_MAX = none */
    unsigned max_inflate_ratio, max_downloads, max_downloads_per_host;
    bool connect_to_reserved_ips;
    const struct sl_str *allowed_reserved_networks;
    size_t allowed_reserved_network_count;
    bool deny_list_enabled;
    uint64_t deny_window_ns, deny_bucket_ns, deny_block_ns;
    unsigned deny_threshold;
    uint64_t deny_probe_ns; /* between downloads that are let through to a blocked host; 0 = 20 s */
    const struct sl_str *deny_never_block;
    size_t deny_never_block_count;
    /* Whether another process released all hosts since then (seconds since the epoch); may suspend. NULL: there is none. */
    bool (*released)(int64_t since_s);
    const char *tmp_dir; /* for files being decompressed; NULL = the system's */
    uint64_t split_size; /* bytes of one range request; 0 = 128 MiB */
};

/* After loop_init. */
void fetch_init(const struct fetch_options *options);
/* Loads libcurl and resolves the hosts of the environment's proxies, which may block; the first download would do it else.
 * SL_INTERNAL when libcurl cannot be loaded, which is what every download ends with then. On the loop's thread. */
enum sl_code fetch_start(struct sl_error *error);
/* Hears of each download that fails because its server does not answer as it should: refused, unknown, too slow, 5xx. Not of files
 * that are not there or that want credentials. `server` is "host:port", without the port that is usual for its scheme; `why` begins
 * in lower case. Called on the loop's thread; NULL = nobody hears. */
typedef void fetch_failure_listener(void *arg, const char *server, const char *why);
void fetch_on_failure(fetch_failure_listener *listener, void *arg);
/* Other options from now on, for downloads that begin later. */
void fetch_configure(const struct fetch_options *options);
/* No download may be running. Before loop_close. */
void fetch_close(void);

struct fetch_request {
    const char *url; /* absolute http(s) URL; user info becomes Basic authorization */
    const struct fetch_header *headers;
    size_t header_count; /* not sent once redirected to another host; framing fields and ranges never */
    bool trusted;        /* may connect to reserved addresses */
    bool trusted_host;   /* the same at the host of `url`, not at those it redirects to */
    bool accept_invalid_certs;
    bool deny_list;      /* the host's failures count, and it may be blocked */
    const char *source;  /* metric label */
    uint64_t max_size;   /* 0 = max_download_size */
    uint64_t timeout_ns; /* 0 = max_download_timeout */
    bool keep_wrapper;   /* do not look for a compressed wrapper */
    bool whole;          /* in one piece: no ranges are asked for */
    bool refuse_empty;   /* an answer without contents is SL_DOWNLOAD_ERROR, */
    bool refuse_pages;   /* and so is a web page: what servers and proxies send that want a log-in first */
    unsigned attempts;   /* 0 = three, soon after each other; else so many, with pauses by chance that grow */
    bool own;            /* to the machine's own credential service: metadata addresses too; no proxy, no redirects */
    /* NULL = GET. Others are sent with `body`, in one piece, and follow no redirect; HEAD without. */
    const char *method;
    struct sl_secret body;
    /* The URL of each attempt, of the same host as `url`, which logs show: for URLs with a signature that ends. In the
     * arena; NULL = out of memory. */
    const char *(*sign)(void *arg, struct sl_arena *arena);
    /* What an answer with an error status means, in place of the usual table: its body, up to 64 KiB, explains. */
    enum sl_code (*refused)(void *arg, int status, struct sl_str body, struct sl_error *error);
    /* Whether a redirect may be followed to this URL; NULL = to any. */
    bool (*may_follow)(void *arg, const char *url);
    /* Each field of the head of an answer, of each that comes; may be NULL. */
    void (*field)(void *arg, struct sl_str name, struct sl_str value);
    void *arg;           /* of sign, refused, may_follow and field */
    int64_t *modified_s; /* out, may be NULL: when the server says the file was last modified; else left as it is */
};

/* Downloads into `fd` (an empty file opened read-write; truncated between attempts). On success the file holds the
 * decoded, unwrapped contents. A SL_DOWNLOAD_ERROR because the host is left alone (it failed too often, or asked for it) has
 * `duration_ns`: how long that is worth to be remembered. */
enum sl_code fetch_get(const struct fetch_request *request, int fd, struct sl_error *error) SL_SUSPENDS;

/* The transfer that has got most so far, of those that run: false when there is none. For people who wait. */
struct fetch_progress {
    uint64_t stored; /* bytes */
    char item[256];  /* host and file name */
};
bool fetch_progress(struct fetch_progress *progress);

/* As fetch_get, for small answers: the contents are appended to `body`. `max_size` must be set. */
enum sl_code fetch_text(const struct fetch_request *request, struct sl_buf *body, struct sl_error *error) SL_SUSPENDS;

/* A question to a neighbour, another process of this service: one exchange, as it is, with any status. Nothing stands in its way:
 * no slots, deny list or address checks; and nothing is done for it: no second attempt, no redirects, no unpacking. */
struct fetch_relay {
    const char *url;
    const char *socket; /* path of the Unix socket that it listens on; NULL = where the URL says */
    const struct fetch_header *headers;
    size_t header_count;
    uint64_t timeout_ns; /* until the end of the answer */
    uint64_t max_size;   /* bytes of the answer */
    const char *method;  /* NULL = GET; others are sent with `body` */
    struct sl_bytes body;
    void (*field)(void *arg, struct sl_str name, struct sl_str value); /* each of the answer's head; may be NULL */
    void *arg;
};
/* The answer's body is appended to `body`. */
enum sl_code fetch_relay(const struct fetch_relay *relay, int *status, struct sl_buf *body,
                         struct sl_error *error) SL_SUSPENDS;

/* Removes a compression wrapper of the file `fd`, if it has one: the file then holds the inner contents. `max_size` 0 =
 * max_download_size. SL_MALFORMED with the decoder's text; SL_TIMEOUT after max_download_timeout. Blocks: pool work. */
enum sl_code fetch_unwrap(int fd, uint64_t max_size, struct sl_error *error);

/* The member of this name takes the place of the tar archive that is in the file. SL_NOT_FOUND: it has none of that name.
 * Otherwise as fetch_unwrap. */
enum sl_code fetch_take_member(int fd, struct sl_str member, uint64_t max_size, struct sl_error *error);

/* Whether the file is one that fetch_unwrap opens, as far as its first bytes tell. */
bool fetch_is_wrapped(struct sl_bytes bytes);

/* `url` without user info and query, for logs and locations. Into the arena; NULL when it is no URL. */
const char *fetch_public_url(struct sl_arena *arena, const char *url);

/* Whether `url` is an absolute URL (RFC 3986, 4.3), of any scheme. */
bool fetch_url_valid(const char *url);

/* The parts of an absolute http(s) URL; texts in the arena. False when it is none, or out of memory. */
struct fetch_url {
    bool is_secure;     /* https */
    struct sl_str host; /* in lower case, with the port if it is not the usual one */
    struct sl_str path;
};
bool fetch_split_url(struct sl_arena *arena, const char *url, struct fetch_url *parts);

/* The host of a URL, without port, in the arena; NULL when it has none. */
const char *fetch_url_host(struct sl_arena *arena, const char *url);
/* Percent-encoded but for unreserved characters (RFC 3986, 2.3). */
void fetch_encode(struct sl_buf *out, struct sl_str text, bool keep_slashes);

/* Whether an answer of that status names another URL to go to. */
bool fetch_is_redirect(long status);

/* Sets the gauges that change with time alone. */
void fetch_collect_metrics(void);
void fetch_log_state(void); /* each running transfer, for people who ask */

/* Whether downloads from the host are refused because of its address: each that it has is reserved, and the options do not allow
 * it. False when the name is not known, or when it is a proxy of the environment that connects. */
bool fetch_is_host_refused(const char *host) SL_SUSPENDS;

/* For how long the host is still left alone, because its downloads kept failing or it asked for that; 0 = it is not. */
uint64_t fetch_blocked_ms(const char *host);

/* All hosts may be asked again. */
void fetch_release_hosts(void);

uint64_t fetch_max_size(void); /* max_download_size */
/* SL_MALFORMED of a file that is over its limit of size, wherever it comes from. */
enum sl_code fetch_too_large(struct sl_error *error);

/* Whether an address (sockaddr) is reserved: not a public unicast destination (RFC 6890). */
struct sockaddr;
bool fetch_address_reserved(const struct sockaddr *address);
