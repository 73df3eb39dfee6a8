/* The shared layer in a bucket of S3 or GCS: what both have in common is in bucket.c, requests and credentials are their
 * own. Private to this folder. */
#pragma once

#include "cache/shared.h"
#include "fetch/aws.h"
#include "fetch/fetch.h"
#include "fetch/google.h"

enum { BUCKET_HEADERS = 4 };

struct bucket_request {
    struct fetch_request fetch;
    struct fetch_header headers[BUCKET_HEADERS];
    struct sl_arena arena;
    int64_t modified_s;          /* of what was got; 0 = the server does not tell */
    int status;                  /* of an answer that was an error; 0 = none */
    bool denied;                 /* it may be that the object is missing, to one who may not list */
    bool unconditional;          /* PUT: the bucket knows no conditions */
    struct aws_signing *signing; /* S3 */
};

struct bucket {
    const char *name;
    /* Fills in the request for an object, all texts in the request's arena. False: there are no credentials. A request
     * for SHARED_EXISTS that is too large for its limit says yes. */
    bool (*prepare)(struct bucket_request *request, enum shared_op op, const char *name) SL_SUSPENDS;
    void (*close)(void);
};

struct shared_backend *bucket_backend(const struct bucket *bucket, const struct config *config);
/* What the last request that failed was answered, for people; empty when none did. */
const char *bucket_trouble(void);
void bucket_header(struct bucket_request *request, struct sl_str name, struct sl_str value);

/* ---- gcs_token.c ---- */
/* Whose tokens they are; `group` is the one of the fiber that asks for tokens. */
void gcs_token_init(const struct google_account *account, struct fiber_group *group);
void gcs_token_close(void);
/* "Bearer <token>", good for a while yet, in the arena; NULL when there is none within 300 ms. */
const char *gcs_token_get(struct sl_arena *arena) SL_SUSPENDS;
