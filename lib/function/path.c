#include "function/path.h"

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static bool is_windows_absolute(struct sl_str p)
{
    if (p.size >= 2 && p.data[0] == p.data[1] && is_separator(p.data[0]))
        return true;
    bool letter = p.size >= 2 && ((p.data[0] | 32) >= 'a' && (p.data[0] | 32) <= 'z');
    return letter && p.data[1] == ':' && (p.size == 2 || is_separator(p.data[2]));
}

bool sl_path_is_windows(struct sl_str path)
{
    return is_windows_absolute(path) || (path.size && memchr(path.data, '\\', path.size));
}

void sl_path_join(struct sl_buf *out, struct sl_str base, struct sl_str other)
{
    bool pseudo = other.size >= 2 && other.data[0] == '<' && other.data[other.size - 1] == '>';
    if (pseudo || base.size == 0 || is_windows_absolute(other) || (other.size && other.data[0] == '/')) {
        sl_buf_str(out, other);
        return;
    }
    if (other.size == 0) {
        sl_buf_str(out, base);
        return;
    }
    if (other.data[0] == '\\') {
        if (is_windows_absolute(base))
            sl_buf_add(out, base.data, 2);
        sl_buf_str(out, other);
        return;
    }
    bool windows = sl_path_is_windows(base) || sl_path_is_windows(other);
    while (base.size && is_separator(base.data[base.size - 1]))
        base.size--;
    sl_buf_str(out, base);
    sl_buf_u8(out, windows ? '\\' : '/');
    sl_buf_str(out, other);
}

/* Length of the root that `..` cannot leave: "/", "\\\\", "C:\\". */
static size_t root_of(struct sl_str p)
{
    size_t size = 0;
    if (is_windows_absolute(p))
        size = is_separator(p.data[0]) ? 0 : 2;
    while (size < p.size && is_separator(p.data[size]))
        size++;
    return size;
}

void sl_path_clean(struct sl_buf *out, struct sl_str path)
{
    char separator = sl_path_is_windows(path) ? '\\' : '/';
    size_t start = out->size, root = root_of(path), floor;
    for (size_t i = 0; i < root; i++)
        sl_buf_u8(out, (uint8_t)(is_separator(path.data[i]) ? separator : path.data[i]));
    size_t rooted = out->size; /* kept `..` segments raise the floor */
    floor = rooted;
    for (size_t at = root; at < path.size;) {
        size_t end = at;
        while (end < path.size && !is_separator(path.data[end]))
            end++;
        struct sl_str segment = {path.data + at, end - at};
        at = end + 1;
        if (segment.size == 0 || sl_str_equal(segment, SL_STR(".")))
            continue;
        if (sl_str_equal(segment, SL_STR(".."))) {
            if (out->size > floor) {
                while (out->size > floor && out->data[out->size - 1] != (uint8_t)separator)
                    out->size--;
                if (out->size > floor)
                    out->size--;
                continue;
            }
            if (root)
                continue; /* an absolute path stays at its root */
        }
        if (out->size > rooted)
            sl_buf_u8(out, (uint8_t)separator);
        sl_buf_str(out, segment);
        if (sl_str_equal(segment, SL_STR("..")))
            floor = out->size;
    }
    if (out->size == start && root == 0 && path.size == 0)
        return;
}

void sl_path_written(struct sl_buf *out, struct sl_str comp_dir, struct sl_str directory, struct sl_str name)
{
    struct sl_buf inner = {0};
    sl_path_join(&inner, comp_dir, directory);
    sl_path_join(out, sl_buf_view(&inner), name);
    out->failed = out->failed || inner.failed;
    sl_buf_free(&inner);
}

void sl_path_full(struct sl_buf *out, struct sl_str comp_dir, struct sl_str directory, struct sl_str name)
{
    struct sl_buf inner = {0}, joined = {0};
    sl_path_join(&inner, comp_dir, directory);
    sl_path_join(&joined, sl_buf_view(&inner), name);
    sl_path_clean(out, sl_buf_view(&joined));
    out->failed |= inner.failed || joined.failed;
    sl_buf_free(&inner);
    sl_buf_free(&joined);
}

void sl_path_split(struct sl_str path, struct sl_str *directory, struct sl_str *name)
{
    while (path.size && is_separator(path.data[path.size - 1]))
        path.size--;
    size_t at = path.size;
    while (at && !is_separator(path.data[at - 1]))
        at--;
    *name = (struct sl_str){path.data ? path.data + at : NULL, path.size - at};
    *directory = (struct sl_str){path.data, at == 0 ? 0 : at == 1 ? 1 : at - 1};
}
