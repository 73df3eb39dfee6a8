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

struct fetch_options { /* for all downloads of the process; the data it points to must outlive fetch_close */
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
    const char *tmp_dir; /* directory for files that are being decompressed; NULL = the system's for temporary files */
    uint64_t split_size; /* bytes of one range request; 0 = 128 MiB */
};

/* Sets the options; call it once, after loop_init. */
void fetch_init(const struct fetch_options *options);
/* Loads libcurl and resolves the hosts of the environment's proxies, which may block; otherwise the first download does it.
 * SL_INTERNAL if libcurl cannot be loaded; then every download fails with it. On the loop's thread. */
enum sl_code fetch_start(struct sl_error *error);
/* Sets a function that is called, on the loop's thread, for each download that fails because of its server: the connection was refused, the
 * host is unknown, the answer was too slow or had a status 5xx. It is not called for files that do not exist or need credentials. `server`
 * is "host:port", without the default port of its scheme; `why` is a phrase that begins in lower case. NULL: no function. */
typedef void fetch_failure_listener(void *arg, const char *server, const char *why);
void fetch_on_failure(fetch_failure_listener *listener, void *arg);
/* Sets new options, for downloads that begin later. */
void fetch_configure(const struct fetch_options *options);
/* Frees everything. No download may be running. Call it before loop_close. */
void fetch_close(void);

struct fetch_request {
    const char *url; /* absolute http(s) URL; user info becomes Basic authorization */
    const struct fetch_header *headers;
    size_t header_count; /* not sent after a redirect to another host; framing fields and ranges are never sent */
    bool trusted;        /* may connect to reserved addresses */
    bool trusted_host;   /* the host of `url` may have a reserved address, but not hosts that it redirects to */
    bool accept_invalid_certs;
    bool deny_list;      /* failures of the host are counted, and block it for a while if there are many */
    const char *source;  /* metric label */
    uint64_t max_size;   /* 0 = max_download_size */
    uint64_t timeout_ns; /* 0 = max_download_timeout */
    bool keep_wrapper;   /* do not decompress the finished file */
    bool whole;          /* do not use range requests */
    bool refuse_empty;   /* an empty response is a failure (SL_DOWNLOAD_ERROR) */
    bool refuse_pages;   /* a web page is a failure: servers and proxies send one if they want a login first */
    unsigned attempts;   /* 0 = three, with short pauses; else this many, with exponential, random pauses */
    /* The request goes to the credential service of the machine: metadata addresses are allowed; no proxy, no redirects. */
    bool own;
    /* NULL = GET. Other methods send `body` and follow no redirect; HEAD sends none. */
    const char *method;
    struct sl_secret body;
    /* For signed URLs that expire: returns the URL for an attempt, on the same host as `url`. Logs show `url`. Allocated in the arena; NULL
     * = out of memory. */
    const char *(*sign)(void *arg, struct sl_arena *arena);
    /* Sets and returns the error for a response with an error status, instead of the usual one; `body` is its body, up to 64 KiB. */
    enum sl_code (*refused)(void *arg, int status, struct sl_str body, struct sl_error *error);
    /* True if a redirect to this URL may be followed; NULL = always. */
    bool (*may_follow)(void *arg, const char *url);
    /* Called for each header field of every response; may be NULL. */
    void (*field)(void *arg, struct sl_str name, struct sl_str value);
    void *arg;           /* for sign, refused, may_follow and field */
    int64_t *modified_s; /* out, may be NULL: Last-Modified of the response; unchanged if it has none */
};

/* Downloads into `fd`, an empty file opened read-write, which is truncated between attempts. On success it has the contents without content
 * coding and compression wrapper. If the host is blocked (it has failed too often, or has sent Retry-After), the code is SL_DOWNLOAD_ERROR
 * and error->duration_ns says how long to cache the error. */
enum sl_code fetch_get(const struct fetch_request *request, int fd, struct sl_error *error) SL_SUSPENDS;

/* For progress displays: describes the running transfer that has received the most bytes; false if none runs. */
struct fetch_progress {
    uint64_t stored; /* bytes received so far */
    char item[256];  /* host and file name */
};
bool fetch_progress(struct fetch_progress *progress);

