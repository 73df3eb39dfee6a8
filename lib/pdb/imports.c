/* Cross-module references: bit 31 set, bits 20..30 an import module, bits 0..19 one of its imports. The import names a
 * local index of that module, whose exports subsection gives the index of the whole program. */
#include "pdb/impl.h"

#include <stdlib.h>

void imports_free(struct imports *imports)
{
    sl_arena_free(&imports->arena);
    sl_map_free(&imports->modules);
    imports->exports = NULL;
}

static struct sl_str lower(struct sl_arena *arena, struct sl_str text)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    for (size_t i = 0; copy && i < text.size; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + ('a' - 'A'));
    return (struct sl_str){copy, copy ? text.size : 0};
}

static bool prepare(struct imports *im)
{
    if (im->exports)
        return true;
    struct module_exports *exports = SL_ARENA_ARRAY(&im->arena, struct module_exports, im->pdb->module_count + 1);
    for (size_t i = 0; exports && i < im->pdb->module_count; i++) {
        bool made = false;
        void **slot = sl_map_slot(&im->modules, lower(&im->arena, im->pdb->modules[i].name), &made);
        if (!slot)
            return false;
        if (made)
            *slot = &im->pdb->modules[i];
    }
    im->exports = exports;
    return exports != NULL;
}

static int by_local(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (a[0] > b[0]) - (a[0] < b[0]);
}

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
            qsort(pairs, count, 8, by_local);
            e->pairs = pairs;
            e->count = count;
        }
        break;
    }
    sl_arena_free(&scratch);
}

void imports_begin_module(struct imports *im, struct sl_bytes subsection)
{
    struct sl_reader r = sl_reader(subsection, false);
    im->subsection = subsection;
    im->count = 0;
    while (im->count < MAX_IMPORTED_MODULES && sl_reader_left(&r) >= 8) {
        im->offsets[im->count++] = (uint32_t)sl_reader_offset(&r);
        sl_read_u32(&r);
        sl_reader_skip(&r, (uint64_t)sl_read_u32(&r) * 4);
    }
}

static bool find_import(const struct imports *im, uint32_t module, uint32_t import, struct sl_str *name,
                        uint32_t *local)
{
    struct sl_reader r = sl_reader(im->subsection, false);
    if (module >= im->count)
        return false;
    sl_reader_seek(&r, im->offsets[module]);
    uint64_t budget = UINT64_MAX; /* each look-up counts as a step of the namer */
    *name = pdb_name(im->pdb, sl_read_u32(&r), &budget);
    if (import >= sl_read_u32(&r))
        return false;
    sl_reader_skip(&r, (uint64_t)import * 4);
    *local = sl_read_u32(&r);
    return !r.failed;
}

bool imports_resolve(struct imports *im, uint32_t index, uint32_t *global)
{
    struct sl_str name;
    uint32_t local;
    struct sl_arena scratch = {0};
    if (!find_import(im, index >> 20 & 0x7FF, index & 0xFFFFF, &name, &local) || !prepare(im))
        return false;
    const struct pdb_module *module = sl_map_get(&im->modules, lower(&scratch, name));
    sl_arena_free(&scratch);
    if (!module)
        return false;
    struct module_exports *e = &im->exports[module - im->pdb->modules];
    if (!e->tried)
        read_exports(im, module, e);
    const uint32_t *pair = e->count ? bsearch(&local, e->pairs, e->count, 8, by_local) : NULL;
    if (!pair)
        return false;
    *global = pair[1];
    return true;
}
