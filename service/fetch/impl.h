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
    struct fetch_options options; /* for the loop */
    const char *_Atomic tmp_dir;  /* copies of four options, for pool threads */
    _Atomic uint64_t max_download_size, max_inflate_ratio, max_download_timeout_ns;
    fetch_failure_listener *failure_listener; /* NULL = none */
    void *failure_arg;
    const char *ca_file; /* SSL_CERT_FILE of the environment, or NULL */
    struct proxy {
        struct network address;
        uint16_t port;
    } proxies[8]; /* of the environment */
    size_t proxy_count;
    const char *http_proxy; /* HTTP_PROXY, which curl ignores; NULL = do not set a proxy */
};
extern struct fetch_state fetch_state;

/* ---- driver.c: separate connection pools, so that a connection made for a trusted request is not reused for others ---- */
enum driver_pool { DRIVER_RESTRICTED, DRIVER_TRUSTED, DRIVER_OWN, DRIVER_POOLS };
void driver_close(void);
bool driver_add(enum driver_pool pool, CURL *easy);
void driver_remove(enum driver_pool pool, CURL *easy);
void transfer_finished(CURL *easy, CURLcode result); /* transfer.c; called by the driver */
void transfer_fail_for_memory(CURL *easy); /* transfer.c; called by the driver: no memory to watch its socket */
/* transfer.c; called by the driver: one of its sockets is not watched any more. Notes the transfer for transfer_resume. */
void transfer_socket_gone(CURL *easy);
void transfer_resume(void); /* transfer.c; called by the driver: continues the transfers whose sockets have gone */

/* ---- spool.c ---- */
enum { SPOOL_SIZE = 256 * 1024 };
struct fetch_spool {
    struct sl_buf filling, full; /* `full` is to be written */
    uint64_t offset;             /* in the file, of the first byte that is not written yet */
};
/* True if spool_add may be called; else write first. */
bool spool_has_room(const struct fetch_spool *spool, size_t size);
/* False when out of memory. `expected` is the number of bytes to come, including these. */
bool spool_add(struct fetch_spool *spool, struct sl_bytes bytes, uint64_t expected);
/* Writes `full`, or else `filling`: SL_OK, SL_BUSY or SL_INTERNAL. */
enum sl_code spool_write(struct fetch_spool *spool, int fd, struct sl_error *error) SL_SUSPENDS;
void spool_free(struct fetch_spool *spool);

/* ---- transfer.c ---- */
enum body_action { BODY_STORE, BODY_DISCARD, BODY_STOP };

struct time_limit {
    uint64_t until_ms; /* in time of loop_now_ms */
    uint64_t ns;       /* the limit, for the error */
};
struct time_limit time_limit(uint64_t ns); /* begins now */
struct time_limit earlier_time_limit(struct time_limit a, struct time_limit b);
enum sl_code fail_for_time_limit(struct sl_error *error,
                                 uint64_t ns); /* fails with SL_TIMEOUT for this limit; any thread */

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
    struct fetch_spool spool;                       /* its offset is where the body goes in the file */
    uint64_t limit;                                 /* the transfer fails after this many bytes */
    struct time_limit head;                         /* for the response's head */
    enum body_action (*decide)(struct transfer *t); /* called when the head is complete */
    void *arg;
    struct fiber_wait_list *events; /* woken on each event; shared by the transfers of one download */
    /* out */
    bool done, head_complete, opened, restricted, too_long;
    bool scarce; /* no memory or descriptors: the failure is local */
    CURLcode result;
    long os_error; /* errno of a failed connect; 0 = another failure */
    long status;
    uint64_t stored, last_progress_ms;
    char content_range[128], etag[256];
    bool has_content_range, length_overflows; /* `length_overflows`: a length that no file has */
    bool is_html;                             /* by its Content-Type */
    unsigned coding_count;
    char coding[32];
    int64_t content_length, retry_after_s, modified_s; /* -1 = absent */
    char *location;                                    /* malloc */
    /* private */
    CURL *easy;
    struct transfer *next_running, **running_link;
    struct transfer *next_gone, **gone_link; /* list of transfer_resume; gone_link NULL: not in it */
    enum body_action action;
    bool paused;      /* until the disk has caught up */
    bool has_changed; /* an event since the last transfer_wait */
    uint64_t discarded_bytes;
    char curl_error[CURL_ERROR_SIZE];
};

