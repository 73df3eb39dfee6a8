#include "object/archive.h"

#include "object/impl.h"

enum { FAT_HEADER = 8, FAT_ARCH_32 = 20, FAT_ARCH_64 = 32 };

/* True if the slices together are larger than the file, so that some overlap. Those of real files never do; in a crafted file many slices
 * over the same bytes would cost far more than the size of the file justifies. */
static bool shares_bytes(const struct sl_archive *archive)
{
    uint64_t total = 0;
    struct sl_bytes slice;
    for (size_t i = 0; i < archive->count; i++)
        total += sl_archive_slice(archive, i, &slice) ? slice.size : 0;
    return total > archive->bytes.size;
}

enum sl_code sl_archive_open(struct sl_bytes bytes, struct sl_archive *archive, struct sl_error *error)
{
    *archive = (struct sl_archive){.bytes = bytes, .count = 1};
    enum sl_format format = sl_format_detect(bytes);
    if (format == SL_FORMAT_UNKNOWN)
        return sl_fail(error, SL_MALFORMED, "unsupported object file format");
    struct sl_reader r = sl_reader(bytes, true); /* fat headers are big-endian */
    uint32_t magic = sl_read_u32(&r), count = sl_read_u32(&r);
    /* FAT_MAGIC, FAT_MAGIC_64; any other file is itself the only object */
    if (format != SL_FORMAT_MACHO || (magic != 0xCAFEBABE && magic != 0xCAFEBABF))
        return SL_OK;
    archive->is_fat = true;
    archive->is_64bit = magic == 0xCAFEBABF;
    size_t entry = archive->is_64bit ? FAT_ARCH_64 : FAT_ARCH_32;
    if (count == 0 || count > sl_reader_left(&r) / entry)
        return sl_fail(error, SL_MALFORMED, "invalid MachO file: %s",
                       count ? "fat header outside of the file" : "fat file without objects");
    archive->count = count;
    if (shares_bytes(archive))
        return sl_fail(error, SL_MALFORMED, "invalid MachO file: objects of the fat file overlap");
    return SL_OK;
}

bool sl_archive_slice(const struct sl_archive *archive, size_t index, struct sl_bytes *bytes)
{
    *bytes = archive->bytes;
    if (index >= archive->count)
        return false;
    if (!archive->is_fat)
        return true;
    struct sl_reader r = sl_reader(archive->bytes, true);
    sl_reader_seek(&r, FAT_HEADER + index * (archive->is_64bit ? FAT_ARCH_64 : FAT_ARCH_32));
    sl_reader_skip(&r, 8); /* processor */
    uint64_t offset = archive->is_64bit ? sl_read_u64(&r) : sl_read_u32(&r);
    uint64_t size = archive->is_64bit ? sl_read_u64(&r) : sl_read_u32(&r);
    *bytes = (struct sl_bytes){NULL, 0};
    if (r.failed || offset >= archive->bytes.size || !size)
        return false;
    uint64_t left = archive->bytes.size - offset;
    *bytes = sl_bytes_slice(archive->bytes, offset, size < left ? size : left, NULL);
    return true;
}

enum sl_code sl_archive_object(const struct sl_archive *archive, size_t index, const struct sl_object_limits *limits,
                               struct sl_object **object, struct sl_error *error)
{
    struct sl_bytes bytes;
    *object = NULL;
    if (index >= archive->count)
        return sl_fail(error, SL_NOT_FOUND, "the file has no object number %zu", index);
    if (!sl_archive_slice(archive, index, &bytes))
        return sl_fail(error, SL_MALFORMED, "invalid MachO file: object %zu extends beyond the file", index);
    /* the number of objects: without a budget in `limits` each gets a smaller one, so that many objects cost no more */
    return object_open_slice(bytes, limits, archive->count, object, error);
}

/* True if the object has the wanted debug id. A larger age than the wanted one matches, too, because the age grows with each change of a
 * PDB. A WASM file also matches if the wanted UUID is the first 16 bytes (32 digits) of its raw code id, which is the build id with its
 * length in front: some clients send that as the id. Other formats have no raw code id. */
static bool matches_debug_id(const struct sl_object_info *info, const struct sl_debug_id *id)
{
    struct sl_debug_id raw = {0};
    if (!sl_debug_id_has_uuid(id))
        return false;
    /* pdb20: both ids are of PDB 2.0 files (time stamp and age), or both are UUIDs */
    if (info->debug_id.pdb20 == id->pdb20 && memcmp(info->debug_id.uuid, id->uuid, sizeof id->uuid) == 0)
        return info->debug_id.age >= id->age;
    return info->raw_code_id.size >= 32 &&
           sl_hex_decode((struct sl_str){info->raw_code_id.data, 32}, raw.uuid, sizeof raw.uuid, NULL) &&
           memcmp(raw.uuid, id->uuid, sizeof raw.uuid) == 0;
}

bool sl_object_matches(const struct sl_object_info *info, const struct sl_object_wanted *wanted)
{
    struct sl_str id = wanted->code_id;
    if (wanted->debug_id)
        return matches_debug_id(info, wanted->debug_id);
    return id.size && (sl_str_equal(id, info->code_id) || sl_str_equal(id, info->raw_code_id));
}

/* Opens the slices one after the other until one matches. If none does, the error is the first failure to open a slice, because the wanted
 * object may be the one that could not be opened. */
enum sl_code sl_archive_find(const struct sl_archive *archive, const struct sl_object_wanted *wanted,
                             const struct sl_object_limits *limits, struct sl_object **object, size_t *index,
                             struct sl_error *error)
{
    struct sl_error reason, first = {0};
    bool takes_any = !wanted->debug_id && !wanted->code_id.size; /* no id is wanted */
    if (index)
        *index = 0;
    if (!archive->is_fat)
        return sl_archive_object(archive, 0, limits, object, error);
    for (size_t i = 0; i < archive->count; i++) {
        enum sl_code code = sl_archive_object(archive, i, limits, object, &reason);
        if (code == SL_OK && (takes_any || sl_object_matches(sl_object_info(*object), wanted))) {
            if (index)
                *index = i;
            return SL_OK;
        }
        if (code != SL_OK && first.code == SL_OK)
            first = reason;
        sl_object_close(*object);
    }
    *object = NULL;
    if (first.code != SL_OK)
        return sl_fail(error, first.code, "%s", first.message);
    return sl_fail(error, SL_NOT_FOUND, "no object of the fat file has the requested id");
}
