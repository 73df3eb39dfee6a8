/* Shared by the files of fetch. Private to this folder.
 *
 *     fetch_get (download.c): slot, deadline, attempts
 *         attempt: hops, status, ranges ── transfer (transfer.c): one exchange ── driver.c: curl on the loop
 *         parts.c: the rest of a large file, several transfers at once
 *     finish.c: afterwards ── unpack.c ── unpack_bytes (unwrap.c, decode.c), on the pool or where unpack_set_runner says */
#pragma once

#include <curl/curl.h>

#include "core/network.h"
#include "fetch/fetch.h"
#include "fetch/unpack.h"

#define MS_NS 1000000ull

struct fetch_state {
    bool started;                 /* the connection pools exist */
    struct fetch_options options; /* only for the loop thread */
    const char *_Atomic tmp_dir;  /* copies of four options, for pool threads */
    _Atomic uint64_t max_download_size, max_inflate_ratio, max_download_timeout_ns;
    fetch_failure_listener *failure_listener; /* NULL = none */
    void *failure_arg;
    const char *ca_file; /* SSL_CERT_FILE of the environment, or NULL */
    struct proxy {
        struct network address;
        uint16_t port;
    } proxies[8]; /* those that environment variables name */
    size_t proxy_count;
    const char *http_proxy; /* value of HTTP_PROXY, which curl ignores, for us to set; NULL = none */
};
extern struct fetch_state fetch_state;

/* ---- driver.c: separate connection pools, so that a connection made for a trusted request is not reused for others ---- */
enum driver_pool { DRIVER_RESTRICTED, DRIVER_TRUSTED, DRIVER_OWN, DRIVER_POOLS };
void driver_close(void);
bool driver_add(enum driver_pool pool, CURL *easy);
void driver_remove(enum driver_pool pool, CURL *easy);
void transfer_finished(CURL *easy, CURLcode result); /* transfer.c; called by the driver */
void transfer_fail_for_memory(CURL *easy); /* transfer.c; called by the driver: no memory to watch its socket */
/* transfer.c; called by the driver when a socket of the transfer is not watched any more: lists the transfer for transfer_resume. */
void transfer_socket_gone(CURL *easy);
/* transfer.c; called by the driver: continues the transfers that transfer_socket_gone has listed */
void transfer_resume(void);

/* ---- spool.c: collects received bytes in memory and writes them to the file on the pool ---- */
enum { SPOOL_SIZE = 256 * 1024 };
struct fetch_spool {
    struct sl_buf filling, full; /* `full` is to be written */
    uint64_t offset;             /* where in the file the first byte goes that is not written yet */
};
/* True if spool_add may be called with `size` bytes; else call spool_write first. */
bool spool_has_room(const struct fetch_spool *spool, size_t size);
/* Adds received bytes. `expected`: how many bytes of the body there are at most; a new buffer gets no larger than that. False when out of
 * memory. */
bool spool_add(struct fetch_spool *spool, struct sl_bytes bytes, uint64_t expected);
/* Writes the buffer `full` to the file or, if that is empty, `filling`: SL_OK, SL_BUSY or SL_INTERNAL. */
enum sl_code spool_write(struct fetch_spool *spool, int fd, struct sl_error *error) SL_SUSPENDS;
void spool_free(struct fetch_spool *spool);

/* ---- transfer.c ---- */
enum body_action { BODY_STORE, BODY_DISCARD, BODY_STOP }; /* BODY_STOP: abort the transfer */

struct time_limit {
    uint64_t until_ms; /* in time of loop_now_ms */
    uint64_t ns;       /* the length of the limit, for the error */
};
struct time_limit time_limit(uint64_t ns); /* a limit of `ns` nanoseconds that begins now */
struct time_limit earlier_time_limit(struct time_limit a, struct time_limit b);
/* Sets and returns the error SL_TIMEOUT for a limit of `ns`. Any thread. */
enum sl_code fail_for_time_limit(struct sl_error *error, uint64_t ns);

