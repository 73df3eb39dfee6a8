/* Requests to join the chunks of debug files, and their answers:
 *
 *     {"<sha1 of the file>": {"name": "app.debug", "debug_id": "...", "chunks": ["<sha1>", ...]}, ...}
 *     {"<sha1 of the file>": {"state": "ok", "missingChunks": [], "detail": null, "dif": {...}}, ...} */
#include "api/sentry/sentry.h"

#include <stdio.h>
#include <time.h>

#include "base/json_fields.h"
#include "base/json_write.h"
#include "core/log.h"
#include "core/pool.h"

enum { MAX_FILES = 10000, MAX_FILE_CHUNKS = 100000 }; /* limits of one request */

/* Reads a SHA-1, the name of a chunk or a bundle. */
static bool read_chunk_name(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str *sha1 = out;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, out))
        return false;
    return sentry_is_sha1(*sha1) || sl_fields_fail(s, at, where, "is not a SHA-1 of 40 lower-case hex digits");
}

static const struct sl_field file_fields[] = {
    SL_FIELD(TEXT, true, assembly_file, name, "name"),
    SL_FIELD(TEXT, false, assembly_file, debug_id, "debug_id"),
    SL_FIELD_EACH(true, assembly_file, chunks, chunk_count, "chunks", read_chunk_name),
    SL_FIELDS_END,
};

/* Parses key by key. The problem of most failures is the parser's text; `busy` marks a lack of memory, which has none. */
bool sentry_read_files(struct sl_str body, struct sl_arena *arena, struct assembly_file **files, size_t *count,
                       const char **problem)
{
    struct sl_json json = sl_json(body, arena, false);
    struct sl_fields s = {.json = &json};
    struct sl_str key;
    struct sl_arena_array read = {.arena = arena, .item = sizeof(struct assembly_file)};
    *problem = NULL;
    bool good = sl_json_object(&json);
    while (good && sl_json_next(&json, &key)) {
        struct sl_json_path at = {.key = key};
        struct assembly_file file = {.sha1 = key}, *added = NULL;
        if (read.count == MAX_FILES || !sentry_is_sha1(key))
            *problem = read.count == MAX_FILES ? "too many files in one request"
                                               : "a key is not a SHA-1 of 40 lower-case hex digits";
        good = !*problem && sl_fields_object(&s, &at, file_fields, &file);
        if (good && file.chunk_count > MAX_FILE_CHUNKS)
            *problem = "a file has too many chunks";
        else if (good && (added = sl_arena_array_add(&read)))
            *added = file;
        json.busy |= good && !*problem && !added; /* nothing is wrong with the file: memory was short */
        good = added != NULL;
    }
    good = good && sl_json_end(&json);
    if (!good && !json.busy && !*problem)
        *problem = s.problem ? s.problem : json.problem ? json.problem : "expected an object of files";
    *count = read.count;
    *files = good ? sl_arena_array_finish(&read) : NULL;
    sl_arena_array_discard(&read);
    return good && *files;
}

/* ---- the answer ---- */

/* Times are UTC. */
void sentry_put_date(struct sl_json_writer *w, const char *key, uint64_t seconds)
{
    char text[32];
    time_t at = (time_t)seconds;
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    sl_json_member_str(w, key, sl_str(text));
}

/* Returns Sentry's name for the format of a file. The store's types begin with the format ("elf_debug"); of the formats not listed
 * here, the type is the name itself. */
static struct sl_str symbol_type(struct sl_str type)
{
    static const struct sl_str formats[] = {SL_STR("elf"), SL_STR("mach"), SL_STR("wasm")},
                               names[] = {SL_STR("elf"), SL_STR("macho"), SL_STR("wasm")};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (sl_str_starts(type, formats[i]))
            return names[i];
    return type;
}

/* Returns the kind of an object file in sentry-cli's words; "other" if it is not one of these, as sentry-cli fails on unknown words. */
static struct sl_str object_class(struct sl_str kind)
{
    static const struct sl_str known[] = {SL_STR("none"), SL_STR("rel"), SL_STR("exe"), SL_STR("lib"),
                                          SL_STR("dump"), SL_STR("dbg"), SL_STR("src")};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sl_str_equal(kind, known[i]))
            return kind;
    return SL_STR("other");
}

/* Writes a stored file in the form of Sentry's "debug information file", in which SHA-1 and debug id occur twice. */
static void write_record(struct sl_json_writer *w, const struct debug_file_record *record)
{
    sl_json_member_object(w, "dif");
    sl_json_member_str(w, "id", record->sha1);
    sl_json_member_str(w, "uuid", record->debug_id);
    sl_json_member_str(w, "debugId", record->debug_id);
    sl_json_member_or_null(w, "codeId", record->code_id.size ? record->code_id : (struct sl_str){NULL, 0});
    sl_json_member_str(w, "cpuName", record->cpu);
    sl_json_member_str(w, "objectName", record->name);
    sl_json_member_str(w, "symbolType", symbol_type(record->type));
    sl_json_member_object(w, "headers");
    sl_json_member_str(w, "Content-Type", SL_STR("application/octet-stream"));
    sl_json_end_object(w);
    sl_json_member_u64(w, "size", record->size);
    sl_json_member_str(w, "sha1", record->sha1);
    sentry_put_date(w, "dateCreated", record->created_s);
    sl_json_member_object(w, "data");
    sl_json_member_str(w, "type", object_class(record->kind));
    sl_json_member_array(w, "features");
    for (size_t i = 0; i < record->feature_count; i++)
        sl_json_put_str(w, record->features[i]);
    sl_json_end_array(w);
    sl_json_end_object(w);
    sl_json_end_object(w);
}

