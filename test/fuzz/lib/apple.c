/* Crash reports of Apple's, texts and JSON: read with all options, and everything that comes of it looked at. */
#include "apple/apple.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct sl_str text)
{
    if (text.data && !sl_str_is_utf8(text))
        __builtin_trap();
}

static void look_at_thread(const struct sl_crash_thread *thread)
{
    look_at(thread->name);
    for (size_t i = 0; i < thread->register_count; i++) {
        look_at(thread->registers[i].name);
        if (i && sl_str_compare(thread->registers[i - 1].name, thread->registers[i].name) >= 0)
            __builtin_trap();
    }
    for (size_t i = 0; i < thread->frame_count; i++) {
        look_at(thread->frames[i].package);
        look_at(thread->frames[i].function);
        look_at(thread->frames[i].filename);
    }
}

static void look_at_crash(const struct sl_crash *crash)
{
    const struct sl_str texts[] = {crash->reason,          crash->details,
                                   crash->system.os_name,  crash->system.os_version,
                                   crash->system.os_build, crash->system.device_model};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        look_at(texts[i]);
    for (size_t i = 0; i < crash->thread_count; i++)
        look_at_thread(&crash->threads[i]);
    for (size_t i = 0; i < crash->module_count; i++) {
        look_at(crash->modules[i].code_file);
        look_at(crash->modules[i].debug_file);
        if (crash->modules[i].code_id.size != 32)
            __builtin_trap();
    }
    for (size_t i = 0; i < crash->extra_count; i++)
        look_at(crash->extras[i].json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned i = 0; i < 4; i++) {
        const struct sl_apple_options options = {
            .names_from_report = i & 1, .split_os_version = i & 2, .all_causes = i & 1};
        struct sl_arena arena;
        struct sl_crash crash;
        sl_arena_init(&arena, 256 * size + (64 << 10)); /* in proportion to the file */
        enum sl_code code = sl_apple_read((struct sl_bytes){data, size}, &options, &arena, &crash, NULL);
        if (code == SL_OK)
            look_at_crash(&crash);
        else if (code == SL_BUSY)
            __builtin_trap();
        sl_arena_free(&arena);
    }
    return 0;
}
