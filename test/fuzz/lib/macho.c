/* Mach-O and fat files: every slice is opened, its sections and symbols are read, and it is converted to a symcache,
 * which must then verify. */
#include <stdlib.h>

#include "object/archive.h"
#include "object/debug_map.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_object(struct sl_object *object)
{
    static const char *const sections[] = {"debug_info", "debug_str_offsets", "eh_frame", "unwind_info"};
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch,
                                          .variables = sl_object_file(object).size % 2};
    struct sl_section_info section;
    struct sl_bytes bytes;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    struct sl_arena arena = {.budget = sl_object_budget(object)};
    struct sl_debug_map map;
    bool has_map = sl_object_has_debug_map(object);
    if (sl_object_debug_map(object, &arena, &map, NULL) == SL_OK && has_map != (map.file_count > 0))
        abort();
    sl_arena_free(&arena);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sl_object_section(object, sections[i], &bytes, NULL);
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (section.name.size > 16)
            abort();
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_bytes bytes = {data, size};
    struct sl_archive archive;
    struct sl_object *object;
    if (sl_format_detect(bytes) != SL_FORMAT_MACHO || sl_archive_open(bytes, &archive, NULL) != SL_OK)
        return 0;
    for (size_t i = 0; i < archive.count; i++) {
        if (sl_archive_object(&archive, i, NULL, &object, NULL) != SL_OK)
            continue;
        if (sl_object_info(object)->format == SL_FORMAT_MACHO)
            read_object(object);
        sl_object_close(object);
    }
    return 0;
}
