/* Requests to other servers: the download of an archive whose URL was uploaded instead of the archive, and HEAD requests. */
#pragma once

#include "api/uploads/uploads.h"
#include "fetch/fetch.h"

struct uploads_url {
    struct archive *archive;
    struct sl_str url;          /* set when the archive was downloaded; empty: it was not */
    struct sl_str redirects[5]; /* targets of the redirects from `url` on */
    size_t redirect_count;
    uint64_t size; /* of the archive, from the HEAD request */
};

/* Downloads the archive from `url` into the empty file `fd`, and sets its file name. False: u->archive->failure is set. */
bool uploads_fetch(struct uploads_url *u, struct sl_str url, int fd) SL_SUSPENDS;

/* Sends a HEAD request, which may take five seconds. The caller sets url, refused, field and arg of `request`; the rest is set here. */
enum sl_code uploads_head(struct fetch_request request, struct sl_error *error) SL_SUSPENDS;
