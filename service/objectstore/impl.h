/* Shared by the files of objectstore. Private to this folder. */
#pragma once

#include "fetch/fetch.h"
#include "objectstore/objectstore.h"

/* Most header fields of a request. Most bytes of a response, unless the request sets another limit. Most bytes of one page of a list. */
enum { OBJECT_HEADERS = 8, OBJECT_ANSWER_MAX = 1 << 20, OBJECT_LIST_BYTES = 8 << 20 };

/* ---- aws.c: addresses of S3 objects and presigned URLs ---- */
struct aws_signing {
    const char *method;
    struct sl_str scheme, host, path; /* "https://"; as in the Host field; percent-encoded by fetch_encode */
    struct sl_str region;
    struct aws_keys keys;
    int64_t now_s;
    unsigned expires_s;
    const char *operation;             /* query parameter x-id; NULL = none */
    const struct object_field *fields; /* signed header fields, sorted by name; all sort after "host" */
    size_t field_count;
    const struct object_field *query; /* further query parameters, sorted by name; all sort after "X-Amz-" */
    size_t query_count;
};

/* Sets scheme, host, path and region of an object of the bucket; texts lie in the arena. Returns false if region or
 * endpoint are invalid in a URL, or if out of memory. */
bool aws_address(struct sl_arena *arena, const struct bucket_config *bucket, struct sl_str key,
                 struct aws_signing *out);

/* Returns the signed URL: AWS Signature Version 4 in the query ("Authenticating Requests: Using Query Parameters",
 * Amazon S3 API Reference), payload unsigned. NULL if out of memory. */
const char *aws_presign(struct sl_arena *arena, const struct aws_signing *signing);
/* Appends "name=value", percent-encoded, to a query or a form. */
void aws_add_parameter(struct sl_buf *query, const char *name, struct sl_str value);

/* ---- objects.c ---- */
struct bucket_request {
    const struct object_store *store;
    struct object_store_call *call, usual;
    struct sl_str key; /* name of the object in the bucket; for lists the prefix of the names */
    struct sl_arena arena;
    struct fetch_request fetch;
    struct fetch_header headers[OBJECT_HEADERS];
    struct aws_signing signing; /* S3 */
    /* for object_head() */
    struct object_info *info;
    struct object_field *metadata;
    size_t metadata_count;
    struct sl_arena *texts; /* arena of the metadata values */
    const char *location;   /* Google's uploads: URL of the upload session */
    bool no_memory;         /* `location` could not be stored */
};

/* Sets the URL and the credentials of a request. */
typedef enum sl_code object_prepare(struct bucket_request *request, struct sl_error *error) SL_SUSPENDS;

