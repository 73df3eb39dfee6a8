/* PDB: opening, publics, variables, and the whole conversion to a symcache, which must then verify. */
#include <stdlib.h>

#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_object *object;
    struct sl_bytes bytes = {data, size};
    if (sl_format_detect(bytes) != SL_FORMAT_PDB || sl_object_open(bytes, NULL, &object, NULL) != SL_OK)
        return 0;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {.arch = info->arch, .debug_id = info->debug_id};
    struct sl_buf out = {0};
    struct sl_symcache cache;
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    sl_object_data_symbols(object, &arena, &symbols, &count, NULL);
    sl_arena_free(&arena);
    sl_buf_free(&out);
    sl_object_close(object);
    return 0;
}
