/* Uploads by URL: downloads the archive from the build server; and HEAD requests to other stores. */
#pragma once

#include "api/uploads/uploads.h"
#include "fetch/fetch.h"

struct uploads_url {
    struct archive *archive;
    struct sl_str url, redirects[5];
    size_t redirect_count;
    uint64_t size; /* from the HEAD request */
};

/* Downloads the archive into `fd` and sets its file name. False: `failure` of the archive is set. */
bool uploads_fetch(struct uploads_url *u, struct sl_str url, int fd) SL_SUSPENDS;

/* Sends a HEAD request with a limit of five seconds. Only url, `refused`, `field` and `arg` of `request` are used. */
enum sl_code uploads_head(struct fetch_request request, struct sl_error *error) SL_SUSPENDS;
