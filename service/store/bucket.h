/* What stores in buckets share: requests for one object. Private to this folder. */
#pragma once

#include "fetch/fetch.h"
#include "store/impl.h"

enum { OBJECT_HEADERS = 8 };

struct object_request {
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
    /* Only prepares it; the URL stays NULL when there are no credentials (`error`) or there is no memory. */
    void (*get)(struct object_request *request, struct sl_str name, struct sl_error *error) SL_SUSPENDS;
    const char *(*url)(struct sl_str name, struct sl_arena *arena); /* for clients, good for an hour; NULL: none */
    bool (*source)(struct sl_arena *arena, struct sl_str prefix, struct source *source);
};

const struct store_backend *store_bucket_backend(const struct bucket_kind *kind);

void object_begin(struct object_request *request);
void object_end(struct object_request *request);
void object_header(struct object_request *request, const char *name, struct sl_str value);
/* SL_NOT_FOUND: 404. The answer's body is appended to `answer`, which may be NULL. */
enum sl_code object_run(struct object_request *request, struct sl_buf *answer, struct sl_error *error) SL_SUSPENDS;

/* `prefix`, which may be NULL, as directories in front of the name. */
struct sl_str store_prefixed(struct sl_arena *arena, const char *prefix, struct sl_str name);
bool store_parse_number(struct sl_str text, uint64_t *number);
