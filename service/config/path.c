#include "config/impl.h"

static struct path_place here(const struct path *path)
{
    return (struct path_place){path->shown.size, path->pattern.size};
}

static void step(struct sl_buf *text, struct sl_str key)
{
    if (text->size)
        sl_buf_u8(text, '.');
    sl_buf_str(text, key);
}

struct path_place path_key(struct path *path, struct sl_str key)
{
    struct path_place place = here(path);
    step(&path->shown, key);
    step(&path->pattern, key);
    return place;
}

struct path_place path_index(struct path *path, size_t index)
{
    struct path_place place = here(path);
    sl_buf_printf(&path->shown, "[%zu]", index);
    sl_buf_cstr(&path->pattern, "[]");
    return place;
}

void path_up(struct path *path, struct path_place place)
{
    path->shown.size = place.shown;
    path->pattern.size = place.pattern;
}

const char *path_shown(struct path *path)
{
    size_t size = path->shown.size;
    sl_buf_u8(&path->shown, '\0');
    path->shown.size = size;
    return path->shown.failed || !path->shown.data ? "" : (const char *)path->shown.data;
}

struct sl_str path_pattern(const struct path *path)
{
    return sl_buf_view(&path->pattern);
}

void path_free(struct path *path)
{
    sl_buf_free(&path->shown);
    sl_buf_free(&path->pattern);
}
