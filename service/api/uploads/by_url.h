/* Archives that are fetched from where a build has left them, and how others are asked for heads. */
#pragma once

#include "api/uploads/uploads.h"
#include "fetch/fetch.h"

struct uploads_url {
    struct archive *archive;
    struct sl_str url, redirects[5];
    size_t redirect_count;
    uint64_t size; /* as its HEAD says */
};

/* Fetches it into the file, and names the archive. False: `failure` of the archive. */
bool uploads_fetch(struct uploads_url *u, struct sl_str url, int fd) SL_SUSPENDS;

/* A HEAD of five seconds at most. Of `request` URL, `refused`, `field` and `arg` count. */
enum sl_code uploads_head(struct fetch_request request, struct sl_error *error) SL_SUSPENDS;
