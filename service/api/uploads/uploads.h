/* Mozilla's symbol server (https://symbols.mozilla.org/): builds upload symbols, clients download them. store/ stores the
 * files; this folder has permissions (token.c), keys (key.c), archives and members (archive.c, member.c), the metadata of symbol files
 * (codeinfo.c), and the answers. */
#pragma once

#include "api/impl.h"
#include "conversion/archives.h"
#include "symbfile_store/symbfile_store.h"
#include "source/zip.h"
#include "store/store.h"

/* Returns a unique id: microseconds since the epoch, increased if needed; below 2^53 until 2255. upload.c */
uint64_t uploads_next_id(void);

/* ---- token.c ---- */

/* Finds the request's token; `*token` is NULL if it sends none. False: the token is invalid, and it is answered. */
bool uploads_get_token(struct http_exchange *x, const struct mozilla_token **token);
/* Does the same as uploads_get_token; there must be a token, and it must be allowed to upload. */
bool uploads_authorize(struct http_exchange *x, const struct mozilla_token **token);
/* Answers `{"error": "..."}`. */
void uploads_reply_error(struct http_exchange *x, int status, struct sl_str text);
void uploads_error(struct http_exchange *x, int status, const char *detail); /* http_family.error */
/* Reads and drops the rest of the body, so that the client gets the answer that follows. */
void uploads_discard_body(struct http_exchange *x) SL_SUSPENDS;
bool uploads_find(const struct http_exchange *x); /* http_route.there */

/* Gets the scope of a token's uploads: a directory name of the store (symbfile_scope); empty: shared by all. */
void uploads_get_scope(const struct http_exchange *x, const struct mozilla_token *token, char scope[SYMBFILE_SCOPE]);
/* Lists the scopes that a request may read besides the shared one: that of its token, or those of its access key; in the
 * arena. False when out of memory. */
bool uploads_list_scopes(struct http_exchange *x, const struct mozilla_token *token, char (**scopes)[SYMBFILE_SCOPE],
                         size_t *count);

/* ---- record.c: records of finished uploads, to be queried later ---- */

/* Stores the JSON document of an upload; it names its user as uploads_write_user does. */
enum sl_code uploads_record_put(const char *scope, enum store_part part, uint64_t id, struct sl_str record,
                                struct sl_error *error) SL_SUSPENDS;
void uploads_write_user(struct sl_json_writer *w, const struct mozilla_token *token);
http_handler uploads_record_get; /* GET /api/uploads/upload/{id} */

/* ---- key.c: pure ---- */

/* Checks a name `<debug file>/<hex>/<file>` and makes the key, with the id in upper case, in the arena. False: not such a name,
 * or, if `key->size` is not 0, out of memory. */
bool uploads_normalize_key(struct sl_arena *arena, struct sl_str name, struct sl_str *key);
/* Makes a key from its three parts, none of which may have a slash. False as above. */
bool uploads_make_key(struct sl_arena *arena, const struct sl_str parts[3], struct sl_str *key);
/* uploads_is_packed: true if a file of this name is stored compressed; and its media type in the store. */
bool uploads_is_packed(const struct config_store *config, struct sl_str name);
const char *uploads_media_type(const struct config_store *config, struct sl_str name, struct sl_arena *arena);
/* Returns an object name: the scope's directory if any, a prefix of the store, and `rest`. Data NULL when out of memory. */
struct sl_str uploads_name(struct sl_arena *arena, const char *scope, const char *prefix, struct sl_str rest);

/* ---- archive.c ---- */

struct uploads_failure {
    int status;         /* 0: none */
    struct sl_str text; /* in the archive's arena */
};

struct archive_member {
    const struct sl_zip_entry *entry;
    struct sl_str key;
    bool is_packed; /* stored compressed */
    uint8_t md5[16];
    uint64_t used;           /* bytes of the archive that its compressed data takes */
    struct sl_str location;  /* set when stored: the location as cache entries name it; else data NULL */
    uint64_t stored_size;    /* set when stored: bytes of the object */
    bool skipped, is_update; /* skipped: the store has the same file; is_update: it has other contents */
};

