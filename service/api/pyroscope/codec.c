/* Messages of Pyroscope's service for debug information, in JSON and protobuf, and the records of uploads in the store. */
#include "api/pyroscope/pyroscope.h"

#include <stdlib.h>
#include <time.h>

#include "base/json_fields.h"
#include "base/json_write.h"
#include "debuginfo.pb-c.h"

/* ---- reading JSON: names in camel case, as protobuf's JSON mapping writes them, or as in the schema ---- */

/* Reads the type of a file: its number, or a name in the enum, of which the end is compared ("TYPE_EXECUTABLE_FULL"). Unknown names
 * give 0. */
static bool read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const char *const words[] = {"", "FULL", "NO_TEXT"};
    struct sl_str text = {NULL, 0};
    uint64_t number = 0;
    uint32_t *type = out;
    if (sl_json_peek(s->json) == SL_JSON_NUMBER) {
        if (sl_json_u64(s->json, &number))
            *type = (uint32_t)(number < UINT32_MAX ? number : 0);
        return !s->json->failed;
    }
    bool good = sl_fields_text(s, at, &text);
    for (uint32_t i = 1; good && i < sizeof words / sizeof *words; i++)
        if (sl_str_ends(text, sl_str(words[i])))
            *type = i;
    return good;
}

static const struct sl_field file_fields[] = {
    SL_FIELD(TEXT, false, debuginfo_file, gnu_build_id, "gnuBuildId"),
    SL_FIELD(TEXT, false, debuginfo_file, gnu_build_id, "gnu_build_id"),
    SL_FIELD(TEXT, false, debuginfo_file, go_build_id, "goBuildId"),
    SL_FIELD(TEXT, false, debuginfo_file, go_build_id, "go_build_id"),
    SL_FIELD(TEXT, false, debuginfo_file, otel_file_id, "otelFileId"),
    SL_FIELD(TEXT, false, debuginfo_file, otel_file_id, "otel_file_id"),
    SL_FIELD(TEXT, false, debuginfo_file, name, "name"),
    SL_FIELD_BY(false, debuginfo_file, type, "type", read_type),
    SL_FIELDS_END,
};

static const struct sl_field should_fields[] = {SL_FIELD_SAME("file", file_fields), SL_FIELDS_END};

/* Reads the JSON of a request: {"file": {...}} with `has_file`, otherwise {"gnuBuildId": ...}. */
static enum sl_code read_json(struct sl_str text, bool has_file, struct sl_arena *arena, struct debuginfo_file *file,
                              struct sl_error *error)
{
    struct sl_json json = sl_json(text, arena, false);
    bool good = sl_json_read_object(&json, has_file ? should_fields : file_fields, file) && sl_json_end(&json);
    return good        ? SL_OK
           : json.busy ? sl_fail(error, SL_BUSY, "out of memory")
                       : sl_fail(error, SL_MALFORMED, "the body is not the JSON message that this method takes");
}

/* ---- reading protobuf ---- */

/* Copies a text into the arena; NULL becomes an empty text. False when out of memory. */
static bool keep(struct sl_arena *arena, const char *text, struct sl_str *out)
{
    size_t size = text ? strlen(text) : 0;
    *out = (struct sl_str){sl_arena_strndup(arena, text ? text : "", size), size};
    return out->data != NULL;
}

/* Copies the members of a protobuf message into the arena. False when out of memory. */
static bool keep_file(struct sl_arena *arena, const Debuginfo__File *from, struct debuginfo_file *to)
{
    to->type = from->type;
    return keep(arena, from->gnu_build_id, &to->gnu_build_id) && keep(arena, from->go_build_id, &to->go_build_id) &&
           keep(arena, from->otel_file_id, &to->otel_file_id) && keep(arena, from->name, &to->name);
}

/* malloc for protobuf-c, which returns NULL for malformed messages as well as without memory: `no_memory` tells these apart. */
static void *unpack_alloc(void *no_memory, size_t size)
{
    void *memory = malloc(size);
    *(bool *)no_memory |= !memory;
    return memory;
}

static void unpack_free(void *no_memory, void *memory)
{
    (void)no_memory;
    free(memory);
}

/* Reads the protobuf message of a request, and copies its texts into the arena. protobuf-c allocates with malloc, a small multiple of the
 * body, whose size is limited; unpack_alloc notes in no_memory that malloc has failed. A request without a file has empty texts. */
static enum sl_code read_protobuf(struct sl_bytes body, bool has_file, struct sl_arena *arena,
                                  struct debuginfo_file *file, struct sl_error *error)
{
    bool is_read, is_kept = true, no_memory = false;
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &no_memory};
    if (has_file) {
        Debuginfo__ShouldInitiateUploadRequest *request =
            debuginfo__should_initiate_upload_request__unpack(&allocator, body.size, body.data);
        is_read = request != NULL;
        is_kept = !request || !request->file || keep_file(arena, request->file, file);
        debuginfo__should_initiate_upload_request__free_unpacked(request, &allocator);
    } else {
        Debuginfo__BuildIdRequest *request = debuginfo__build_id_request__unpack(&allocator, body.size, body.data);
        is_read = request != NULL;
        is_kept = !request || keep(arena, request->gnu_build_id, &file->gnu_build_id);
        debuginfo__build_id_request__free_unpacked(request, &allocator);
    }
    if (!is_kept || no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    return is_read ? SL_OK
                   : sl_fail(error, SL_MALFORMED, "the body is not the protobuf message that this method takes");
}

