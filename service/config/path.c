/* The dotted key of the current value in a walk through the tree of the configuration. */
#include "config/impl.h"

/* Returns the current sizes of both texts of the path, to which path_up() cuts them. */
static struct path_mark current_end(const struct config_path *path)
{
    return (struct path_mark){path->shown.size, path->pattern.size};
}

/* Appends a key to the text of the path for messages; an empty key as "". */
static void append_shown(struct sl_buf *text, struct sl_str key)
{
    if (text->size)
        sl_buf_u8(text, '.');
    sl_buf_str(text, key.size ? key : SL_STR("\"\""));
}

/* Appends a key of the file to the text that is looked up in the table of keys. Dots and brackets in it become a character that no key of
 * the table has, since the key "a.b" must not be found as `b` in the group `a`. An empty key becomes that character, too. */
static void append_pattern(struct sl_buf *text, struct sl_str key)
{
    enum { NOT_IN_TABLES = '\x1F' };
    if (text->size)
        sl_buf_u8(text, '.');
    for (size_t i = 0; i < key.size; i++)
        sl_buf_u8(text, strchr(".[]", key.data[i]) ? NOT_IN_TABLES : (uint8_t)key.data[i]);
    if (key.size == 0)
        sl_buf_u8(text, NOT_IN_TABLES);
}

struct path_mark path_key(struct config_path *path, struct sl_str key)
{
    struct path_mark end = current_end(path);
    append_shown(&path->shown, key);
    append_pattern(&path->pattern, key);
    return end;
}

struct path_mark path_index(struct config_path *path, size_t index)
{
    struct path_mark end = current_end(path);
    sl_buf_printf(&path->shown, "[%zu]", index);
    sl_buf_cstr(&path->pattern, "[]");
    return end;
}

void path_up(struct config_path *path, struct path_mark end)
{
    path->shown.size = end.shown;
    path->pattern.size = end.pattern;
}

const char *path_shown(struct config_path *path)
{
    size_t size = path->shown.size;
    sl_buf_u8(&path->shown, '\0');
    path->shown.size = size; /* the NUL stays in memory, and the next step overwrites it */
    return path->shown.failed || !path->shown.data ? "" : (const char *)path->shown.data;
}

struct sl_str path_pattern(const struct config_path *path)
{
    return sl_buf_view(&path->pattern);
}

void path_free(struct config_path *path)
{
    sl_buf_free(&path->shown);
    sl_buf_free(&path->pattern);
}
