/* Records of uploaded debug files. The store has one for each, below uploads/sha1, a JSON document that describes the file:
 *
 *     {"sha1":"...","sha256":"...","name":"app.debug","type":"elf_debug","cpu":"x86_64","debug_id":"...","code_id":"...",
 *      "kind":"dbg","size":123,"created":1700000000,"features":["debug","unwind"],"paths":["ab/cdef/debuginfo"]} */
#include "debug_file_store/impl.h"

#include "base/json_fields.h"
#include "base/json_write.h"

/* Returns the name of a file's record in the store; data NULL when out of memory. */
static struct sl_str record_name(struct sl_arena *arena, struct sl_str sha1)
{
    struct sl_buf name = {0};
    sl_buf_printf(&name, "uploads/sha1/%.2s/" SL_STR_FMT, sha1.data, SL_STR_ARG(sha1));
    return sl_buf_move_to_arena(&name, arena);
}

enum sl_code record_put(const struct debug_file_record *record, struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_arena arena = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "sha1", record->sha1);
    sl_json_member_str(&w, "sha256", record->sha256);
    sl_json_member_str(&w, "name", record->name);
    sl_json_member_str(&w, "type", record->type);
    sl_json_member_str(&w, "cpu", record->cpu);
    sl_json_member_str(&w, "debug_id", record->debug_id);
    sl_json_member_str(&w, "code_id", record->code_id);
    sl_json_member_str(&w, "kind", record->kind);
    sl_json_member_u64(&w, "size", record->size);
    sl_json_member_u64(&w, "created", record->created_s);
    sl_json_put_texts(&w, "features", record->features, record->feature_count);
    sl_json_put_texts(&w, "paths", record->paths, record->path_count);
    sl_json_end_object(&w);
    struct sl_str name = record_name(&arena, record->sha1);
    enum sl_code code = text.failed || !name.data
                            ? sl_fail(error, SL_BUSY, "out of memory")
                            : store_area_put_text(debug_files_area(), &name, 1, sl_buf_view(&text), error);
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return code;
}

struct record_document {
    struct debug_file_record record;
    struct sl_opt_u64 size, created;
};

static const struct sl_field record_fields[] = {
    SL_FIELD(TEXT, true, record_document, record.sha1, "sha1"),
    SL_FIELD(TEXT, true, record_document, record.sha256, "sha256"),
    SL_FIELD(TEXT, false, record_document, record.name, "name"),
    SL_FIELD(TEXT, false, record_document, record.type, "type"),
    SL_FIELD(TEXT, false, record_document, record.cpu, "cpu"),
    SL_FIELD(TEXT, false, record_document, record.debug_id, "debug_id"),
    SL_FIELD(TEXT, false, record_document, record.code_id, "code_id"),
    SL_FIELD(TEXT, false, record_document, record.kind, "kind"),
    SL_FIELD_EACH(false, record_document, record.features, record.feature_count, "features", sl_fields_text),
    SL_FIELD_EACH(false, record_document, record.paths, record.path_count, "paths", sl_fields_text),
    SL_FIELD(U64, false, record_document, size, "size"),
    SL_FIELD(U64, false, record_document, created, "created"),
    SL_FIELDS_END,
};

/* Parses the JSON of a record. A damaged one counts as missing (SL_NOT_FOUND): the next upload of the file writes it anew. */
static enum sl_code parse_record(struct sl_str text, struct sl_arena *arena, struct debug_file_record *record,
                                 struct sl_error *error)
{
    struct record_document found = {.size = {false, 0}};
    struct sl_json json = sl_json(text, arena, true);
    if (!sl_json_read_object(&json, record_fields, &found))
        return json.busy ? sl_fail(error, SL_BUSY, "out of memory")
                         : sl_fail(error, SL_NOT_FOUND,
                                   "the stored description (record) of this uploaded debug file is damaged; "
                                   "upload the file again to replace it");
    *record = found.record;
    record->size = found.size.value;
    record->created_s = found.created.value;
    return SL_OK;
}

enum sl_code record_get(struct sl_str sha1, struct sl_arena *arena, struct debug_file_record *record,
                        struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_str name = record_name(arena, sha1);
    enum sl_code code =
        name.data ? store_area_read(debug_files_area(), name, &text, error) : sl_fail(error, SL_BUSY, "out of memory");
    /* into the arena, as the texts of the record are views of it */
    struct sl_str stored = code == SL_OK ? sl_buf_move_to_arena(&text, arena) : (struct sl_str){NULL, 0};
    sl_buf_free(&text);
    if (code == SL_OK && !stored.data)
        code = sl_fail(error, SL_BUSY, "out of memory");
    return code == SL_OK ? parse_record(stored, arena, record, error) : code;
}

/* The record stays when its file is removed or another file replaces it, so the file is looked for: under all its paths there must be a
 * file of the recorded size. */
enum sl_code debug_files_find(struct sl_str sha1, struct sl_arena *arena, struct debug_file_record *record,
                              struct sl_error *error)
{
    struct store_meta meta;
    enum sl_code code = record_get(sha1, arena, record, error);
    if (code == SL_OK && !record->path_count)
        code = sl_fail(error, SL_NOT_FOUND, "the file was not stored");
    for (size_t i = 0; code == SL_OK && i < record->path_count; i++) {
        struct sl_str name = object_name(arena, record->paths[i]);
        code = name.data ? store_area_stat(debug_files_area(), name, false, &meta, error)
                         : sl_fail(error, SL_BUSY, "out of memory");
        if (code == SL_OK && meta.size != record->size)
            code = sl_fail(error, SL_NOT_FOUND, "the uploaded file was replaced by another one");
    }
    return code;
}