struct transfer {
    /* in */
    const char *url;
    struct curl_slist *headers;
    const char *user, *password; /* NULL = none */
    const char *socket;          /* path of the Unix socket to connect to instead of the URL's host; NULL = none */
    enum driver_pool pool;
    bool accept_invalid_certs;
    const char *method;                                                /* NULL = GET */
    void (*field)(void *arg, struct sl_str name, struct sl_str value); /* called for each header field; may be NULL */
    void *field_arg;
    struct sl_str body;
    struct sl_buf *discarded; /* gets a body that is not stored; NULL = drop it */
    int fd;
    struct fetch_spool spool;                       /* spool.offset: where in the file the body begins */
    uint64_t limit;                                 /* the transfer fails after this many bytes */
    struct time_limit head;                         /* time limit for the head of the response */
    enum body_action (*decide)(struct transfer *t); /* called when the head is complete */
    void *arg;
    /* where the fiber of the download waits; woken on each event; shared by the transfers of one download */
    struct fiber_wait_list *events;
    /* out */
    bool done, head_complete;
    bool opened, restricted; /* a socket was created; an address was refused (address_refused) */
    bool too_long;           /* the body exceeds `limit` */
    bool scarce;             /* memory or descriptors were out: it is not the server that has failed */
    CURLcode result;
    long os_error; /* errno of a failed connect; 0 = another failure */
    long status;
    uint64_t stored, last_progress_ms;
    char content_range[128], etag[256];
    bool has_content_range, length_overflows; /* the Content-Length is a number that no file's size can be */
    bool is_html;                             /* its Content-Type is that of HTML */
    unsigned coding_count;
    char coding[32];
    int64_t content_length, retry_after_s, modified_s; /* -1 = absent */
    char *location;                                    /* from malloc; NULL = absent */
    /* private */
    CURL *easy;
    struct transfer *next_running, **running_link;
    /* list of transfers that transfer_resume continues; gone_link NULL: not in it */
    struct transfer *next_gone, **gone_link;
    enum body_action action;
    bool paused;      /* curl receives no more until the spool is written */
    bool has_changed; /* an event since the last transfer_wait */
    uint64_t discarded_bytes;
    char curl_error[CURL_ERROR_SIZE];
};

/* Counts and logs that the transfer was refused because of its address. */
void transfer_note_restricted(const struct transfer *t);
/* Creates the curl handle and starts the transfer. False when out of memory. */
bool transfer_start(struct transfer *t);
/* Waits for the next event of any of the transfers, and writes received bytes to disk. SL_TIMEOUT at `limit`, at a transfer's limit for the
 * head of its response, or if no byte of a body came for the stall timeout; SL_CANCELLED; or the error of writing. */
enum sl_code transfer_wait(struct transfer *const *transfers, size_t count, struct time_limit limit,
                           struct sl_error *error) SL_SUSPENDS;
/* Repeat transfer_wait until the head of the response is complete, or until the transfer has ended and its body is stored; then t->result
 * tells how it ended. */
