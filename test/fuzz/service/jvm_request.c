/* A request for frames of the JVM from its JSON to the answer, which must be JSON again. Its mappings take turns in being
 * there, missing, and none. */
#include <stdlib.h>

#include "api/jvm/jvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sl_buf table;
static struct sl_jvm_mapper mapper;

static bool make_mapper(void)
{
    static const char mapping[] = "p.Main -> a.b:\n"
                                  "# {\"id\":\"sourceFile\",\"fileName\":\"Main.kt\"}\n"
                                  "    1:3:void p.Util.check(int):7:9 -> c\n"
                                  "    1:3:void run(java.lang.String):20 -> c\n"
                                  "    void bare():1:5 -> d\n"
                                  "p.Oops -> e:\n";
    return sl_jvm_mapper_build(sl_str(mapping), NULL, &table, NULL) == SL_OK &&
           sl_jvm_mapper_open(sl_buf_bytes(&table), &mapper, NULL) == SL_OK;
}

static void find_mappings(struct jvm_request *r)
{
    static const enum sl_code codes[] = {SL_OK, SL_NOT_FOUND, SL_MALFORMED};
    const struct sl_jvm_mapper **items = SL_ARENA_ARRAY(r->arena, const struct sl_jvm_mapper *, r->module_count + 1);
    if (!items)
        abort();
    r->mappers = (struct sl_jvm_mappers){.items = items, .chain = r->config->jvm_chain_mappings};
    for (size_t i = 0; i < r->module_count; i++) {
        r->modules[i].code = r->modules[i].is_bundle ? SL_NOT_FOUND : codes[i % 3];
        if (r->modules[i].code == SL_OK)
            items[r->mappers.count++] = r->modules[i].mapper = &mapper;
    }
}

static void answer(struct jvm_request *r)
{
    struct sl_buf out = {0};
    find_mappings(r);
    answer_limit_begin(r->limit, r->arena, r->config->max_response_bytes);
    jvm_map(r);
    jvm_add_context(r);
    if (r->out_of_memory)
        abort();
    jvm_write(r, &out);
    struct sl_json again = sl_json(sl_buf_view(&out), NULL, false);
    sl_json_skip(&again);
    if (!sl_json_end(&again))
        abort();
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config configs[] = {
        {.max_request_frames = 500,
         .max_request_modules = 100,
         .max_response_frames = 1000,
         .max_response_bytes = 20000},
        {.max_request_frames = 500,
         .max_request_modules = 100,
         .max_response_frames = 1000,
         .max_response_bytes = UINT64_MAX,
         .jvm_chain_mappings = true,
         .jvm_error_details = true},
    };
    struct sl_arena arena = {0};
    struct answer_limit limit;
    struct jvm_request request = {
        .arena = &arena, .config = &configs[size % 2], .scope = SL_STR("global"), .limit = &limit};
    struct json_failure failure = {0};
    if (!table.size && !make_mapper())
        abort();
    if (jvm_read(&request, (struct sl_str){(const char *)data, size}, &failure)) {
        arena.limit = 0;
        answer(&request);
    } else if (!failure.problem || (failure.status != 400 && failure.status != 422 && failure.status != 413)) {
        abort();
    }
    sl_arena_free(&arena);
    return 0;
}
