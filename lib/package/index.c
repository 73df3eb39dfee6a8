#include "package/index_impl.h"

#include "base/search.h"

const struct sl_table_format index_format = {
    .magic = "SLIX",
    .name = "index of scanned files",
    .major = 1,
    .header_size = INDEX_HEADER,
    .at_section_count = AT_SECTION_COUNT,
    .sections = INDEX_SECTIONS,
};

/* ---- ids ---- */

struct sl_index_id sl_index_id(enum sl_index_id_type type, struct sl_bytes bytes)
{
    struct sl_index_id id = {.size = bytes.size < 255 ? (uint8_t)bytes.size : 255, .type = (uint8_t)type};
    if (bytes.size)
        memcpy(id.bytes, bytes.data, bytes.size < SL_INDEX_ID_BYTES ? bytes.size : SL_INDEX_ID_BYTES);
    return id;
}

/* The bytes of the id: the UUID, then the age as big-endian u32. */
struct sl_index_id sl_index_debug_id(const struct sl_debug_id *id)
{
    uint8_t bytes[SL_INDEX_ID_BYTES];
    memcpy(bytes, id->uuid, 16);
    for (int i = 0; i < 4; i++)
        bytes[16 + i] = (uint8_t)(id->age >> (24 - 8 * i));
    return sl_index_id(SL_INDEX_DEBUG_ID, (struct sl_bytes){bytes, sizeof bytes});
}

struct sl_index_id sl_index_name(struct sl_str name)
{
    uint8_t bytes[8];
    uint64_t hash = sl_hash(name.data, name.size);
    memcpy(bytes, &hash, sizeof bytes); /* in this machine's byte order: indexes stay on the machine that makes them */
    return sl_index_id(SL_INDEX_NAME, (struct sl_bytes){bytes, sizeof bytes});
}

struct sl_index_id sl_index_code_id(struct sl_str code_id)
{
    enum { MIN_BYTES = 8 }; /* a code id of at most 16 digits is that of a PE file: 8 digits of a time, then a size */
    uint8_t bytes[255];
    size_t size;
    if (code_id.size > 2 * MIN_BYTES && sl_hex_decode(code_id, bytes, sizeof bytes, &size))
        return sl_index_id(SL_INDEX_CODE_ID, (struct sl_bytes){bytes, size});
    return sl_index_id(SL_INDEX_CODE_TEXT, (struct sl_bytes){(const uint8_t *)code_id.data, code_id.size});
}

/* ---- opening ---- */

enum sl_code sl_index_open(struct sl_bytes bytes, struct sl_index *index, struct sl_error *error)
{
    *index = (struct sl_index){0};
    enum sl_code code = sl_table_open(bytes, &index_format, &index->table, error);
    if (code != SL_OK)
        return code;
    const struct sl_bytes *sections = index->table.sections;
    index->object_count = sections[SECTION_OBJECTS].size / OBJECT_BYTES;
    index->file_count = sections[SECTION_FILES].size / FILE_BYTES;
    index->source_count = sections[SECTION_SOURCES].size / SOURCE_BYTES;
    index->key = sl_table_u64(bytes.data + AT_KEY);
    if (sections[SECTION_OFFSETS].size / OFFSET_BYTES != index->object_count)
        return sl_fail(error, SL_MALFORMED,
                       "the index of scanned files is damaged: the numbers of objects and offsets differ");
    return SL_OK;
}

static struct sl_str read_string(const struct sl_index *index, uint32_t at)
{
    return sl_cstr_at(index->table.sections[SECTION_STRINGS], at);
}

static const uint8_t *object_at(const struct sl_index *index, size_t at)
{
    return index->table.sections[SECTION_OBJECTS].data + at * OBJECT_BYTES;
}

/* ---- look-ups ---- */

/* Compares an object of the index with the type and the first `size` bytes of an id: less than, equal to or greater than 0 like memcmp().
 * Objects are sorted by type, then by id. */
