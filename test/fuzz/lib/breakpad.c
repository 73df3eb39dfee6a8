/* Breakpad symbol files: the functions and the symcache must be the same whether chunks are read in order or as by several
 * workers, which keep all functions where one encodes them as they come; and the symcache must verify. The input is what
 * follows the MODULE line. */
#include <stdlib.h>

#include "base/map.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    struct sl_function_sink sink;
    uint64_t value;
};

static uint64_t mix(uint64_t digest, const void *data, size_t size)
{
    return (digest ^ sl_hash(data, size)) * 0x9E3779B97F4A7C15u;
}

static uint64_t digest_function(uint64_t digest, const struct sl_function_batch *batch, const struct sl_function *f)
{
    const uint64_t numbers[] = {f->address, f->size, f->line_count, f->inlinee_count, f->call_line};
    digest = mix(mix(digest, f->name.data ? f->name.data : "", f->name.size), numbers, sizeof numbers);
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        struct sl_str file = line->file == SL_NO_FILE ? SL_STR("") : batch->files[line->file].name;
        const uint64_t values[] = {line->address, line->size, line->line};
        digest = mix(mix(digest, values, sizeof values), file.data, file.size);
    }
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        digest = digest_function(digest, batch, &f->inlinees[i]);
    return digest;
}

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    (void)error;
    struct digest *d = (struct digest *)sink;
    for (size_t i = 0; i < batch->function_count; i++)
        d->value = digest_function(d->value, batch, &batch->functions[i]);
    return SL_OK;
}

static void run(const struct sl_parallel *self, size_t count, void (*work)(void *, size_t, unsigned), void *arg)
{
    for (size_t i = 0; i < count; i++)
        work(arg, i, (unsigned)(i % self->workers));
}

static void read_object(struct sl_object *object, const struct sl_parallel *parallel)
{
    struct digest one = {.sink = {.consume = consume}}, many = one;
    enum sl_code code = sl_object_read_functions(object, NULL, NULL, &one.sink, NULL);
    if (sl_object_read_functions(object, NULL, parallel, &many.sink, NULL) != code || one.value != many.value ||
        one.sink.skipped_units != many.sink.skipped_units)
        abort();
}

static void convert_object(struct sl_object *object, const struct sl_parallel *parallel)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    struct sl_buf one = {0}, many = {0};
    struct sl_symcache cache;
    enum sl_code code = sl_symcache_convert(object, NULL, &options, NULL, &one, NULL);
    if (sl_symcache_convert(object, NULL, &options, parallel, &many, NULL) != code)
        abort();
    if (code == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&one), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK ||
         one.size != many.size || memcmp(one.data, many.data, one.size) != 0))
        abort();
    sl_buf_free(&one);
    sl_buf_free(&many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char module[] = "MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E0 x\n";
    size_t head = sizeof module - 1;
    struct sl_object *object;
    uint8_t *text = malloc(head + size);
    if (!text)
        return 0;
    memcpy(text, module, head);
    if (size)
        memcpy(text + head, data, size);
    if (sl_object_open((struct sl_bytes){text, head + size}, NULL, &object, NULL) == SL_OK) {
        const struct sl_parallel parallel = {.workers = 2, .run = run};
        read_object(object, &parallel);
        convert_object(object, &parallel);
        sl_object_close(object);
    }
    free(text);
    return 0;
}
