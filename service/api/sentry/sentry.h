/* The part of Sentry's API that sentry-cli uploads debug files to: pieces of at most 8 MiB, then a request to join them.
 *
 *     GET  /api/0/organizations/{org}/chunk-upload/                      limits of uploads (door.c, with the routes of all)
 *     POST /api/0/organizations/{org}/chunk-upload/                      pieces, each named by its SHA-1 (chunks.c)
 *     POST /api/0/projects/{org}/{project}/files/difs/assemble/          joins them, tells what is missing (assemble.c)
 *     POST /api/0/organizations/{org}/artifactbundle/assemble/           the same for an archive of JavaScript files
 *     GET  /api/0/projects/{org}/{project}/artifact-lookup/              finds such archives (lookup.c)
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
/* "chunks/<aa>/<sha1>"; data NULL when out of memory. */
struct sl_str sentry_chunk_name(struct sl_arena *arena, struct sl_str sha1);

http_handler sentry_receive_chunks;
void sentry_check_chunks(struct http_exchange *x);
http_handler sentry_assemble_debug_files;
http_handler sentry_assemble_bundle;
http_handler sentry_look_up_artifacts;
http_handler sentry_create_release, sentry_update_release, sentry_update_organization_release,
    sentry_list_release_files;
/* Writes a member "<date>T<time>Z" of seconds since the epoch. */
void sentry_put_date(struct sl_json_writer *w, const char *key, uint64_t seconds);
/* Appends the URL of this request, without its query: below `upload.public_url`, or as the client addressed the service. */
void sentry_put_own_url(const struct http_exchange *x, struct sl_buf *out);

/* ---- releases.c ---- */

struct sentry_release { /* what a client says of a release; data NULL: nothing */
    struct sl_str version, released;
};
/* Reads the body of a request that creates or changes a release. False: `*problem` says why; NULL: out of memory. Pure. */
bool sentry_read_release(struct sl_str body, struct sl_arena *arena, struct sentry_release *release,
                         const char **problem);

/* ---- assembly.c: files that are being joined ---- */

struct assembly_file { /* a file of an assemble request */
    struct sl_str sha1, name, debug_id;
    struct sl_str *chunks;
    size_t chunk_count;
    bool is_bundle; /* of a JavaScript release: */
    struct sl_str release, dist;
};

/* Reads the body of an assemble request. False: `*problem` says why; NULL: out of memory. Pure. */
bool sentry_read_files(struct sl_str body, struct sl_arena *arena, struct assembly_file **files, size_t *count,
                       const char **problem);

enum sentry_state { SENTRY_NOT_FOUND, SENTRY_CREATED, SENTRY_ASSEMBLING, SENTRY_OK, SENTRY_ERROR };
extern const char *const sentry_state_words[];

struct sentry_status {
    enum sentry_state state;
    struct sl_str *missing; /* SHA-1 of chunks */
    size_t missing_count;
    struct sl_str detail;            /* SENTRY_ERROR: the reason; else data NULL */
    struct debug_file_record record; /* SENTRY_OK */
};

/* Says what is known of the file, or begins to join its chunks, if all are here, and waits for the end until `until_ms`. SL_BUSY,
 * SL_CANCELLED, and errors of the store. The answer is in the arena. */
enum sl_code sentry_get_status(struct http_exchange *x, const struct assembly_file *file, uint64_t until_ms,
                               struct sentry_status *status, struct sl_error *error) SL_SUSPENDS;
/* Until when a request waits for all its files together: clients ask again. */
uint64_t sentry_deadline_ms(void);
