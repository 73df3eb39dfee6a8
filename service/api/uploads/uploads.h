/* The API of Mozilla's symbol server (https://symbols.mozilla.org/): builds upload symbols, clients download them. store/ stores the
 * files; this folder has the tokens of clients (token.c), names of files in the store, called keys (key.c), uploaded archives and their
 * members (archive.c, member.c), the metadata of symbol files (codeinfo.c), and the answers. */
#pragma once

#include "api/impl.h"
#include "conversion/archives.h"
#include "symbfile_store/symbfile_store.h"
#include "source/zip.h"
#include "store/store.h"

/* upload.c: returns an id that is unique in this process: microseconds since the epoch, or the last id plus 1 if that is larger. Below
 * 2^53, which JSON readers can represent, until the year 2255. */
uint64_t uploads_next_id(void);

/* ---- token.c ---- */

/* Finds the token that the request sends (header Auth-Token); `*token` is NULL if it sends none. False: the token is invalid, and 403 or
 * 429 is answered. */
bool uploads_get_token(struct http_exchange *x, const struct mozilla_token **token);
/* Finds the request's token, which must be allowed to upload. False: there is none, or it is invalid or not allowed; 403 or 429 is
 * answered. */
bool uploads_authorize(struct http_exchange *x, const struct mozilla_token **token);
/* Answers `{"error": "..."}`. */
void uploads_reply_error(struct http_exchange *x, int status, struct sl_str text);
/* http_family.error: answers an error in the format of Mozilla's symbol server. `detail` NULL: the text for the status. */
void uploads_error(struct http_exchange *x, int status, const char *detail);
/* Reads and drops the rest of the body, so that the client gets the answer that follows. */
void uploads_discard_body(struct http_exchange *x) SL_SUSPENDS;
bool uploads_find(const struct http_exchange *x); /* http_route.there: true if a store is configured */

/* Gets the scope of a token's uploads: a directory name of the store (symbfile_scope); empty: shared by all. */
void uploads_get_scope(const struct http_exchange *x, const struct mozilla_token *token, char scope[SYMBFILE_SCOPE]);
/* Lists the scopes that a request may read besides the shared one: that of its token, or without a token those of its access key. The list
 * is in the exchange's arena. False when out of memory. */
bool uploads_list_scopes(struct http_exchange *x, const struct mozilla_token *token, char (**scopes)[SYMBFILE_SCOPE],
                         size_t *count);

/* ---- record.c: records of finished uploads, to be queried later ---- */

/* Stores the record of an upload, a JSON document whose member `upload.user` uploads_write_user has written. */
enum sl_code uploads_record_put(const char *scope, enum store_part part, uint64_t id, struct sl_str record,
                                struct sl_error *error) SL_SUSPENDS;
void uploads_write_user(struct sl_json_writer *w, const struct mozilla_token *token);
http_handler uploads_record_get; /* GET /api/uploads/upload/{id} */

/* ---- key.c: pure ---- */

/* Checks a name `<debug file>/<hex digits>/<file>` and makes the key of it: the same with the digits in upper case; in the arena. False:
 * the name has another form (`key->size` is 0), or out of memory (`key->size` is not 0). */
bool uploads_normalize_key(struct sl_arena *arena, struct sl_str name, struct sl_str *key);
/* Makes a key from its three parts. False: a part is invalid, for example has a slash (`key->size` is 0), or out of memory (not 0). */
bool uploads_make_key(struct sl_arena *arena, const struct sl_str parts[3], struct sl_str *key);
/* True if the configuration says that a file of this name is stored gzip-compressed. */
bool uploads_is_packed(const struct config_store *config, struct sl_str name);
/* Returns the media type of a file of this name; NULL when out of memory. */
const char *uploads_media_type(const struct config_store *config, struct sl_str name, struct sl_arena *arena);
/* Returns the name of an object in the store: "scopes/<scope>/" unless `scope` is empty, then `prefix` and `rest`. Data NULL when out of
 * memory. */
struct sl_str uploads_name(struct sl_arena *arena, const char *scope, const char *prefix, struct sl_str rest);

/* ---- archive.c ---- */

struct uploads_failure {
    int status;         /* 0: none */
    struct sl_str text; /* in the archive's arena */
};

