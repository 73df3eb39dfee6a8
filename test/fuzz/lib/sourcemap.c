/* Source maps: read, made into a table, and every token looked up there. What is behind the first NUL is the script. */
#include "js/smformat.h"
#include "js/sourcemap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

/* A token is found where it begins, with the source of it or of the first that begins there. */
static void look_everything_up(struct sl_str text, const struct sl_smcache *cache)
{
    struct sl_arena arena = {0};
    struct sl_sourcemap map;
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    struct sl_smcache_position place;
    uint64_t count = 0;
    must(sl_sourcemap_read(text, &arena, &map, NULL, NULL) == SL_OK);
    sl_sourcemap_tokens(&map, &tokens);
    while (sl_sourcemap_batch(&tokens, &batch, NULL) == SL_OK && batch.count) {
        for (uint32_t i = 0; i < batch.count; i++) {
            struct smcache_token token;
            must(smcache_find(cache, batch.line[i], batch.column[i], &token) && token.line == batch.line[i] &&
                 token.column == batch.column[i] && token.source <= cache->source_count);
            if (sl_smcache_lookup(cache, batch.line[i], batch.column[i], &place)) {
                struct sl_context context;
                struct sl_context_cursor cursor = sl_smcache_cursor(cache, place.source, place.line);
                must(place.source < cache->source_count && sl_smcache_source(cache, place.source).data);
                sl_context_at(&cursor, place.line, &context);
                uint32_t calls = 0;
                while (sl_smcache_caller(cache, &place))
                    must(place.source < cache->source_count && ++calls <= text.size);
            }
        }
        count += batch.count;
    }
    for (uint32_t i = 0; i < cache->source_count; i++)
        must(sl_smcache_source(cache, i).data);
    must(cache->ranges ? count <= cache->token_count : count == cache->token_count); /* ranges are repeated */
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    struct sl_str text = {(const char *)data, end ? (size_t)(end - data) : size};
    struct sl_str script = {(const char *)data + text.size, size - text.size};
    const struct sl_smcache_options options = {.partial_scopes = size & 1, .compat_names = size & 2};
    struct sl_budget budget;
    struct sl_buf file = {0};
    struct sl_smcache cache;
    if (end)
        script = (struct sl_str){script.data + 1, script.size - 1};
    sl_budget_init(&budget, size);
    if (sl_smcache_write(script, text, &options, &budget, &file, NULL) == SL_OK) {
        must(sl_smcache_open(sl_buf_bytes(&file), &cache, NULL) == SL_OK);
        must(sl_table_is_intact(&cache.table));
        look_everything_up(text, &cache);
    }
    sl_buf_free(&file);
    return 0;
}
