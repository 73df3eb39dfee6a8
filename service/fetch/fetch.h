/* Downloads: libcurl's multi-socket interface on the loop, one fiber per download.
 *
 * fetch_get performs a whole download: deny list, attempts (three by default), time limits, redirects checked hop by hop,
 * address checks on the socket actually opened, parallel range requests, content decoding, size limits, and the removal of a
 * compression wrapper (gzip, zlib, zstd, xz, zip, CAB) from the finished file. Errors are those of the cache: not found,
 * permission denied, timeout, download error, malformed. HTTP is RFC 9110 (ranges: section 14). */
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

struct fetch_options { /* of the process; the data it points to must outlive fetch_close */
    uint64_t connect_timeout_ns, head_timeout_ns, max_download_timeout_ns, stall_timeout_ns;
    uint64_t max_download_size; /* UINT64_MAX = no limit */
    unsigned max_inflate_ratio, max_downloads, max_downloads_per_host;
    bool connect_to_reserved_ips;
    const struct sl_str *allowed_reserved_networks;
    size_t allowed_reserved_network_count;
    bool deny_list_enabled;
    uint64_t deny_window_ns, deny_bucket_ns, deny_block_ns;
    unsigned deny_threshold;
    uint64_t deny_probe_ns; /* interval of downloads that probe a blocked host; 0 = 20 s */
    const struct sl_str *deny_never_block;
    size_t deny_never_block_count;
    /* True if another process has unblocked all hosts since `since_s` (seconds since the epoch); may suspend. NULL: no other
     * processes. */
    bool (*released)(int64_t since_s);
    const char *tmp_dir; /* for decompression; NULL = the system's */
    uint64_t split_size; /* bytes of one range request; 0 = 128 MiB */
};

/* Call after loop_init. */
void fetch_init(const struct fetch_options *options);
/* Loads libcurl and resolves the hosts of the environment's proxies, which may block; otherwise the first download does it.
 * SL_INTERNAL if libcurl cannot be loaded; then every download fails with it. On the loop's thread. */
enum sl_code fetch_start(struct sl_error *error);
/* Called for each download that fails because of its server: connection refused, unknown host, too slow, 5xx; not for files
 * that do not exist or need credentials. `server` is "host:port", without the default port of its scheme; `why` begins in lower
 * case. Called on the loop's thread; NULL removes the listener. */
typedef void fetch_failure_listener(void *arg, const char *server, const char *why);
void fetch_on_failure(fetch_failure_listener *listener, void *arg);
/* Sets new options, for downloads that begin later. */
void fetch_configure(const struct fetch_options *options);
/* No download may be running. Before loop_close. */
void fetch_close(void);

struct fetch_request {
    const char *url; /* absolute http(s) URL; user info becomes Basic authorization */
    const struct fetch_header *headers;
    size_t header_count; /* not sent after a redirect to another host; framing fields and ranges are never sent */
    bool trusted;        /* may connect to reserved addresses */
    bool trusted_host;   /* likewise for the host of `url`, but not for hosts it redirects to */
    bool accept_invalid_certs;
    bool deny_list;      /* failures of the host are counted, and it may be blocked */
    const char *source;  /* metric label */
    uint64_t max_size;   /* 0 = max_download_size */
    uint64_t timeout_ns; /* 0 = max_download_timeout */
    bool keep_wrapper;   /* do not decompress the finished file */
    bool whole;          /* do not use range requests */
    bool refuse_empty;   /* fail with SL_DOWNLOAD_ERROR if the response is empty, */
    bool refuse_pages;   /* or a web page: servers and proxies send those if they want a login first */
    unsigned attempts;   /* 0 = three, with short pauses; else this many, with exponential, random pauses */
    /* to the machine's own credential service: allows metadata addresses; uses no proxy, follows no redirects */
    bool own;
    /* NULL = GET. Other methods send `body` and follow no redirect; HEAD sends none. */
    const char *method;
    struct sl_secret body;
    /* Returns the URL of each attempt, on the host of `url`, which logs show: for signed URLs that expire. Allocated in the
     * arena; NULL = out of memory. */
    const char *(*sign)(void *arg, struct sl_arena *arena);
    /* Maps a response with an error status to an error, instead of the usual table; `body` has up to 64 KiB of it. */
    enum sl_code (*refused)(void *arg, int status, struct sl_str body, struct sl_error *error);
    /* True if a redirect to this URL may be followed; NULL = always. */
    bool (*may_follow)(void *arg, const char *url);
    /* Called for each header field of every response; may be NULL. */
    void (*field)(void *arg, struct sl_str name, struct sl_str value);
    void *arg;           /* for sign, refused, may_follow and field */
    int64_t *modified_s; /* out, may be NULL: Last-Modified of the response; unchanged if it has none */
};

/* Downloads into `fd` (an empty file opened read-write; truncated between attempts). On success the file holds the decoded,
 * unwrapped contents. SL_DOWNLOAD_ERROR because the host is blocked (it failed too often, or sent Retry-After) has
 * `duration_ns`: how long to cache the error. */
