/* The debug map of linked Mach-O files (<mach-o/stab.h>): Apple's linker leaves DWARF in the object files and writes down which they
 * are, and where what they have went. dsymutil makes a .dSYM bundle out of it.
 *
 *     N_OSO   /src/io.o, or /src/lib.a(io.o); its time of change
 *     N_FUN   _f, its address in the image
 *     N_FUN   (no name), its size                                           and so on, up to the next N_OSO */
#pragma once

#include "object/object.h"

struct sl_debug_map_function {
    struct sl_str name; /* as symbols of the object file are called (sl_object_symbols) */
    uint64_t address;   /* relative to the load address */
    uint64_t size;      /* bytes */
};

struct sl_debug_map_file {
    struct sl_str path;
    uint64_t stamp;      /* seconds since 1970; 0 = not told */
    size_t first, count; /* of its functions */
};

struct sl_debug_map {
    struct sl_debug_map_file *files;
    size_t file_count;
    struct sl_debug_map_function *functions;
};

/* Whether the object has one. */
bool sl_object_has_debug_map(const struct sl_object *object);

/* The map, in the arena, in the order of the file; no files for other objects. Functions that are empty, or outside of the image,
 * are left out. */
enum sl_code sl_object_debug_map(struct sl_object *object, struct sl_arena *arena, struct sl_debug_map *map,
                                 struct sl_error *error);
