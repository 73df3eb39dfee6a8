/* Downloads: libcurl's multi-socket interface on the loop, one fiber per download.
 *
 * fetch_get is one whole download: deny list, at most three attempts, time limits, redirects checked hop by hop,
 * address checks on the socket actually opened, range-parallel parts, content decoding, size limits, and the removal of
 * a compression wrapper (gzip, zlib, zstd, xz, zip, CAB) from the finished file. Errors are those of the cache:
 * not found, permission denied, timeout, download error, malformed. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/secret.h"

struct fetch_header {
    struct sl_str name;
    struct sl_secret value;
};

struct fetch_options { /* of the process; set once, replaced at reload */
    uint64_t connect_timeout_ns, head_timeout_ns, max_download_timeout_ns, stall_timeout_ns;
    uint64_t max_download_size; /* UINT64_MAX = none */
    unsigned max_inflate_ratio, max_downloads, max_downloads_per_host;
    bool connect_to_reserved_ips;
    const struct sl_str *allowed_reserved_networks;
    size_t allowed_reserved_network_count;
    bool deny_list_enabled;
    uint64_t deny_window_ns, deny_bucket_ns, deny_block_ns;
    unsigned deny_threshold;
    const struct sl_str *deny_never_block;
    size_t deny_never_block_count;
};

void fetch_init(const struct fetch_options *options); /* after loop_init */
void fetch_close(void);

struct fetch_request {
    const char *url; /* absolute http(s) URL; user info becomes Basic authorization */
    const struct fetch_header *headers;
    size_t header_count; /* dropped on redirects to another host */
    bool trusted;        /* may connect to reserved addresses */
    bool accept_invalid_certs;
    bool deny_list;      /* the host's failures count, and it may be blocked */
    const char *source;  /* metric label */
    uint64_t max_size;   /* 0 = max_download_size */
    uint64_t timeout_ns; /* 0 = max_download_timeout */
    bool keep_wrapper;   /* do not look for a compressed wrapper */
};

/* Downloads into `fd` (an empty file opened read-write; truncated between attempts). On success the file holds the
 * decoded, unwrapped contents, written by plain writes and readable at offset 0. */
enum sl_code fetch_get(const struct fetch_request *request, int fd, struct sl_error *error) SL_SUSPENDS;

/* Removes a compression wrapper of the file `fd` (spec of fetch_get), if it has one: on success `*unwrapped` is a new
 * unlinked temporary file in `tmp_dir` which the caller closes, or -1 when there was none. Blocks: pool work. */
enum sl_code fetch_unwrap(int fd, const char *tmp_dir, uint64_t max_size, unsigned max_ratio, int *unwrapped,
                          struct sl_error *error);

/* `url` without user info and query, for logs and locations. Into the arena. */
const char *fetch_public_url(struct sl_arena *arena, const char *url);

/* Whether an address (sockaddr) is reserved: not a public unicast destination. */
struct sockaddr;
bool fetch_address_reserved(const struct sockaddr *address);
