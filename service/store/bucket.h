/* What stores in buckets share: requests for one object. Private to this folder. */
#pragma once

#include "fetch/aws.h"
#include "fetch/fetch.h"
#include "fetch/google.h"
#include "origin/memo.h"
#include "store/impl.h"
#include "store/objects.h"

enum { OBJECT_HEADERS = 8 };

struct store_bucket {
    const struct bucket_kind *kind;
    const struct config_bucket *config;
    const struct store_bucket_keys *names;
    struct aws_keys keys;          /* S3 */
    struct google_account account; /* GCS */
    struct memo tokens;            /* of the account */
};

struct object_request {
    const struct store_bucket *bucket;
    struct fetch_request fetch;
    struct fetch_header headers[OBJECT_HEADERS];
    struct sl_arena arena;
    int status;                   /* of an answer that was an error; 0 = none */
    bool (*is_final)(int status); /* an error status that is none here; may be NULL */
    void *own;                    /* of the kind */
    /* of what is looked at */
    struct store_meta *meta;
    bool has_size, has_md5, has_etag; /* of what was packed; etag: the MD5 of the object itself */
    uint8_t etag[20];
    const char *location; /* where the contents go */
};

struct bucket_kind {
    /* Run the request; `error` has no code before. */
    enum sl_code (*look)(struct object_request *request, struct sl_str name, struct store_meta *meta,
                         struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(struct object_request *request, struct sl_str name, struct sl_bytes contents,
                        const struct store_meta *meta, const char *media_type, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*del)(struct object_request *request, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
    /* As store_objects_list. */
    enum sl_code (*list)(struct object_request *request, struct sl_str prefix, struct sl_str after,
                         struct store_objects *objects, struct sl_error *error) SL_SUSPENDS;
    /* Only prepares it; the URL stays NULL when there are no credentials (`error`) or there is no memory. */
    void (*get)(struct object_request *request, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
    /* For clients, good for an hour; NULL: none. */
    const char *(*url)(const struct store_bucket *bucket, struct sl_str name, struct sl_arena *arena);
    bool (*source)(const struct store_bucket *bucket, struct sl_arena *arena, struct sl_str prefix,
                   struct source *source);
};

/* The back end over a bucket that stays. */
const struct store_backend *store_bucket_backend(struct store_bucket *bucket);

/* Fill in the kind and the credentials; false: `error`, and `*key` is the key at fault. Texts lie in the arena. */
bool store_s3_open(struct store_bucket *bucket, struct sl_arena *arena, const char **key, struct sl_error *error);
bool store_gcs_open(struct store_bucket *bucket, struct sl_arena *arena, const char **key, struct sl_error *error);

void object_begin(struct object_request *request, const struct store_bucket *bucket);
void object_end(struct object_request *request);
void object_header(struct object_request *request, const char *name, struct sl_str value);
/* SL_NOT_FOUND: 404. The answer's body is appended to `answer`, which may be NULL. */
enum sl_code object_run(struct object_request *request, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;

/* `prefix`, which may be NULL, as directories in front of the name. */
struct sl_str store_prefixed(struct sl_arena *arena, const char *prefix, struct sl_str name);
bool store_parse_number(struct sl_str text, uint64_t *number);

/* Notes an object that is listed; false when out of memory or when there are enough. */
bool store_objects_add(struct store_objects *objects, struct sl_str name, struct sl_str modified);
