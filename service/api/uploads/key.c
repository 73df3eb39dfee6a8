/* Keys, the names of symbol files in the store of Mozilla's upload API: `<debug file>/<DEBUG ID>/<file>`. */
#include "api/uploads/uploads.h"

enum { KEY_MAX = 300, COMPONENT_MAX = 255 };

/* True if the text may be a component of a key: UTF-8 of 1 to COMPONENT_MAX bytes, not "." or "..", without control characters, characters
 * from U+0080 to U+00FF, and those in `others`. */
static bool is_component(struct sl_str text)
{
    static const char others[] = "\\^`><{}[]#%\"'|/";
    if (!text.size || text.size > COMPONENT_MAX || !sl_str_is_utf8(text) || sl_str_equal(text, SL_STR(".")) ||
        sl_str_equal(text, SL_STR("..")))
        return false;
    for (size_t at = 0; at < text.size;) {
        uint32_t c = sl_utf8_next(text, &at);
        if (c < 0x20 || (c >= 0x80 && c <= 0xFF) || (c < 0x80 && strchr(others, (int)c)))
            return false;
    }
    return true;
}

static bool is_hex(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!sl_is_digit(text.data[i]) && !((text.data[i] | 32) >= 'a' && (text.data[i] | 32) <= 'f'))
            return false;
    return text.size > 0;
}

/* Makes the key "<debug file>/<DEBUG ID>/<file>" from its parts, with the id in upper case. False if a part is invalid (`key->size` is 0),
 * or when out of memory (`key->size` is not 0). */
bool uploads_make_key(struct sl_arena *arena, const struct sl_str parts[3], struct sl_str *key)
{
    size_t size = parts[0].size + parts[1].size + parts[2].size + 2;
    *key = (struct sl_str){NULL, 0};
    if (size > KEY_MAX || !is_component(parts[0]) || !is_hex(parts[1]) || !is_component(parts[2]))
        return false;
    char *text = sl_arena_alloc(arena, size, 1);
    *key = (struct sl_str){text, size}; /* when out of memory the size tells so */
    if (!text)
        return false;
    memcpy(text, parts[0].data, parts[0].size);
    text[parts[0].size] = '/';
    char *id = text + parts[0].size + 1;
    for (size_t i = 0; i < parts[1].size; i++)
        id[i] = (char)(parts[1].data[i] >= 'a' ? parts[1].data[i] - 32 : parts[1].data[i]);
    id[parts[1].size] = '/';
    memcpy(id + parts[1].size + 1, parts[2].data, parts[2].size);
    return true;
}

/* Makes a key from a name of the form "<file>/<hex digits>/<file>". False if it is invalid (`key->size` is 0), or when out of memory
 * (`key->size` is not 0). */
bool uploads_normalize_key(struct sl_arena *arena, struct sl_str name, struct sl_str *key)
{
    const char *one = name.size ? memchr(name.data, '/', name.size) : NULL;
    const char *two = one ? memchr(one + 1, '/', (size_t)(name.data + name.size - one - 1)) : NULL;
    *key = (struct sl_str){NULL, 0};
    if (!two)
        return false;
    const struct sl_str parts[3] = {{name.data, (size_t)(one - name.data)},
                                    {one + 1, (size_t)(two - one - 1)},
                                    {two + 1, (size_t)(name.data + name.size - two - 1)}};
    return uploads_make_key(arena, parts, key);
}

/* Returns the text behind the last dot; empty if there is none. */
static struct sl_str extension(struct sl_str name)
{
    const char *dot = memrchr(name.data, '.', name.size);
    return dot ? (struct sl_str){dot + 1, (size_t)(name.data + name.size - dot - 1)} : SL_STR("");
}

bool uploads_is_packed(const struct config_store *config, struct sl_str name)
{
    for (size_t i = 0; i < config->compress_extension_count; i++)
        if (sl_str_equal_nocase(extension(name), config->compress_extensions[i]))
            return true;
    return false;
}

const char *uploads_media_type(const struct config_store *config, struct sl_str name, struct sl_arena *arena)
{
    struct sl_str last = extension(name);
    for (size_t i = 0; i < config->mime_override_count; i++)
        if (sl_str_equal_nocase(last, config->mime_overrides[i].key))
            return sl_arena_strndup(arena, config->mime_overrides[i].value.data, config->mime_overrides[i].value.size);
    return sl_str_equal_nocase(last, SL_STR("sym")) ? "text/plain" : "application/octet-stream";
}

struct sl_str uploads_name(struct sl_arena *arena, const char *scope, const char *prefix, struct sl_str rest)
{
    struct sl_buf name = {0};
    if (*scope)
        sl_buf_printf(&name, "scopes/%s/", scope);
    sl_buf_cstr(&name, prefix);
    sl_buf_str(&name, rest);
    return sl_buf_move_to_arena(&name, arena);
}