enum sl_code transfer_wait_head(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
enum sl_code transfer_wait_end(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
/* Writes what is left in the spool of a body that was received completely. */
enum sl_code transfer_store_rest(struct transfer *t, struct sl_error *error) SL_SUSPENDS;
void transfer_end(struct transfer *t); /* may be called in any state */
/* Sets and returns the download error for the way the transfer has failed; SL_OK if it has succeeded. */
enum sl_code transfer_failure(const struct transfer *t, struct sl_error *error);

/* ---- url.c: hops of a download: the URL of the request, then of each redirect ---- */
struct hop {         /* texts in the arena */
    const char *url; /* without user info and fragment */
    const char *path;
    const char *scheme, *host, *port, *user, *password; /* the host in lower case */
    bool is_other_host; /* reached by a redirect to another host: credentials are never sent again */
};
/* Parses an absolute http(s) URL into `hop`. SL_DOWNLOAD_ERROR if it is not one, or SL_BUSY when out of memory. */
enum sl_code hop_parse(struct sl_arena *arena, const char *url, struct hop *hop, struct sl_error *error);
/* Parses the header `Location` of a response to a request for `from` into `to`. Drops user info that it contains. */
enum sl_code hop_follow(struct sl_arena *arena, const struct hop *from, const char *location, struct hop *to,
                        struct sl_error *error);
bool hop_same_host(const struct hop *a, const struct hop *b); /* true if also scheme and port are the same */
/* Returns the header `Referer` for a request to `to`, to which `from` has redirected; NULL = none. */
const char *hop_referer(struct sl_arena *arena, const struct hop *from, const struct hop *to);

/* ---- ranges.c ---- */
struct byte_range {
    uint64_t start, end, total; /* end inclusive */
};
/* Parses the value of a header Content-Range, "bytes 0-99/1000". False if it is invalid, or the total size is unknown. */
bool byte_range_parse(const char *content_range, struct byte_range *range);
enum { MAX_PARTS = 4 };
/* Splits the rest of a file after the range `first` into at most MAX_PARTS parts; returns their number. */
size_t byte_range_split(const struct byte_range *first, uint64_t split_size, struct byte_range parts[MAX_PARTS]);

/* ---- download.c: shared with parts.c ---- */
struct fetch_download {
    const struct fetch_request *request;
    struct sl_arena *arena;
    int fd;
    uint64_t max_size;
    struct time_limit limit; /* time limit of the whole download */
    struct fiber_wait_list events;
    struct hop first;
    bool blocked;              /* refused, as the deny list blocks its host */
    bool is_probe;             /* its host is blocked, but this download tests whether it answers */
    struct sl_buf explanation; /* body of a response with an error status, if the request uses it */
    /* of the latest attempt */
    enum unpack_format coding;
    long os_error;         /* errno of a failed connect; 0 = another failure */
    int64_t retry_after_s; /* Retry-After of a 429 or 503, in seconds; else -1 */
    bool too_many;         /* the status was 429 (Too Many Requests) */
    bool is_html;          /* the Content-Type of the response is that of HTML */
};

/* How to go on after the head of a response. COMPLETE: its body is the whole file; PARTIAL: it is the first part of the file; EMPTY: the
 * file is empty; WITHOUT_RANGE: request the file again without a range; REDIRECT: follow the redirect; BAD_STATUS: fail because of the
 * status; REFUSED: fail with exchange.error. */
enum verdict { COMPLETE, PARTIAL, EMPTY, WITHOUT_RANGE, REDIRECT, BAD_STATUS, REFUSED };

struct exchange {
    struct transfer transfer;
    struct fetch_download *download;
    const struct hop *hop;
    bool ranged;
    enum verdict verdict;
    struct byte_range range; /* PARTIAL: the range received; in an exchange for a further part: the one requested */
    struct sl_error error;   /* for REFUSED */
};
/* Starts the request for e->hop. The caller has set e->download, and in e->transfer the limits and `decide`. `referer`, `range` and
 * `if_range` are values of header fields; NULL = none. SL_BUSY when out of memory; SL_DOWNLOAD_ERROR if the host is an address that is
 * refused. Call exchange_end in any case. */
enum sl_code exchange_start(struct exchange *e, const char *referer, const char *range, const char *if_range,
                            struct sl_error *error);
/* Ends the exchange, also one that is still running, and counts in metrics what was received. */
void exchange_end(struct exchange *e);
/* Sets and returns the error for the error status of a response: that of the request's `refused` if it has one, else the one for HTTP
 * sources. */
enum sl_code exchange_status(const struct exchange *e, struct sl_error *error);
/* Sets `*coding` to the response's content coding; false, with an error, if it is unknown or there are several. */
bool exchange_coding(const struct exchange *e, enum unpack_format *coding, struct sl_error *error);

/* ---- finish.c ---- */
/* Removes the content coding of the downloaded file, unpacks it if it is compressed and checks it, as far as the request wants that. */
enum sl_code download_finish(struct fetch_download *d, struct sl_error *error) SL_SUSPENDS;

/* ---- parts.c ---- */
/* Receives the rest of the file, in several exchanges at once, while the exchange `first` receives its beginning. */
enum sl_code parts_get(struct exchange *first, struct sl_error *error) SL_SUSPENDS;

/* ---- address.c ---- */
/* True if downloads of this connection pool may not connect to the address, or to the host of a URL. Most is refused to URLs that clients
 * choose (DRIVER_RESTRICTED), and nothing to requests of the service itself (DRIVER_OWN). */
bool address_refused(const struct sockaddr *address, enum driver_pool pool);
bool address_host_refused(const char *host, enum driver_pool pool);
bool address_reserved(const uint8_t bytes[16]); /* no public host uses it (RFC 6890) */
bool address_metadata(const uint8_t bytes[16]); /* of a metadata or credential service of a cloud */

/* ---- deny.c ---- */
/* Refuses a download, with SL_DOWNLOAD_ERROR, while its host is blocked. `*is_probe` is set if it is blocked but this
 * download may test whether it answers. */
enum sl_code deny_check(struct sl_str host, bool *is_probe, struct sl_error *error) SL_SUSPENDS;
void deny_answered(struct sl_str host);                             /* unblocks a host that has answered a probe */
void deny_pause(struct sl_str host, int64_t seconds);               /* the host has sent Retry-After */
uint64_t deny_pause_ms(struct sl_str host);                         /* rest of the pause for Retry-After; 0: none */
void deny_register(struct sl_str host, const struct sl_error *why); /* counts a failure, which may block the host */
size_t deny_blocked(void);                                          /* number of hosts that are blocked now */
void deny_close(void);

/* ---- slots.c: limits the downloads at one time, in all and per host; others wait, first come, first served ---- */
struct fetch_slot {
    struct slot_host *host;
};
/* Waits until a slot is free, in all and for this host, and takes it. SL_CANCELLED, or SL_BUSY when out of memory. */
enum sl_code slot_take(struct sl_str host, struct fetch_slot *slot, struct sl_error *error) SL_SUSPENDS;
void slot_give(struct fetch_slot *slot);
void slots_close(void);

/* ---- decode.c: streams; unwrap.c: archives, and unpack_bytes ---- */
struct decode_sink { /* where decoders write their output, within the limits of the call */
    const struct unpack_call *call;
    uint64_t written, max_ratio;
    bool over_limit; /* the error is that a limit of size or ratio was exceeded */
    struct sl_error *error;
};
bool decode_write(struct decode_sink *sink, const void *data, size_t size); /* false: sink->error is set */
enum sl_code decode_bytes(struct sl_bytes in, enum unpack_format coding, struct decode_sink *sink);

/* ---- unpack.c: replaces the contents of files ---- */
struct decode_limits {
    uint64_t max_size;             /* bytes of output; 0 = max_download_size */
    uint64_t until_ns, timeout_ns; /* deadline in time of clock_mono_ns; length of the limit, for the error */
    bool for_core; /* an output that begins like an ELF core file may grow more than max_inflate_ratio times */
};
/* Replaces the contents of `fd` by the decompressed ones, within these limits, if they are compressed. In the calling thread; blocks. */
enum sl_code unwrap_file(int fd, const struct decode_limits *limits, struct sl_error *error);
/* Replaces the compressed contents of `fd` by the decompressed ones or, if `member` is not empty, an archive by this member. */
enum sl_code unpack_file(int fd, enum unpack_format coding, struct sl_str member, const struct decode_limits *limits,
                         struct sl_error *error) SL_SUSPENDS;
/* Replaces the contents of `fd` by those without the content coding. Damaged contents are SL_DOWNLOAD_ERROR, as the transfer must have
 * damaged them; other codes are those of unpack_file. */
enum sl_code decode_file(int fd, enum unpack_format coding, const struct decode_limits *limits,
                         struct sl_error *error) SL_SUSPENDS;
enum unpack_format detect_wrapper(int fd);     /* returns the compressed format by the file's first bytes. Blocks */
void count_wrapper(enum unpack_format coding); /* counts an unpacked file in the metric; loop thread */
