/* The part of Sentry's API that sentry-cli uploads debug files to: chunks of at most 8 MiB, then a request to join them to files.
 *
 *     GET  /api/0/organizations/{org}/chunk-upload/                      limits of uploads (door.c, which has all routes)
 *     POST /api/0/organizations/{org}/chunk-upload/                      chunks, each named by its SHA-1 (chunks.c)
 *     POST /api/0/projects/{org}/{project}/files/difs/assemble/          joins chunks, lists missing ones (assemble.c)
 *     POST /api/0/organizations/{org}/artifactbundle/assemble/           joins chunks to an archive of JavaScript files
 *     GET  /api/0/projects/{org}/{project}/artifact-lookup/              finds archives of JavaScript files (lookup.c)
 *     POST, PUT, GET /api/0/projects/{org}/{project}/releases/...        names of releases, for sentry-cli 2 (releases.c)
 *
 * Organization and project are accepted and ignored: there is one store (debug_file_store/). */
#pragma once

#include "api/impl.h"
#include "base/json_write.h"
#include "debug_file_store/debug_file_store.h"

enum { SENTRY_CHUNK_SIZE = 8 << 20, SENTRY_MAX_CHUNKS = 64, SENTRY_MAX_REQUEST = 32 << 20, SHA1_HEX = 40 };

/* Replies `{"error": text}`. */
void sentry_reply_error(struct http_exchange *x, int status, const char *text);
/* True for 40 lower-case hex digits. */
bool sentry_is_sha1(struct sl_str text);
/* Returns the name of a chunk in the store, "chunks/<first two digits of sha1>/<sha1>"; data NULL when out of memory. */
struct sl_str sentry_chunk_name(struct sl_arena *arena, struct sl_str sha1);

http_handler sentry_receive_chunks;
void sentry_check_chunks(struct http_exchange *x);
http_handler sentry_assemble_debug_files;
http_handler sentry_assemble_bundle;
http_handler sentry_look_up_artifacts;
http_handler sentry_create_release, sentry_update_release, sentry_update_organization_release,
    sentry_list_release_files;
/* Writes a JSON member: the time `seconds`, since the epoch, as "<date>T<time>Z". */
void sentry_put_date(struct sl_json_writer *w, const char *key, uint64_t seconds);
/* Appends the URL of this request without its query. It begins with `upload.public_url`, if configured, else with the scheme and host that
 * the client used. */
void sentry_put_own_url(const struct http_exchange *x, struct sl_buf *out);

/* ---- releases.c ---- */

struct sentry_release { /* members of a request that creates or changes a release; data NULL: absent */
    struct sl_str version, released;
};
/* Reads the body of a request that creates or changes a release. False: `*problem` says what is wrong with the body, or is NULL when out of
 * memory. Pure. */
bool sentry_read_release(struct sl_str body, struct sl_arena *arena, struct sentry_release *release,
                         const char **problem);

/* ---- assembly.c: files that are being joined ---- */

struct assembly_file { /* a file of an assemble request */
    struct sl_str sha1, name, debug_id;
    struct sl_str *chunks;
    size_t chunk_count;
    bool is_bundle;              /* an archive of JavaScript files */
    struct sl_str release, dist; /* if is_bundle: release and distribution to which the files belong */
};

/* Reads the body of an assemble request. False: `*problem` says what is wrong with the body, or is NULL when out of memory. Pure. */
bool sentry_read_files(struct sl_str body, struct sl_arena *arena, struct assembly_file **files, size_t *count,
                       const char **problem);

enum sentry_state { SENTRY_NOT_FOUND, SENTRY_CREATED, SENTRY_ASSEMBLING, SENTRY_OK, SENTRY_ERROR };
extern const char *const sentry_state_words[]; /* the states as answers name them */

struct sentry_status {
    enum sentry_state state;
    struct sl_str *missing; /* SHA-1 of the chunks that have not been uploaded */
    size_t missing_count;
    struct sl_str detail;            /* SENTRY_ERROR: the reason; else data NULL */
    struct debug_file_record record; /* SENTRY_OK: the stored file */
};

/* Gets the state of a file of an assemble request. If all its chunks are uploaded and nothing joins them yet, starts to join them. Waits
 * for a running join until `until_ms` at most. `*status` is in the exchange's arena. SL_BUSY, SL_CANCELLED, and errors of the store. */
enum sl_code sentry_get_status(struct http_exchange *x, const struct assembly_file *file, uint64_t until_ms,
                               struct sentry_status *status, struct sl_error *error) SL_SUSPENDS;
/* Returns the time until which an assemble request that begins now waits for its files; clients repeat the request for those that are not
 * joined by then. */
uint64_t sentry_deadline_ms(void);
