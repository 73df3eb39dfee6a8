/* Every mapping of a source map as its table finds it: a line "line column line column name" for each look-up that has an answer.
 * Looked up is where each mapping begins, and the column behind it.
 *
 * usage: mappings MAP */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "js/smcache.h"
#include "js/sourcemap.h"

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "mappings: %s\n", what);
    exit(1);
}

static void print_place(const struct sl_smcache *cache, uint32_t line, uint32_t column)
{
    struct sl_smcache_position place;
    if (sl_smcache_lookup(cache, line, column, &place))
        printf("%u %u %u %u " SL_STR_FMT "\n", line, column, place.line, place.column, SL_STR_ARG(place.name));
}

int main(int argc, char **argv)
{
    const struct sl_smcache_options options = {0};
    struct sl_error error = {0};
    struct sl_mapping file;
    struct sl_buf table = {0};
    struct sl_smcache cache;
    struct sl_arena arena = {0};
    struct sl_sourcemap map;
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    must(argc == 2, "usage: mappings MAP");
    must(sl_map_file(argv[1], &file, &error) == SL_OK, error.message);
    struct sl_str text = {(const char *)file.bytes.data, file.bytes.size};
    must(sl_smcache_write(SL_STR(""), text, &options, NULL, &table, &error) == SL_OK, error.message);
    must(sl_smcache_open(sl_buf_bytes(&table), &cache, &error) == SL_OK, error.message);
    must(sl_sourcemap_read(text, &arena, &map, NULL, &error) == SL_OK, error.message);
    sl_sourcemap_tokens(&map, &tokens);
    while (sl_sourcemap_batch(&tokens, &batch, &error) == SL_OK && batch.count)
        for (uint32_t i = 0; i < batch.count; i++) {
            print_place(&cache, batch.line[i], batch.column[i]);
            print_place(&cache, batch.line[i], batch.column[i] + 1);
        }
    sl_arena_free(&arena);
    sl_buf_free(&table);
    sl_unmap(&file);
    return 0;
}
