/* The shared layer in a bucket of S3 or GCS: what both have in common is in bucket.c, requests and credentials are their
 * own. Private to this folder. */
#pragma once

#include "cache/shared.h"
#include "fetch/fetch.h"

enum { BUCKET_HEADERS = 4 };

struct bucket_request {
    struct fetch_request fetch;
    struct fetch_header headers[BUCKET_HEADERS];
    struct sl_arena arena;
    int status;         /* of an answer that was an error; 0 = none */
    bool denied;        /* it may be that the object is missing, to one who may not list */
    bool unconditional; /* PUT: the bucket knows no conditions */
    void *signing;
};

struct bucket {
    const char *name;
    /* Fills in the request for an object, all texts in the request's arena. False: there are no credentials. A request
     * for SHARED_EXISTS that is too large for its limit says yes. */
    bool (*prepare)(struct bucket_request *request, enum shared_op op, const char *name) SL_SUSPENDS;
    void (*close)(void);
};

struct shared_backend *bucket_backend(const struct bucket *bucket, const struct config *config);
void bucket_header(struct bucket_request *request, struct sl_str name, struct sl_str value);

/* Percent-encoded but for unreserved characters (RFC 3986, 2.3). */
void bucket_encode(struct sl_buf *out, struct sl_str text, bool keep_slashes);
/* The contents of the buffer in the arena, terminated; NULL when out of memory. Frees the buffer. */
const char *bucket_text(struct sl_arena *arena, struct sl_buf *buf);

/* ---- s3_sign.c ---- */
struct s3_signing {
    const char *method;
    struct sl_str scheme, host, path; /* "https://", as the Host field has it, percent-encoded */
    struct sl_str region, access_key, secret_key, session_token; /* an empty token: none */
    int64_t now_s;
    unsigned expires_s;
};
/* The signed URL: AWS Signature Version 4 in the query ("Authenticating Requests: Using Query Parameters", Amazon S3 API
 * Reference), payload unsigned. NULL when out of memory. */
const char *s3_presign(const struct s3_signing *signing, struct sl_arena *arena);

/* ---- gcs_token.c ---- */
struct gcs_account { /* a service account's key file; texts in the arena of its reader */
    struct sl_str private_key, client_email, token_url; /* no key: the account of the machine */
};
enum sl_code gcs_account_read(const char *path, struct sl_arena *arena, struct gcs_account *account,
                              struct sl_error *error);
/* What the account is; `group` is the one of the fiber that asks for tokens. */
void gcs_token_init(const struct gcs_account *account, struct fiber_group *group);
void gcs_token_close(void);
/* "Bearer <token>", good for a while yet, in the arena; NULL when there is none within 300 ms. */
const char *gcs_token_get(struct sl_arena *arena) SL_SUSPENDS;
/* The signed assertion (RFC 7523, RS256 of RFC 7518, 3.3). False for a key that is none. About a millisecond. */
bool gcs_assertion_sign(const struct gcs_account *account, int64_t now_s, struct sl_buf *out);