/* Operations that differ between S3 and Google. get, exists and del only prepare a request. */
struct object_service {
    object_prepare *get;
    object_prepare *exists; /* the object exists if this request succeeds, or its response is larger than max_size */
    object_prepare *del;
    /* These also run the request. */
    enum sl_code (*head)(struct bucket_request *request, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(struct bucket_request *request, const struct object_contents *contents,
                        struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*list)(struct bucket_request *request, struct sl_str after, struct object_list *list,
                         struct sl_error *error) SL_SUSPENDS;
};
extern const struct object_service object_s3, object_gcs;

/* Adds a header to the request; neither name nor value is copied. */
void object_header(struct bucket_request *request, const char *name, struct sl_str value);
/* Runs a prepared request and appends the response body to `answer`, which may be NULL. */
enum sl_code object_run(struct bucket_request *request, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
/* Stores a metadata field of the object if the caller of object_head asked for one of this name. */
void object_set_metadata(struct bucket_request *request, struct sl_str name, struct sl_str value);
/* Adds an object to a list, unless its name lacks the bucket's prefix. False when out of memory, which sets `failed`, or if the list is
 * full, which sets `more`. */
bool object_list_add(struct object_list *list, struct sl_str name, struct sl_str modified);

/* ---- s3.c ---- */
struct sl_str s3_region(const struct bucket_config *config); /* "us-east-1" if none is configured */
/* Converts an error response of S3 to a code and message. The error code in its XML decides, even against the HTTP status. */
enum sl_code s3_explain(int status, struct sl_str body, struct sl_error *error);

/* ---- credentials.c ---- */
/* Sets `*keys` to the keys of the store: those configured, or else cached or new ones of the machine, in the arena. */
enum sl_code credentials_aws(const struct object_store *store, struct sl_arena *arena, struct aws_keys *keys,
                             struct sl_error *error) SL_SUSPENDS;
/* Sets `*token` to an access token, without "Bearer": the one configured, or else a cached or new one, in the arena. */
enum sl_code credentials_google(const struct object_store *store, struct sl_arena *arena, struct sl_str *token,
                                struct sl_error *error) SL_SUSPENDS;
/* Returns an environment variable; NULL if it is not set or empty. */
const char *credentials_variable(const char *name);
/* Reads a file of at most 64 KiB into an empty buffer; on failure returns false and sets errno. Blocks. */
bool credentials_read_file(const char *path, struct sl_buf *out);

/* ---- aws_keys.c ---- */
/* Requests keys from the machine's credential provider, which `config` names. Appends access key, secret key and session token, each with
 * its terminating NUL. `*life_s`: their lifetime in seconds. */
enum sl_code aws_keys_get(const struct bucket_config *config, struct sl_buf *text, uint64_t *life_s,
                          struct sl_error *error) SL_SUSPENDS;

/* ---- google.c ----
 * Tokens for Google's APIs. They are obtained with a service account's key ("Using OAuth 2.0 for server to server applications", Google
 * Identity; RFC 7523) or from the machine's metadata server ("Access tokens", Compute Engine; the environment variable GCE_METADATA_HOST
 * names another server, as for Google's own libraries). */
enum { GOOGLE_TOKEN_LIFE_S = 58 * 60 }; /* lifetime of tokens obtained with a key, if the response states none */

/* Reads the key file of a service account; texts lie in the arena. SL_INTERNAL if it cannot be read, SL_MALFORMED if it is not such a file
 * (both messages have the path); SL_BUSY when out of memory. Blocks. */
enum sl_code google_account_read(const char *path, struct sl_arena *arena, struct google_account *account,
                                 struct sl_error *error);

/* Appends the signed assertion (RS256, RFC 7518, 3.3) for a token request. Returns false if the key is invalid.
 * Takes about a millisecond. */
bool google_assertion(const struct google_account *account, const char *scope, int64_t now_s, struct sl_buf *out);

/* Appends a token. `*life_s`: its lifetime, 0 if unknown. `label`: label of the download's metrics. The account must stay
 * until it returns. SL_DOWNLOAD_ERROR "failed encoding JWT" or "failed to send authentication request", with the reason
 * from the response if there is one; SL_CANCELLED, SL_BUSY, SL_INTERNAL. */
enum sl_code google_token(const struct google_account *account, const char *scope, const char *label,
                          struct sl_buf *token, uint64_t *life_s, struct sl_error *error) SL_SUSPENDS;

/* ---- xml.c ----
 * Texts of XML documents. Documents with a document type are rejected, because entity definitions can expand a small document
 * without limit. */

/* Called at the end of each element with its name, its depth (the root: 1), and its direct text, of which at most 16 KiB are kept. */
typedef void xml_listener(void *arg, const char *element, unsigned depth, struct sl_str text);

/* SL_MALFORMED if the text is not well-formed, has a document type, or is nested too deeply; SL_BUSY when out of memory. */
enum sl_code xml_walk(struct sl_str xml, xml_listener *listener, void *arg);

struct xml_text {
    const char *name;
    unsigned depth; /* depth of the element; 0 = any */
    bool found;
    struct sl_buf text; /* text of the first such element */
};
/* Stores the text of the first element of each name and depth in `wanted`. Errors are those of xml_walk(). */
enum sl_code xml_texts(struct sl_str xml, struct xml_text *wanted, size_t count);
void xml_texts_free(struct xml_text *wanted, size_t count); /* wipes the texts */
