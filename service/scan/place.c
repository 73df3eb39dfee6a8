/* The version of an indexed file, and its path. */
#include "scan/impl.h"

#include <inttypes.h>

/* Takes a number and the blank behind it; the last number has none. */
static bool take_number(struct sl_str *rest, uint64_t *value)
{
    if (!sl_str_take_u64(rest, value))
        return false;
    if (rest->size && rest->data[0] == ' ')
        *rest = (struct sl_str){rest->data + 1, rest->size - 1};
    return true;
}

bool scan_place_parse(struct sl_str version, struct scan_place *place)
{
    uint64_t mtime;
    *place = (struct scan_place){.is_member = false};
    if (!take_number(&version, &place->file_size) || !take_number(&version, &mtime))
        return false;
    place->mtime_ns = (int64_t)mtime;
    place->is_member = version.size > 0;
    return !place->is_member ||
           (take_number(&version, &place->package_path_size) && take_number(&version, &place->offset) &&
            take_number(&version, &place->size) && !version.size);
}

bool scan_place_format(const struct sl_index_file *file, struct sl_str member, uint64_t offset, uint64_t size,
                       struct sl_arena *arena, struct indexed_file *out)
{
    struct sl_buf path = {0}, version = {0};
    sl_buf_str(&path, file->path);
    sl_buf_printf(&version, "%" PRIu64 " %" PRIu64, file->size, (uint64_t)file->mtime_ns);
    if (member.size) {
        sl_buf_u8(&path, '!');
        sl_buf_str(&path, member);
        sl_buf_printf(&version, " %zu %" PRIu64 " %" PRIu64, file->path.size, offset, size);
    }
    out->path = sl_buf_move_to_arena(&path, arena);
    out->version = sl_buf_move_to_arena(&version, arena);
    return out->path.data && out->version.data;
}

bool scan_describe(const struct remote_file *file, struct sl_arena *arena, struct sl_str *package, struct sl_str *path)
{
    struct scan_place place;
    (void)arena;
    *package = (struct sl_str){NULL, 0};
    *path = file->path;
    if (!scan_of_source(file->source->id) || !scan_place_parse(file->checksum, &place))
        return false;
    if (place.is_member && place.package_path_size < file->path.size) {
        *package = (struct sl_str){file->path.data, (size_t)place.package_path_size};
        *path = (struct sl_str){file->path.data + place.package_path_size + 1,
                                file->path.size - (size_t)place.package_path_size - 1};
    }
    struct sl_str *shown = place.is_member ? package : path;
    const char *slash = shown->size ? memrchr(shown->data, '/', shown->size) : NULL;
    size_t skip = slash ? (size_t)(slash - shown->data) + 1 : 0;
    *shown = (struct sl_str){shown->data + skip, shown->size - skip};
    return true;
}