struct archive_member {
    const struct sl_zip_entry *entry;
    struct sl_str key;       /* name in the store (key.c) */
    bool is_packed;          /* to be stored gzip-compressed */
    uint8_t md5[16];         /* of the decompressed contents */
    uint64_t used;           /* bytes of the archive that its compressed data takes */
    struct sl_str location;  /* set when stored: the location as cache entries name it; else data NULL */
    uint64_t stored_size;    /* set when stored: bytes of the object */
    bool skipped, is_update; /* skipped: the store has the same file; is_update: it had other contents under the key */
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

/* Returns where the archive lies in `archive->body`, as the form that contains it may have other parts. */
struct archive_window archive_window_of(const struct archive *archive);

/* Sets `archive->failure`, with the HTTP status for the client; always returns false. */
bool archive_fail(struct archive *archive, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Has a converter write the ZIP directory of the archive into a new file, `*entries`, which the caller closes. False: `failure` is set. */
bool archive_list_directory(struct archive *archive, int *entries) SL_SUSPENDS;
/* Reads the file `entries` of archive_list_directory, checks names and sizes of the members, but not their contents, and sets `members` and
 * `ignored`. False: `failure` is set. Pool. */
bool archive_read_directory(struct archive *archive, int entries);

/* ---- member.c ---- */

struct member_job {
    const struct archive *archive;
    struct archive_member *member;
    /* the result. SL_MALFORMED: contents differ from the archive's directory; SL_PERMISSION_DENIED: contains `snippet` */
    enum sl_code code;
    struct sl_error error;
    struct store_tmp_file work; /* the member as it is to be stored */
    struct store_meta meta;     /* of `work` */
    struct sl_buf info;         /* metadata of a symbol file as JSON; empty: none */
    struct sl_str snippet;      /* the text that was found, but is forbidden by the configuration */
    int head;                   /* file with the beginning of the contents, while `info` is read */
    struct sl_arena *arena;     /* arena of `names` */
    struct sl_str names[2];     /* names under which `info` is stored: "<file>/<ID>" */
};

/* Decompresses the member and searches it for forbidden texts; sets md5 and used of `member`. */
void member_check(struct member_job *job) SL_SUSPENDS;
/* Writes a member that was checked to a temporary file; sets work, meta, info and names of `job`. */
void member_write(struct member_job *job) SL_SUSPENDS;

/* ---- codeinfo.c: pure ---- */

/* Reads the header of a Breakpad symbol file and appends it to `out` as JSON. Sets the names under which the JSON is to be stored,
 * "<file>/<ID>": names[0] by the debug id, names[1] by the code id (empty: none); in the arena. False: not a symbol file, or out of memory.
 * When out of memory, whether true or false is returned, out->failed is set. */
bool codeinfo_read(struct sl_str head, struct sl_str key, struct sl_arena *arena, struct sl_buf *out,
                   struct sl_str names[2]);

/* ---- extra.c ---- */

/* Finds the first store of mozilla.store.extra that has the file, and sets the file's URL there. SL_NOT_FOUND: none has it; other codes:
 * unknown, as a store could not be queried. */
enum sl_code uploads_find_extra(const struct config_store *config, struct sl_str key, struct sl_arena *arena,
                                const char **url) SL_SUSPENDS;

/* ---- publish.c ---- */

/* Stores the members of a checked archive that are not in the store yet, and invalidates cache entries about them on all nodes. SL_OK, or
 * the error at which it ended; members stored before that stay. */
enum sl_code uploads_publish(struct archive *archive, enum store_part part, struct sl_error *error) SL_SUSPENDS;
/* Stores the only member of `archive`, which was written to `job->work` (with meta, info and names set), and invalidates cache entries
 * about it. */
enum sl_code uploads_publish_one(struct archive *archive, enum store_part part, struct member_job *job,
                                 struct sl_error *error) SL_SUSPENDS;
enum uploads_found { UPLOADS_FOUND_NONE, UPLOADS_FOUND_OTHER, UPLOADS_FOUND_SAME };
/* Checks what the store has under a key in the scope. UPLOADS_FOUND_SAME: a file of this size and MD5 in `part` or, for try builds, in the
 * part of releases; UPLOADS_FOUND_OTHER: `part` has a file with other contents. `packed_size`: size as a gzip file of the store, 0 if
 * unknown; it is compared if the store does not know size and MD5 of a compressed file's contents. */
enum sl_code uploads_find_duplicate(const struct config_store *config, const char *scope, enum store_part part,
                                    struct sl_str key, uint64_t size, const uint8_t md5[16], uint64_t packed_size,
                                    enum uploads_found *found, struct sl_error *error) SL_SUSPENDS;
