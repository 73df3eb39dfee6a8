/* What the files of fetch share. Private to this folder.
 *
 *     fetch_get (download.c): slot, deadline, attempts
 *         attempt: hops, status, ranges ── transfer (transfer.c): one exchange ── driver.c: curl on the loop
 *         parts.c: the rest of a large file, several transfers at once
 *     decode.c, unwrap.c: what comes after, on the pool */
#pragma once

#include <curl/curl.h>

#include "core/network.h"
#include "fetch/fetch.h"

struct fetch_state {
    bool started;                 /* there are pools of connections */
    struct fetch_options options; /* for the loop */
    const char *_Atomic tmp_dir;  /* four of them for the pool */
    _Atomic uint64_t max_download_size, max_inflate_ratio, max_download_timeout_ns;
    fetch_failure_listener *failure_listener; /* NULL = nobody */
    void *failure_arg;
    struct network *allowed; /* allowed_reserved_networks */
    size_t allowed_count;
    const char *ca_file; /* SSL_CERT_FILE of the environment, else NULL */
    struct proxy {
        struct network address;
        uint16_t port;
    } proxies[8]; /* of the environment */
    size_t proxy_count;
    const char *http_proxy; /* HTTP_PROXY, which curl does not read; NULL = nothing to add to what it does */
};
extern struct fetch_state fetch_state;

/* ---- driver.c: pools of connections, so that no connection made for a trusted request serves another ---- */
enum driver_pool { DRIVER_RESTRICTED, DRIVER_TRUSTED, DRIVER_OWN, DRIVER_POOLS };
void driver_close(void);
bool driver_add(enum driver_pool pool, CURL *easy);
void driver_remove(enum driver_pool pool, CURL *easy);
void transfer_finished(CURL *easy, CURLcode result); /* transfer.c; called by the driver */
void transfer_scarce(CURL *easy);                    /* the same: there is no memory to watch its socket */
void transfer_socket_gone(CURL *easy);               /* the same: a socket of its is watched no more */
void transfer_go_on(void);                           /* the same: those whose sockets have gone look for others */

/* ---- spool.c ---- */
enum { SPOOL_SIZE = 256 * 1024 };
struct spool {
    struct sl_buf filling, full; /* `full` waits for the disk */
    uint64_t offset;             /* in the file, of the first byte that is not written */
};
/* Whether spool_add may be called: else something must be written first. */
bool spool_has_room(const struct spool *spool, size_t size);
/* False when out of memory. `expected` bytes may come, these included. */
bool spool_add(struct spool *spool, struct sl_bytes bytes, uint64_t expected);
/* Writes what is full, else what there is: SL_OK, SL_BUSY or SL_INTERNAL. */
enum sl_code spool_write(struct spool *spool, int fd, struct sl_error *error) SL_SUSPENDS;
void spool_free(struct spool *spool);

/* ---- transfer.c ---- */
enum body_action { BODY_STORE, BODY_DISCARD, BODY_STOP };

struct time_limit {
    uint64_t until_ms; /* of loop_now_ms */
    uint64_t ns;       /* what the error says */
};
struct time_limit time_limit(uint64_t ns); /* from now */
struct time_limit sooner(struct time_limit a, struct time_limit b);
enum sl_code time_is_up(struct sl_error *error, uint64_t ns); /* SL_TIMEOUT of this limit; any thread */

