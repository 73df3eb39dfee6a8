/* Minidumps: read, every thread's beginning taken, its stack walked without any files, the client's stacks, what few
 * ask for, and what the instruction did that crashed. */
#include "minidump/analysis.h"
#include "minidump/facts.h"
#include "minidump/regions.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct sl_str text)
{
    if (text.data && !sl_str_is_utf8(text))
        __builtin_trap();
}

static void look_at_modules(const struct sl_minidump *dump)
{
    const struct sl_crash *crash = &dump->crash;
    for (size_t i = 0; i < crash->module_count; i++) {
        const struct sl_crash_module *module = &crash->modules[i];
        look_at(module->code_file);
        look_at(module->debug_file);
        look_at(module->code_id);
        if (!module->size || (i && module->address < module[-1].address))
            __builtin_trap();
        const struct sl_crash_module *at = sl_minidump_module_at(dump, module->address);
        if (!at || module->address - at->address >= at->size || (at->size > module->size && !sl_crash_has_id(at)))
            __builtin_trap();
    }
    for (size_t i = 0; i < dump->unloaded_count; i++)
        look_at(dump->unloaded[i].name);
    for (size_t i = 0; i < dump->annotation_count; i++)
        look_at(dump->annotations[i].value);
    for (size_t i = 0; i < dump->mapping_count; i++)
        look_at(dump->mappings[i].path);
}

static void walk(const struct sl_minidump *dump, size_t thread, struct sl_walk_module *modules, struct sl_arena *arena)
{
    struct sl_registers registers;
    struct sl_walk_stack stack;
    const struct sl_walk_target target = sl_minidump_target(dump, thread);
    size_t module;
    enum sl_walk_need need;
    sl_minidump_start(dump, thread, &registers, &stack);
    struct sl_walk *w = sl_walk_new(arena, &target, modules, &dump->module_map, &registers, &stack);
    while (w && (need = sl_walk_run(w, &module)) != SL_WALK_DONE)
        if (need == SL_WALK_NEED_CFI)
            sl_walk_set_cfi(&modules[module], NULL);
        else
            sl_walk_set_symbols(&modules[module], NULL);
    if (!w || !w->frame_count || w->frames[0].trust != SL_TRUST_CONTEXT)
        __builtin_trap();
}

static void look_at_threads(const struct sl_minidump *dump, struct sl_arena *arena)
{
    enum { WALKED = 16 };
    struct sl_walk_module *modules = SL_ARENA_ARRAY(arena, struct sl_walk_module, dump->crash.module_count + 1);
    struct sl_minidump_client client;
    struct sl_crash_frame *frames;
    size_t count, walked = 0;
    for (size_t i = 0; modules && i < dump->crash.module_count; i++) {
        modules[i].base = dump->crash.modules[i].address;
        modules[i].size = dump->crash.modules[i].size;
    }
    sl_minidump_client_stacks(dump, arena, &client, NULL);
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        look_at(dump->crash.threads[i].name);
        if (dump->threads[i].is_walked && walked++ < WALKED)
            walk(dump, i, modules, arena);
        if (sl_minidump_client_frames(&client, dump->crash.threads[i].id, arena, &frames, &count))
            look_at(frames[count - 1].function);
    }
}

static void look_at_crash(const struct sl_minidump *dump, struct sl_arena *arena)
{
    struct sl_minidump_facts facts;
    struct dump_regions regions;
    struct sl_minidump_analysis analysis;
    if (sl_minidump_read_facts(dump, arena, &facts, NULL) != SL_OK ||
        sl_minidump_analyse(dump, arena, &analysis, NULL) != SL_OK || !dump_read_regions(dump, arena, &regions))
        __builtin_trap();
    look_at(facts.lsb_id);
    for (size_t i = 0; i < regions.count; i++)
        if (regions.items[i].last < regions.items[i].first ||
            (i && regions.items[i].first <= regions.items[i - 1].last))
            __builtin_trap();
    if (!sl_str_is_utf8(sl_str(analysis.effects.text)) || analysis.effects.access_count > SL_DISASM_ACCESSES)
        __builtin_trap();
    for (size_t i = 0; i < analysis.flip_count; i++)
        if (!(analysis.flips[i].confidence > 0 && analysis.flips[i].confidence < 1))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena, more = {0};
    struct sl_minidump dump;
    sl_arena_init(&arena, 64 * size + (64 << 10)); /* in proportion to the file */
    enum sl_code code = sl_minidump_read((struct sl_bytes){data, size}, &arena, &dump, NULL);
    if (code == SL_BUSY)
        __builtin_trap();
    if (code == SL_OK) {
        look_at(dump.crash.reason);
        look_at(dump.crash.assertion);
        look_at(dump.crash.system.os_version);
        look_at_modules(&dump);
        look_at_threads(&dump, &more);
        look_at_crash(&dump, &more);
        if (!sl_minidump_enter_wow64(&dump, &arena))
            __builtin_trap();
        if (dump.is_wow64) {
            look_at_threads(&dump, &more);
            look_at_crash(&dump, &more);
        }
    }
    sl_arena_free(&arena);
    sl_arena_free(&more);
    return 0;
}
