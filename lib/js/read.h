/* What the readers of source maps share. Private to this folder. */
#pragma once

#include "js/sourcemap.h"

/* A reader at an offset of a map that was read once: its text is well-formed. */
static inline struct sl_json js_read_at(const struct sl_sourcemap *map, uint32_t offset)
{
    struct sl_json json = sl_json(map->text, map->arena, true);
    json.at = offset;
    return json;
}

/* The text at an offset (0: an empty one), and a byte behind it that can be read. False when out of memory. */
static inline bool js_read_text(const struct sl_sourcemap *map, uint32_t offset, struct sl_str *text)
{
    struct sl_json json = js_read_at(map, offset);
    *text = SL_STR("");
    return !offset || sl_json_string(&json, text);
}
