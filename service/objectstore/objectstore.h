/* Objects in a bucket of Amazon S3, of what speaks its protocol, or of Google Cloud Storage.
 *
 *     objects.c: one request ──┬── s3.c: presigned URLs (aws.c), answers in XML (xml.c)
 *          │                   └── gcs.c: Google's JSON API
 *     credentials.c: what is kept of keys and tokens, and renewed ──┬── aws_keys.c: of S3
 *                                                                   └── google.c: of Google
 *
 * Each object_ function makes one request, tried three times unless less is asked for. SL_NOT_FOUND: there is no such object. What
 * else fails says nothing about the object: the server did not answer (SL_TIMEOUT, SL_DOWNLOAD_ERROR), or refused
 * (SL_PERMISSION_DENIED). Loop thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "core/fiber.h"
#include "core/secret.h"

/* Where S3's keys come from: `access_key` and `secret_key`, or the machine (aws_keys.c). */
enum aws_credentials { CREDENTIALS_STATIC, CREDENTIALS_CONTAINER, CREDENTIALS_INSTANCE, CREDENTIALS_WEB_IDENTITY };
extern const char *const aws_credentials_words[]; /* "static" and so on, as configurations have it; NULL ends them */

/* Which bucket, and as whom; texts that are not given have no data. The name that is there says whether it is of S3 or of Google. */
struct bucket_config {
    struct sl_str s3_name, gcs_name;
    struct sl_str prefix; /* of the names of all objects, as of a directory */
    /* S3 */
    struct sl_str region;   /* us-east-1 */
    struct sl_str endpoint; /* URL of the server, which has the bucket in the path; else Amazon's */
    int credentials;        /* enum aws_credentials */
    struct sl_secret access_key, secret_key, session_token;
    /* Google: a token, a service account or the file of one; else the account of the machine. */
    struct sl_secret bearer_token, private_key; /* the key as PEM, or the base64 of it */
    struct sl_str client_email;
    struct sl_str service_account_path;
};

static inline struct sl_str bucket_name(const struct bucket_config *config)
{
    return config->s3_name.data ? config->s3_name : config->gcs_name;
}
static inline bool bucket_is_configured(const struct bucket_config *config)
{
    return bucket_name(config).data != NULL;
}
/* The name of an object in the bucket, behind the prefix; in the arena, or `name` itself. Data NULL: out of memory. */
struct sl_str bucket_key(struct sl_arena *arena, const struct bucket_config *config, struct sl_str name);

struct aws_keys {
    struct sl_str access_key, secret_key, session_token; /* empty token: none */
};
struct google_account {
    struct sl_str private_key;             /* no data: the account of the machine */
    struct sl_str client_email, token_url; /* no URL: Google's */
};

struct object_store {
    const struct bucket_config *config;
    const char *label;    /* of the metrics of its requests */
    bool is_source;       /* of symbols: it is only read, and the answer's text explains errors */
    bool is_trusted;      /* S3: may be at a reserved address */
    struct aws_keys keys; /* with CREDENTIALS_STATIC */
    struct google_account account;
};

/* The store of a bucket that the operator has configured; keys that it does not have are the environment's. Fails when
 * the configuration is wrong (SL_MALFORMED, or what reading the service account's file came to): `*key` is then the key at fault,
 * below that of the bucket ("s3.region"). What it keeps lies in the arena; the configuration must stay. Nobody is asked. Blocks. */
enum sl_code object_store_open(struct object_store *store, const struct bucket_config *config, const char *label,
                               struct sl_arena *arena, const char **key, struct sl_error *error);
/* The same of a source, whose keys are used as they are; its objects are called by their names behind the prefix, as locations are. */
struct object_store object_store_of_source(const struct bucket_config *config, const char *label, bool is_trusted);

/* The configuration of a source for what lies below a directory of the store, with the store's credentials; texts in the arena. False
 * when out of memory. */
bool object_store_below(const struct object_store *store, struct sl_arena *arena, struct sl_str directory,
                        struct bucket_config *config);

/* For how long the credentials that are there are good; 0: there are none, and the next request waits for them. */
uint64_t object_store_credentials_ms(const struct object_store *store);
/* Asks for credentials, unless there are some that are good for longer than OBJECT_RENEWAL_MS. */
enum { OBJECT_RENEWAL_MS = 4 * 60 * 1000 };
enum sl_code object_store_authorize(const struct object_store *store, struct sl_error *error) SL_SUSPENDS;

/* From now on the credentials of so many sources are kept. */
void object_credentials_keep(size_t s3_capacity, size_t gcs_capacity);
/* Wipes all that are kept. No request may be running. */
void object_credentials_forget(void);