/* Counts and logs that the transfer was refused because of its address. */
void transfer_note_restricted(const struct transfer *t);
bool transfer_start(struct transfer *t);
/* Waits for the next event of any of the transfers, and writes received bytes to disk. Limits: `limit`, each transfer's limit
 * for the head, and the stall timeout without a byte of body. SL_OK, SL_TIMEOUT, SL_CANCELLED, or the error of writing. */
enum sl_code transfer_wait(struct transfer *const *transfers, size_t count, struct time_limit limit,
                           struct sl_error *error) SL_SUSPENDS;
/* Wait, as transfer_wait does, until the head is complete, and until the exchange has ended and is stored; then
 * t->result tells how it ended. */
enum sl_code transfer_wait_head(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
enum sl_code transfer_wait_end(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
/* Writes the rest of a body that was received completely. */
enum sl_code transfer_store_rest(struct transfer *t, struct sl_error *error) SL_SUSPENDS;
void transfer_end(struct transfer *t); /* may be called in any state */
/* Converts the transfer's failure to a download error; SL_OK if it succeeded. */
enum sl_code transfer_failure(const struct transfer *t, struct sl_error *error);

/* ---- url.c: one hop of a download ---- */
struct hop {         /* texts in the arena */
    const char *url; /* without user info and fragment */
    const char *path;
    const char *scheme, *host, *port, *user, *password; /* the host in lower case */
    bool is_other_host; /* reached by a redirect to another host: credentials are never sent again */
};
enum sl_code hop_parse(struct sl_arena *arena, const char *url, struct hop *hop, struct sl_error *error);
/* Resolves `location` of a response to `from`; user info in it is dropped. */
enum sl_code hop_follow(struct sl_arena *arena, const struct hop *from, const char *location, struct hop *to,
                        struct sl_error *error);
bool hop_same_host(const struct hop *a, const struct hop *b); /* and the same scheme and port */
/* Returns the Referer that a request to `to` sends; NULL = none. */
const char *hop_referer(struct sl_arena *arena, const struct hop *from, const struct hop *to);

/* ---- ranges.c ---- */
struct byte_range {
    uint64_t start, end, total; /* end inclusive */
};
bool byte_range_parse(const char *content_range, struct byte_range *range);
enum { MAX_PARTS = 4 };
/* Splits the rest of a file after `first` into at most MAX_PARTS parts. */
size_t byte_range_split(const struct byte_range *first, uint64_t split_size, struct byte_range parts[MAX_PARTS]);

/* ---- download.c: shared with parts.c ---- */
struct fetch_download {
    const struct fetch_request *request;
    struct sl_arena *arena;
    int fd;
    uint64_t max_size;
    struct time_limit limit; /* of the whole download */
    struct fiber_wait_list events;
    struct hop first;
    bool blocked;              /* its host is on the deny list */
    bool is_probe;             /* blocked, but this download tests whether it answers */
    struct sl_buf explanation; /* body of a response with an error status, if the request uses it */
    /* of the latest attempt */
    enum unpack_format coding;
    long os_error;         /* errno of a failed connect; 0 = another failure */
    int64_t retry_after_s; /* of a 429 or 503; else -1 */
    bool too_many;         /* 429 */
    bool is_html;          /* by the Content-Type of the response */
};

/* How to proceed after the head of a response. */
enum verdict { COMPLETE, PARTIAL, EMPTY, WITHOUT_RANGE, REDIRECT, BAD_STATUS, REFUSED };

struct exchange {
    struct transfer transfer;
    struct fetch_download *download;
    const struct hop *hop;
    bool ranged;
    enum verdict verdict;
    struct byte_range range; /* PARTIAL: the range received; for a part first the range requested */
    struct sl_error error;   /* REFUSED */
};
/* Starts the request of e->hop; the caller has set e->download and, of e->transfer, the limits and `decide`. `referer`, `range` and
 * `if_range` are values of header fields; NULL = none. SL_BUSY; SL_DOWNLOAD_ERROR if the host's address is refused. Call exchange_end
 * in any case. */
enum sl_code exchange_start(struct exchange *e, const char *referer, const char *range, const char *if_range,
                            struct sl_error *error);
/* Ends the exchange, also a running one, and counts what was received. */
void exchange_end(struct exchange *e);
/* Returns the error for a response's status: from the table for HTTP sources, or by the request's `refused`. */
enum sl_code exchange_status(const struct exchange *e, struct sl_error *error);
bool exchange_coding(const struct exchange *e, enum unpack_format *coding, struct sl_error *error);

/* ---- finish.c ---- */
/* Decodes the file, unpacks and checks it, unless there is nothing to do. */
enum sl_code download_finish(struct fetch_download *d, struct sl_error *error) SL_SUSPENDS;

/* ---- parts.c ---- */
/* Gets the body of `first`, the beginning of a file, and the rest of the file. */
enum sl_code parts_get(struct exchange *first, struct sl_error *error) SL_SUSPENDS;

/* ---- address.c ---- */
/* True if a connection to the address, or a URL that contains it, is refused. */
bool address_refused(const struct sockaddr *address, enum driver_pool pool);
bool address_host_refused(const char *host, enum driver_pool pool);
bool address_reserved(const uint8_t bytes[16]);
bool address_metadata(const uint8_t bytes[16]);

/* ---- deny.c ---- */
/* Refuses a download, with SL_DOWNLOAD_ERROR, while its host is blocked. `*is_probe` is set if it is blocked but this
 * download may test whether it answers. */
enum sl_code deny_check(struct sl_str host, bool *is_probe, struct sl_error *error) SL_SUSPENDS;
void deny_answered(struct sl_str host);               /* unblocks it */
void deny_pause(struct sl_str host, int64_t seconds); /* it sent Retry-After; at most as long as hosts are blocked */
uint64_t deny_pause_ms(struct sl_str host);           /* rest of that pause; 0: none */
void deny_register(struct sl_str host, const struct sl_error *why);
size_t deny_blocked(void); /* number of hosts that are blocked now */
void deny_close(void);

/* ---- slots.c: limits concurrent downloads, in all and per host; others wait in order ---- */
struct fetch_slot {
    struct slot_host *host;
};
enum sl_code slot_take(struct sl_str host, struct fetch_slot *slot, struct sl_error *error) SL_SUSPENDS;
void slot_give(struct fetch_slot *slot);
void slots_close(void);

/* ---- decode.c: streams; unwrap.c: archives, and unpack_bytes ---- */
struct decode_sink { /* takes decoded bytes, within the limits of the call */
    const struct unpack_call *call;
    uint64_t written, max_ratio;
    bool over_limit; /* the error is a limit */
    struct sl_error *error;
};
bool decode_write(struct decode_sink *sink, const void *data, size_t size); /* false: the error is set */
enum sl_code decode_bytes(struct sl_bytes in, enum unpack_format coding, struct decode_sink *sink);

/* ---- unpack.c: replaces the contents of files ---- */
struct decode_limits {
    uint64_t max_size;             /* bytes of output; 0 = max_download_size */
    uint64_t until_ns, timeout_ns; /* deadline in time of clock_mono_ns; the limit, for the error */
    bool for_core; /* an output that begins like an ELF core file may grow more than max_inflate_ratio times */
};
/* Like fetch_unwrap, with these limits. */
enum sl_code unwrap_file(int fd, const struct decode_limits *limits, struct sl_error *error);
/* Replaces the encoded contents of `fd`, or an archive by its member. */
enum sl_code unpack_file(int fd, enum unpack_format coding, struct sl_str member, const struct decode_limits *limits,
                         struct sl_error *error) SL_SUSPENDS;
/* Removes the content coding; failures are SL_DOWNLOAD_ERROR, except limits. */
enum sl_code decode_file(int fd, enum unpack_format coding, const struct decode_limits *limits,
                         struct sl_error *error) SL_SUSPENDS;
enum unpack_format detect_wrapper(int fd);     /* of the file. Blocks */
void count_wrapper(enum unpack_format coding); /* for the metrics; loop thread */
