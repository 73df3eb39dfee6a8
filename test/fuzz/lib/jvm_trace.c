/* Stack traces as text, and descriptors, with one small mapping. */
#include "jvm/names.h"
#include "jvm/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char mapping[] =
    "x.A -> a:\n    1:3:void y.B.f(int):5:7 -> m\n    1:3:void g():9 -> m\n    void h():1:5 -> n\n"
    "x.E -> e:\n    void <init>() -> <init>\n";

static void sign(struct sl_str text, const struct sl_jvm_mapper *mapper)
{
    struct sl_buf readable = {0}, parameters = {0};
    bool good = sl_jvm_signature(text, &mapper, 1, &readable, &parameters);
    if (good != (readable.size > 0) || (!good && parameters.size))
        __builtin_trap();
    sl_buf_free(&readable);
    sl_buf_free(&parameters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size};
    struct sl_buf file = {0}, out = {0};
    struct sl_jvm_mapper mapper;
    struct sl_jvm_trace trace;
    if (sl_jvm_mapper_build(sl_str(mapping), NULL, &file, NULL) != SL_OK ||
        sl_jvm_mapper_open(sl_buf_bytes(&file), &mapper, NULL) != SL_OK)
        __builtin_trap();
    const struct sl_jvm_mapper *items[] = {&mapper};
    if (!sl_jvm_trace_begin(&trace, &(struct sl_jvm_mappers){items, 1, false}))
        __builtin_trap();
    sign(text, &mapper);
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text.data + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline + 1 - text.data) - at : size - at;
        size_t before = out.size;
        if (!sl_jvm_trace_line(&trace, (struct sl_str){text.data + at, length}, &out))
            __builtin_trap();
        if (out.size > before && out.data[out.size - 1] != '\n')
            __builtin_trap();
        at += length;
    }
    sl_jvm_trace_end(&trace);
    sl_buf_free(&out);
    sl_buf_free(&file);
    return 0;
}