enum sl_code debuginfo_read(struct sl_bytes body, bool is_json, bool has_file, struct sl_arena *arena,
                            struct debuginfo_file *file, struct sl_error *error)
{
    *file = (struct debuginfo_file){SL_STR(""), SL_STR(""), SL_STR(""), SL_STR(""), 0};
    struct sl_str text = {(const char *)body.data, body.size};
    return is_json ? read_json(text, has_file, arena, file, error) : read_protobuf(body, has_file, arena, file, error);
}

/* ---- writing answers ---- */

/* Writes the answer of ShouldInitiateUpload, as JSON or as a protobuf message. */
void debuginfo_write_decision(bool is_json, bool wanted, const char *reason, struct sl_buf *out)
{
    if (is_json) {
        struct sl_json_writer w = sl_json_writer(out);
        sl_json_begin_object(&w);
        sl_json_member_boolean(&w, "shouldInitiateUpload", wanted);
        sl_json_member_str(&w, "reason", sl_str(reason));
        sl_json_end_object(&w);
        return;
    }
    Debuginfo__ShouldInitiateUploadResponse answer = DEBUGINFO__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;
    answer.should_initiate_upload = wanted;
    answer.reason = (char *)(uintptr_t)reason; /* protobuf-c only reads it */
    size_t size = debuginfo__should_initiate_upload_response__get_packed_size(&answer);
    /* + 1: a message may have 0 bytes, and `data` must not be NULL */
    if (sl_buf_reserve(out, size + 1))
        out->size += debuginfo__should_initiate_upload_response__pack(&answer, out->data + out->size);
}

