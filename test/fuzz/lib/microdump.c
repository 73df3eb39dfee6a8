/* Logs with microdumps: all of them found, each read, and its walk begun. */
#include "minidump/microdump.h"
#include "minidump/minidump.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct sl_str text)
{
    if (text.data && !sl_str_is_utf8(text))
        __builtin_trap();
}

static void look_at_dump(const struct sl_minidump *dump)
{
    struct sl_registers registers;
    struct sl_walk_stack stack;
    if (!dump->is_microdump || dump->crash.thread_count != 1 || !dump->crash.crashed)
        __builtin_trap();
    if (dump->threads[0].is_walked)
        sl_minidump_start(dump, 0, &registers, &stack);
    look_at(dump->crash.reason);
    look_at(dump->crash.system.os_version);
    look_at(dump->crash.system.os_build);
    for (size_t i = 0; i < dump->crash.module_count; i++)
        look_at(dump->crash.modules[i].code_file);
    for (size_t i = 0; i < dump->annotation_count; i++)
        look_at(dump->annotations[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_microdump_search search = {.rest = {(const char *)data, size}};
    struct sl_microdump one;
    for (bool found = sl_microdump_is_in((struct sl_bytes){data, size}); found && sl_microdump_next(&search, &one);) {
        struct sl_arena arena;
        struct sl_minidump dump;
        sl_arena_init(&arena, 64 * one.text.size + (64 << 10)); /* in proportion to it */
        enum sl_code code =
            sl_minidump_read((struct sl_bytes){(const uint8_t *)one.text.data, one.text.size}, &arena, &dump, NULL);
        if (code == SL_BUSY)
            __builtin_trap();
        if (code == SL_OK)
            look_at_dump(&dump);
        sl_arena_free(&arena);
    }
    return 0;
}
