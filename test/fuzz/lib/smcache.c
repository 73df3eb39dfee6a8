/* A table of a source map whose bytes behind the header are changed in places: three bytes of input each, offset (little-endian)
 * and what is put there. What it is asked then may be answered wrongly, but it is answered. */
#include <stdlib.h>

#include "js/smcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char script[] = "function a(){b();function c(){}}\nclass D{e(){}}\n";
static const char map[] =
    "{\"sources\":[\"x\",\"y\"],\"sourcesContent\":[\"one\\ntwo\\n\",null],\"names\":[\"f\",\"g\"],"
    "\"mappings\":\"AAAAA,SAASA,IAAI,CCAAC,CAAC,EAAA;AAAA,MAAAA,GAAG\",\"rangeMappings\":\"C\",\"scopes\":\"BFAAA,"
    "BFAEC,CBA,CCA,A,EGAA,EGEC,IAAB,FK,FgB\"}";

static void ask(const struct sl_smcache *cache)
{
    struct sl_smcache_position place;
    struct sl_context context;
    size_t bytes = 0;
    for (uint32_t line = 0; line < 3; line++)
        for (uint32_t column = 0; column < 40; column++)
            if (sl_smcache_lookup(cache, line, column, &place)) {
                struct sl_str texts[] = {place.name, place.function, sl_smcache_source(cache, place.source),
                                         sl_smcache_text(cache, place.source)};
                struct sl_context_cursor cursor = sl_smcache_cursor(cache, place.source, place.line);
                sl_context_at(&cursor, place.line, &context);
                while (sl_smcache_caller(cache, &place))
                    bytes += place.line;
                for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                    for (size_t k = 0; k < texts[i].size; k++)
                        bytes += (uint8_t)texts[i].data[k];
            }
    if (bytes == SIZE_MAX) /* so that every byte is looked at */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_smcache_options options = {0};
    struct sl_buf file = {0};
    struct sl_smcache cache;
    if (sl_smcache_write(sl_str(script), sl_str(map), &options, NULL, &file, NULL) != SL_OK ||
        sl_smcache_open(sl_buf_bytes(&file), &cache, NULL) != SL_OK)
        __builtin_trap();
    size_t room = file.size - cache.table.head_size;
    for (size_t i = 0; i + 3 <= size; i += 3)
        file.data[cache.table.head_size + (data[i] | (size_t)data[i + 1] << 8) % room] = data[i + 2];
    ask(&cache);
    sl_buf_free(&file);
    return 0;
}
