/* ELF and DWARF: opening, sections, symbols, embedded sources, units as they are written, and the whole conversion to a symcache,
 * without variables and with them, which must then verify. */
#include <stdlib.h>

#include "dwarf/dwarf.h"
#include "dwarf/listing.h"
#include "object/stored.h"
#include "symcache/symcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool look_at(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    size_t *left = arg;
    if (!file->name.size || !text.size || text.data[text.size - 1] == '\0')
        abort();
    return --*left;
}

/* What a unit refers to is in its own arrays. */
static void check_unit(const struct sl_dwarf_unit *unit)
{
    for (size_t i = 0; i < unit->function_count; i++) {
        const struct sl_dwarf_function *f = &unit->functions[i];
        if (f->first_range + (uint64_t)f->range_count > unit->range_count ||
            (f->parent != SL_DWARF_NONE && (f->parent >= i || !f->is_inlined)))
            abort();
    }
}

static void list(struct sl_object *object)
{
    struct sl_dwarf_listing *listing = sl_dwarf_listing_new(object, NULL);
    struct sl_arena arena = {.budget = sl_object_budget(object)};
    struct sl_table_symbol *symbols;
    size_t count;
    for (size_t i = 0; listing && i < sl_dwarf_listing_count(listing); i++) {
        const struct sl_dwarf_range *ranges;
        struct sl_dwarf_unit unit;
        sl_dwarf_listing_ranges(listing, i, &ranges);
        if (sl_dwarf_listing_read(listing, i, &arena, &unit, NULL) == SL_OK)
            check_unit(&unit);
    }
    sl_object_symbol_table(object, &arena, &symbols, &count, NULL);
    sl_arena_free(&arena);
    sl_dwarf_listing_free(listing);
}

/* Sections lie in the file, and the entries of programs end. */
static void look_at_stored(struct sl_object *object)
{
    struct sl_bytes file = sl_object_file(object), bytes;
    struct sl_stored_parts parts;
    struct sl_load_header load;
    struct sl_section_info section;
    size_t loads = 0;
    sl_object_stored_parts(object, &parts);
    while (sl_object_load_header(object, loads, &load))
        if (++loads > file.size)
            abort();
    if (sl_object_load_headers_usable(object) && !loads)
        abort();
    for (size_t i = 0; i < 100 && sl_object_section_info(object, i, &section); i++)
        if (sl_object_raw_section(object, section.name, &bytes) == SL_SECTION_STORED &&
            (bytes.data < file.data || bytes.size > file.size ||
             bytes.data - file.data > (ptrdiff_t)(file.size - bytes.size)))
            abort();
}

static void convert(struct sl_bytes file, bool variables)
{
    struct sl_object *object;
    struct sl_object_limits limits = {.max_section_size = 1 << 24};
    if (sl_object_open(file, &limits, &object, NULL) != SL_OK)
        return;
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {.arch = info->arch, .debug_id = info->debug_id, .variables = variables};
    struct sl_buf out = {0};
    struct sl_symcache cache;
    if (sl_symcache_convert(object, NULL, &options, NULL, &out, NULL) == SL_OK &&
        (sl_symcache_open(sl_buf_bytes(&out), &cache, NULL) != SL_OK || sl_symcache_verify(&cache, NULL) != SL_OK))
        abort();
    size_t texts = 1000;
    sl_dwarf_sources(object, look_at, &texts);
    if (!variables) {
        list(object);
        look_at_stored(object);
    }
    sl_buf_free(&out);
    sl_object_close(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    convert((struct sl_bytes){data, size}, false);
    convert((struct sl_bytes){data, size}, true);
    return 0;
}
