/* A request for frames of scripts from its JSON to the answer, which must be JSON again. Scripts take turns in having a map, none,
 * one that is broken, and in being missing. */
#include <stdlib.h>

#include "api/js/js.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sl_str script = SL_STR("function f(){g()}\n//# sourceMappingURL=a.map");
static const struct sl_str map =
    SL_STR("{\"sources\":[\"a.js\",\"b.js\"],\"sourcesContent\":[\"a\\nb\\nc\",null],\"names\":[\"one\"],"
           "\"mappings\":\"AAAAA,SCAA,GACA\"}");
static struct sl_buf file;
static struct sl_smcache table;
static struct cache_item item, script_item;

static void make_table(void)
{
    struct sl_smcache_options options = {.compat_names = false};
    if (sl_smcache_write(script, map, &options, NULL, &file, NULL) != SL_OK ||
        sl_smcache_open(sl_buf_bytes(&file), &table, NULL) != SL_OK)
        abort();
    item.loaded = &table;
    script_item.mapping.bytes = (struct sl_bytes){(const uint8_t *)script.data, script.size};
}

static void find(struct js_request *r)
{
    static struct js_file found = {.code = SL_OK, .origin = JS_SCRAPED, .item = &script_item},
                          missing = {.code = SL_NOT_FOUND}, disabled = {.code = SL_NOT_FOUND, .disabled = true};
    size_t i = 0;
    for (struct js_module *m = r->modules; m; m = m->next, i++) {
        m->label = m->abs_path;
        m->minified = i % 5 == 4 ? &disabled : i % 5 == 3 ? &missing : &found;
        m->has_map = i % 5 != 2;
        m->code = i % 5 == 1 ? SL_MALFORMED : SL_OK;
        m->item = i % 5 ? NULL : &item;
    }
    answer_limit_begin(r->limit, r->arena, r->config->max_response_bytes);
    js_resolve(r);
    for (i = 0; i < r->want_count; i++)
        r->wants[i].file = i % 2 ? &found : &missing;
    js_add_sources(r);
}

static void answer(struct js_request *r)
{
    struct sl_buf out = {0};
    find(r);
    js_write(r, &out);
    struct sl_json again = sl_json(sl_buf_view(&out), NULL, false);
    sl_json_skip(&again);
    if (r->out_of_memory || out.failed || !sl_json_end(&again))
        abort();
    sl_buf_free(&out);
    sl_map_free(&r->modules_by_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config config = {
        .max_request_frames = 2000, .max_request_modules = 500, .max_response_bytes = 20000};
    struct sl_arena arena = {0};
    struct answer_limit limit;
    struct js_request request = {.arena = &arena, .config = &config, .scope = SL_STR("global"), .limit = &limit};
    struct json_failure failure = {0};
    if (!file.size)
        make_table();
    if (js_read(&request, (struct sl_str){(const char *)data, size}, &failure)) {
        if (!js_prepare(&request))
            abort();
        answer(&request);
    } else if (!failure.problem || (failure.status != 400 && failure.status != 422 && failure.status != 413)) {
        abort();
    }
    sl_arena_free(&arena);
    return 0;
}
