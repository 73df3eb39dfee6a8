#include "crash/crash.h"

#include <stdlib.h>

/* qsort() comparison of pointers to registers: by name, then by position in the array that they point into. */
static int register_by_name(const void *left, const void *right)
{
    const struct sl_crash_register *a = *(const struct sl_crash_register *const *)left;
    const struct sl_crash_register *b = *(const struct sl_crash_register *const *)right;
    int order = sl_str_compare(a->name, b->name);
    return order ? order : (a > b) - (a < b);
}

bool sl_crash_set_registers(struct sl_crash_thread *thread, const struct sl_crash_register *registers, size_t count,
                            struct sl_arena *arena)
{
    const struct sl_crash_register **order = SL_ARENA_ARRAY(arena, const struct sl_crash_register *, count + 1);
    struct sl_crash_register *sorted = SL_ARENA_ARRAY(arena, struct sl_crash_register, count + 1);
    size_t kept = 0;
    if (!order || !sorted)
        return false;
    for (size_t i = 0; i < count; i++)
        order[i] = &registers[i];
    qsort(order, count, sizeof *order, register_by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept && sl_str_equal(sorted[kept - 1].name, order[i]->name))
            kept--; /* the later one of this name replaces it */
        sorted[kept++] = *order[i];
    }
    thread->registers = sorted;
    thread->register_count = kept;
    return true;
}

struct sl_str sl_crash_file_name(struct sl_str path)
{
    size_t at = path.size;
    while (at && path.data[at - 1] != '/' && path.data[at - 1] != '\\')
        at--;
    return (struct sl_str){path.data + at, path.size - at};
}

bool sl_crash_has_id(const struct sl_crash_module *module)
{
    return sl_code_id_is_set(module->code_id) || (module->has_debug_id && sl_debug_id_has_uuid(&module->debug_id));
}
