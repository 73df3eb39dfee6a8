/* Shared by the files of the upload protocol of symbfiles (symbols of one executable for profilers; sent in one or more parts). */
#pragma once

#include "api/impl.h"
#include "conversion/conversion.h"
#include "symbfile_store/symbfile_store.h"

/* The access key and the scopes to which a request's uploads belong; in the arena of its exchange. */
struct upload_owner {
    struct sl_str key_id;           /* of the access key; empty = no key is required */
    char (*scopes)[SYMBFILE_SCOPE]; /* scopes that the request may read and write; uploads go to the first */
    size_t count;                   /* of `scopes`; at least 1 */
    bool reads_shared;              /* the shared scope, which is not among `scopes`, may be read too */
};

struct upload_head { /* what headers and path of an upload say: it sends one part of a symbfile */
    struct symbfile_key file_key;
    enum symbfile_kind kind;
    uint64_t part, parts; /* number of the part, from 0; how many parts the symbfile has */
    char upload_id[65];   /* by which the client marks parts of the same upload; empty: not sent */
    struct symbfile_info info;
    struct sl_str key_id; /* of the access key; empty = no key is required */
};

/* ---- head.c: pure checks of the request's head. False: `failure` is set ---- */
bool upload_authorize(struct http_exchange *x, const char *const *rights, struct upload_owner *owner,
                      struct symbfile_failure *failure);
bool upload_read_head(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure);

/* Answers with the failure, and logs it with a new UUID, which the answer contains too. */
void upload_reply_failure(struct http_exchange *x, const struct symbfile_failure *failure);
/* http_family.error: fills in the body of an error of the HTTP server in the format of this protocol. Logs nothing. */
void upload_reply_error(struct http_exchange *x, int status, const char *detail);
