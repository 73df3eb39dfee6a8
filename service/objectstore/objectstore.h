/* Objects in a bucket of Amazon S3, of a server with its protocol, or of Google Cloud Storage.
 *
 *     objects.c: one request ──┬── s3.c: presigned URLs (aws.c), responses in XML (xml.c)
 *          │                   └── gcs.c: Google's JSON API
 *     credentials.c: caches and renews keys and tokens ──┬── aws_keys.c: S3
 *                                                        └── google.c: Google
 *
 * Each object_ function makes one request, with up to three attempts unless the caller sets fewer. SL_NOT_FOUND: the object does not
 * exist. Other errors say nothing about the object: the server did not respond (SL_TIMEOUT, SL_DOWNLOAD_ERROR) or refused
 * (SL_PERMISSION_DENIED). Loop thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "core/fiber.h"
#include "core/secret.h"

/* Where the keys for S3 come from. CREDENTIALS_STATIC: from `access_key` and `secret_key` of the bucket; others: from the machine
 * (aws_keys.c). */
enum aws_credentials { CREDENTIALS_STATIC, CREDENTIALS_CONTAINER, CREDENTIALS_INSTANCE, CREDENTIALS_WEB_IDENTITY };
extern const char *const aws_credentials_words[]; /* words of configurations, "static" ...; ends with NULL */

/* Bucket and credentials; a text with data NULL is not configured. s3_name is set for a bucket of S3, gcs_name for one of Google;
 * both are unset if no bucket is configured. */