struct archive {
    struct sl_arena *arena;
    const struct config_store *config;
    char scope[SYMBFILE_SCOPE]; /* uploads_get_scope */
    struct sl_mapping body;     /* the request's body, or the downloaded file */
    int fd;                     /* of `body`; -1 = the archive is in memory alone */
    struct sl_str filename;
    struct sl_bytes bytes; /* view of `body` */
    struct sl_zip zip;
    struct archive_member *members; /* members to store, in the archive's order */
    size_t count;
    struct sl_str *ignored; /* names of files that are not stored */
    size_t ignored_count;
    struct uploads_failure failure;
};

/* Returns where the archive lies in `body`. */
struct archive_window archive_window_of(const struct archive *archive);

/* Sets `failure`; always returns false. */
bool archive_fail(struct archive *archive, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Lists the directory of `bytes` in a new file, which the caller closes. False: `failure`. */
bool archive_list_directory(struct archive *archive, int *entries) SL_SUSPENDS;
/* Reads that file, and checks names and sizes, not contents. False: `failure`. Pool. */
bool archive_read_directory(struct archive *archive, int entries);

/* ---- member.c ---- */

struct member_job {
    const struct archive *archive;
    struct archive_member *member;
    /* SL_MALFORMED: contents differ from the archive's directory; SL_PERMISSION_DENIED: contains a forbidden snippet */
    enum sl_code code;
    struct sl_error error;
    struct store_tmp_file work;
    struct store_meta meta;
    struct sl_buf info; /* metadata of a symbol file as JSON; empty: none */
    struct sl_str snippet;
    int head;               /* file with the beginning of the contents, while `info` is read */
    struct sl_arena *arena; /* arena of `names` */
    struct sl_str names[2]; /* names under which `info` is stored: "<file>/<ID>" */
};

void member_check(struct member_job *job) SL_SUSPENDS; /* sets md5 and used */
void member_write(struct member_job *job) SL_SUSPENDS; /* sets work, meta and info */

/* ---- codeinfo.c: pure ---- */

/* Reads the header of a symbol file into `info`. False: not a symbol file, or `info` has failed: out of memory. names[0]: object name by
 * debug id; names[1]: by code id, empty if there is none. All in the arena. */
bool codeinfo_read(struct sl_str head, struct sl_str key, struct sl_arena *arena, struct sl_buf *info,
                   struct sl_str names[2]);

/* ---- extra.c ---- */

/* Finds the first extra store with the file and its URL. SL_NOT_FOUND: none has it; other codes: unknown, a store could not be
 * queried. */
enum sl_code uploads_find_extra(const struct config_store *config, struct sl_str key, struct sl_arena *arena,
                                const char **url) SL_SUSPENDS;

/* ---- publish.c ---- */

/* Stores the members that are not in the store yet, and invalidates cache entries on this node and others. SL_OK, or why it
 * ended early; members stored before stay. */
enum sl_code uploads_publish(struct archive *archive, enum store_part part, struct sl_error *error) SL_SUSPENDS;
/* Does the same for one member that was written (its work file, meta, info and names). */
enum sl_code uploads_publish_one(struct archive *archive, enum store_part part, struct member_job *job,
                                 struct sl_error *error) SL_SUSPENDS;
enum uploads_found { UPLOADS_FOUND_NONE, UPLOADS_FOUND_OTHER, UPLOADS_FOUND_SAME };
/* Checks if the scope's uploads have an object of this key, size and MD5 (at the upload's place or an earlier one):
 * UPLOADS_FOUND_SAME; or another object at the upload's place: UPLOADS_FOUND_OTHER. */
enum sl_code uploads_find_duplicate(const struct config_store *config, const char *scope, enum store_part part,
                                    struct sl_str key, uint64_t size, const uint8_t md5[16], uint64_t packed_size,
                                    enum uploads_found *found, struct sl_error *error) SL_SUSPENDS;
