/* Look-ups in uploaded symbols: return pads by exact address, then ranges. */
#include "api/native/native.h"

/* enum native_table lists the two tables of the index of ranges (kind 0), then those of the index of return pads (kind
 * 1). */
enum { TABLES_PER_INDEX = 2 };

/* Returns what must be added to relative addresses of the module to get virtual addresses of the ELF file. The client may
 * say it itself. */
static uint64_t symbfile_base(const struct native_module *module)
{
    if (module->upload->image_vmaddr.set)
        return module->upload->image_vmaddr.value;
    /* the module has no load address: its relative addresses are virtual addresses already */
    if (!module->image_address)
        return 0;
    return module->found->symbfile.has_base ? module->found->symbfile.base : 0;
}

/* Looks the address up among the return pads: code to which calls return, listed by exact address. The file of return pads
 * (kind 1) is tried first, as it exists for these look-ups. */
static size_t find_pad(const struct native_module *module, uint64_t va, struct sl_location *chain, size_t capacity,
                       enum native_table *table)
{
    for (int kind = 1; kind >= 0; kind--) {
        const struct sl_symbfile_index *index = module->found->symbfile.indexes[kind];
        size_t count = index ? sl_symbfile_lookup_pad(index, va, chain, capacity) : 0;
        *table = (enum native_table)(TABLE_RANGES_PADS + kind * TABLES_PER_INDEX);
        if (count)
            return count;
    }
    return 0;
}

/* Looks the address up among the ranges of functions. */
static size_t find_range(const struct native_module *module, uint64_t va, struct sl_location *chain, size_t capacity,
                         enum native_table *table)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct sl_symbfile_index *index = module->found->symbfile.indexes[kind];
        size_t count = index ? sl_symbfile_lookup_range(index, va, chain, capacity) : 0;
        *table = (enum native_table)(TABLE_RANGES + kind * TABLES_PER_INDEX);
        if (count)
            return count;
    }
    return 0;
}

/* Finds the start of the function that contains `va`. False if it is not known. */
static bool find_start(const struct native_module *module, uint64_t va, uint64_t *start)
{
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct sl_symcache_function function;
    enum native_table table;
    size_t count = find_range(module, va, chain, SL_SYMCACHE_MAX_CHAIN, &table);
    if (!count || count > SL_SYMCACHE_MAX_CHAIN ||
        !sl_symcache_function(native_table(module, table), chain[count - 1].function, &function) ||
        function.entry == UINT64_MAX)
        return false;
    *start = function.entry + module->found->symbfile.indexes[(table - TABLE_RANGES) / TABLES_PER_INDEX]->base;
    return true;
}

/* Looks up a frame: for a return address among the return pads by the address before it, then by the exact address; at last among
 * the ranges by the adjusted address. */
struct native_lookup_result native_symbfile_lookup(const struct native_module *module, uint64_t relative,
                                                   uint64_t adjusted, bool caller, struct sl_location *chain,
                                                   size_t capacity)
{
    struct native_lookup_result hit = {.address = adjusted};
    uint64_t base = symbfile_base(module), va = relative + base, start;
    if (caller && va)
        hit.count = find_pad(module, va - 1, chain, capacity, &hit.table);
    if (!hit.count)
        hit.count = find_pad(module, va, chain, capacity, &hit.table);
    if (!hit.count)
        hit.count = find_range(module, adjusted + base, chain, capacity, &hit.table);
    hit.has_symbol_address = hit.count && find_start(module, adjusted + base, &start);
    if (hit.has_symbol_address)
        hit.symbol_address = start - base;
    return hit;
}