enum sl_code fetch_get(const struct fetch_request *request, int fd, struct sl_error *error) SL_SUSPENDS;

/* Progress of the running transfer that has received most; false if none runs. For progress displays. */
struct fetch_progress {
    uint64_t stored; /* bytes */
    char item[256];  /* host and file name */
};
bool fetch_progress(struct fetch_progress *progress);

/* Like fetch_get, for small responses: appends the contents to `body`. `max_size` must be set. */
enum sl_code fetch_text(const struct fetch_request *request, struct sl_buf *body, struct sl_error *error) SL_SUSPENDS;

/* A request to a peer process of this service: one exchange, returned with any status. No slots, deny list or address checks
 * apply, and there are no retries, redirects or unpacking. */
struct fetch_relay {
    const char *url;
    const char *socket; /* path of the peer's Unix socket; NULL = connect to the host of the URL */
    const struct fetch_header *headers;
    size_t header_count;
    uint64_t timeout_ns; /* until the end of the response */
    uint64_t max_size;   /* bytes of the response */
    const char *method;  /* NULL = GET; other methods send `body` */
    struct sl_bytes body;
    /* called for each field of the response; may be NULL */
    void (*field)(void *arg, struct sl_str name, struct sl_str value);
    void *arg;
};
/* Appends the response's body to `body`. */
enum sl_code fetch_relay(const struct fetch_relay *relay, int *status, struct sl_buf *body,
                         struct sl_error *error) SL_SUSPENDS;

/* Replaces a compressed file by its contents, if it has one of the known wrappers. `max_size` 0 = max_download_size.
 * SL_MALFORMED with the decoder's text; SL_TIMEOUT after max_download_timeout; SL_CANCELLED, SL_BUSY, SL_INTERNAL. On failure the
 * file stays as it was. */
enum sl_code fetch_unpack(int fd, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;
/* Does what fetch_unpack does without a fiber, in the calling thread: for commands. Blocks. */
enum sl_code fetch_unwrap(int fd, uint64_t max_size, struct sl_error *error);

/* Do what fetch_unpack and fetch_unwrap do, for inputs that may be ELF core files: these may grow more than
 * max_inflate_ratio times, as most of them is zeros. A core above max_size is SL_UNSUPPORTED. */
enum sl_code fetch_unpack_core(int fd, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;
enum sl_code fetch_unwrap_core(int fd, uint64_t max_size, struct sl_error *error);

/* Replaces a tar archive by its member of this name. SL_NOT_FOUND: there is none. Otherwise like fetch_unpack. */
enum sl_code fetch_take_member(int fd, struct sl_str member, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;

/* True if the first bytes of a file are those of a wrapper that fetch_unpack opens. fetch_is_wrapped_file blocks. */
bool fetch_is_wrapped(struct sl_bytes bytes);
bool fetch_is_wrapped_file(int fd);

/* Returns `url` without user info, query and fragment, for logs and locations. In the arena; NULL if it is not a URL. */
const char *fetch_public_url(struct sl_arena *arena, const char *url);

/* True if `url` is an absolute URL (RFC 3986, 4.3), of any scheme. */
bool fetch_url_valid(const char *url);

/* Splits an absolute http(s) URL; texts in the arena. False if it is not one, or out of memory. */
struct fetch_url {
    bool is_secure;     /* https */
    struct sl_str host; /* in lower case, with the port unless it is the default one */
    struct sl_str path;
};
bool fetch_split_url(struct sl_arena *arena, const char *url, struct fetch_url *parts);

/* Returns the host of a URL, without port, in the arena; NULL if it has none. */
const char *fetch_url_host(struct sl_arena *arena, const char *url);
/* Appends the text, percent-encoding all but unreserved characters (RFC 3986, 2.3) and, with `keep_slashes`, slashes. */
void fetch_encode(struct sl_buf *out, struct sl_str text, bool keep_slashes);

/* True if a response of this status is a redirect. */
bool fetch_is_redirect(long status);

/* Updates the gauges that change with time. */
void fetch_collect_metrics(void);
void fetch_log_state(void); /* logs each running transfer, for operators */

/* True if downloads from the host are refused because all its addresses are reserved and the options do not allow it. False if
 * the name cannot be resolved, or if a proxy of the environment connects. */
bool fetch_is_host_refused(const char *host) SL_SUSPENDS;

/* Returns how long the host is still blocked, because its downloads kept failing or it sent Retry-After; 0 = it is not. */
uint64_t fetch_blocked_ms(const char *host);

/* Unblocks all hosts. */
void fetch_release_hosts(void);

uint64_t fetch_max_size(void); /* max_download_size */
/* Fails with SL_MALFORMED: a file exceeds its size limit. Used for all kinds of sources. */
enum sl_code fetch_too_large(struct sl_error *error);

/* True if an address (sockaddr) is reserved: not a public unicast destination (RFC 6890). */
struct sockaddr;
bool fetch_address_reserved(const struct sockaddr *address);
