/* The debug map of linked Mach-O files (<mach-o/stab.h>): Apple's linker leaves DWARF in the object files and records in the symbol
 * table which files it linked and where their functions went. dsymutil makes a .dSYM bundle out of it.
 *
 *     N_OSO   /src/io.o, or /src/lib.a(io.o); its time of change
 *     N_FUN   _f, its address in the image
 *     N_FUN   (no name), its size                                           and so on, up to the next N_OSO */
#pragma once

#include "object/object.h"

struct sl_debug_map_function {
    struct sl_str name; /* without the leading underscore, as sl_object_symbols() of the object file has it */
    uint64_t address;   /* relative to the load address */
    uint64_t size;      /* bytes */
};

struct sl_debug_map_file {
    struct sl_str path;
    uint64_t stamp;      /* modification time, seconds since 1970; 0 = unknown */
    size_t first, count; /* its functions in sl_debug_map.functions */
};

struct sl_debug_map {
    struct sl_debug_map_file *files;
    size_t file_count;
    struct sl_debug_map_function *functions;
};

/* True if the object has a debug map: at least one N_OSO symbol. */
bool sl_object_has_debug_map(const struct sl_object *object);

/* Reads the debug map into the arena, in file order; for an object without one the result has no files. Functions that are empty or
 * outside the image are left out. */
enum sl_code sl_object_debug_map(struct sl_object *object, struct sl_arena *arena, struct sl_debug_map *map,
                                 struct sl_error *error);
