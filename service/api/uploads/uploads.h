/* Mozilla's symbol server (https://symbols.mozilla.org/): uploads of symbols by builds, and their downloads. What was uploaded
 * lies in store/; here is who may upload (token.c), what keys are (key.c), archives and their members (archive.c, member.c),
 * what symbol files say of themselves (codeinfo.c), and the answers. */
#pragma once

#include "api/impl.h"
#include "symbfile_store/symbfile_store.h"
#include "source/zip.h"
#include "store/store.h"

/* Microseconds since the epoch, never the same twice: below 2^53 until 2255. upload.c */
uint64_t uploads_id(void);

/* ---- token.c ---- */

/* The request's token; NULL: it has none. False: answered, as it is a bad one. */
bool uploads_token(struct http_exchange *x, const struct mozilla_token **token);
/* The same, and it may upload. */
bool uploads_authorize(struct http_exchange *x, const struct mozilla_token **token);
/* `{"error": "..."}` */
void uploads_reply_error(struct http_exchange *x, int status, struct sl_str text);
void uploads_error(struct http_exchange *x, int status, const char *detail); /* http_family.error */
/* Reads the body to its end, so that the client sees the answer that follows. */
void uploads_discard_body(struct http_exchange *x) SL_SUSPENDS;
bool uploads_there(const struct http_exchange *x); /* http_route.there */

/* Whose the uploads of a token are: the name of a directory of the store (symbfile_scope); empty: everybody's. */
void uploads_scope_of(const struct http_exchange *x, const struct mozilla_token *token, char scope[SYMBFILE_SCOPE]);
/* Whose uploads a request may read besides everybody's: that of its token, or those of its access key, in the arena. */
size_t uploads_scopes_of(struct http_exchange *x, const struct mozilla_token *token, char (**scopes)[SYMBFILE_SCOPE]);

/* ---- record.c: what an upload did, for those who ask later ---- */

/* Keeps the JSON document of an upload, that tells its user as uploads_write_user does. */
enum sl_code uploads_record_put(const char *scope, enum store_part part, uint64_t id, struct sl_str record,
                                struct sl_error *error) SL_SUSPENDS;
void uploads_write_user(struct sl_json_writer *w, const struct mozilla_token *token);
http_handler uploads_record_get; /* GET /api/uploads/upload/{id} */

/* ---- key.c: pure ---- */

/* `<debug file>/<hex>/<file>`: the key with its id in upper case, in the arena. False when the name is none, or no memory. */
bool uploads_key(struct sl_arena *arena, struct sl_str name, struct sl_str *key);
/* The same of its parts, none of which may have a slash. */
bool uploads_key_of(struct sl_arena *arena, const struct sl_str parts[3], struct sl_str *key);
/* Whether a file of this name is compressed in the store, and its media type there. */
bool uploads_is_packed(const struct config_store *config, struct sl_str name);
const char *uploads_media_type(const struct config_store *config, struct sl_str name, struct sl_arena *arena);
/* The name of an object: the scope's directory if there is one, a prefix of the store, and what follows it. data NULL when out of
 * memory. */
struct sl_str uploads_name(struct sl_arena *arena, const char *scope, const char *prefix, struct sl_str rest);

/* ---- archive.c: pure ---- */

struct uploads_failure {
    int status;         /* 0: none */
    struct sl_str text; /* in the archive's arena */
};

struct archive_member {
    const struct sl_zip_entry *entry;
    struct sl_str key;
    bool is_packed; /* in the store */
    uint8_t md5[16];
    uint64_t used;           /* of the packed bytes in the archive */
    struct sl_str location;  /* once it is stored: as cache entries name it; else data NULL */
    uint64_t stored_size;    /* likewise; bytes of the object */
    bool skipped, is_update; /* was in the store: the same, or other contents */
};

struct archive {
    struct sl_arena *arena;
    const struct config_store *config;
    char scope[SYMBFILE_SCOPE]; /* whose it is: uploads_scope_of */
    struct sl_mapping body;     /* of the request, or the file that was downloaded */
    struct sl_str filename;
    struct sl_bytes bytes; /* the archive, of the body */
    struct sl_zip zip;
    struct archive_member *members; /* those that are stored, in the archive's order */
    size_t count;
    struct sl_str *ignored; /* names of files that have no place in the store */
    size_t ignored_count;
    struct uploads_failure failure;
};

/* False, always. */
bool uploads_fail(struct archive *archive, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reads the directory of `bytes` and checks names and sizes; contents are not looked at. False: `failure`. */
bool archive_read(struct archive *archive);

/* ---- member.c: pool ---- */

struct member_job {
    const struct archive *archive;
    struct archive_member *member;
    enum sl_code
        code; /* SL_MALFORMED: not what the archive promises; SL_PERMISSION_DENIED: has a snippet that is not allowed */
    struct sl_error error;
    struct store_work work;
    struct store_meta meta;
    struct sl_buf info; /* of symbol files: what they say of themselves, as JSON; empty: nothing */
    struct sl_str snippet;
    struct sl_arena *arena; /* of `names` */
    struct sl_str names[2]; /* under which it is kept: "<file>/<ID>" */
};

void member_check(void *job); /* sets md5 and used */
void member_write(void *job); /* sets work, meta and info */

/* ---- codeinfo.c: pure ---- */

/* Reads the beginning of a symbol file. False: it does not begin like one. `names`: by debug id and by code id; the second is
 * empty if there is none. All in the arena. */
bool codeinfo_read(struct sl_str head, struct sl_str key, struct sl_arena *arena, struct sl_buf *info,
                   struct sl_str names[2]);

/* ---- extra.c ---- */

/* The URL of the file at the first other store that has it. SL_NOT_FOUND: none has; another code: that is not known, as one could
 * not be asked. */
enum sl_code uploads_find_extra(const struct config_store *config, struct sl_str key, struct sl_arena *arena,
                                const char **url) SL_SUSPENDS;

/* ---- publish.c ---- */

/* Stores the members that are not there yet, and makes this node and others forget what they knew of them. SL_OK, or why it ended
 * early; what was stored stays. */
enum sl_code uploads_publish(struct archive *archive, enum store_part part, struct sl_error *error) SL_SUSPENDS;
/* Publishes what was written for one member (its work file, meta, info and names) in the same way. */
enum sl_code uploads_publish_one(struct archive *archive, enum store_part part, struct member_job *job,
                                 struct sl_error *error) SL_SUSPENDS;
enum uploads_found { UPLOADS_FOUND_NONE, UPLOADS_FOUND_OTHER, UPLOADS_FOUND_SAME };
/* Among the uploads of the scope: whether the object of this key, size and MD5 is in the store already, where the upload would put
 * it or before that; or another where it would be put. */
enum sl_code uploads_find_same(const struct config_store *config, const char *scope, enum store_part part,
                               struct sl_str key, uint64_t size, const uint8_t md5[16], uint64_t packed_size,
                               enum uploads_found *found, struct sl_error *error) SL_SUSPENDS;
