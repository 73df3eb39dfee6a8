/* PE: opening, sections, symbols, the Portable PDB inside, and DWARF with the file's own addresses. */
#include <stdlib.h>

#include "object/embedded.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_object *object;
    struct sl_object_limits limits = {.max_section_size = 1 << 24};
    struct sl_bytes bytes = {data, size};
    if (sl_format_detect(bytes) != SL_FORMAT_PE || sl_object_open(bytes, &limits, &object, NULL) != SL_OK)
        return 0;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {.arch = info->arch, .debug_id = info->debug_id, .variables = size % 2};
    struct sl_section_info section;
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct sl_symcache cache;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        continue;
    sl_object_embedded_ppdb(object, &arena, &bytes, NULL);
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    sl_buf_free(&out);
    sl_arena_free(&arena);
    sl_object_close(object);
    return 0;
}
