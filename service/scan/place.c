/* Parses and formats the version text of a file in a scan's index: its size and time, and its place in a package. */
#include "scan/impl.h"

#include <inttypes.h>

/* Takes a decimal number from the start of `rest`, and the blank behind it, if there is one. False if there is no number. */
static bool read_number(struct sl_str *rest, uint64_t *value)
{
    if (!sl_str_take_u64(rest, value))
        return false;
    if (rest->size && rest->data[0] == ' ')
        *rest = (struct sl_str){rest->data + 1, rest->size - 1};
    return true;
}

/* Parses a version: "FILE_SIZE MTIME" or, for a member of a package, "FILE_SIZE MTIME PACKAGE_PATH_SIZE OFFSET SIZE", where the first two
 * are those of the package, the last two the member's place in it. False if the text has neither form. */
bool scan_place_parse(struct sl_str version, struct scan_place *place)
{
    uint64_t mtime;
    *place = (struct scan_place){.is_member = false};
    if (!read_number(&version, &place->file_size) || !read_number(&version, &mtime))
        return false;
    place->mtime_ns = (int64_t)mtime;
    place->is_member = version.size > 0;
    return !place->is_member ||
           (read_number(&version, &place->package_path_size) && read_number(&version, &place->offset) &&
            read_number(&version, &place->size) && !version.size);
}

/* The reverse of scan_place_parse(). The path of a member, which is at `offset` and has `size` bytes, is "PACKAGE!MEMBER". */
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
