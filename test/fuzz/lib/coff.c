/* COFF object files: opening, sections, symbols, and CodeView or DWARF with relocations. */
#include <stdlib.h>

#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_object *object;
    struct sl_object_limits limits = {.max_section_size = 1 << 24};
    struct sl_bytes bytes = {data, size};
    struct sl_str library;
    sl_coff_import(bytes, &library);
    if (sl_format_detect(bytes) != SL_FORMAT_COFF || sl_object_open(bytes, &limits, &object, NULL) != SL_OK)
        return 0;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {.arch = info->arch, .variables = size % 2};
    struct sl_section_info section;
    struct sl_debug_id id;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        continue;
    sl_object_make_id(object, &id);
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    sl_buf_free(&out);
    sl_object_close(object);
    return 0;
}