struct transfer {
    /* in */
    const char *url;
    struct curl_slist *headers;
    const char *user, *password; /* NULL = none */
    const char *socket;          /* path of the Unix socket to connect to, wherever the URL leads; NULL = none */
    enum driver_pool pool;
    bool accept_invalid_certs;
    const char *method;                                                /* NULL = GET */
    void (*field)(void *arg, struct sl_str name, struct sl_str value); /* NULL = nobody hears them */
    void *field_arg;
    struct sl_str body;
    struct sl_buf *discarded; /* where a body that is not stored goes; NULL = nowhere */
    int fd;
    struct spool spool;                             /* with the offset where the body goes */
    uint64_t limit;                                 /* more bytes fail it */
    struct time_limit head;                         /* for the answer's head */
    enum body_action (*decide)(struct transfer *t); /* once the head is complete */
    void *arg;
    struct fiber_wait_list *events; /* woken when something happened; shared by the transfers of one download */
    /* out */
    bool done, head_complete, opened, restricted, too_long;
    bool scarce; /* no memory or descriptors: the failure is ours */
    CURLcode result;
    long os_error; /* errno of a connection that could not be made; 0 = another failure */
    long status;
    uint64_t stored, last_progress_ms;
    char content_range[128], etag[256];
    bool has_content_range, endless; /* a length that no file has */
    bool is_html;                    /* it says so */
    unsigned coding_count;
    char coding[32];
    int64_t content_length, retry_after_s, modified_s; /* -1 = absent */
    char *location;                                    /* malloc */
    /* private */
    CURL *easy;
    struct transfer *next_running, **running_link;
    struct transfer *next_gone, **gone_link; /* gone_link not NULL: in the list of transfer_go_on */
    enum body_action action;
    bool paused; /* until the disk has caught up */
    bool news;   /* since the last transfer_wait */
    uint64_t discarded_bytes;
    char curl_error[CURL_ERROR_SIZE];
};

/* Counts and logs that the transfer led to an address that it may not lead to. */
void transfer_note_restricted(const struct transfer *t);
bool transfer_start(struct transfer *t);
/* Waits for the next event of any of the transfers, or has what one has received written: within the limit, within each
 * one's limit for the head, and never longer than the stall time-out without a byte of body. SL_OK, SL_TIMEOUT,
 * SL_CANCELLED, or why nothing can be written. */
enum sl_code transfer_wait(struct transfer *const *transfers, size_t count, struct time_limit limit,
                           struct sl_error *error) SL_SUSPENDS;