struct bucket_config {
    struct sl_str s3_name, gcs_name;
    struct sl_str prefix; /* prefix of the names of all objects, like a directory */
    /* S3 */
    struct sl_str region;   /* default: us-east-1 */
    struct sl_str endpoint; /* server URL, to which the bucket is appended as path; default: Amazon's */
    int credentials;        /* enum aws_credentials */
    struct sl_secret access_key, secret_key, session_token;
    /* Google: a token, a service account or the path of its key file; without any, the account of the machine is used. */
    struct sl_secret bearer_token, private_key; /* `private_key`: PEM, or the base64 of it */
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
/* Returns "<config->prefix>/<name>", the name of an object in the bucket, without slashes at its begin; in the arena, or `name` itself if
 * the prefix is empty. Data NULL when out of memory. */
struct sl_str bucket_key(struct sl_arena *arena, const struct bucket_config *config, struct sl_str name);

struct aws_keys {
    struct sl_str access_key, secret_key, session_token; /* empty session_token: none */
};
struct google_account {
    struct sl_str private_key;             /* data NULL: the account of the machine */
    struct sl_str client_email, token_url; /* data NULL: Google's URL */
};

struct object_store {
    const struct bucket_config *config;
    const char *label;    /* label of its requests' metrics */
    bool is_source;       /* a symbol source: only read; errors contain the error code and message of the response */
    bool is_trusted;      /* S3: its server may have a reserved (private) IP address */
    struct aws_keys keys; /* valid with CREDENTIALS_STATIC */
    struct google_account account;
};

/* Opens the store of a bucket that the operator configured; keys missing in the configuration are taken from the
 * environment. If the configuration is wrong (SL_MALFORMED, or the error of reading the service account's file),
 * `*key` is the faulty key below that of the bucket ("s3.region"). Allocates in the arena; the configuration must
 * outlive the store. Makes no requests. Blocks. */
enum sl_code object_store_open(struct object_store *store, const struct bucket_config *config, const char *label,
                               struct sl_arena *arena, const char **key, struct sl_error *error);
/* Returns the store of a symbol source's bucket, for reading only. Unlike object_store_open it takes no keys from the environment, only
 * those in `config`, since requests of clients may name sources. Object names are complete: config->prefix is not put before them, because
 * the source's locations contain it. `config` and `label` must outlive the store; makes no requests. */
struct object_store object_store_of_source(const struct bucket_config *config, const char *label, bool is_trusted);

/* Sets `*config` to that of a symbol source for the objects below a directory of the store, with the store's credentials; new texts
 * are in the arena. Returns false when out of memory. */
bool object_store_directory_config(const struct object_store *store, struct sl_arena *arena, struct sl_str directory,
                                   struct bucket_config *config);

/* Returns how long the cached credentials are valid; 0: there are none, and the next request waits for new ones. */
uint64_t object_store_credentials_ms(const struct object_store *store);
/* Requests credentials unless the cached ones are valid for longer than OBJECT_RENEWAL_MS. */
enum { OBJECT_RENEWAL_MS = 4 * 60 * 1000 };
enum sl_code object_store_authorize(const struct object_store *store, struct sl_error *error) SL_SUSPENDS;

/* Sets how many sources' credentials are cached. */
void object_credentials_resize_cache(size_t s3_capacity, size_t gcs_capacity);
/* Wipes all cached credentials. No request may be running. */
void object_credentials_clear(void);

/* The error message if the bucket, not only the object, does not exist. */
extern const char object_no_bucket[];

/* Parameters of a request, and details of its result. */
struct object_store_call {
    uint64_t timeout_ns; /* 0 = timeout of downloads */
    unsigned attempts;   /* 0 = three */
    uint64_t max_size;   /* maximum size of the object; 0 = limit of downloads */
    bool unwrap;         /* decompress the contents */
    bool refuse_empty;   /* fail if the object is empty */
    bool refuse_pages;   /* fail if the response is a web page: servers that want a login send one */
    /* out */
    int status;         /* HTTP status of an error response; 0 = no error response */
    bool is_denied;     /* the object may be missing: S3 answers so if the credentials do not permit listing */
    int64_t modified_s; /* modification time of the object; 0 = unknown */
};

struct object_field { /* a metadata field of an object */
    const char *name; /* lower case */
    struct sl_str value;
};

enum { OBJECT_VERSION = 96 };
struct object_info {
    uint64_t size; /* stored size */
    bool is_gzip;
    bool has_md5; /* MD5 of the stored bytes */
    uint8_t md5[16];
    int64_t modified_s; /* 0 = unknown */
    /* Changes with the contents, for object_contents.if_version: the entity tag of S3 with its quotes, the generation of Google.
     * Empty: the server states none, or a longer one. */
    char version[OBJECT_VERSION];
};

struct object_contents {
    struct sl_bytes bytes;
    const char *media_type;
    const char *encoding; /* Content-Encoding; NULL = none */
    const struct object_field *metadata;
    size_t metadata_count;
    bool no_transform; /* Cache-Control: no-transform, so that proxies do not change the encoding */
    /* Fail if the object exists: the call's status is then 412 or 409, or 501 from a server without conditional
     * requests. */
    bool if_absent;
    /* Fail unless the object has this version (object_info): the call's status is then 412, 409, 404 or 501. NULL: no condition. */
    const char *if_version;
};

/* `call` may be NULL in all functions that follow. */

/* Downloads the object to the file `fd`, which must be empty. */
enum sl_code object_get(const struct object_store *store, struct sl_str name, int fd, struct object_store_call *call,
                        struct sl_error *error) SL_SUSPENDS;
/* Downloads the object to the file `fd`, which must be empty, and maps that; the caller unmaps it. */
enum sl_code object_get_mapped(const struct object_store *store, struct sl_str name, int fd, struct sl_mapping *mapping,
                               struct object_store_call *call, struct sl_error *error) SL_SUSPENDS;
/* Appends the object's contents to `text`. Fails if they are larger than call->max_size, by default 1 MiB. */
enum sl_code object_read(const struct object_store *store, struct sl_str name, struct sl_buf *text,
                         struct object_store_call *call, struct sl_error *error) SL_SUSPENDS;
/* Returns SL_OK if the object exists, SL_NOT_FOUND if it does not. */
enum sl_code object_exists(const struct object_store *store, struct sl_str name, struct object_store_call *call,
                           struct sl_error *error) SL_SUSPENDS;
/* Reads the properties of an object. Sets the values of the fields named in `metadata`; they lie in the arena. The value of a field that
 * the object lacks stays as the caller has set it. */
enum sl_code object_head(const struct object_store *store, struct sl_str name, struct sl_arena *arena,
                         struct object_info *info, struct object_field *metadata, size_t metadata_count,
                         struct sl_error *error) SL_SUSPENDS;
/* Stores an object. SL_DOWNLOAD_ERROR with status 404: the bucket does not exist. */
enum sl_code object_put(const struct object_store *store, struct sl_str name, const struct object_contents *contents,
                        struct object_store_call *call, struct sl_error *error) SL_SUSPENDS;
/* Stores the bytes of the file as an object; contents.bytes is ignored. Errors are those of object_put. */
enum sl_code object_put_file(const struct object_store *store, struct sl_str name, int fd,
                             struct object_contents contents, struct object_store_call *call,
                             struct sl_error *error) SL_SUSPENDS;
/* Deletes an object. SL_OK also if the object does not exist. */
enum sl_code object_delete(const struct object_store *store, struct sl_str name, struct object_store_call *call,
                           struct sl_error *error) SL_SUSPENDS;

/* Returns a URL with which anybody can get the object for `expires_s`; NULL: a bucket of Google, or no credentials. */
const char *object_url(const struct object_store *store, struct sl_str name, unsigned expires_s,
                       struct sl_arena *arena) SL_SUSPENDS;

struct object_entry { /* texts lie in the list's arena */
    struct sl_str name;
    struct sl_str modified; /* in the server's format; times of the same server sort as text */
};

enum { MAX_LISTED_OBJECTS = 1000 };

struct object_list {
    struct sl_arena arena;
    struct object_entry items[MAX_LISTED_OBJECTS];
    size_t count;
    bool more;             /* there are more objects */
    struct sl_str skipped; /* the bucket's configured prefix, which `items` do not contain */
    bool failed;           /* out of memory */
};

/* Lists objects sorted by name, at most MAX_LISTED_OBJECTS: those whose names begin with `prefix` and sort after
 * `after` (empty: all). Free the list with object_list_free(); after a failure it is empty. */
enum sl_code object_list(const struct object_store *store, struct sl_str prefix, struct sl_str after,
                         struct object_list *list, struct sl_error *error) SL_SUSPENDS;
void object_list_free(struct object_list *list);
