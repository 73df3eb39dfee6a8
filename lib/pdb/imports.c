/* Cross-module references to types: bit 31 is set, bits 20..30 are the number of an imported module, bits 0..19 the number of one of the
 * imports from it. The imports subsection has a local type index for each import; the exports subsection of the imported module maps that
 * to the type index in the PDB. */
#include "pdb/impl.h"

#include <stdlib.h>

void imports_free(struct imports *imports)
{
    sl_arena_free(&imports->arena);
    sl_map_free(&imports->modules);
    imports->exports = NULL;
}

/* Returns a copy in lower case (ASCII only); empty when out of memory. */
static struct sl_str imports_lower(struct sl_arena *arena, struct sl_str text)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    for (size_t i = 0; copy && i < text.size; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + ('a' - 'A'));
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Makes the map of modules by name, at the first call, and im->exports: an entry for each module, filled at its first use. Names are
 * compared in lower case; if two modules have the same name, the first is used. False when out of memory. */
static bool imports_prepare(struct imports *im)
{
    if (im->exports)
        return true;
    struct module_exports *exports = SL_ARENA_ARRAY(&im->arena, struct module_exports, im->pdb->module_count + 1);
    for (size_t i = 0; exports && i < im->pdb->module_count; i++) {
        bool made = false;
        struct sl_str name = imports_lower(&im->arena, im->pdb->modules[i].name);
        void **slot = name.data ? sl_map_find_or_add(&im->modules, name, &made) : NULL;
        if (!slot)
            return false;
        if (made)
            *slot = &im->pdb->modules[i];
    }
    im->exports = exports; /* set last: the map is complete */
    return exports != NULL;
}

/* For qsort and bsearch: pairs of local and global index, by the local one. */
static int by_local(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (a[0] > b[0]) - (a[0] < b[0]);
}

/* Reads the exports subsection of a module: pairs of local and global index, sorted for bsearch. There are none if the subsection is
 * missing or damaged, or when out of memory, which is recorded in the PDB. */
static void read_exports(struct imports *im, const struct pdb_module *module, struct module_exports *e)
{
    struct module_bytes bytes;
    struct sl_bytes data;
    struct sl_arena scratch = {0};
    uint32_t kind;
    e->tried = true;
    if (!pdb_module_bytes(im->pdb, module, &scratch, &bytes))
        bytes.c13 = (struct sl_bytes){NULL, 0};
    struct sl_reader r = sl_reader(bytes.c13, false);
    while (c13_next(&r, &kind, &data)) {
        if (kind != C13_EXPORTS)
            continue;
        size_t count = data.size / 8;
        uint32_t *pairs = SL_ARENA_ARRAY(&im->arena, uint32_t, count * 2 + 1);
        struct sl_reader at = sl_reader(data, false);
        for (size_t i = 0; pairs && i < count * 2; i++)
            pairs[i] = sl_read_u32(&at);
        if (pairs) {
            qsort(pairs, count, 8, by_local); /* 8: bytes of a pair */
            e->pairs = pairs;
            e->count = count;
        } else {
            *im->pdb->msf.no_memory = true;
        }
        break; /* a module has one exports subsection */
    }
    sl_arena_free(&scratch);
}

/* Stores where in the subsection the entry of each imported module begins: name, count, then `count` indexes. Stops at a damaged entry and
 * at MAX_IMPORTED_MODULES: references to the modules after that cannot be resolved. */
void imports_begin_module(struct imports *im, struct sl_bytes subsection)
{
    struct sl_reader r = sl_reader(subsection, false);
    im->subsection = subsection;
    im->count = 0;
    while (im->count < MAX_IMPORTED_MODULES && sl_reader_left(&r) >= 8) {
        im->imported[im->count++] = (struct imported){.offset = (uint32_t)sl_reader_offset(&r)};
        sl_read_u32(&r); /* name */
        sl_reader_skip(&r, (uint64_t)sl_read_u32(&r) * 4);
    }
}

/* Sets imported->exports to the exports of the module with this name, which are read at the first use; NULL if there is no such module. */
static void find_imported_module(struct imports *im, struct imported *imported, struct sl_str name)
{
    struct sl_arena scratch = {0};
    imported->looked_up = true;
    const struct pdb_module *module = sl_map_get(&im->modules, imports_lower(&scratch, name));
    sl_arena_free(&scratch);
    if (!module)
        return;
    imported->exports = &im->exports[module - im->pdb->modules];
    if (!imported->exports->tried)
        read_exports(im, module, imported->exports);
}

/* Sets `*global` to the type index for a cross-module index, by the imports of the current module. Bits 20 to 30 of the index are the
 * number of the imported module, bits 0 to 19 that of the import. False if there is none; also when out of memory, which is recorded in the
 * PDB. */
bool imports_resolve(struct imports *im, uint32_t index, struct sl_account *account, uint32_t *global)
{
    uint32_t module = index >> 20 & 0x7FF, import = index & 0xFFFFF;
    struct sl_reader r = sl_reader(im->subsection, false);
    if (module >= im->count)
        return false;
    if (!imports_prepare(im)) {
        *im->pdb->msf.no_memory = true;
        return false;
    }
    struct imported *imported = &im->imported[module];
    sl_reader_seek(&r, imported->offset);
    uint32_t name = sl_read_u32(&r), count = sl_read_u32(&r);
    if (!imported->looked_up)
        find_imported_module(im, imported, pdb_name(im->pdb, name, account));
    sl_reader_skip(&r, (uint64_t)import * 4);
    uint32_t local = sl_read_u32(&r);
    const struct module_exports *e = imported->exports;
    if (import >= count || r.failed || !e || !e->count)
        return false;
    const uint32_t *pair = bsearch(&local, e->pairs, e->count, 8, by_local);
    if (pair)
        *global = pair[1];
    return pair != NULL;
}
