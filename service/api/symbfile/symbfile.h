/* The upload protocol of symbfiles: what its files share. */
#pragma once

#include "api/impl.h"
#include "kinds/conversion.h"
#include "symbfile_store/symbfile_store.h"

/* Whose uploads a request is about, in the arena of its exchange. */
struct upload_owner {
    struct sl_str key_id;           /* of the access key; empty = none needed */
    char (*scopes)[SYMBFILE_SCOPE]; /* that it may write to: parts go to the first of them */
    size_t count;
    bool reads_shared; /* besides, it may read everybody's */
};

struct upload_head { /* of a request to store a part */
    struct symbfile_place place;
    enum symbfile_kind kind;
    uint64_t part, parts;
    char upload_id[65];
    struct symbfile_info info;
    struct sl_str key_id; /* of the access key; empty = none needed */
};

/* ---- head.c: pure checks of the request's head; false: `failure` ---- */
bool upload_authorize(struct http_exchange *x, const char *const *rights, struct upload_owner *owner,
                      struct symbfile_failure *failure);
bool upload_read_head(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure);

/* Answers with the failure and logs it under a fresh id. */
void upload_reply_failure(struct http_exchange *x, const struct symbfile_failure *failure);
/* The same of what the server refuses by itself, without the log: http_family.error. */
void upload_reply_error(struct http_exchange *x, int status, const char *detail);
