#include "object/debug_map.h"

#include "object/macho.h"

/* Kinds of debugging symbols (stabs): a function, and the object file that has the debug information of the functions after it. */
enum { N_FUN = 0x24, N_OSO = 0x66 };

bool sl_object_has_debug_map(const struct sl_object *object)
{
    if (object->info.format != SL_FORMAT_MACHO)
        return false;
    struct macho_symtab table = macho_symtab(object);
    for (size_t i = 0; i < table.count; i++)
        if (macho_symbol_at(&table, i).type == N_OSO)
            return true;
    return false;
}

/* Reads one of the two N_FUN entries of a function of the file: the first has its name and address, the second no name and the size as its
 * value. The function is counted after the second, if it is not empty and inside the image; else the first entry of the next function
 * overwrites it. */
static void add_function(struct sl_object *object, struct sl_debug_map *map, struct sl_debug_map_file *file,
                         const struct macho_symbol *symbol, struct sl_str name)
{
    struct sl_debug_map_function *f = &map->functions[file->first + file->count];
    if (name.size) {
        *f = (struct sl_debug_map_function){.name = macho_undecorated(name),
                                            .address = symbol->value - object->info.load_address};
    } else if (f->name.size && symbol->value && symbol->value <= object->info.image_size &&
               f->address <= object->info.image_size - symbol->value) {
        f->size = symbol->value;
        file->count++;
    }
}

enum sl_code sl_object_debug_map(struct sl_object *object, struct sl_arena *arena, struct sl_debug_map *map,
                                 struct sl_error *error)
{
    *map = (struct sl_debug_map){0};
    if (object->info.format != SL_FORMAT_MACHO)
        return SL_OK;
    struct macho_symtab table = macho_symtab(object);
    struct sl_account account = {.budget = object->budget};
    size_t files = 0, functions = 0;
    for (size_t i = 0; i < table.count; i++) {
        uint8_t type = macho_symbol_at(&table, i).type;
        files += type == N_OSO;
        functions += type == N_FUN;
    }
    map->files = SL_ARENA_ARRAY(arena, struct sl_debug_map_file, files + 1);
    map->functions = SL_ARENA_ARRAY(arena, struct sl_debug_map_function, functions + 1);
    if (!map->files || !map->functions)
        return sl_budget_fail(object->budget, error);
    for (size_t i = 0; i < table.count && files; i++) { /* without N_OSO there is no debug map */
        struct macho_symbol symbol = macho_symbol_at(&table, i);
        if (symbol.type != N_OSO && symbol.type != N_FUN)
            continue;
        struct sl_str name = sl_account_read_name(&account, table.strings, symbol.name);
        struct sl_debug_map_file *last = map->file_count ? &map->files[map->file_count - 1] : NULL;
        if (symbol.type == N_OSO)
            map->files[map->file_count++] = (struct sl_debug_map_file){
                .path = name, .stamp = symbol.value, .first = last ? last->first + last->count : 0};
        else if (last)
            add_function(object, map, last, &symbol, name);
    }
    return sl_budget_exhausted(object->budget) ? sl_budget_fail(object->budget, error) : SL_OK;
}
