/* ELF core files: read, every thread's stack walked without any files, the crash analysed with the core itself as a module's file, and a
 * smaller core written, which must have the same threads and modules. */
#include <stdint.h>
#include <unistd.h>

#include "base/file.h"
#include "elfcore/elfcore.h"
#include "minidump/analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct sl_str text)
{
    if (text.size && !sl_str_is_utf8(text))
        __builtin_trap();
}

static void look_at_modules(const struct sl_elfcore *core)
{
    const struct sl_crash *crash = &core->dump.crash;
    look_at(core->name);
    look_at(core->command_line);
    look_at(crash->reason);
    for (size_t i = 0; i < crash->module_count; i++) {
        const struct sl_crash_module *module = &crash->modules[i];
        look_at(module->code_file);
        look_at(module->code_id);
        if (!module->size || (i && module->address < module[-1].address))
            __builtin_trap();
    }
    for (size_t i = 0; i < core->package_count; i++)
        look_at(core->packages[i].json);
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
    if (!w || !w->frame_count)
        __builtin_trap();
}

static void look_at_threads(const struct sl_minidump *dump, struct sl_arena *arena)
{
    enum { WALKED = 16 };
    struct sl_walk_module *modules = SL_ARENA_ARRAY(arena, struct sl_walk_module, dump->crash.module_count + 1);
    for (size_t i = 0; modules && i < dump->crash.module_count; i++) {
        modules[i].base = dump->crash.modules[i].address;
        modules[i].size = dump->crash.modules[i].size;
    }
    for (size_t i = 0; modules && i < dump->crash.thread_count && i < WALKED; i++)
        if (dump->threads[i].is_walked)
            walk(dump, i, modules, arena);
}

static void analyse(struct sl_bytes bytes, struct sl_elfcore *core, struct sl_arena *arena)
{
    struct sl_minidump_analysis analysis;
    struct sl_object *file;
    if (sl_object_open(bytes, NULL, &file, NULL) == SL_OK) {
        const struct sl_crash *crash = &core->dump.crash;
        if (!sl_elfcore_add_file(core, crash->module_count ? crash->modules[0].address : 0, file, arena))
            __builtin_trap();
        sl_object_close(file);
    }
    if (sl_minidump_analyse(&core->dump, arena, &analysis, NULL) != SL_OK)
        __builtin_trap();
}

/* Writes the smaller core and reads it again. */
static void trim(struct sl_bytes bytes, const struct sl_elfcore *core, struct sl_arena *arena)
{
    struct sl_mapping mapping;
    struct sl_elfcore trimmed;
    int fd = sl_unlinked_file("/tmp");
    if (fd < 0)
        return;
    enum sl_code code = sl_elfcore_trim(bytes, fd, NULL);
    if (code == SL_MALFORMED) { /* its segments share bytes */
        close(fd);
        return;
    }
    if (code != SL_OK || sl_map_fd(fd, &mapping, NULL) != SL_OK)
        __builtin_trap();
    if (sl_elfcore_read(mapping.bytes, arena, &trimmed, NULL) != SL_OK ||
        trimmed.dump.crash.thread_count != core->dump.crash.thread_count)
        __builtin_trap();
    sl_unmap(&mapping);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena, more = {0};
    struct sl_elfcore core;
    const struct sl_bytes bytes = {data, size};
    sl_arena_init(&arena, 128 * size + (64 << 10)); /* in proportion to the file */
    enum sl_code code = sl_elfcore_read(bytes, &arena, &core, NULL);
    if (code == SL_BUSY)
        __builtin_trap();
    if (code == SL_OK) {
        look_at_modules(&core);
        look_at_threads(&core.dump, &more);
        trim(bytes, &core, &more);
        analyse(bytes, &core, &more);
    }
    sl_arena_free(&arena);
    sl_arena_free(&more);
    return 0;
}
