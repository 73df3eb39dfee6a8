/* Pyroscope's service for debug information: POST /debuginfo.v1alpha1.DebuginfoService/<method>, by the Connect protocol over
 * HTTP/1.1 (https://connectrpc.com/docs/protocol, "Unary requests"). Bodies are protobuf (proto/debuginfo.proto) or JSON.
 *
 *     ShouldInitiateUpload {file}         -> {should_initiate_upload, reason}      true: an upload has begun
 *     Upload/<gnu build id>               the file as body
 *     UploadFinished {gnu_build_id}       -> {}                                    the file is checked and stored
 *     ListDebuginfo {}, DeleteDebuginfo {gnu_build_id}
 *
 * Between these requests an upload is in the store, so that any process or node can handle the next one:
 *
 *     uploads/pyroscope/<build id>            its record (JSON), which stays
 *     chunks/received/pyroscope-<build id>    the file, until it is stored */
#pragma once

#include "api/impl.h"
#include "debug_file_store/debug_file_store.h"

struct debuginfo_file { /* a file, as a request or a record describes it; texts may be empty */
    struct sl_str gnu_build_id, go_build_id, otel_file_id, name;
    uint32_t type; /* number in Pyroscope's enum */
};

enum debuginfo_state { DEBUGINFO_NONE, DEBUGINFO_RUNNING /* ShouldInitiateUpload has begun it */, DEBUGINFO_FINISHED };

struct debuginfo_object { /* an upload */
    struct debuginfo_file file;
    enum debuginfo_state state;
    uint64_t started_s, finished_s; /* since the epoch; 0 = not yet */
    uint64_t size;                  /* bytes; 0 = unknown */
};

/* ---- codec.c: pure ---- */

/* Reads the message of a request: with `has_file` that of ShouldInitiateUpload, otherwise one with nothing but a build id.
 * SL_MALFORMED, SL_BUSY. Texts are in the arena. */
enum sl_code debuginfo_read(struct sl_bytes body, bool is_json, bool has_file, struct sl_arena *arena,
                            struct debuginfo_file *file, struct sl_error *error);
/* Append the answers of ShouldInitiateUpload and ListDebuginfo; when out of memory, `out` is marked as failed. */
void debuginfo_write_decision(bool is_json, bool wanted, const char *reason, struct sl_buf *out);
void debuginfo_write_list(bool is_json, const struct debuginfo_object *objects, size_t count, struct sl_buf *out);

/* Read and write the record of an upload in the store. SL_MALFORMED, SL_BUSY. */
enum sl_code debuginfo_read_record(struct sl_str text, struct sl_arena *arena, struct debuginfo_object *object);
void debuginfo_write_record(const struct debuginfo_object *object, struct sl_buf *out);
