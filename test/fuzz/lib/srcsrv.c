/* Source server streams: read, every listed file asked for, and the head's templates worked out. */
#include "pdb/srcsrv.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct srcsrv_fields fields = {{SL_STR("c:\\src\\a.c"), SL_STR("NAME"), SL_STR("dir/a.c"), SL_STR("7")},
                                            4};

/* The lines up to their first star: the files, if it is a list of them. */
static void ask_for_files(struct srcsrv *s, struct sl_str text)
{
    struct sl_arena arena = {0};
    for (size_t at = 0; at < text.size;) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size_t end = newline ? (size_t)(newline - text.data) : text.size;
        const char *star = memchr(text.data + at, '*', end - at);
        struct sl_file_origin origin = {{NULL, 0}};
        struct sl_str path = {text.data + at, star ? (size_t)(star - text.data) - at : end - at};
        if (srcsrv_origin(s, path, &arena, &origin) && !origin.path.size && !origin.url.size)
            __builtin_trap();
        at = end + 1;
    }
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct sl_buf target = {0};
    struct sl_str text = {(const char *)data, size}, vcs;
    uint64_t work = 1 << 20;
    _Atomic bool no_memory = false;
    struct srcsrv *s = srcsrv_open(text, &arena, &no_memory, &vcs);
    if (s) {
        if (srcsrv_evaluate(s, &fields, SL_STR("C:\\S"), &work, &target) && target.size > 64 << 10)
            __builtin_trap();
        ask_for_files(s, text);
    }
    sl_buf_free(&target);
    sl_arena_free(&arena);
    return 0;
}