/* The same until the head is complete / the exchange is over and stored; its own result is in `result`. */
enum sl_code transfer_wait_head(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
enum sl_code transfer_wait_end(struct transfer *t, struct time_limit limit, struct sl_error *error) SL_SUSPENDS;
/* Has the rest of a body written that has come to its end. */
enum sl_code transfer_store_rest(struct transfer *t, struct sl_error *error) SL_SUSPENDS;
void transfer_end(struct transfer *t); /* whatever its state */
/* The transport's failure as a download error; SL_OK when the exchange is fine. */
enum sl_code transfer_failure(const struct transfer *t, struct sl_error *error);

/* ---- url.c: one hop of a download ---- */
struct hop {         /* texts in the arena */
    const char *url; /* without user info and fragment */
    const char *path;
    const char *scheme, *host, *port, *user, *password; /* the host in lower case */
    bool foreign; /* reached through a redirect to another host: never given credentials again */
};
enum sl_code hop_parse(struct sl_arena *arena, const char *url, struct hop *hop, struct sl_error *error);
/* `location` of an answer to `from`; user info in it is dropped. */
enum sl_code hop_follow(struct sl_arena *arena, const struct hop *from, const char *location, struct hop *to,
                        struct sl_error *error);
bool hop_same_host(const struct hop *a, const struct hop *b); /* and scheme and port */
/* What a hop to `to` sends as Referer; NULL = nothing. */
const char *hop_referer(struct sl_arena *arena, const struct hop *from, const struct hop *to);

/* ---- ranges.c ---- */
struct byte_range {
    uint64_t start, end, total; /* end inclusive */
};
bool byte_range_parse(const char *content_range, struct byte_range *range);
enum { MAX_PARTS = 4 };
/* The parts of what follows `first` of a file, at most MAX_PARTS. */
size_t byte_range_split(const struct byte_range *first, uint64_t split_size, struct byte_range parts[MAX_PARTS]);

/* ---- download.c: what parts.c shares ---- */
enum coding { CODING_IDENTITY, CODING_BR, CODING_GZIP, CODING_DEFLATE, CODING_ZSTD, CODING_XZ };

struct download {
    const struct fetch_request *request;
    struct sl_arena *arena;
    int fd;
    uint64_t max_size;
    struct time_limit limit; /* of the whole */
    struct fiber_wait_list events;
    struct hop first;
    bool blocked;              /* its host is on the deny list */
    bool is_probe;             /* the same, and this shows whether it answers */
    struct sl_buf explanation; /* the body of an answer with an error status, if the request has a use for it */
    /* of the latest attempt */
    enum coding coding;
    long os_error;         /* as of a transfer */
    int64_t retry_after_s; /* of a 429 or 503; else -1 */
    bool too_many;         /* 429 */
    bool is_html;          /* what came is, by its head */
};

/* What the head of an answer tells to do. */
enum verdict { COMPLETE, PARTIAL, EMPTY, WITHOUT_RANGE, REDIRECT, BAD_STATUS, REFUSED };

struct exchange {
    struct transfer transfer;
    struct download *download;
    const struct hop *hop;
    bool ranged;
    enum verdict verdict;
    struct byte_range range; /* PARTIAL, and of a part what was asked for */
    struct sl_error error;   /* REFUSED */
};
enum sl_code exchange_start(struct exchange *e, const char *referer, const char *range, const char *if_range,
                            struct sl_error *error);
void exchange_end(struct exchange *e);
/* The error of an answer's status: the table of HTTP sources, unless the request knows better. */
enum sl_code exchange_status(const struct exchange *e, struct sl_error *error);
bool exchange_coding(const struct exchange *e, enum coding *coding, struct sl_error *error);

/* ---- parts.c ---- */
/* The body of `first`, the beginning of a file, and everything behind it. */
enum sl_code parts_get(struct exchange *first, struct sl_error *error) SL_SUSPENDS;

/* ---- address.c ---- */
/* Whether a connection to the address, or a URL that names it, is refused. */
bool address_refused(const struct sockaddr *address, enum driver_pool pool);
bool address_host_refused(const char *host, enum driver_pool pool);
bool address_reserved(const uint8_t bytes[16]);
bool address_metadata(const uint8_t bytes[16]);

/* ---- deny.c ---- */
/* SL_DOWNLOAD_ERROR while the host is blocked. */
/* `*is_probe` is set when the host is blocked, and this download is let through to see whether it answers. */
enum sl_code deny_check(struct sl_str host, bool *is_probe, struct sl_error *error) SL_SUSPENDS;
void deny_answered(struct sl_str host);               /* it is blocked no more */
void deny_pause(struct sl_str host, int64_t seconds); /* it asked for that; at most as long as hosts are blocked */
uint64_t deny_pause_ms(struct sl_str host);           /* the rest of it; 0: none */
void deny_register(struct sl_str host, const struct sl_error *why);
size_t deny_blocked(void); /* hosts that are blocked now */
void deny_close(void);

/* ---- slots.c: downloads at once, in all and per host; the rest waits in order ---- */
struct slot {
    struct slot_host *host;
};
enum sl_code slot_take(struct sl_str host, struct slot *slot, struct sl_error *error) SL_SUSPENDS;
void slot_give(struct slot *slot);
void slots_close(void);

/* ---- decode.c ---- */
struct decode_limits {
    uint64_t max_size;             /* bytes of output; 0 = max_download_size */
    uint64_t until_ns, timeout_ns; /* of clock_mono_ns, and what the error says */
};
struct decode_sink { /* where decoded bytes go, with the limits of decompression */
    int fd;
    struct decode_limits limits;
    uint64_t written, max_ratio, input;
    bool over_limit; /* a limit is the reason of the error */
    struct sl_error *error;
};
bool decode_write(struct decode_sink *sink, const void *data, size_t size); /* false: the error is set */
enum sl_code decode_bytes(struct sl_bytes in, enum coding coding, struct decode_sink *sink);

/* Replaces the contents of `fd`, which are coded, by what `decode` makes of them. Blocks. */
enum sl_code decode_in_place(int fd, const struct decode_limits *limits, struct sl_error *error,
                             enum sl_code (*decode)(struct sl_bytes in, void *arg, struct decode_sink *sink),
                             void *arg);
/* The content coding is removed; failures are SL_DOWNLOAD_ERROR but for the limits. Blocks. */
enum sl_code decode_file(int fd, enum coding coding, const struct decode_limits *limits, struct sl_error *error);

/* ---- unwrap.c ---- */
enum sl_code unwrap_file(int fd, const struct decode_limits *limits, struct sl_error *error); /* as fetch_unwrap */
