/* What scripts say of themselves in comments: a part of the script that stands behind its marker. */
#include "js/comment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_str script = {(const char *)data, size}, marker = SL_STR("sourceMappingURL=");
    struct sl_str map, before;
    struct sl_debug_id id;
    bool found = sl_js_map_comment(script, &map);
    sl_js_debug_id_comment(script, &id);
    must(found || !map.data);
    if (!found)
        return 0;
    must(map.data >= script.data && map.size <= (size_t)(script.data + size - map.data));
    before = (struct sl_str){script.data, (size_t)(map.data - script.data)};
    while (before.size && sl_is_blank(before.data[before.size - 1]))
        before.size--;
    must(sl_str_ends(before, marker));
    return 0;
}
