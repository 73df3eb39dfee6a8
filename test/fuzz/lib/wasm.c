/* WebAssembly modules: sections and symbols lie in the file, and the conversion to a symcache verifies. The input is what
 * follows the header. */
#include <stdlib.h>

#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_object(struct sl_object *object)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch,
                                          .variables = sl_object_file(object).size % 2};
    uint64_t file = sl_object_file(object).size;
    struct sl_arena arena = {0};
    struct sl_section_info section;
    struct sl_symbol *symbols;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    size_t count;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (section.offset > file || section.size > file - section.offset)
            abort();
    if (sl_object_symbols(object, &arena, &symbols, &count, NULL) == SL_OK)
        for (size_t i = 0; i < count; i++)
            if (symbols[i].address > file || symbols[i].size > file - symbols[i].address)
                abort();
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    sl_buf_free(&out);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t header[8] = "\0asm\1\0\0\0";
    struct sl_object *object;
    uint8_t *file = malloc(sizeof header + size);
    if (!file)
        return 0;
    memcpy(file, header, sizeof header);
    if (size)
        memcpy(file + sizeof header, data, size);
    if (sl_object_open((struct sl_bytes){file, sizeof header + size}, NULL, &object, NULL) == SL_OK) {
        read_object(object);
        sl_object_close(object);
    }
    free(file);
    return 0;
}
