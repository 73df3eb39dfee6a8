/* The configuration: what parses is dumped, and the dump parses to the same values again. */
#include <stdlib.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aliases and escapes may make a dump that is over the limits of a file. */
enum { SMALL = 32 * 1024 };

static struct config *parse(struct sl_str yaml)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct sl_buf text = {0};
    struct sl_error error;
    struct config *config;
    if (config_parse(yaml, "fuzz.yml", &config, &problems, &error) == SL_MALFORMED && problems.errors == 0)
        abort();
    config_format_problems("fuzz.yml", &problems, &text);
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return config;
}

/* A dump without the comments that tell where a value comes from. */
static void values(struct sl_str dump, struct sl_buf *out)
{
    for (size_t at = 0; at < dump.size;) {
        const char *line = dump.data + at, *end = memchr(line, '\n', dump.size - at);
        size_t size = end ? (size_t)(end - line) : dump.size - at, keep = size;
        while (keep > 3 && memcmp(line + keep - 3, " # ", 3) != 0)
            keep--;
        sl_buf_add(out, line, keep > 3 ? keep - 3 : size);
        sl_buf_u8(out, '\n');
        at += size + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    setenv("V", "5m", 1);
    struct config *first = parse((struct sl_str){(const char *)data, size});
    if (!first)
        return 0;
    struct sl_buf dump = {0}, again = {0}, wanted = {0}, got = {0};
    config_dump(first, &dump);
    if (dump.size > SMALL) {
        config_release(first);
        sl_buf_free(&dump);
        return 0;
    }
    struct config *second = parse(sl_buf_view(&dump));
    if (!second)
        abort();
    config_dump(second, &again);
    values(sl_buf_view(&dump), &wanted);
    values(sl_buf_view(&again), &got);
    if (!sl_str_equal(sl_buf_view(&wanted), sl_buf_view(&got)))
        abort();
    config_release(first);
    config_release(second);
    sl_buf_free(&dump);
    sl_buf_free(&again);
    sl_buf_free(&wanted);
    sl_buf_free(&got);
    return 0;
}
