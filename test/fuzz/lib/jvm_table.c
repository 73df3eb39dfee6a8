/* A table of a mapping whose bytes behind the header are changed in places: three bytes of input each, offset (little-endian)
 * and what is put there. What it is asked then may be answered wrongly, but it is answered. */
#include "jvm/trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char mapping[] =
    "x.A -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n    1:3:void y.B.f(int):5:7 -> m\n"
    "    1:3:void g():9 -> m\n    # {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":4,\"2\":5}}\n"
    "    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(LE;)\"],\"actions\":"
    "[\"removeInnerFrames(1)\"]}\n    void h() -> n\n    void i():2:7 -> n\nx.C -> c:\n    1:1:void o():1:1 -> o\n"
    "    # {\"id\":\"com.android.tools.r8.outline\"}\n";

static const char stack[] =
    "E\n\tat c.o(S:1)\n\tat a.m(S:2)\n\tat a.m(S:3)\n\tat a.n(S)\n\tat a.m(S)\n\tat b.m(S:1)\nc: x\n";

static void trace_through(const struct sl_jvm_mapper *mapper)
{
    const struct sl_jvm_mapper *items[] = {mapper, mapper};
    struct sl_jvm_trace trace;
    struct sl_buf out = {0};
    struct sl_jvm_signatures signatures = {.arena = {0}};
    bool begun = sl_jvm_trace_begin(&trace, &(struct sl_jvm_mappers){items, 2, false}) &&
                 sl_jvm_signatures_add(&signatures, sl_str(mapping));
    trace.signatures = &signatures;
    for (const char *at = stack; begun && *at;) {
        const char *newline = strchr(at, '\n');
        sl_jvm_trace_line(&trace, (struct sl_str){at, (size_t)(newline + 1 - at)}, &out);
        at = newline + 1;
    }
    sl_jvm_trace_end(&trace);
    sl_jvm_signatures_free(&signatures);
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf file = {0};
    struct sl_jvm_mapper mapper;
    if (sl_jvm_mapper_build(sl_str(mapping), NULL, &file, NULL) != SL_OK)
        __builtin_trap();
    if (sl_jvm_mapper_open(sl_buf_bytes(&file), &mapper, NULL) != SL_OK)
        __builtin_trap();
    size_t room = file.size - mapper.table.head_size;
    for (size_t i = 0; i + 3 <= size; i += 3)
        file.data[mapper.table.head_size + (data[i] | (size_t)data[i + 1] << 8) % room] = data[i + 2];
    trace_through(&mapper);
    sl_buf_free(&file);
    return 0;
}
