/* Requests to Amazon S3 and what speaks like it: where an object is, and its presigned URL. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct aws_keys {
    struct sl_str access_key, secret_key, session_token; /* empty token: none */
};

struct aws_field {    /* of the request's head, sent as it is here */
    const char *name; /* lower case */
    struct sl_str value;
};

struct aws_signing {
    const char *method;
    struct sl_str scheme, host, path; /* "https://", as the Host field has it, percent-encoded by fetch_encode */
    struct sl_str region;
    struct aws_keys keys;
    int64_t now_s;
    unsigned expires_s;
    const char *operation;          /* x-id; NULL = none */
    const struct aws_field *fields; /* that are signed, behind "host" in the order of their names */
    size_t field_count;
    const struct aws_field *query; /* of the request, in the order of their names, which come behind "X-Amz-" */
    size_t query_count;
};

struct aws_bucket {
    struct sl_str name, region;
    struct sl_str endpoint; /* URL of the server, which has the bucket in the path; data NULL: Amazon */
};

/* Scheme, host, path and region of an object; texts in the arena. False when region or endpoint can be no part of a URL,
 * or when out of memory. */
bool aws_address(struct sl_arena *arena, const struct aws_bucket *bucket, struct sl_str key, struct aws_signing *out);

/* The signed URL: AWS Signature Version 4 in the query ("Authenticating Requests: Using Query Parameters", Amazon S3 API
 * Reference), payload unsigned. NULL when out of memory. */
const char *aws_presign(struct sl_arena *arena, const struct aws_signing *signing);
