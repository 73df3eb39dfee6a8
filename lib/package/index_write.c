#include "package/index_impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "table/writer.h"

struct index_entry {
    struct sl_index_id id;
    uint8_t content, format;
    uint32_t file, name;
    uint64_t size, offset;
    int64_t mtime_ns; /* of its file, for the order */
};

struct index_file_entry {
    uint32_t path, source, source_texts;
    uint64_t size;
    int64_t mtime_ns;
    uint8_t kind;
};

struct index_source_entry {
    uint32_t file, name;
    uint64_t size, offset;
};

/* ---- adding ---- */

/* Adds a string and returns its offset. 0 for an empty string, and when it could not be added, with b->failed set. */
static uint32_t add_string(struct sl_index_builder *b, struct sl_str text)
{
    if (!text.size)
        return 0;
    if (!b->strings.size)
        sl_buf_u8(&b->strings, '\0'); /* offset 0 is the empty string */
    size_t at = b->strings.size;
    if (at + text.size + 1 >= DERIVED_NAME) { /* offsets have 32 bits; DERIVED_NAME, the highest number, is none */
        b->failed = true;
        return 0;
    }
    sl_buf_str(&b->strings, text);
    sl_buf_u8(&b->strings, '\0');
    b->failed |= b->strings.failed;
    return b->strings.failed ? 0 : (uint32_t)at;
}

/* Returns the offset of a string that many files share; only its first call adds it. 0 for an empty string, and when it could not be added,
 * with b->failed set. */
static uint32_t add_shared_string(struct sl_index_builder *b, struct sl_str text)
{
    if (!text.size)
        return 0;
    uint32_t *known = sl_map_get(&b->source_names, text);
    if (known)
        return *known;
    uint32_t *offset = sl_map_add(&b->source_names, text, sizeof *offset, NULL);
    if (!offset) {
        b->failed = true;
        return 0;
    }
    return *offset = add_string(b, text);
}

uint32_t sl_index_add_file(struct sl_index_builder *b, const struct sl_index_file *file)
{
    if (b->file_count >= UINT32_MAX - 1 || /* UINT32_MAX is not a file's number (sl_index_copy_objects) */
        !sl_grow(&b->files, &b->file_capacity, b->file_count + 1, sizeof *b->files)) {
        b->failed = true;
        return 0;
    }
    b->files[b->file_count] = (struct index_file_entry){.path = add_string(b, file->path),
                                                        .source = add_shared_string(b, file->source),
                                                        .source_texts = file->source_texts,
                                                        .size = file->size,
                                                        .mtime_ns = file->mtime_ns,
                                                        .kind = (uint8_t)file->kind};
    return (uint32_t)b->file_count++;
}

/* True if the object's path in the package is the one that follows from its build id (/usr/lib/debug/.build-id/...), so that it need not be
 * stored. */
static bool has_derived_path(const struct sl_index_object *object)
{
    struct sl_index_object derived = *object;
    struct sl_buf path = {0};
    derived.is_derived = true;
    if (object->id.type != SL_INDEX_CODE_ID || object->id.size > SL_INDEX_ID_BYTES || !object->member.size)
        return false;
    sl_index_member_path(&derived, &path);
    bool same = sl_str_equal(sl_buf_view(&path), object->member);
    sl_buf_free(&path);
    return same;
}

void sl_index_add_object(struct sl_index_builder *b, const struct sl_index_object *object)
{
    if (object->file >= b->file_count ||
        !sl_grow(&b->objects, &b->object_capacity, b->object_count + 1, sizeof *b->objects)) {
        b->failed = true;
        return;
    }
    bool derived = object->is_derived || has_derived_path(object);
    b->objects[b->object_count++] = (struct index_entry){.id = object->id,
                                                         .content = object->content,
                                                         .format = object->format,
                                                         .file = object->file,
                                                         .name = derived ? DERIVED_NAME : add_string(b, object->member),
                                                         .size = object->size,
                                                         .offset = object->offset,
                                                         .mtime_ns = b->files[object->file].mtime_ns};
}

void sl_index_add_source(struct sl_index_builder *b, uint32_t file, const struct sl_index_source *source)
{
    if (file >= b->file_count || b->files[file].source_texts == UINT32_MAX || /* the counter is full */
        !sl_grow(&b->sources, &b->source_capacity, b->source_count + 1, sizeof *b->sources)) {
        b->failed = true;
        return;
    }
    b->sources[b->source_count++] = (struct index_source_entry){
        .file = file, .name = add_string(b, source->path), .size = source->size, .offset = source->offset};
    b->files[file].source_texts++;
}

