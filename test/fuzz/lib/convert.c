/* ELF and DWARF: opening, sections, symbols, embedded sources, and the whole conversion to a symcache, without variables and with
 * them, which must then verify. */
#include <stdlib.h>

#include "dwarf/dwarf.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool look_at(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    size_t *left = arg;
    if (!file->name.size || !text.size || text.data[text.size - 1] == '\0')
        abort();
    return --*left;
}

static void convert(struct sl_bytes file, bool variables)
{
    struct sl_object *object;
    struct sl_object_limits limits = {.max_section_size = 1 << 24};
    if (sl_object_open(file, &limits, &object, NULL) != SL_OK)
        return;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {.arch = info->arch, .debug_id = info->debug_id, .variables = variables};
    struct sl_buf out = {0};
    struct sl_symcache cache;
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    size_t texts = 1000;
    sl_dwarf_sources(object, look_at, &texts);
    sl_buf_free(&out);
    sl_object_close(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    convert((struct sl_bytes){data, size}, false);
    convert((struct sl_bytes){data, size}, true);
    return 0;
}