/* Writes the state of a file. Only a stored debug file has a record, a bundle has none. */
static void write_status(struct sl_json_writer *w, const struct sentry_status *status)
{
    sl_json_begin_object(w);
    sl_json_member_str(w, "state", sl_str(sentry_state_words[status->state]));
    sl_json_member_array(w, "missingChunks");
    for (size_t i = 0; i < status->missing_count; i++)
        sl_json_put_str(w, status->missing[i]);
    sl_json_end_array(w);
    sl_json_member_or_null(w, "detail", status->detail);
    if (status->state == SENTRY_OK && status->record.sha1.data)
        write_record(w, &status->record);
    sl_json_end_object(w);
}

/* Answers a failure of the server, with the reason in the log only. Nothing is answered if the client is gone. */
static void reply_failure(struct http_exchange *x, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_CANCELLED)
        return;
    if (code == SL_BUSY) {
        http_reply_no_memory(x);
        return;
    }
    log_error("uploads", "cannot answer an upload request of sentry-cli: the store of debug files failed",
              LOG_ERR(error));
    sentry_reply_error(x, 500, "Internal error");
}

struct request_reading { /* reads the body of an assemble request, on the pool */
    struct sl_str body;
    struct sl_arena *arena;
    struct assembly_file *files;
    size_t count;
    const char *problem; /* if not `is_read`: why; NULL: out of memory */
    bool (*read)(struct request_reading *r);
    bool is_read; /* result of `read` */
};

/* Member `read` of a request to join debug files: parses the list of files. */
static bool read_files(struct request_reading *r)
{
    return sentry_read_files(r->body, r->arena, &r->files, &r->count, &r->problem);
}

static void run_reading(void *arg)
{
    struct request_reading *r = arg;
    r->is_read = r->read(r);
}

/* Receives the body and parses it by `r->read`, on the pool as it may have SENTRY_MAX_REQUEST bytes. False: it is answered. */
static bool read_request(struct http_exchange *x, struct request_reading *r)
{
    struct sl_bytes body;
    struct sl_error error;
    if (http_body(x, &body) != SL_OK)
        return false;
    r->body = (struct sl_str){(const char *)body.data, body.size};
    r->arena = &x->arena;
    enum sl_code code = http_pool_run(x, POOL_JSON, run_reading, r, &error);
    if (code != SL_OK)
        reply_failure(x, code, &error);
    else if (!r->is_read && r->problem)
        sentry_reply_error(x, 400, r->problem);
    else if (!r->is_read)
        http_reply_no_memory(x);
    return code == SL_OK && r->is_read;
}

/* Answers with the state of each file. The request waits for all files together until one deadline; those that are not joined then
 * are "assembling", and sentry-cli asks again. */
void sentry_assemble_debug_files(struct http_exchange *x)
{
    struct request_reading r = {.read = read_files};
    struct sl_error error = {.code = SL_OK};
    if (!read_request(x, &r))
        return;
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    enum sl_code code = SL_OK;
    uint64_t until_ms = sentry_deadline_ms();
    sl_json_begin_object(&w);
    for (size_t i = 0; code == SL_OK && i < r.count; i++) {
        struct sentry_status status;
        code = sentry_get_status(x, &r.files[i], until_ms, &status, &error);
        if (code == SL_OK) {
            sl_json_put_key_str(&w, r.files[i].sha1);
            write_status(&w, &status);
        }
    }
    sl_json_end_object(&w);
    if (code == SL_OK) {
        http_reply_json(x, 200, &json);
        return;
    }
    sl_buf_free(&json);
    reply_failure(x, code, &error);
}

/* ---- artifact bundles: {"checksum": "<sha1>", "chunks": [...], "projects": [...], "version": "1.0", "dist": null} ---- */

static const struct sl_field bundle_fields[] = {
    SL_FIELD_BY(true, assembly_file, sha1, "checksum", read_chunk_name),
    SL_FIELD_EACH(true, assembly_file, chunks, chunk_count, "chunks", read_chunk_name),
    SL_FIELD(TEXT, false, assembly_file, release, "version"),
    SL_FIELD(TEXT, false, assembly_file, dist, "dist"),
    SL_FIELDS_END,
};

/* Member `read` of a request to join an artifact bundle: parses its one object. False: r->problem says why; NULL: out of memory. */
static bool read_bundle(struct request_reading *r)
{
    struct sl_json json = sl_json(r->body, r->arena, false);
    struct sl_fields s = {.json = &json};
    r->files = SL_ARENA_NEW(r->arena, struct assembly_file);
    if (!r->files)
        return false;
    *r->files = (struct assembly_file){.is_bundle = true, .name = SL_STR("artifact bundle")};
    if (!sl_fields_object(&s, NULL, bundle_fields, r->files) || !sl_json_end(&json))
        r->problem = json.busy ? NULL : s.problem ? s.problem : json.problem ? json.problem : "expected one object";
    else if (r->files->chunk_count > MAX_FILE_CHUNKS)
        r->problem = "the bundle has too many chunks";
    else
        r->count = 1;
    return r->count == 1;
}

/* Answers with the state of the bundle, after waiting for some time if it is being joined. */
void sentry_assemble_bundle(struct http_exchange *x)
{
    struct request_reading r = {.read = read_bundle};
    struct sl_error error = {.code = SL_OK};
    struct sentry_status status;
    if (!read_request(x, &r))
        return;
    enum sl_code code = sentry_get_status(x, r.files, sentry_deadline_ms(), &status, &error);
    if (code != SL_OK) {
        reply_failure(x, code, &error);
        return;
    }
    struct sl_buf answer = {0};
    struct sl_json_writer w = sl_json_writer(&answer);
    write_status(&w, &status);
    http_reply_json(x, 200, &answer);
}