/* Like fetch_get, for small responses: appends the contents to `body` instead of writing a file. `max_size` must be set. */
enum sl_code fetch_text(const struct fetch_request *request, struct sl_buf *body, struct sl_error *error) SL_SUSPENDS;

/* A request to a peer process of this service: one request, whose response is returned with any status. Without limits of concurrent
 * downloads, deny list, address checks, retries, redirects and unpacking. */
struct fetch_relay {
    const char *url;
    const char *socket; /* path of the peer's Unix socket; NULL = connect to the host of the URL */
    const struct fetch_header *headers;
    size_t header_count;
    uint64_t timeout_ns; /* time limit until the end of the response */
    uint64_t max_size;   /* bytes of the response */
    const char *method;  /* NULL = GET; other methods send `body` */
    struct sl_bytes body;
    /* called for each field of the response; may be NULL */
    void (*field)(void *arg, struct sl_str name, struct sl_str value);
    void *arg;
};
/* Sends the request, appends the response's body to `body` and sets `*status`. SL_OK with any HTTP status. */
enum sl_code fetch_relay(const struct fetch_relay *relay, int *status, struct sl_buf *body,
                         struct sl_error *error) SL_SUSPENDS;

/* Replaces a file by its decompressed contents, if it is compressed (gzip, zlib, zstd, xz, zip, CAB). `max_size` is for the contents; 0 =
 * max_download_size. SL_MALFORMED with the decoder's text; SL_TIMEOUT after max_download_timeout; SL_CANCELLED, SL_BUSY, SL_INTERNAL. If
 * decompressing fails, the file stays as it was. */
enum sl_code fetch_unpack(int fd, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;
/* Does the same as fetch_unpack in the calling thread, without a fiber: for commands. Blocks. */
enum sl_code fetch_unwrap(int fd, uint64_t max_size, struct sl_error *error);

/* The same as fetch_unpack and fetch_unwrap for files that may be compressed ELF core files: these may grow more than max_inflate_ratio
 * times, as most of a core is zeros. Contents above max_size are SL_UNSUPPORTED. */
enum sl_code fetch_unpack_core(int fd, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;
enum sl_code fetch_unwrap_core(int fd, uint64_t max_size, struct sl_error *error);

/* Replaces a tar archive by its member of this name. SL_NOT_FOUND: it has none. Limits and other codes are those of fetch_unpack. */
enum sl_code fetch_take_member(int fd, struct sl_str member, uint64_t max_size, struct sl_error *error) SL_SUSPENDS;

/* True if a file begins like one of the compressed formats that fetch_unpack unpacks; `bytes` is its beginning. fetch_is_wrapped_file reads
 * the file, so it blocks. */
bool fetch_is_wrapped(struct sl_bytes bytes);
bool fetch_is_wrapped_file(int fd);

/* Returns `url` without user info, query and fragment, for logs and locations. In the arena; NULL if it is not a URL. */
const char *fetch_public_url(struct sl_arena *arena, const char *url);

/* True if `url` is an absolute URL (RFC 3986, 4.3), of any scheme. */
bool fetch_url_valid(const char *url);

/* The parts of an absolute http(s) URL; texts are in the arena. False if `url` is not one, or when out of memory. */
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

/* Sets the gauge of blocked hosts, before metrics are written. */
void fetch_collect_metrics(void);
void fetch_log_state(void); /* logs each running transfer, for operators */

/* True if downloads from the host would be refused because all its addresses are reserved and the options do not allow that. False if the
 * name cannot be resolved, or if the environment names a proxy, which then resolves it. */
bool fetch_is_host_refused(const char *host) SL_SUSPENDS;

/* Returns for how many milliseconds the host is not asked yet, because its downloads kept failing or it sent Retry-After; 0 = it is
 * asked. */
uint64_t fetch_blocked_ms(const char *host);

/* Unblocks all hosts and ends their pauses (Retry-After). */
void fetch_release_hosts(void);

uint64_t fetch_max_size(void); /* max_download_size */
/* Sets and returns the error for a file that exceeds its size limit: SL_MALFORMED, with the same text for all kinds of sources. */
enum sl_code fetch_too_large(struct sl_error *error);

/* True if a socket address is reserved: not a public unicast address (RFC 6890). */
struct sockaddr;
bool fetch_address_reserved(const struct sockaddr *address);