/* The error's message where it is not the object that is not there, but the whole bucket. */
extern const char object_no_bucket[];

/* How a request is made, and what became of it. */
struct object_call {
    uint64_t timeout_ns;             /* 0 = that of downloads */
    unsigned attempts;               /* 0 = three */
    uint64_t max_size;               /* of what is got; 0 = that of downloads */
    bool unwrap;                     /* what is compressed is unpacked */
    bool refuse_empty, refuse_pages; /* as fetch_request */
    /* out */
    int status;         /* of an answer that was an error; 0 = none */
    bool is_denied;     /* it may be that the object is missing, to one who may not list */
    int64_t modified_s; /* of what was got; 0 = the server does not tell */
};

struct object_field { /* of an object's metadata */
    const char *name; /* lower case */
    struct sl_str value;
};

struct object_info {
    uint64_t size; /* as it is stored */
    bool is_gzip;
    bool has_md5; /* of what is stored */
    uint8_t md5[16];
    int64_t modified_s; /* 0 = the server does not tell */
};

struct object_contents {
    struct sl_bytes bytes;
    const char *media_type;
    const char *encoding; /* NULL = none */
    const struct object_field *metadata;
    size_t metadata_count;
    bool no_transform; /* nobody on the way may unpack or pack it */
    /* Nothing is replaced: then the call's status is 412 or 409, or 501 of a server that knows no conditions. */
    bool if_absent;
};

/* `call` may be NULL in each of these. */

/* Writes the contents into the file, which is empty before. */
enum sl_code object_get(const struct object_store *store, struct sl_str name, int fd, struct object_call *call,
                        struct sl_error *error) SL_SUSPENDS;
/* The same; the file is then mapped, and the caller unmaps it. */
enum sl_code object_get_mapped(const struct object_store *store, struct sl_str name, int fd, struct sl_mapping *mapping,
                               struct object_call *call, struct sl_error *error) SL_SUSPENDS;
/* Appends the contents; the call has their `max_size`. */
enum sl_code object_read(const struct object_store *store, struct sl_str name, struct sl_buf *text,
                         struct object_call *call, struct sl_error *error) SL_SUSPENDS;
/* SL_OK when it is there. */
enum sl_code object_exists(const struct object_store *store, struct sl_str name, struct object_call *call,
                           struct sl_error *error) SL_SUSPENDS;
/* What is known of an object. The fields that `metadata` names get their values, which have no data when the object has none of
 * that name; they lie in the arena. */
enum sl_code object_head(const struct object_store *store, struct sl_str name, struct sl_arena *arena,
                         struct object_info *info, struct object_field *metadata, size_t metadata_count,
                         struct sl_error *error) SL_SUSPENDS;
/* SL_DOWNLOAD_ERROR with the status 404: there is no such bucket. */
enum sl_code object_put(const struct object_store *store, struct sl_str name, const struct object_contents *contents,
                        struct object_call *call, struct sl_error *error) SL_SUSPENDS;
/* The same; the bytes are those of the file. */
enum sl_code object_put_file(const struct object_store *store, struct sl_str name, int fd,
                             struct object_contents contents, struct object_call *call,
                             struct sl_error *error) SL_SUSPENDS;
/* Also SL_OK when it is not there. */
enum sl_code object_delete(const struct object_store *store, struct sl_str name, struct object_call *call,
                           struct sl_error *error) SL_SUSPENDS;

/* A URL that anybody may get the object from for so long; NULL: Google's buckets have none, or there are no credentials. */
const char *object_url(const struct object_store *store, struct sl_str name, unsigned expires_s,
                       struct sl_arena *arena) SL_SUSPENDS;

struct object_entry { /* texts in the list's arena */
    struct sl_str name;
    struct sl_str modified; /* as the server has it: times of one server are in order as texts are */
};

enum { OBJECT_LIST_MAX = 1000 };

struct object_list {
    struct sl_arena arena;
    struct object_entry items[OBJECT_LIST_MAX];
    size_t count;
    bool more;             /* than these */
    struct sl_str skipped; /* the configured prefix that names have in the bucket */
    bool failed;           /* out of memory */
};

/* The first OBJECT_LIST_MAX objects, in the order of their names, whose names begin with `prefix` and come behind `after` (empty:
 * from the first). The caller gives the list to object_list_free. */
enum sl_code object_list(const struct object_store *store, struct sl_str prefix, struct sl_str after,
                         struct object_list *list, struct sl_error *error) SL_SUSPENDS;
void object_list_free(struct object_list *list);