/* Writes a time as "2024-05-01T12:00:00Z"; nothing for 0, which is unknown. */
static void put_time(struct sl_json_writer *w, const char *key, uint64_t seconds)
{
    char text[32];
    time_t at = (time_t)seconds;
    struct tm tm;
    if (!seconds)
        return;
    gmtime_r(&at, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    sl_json_member_str(w, key, sl_str(text));
}

/* Returns the number of a state in Pyroscope's enum: 0 uploading, 1 uploaded. enum debuginfo_state has other numbers, as it has a
 * state "none". */
static uint32_t wire_state(enum debuginfo_state state)
{
    return state == DEBUGINFO_FINISHED;
}

/* Writes an upload as an element of the list, in protobuf's JSON mapping. Unknown types are TYPE_UNSPECIFIED. */
static void write_json_object(struct sl_json_writer *w, const struct debuginfo_object *object)
{
    static const char *const types[] = {"TYPE_UNSPECIFIED", "TYPE_EXECUTABLE_FULL", "TYPE_EXECUTABLE_NO_TEXT"},
                             *const states[] = {"STATE_UPLOADING", "STATE_UPLOADED"};
    char size[24];
    snprintf(size, sizeof size, "%llu", (unsigned long long)object->size);
    sl_json_begin_object(w);
    sl_json_member_object(w, "file");
    sl_json_member_str(w, "gnuBuildId", object->file.gnu_build_id);
    sl_json_member_str(w, "goBuildId", object->file.go_build_id);
    sl_json_member_str(w, "otelFileId", object->file.otel_file_id);
    sl_json_member_str(w, "name", object->file.name);
    sl_json_member_str(w, "type", sl_str(types[object->file.type < 3 ? object->file.type : 0]));
    sl_json_end_object(w);
    sl_json_member_str(w, "state", sl_str(states[wire_state(object->state)]));
    put_time(w, "startedAt", object->started_s);
    put_time(w, "finishedAt", object->finished_s);
    sl_json_member_str(w, "sizeBytes", sl_str(size)); /* numbers of 64 bits are texts in protobuf's JSON */
    sl_json_end_object(w);
}

/* Returns a copy of the text that ends with NUL, as protobuf-c needs it; NULL when out of memory. */
static char *terminated(struct sl_arena *arena, struct sl_str text)
{
    return sl_arena_strndup(arena, text.data ? text.data : "", text.size);
}

struct packed_object { /* a protobuf message with the messages that it points to */
    Debuginfo__Object object;
    Debuginfo__File file;
    Debuginfo__Timestamp started, finished;
};

/* Fills in the protobuf message of an upload. Times that are 0, unknown, are left out. False when out of memory. */
static bool fill_packed(struct packed_object *p, const struct debuginfo_object *from, struct sl_arena *arena)
{
    *p = (struct packed_object){.object = DEBUGINFO__OBJECT__INIT,
                                .file = DEBUGINFO__FILE__INIT,
                                .started = DEBUGINFO__TIMESTAMP__INIT,
                                .finished = DEBUGINFO__TIMESTAMP__INIT};
    p->file.gnu_build_id = terminated(arena, from->file.gnu_build_id);
    p->file.go_build_id = terminated(arena, from->file.go_build_id);
    p->file.otel_file_id = terminated(arena, from->file.otel_file_id);
    p->file.name = terminated(arena, from->file.name);
    p->file.type = from->file.type;
    p->started.seconds = (int64_t)from->started_s;
    p->finished.seconds = (int64_t)from->finished_s;
    p->object.file = &p->file;
    p->object.state = wire_state(from->state);
    p->object.started_at = from->started_s ? &p->started : NULL;
    p->object.finished_at = from->finished_s ? &p->finished : NULL;
    p->object.size_bytes = (int64_t)from->size;
    return p->file.gnu_build_id && p->file.go_build_id && p->file.otel_file_id && p->file.name;
}

/* Appends the protobuf message with all uploads. When out of memory, `out` is marked as failed. */
static void write_packed_list(const struct debuginfo_object *objects, size_t count, struct sl_buf *out)
{
    struct sl_arena arena = {0};
    Debuginfo__ListDebuginfoResponse list = DEBUGINFO__LIST_DEBUGINFO_RESPONSE__INIT;
    struct packed_object *packed = SL_ARENA_ARRAY(&arena, struct packed_object, count + 1);
    Debuginfo__Object **items = SL_ARENA_ARRAY(&arena, Debuginfo__Object *, count + 1);
    out->failed |= !packed || !items;
    for (size_t i = 0; !out->failed && i < count; i++) {
        out->failed = !fill_packed(&packed[i], &objects[i], &arena);
        items[i] = &packed[i].object;
    }
    list.n_object = out->failed ? 0 : count;
    list.object = items;
    /* + 1: a message without uploads has 0 bytes, and `data` must not be NULL */
    if (!out->failed && sl_buf_reserve(out, debuginfo__list_debuginfo_response__get_packed_size(&list) + 1))
        out->size += debuginfo__list_debuginfo_response__pack(&list, out->data + out->size);
    sl_arena_free(&arena);
}

/* Writes the answer of ListDebuginfo, as JSON or as a protobuf message. */
void debuginfo_write_list(bool is_json, const struct debuginfo_object *objects, size_t count, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    if (!is_json) {
        write_packed_list(objects, count, out);
        return;
    }
    sl_json_begin_object(&w);
    sl_json_member_array(&w, "object");
    for (size_t i = 0; i < count; i++)
        write_json_object(&w, &objects[i]);
    sl_json_end_array(&w);
    sl_json_end_object(&w);
}

/* ---- records ---- */

struct debuginfo_record { /* a record of the store, while it is read */
    struct debuginfo_file file;
    struct sl_opt_u64 state, started, finished, size;
};

static const struct sl_field record_fields[] = {
    SL_FIELD_PART(debuginfo_record, file, "file", file_fields),
    SL_FIELD(U64, false, debuginfo_record, state, "state"),
    SL_FIELD(U64, false, debuginfo_record, started, "started"),
    SL_FIELD(U64, false, debuginfo_record, finished, "finished"),
    SL_FIELD(U64, false, debuginfo_record, size, "size"),
    SL_FIELDS_END,
};

/* Relaxed parsing (`true`) accepts texts that are not UTF-8. */
enum sl_code debuginfo_read_record(struct sl_str text, struct sl_arena *arena, struct debuginfo_object *object)
{
    struct debuginfo_record record = {.state = {false, 0}};
    struct sl_json json = sl_json(text, arena, true);
    if (!sl_json_read_object(&json, record_fields, &record) || !record.file.gnu_build_id.data)
        return json.busy ? SL_BUSY : SL_MALFORMED;
    /* a state that this version does not know counts as none: an upload may begin again */
    bool is_known = record.state.value <= DEBUGINFO_FINISHED;
    *object = (struct debuginfo_object){.file = record.file,
                                        .state = is_known ? (enum debuginfo_state)record.state.value : DEBUGINFO_NONE,
                                        .started_s = record.started.value,
                                        .finished_s = record.finished.value,
                                        .size = record.size.value};
    return SL_OK;
}

/* Writes the JSON that debuginfo_read_record reads. */
void debuginfo_write_record(const struct debuginfo_object *object, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_object(&w, "file");
    sl_json_member_str(&w, "gnuBuildId", object->file.gnu_build_id);
    sl_json_member_str(&w, "goBuildId", object->file.go_build_id);
    sl_json_member_str(&w, "otelFileId", object->file.otel_file_id);
    sl_json_member_str(&w, "name", object->file.name);
    sl_json_member_u64(&w, "type", object->file.type);
    sl_json_end_object(&w);
    sl_json_member_u64(&w, "state", (uint64_t)object->state);
    sl_json_member_u64(&w, "started", object->started_s);
    sl_json_member_u64(&w, "finished", object->finished_s);
    sl_json_member_u64(&w, "size", object->size);
    sl_json_end_object(&w);
}