void sl_index_copy_objects(struct sl_index_builder *b, const struct sl_index *from, const uint32_t *numbers)
{
    struct sl_index_object object;
    for (size_t i = 0; i < from->object_count && !b->failed; i++)
        if (sl_index_object(from, i, &object) && numbers[object.file] != UINT32_MAX) {
            object.file = numbers[object.file];
            sl_index_add_object(b, &object);
        }
}

/* ---- writing ---- */

/* For qsort: by type and bytes of the id, then newest file first. The other members make the order the same for the same objects. */
static int compare_entries(const void *left, const void *right)
{
    const struct index_entry *a = left, *b = right;
    int order =
        a->id.type != b->id.type ? a->id.type - b->id.type : memcmp(a->id.bytes, b->id.bytes, SL_INDEX_ID_BYTES);
    if (order == 0)
        order = a->id.size - b->id.size;
    if (order == 0)
        order = (a->mtime_ns < b->mtime_ns) - (a->mtime_ns > b->mtime_ns);
    if (order == 0)
        order = sl_compare_u64(a->file, b->file);
    return order ? order : sl_compare_u64(a->offset, b->offset);
}

/* Writes section 1, an entry with the id for each object, and section 2, the offsets of the objects, which few look-ups need. */
static void write_objects(const struct sl_index_builder *b, struct sl_table_writer *w)
{
    sl_table_section(w, SECTION_OBJECTS);
    for (size_t i = 0; i < b->object_count; i++) {
        const struct index_entry *e = &b->objects[i];
        const uint8_t head[4] = {e->id.size, e->content, e->format, e->id.type};
        sl_buf_add(&w->file, head, sizeof head);
        sl_buf_add(&w->file, e->id.bytes, SL_INDEX_ID_BYTES);
        sl_buf_u32(&w->file, e->file);
        sl_buf_u32(&w->file, e->name);
        sl_buf_u64(&w->file, e->size);
    }
    sl_table_section(w, SECTION_OFFSETS);
    for (size_t i = 0; i < b->object_count; i++)
        sl_buf_u64(&w->file, b->objects[i].offset);
}

/* Writes section 3, an entry for each scanned file (with 3 zero bytes as padding), and section 4, one for each source text. */
static void write_files(const struct sl_index_builder *b, struct sl_table_writer *w)
{
    sl_table_section(w, SECTION_FILES);
    for (size_t i = 0; i < b->file_count; i++) {
        const struct index_file_entry *e = &b->files[i];
        sl_buf_u32(&w->file, e->path);
        sl_buf_u32(&w->file, e->source);
        sl_buf_u64(&w->file, e->size);
        sl_buf_u64(&w->file, (uint64_t)e->mtime_ns);
        sl_buf_u8(&w->file, e->kind);
        sl_buf_u8(&w->file, 0);
        sl_buf_u16(&w->file, 0);
        sl_buf_u32(&w->file, e->source_texts);
    }
    sl_table_section(w, SECTION_SOURCES);
    for (size_t i = 0; i < b->source_count; i++) {
        const struct index_source_entry *e = &b->sources[i];
        sl_buf_u32(&w->file, e->file);
        sl_buf_u32(&w->file, e->name);
        sl_buf_u64(&w->file, e->size);
        sl_buf_u64(&w->file, e->offset);
    }
}

bool sl_index_finish(struct sl_index_builder *b, uint64_t key, struct sl_buf *out)
{
    struct sl_table_writer w;
    if (b->failed || !sl_table_writer_init(&w, &index_format, NULL, NULL)) /* no other threads, no budget */
        return false;
    if (b->object_count)
        qsort(b->objects, b->object_count, sizeof *b->objects, compare_entries);
    write_objects(b, &w);
    write_files(b, &w);
    sl_table_section(&w, SECTION_STRINGS);
    if (b->strings.size)
        sl_buf_add(&w.file, b->strings.data, b->strings.size);
    else
        sl_buf_u8(&w.file, '\0'); /* offset 0 is always the empty string */
    sl_table_put(&w, AT_KEY, key, 8);
    return sl_table_finish(&w, out);
}

void sl_index_builder_free(struct sl_index_builder *b)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&b->source_names, e));)
        free(e->value);
    sl_map_free(&b->source_names);
    sl_buf_free(&b->strings);
    free(b->objects);
    free(b->files);
    free(b->sources);
    *b = (struct sl_index_builder){0};
}