static int compare_begin(const uint8_t *object, const struct sl_index_id *id, size_t size)
{
    return object[3] != id->type ? object[3] - id->type : memcmp(object + 4, id->bytes, size);
}

size_t sl_index_find(const struct sl_index *index, const struct sl_index_id *id, size_t size, size_t *first)
{
    size = size < SL_INDEX_ID_BYTES ? size : SL_INDEX_ID_BYTES;
    *first = SL_PARTITION_POINT(i, 0, index->object_count, compare_begin(object_at(index, i), id, size) < 0);
    size_t end = SL_PARTITION_POINT(i, *first, index->object_count, compare_begin(object_at(index, i), id, size) <= 0);
    return end - *first;
}

bool sl_index_object(const struct sl_index *index, size_t at, struct sl_index_object *object)
{
    if (at >= index->object_count)
        return false;
    const uint8_t *bytes = object_at(index, at); /* layout: section 1 in index.h */
    uint32_t name = sl_table_u32(bytes + 28);
    *object = (struct sl_index_object){
        .id = {.size = bytes[0], .type = bytes[3]},
        .content = bytes[1],
        .format = bytes[2],
        .file = sl_table_u32(bytes + 24),
        .is_derived = name == DERIVED_NAME, /* the path is not stored, as it follows from the id */
        .size = sl_table_u64(bytes + 32),
        .offset = sl_table_u64(index->table.sections[SECTION_OFFSETS].data + at * OFFSET_BYTES),
    };
    memcpy(object->id.bytes, bytes + 4, SL_INDEX_ID_BYTES);
    if (!object->is_derived)
        object->member = read_string(index, name);
    return object->file < index->file_count;
}

bool sl_index_file(const struct sl_index *index, size_t at, struct sl_index_file *file)
{
    if (at >= index->file_count)
        return false;
    const uint8_t *bytes = index->table.sections[SECTION_FILES].data + at * FILE_BYTES; /* section 3 in index.h */
    *file = (struct sl_index_file){
        .path = read_string(index, sl_table_u32(bytes)),
        .source = read_string(index, sl_table_u32(bytes + 4)),
        .size = sl_table_u64(bytes + 8),
        .mtime_ns = (int64_t)sl_table_u64(bytes + 16),
        .kind = bytes[24] < SL_PACKAGE_KINDS ? (enum sl_package_kind)bytes[24] : SL_PACKAGE_NONE,
        .source_texts = sl_table_u32(bytes + 28),
    };
    return file->path.size > 0;
}

bool sl_index_source(const struct sl_index *index, size_t at, struct sl_index_source *source)
{
    if (at >= index->source_count)
        return false;
    /* layout: section 4 in index.h; the first u32, the number of the file, is not returned */
    const uint8_t *bytes = index->table.sections[SECTION_SOURCES].data + at * SOURCE_BYTES;
    *source = (struct sl_index_source){.path = read_string(index, sl_table_u32(bytes + 4)),
                                       .size = sl_table_u64(bytes + 8),
                                       .offset = sl_table_u64(bytes + 16)};
    return source->path.size > 0;
}

void sl_index_member_path(const struct sl_index_object *object, struct sl_buf *out)
{
    const struct sl_index_id *id = &object->id;
    if (!object->is_derived) {
        sl_buf_str(out, object->member);
        return;
    }
    /* the path that debug packages use: /usr/lib/debug/.build-id/ab/cdef.debug for the build id abcdef */
    size_t size = id->size < SL_INDEX_ID_BYTES ? id->size : SL_INDEX_ID_BYTES;
    sl_buf_cstr(out, "/usr/lib/debug/.build-id/");
    sl_buf_hex(out, id->bytes, size ? 1 : 0);
    sl_buf_u8(out, '/');
    sl_buf_hex(out, id->bytes + 1, size ? size - 1 : 0);
    sl_buf_cstr(out, ".debug");
}
