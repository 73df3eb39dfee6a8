/* The companion files that an object's debug information refers to. */
#include "dwarf/impl.h"

#include <stdlib.h>

/* True if the object has a skeleton unit. In DWARF 4 only attributes of the root entry mark a skeleton; reading them is not worth it here:
 * among units of version 4 only skeletons need .debug_addr, so that section is enough. */
static bool has_skeleton(struct sl_object *object)
{
    struct dwarf_file file = {0};
    struct sl_arena arena = {0};
    size_t skipped = 0;
    bool found = false;
    dwarf_file_open(&file, object, false); /* false: neither a .dwo file nor a package */
    if (dwarf_index_units(&file, SIZE_MAX, &arena, &skipped))
        for (size_t i = 0; i < file.unit_count && !found; i++)
            found = file.units[i].version >= 5 ? file.units[i].type == DW_UT_skeleton : file.addr.size > 0;
    sl_arena_free(&arena);
    return found;
}

/* Skeleton units refer to addresses by index, so without .debug_addr there are none, and no unit needs to be looked at. */
void sl_dwarf_find_companions(struct sl_object *object, struct sl_dwarf_companions *companions)
{
    struct sl_bytes addresses;
    struct sl_supplementary link;
    *companions = (struct sl_dwarf_companions){0};
    if (sl_object_supplementary(object, &link)) {
        companions->dwz_name = link.name;
        companions->dwz_build_id = link.id;
    }
    if (sl_object_section(object, "debug_addr", &addresses, NULL) && addresses.size)
        companions->dwp = has_skeleton(object);
}

/* Skeletons without code are left out, because nothing in their .dwo files is ever looked up. */
void sl_dwarf_split_units(struct sl_object *object, size_t most,
                          bool (*found)(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id),
                          void *arg)
{
    struct dwarf_file file = {0};
    struct sl_arena arena = {.budget = sl_object_budget(object)};
    struct dwarf_worker *worker = calloc(1, sizeof *worker);
    struct dwarf_unit unit;
    size_t skipped = 0;
    bool more = worker != NULL;            /* false: out of memory, or `found` wants no more */
    dwarf_file_open(&file, object, false); /* false: neither a .dwo file nor a package */
    if (worker)
        worker->account.budget = sl_object_budget(object);
    if (worker && !dwarf_index_units(&file, most, &arena, &skipped))
        more = false;
    for (size_t i = 0; i < file.unit_count && more; i++)
        if (dwarf_unit_open(worker, &file, &file.units[i], &unit) && unit.dwo_name.size &&
            (unit.has_ranges || unit.has_low_pc))
            more = found(arg, unit.comp_dir, unit.dwo_name, unit.dwo_id);
    if (worker)
        dwarf_worker_free(worker);
    free(worker);
    sl_arena_free(&arena);
}

bool sl_dwarf_has_split_unit(struct sl_object *dwo, uint64_t dwo_id)
{
    struct dwarf_file file = {0};
    struct sl_arena arena = {.budget = sl_object_budget(dwo)};
    struct dwarf_worker *worker = calloc(1, sizeof *worker);
    struct dwarf_unit unit;
    size_t skipped = 0;
    bool found = false;
    dwarf_file_open(&file, dwo, true); /* true: its sections are named .debug_info.dwo and so on */
    if (worker)
        worker->account.budget = sl_object_budget(dwo);
    if (worker && dwarf_index_units(&file, SIZE_MAX, &arena, &skipped))
        for (size_t i = 0; i < file.unit_count && !found; i++) {
            const struct dwarf_unit_header *h = &file.units[i];
            if (h->version >= 5)
                found = h->type == DW_UT_split_compile && h->dwo_id == dwo_id;
            else /* version 4 has the id in the root entry; 0 = unknown, which fits any id */
                found = dwarf_unit_open(worker, &file, h, &unit) && (!unit.dwo_id || !dwo_id || unit.dwo_id == dwo_id);
        }
    if (worker)
        dwarf_worker_free(worker);
    free(worker);
    sl_arena_free(&arena);
    return found;
}
