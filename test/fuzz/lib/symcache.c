/* The symcache reader on hostile bytes behind a valid header: lookups, strings, files, variables. */
#include <stdlib.h>

#include "base/map.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEADER = 128, SECTION_COUNT = 88, HASH = 120 };
    uint8_t *copy = aligned_alloc(8, (size + 7) & ~(size_t)7);
    struct sl_symcache cache;
    struct sl_buf out = {0};
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (size >= HEADER && copy[SECTION_COUNT] <= 16) { /* mend the hash, so that the rest is reached */
        size_t content = HEADER + copy[SECTION_COUNT] * 24u;
        memset(copy + SECTION_COUNT + 1, 0, 3);
        memset(copy + HASH, 0, 8);
        uint64_t hash = content <= size ? sl_hash(copy, content) : 0;
        memcpy(copy + HASH, &hash, 8);
    }
    if (sl_symcache_open((struct sl_bytes){copy, size}, &cache, NULL) == SL_OK) {
        struct sl_location chain[16];
        struct sl_symcache_function function;
        struct sl_symcache_variable variable;
        for (uint64_t address = 0; address < 0x4000; address += 61) {
            size_t n = sl_symcache_lookup(&cache, address, chain, 16);
            for (size_t i = 0; i < n && i < 16; i++) {
                uint32_t first, count = sl_symcache_variables(&cache, chain[i].function, &first);
                for (uint32_t v = first; v - first < count && v - first < 8; v++)
                    if (sl_symcache_variable(&cache, v, &variable))
                        sl_symcache_string(&cache, variable.type, &out);
                if (sl_symcache_function(&cache, chain[i].function, &function))
                    sl_symcache_string(&cache, function.name, &out);
                sl_symcache_file(&cache, chain[i].file, &out);
            }
            sl_buf_clear(&out);
        }
        struct sl_symcache_named named[] = {{.name = SL_STR("main")}, {.name = SL_STR("f")}, {.name = SL_STR("main")}};
        sl_symcache_find_named(&cache, named, 3);
        sl_symcache_verify(&cache, NULL);
    }
    sl_buf_free(&out);
    free(copy);
    return 0;
}
