/* Looks up addresses in symbols that were uploaded for profilers: exact return addresses first, then ranges of functions. */
#include "api/native/native.h"

/* Each of the two uploaded files has two tables: enum native_table lists those of the file of ranges (kind 0), then those of the
 * file of return pads (kind 1). */
enum { TABLES_PER_INDEX = 2 };

/* Returns what must be added to addresses relative to the module to get virtual addresses of the ELF file: as the client says, or
 * from the uploaded files; 0 if neither says it. */
static uint64_t symbfile_base(const struct native_module *module)
{
    if (module->upload->image_vmaddr.set)
        return module->upload->image_vmaddr.value;
    /* the module has no load address: its relative addresses are virtual addresses already */
    if (!module->image_address)
        return 0;
    return module->found->symbfile.has_base ? module->found->symbfile.base : 0;
}

/* Looks up a virtual address among the return pads, addresses to which calls return. Tries the file of return pads (kind 1) first,
 * as it is made for this. Returns the number of functions there and sets `*table`; 0: none. */
static size_t find_pad(const struct native_module *module, uint64_t va, struct sl_location *chain, size_t capacity,
                       enum native_table *table)
{
    for (int kind = 1; kind >= 0; kind--) {
        const struct sl_symbfile_index *index = module->found->symbfile.indexes[kind];
        size_t count = index ? sl_symbfile_lookup_pad(index, va, chain, capacity) : 0;
        /* the enum has two tables for each kind, ranges and pads */
        *table = (enum native_table)(TABLE_RANGES_PADS + kind * TABLES_PER_INDEX);
        if (count)
            return count;
    }
    return 0;
}

/* Looks up a virtual address among the ranges of functions, in the file of ranges (kind 0) first. Returns the number of functions
 * there and sets `*table`; 0: none. */
static size_t find_range(const struct native_module *module, uint64_t va, struct sl_location *chain, size_t capacity,
                         enum native_table *table)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct sl_symbfile_index *index = module->found->symbfile.indexes[kind];
        size_t count = index ? sl_symbfile_lookup_range(index, va, chain, capacity) : 0;
        /* the enum has two tables for each kind, ranges and pads */
        *table = (enum native_table)(TABLE_RANGES + kind * TABLES_PER_INDEX);
        if (count)
            return count;
    }
    return 0;
}

/* Finds the start of the function that contains `va`: of the outermost one, the last in the chain. False if it is not known. */
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
    /* `entry` is relative to the base of the index that has the table */
    *start = function.entry + module->found->symbfile.indexes[(table - TABLE_RANGES) / TABLES_PER_INDEX]->base;
    return true;
}

/* A return pad is the last byte of a call instruction. So it is searched just before a return address, then at the address itself, for
 * profilers that have subtracted 1 already. Then the ranges of functions are searched. The first hit counts; its symbol address is searched
 * in the ranges, as return pads do not have one. */
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
