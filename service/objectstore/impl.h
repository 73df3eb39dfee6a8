/* What the files of objectstore share. Private to this folder. */
#pragma once

#include "fetch/fetch.h"
#include "objectstore/objectstore.h"

enum { OBJECT_HEADERS = 8, OBJECT_ANSWER_MAX = 1 << 20, OBJECT_LIST_BYTES = 8 << 20 };

/* ---- aws.c: where an object of S3 is, and its presigned URL ---- */
struct aws_signing {
    const char *method;
    struct sl_str scheme, host, path; /* "https://", as the Host field has it, percent-encoded by fetch_encode */
    struct sl_str region;
    struct aws_keys keys;
    int64_t now_s;
    unsigned expires_s;
    const char *operation;             /* x-id; NULL = none */
    const struct object_field *fields; /* of the head, that are signed, behind "host" in the order of their names */
    size_t field_count;
    const struct object_field *query; /* of the request, in the order of their names, which come behind "X-Amz-" */
    size_t query_count;
};

/* Scheme, host, path and region of the object that the bucket has by this name; texts in the arena. False when region or endpoint can
 * be no part of a URL, or when out of memory. */
bool aws_address(struct sl_arena *arena, const struct bucket_config *bucket, struct sl_str key,
                 struct aws_signing *out);

/* The signed URL: AWS Signature Version 4 in the query ("Authenticating Requests: Using Query Parameters", Amazon S3 API
 * Reference), payload unsigned. NULL when out of memory. */
const char *aws_presign(struct sl_arena *arena, const struct aws_signing *signing);
/* Appends "name=value", percent-encoded, to a query or a form. */
void aws_add_parameter(struct sl_buf *query, const char *name, struct sl_str value);

/* ---- objects.c ---- */
struct object_request {
    const struct object_store *store;
    struct object_call *call, usual;
    struct sl_str key; /* name of the object in the bucket, or what the names of a list begin with */
    struct sl_arena arena;
    struct fetch_request fetch;
    struct fetch_header headers[OBJECT_HEADERS];
    struct aws_signing signing; /* S3 */
    /* of object_head */
    struct object_info *info;
    struct object_field *metadata;
    size_t metadata_count;
    struct sl_arena *texts; /* for the metadata */
    const char *location;   /* of Google's uploads: where the contents go */
};

/* Sets the URL and the credentials. */
typedef enum sl_code object_prepare(struct object_request *request, struct sl_error *error) SL_SUSPENDS;

/* What S3 and Google do in their own ways. */
struct object_service {
    object_prepare *get;
    object_prepare *exists; /* succeeds, or is answered with more than its max_size, when the object is there */
    object_prepare *del;
    /* These run the request, too. */
    enum sl_code (*head)(struct object_request *request, struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*put)(struct object_request *request, const struct object_contents *contents,
                        struct sl_error *error) SL_SUSPENDS;
    enum sl_code (*list)(struct object_request *request, struct sl_str after, struct object_list *list,
                         struct sl_error *error) SL_SUSPENDS;
};
extern const struct object_service object_s3, object_gcs;

void object_header(struct object_request *request, const char *name, struct sl_str value);
/* Runs a request that is prepared; its answer is appended to `answer`, which may be NULL. */
enum sl_code object_run(struct object_request *request, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;
/* A field of the object's metadata, which is kept if it is one of those that are asked for. */
void object_take_field(struct object_request *request, struct sl_str name, struct sl_str value);
/* Notes an object that is listed; false when out of memory or when there are enough. */
bool object_list_add(struct object_list *list, struct sl_str name, struct sl_str modified);

/* ---- s3.c ---- */
struct sl_str s3_region(const struct bucket_config *config);
/* What an error answer of S3 means by the code that its XML has, which may be at odds with the status. */
enum sl_code s3_explain(int status, struct sl_str body, struct sl_error *error);

/* ---- credentials.c ---- */
enum sl_code credentials_aws(const struct object_store *store, struct sl_arena *arena, struct aws_keys *keys,
                             struct sl_error *error) SL_SUSPENDS;
/* The token, without "Bearer". */
enum sl_code credentials_google(const struct object_store *store, struct sl_arena *arena, struct sl_str *token,
                                struct sl_error *error) SL_SUSPENDS;
/* A variable of the environment; NULL: it is not set, or empty. */
const char *credentials_variable(const char *name);
/* A file of at most 64 KiB into an empty buffer; false with errno. Blocks. */
bool credentials_read_file(const char *path, struct sl_buf *out);

/* ---- aws_keys.c ---- */
/* Asks the machine for keys: access key, secret key and session token are appended, each with the null that ends it. `*life_s`: for how
 * long they are good. */
enum sl_code aws_keys_ask(const struct bucket_config *config, struct sl_buf *text, uint64_t *life_s,
                          struct sl_error *error) SL_SUSPENDS;

/* ---- google.c ----
 * Tokens for Google's APIs: a service account's key is exchanged for them ("Using OAuth 2.0 for server to server
 * applications", Google Identity; RFC 7523), or the machine's metadata server gives them ("Access tokens", Compute
 * Engine; GCE_METADATA_HOST in the environment names another one, as for Google's own libraries). */
enum { GOOGLE_TOKEN_LIFE_S = 58 * 60 }; /* of tokens got by a key, when the answer does not tell */

/* Reads a service account's key file; texts in the arena. SL_INTERNAL, SL_MALFORMED with the path. Blocks. */
enum sl_code google_account_read(const char *path, struct sl_arena *arena, struct google_account *account,
                                 struct sl_error *error);

/* Appends the signed assertion (RS256 of RFC 7518, 3.3) that a token is asked for with. False for a key that is none.
 * About a millisecond. */
bool google_assertion(const struct google_account *account, const char *scope, int64_t now_s, struct sl_buf *out);

/* Appends a token. `*life_s`: for how long it is good, 0 when that is not told. `label`: of the download's metrics. The
 * account must stay until it returns. SL_DOWNLOAD_ERROR "failed encoding JWT" or "failed to send authentication request"
 * with the reason, if there was one in the answer; SL_CANCELLED, SL_INTERNAL. */
enum sl_code google_token(const struct google_account *account, const char *scope, const char *label,
                          struct sl_buf *token, uint64_t *life_s, struct sl_error *error) SL_SUSPENDS;

/* ---- xml.c ----
 * Texts of documents in XML. Entities of a document's own, which could make little much, end the reading. */

/* Tells of each element when it ends: its name, how deep it is (the root: 1), and the text that stands in it directly, cut behind
 * 16 KiB. */
typedef void xml_listener(void *arg, const char *element, unsigned depth, struct sl_str text);

/* False when the text is no well-formed document, has a document type, or is too deep. */
bool xml_walk(struct sl_str xml, xml_listener *listener, void *arg);

struct xml_text {
    const char *name;
    unsigned depth; /* of the element; 0 = any */
    bool found;
    struct sl_buf text; /* of the first such element */
};
bool xml_texts(struct sl_str xml, struct xml_text *wanted, size_t count); /* false as xml_walk */
void xml_texts_free(struct xml_text *wanted, size_t count);               /* wipes them */
